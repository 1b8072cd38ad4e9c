/* Operations that move elements: axes, shapes, joining and splitting. */
#include "operation_internal.h"

#include <string.h>

/* ---- Shared by rules ---- */

CornuTensor *cornu__broadcast_to(CornuTensor *x, CornuShape shape)
{
    if (!x) return NULL;
    while (x && cornu_tensor_shape(x).rank < shape.rank) x = cornu__add_axis(x, 0);
    return cornu_op_broadcast(x, shape);
}

/* ---- Shapes ---- */

/* Something of x in another shape, in a trace of shapes where two unknown extents, of x and of
 * another operand, have one number though they are apart. */
static CornuTensor *of_other_shape(CornuTensor *x, CornuShape to)
{
    const int64_t all = (INT64_C(1) << cornu_tensor_shape(x).rank) - 1;
    CornuTensor  *sum = cornu_op_reduce_sum(cornu_op_convert(x, CORNU_F32), all, false);
    return cornu_op_convert(cornu__broadcast_to(sum, to), cornu_tensor_type(x).dtype);
}

/* One extent may be -1, which is what is left. So may the first one beside another: it stays. */
CornuTensor *cornu__operation_reshape(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      extents[CORNU_MAX_RANK];
    const int    count = cornu__argument_list(o, "newshape", 1, extents);
    if (!x || count < 0) return NULL;
    const CornuShape from = cornu_tensor_shape(x);
    const int64_t    all = cornu_shape_count(from);
    CornuShape       to = { .rank = count };
    int64_t          known = 1;
    int              open = 0;
    for (int i = 1; i < count; i++) open += extents[i] == -1;
    for (int i = 0; i < count; i++) {
        to.extent[i] = i == 0 && extents[i] == -1 && open && from.rank > 0 ? from.extent[0]
                                                                           : extents[i];
        known *= to.extent[i] == -1 ? 1 : to.extent[i];
    }
    for (int i = 0; i < count && known > 0; i++)
        if (to.extent[i] == -1) to.extent[i] = all / known;
    if (cornu_shape_count(to) != all && o->in_count > 1 && o->shapes_only)
        return of_other_shape(x, to);
    if (cornu_shape_count(to) != all || open > 1) {
        CornuText a, b;
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: %s cannot be reshaped to %s",
                                cornu_layer_name(o->layer), cornu_shape_print(&a, from),
                                cornu_shape_print(&b, to));
    }
    return cornu_op_reshape(x, to);
}

CornuTensor *cornu__operation_expand_dims(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      axes[CORNU_MAX_RANK];
    const int    count = cornu__argument_list(o, "axis", 1, axes);
    if (!x || count < 0) return NULL;
    const int rank = cornu_tensor_shape(x).rank + count;
    bool      added[2 * CORNU_MAX_RANK] = { false };
    for (int i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return cornu__operation_refuse(o, "its axis does not exist");
        added[axis] = true;
    }
    for (int axis = 0; axis < rank; axis++)
        if (added[axis]) x = cornu__add_axis(x, axis);
    return x;
}

/* Without axes all extents of 1 are dropped. */
CornuTensor *cornu__operation_squeeze(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const bool       given = cornu__argument(o, "axis", -1) != NULL;
    const int64_t    axes = given ? cornu__argument_axes(o, "axis", shape.rank) : 0;
    if (cornu_error_pending()) return NULL;
    for (int axis = shape.rank - 1; axis >= 0; axis--) {
        if (given ? !(axes >> axis & 1) : shape.extent[axis] != 1) continue;
        if (shape.extent[axis] != 1)
            return cornu__operation_refuse(o, "the extent of its axis is not 1");
        x = cornu__drop_axis(x, axis);
    }
    return x;
}

CornuTensor *cornu__operation_broadcast_to(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      extents[CORNU_MAX_RANK];
    const int    count = cornu__argument_list(o, "shape", 1, extents);
    if (!x || count < 0) return NULL;
    return cornu__broadcast_to(x, cornu_shape_from(count, extents));
}

/* ---- Orders of axes ---- */

CornuTensor *cornu__operation_transpose(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      given[CORNU_MAX_RANK];
    int          axes[CORNU_MAX_RANK];
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    const int count = cornu__argument_list(o, "axes", 1, given);
    if (count == -2) return NULL;
    for (int i = 0; i < rank; i++)
        axes[i] = count < 0 ? rank - 1 - i : (int)(given[i] < 0 ? given[i] + rank : given[i]);
    if (count >= 0 && count != rank)
        return cornu__operation_refuse(o, "expected a place for each axis");
    return cornu_op_transpose(x, axes);
}

CornuTensor *cornu__operation_swapaxes(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int          axes[CORNU_MAX_RANK];
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    const int a = cornu__argument_axis(o, "axis1", rank, 0);
    const int b = cornu__argument_axis(o, "axis2", rank, 0);
    if (a < 0 || b < 0) return NULL;
    for (int i = 0; i < rank; i++) axes[i] = i == a ? b : i == b ? a : i;
    return cornu_op_transpose(x, axes);
}

CornuTensor *cornu__operation_moveaxis(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      from[CORNU_MAX_RANK], to[CORNU_MAX_RANK];
    const int    count = cornu__argument_list(o, "source", -1, from);
    if (!x || count < 0 || cornu__argument_list(o, "destination", -1, to) != count)
        return cornu_error_pending() ? NULL : cornu__operation_refuse(o, "its axes do not match");
    const int rank = cornu_tensor_shape(x).rank;
    int       axes[CORNU_MAX_RANK], next = 0;
    bool      moved[CORNU_MAX_RANK] = { false }, filled[CORNU_MAX_RANK] = { false };
    for (int i = 0; i < count; i++) {
        const int64_t a = from[i] < 0 ? from[i] + rank : from[i];
        const int64_t b = to[i] < 0 ? to[i] + rank : to[i];
        if (a < 0 || a >= rank || b < 0 || b >= rank)
            return cornu__operation_refuse(o, "its axis does not exist");
        axes[b] = (int)a;
        moved[a] = filled[b] = true;
    }
    for (int i = 0; i < rank; i++) {
        if (filled[i]) continue;
        while (moved[next]) next++;
        axes[i] = next++;
    }
    return cornu_op_transpose(x, axes);
}

CornuTensor *cornu__operation_flip(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    const int     rank = cornu_tensor_shape(x).rank;
    const int64_t axes = cornu__argument_axes(o, "axis", rank);
    for (int axis = 0; axis < rank && axes; axis++)
        if (axes >> axis & 1) x = cornu_op_flip(x, axis);
    return axes ? x : NULL;
}

CornuTensor *cornu__operation_roll(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      shifts[CORNU_MAX_RANK], axes[CORNU_MAX_RANK];
    const int    count = cornu__argument_list(o, "shift", -1, shifts);
    if (!x || count < 0) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        axis_count = cornu__argument_list(o, "axis", -1, axes);
    if (axis_count < 0 || (count != 1 && count != axis_count))
        return cornu_error_pending() ? NULL
             : cornu__operation_refuse(o, "expected an axis for each shift");
    for (int i = 0; i < axis_count; i++) {
        const int axis = (int)(axes[i] < 0 ? axes[i] + shape.rank : axes[i]);
        if (axis < 0 || axis >= shape.rank)
            return cornu__operation_refuse(o, "its axis does not exist");
        const int64_t n = shape.extent[axis];
        const int64_t by = ((shifts[count == 1 ? 0 : i] % n) + n) % n;
        if (by == 0) continue;
        x = cornu_op_concat((CornuTensor *[]){ cornu__slice_axis(x, axis, n - by, n),
                                               cornu__slice_axis(x, axis, 0, n - by) }, 2, axis);
    }
    return x;
}

/* ---- Joining ---- */

CornuTensor *cornu__operation_concatenate(const CornuOperands *o)
{
    CornuTensor *x[CORNU_MAX_LAYER_TENSORS];
    const int    count = cornu__operand_list(o, "xs", 0, x);
    if (count < 1) return NULL;
    const int axis = cornu__argument_axis(o, "axis", cornu_tensor_shape(x[0]).rank, 0);
    return axis < 0 ? NULL : cornu_op_concat(x, count, axis);
}

CornuTensor *cornu__operation_stack(const CornuOperands *o)
{
    CornuTensor *x[CORNU_MAX_LAYER_TENSORS];
    const int    count = cornu__operand_list(o, "x", 0, x);
    if (count < 1) return NULL;
    const int axis = cornu__argument_axis(o, "axis", cornu_tensor_shape(x[0]).rank + 1, 0);
    if (axis < 0) return NULL;
    for (int i = 0; i < count; i++)
        if (!(x[i] = cornu__add_axis(x[i], axis))) return NULL;
    return cornu_op_concat(x, count, axis);
}

CornuTensor *cornu__operation_hstack(const CornuOperands *o)
{
    CornuTensor *x[CORNU_MAX_LAYER_TENSORS];
    const int    count = cornu__operand_list(o, "xs", 0, x);
    if (count < 1) return NULL;
    return cornu_op_concat(x, count, cornu_tensor_shape(x[0]).rank < 2 ? 0 : 1);
}

/* ---- Splitting ---- */

/* The place of each part along an axis of extent n: begin[i] to begin[i + 1]. The number of parts,
 * or 0. */
static int split_places(const CornuOperands *o, int64_t n, int64_t *begin)
{
    const json_t *given = cornu__argument(o, "indices_or_sections", 1);
    const int     most = CORNU_MAX_LAYER_TENSORS;
    begin[0] = 0;
    if (json_is_integer(given)) {
        const int64_t parts = json_integer_value(given);
        if (parts < 1 || parts > most || n % parts != 0) return 0;
        for (int64_t i = 0; i <= parts; i++) begin[i] = n / parts * i;
        return (int)parts;
    }
    const size_t places = json_array_size(given);
    if (!json_is_array(given) || places + 1 > (size_t)most) return 0;
    for (size_t i = 0; i <= places; i++) {
        int64_t end = i == places ? n : json_integer_value(json_array_get(given, i));
        if (end < 0) end += n;
        if (end > n) end = n;
        begin[i + 1] = end;
        if (end <= begin[i]) return 0;
    }
    return (int)places + 1;
}

CornuTensor *cornu__operation_split(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      begin[CORNU_MAX_LAYER_TENSORS + 1];
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        axis = cornu__argument_axis(o, "axis", shape.rank, 0);
    if (axis < 0) return NULL;
    const int parts = split_places(o, shape.extent[axis], begin);
    if (parts != cornu__operation_outputs(o->layer))
        return cornu__operation_refuse(o, "its axis cannot be split in these parts");
    for (int i = 0; i < parts; i++)
        if (!(o->out[i] = cornu__slice_axis(x, axis, begin[i], begin[i + 1]))) return NULL;
    return o->out[0];
}

int cornu__operation_split_count(const CornuOperands *o, CornuShape x)
{
    const json_t *given = cornu__argument(o, "indices_or_sections", 1);
    (void)x;
    return json_is_integer(given) ? (int)json_integer_value(given)
                                  : (int)json_array_size(given) + 1;
}

CornuTensor *cornu__operation_unstack(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        axis = cornu__argument_axis(o, "axis", shape.rank, 0);
    const int        count = cornu__operation_outputs(o->layer);
    if (axis < 0) return NULL;
    if (shape.extent[axis] != count)
        return cornu__operation_refuse(o, "the extent of its axis must be known");
    for (int i = 0; i < count; i++)
        if (!(o->out[i] = cornu__drop_axis(cornu__slice_axis(x, axis, i, i + 1), axis)))
            return NULL;
    return o->out[0];
}

int cornu__operation_unstack_count(const CornuOperands *o, CornuShape x)
{
    const int64_t num = cornu__argument_integer(o, "num", 0);
    int64_t       axis = cornu__argument_integer(o, "axis", 0);
    if (axis < 0) axis += x.rank;
    return num ? (int)num : axis >= 0 && axis < x.rank ? (int)x.extent[axis] : 1;
}

/* ---- Repeating and padding ---- */

/* x with each block of `block` elements along the axis `times` times in a row. */
static CornuTensor *repeated(CornuTensor *x, int axis, int64_t block, int64_t times)
{
    const CornuShape shape = cornu_tensor_shape(x);
    CornuShape       to = shape;
    int64_t          before = 1, after = 1;
    if (times == 1) return x;
    for (int i = 0; i < shape.rank; i++) {
        if (i < axis) before *= shape.extent[i];
        if (i > axis) after *= shape.extent[i];
    }
    CornuShape flat = cornu_shape(before, shape.extent[axis] / block, 1, block * after);
    x = cornu_op_reshape(x, flat);
    flat.extent[2] = times;
    to.extent[axis] *= times;
    return cornu_op_reshape(cornu_op_broadcast(x, flat), to);
}

CornuTensor *cornu__operation_repeat(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      times[CORNU_MAX_RANK];
    const int    count = cornu__argument_list(o, "repeats", 1, times);
    if (!x || count < 0) return NULL;
    x = cornu__flat_without_axis(o, x);
    const int axis = x ? cornu__argument_axis(o, "axis", cornu_tensor_shape(x).rank, 0) : -1;
    if (axis < 0) return NULL;
    if (count != 1 || times[0] < 1)
        return cornu__operation_refuse(o, "repeats is not a positive number");
    return repeated(x, axis, 1, times[0]);
}

CornuTensor *cornu__operation_tile(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      times[CORNU_MAX_RANK];
    const int    count = cornu__argument_list(o, "repeats", 1, times);
    if (!x || count < 0) return NULL;
    while (x && cornu_tensor_shape(x).rank < count) x = cornu__add_axis(x, 0);
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    for (int i = 0; i < count; i++) {
        const int axis = rank - count + i;
        if (times[i] < 1)
            return cornu__operation_refuse(o, "repeats is not a list of positive numbers");
        if (times[i] > 1) x = repeated(x, axis, cornu_tensor_shape(x).extent[axis], times[i]);
    }
    return x;
}

/* `count` elements at one end of an axis, mirrored; with `edge` the element at the end counts. */
static CornuTensor *mirrored(CornuTensor *x, int axis, int64_t count, bool at_end, bool edge)
{
    const int64_t n = cornu_tensor_shape(x).extent[axis], skip = edge ? 0 : 1;
    const int64_t begin = at_end ? n - skip - count : skip;
    return begin < 0 || begin + count > n ? NULL
           : cornu_op_flip(cornu__slice_axis(x, axis, begin, begin + count), axis);
}

static CornuTensor *pad_mirrored(const CornuOperands *o, CornuTensor *x, const int64_t *low,
                                 const int64_t *high, bool edge)
{
    for (int axis = 0; axis < cornu_tensor_shape(x).rank; axis++) {
        CornuTensor *parts[3];
        int          count = 0;
        if (low[axis]) parts[count++] = mirrored(x, axis, low[axis], false, edge);
        parts[count++] = x;
        if (high[axis]) parts[count++] = mirrored(x, axis, high[axis], true, edge);
        if (!parts[0] || !parts[count - 1])
            return cornu__operation_refuse(o, "is wider than the tensor that it mirrors");
        if (count > 1 && !(x = cornu_op_concat(parts, count, axis))) return NULL;
    }
    return x;
}

CornuTensor *cornu__operation_pad(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const json_t *widths = cornu__argument(o, "pad_width", -1);
    const json_t *fill = cornu__argument(o, "constant_values", 1);
    const char   *mode = cornu__argument_text(o, "mode", "constant");
    int64_t       low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    for (int i = 0; i < rank; i++) {
        /* One number, one pair, or a pair for each axis. */
        const json_t *pair = !json_is_array(widths) ? widths
                             : json_array_get(widths, json_array_size(widths) == 1 ? 0 : (size_t)i);
        if (json_is_integer(json_array_get(widths, 0))) pair = widths;
        low[i] = json_integer_value(json_is_array(pair) ? json_array_get(pair, 0) : pair);
        high[i] = json_integer_value(json_is_array(pair) ? json_array_get(pair, 1) : pair);
    }
    if (fill && (!json_is_number(fill) || strcmp(mode, "constant")))
        return cornu__operation_refuse(o, "constant_values is only available as a number, for the "
                                       "mode constant");
    if (!strcmp(mode, "constant"))
        return cornu_op_pad(x, low, high, fill ? json_number_value(fill) : 0.0);
    if (strcmp(mode, "reflect") && strcmp(mode, "symmetric"))
        return cornu__operation_refuse(o, "mode is only available as constant, reflect and "
                                       "symmetric");
    return pad_mirrored(o, x, low, high, !strcmp(mode, "symmetric"));
}

/* ---- Constants of the shape of x ---- */

static CornuTensor *like(const CornuOperands *o, double value)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    CornuType type = cornu_tensor_type(x);
    type.dtype = cornu__argument_dtype(o, "dtype", type.dtype);
    if (type.dtype == CORNU_DTYPE_COUNT)
        return cornu__operation_refuse_dtype(o);
    return cornu_op_constant(o->graph, type, value);
}

CornuTensor *cornu__operation_zeros_like(const CornuOperands *o) { return like(o, 0.0); }
CornuTensor *cornu__operation_ones_like(const CornuOperands *o) { return like(o, 1.0); }

CornuTensor *cornu__operation_full_like(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    CornuTensor *value = x ? cornu__operand_tensor(o, "fill_value", 1) : NULL;
    if (!value) return NULL;
    const CornuType  type = cornu_tensor_type(x);
    const CornuDtype dtype = cornu__argument_dtype(o, "dtype", type.dtype);
    if (dtype == CORNU_DTYPE_COUNT) return cornu__operation_refuse_dtype(o);
    return cornu__broadcast_to(cornu_op_convert(value, dtype), type.shape);
}

/* ---- Triangles of matrices ---- */

/* Keeps elements (i, j) with j - i compared to k. */
static CornuTensor *triangle(const CornuOperands *o, CornuComparison comparison)
{
    CornuTensor  *x = cornu__operand_x(o);
    const int64_t k = cornu__argument_integer(o, "k", 0);
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    if (shape.rank < 2) return cornu__operation_refuse(o, "expected a matrix");
    const CornuType type = cornu_type(CORNU_I32, shape.extent[shape.rank - 2],
                                      shape.extent[shape.rank - 1]);
    CornuTensor *i = cornu_op_iota(o->graph, type, 0), *j = cornu_op_iota(o->graph, type, 1);
    CornuTensor *distance = cornu_op_subtract(j, i);
    return cornu_op_select(cornu_op_compare(distance, comparison, cornu__like(j, (double)k)), x,
                           cornu__like(x, 0.0));
}

CornuTensor *cornu__operation_tril(const CornuOperands *o)
{
    return triangle(o, CORNU_LESS_EQUAL);
}

CornuTensor *cornu__operation_triu(const CornuOperands *o)
{
    return triangle(o, CORNU_GREATER_EQUAL);
}
