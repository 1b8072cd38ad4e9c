/*
 * Sparse constants in full. A tensor is a tree: each level goes along an axis, or along the blocks
 * of one, in an order of its own. A dense level has all its indices, a sparse one those of its
 * list, from segment to segment.
 * Source: github.com/google-ai-edge/LiteRT, tflite/kernels/internal/utils/
 * sparsity_format_converter.cc
 */
#include <string.h>

#include "../../../device/memory_internal.h"
#include "read_internal.h"

enum { MOST_LEVELS = 2 * CORNU_MAX_RANK, SPARSE = 1 };

typedef struct {
    bool            sparse;
    int64_t         size;             /* of a dense level */
    CornuFlatVector segments, indices;
    size_t          segment_bytes, index_bytes;
    int             axis;             /* of the tensor */
    int64_t         factor;           /* of this level's index in that of the axis */
} Level;

typedef struct {
    Level                  levels[MOST_LEVELS];
    int                    count;
    const CornuLiteTensor *tensor;
    int64_t                strides[CORNU_MAX_RANK];
    const unsigned char   *from;
    unsigned char         *to;
    size_t                 size, next, stored;   /* of an element; the next one, and how many */
    int64_t                steps;                /* that may still be made */
} Tree;

/* Lists of i32, u16 or u8, types 1 to 3 of the union. */
static void read_list(CornuLiteReader *reader, const CornuFlatTable *dimension, int slot,
                      CornuFlatVector *list, size_t *bytes)
{
    static const size_t  sizes[] = { 1, 4, 2, 1 };
    const uint64_t       type = cornu__flat_bits(&reader->from, dimension, slot, 1, 0);
    const CornuFlatTable table = cornu__flat_table_at(&reader->from, dimension, slot + 1);
    *bytes = sizes[type < 4 ? type : 0];
    *list = cornu__flat_vector_at(&reader->from, &table, 0, *bytes);
}

static int64_t element(const CornuFlatVector *list, size_t bytes, int64_t i)
{
    uint32_t value = 0;
    memcpy(&value, list->bytes + (size_t)i * bytes, bytes);   /* little-endian */
    return bytes == 4 ? (int32_t)value : (int64_t)value;
}

static CornuStatus bad(const CornuLiteTensor *tensor)
{
    return cornu__fail(CORNU_ERR_FORMAT, "the sparse tensor \"%s\" is not consistent",
                       tensor->name);
}

/* Puts the elements below a node, whose place among those of its level is `place`. */
static CornuStatus put(Tree *tree, int level, int64_t place, int64_t *index)
{
    const CornuShape shape = tree->tensor->shape;
    if (level == tree->count) {
        int64_t at = 0;
        for (int i = 0; i < shape.rank; i++) {
            if (index[i] >= shape.extent[i]) return bad(tree->tensor);
            at += index[i] * tree->strides[i];
        }
        if (tree->next == tree->stored) return bad(tree->tensor);
        memcpy(tree->to + (size_t)at * tree->size, tree->from + tree->next++ * tree->size,
               tree->size);
        return CORNU_OK;
    }
    const Level *own = &tree->levels[level];
    int64_t      begin = 0, end = own->size;
    if (own->sparse) {
        if (place + 1 >= (int64_t)own->segments.count) return bad(tree->tensor);
        begin = element(&own->segments, own->segment_bytes, place);
        end = element(&own->segments, own->segment_bytes, place + 1);
        if (begin < 0 || end > (int64_t)own->indices.count) return bad(tree->tensor);
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = own->sparse ? element(&own->indices, own->index_bytes, i) : i;
        if (tree->steps-- <= 0 || at < 0) return bad(tree->tensor);
        index[own->axis] += at * own->factor;
        CORNU__TRY(put(tree, level + 1, own->sparse ? i : place * own->size + i, index));
        index[own->axis] -= at * own->factor;
    }
    return CORNU_OK;
}

/* The levels in their order: axes first, then their blocks. */
static CornuStatus read_levels(CornuLiteReader *reader, const CornuFlatTable *sparsity, Tree *tree)
{
    const CornuFlatVector order = cornu__flat_vector_at(&reader->from, sparsity, 0, 4);
    const CornuFlatVector blocks = cornu__flat_vector_at(&reader->from, sparsity, 1, 4);
    const CornuFlatVector dimensions = cornu__flat_vector_at(&reader->from, sparsity, 2, 4);
    const int             rank = tree->tensor->shape.rank;
    int64_t               factors[CORNU_MAX_RANK];
    int64_t               seen = 0;
    if (order.count != dimensions.count || order.count > MOST_LEVELS ||
        order.count != (size_t)rank + blocks.count)
        return bad(tree->tensor);
    tree->count = (int)order.count;
    for (int i = 0; i < rank; i++) factors[i] = 1;
    for (int i = tree->count - 1; i >= 0; i--) {
        const CornuFlatTable dimension = cornu__flat_element(&reader->from, &dimensions, (size_t)i);
        const int32_t        number = cornu__lite_integer(&order, (size_t)i);
        Level               *level = &tree->levels[i];
        *level = (Level){ .sparse = cornu__flat_bits(&reader->from, &dimension, 0, 1, 0) == SPARSE,
                          .size = cornu__flat_i32(&reader->from, &dimension, 1, 0) };
        if (number < 0 || number >= tree->count || seen >> number & 1) return bad(tree->tensor);
        seen |= INT64_C(1) << number;
        level->axis = number < rank ? number
                                    : cornu__lite_integer(&blocks, (size_t)(number - rank));
        const bool block = number >= rank;
        if (level->axis < 0 || level->axis >= rank || level->size < 0 || block != (i >= rank) ||
            (block && (level->sparse || level->size < 1)))
            return bad(tree->tensor);
        level->factor = factors[level->axis];
        if (number >= rank) factors[level->axis] *= level->size;
        if (factors[level->axis] > tree->tensor->shape.extent[level->axis])
            return bad(tree->tensor);
        if (!level->sparse) {   /* so that no place is beyond the elements */
            if (level->size > tree->tensor->shape.extent[level->axis] / level->factor)
                return bad(tree->tensor);
            continue;
        }
        read_list(reader, &dimension, 2, &level->segments, &level->segment_bytes);
        read_list(reader, &dimension, 4, &level->indices, &level->index_bytes);
    }
    return CORNU_OK;
}

CornuStatus cornu__lite_densify(CornuLiteReader *reader, const CornuFlatTable *sparsity,
                                const CornuLiteTensor *tensor, const CornuFlatVector *data,
                                void **dense)
{
    enum { MOST_SPARSE = 64 };   /* bytes of zeros for each byte in the file */
    Tree    tree = { .tensor = tensor, .size = cornu__lite_dtype_size(tensor->dtype),
                     .from = data->bytes };
    int64_t index[CORNU_MAX_RANK] = { 0 }, count = 1;
    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        const int64_t extent = tensor->shape.extent[i];
        if (extent < 1 || extent > INT32_MAX / count) return bad(tensor);
        tree.strides[i] = count;
        count *= extent;
    }
    const size_t bytes = (size_t)count * tree.size;
    if (bytes / MOST_SPARSE > reader->from.size) return bad(tensor);
    CORNU__TRY(cornu__lite_take(reader, data->count + bytes / MOST_SPARSE));
    tree.stored = data->count / tree.size;
    tree.steps = 4 * count + 64;
    CORNU__TRY(read_levels(reader, sparsity, &tree));
    if (!(tree.to = *dense = cornu__allocate(bytes, 1))) return CORNU_ERR_MEMORY;
    CORNU__TRY(put(&tree, 0, 0, index));
    return tree.next == tree.stored ? CORNU_OK : bad(tensor);
}
