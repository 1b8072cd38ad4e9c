/* Operations on axes: diagonals, parts and joints by Keras' older names, grids, turns. */
#include "operation_internal.h"

#include <string.h>

/* ---- Joining and splitting ---- */

static CornuTensor *joined(const CornuOperands *o, int axis, int least)
{
    CornuTensor *x[CORNU_MAX_LAYER_TENSORS];
    const int    count = cornu__operand_list(o, "xs", 0, x);
    for (int i = 0; i < count; i++) {
        while (x[i] && cornu_tensor_shape(x[i]).rank < least)
            x[i] = cornu__add_axis(x[i], cornu_tensor_shape(x[i]).rank == 1 ? 0
                                         : cornu_tensor_shape(x[i]).rank);
        if (!x[i]) return NULL;
    }
    return count < 1 ? NULL : cornu_op_concat(x, count, axis);
}

CornuTensor *cornu__operation_dstack(const CornuOperands *o) { return joined(o, 2, 3); }
CornuTensor *cornu__operation_vstack(const CornuOperands *o) { return joined(o, 0, 2); }

/* Without an axis of all elements in a row. */
CornuTensor *cornu__operation_append(const CornuOperands *o)
{
    CornuTensor *x[2];
    if (!cornu__operand_pair(o, false, &x[0], &x[1])) return NULL;
    if (!cornu__argument(o, "axis", -1)) {
        for (int i = 0; i < 2; i++)
            if (!(x[i] = cornu_op_reshape(x[i], cornu_shape(CORNU_NONE)))) return NULL;
        return cornu_op_concat(x, 2, 0);
    }
    const int axis = cornu__argument_axis(o, "axis", cornu_tensor_shape(x[0]).rank, 0);
    return axis < 0 ? NULL : cornu_op_concat(x, 2, axis);
}

/* Parts of nearly the same extent: the first n % parts have one more. */
CornuTensor *cornu__operation_array_split(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const json_t *given = cornu__argument(o, "indices_or_sections", 1);
    if (!x) return NULL;
    if (!json_is_integer(given)) return cornu__operation_split(o);
    const int axis = cornu__argument_axis(o, "axis", cornu_tensor_shape(x).rank, 0);
    if (axis < 0) return NULL;
    const int64_t n = cornu_tensor_shape(x).extent[axis], parts = json_integer_value(given);
    if (parts < 1 || parts > n || parts != cornu__operation_outputs(o->layer))
        return cornu__operation_refuse(o, "its axis cannot be split in these parts");
    for (int64_t i = 0, at = 0; i < parts; i++) {
        const int64_t end = at + n / parts + (i < n % parts);
        if (!(o->out[i] = cornu__slice_axis(x, axis, at, end))) return NULL;
        at = end;
    }
    return o->out[0];
}

int cornu__operation_array_split_count(const CornuOperands *o, CornuShape x)
{
    return cornu__operation_split_count(o, x);
}

/* ---- Orders and shapes ---- */

CornuTensor *cornu__operation_ravel(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    return x ? cornu_op_reshape(x, cornu_shape(CORNU_NONE)) : NULL;
}

CornuTensor *cornu__operation_fliplr(const CornuOperands *o)
{
    return cornu_op_flip(cornu__operand_x(o), 1);
}

CornuTensor *cornu__operation_flipud(const CornuOperands *o)
{
    return cornu_op_flip(cornu__operand_x(o), 0);
}

/* k quarter turns from the first axis towards the second one. */
CornuTensor *cornu__operation_rot90(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_tensor(o, "array", 0);
    const int64_t k = ((cornu__argument_integer(o, "k", 1) % 4) + 4) % 4;
    int64_t       axes[CORNU_MAX_RANK] = { 0, 1 };
    const int     given = cornu__argument_list(o, "axes", -1, axes);
    if (!x || given == -2) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    int       order[CORNU_MAX_RANK];
    for (int i = 0; i < 2; i++) axes[i] += axes[i] < 0 ? rank : 0;
    if ((given >= 0 && given != 2) || axes[0] == axes[1] || axes[0] < 0 || axes[1] < 0 ||
        axes[0] >= rank || axes[1] >= rank)
        return cornu__operation_refuse(o, "expected two axes that differ");
    for (int i = 0; i < rank; i++)
        order[i] = (int)(i == axes[0] ? axes[1] : i == axes[1] ? axes[0] : i);
    if (k == 2) return cornu_op_flip(cornu_op_flip(x, (int)axes[0]), (int)axes[1]);
    if (k == 1) return cornu_op_transpose(cornu_op_flip(x, (int)axes[1]), order);
    return k ? cornu_op_flip(cornu_op_transpose(x, order), (int)axes[1]) : x;
}

/* Vectors along an axis each, all of the shape of the grid; of "xy" the first two axes change
 * places. */
CornuTensor *cornu__operation_meshgrid(const CornuOperands *o)
{
    const int  count = (int)json_array_size(o->args);
    const bool swap = !strcmp(cornu__argument_text(o, "indexing", "xy"), "xy") && count > 1;
    CornuTensor *x[CORNU_MAX_RANK];
    CornuShape   grid = { .rank = count };
    if (count > CORNU_MAX_RANK) return cornu__operation_refuse(o, "has too many axes");
    for (int i = 0; i < count; i++) {
        const int axis = swap && i < 2 ? 1 - i : i;
        CornuShape along = { .rank = count };
        if (!(x[i] = cornu__operand_tensor(o, "", i))) return NULL;
        grid.extent[axis] = cornu_shape_count(cornu_tensor_shape(x[i]));
        for (int k = 0; k < count; k++) along.extent[k] = k == axis ? grid.extent[axis] : 1;
        if (!(x[i] = cornu_op_reshape(x[i], along))) return NULL;
    }
    for (int i = 0; i < count; i++)
        if (!(o->out[i] = cornu_op_broadcast(x[i], grid))) return NULL;
    return o->out[0];
}

int cornu__operation_meshgrid_count(const CornuOperands *o, CornuShape x)
{
    (void)x;
    return (int)json_array_size(o->args);
}

/* The places along each axis of a tensor of the shape, of indices of its elements in a row. */
CornuTensor *cornu__operation_unravel_index(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_tensor(o, "indices", 0);
    int64_t      shape[CORNU_MAX_RANK];
    const int    rank = cornu__argument_list(o, "shape", -1, shape);
    if (!x || rank < 1) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    x = cornu_op_convert(x, CORNU_F64);
    for (int i = rank - 1; i >= 0 && x; i--) {
        CornuTensor *n = cornu__like(x, (double)shape[i]);
        CornuTensor *rest = cornu_op_floor(cornu_op_divide(x, n));
        o->out[i] = cornu_op_convert(cornu_op_subtract(x, cornu_op_multiply(rest, n)), dtype);
        x = rest;
    }
    return o->out[0];
}

int cornu__operation_unravel_index_count(const CornuOperands *o, CornuShape x)
{
    int64_t shape[CORNU_MAX_RANK];
    (void)x;
    return cornu__argument_list(o, "shape", -1, shape);
}

/* ---- Diagonals ---- */

/* x (…, M, N), of the two last axes: the elements (i, i + offset), along a new last axis. */
static CornuTensor *diagonal_of(const CornuOperands *o, CornuTensor *x, int64_t offset)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        rows = shape.rank - 2, columns = shape.rank - 1;
    const int64_t    row = offset < 0 ? -offset : 0, column = offset > 0 ? offset : 0;
    int64_t          n = shape.extent[rows] - row;
    if (shape.extent[columns] - column < n) n = shape.extent[columns] - column;
    if (n < 1) return cornu__operation_refuse(o, "its diagonal has no elements");
    x = cornu__slice_axis(x, rows, row, row + n);
    x = cornu__slice_axis(x, columns, column, column + n);
    if (!x) return NULL;
    const CornuType square = cornu_type(CORNU_I32, n, n);
    CornuTensor    *on = cornu_op_compare(cornu_op_iota(o->graph, square, 0), CORNU_EQUAL,
                                          cornu_op_iota(o->graph, square, 1));
    const bool flags = cornu_tensor_type(x).dtype == CORNU_BOOL;
    if (flags) x = cornu_op_convert(x, CORNU_I32);
    x = cornu_op_reduce_sum(cornu_op_select(on, x, cornu__like(x, 0.0)), INT64_C(1) << rows, false);
    return flags ? cornu_op_convert(x, CORNU_BOOL) : x;
}

/* x with axis1 and axis2, by default the first two, as the last ones. */
static CornuTensor *matrices(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    if (rank < 2) return cornu__operation_refuse(o, "expected two axes or more");
    const int a = cornu__argument_axis(o, "axis1", rank, 0);
    const int b = cornu__argument_axis(o, "axis2", rank, 1);
    if (a < 0 || b < 0) return NULL;
    if (a == b) return cornu__operation_refuse(o, "expected two axes that differ");
    x = cornu__move_axis(x, a, rank - 1);
    return cornu__move_axis(x, b > a ? b - 1 : b, rank - 1);
}

CornuTensor *cornu__operation_diagonal(const CornuOperands *o)
{
    return diagonal_of(o, matrices(o), cornu__argument_integer(o, "offset", 0));
}

CornuTensor *cornu__operation_trace(const CornuOperands *o)
{
    CornuTensor *y = diagonal_of(o, matrices(o), cornu__argument_integer(o, "offset", 0));
    if (!y) return NULL;
    if (cornu_tensor_type(y).dtype == CORNU_BOOL) y = cornu_op_convert(y, CORNU_I32);
    return cornu_op_reduce_sum(y, INT64_C(1) << (cornu_tensor_shape(y).rank - 1), false);
}

/* A matrix with the vector x on diagonal k, zeros elsewhere. */
static CornuTensor *with_diagonal(const CornuOperands *o, CornuTensor *x, int64_t k)
{
    if (!x) return NULL;
    const int64_t   n = cornu_tensor_shape(x).extent[0], size = n + (k < 0 ? -k : k);
    const CornuType square = cornu_type(CORNU_I32, n, n);
    CornuTensor    *on = cornu_op_compare(cornu_op_iota(o->graph, square, 0), CORNU_EQUAL,
                                          cornu_op_iota(o->graph, square, 1));
    CornuTensor  *y = cornu_op_select(on, cornu__add_axis(x, 1), cornu__like(x, 0.0));
    const int64_t low[2] = { k < 0 ? -k : 0, k > 0 ? k : 0 };
    const int64_t high[2] = { size - n - low[0], size - n - low[1] };
    return k ? cornu_op_pad(y, low, high, 0.0) : y;
}

CornuTensor *cornu__operation_diag(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const int64_t k = cornu__argument_integer(o, "k", 0);
    const int     rank = x ? cornu_tensor_shape(x).rank : 0;
    if (rank == 1) return with_diagonal(o, x, k);
    return x && rank != 2 ? cornu__operation_refuse(o, "expected a vector or a matrix")
                          : diagonal_of(o, x, k);
}

CornuTensor *cornu__operation_diagflat(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    x = x ? cornu_op_reshape(x, cornu_shape(CORNU_NONE)) : NULL;
    return with_diagonal(o, x, cornu__argument_integer(o, "k", 0));
}

/* Powers of the elements of a vector, from the highest to 0 unless increasing. */
CornuTensor *cornu__operation_vander(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    const int64_t n = cornu__argument_integer(o, "N", cornu_tensor_shape(x).extent[0]);
    const bool    increasing = cornu__argument_flag(o, "increasing");
    if (n < 1 || n > CORNU_MAX_LAYER_TENSORS || cornu_tensor_shape(x).rank != 1)
        return cornu__operation_refuse(o, "expected a vector, and at most 64 powers");
    CornuTensor *powers[CORNU_MAX_LAYER_TENSORS], *power = cornu__like(x, 1.0);
    for (int64_t i = 0; i < n; i++) {
        powers[increasing ? i : n - 1 - i] = cornu__add_axis(power, 1);
        power = cornu_op_multiply(power, x);
    }
    return power ? cornu_op_concat(powers, (int)n, 1) : NULL;
}

/* ---- Parts ---- */

/* Windows of so many elements along the last axis, each `sequence_stride` after the other. */
CornuTensor *cornu__operation_extract_sequences(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const int64_t length = cornu__argument_integer(o, "sequence_length", 1);
    const int64_t stride = cornu__argument_integer(o, "sequence_stride", 1);
    if (!x) return NULL;
    const int     last = cornu_tensor_shape(x).rank - 1;
    const int64_t n = cornu_tensor_shape(x).extent[last];
    if (length < 1 || stride < 1 || length > n)
        return cornu__operation_refuse(o, "expected sequences no longer than the last axis");
    const int64_t count = (n - length) / stride + 1;
    CornuTensor  *parts[CORNU_MAX_LAYER_TENSORS];
    if (count <= CORNU_MAX_LAYER_TENSORS) {
        for (int64_t i = 0; i < count; i++)
            parts[i] = cornu__add_axis(cornu__slice_axis(x, last, i * stride, i * stride + length),
                                       last);
        return cornu_op_concat(parts, (int)count, last);
    }
    CornuTensor **each = cornu__allocate((size_t)length, sizeof *each), *y = x;
    if (!each) return cornu__null();
    for (int64_t i = 0; i < length && y; i++)
        y = each[i] = cornu__add_axis(cornu__strided(x, last, i, count, stride), last + 1);
    y = y ? cornu_op_concat(each, (int)length, last + 1) : NULL;
    cornu__release(each);
    return y;
}
