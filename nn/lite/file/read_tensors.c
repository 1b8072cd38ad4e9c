/* The tensors of .tflite files, with their constants: read_internal.h. */
#include <math.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "read_internal.h"

/* Types that the graph does not have as they are. */
enum { F64 = 10, RESOURCE = 13, I4 = 17 };

/* Extents of the shape, with -1 where the signature has it. */
static CornuStatus read_shape(CornuLiteReader *reader, const CornuFlatTable *table,
                              const char *name, CornuShape *shape)
{
    const CornuFlatVector extents = cornu__flat_vector_at(&reader->from, table, 0, 4);
    const CornuFlatVector signature = cornu__flat_vector_at(&reader->from, table, 7, 4);
    if (extents.count > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" has %zu axes, expected at "
                           "most %d", name, extents.count, CORNU_MAX_RANK);
    *shape = (CornuShape){ .rank = (int)extents.count };
    for (int i = 0; i < shape->rank; i++) {
        const bool open = signature.count == extents.count &&
                          cornu__lite_integer(&signature, (size_t)i) == -1;
        shape->extent[i] = open ? CORNU_NONE : cornu__lite_integer(&extents, (size_t)i);
        if (!open && shape->extent[i] < 0)
            return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\" has an extent of %lld", name,
                               (long long)shape->extent[i]);
    }
    return CORNU_OK;
}

/* The bytes of the tensor's buffer; none for a tensor that is computed. */
static CornuStatus read_buffer(CornuLiteReader *reader, const CornuFlatTable *table,
                               const char *name, CornuFlatVector *data)
{
    const uint64_t buffer = cornu__flat_bits(&reader->from, table, 2, 4, 0);
    *data = (CornuFlatVector){ 0 };
    if (cornu__flat_bits(&reader->from, table, 10, 4, 0))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" has its data in another file",
                           name);
    if (buffer == 0) return CORNU_OK;
    if (buffer >= reader->buffers.count)
        return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\" has buffer %llu of %zu", name,
                           (unsigned long long)buffer, reader->buffers.count);
    const CornuFlatTable held = cornu__flat_element(&reader->from, &reader->buffers,
                                                    (size_t)buffer);
    *data = cornu__flat_vector_at(&reader->from, &held, 0, 1);
    if (cornu__flat_bits(&reader->from, &held, 1, 8, 0) > 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" has its data after the model, "
                           "as in files of over 2 GiB", name);
    return CORNU_OK;
}

/* What the tensor holds in the graph: numbers of 4 bits are kept in 8, those of 64 in 32. */
static CornuLiteDtype dtype_of(int type)
{
    return type == F64 ? CORNU_LITE_F32 : type == I4 ? CORNU_LITE_I8 : (CornuLiteDtype)type;
}

static const char *name_of(int type)
{
    static const char *const names[] = {
        "FLOAT32", "FLOAT16", "INT32", "UINT8", "INT64", "STRING", "BOOL", "INT16", "COMPLEX64",
        "INT8", "FLOAT64", "COMPLEX128", "UINT64", "RESOURCE", "VARIANT", "UINT32", "UINT16",
        "INT4", "BFLOAT16",
    };
    return type >= 0 && type < (int)(sizeof names / sizeof *names) ? names[type] : "unknown";
}

/* The elements as the graph has them. */
static void convert(int type, const CornuFlatVector *data, void *to, size_t count)
{
    for (size_t i = 0; i < count && type == F64; i++) {
        double value;
        memcpy(&value, data->bytes + 8 * i, sizeof value);
        ((float *)to)[i] = (float)value;
    }
    for (size_t i = 0; i < count && type == I4; i++) {   /* the low half comes first */
        const int half = data->bytes[i / 2] >> (i % 2 ? 4 : 0) & 15;
        ((int8_t *)to)[i] = (int8_t)(half < 8 ? half : half - 16);
    }
    if (type != F64 && type != I4) memcpy(to, data->bytes, data->count);
}

/* Of a constant, which must have all the bytes that its shape needs; the product is checked. */
static CornuStatus check_data(const CornuLiteTensor *tensor, int type, const CornuFlatVector *data,
                              size_t *elements)
{
    const size_t size = type == F64 ? 8 : cornu__lite_dtype_size(tensor->dtype);
    size_t       count = 1, bytes;
    CornuText    text;
    for (int i = 0; i < tensor->shape.rank; i++) {
        const int64_t extent = tensor->shape.extent[i];
        if (extent < 0)
            return cornu__fail(CORNU_ERR_FORMAT, "the constant \"%s\" has an unknown extent",
                               tensor->name);
        if (extent > 0 && count > 2 * data->count / (size_t)extent) count = 2 * data->count + 1;
        else count *= (size_t)extent;
    }
    bytes = type == I4 ? (count + 1) / 2 : count * size;
    *elements = count;
    if (count <= 2 * data->count && bytes == data->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "the constant \"%s\" has %zu bytes, expected those of %s "
                       "%s", tensor->name, data->count, name_of(type),
                       cornu_shape_print(&text, tensor->shape));
}

/* Zero is a number of the tensor. */
static bool is_zero_point(CornuLiteDtype dtype, int64_t zero)
{
    switch (dtype) {
    case CORNU_LITE_I8: return zero >= INT8_MIN && zero <= INT8_MAX;
    case CORNU_LITE_U8: return zero >= 0 && zero <= UINT8_MAX;
    default:            return zero == 0;
    }
}

/* Floats have none, and some converters write zeros for integers that are not quantized. */
static bool has_scales(CornuLiteDtype dtype, const CornuFlatVector *scales)
{
    bool any = false;
    for (size_t i = 0; i < scales->count; i++) {
        float scale;
        memcpy(&scale, scales->bytes + i * sizeof scale, sizeof scale);
        any |= scale != 0.0f;
    }
    return any && dtype != CORNU_LITE_F32 && dtype != CORNU_LITE_F16 && dtype != CORNU_LITE_BOOL;
}

static CornuStatus read_scales(CornuLiteReader *reader, const CornuFlatTable *table, int tensor)
{
    CornuFlat            *from = &reader->from;
    const CornuFlatTable  held = cornu__flat_table_at(from, table, 4);
    const CornuFlatVector scales = cornu__flat_vector_at(from, &held, 2, sizeof(float));
    const CornuFlatVector zeros = cornu__flat_vector_at(from, &held, 3, sizeof(int64_t));
    const int32_t         axis = cornu__flat_i32(from, &held, 6, 0);
    const CornuLiteTensor made = reader->graph->tensors[tensor];
    if (cornu__flat_bits(from, &held, 4, 1, 0))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is quantized in blocks, or in "
                           "a custom way", made.name);
    if (!has_scales(made.dtype, &scales)) return CORNU_OK;
    const bool fits = scales.count == 1 ||
        (axis >= 0 && axis < made.shape.rank && made.shape.extent[axis] == (int64_t)scales.count);
    if (!fits || (zeros.count && zeros.count != scales.count))
        return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\" has %zu scales along axis %d, and "
                           "%zu zero points", made.name, scales.count, (int)axis, zeros.count);
    CORNU__TRY(cornu__lite_take(reader, scales.count * (sizeof(float) + sizeof(int64_t))));
    cornu__lite_set_scales(reader->graph, tensor, NULL, NULL, (int)scales.count, axis);
    CORNU__TRY(reader->graph->status);
    const CornuLiteQuantization *own = &reader->graph->tensors[tensor].quantization;
    memcpy(own->scales, scales.bytes, scales.count * sizeof(float));
    if (zeros.count) memcpy(own->zero_points, zeros.bytes, zeros.count * sizeof(int64_t));
    for (size_t i = 0; i < scales.count; i++)
        if (!(own->scales[i] >= 0.0f) || isinf(own->scales[i]) ||
            !is_zero_point(made.dtype, own->zero_points[i]))
            return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\", %s, has a scale of %g and a "
                               "zero point of %lld", made.name, cornu__lite_dtype_name(made.dtype),
                               (double)own->scales[i], (long long)own->zero_points[i]);
    return CORNU_OK;
}

static CornuStatus read_data(CornuLiteReader *reader, const CornuFlatTable *table, int type,
                             const CornuFlatVector *data, CornuLiteTensor *tensor)
{
    const CornuFlatTable sparsity = cornu__flat_table_at(&reader->from, table, 6);
    size_t               count = 0;
    if (!data->count) return CORNU_OK;
    if (sparsity.at) {
        if (dtype_of(type) != (CornuLiteDtype)type)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is sparse, of %s",
                               tensor->name, name_of(type));
        CORNU__TRY(cornu__lite_densify(reader, &sparsity, tensor, data, &tensor->data));
        tensor->bytes = (size_t)cornu__lite_count(tensor->shape, 1) *
                        cornu__lite_dtype_size(tensor->dtype);
        return CORNU_OK;
    }
    CORNU__TRY(check_data(tensor, type, data, &count));
    tensor->bytes = count * cornu__lite_dtype_size(tensor->dtype);
    CORNU__TRY(cornu__lite_take(reader, tensor->bytes));
    if (!(tensor->data = cornu__allocate(tensor->bytes, 1))) return CORNU_ERR_MEMORY;
    convert(type, data, tensor->data, count);
    return CORNU_OK;
}

CornuStatus cornu__lite_read_tensor(CornuLiteReader *reader, const CornuFlatTable *table,
                                    int *number)
{
    CornuFlat      *from = &reader->from;
    CornuLiteGraph *graph = reader->graph;
    const int       type = (int)(int8_t)cornu__flat_bits(from, table, 1, 1, 0);
    CornuLiteText   text;
    CornuShape      shape;
    CornuFlatVector data;
    const char     *name = cornu__lite_text(reader, &text, table, 3, "");
    *number = CORNU_LITE_UNREAD;
    if (type == RESOURCE) return CORNU_OK;
    if (!cornu__lite_dtype_size(dtype_of(type)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is of the type %s, %d, which "
                           "is not available", name, name_of(type), type);
    CORNU__TRY(read_shape(reader, table, name, &shape));
    CORNU__TRY(read_buffer(reader, table, name, &data));
    CORNU__TRY(cornu__lite_take(reader, sizeof(CornuLiteTensor) + strlen(name)));
    const int made = cornu__lite_add_tensor(graph, name, dtype_of(type), shape);
    CORNU__TRY(graph->status);
    graph->tensors[made].variable = cornu__flat_bits(from, table, 5, 1, 0) != 0;
    CORNU__TRY(read_data(reader, table, type, &data, &graph->tensors[made]));
    *number = made;
    return read_scales(reader, table, made);
}
