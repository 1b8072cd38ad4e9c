/* Operations that read and write parts at places which the model computes. */
#include "operation_internal.h"

#include <string.h>

/* ---- Blocks ---- */

/* The start of a block along each axis, as numbers, if all are; clamped, so that the block fits. */
static bool fixed_starts(const CornuOperands *o, const char *name, CornuShape x, CornuShape block,
                         int64_t *starts)
{
    const json_t *given = cornu__argument(o, name, 1);
    const json_t *value = json_object_get(json_object_get(given, "config"), "value");
    if (value) given = value;
    if (!json_is_array(given) || json_array_size(given) != (size_t)x.rank) return false;
    for (int i = 0; i < x.rank; i++) {
        const json_t *number = json_array_get(given, (size_t)i);
        if (!json_is_integer(number)) return false;
        const int64_t at = json_integer_value(number), end = x.extent[i] - block.extent[i];
        starts[i] = at < 0 ? 0 : at > end ? end : at;
    }
    return true;
}

/* The starts (axes) as a tensor, of which start i is a scalar; list elements may be tensors. */
static CornuTensor *start_of(const CornuOperands *o, const char *name, int axis, int64_t most)
{
    const json_t *given = cornu__argument(o, name, 1);
    CornuTensor  *start;
    if (json_is_array(given)) {
        CornuTensor *all[CORNU_MAX_LAYER_TENSORS];
        const int    count = cornu__operand_list(o, name, 1, all);
        if (axis >= count)
            return count < 0 ? NULL : cornu__operation_refuse(o, "expected a start for each axis");
        start = all[axis];
    } else {
        CornuTensor *all = cornu__operand_tensor(o, name, 1);
        if (!all) return NULL;
        if (cornu_tensor_shape(all).rank != 1 || axis >= cornu_tensor_shape(all).extent[0])
            return cornu__operation_refuse(o, "expected a start for each axis");
        start = cornu__slice_axis(all, 0, axis, axis + 1);
    }
    start = cornu_op_reshape(cornu_op_convert(start, CORNU_I32), cornu_shape(1));
    start = start ? cornu_op_maximum(start, cornu__like(start, 0.0)) : NULL;
    return start ? cornu_op_minimum(start, cornu__like(start, (double)most)) : NULL;
}

/* Rows start + 0, 1, … of an axis, by lookup. */
static CornuTensor *rows_from(CornuTensor *x, int axis, CornuTensor *start, int64_t count)
{
    if (!x || !start) return NULL;
    const int last = cornu_tensor_shape(x).rank - 1;
    x = cornu__move_axis(x, axis, 0);
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x), flat = cornu_shape(shape.extent[0], 1);
    for (int i = 1; i <= last; i++) flat.extent[1] *= shape.extent[i];
    CornuTensor *at = cornu_op_add(start, cornu_op_iota(cornu_tensor_graph(x),
                                                        cornu_type(CORNU_I32, count), 0));
    shape.extent[0] = count;
    x = cornu_op_reshape(cornu_op_gather(cornu_op_reshape(x, flat), at), shape);
    return cornu__move_axis(x, 0, axis);
}

CornuTensor *cornu__operation_slice(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_tensor(o, "inputs", 0);
    int64_t      extents[CORNU_MAX_RANK], starts[CORNU_MAX_RANK];
    const int    rank = cornu__argument_list(o, "shape", -1, extents);
    if (!x || rank == -2) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    if (rank != shape.rank) return cornu__operation_refuse(o, "expected a shape of all axes");
    CornuShape block = cornu_shape_from(rank, extents);
    for (int i = 0; i < rank; i++) {
        if (block.extent[i] == -1) block.extent[i] = shape.extent[i];
        if (block.extent[i] < 1 || block.extent[i] > shape.extent[i])
            return cornu__operation_refuse(o, "its shape exceeds that of the tensor");
    }
    if (fixed_starts(o, "start_indices", shape, block, starts))
        return cornu_op_slice(x, starts, block.extent);
    for (int i = 0; i < rank && x; i++)
        if (block.extent[i] < shape.extent[i])
            x = rows_from(x, i, start_of(o, "start_indices", i, shape.extent[i] - block.extent[i]),
                          block.extent[i]);
    return x;
}

/* Whether an element of x is in the block, and the block's elements at their places, for starts
 * that are computed: the rows of axis i of the padded block are taken from -start on. */
static CornuTensor *placed(const CornuOperands *o, CornuTensor *block, CornuShape x)
{
    for (int i = 0; i < x.rank && block; i++) {
        const int64_t n = cornu_tensor_shape(block).extent[i], room = x.extent[i] - n;
        if (room == 0) continue;
        CornuTensor *start = start_of(o, "start_indices", i, room);
        start = start ? cornu_op_shift(cornu_op_negative(start), (double)room) : NULL;
        block = rows_from(cornu__pad_axis(block, i, room, room, 0.0), i, start, x.extent[i]);
    }
    return block;
}

CornuTensor *cornu__operation_slice_update(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_tensor(o, "inputs", 0);
    CornuTensor *block = x ? cornu__operand_tensor(o, "updates", 2) : NULL;
    int64_t      starts[CORNU_MAX_RANK], high[CORNU_MAX_RANK];
    if (!block) return NULL;
    const CornuType  type = cornu_tensor_type(x);
    const CornuShape shape = type.shape, part = cornu_tensor_shape(block);
    bool             fits = part.rank == shape.rank;
    for (int i = 0; i < shape.rank && fits; i++) fits = part.extent[i] <= shape.extent[i];
    if (!fits) return cornu__operation_refuse(o, "the updates are larger than the tensor");
    if (type.dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    block = cornu_op_convert(block, cornu_tensor_type(x).dtype);
    CornuTensor *inside = cornu__like(block, 1.0);
    if (fixed_starts(o, "start_indices", shape, part, starts)) {
        for (int i = 0; i < shape.rank; i++)
            high[i] = shape.extent[i] - part.extent[i] - starts[i];
        block = cornu_op_pad(block, starts, high, 0.0);
        inside = cornu_op_pad(inside, starts, high, 0.0);
    } else {
        block = placed(o, block, shape);
        inside = placed(o, inside, shape);
    }
    inside = cornu_op_convert(inside, CORNU_BOOL);
    return cornu_op_convert(cornu_op_select(inside, block, x), type.dtype);
}

/* ---- Single elements ---- */

/* Indices (N, …, axes) of rows of a tensor of this shape, as the numbers (N) of its rows in a table
 * whose rows are what is left after these axes. */
static CornuTensor *row_numbers(const CornuOperands *o, CornuTensor *indices, CornuShape shape,
                                int64_t *count, int64_t *rows, int64_t *width)
{
    if (!indices) return NULL;
    const CornuShape given = cornu_tensor_shape(indices);
    const int        last = given.rank - 1;
    if (given.rank < 1 || given.extent[last] > shape.rank)
        return cornu__operation_refuse(o, "its last axis has more indices than the tensor axes");
    const int    axes = (int)given.extent[last];
    CornuTensor *number = NULL;
    *count = *rows = *width = 1;
    for (int i = 0; i < last; i++) *count *= given.extent[i];
    for (int i = 0; i < shape.rank; i++) *(i < axes ? rows : width) *= shape.extent[i];
    indices = cornu_op_reshape(cornu_op_convert(indices, CORNU_I32), cornu_shape(*count, axes));
    for (int i = 0; i < axes && indices; i++) {
        CornuTensor *at = cornu_op_reshape(cornu__slice_axis(indices, 1, i, i + 1),
                                           cornu_shape(*count));
        at = at ? cornu_op_select(cornu_op_compare(at, CORNU_LESS, cornu__like(at, 0.0)),
                                  cornu_op_shift(at, (double)shape.extent[i]), at) : NULL;
        number = number ? cornu_op_add(cornu_op_scale(number, (double)shape.extent[i]), at) : at;
    }
    return number;
}

/* The sum of the values (N, width) of each of the rows; floats beyond f32 and whole numbers as
 * products, in f64. */
static CornuTensor *summed(CornuTensor *values, CornuTensor *at, int64_t rows)
{
    if (!values || !at) return NULL;
    const CornuDtype dtype = cornu_tensor_type(values).dtype;
    if (cornu_dtype_is_float(dtype) && dtype != CORNU_F64)
        return cornu_op_convert(cornu_op_segment_sum(values, at, rows), dtype);
    CornuTensor *own = cornu_op_compare(
        cornu_op_iota(cornu_tensor_graph(at), cornu_type(CORNU_I32, rows, 1), 0), CORNU_EQUAL, at);
    return cornu_op_convert(cornu_op_matmul(cornu_op_convert(own, CORNU_F64),
                                            cornu_op_convert(values, CORNU_F64)), dtype);
}

/* Zeros with the values added at the indices. */
CornuTensor *cornu__operation_scatter(const CornuOperands *o)
{
    CornuTensor *indices = cornu__operand_tensor(o, "indices", 0);
    CornuTensor *values = indices ? cornu__operand_tensor(o, "values", 1) : NULL;
    int64_t      extents[CORNU_MAX_RANK], count, rows, width;
    const int    rank = cornu__argument_list(o, "shape", -1, extents);
    if (!values || rank < 1) return NULL;
    const CornuShape shape = cornu_shape_from(rank, extents);
    CornuTensor     *at = row_numbers(o, indices, shape, &count, &rows, &width);
    if (!at) return NULL;
    if (cornu_type_count(cornu_tensor_type(values)) != count * width)
        return cornu__operation_refuse(o, "expected a value for each index");
    values = cornu_op_reshape(values, cornu_shape(count, width));
    return cornu_op_reshape(summed(values, at, rows), shape);
}

/* The place of the last update of each row, -1 without one: of equal indices the last one holds. */
static CornuTensor *last_of(CornuTensor *at, int64_t count, int64_t rows)
{
    CornuGraph  *graph = cornu_tensor_graph(at);
    CornuTensor *own = cornu_op_compare(cornu_op_iota(graph, cornu_type(CORNU_I32, rows, 1), 0),
                                        CORNU_EQUAL, at);
    CornuTensor *order = cornu_op_iota(graph, cornu_type(CORNU_I32, rows, count), 1);
    return cornu_op_reduce_max(cornu_op_select(own, order, cornu__like(order, -1.0)), 1 << 1,
                               false);
}

/* The rows combined with the updates, one after the other where several have one index. */
static CornuTensor *combined(const CornuOperands *o, CornuTensor *x, CornuTensor *updates,
                             CornuTensor *at, const char *how)
{
    const int64_t rows = cornu_tensor_shape(x).extent[0], N = cornu_tensor_shape(at).extent[0];
    if (how && !strcmp(how, "add")) return cornu_op_add(x, summed(updates, at, rows));
    if (!how) {
        CornuTensor *last = last_of(at, N, rows);
        CornuTensor *found = last ? cornu_op_compare(last, CORNU_GREATER_EQUAL,
                                                     cornu__like(last, 0.0)) : NULL;
        CornuTensor *taken = found ? cornu_op_gather(updates, cornu_op_maximum(
                                                         last, cornu__like(last, 0.0))) : NULL;
        return taken ? cornu_op_select(cornu__add_axis(found, 1), taken, x) : NULL;
    }
    CornuTensor *own = cornu__add_axis(cornu_op_compare(
        cornu_op_iota(o->graph, cornu_type(CORNU_I32, rows, 1), 0), CORNU_EQUAL, at), 2);
    const bool multiplies = !strcmp(how, "mul"), least = !strcmp(how, "min");
    if (!multiplies && !least && strcmp(how, "max"))
        return cornu__operation_refuse(o, "reduction is available as add, max, min and mul");
    CornuTensor *other = multiplies ? cornu__like(x, 1.0) : x;
    CornuTensor *each = cornu_op_select(own, updates, cornu__add_axis(other, 1));
    if (multiplies) return cornu_op_multiply(x, cornu__drop_axis(cornu__product(each, 1), 1));
    return least ? cornu_op_minimum(x, cornu__reduce_min(each, 1 << 1, false))
                 : cornu_op_maximum(x, cornu_op_reduce_max(each, 1 << 1, false));
}

CornuTensor *cornu__operation_scatter_update(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_tensor(o, "inputs", 0);
    CornuTensor *indices = x ? cornu__operand_tensor(o, "indices", 1) : NULL;
    CornuTensor *updates = indices ? cornu__operand_tensor(o, "updates", 2) : NULL;
    const char  *how = cornu__argument_text(o, "reduction", NULL);
    int64_t      count, rows, width;
    if (!updates) return NULL;
    const CornuType type = cornu_tensor_type(x);
    CornuTensor    *at = row_numbers(o, indices, type.shape, &count, &rows, &width);
    if (!at) return NULL;
    if (cornu_type_count(cornu_tensor_type(updates)) != count * width)
        return cornu__operation_refuse(o, "expected an update for each index");
    if (type.dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    updates = cornu_op_convert(updates, cornu_tensor_type(x).dtype);
    updates = cornu_op_reshape(updates, cornu_shape(count, width));
    x = cornu_op_reshape(x, cornu_shape(rows, width));
    if (!x || !updates) return NULL;
    return cornu_op_convert(cornu_op_reshape(combined(o, x, updates, at, how), type.shape),
                            type.dtype);
}
