/* Operations that select: x[:, 0], take, one_hot. */
#include "operation_internal.h"

#include "../../../device/integer_internal.h"

#include <string.h>

/* ---- x[...] ---- */

static bool is_class(const json_t *value, const char *class_name)
{
    const char *name = json_string_value(json_object_get(value, "class_name"));
    return name && !strcmp(name, class_name);
}

/* A bound of a slice as Python resolves it: from the front, within [low, high]. */
static int64_t bound(const CornuOperands *o, const json_t *value, int64_t usual, int64_t n,
                     int64_t low, int64_t high)
{
    int64_t given;
    if (!cornu__whole_of(o, value, &given)) return usual;
    return smaller(larger(given < 0 ? given + n : given, low), high);
}

/* x[begin:end:step] along an axis */
static CornuTensor *sliced(const CornuOperands *o, CornuTensor *x, int axis, const json_t *slice)
{
    const json_t *config = json_object_get(slice, "config");
    const json_t *start = json_object_get(config, "start"), *stop = json_object_get(config, "stop");
    const json_t *given = json_object_get(config, "step");
    const int64_t n = cornu_tensor_shape(x).extent[axis];
    if (!start || !stop || !given)
        return cornu__operation_refuse(o, "a slice lacks start, stop or step");
    int64_t       step = json_is_integer(given) ? json_integer_value(given) : 1;
    if (step == 0) return cornu__operation_refuse(o, "a slice has a step of 0");
    if (step > 0) {
        const int64_t begin = bound(o, start, 0, n, 0, n), end = bound(o, stop, n, n, 0, n);
        if (begin == 0 && end == n && step == 1) return x;
        if (end <= begin) return cornu__slice_axis(x, axis, begin, begin);
        return cornu__strided(x, axis, begin, ceil_divide(end - begin, step), step);
    }
    step = -step;
    const int64_t first = bound(o, start, n - 1, n, -1, n - 1);
    const int64_t last = bound(o, stop, -1, n, -1, n - 1);
    if (first <= last) return cornu__slice_axis(x, axis, 0, 0);
    return cornu__strided(cornu_op_flip(x, axis), axis, n - 1 - first,
                          ceil_divide(first - last, step), step);
}

static CornuTensor *element(const CornuOperands *o, CornuTensor *x, int axis, int64_t i)
{
    const int64_t n = cornu_tensor_shape(x).extent[axis], at = i < 0 ? i + n : i;
    if (at < 0 || at >= n)
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: element %lld of axis %d, which has %lld",
                                cornu_layer_name(o->layer), (long long)i, axis, (long long)n);
    return cornu__drop_axis(cornu__slice_axis(x, axis, at, at + 1), axis);
}

/* How many axes of x the keys stand for, without an ellipsis. */
static int axes_used(const json_t *keys)
{
    int used = 0;
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const json_t *key = json_array_get(keys, i);
        used += json_is_integer(key) || is_class(key, "__slice__");
    }
    return used;
}

static CornuTensor *get_items(const CornuOperands *o, CornuTensor *x, const json_t *keys)
{
    const int rank = cornu_tensor_shape(x).rank, used = axes_used(keys);
    int       axis = 0;
    if (used > rank) return cornu__operation_refuse(o, "has more indices than the tensor has axes");
    for (size_t i = 0; i < json_array_size(keys) && x; i++) {
        const json_t *key = json_array_get(keys, i);
        if (is_class(key, "__slice__")) x = sliced(o, x, axis++, key);
        else if (json_is_integer(key)) x = element(o, x, axis, json_integer_value(key));
        else if (is_class(key, "__ellipsis__")) axis += rank - used;
        else if (json_is_null(key)) x = cornu__add_axis(x, axis++);
        else return cornu__operation_refuse(o, "an index is not available in this version; "
                                            "expected numbers, slices, ... and None");
    }
    return x;
}

CornuTensor *cornu__operation_get_item(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const json_t *key = json_array_get(o->args, 1);
    if (!key) key = json_object_get(o->kwargs, "key");
    if (!x) return NULL;
    if (json_is_array(key)) return get_items(o, x, key);
    json_t *keys = json_array();
    json_array_append(keys, (json_t *)key);
    x = get_items(o, x, keys);
    json_decref(keys);
    return x;
}

/* ---- take ---- */

static CornuTensor *take_along(const CornuOperands *o, CornuTensor *x, int axis,
                               CornuTensor *indices);

/* Whether all places are of the axis, counted from its start. */
static bool are_places(const json_t *places, int64_t n)
{
    for (size_t i = 0; i < json_array_size(places); i++) {
        const json_t *at = json_array_get(places, i);
        if (!json_is_integer(at) || json_integer_value(at) < 0 || json_integer_value(at) >= n)
            return false;
    }
    return true;
}

/* The elements of fixed places along an axis, put together; of very many as of computed ones. */
static CornuTensor *take_fixed(const CornuOperands *o, CornuTensor *x, int axis,
                               const json_t *places)
{
    enum { MOST = 4096 };
    const size_t count = json_array_size(places);
    if (json_is_integer(places)) return element(o, x, axis, json_integer_value(places));
    if (count > MOST && are_places(places, cornu_tensor_shape(x).extent[axis]))
        return take_along(o, x, axis, cornu__operand_tensor(o, "indices", 1));
    if (count < 1 || count > MOST)
        return cornu__operation_refuse(o, "takes too many elements, or none");
    CornuTensor **parts = cornu__allocate(count, sizeof *parts);
    if (!parts) return cornu__null();
    const int64_t n = cornu_tensor_shape(x).extent[axis];
    CornuTensor  *y = x;
    for (size_t i = 0; i < count && y; i++) {
        int64_t at = json_integer_value(json_array_get(places, i));
        if (at < 0) at += n;
        y = json_is_integer(json_array_get(places, i)) && at >= 0 && at < n
            ? parts[i] = cornu__slice_axis(x, axis, at, at + 1)
            : cornu__operation_refuse(o, "an index is out of range, or not in a flat list");
    }
    if (y) y = cornu_op_concat(parts, (int)count, axis);
    cornu__release(parts);
    return y;
}

/* Rows of a table, by indices that the model computes. */
static CornuTensor *take_rows(const CornuOperands *o, CornuTensor *table, CornuTensor *indices)
{
    if (!table || !indices) return NULL;
    const CornuShape shape = cornu_tensor_shape(table), at = cornu_tensor_shape(indices);
    CornuShape       result = at, flat = { .rank = 2, .extent = { shape.extent[0], 1 } };
    indices = o->call ? cornu__indices(o->call, indices) : cornu_op_indices(indices);
    if (!indices) return NULL;
    if (at.rank + shape.rank - 1 > CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "its result has too many axes");
    for (int i = 1; i < shape.rank; i++) {
        flat.extent[1] *= shape.extent[i];
        result.extent[result.rank++] = shape.extent[i];
    }
    return cornu_op_reshape(cornu_op_gather(cornu_op_reshape(table, flat), indices), result);
}

/* Likewise along another axis: the axes of the indices take its place. */
static CornuTensor *take_along(const CornuOperands *o, CornuTensor *x, int axis,
                               CornuTensor *indices)
{
    int          axes[CORNU_MAX_RANK];
    CornuTensor *y = take_rows(o, axis ? cornu__move_axis(x, axis, 0) : x, indices);
    if (!y || axis == 0) return y;
    const int rank = cornu_tensor_shape(y).rank, placed = cornu_tensor_shape(indices).rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i < axis ? placed + i : i < axis + placed ? i - axis : i;
    return cornu_op_transpose(y, axes);
}

CornuTensor *cornu__operation_take(const CornuOperands *o)
{
    CornuOperand  operand;
    const json_t *indices = cornu__argument(o, "indices", 1);
    if (!cornu__operand(o, "x", 0, &operand)) return NULL;
    if (!operand.tensor) return cornu__operation_refuse(o, "expected a tensor");
    CornuTensor *x = cornu__flat_without_axis(o, operand.tensor);
    const char  *class_name = json_string_value(json_object_get(indices, "class_name"));
    const int    axis = x ? cornu__argument_axis(o, "axis", cornu_tensor_shape(x).rank, 0) : -1;
    if (axis < 0) return NULL;
    if (class_name && (!strcmp(class_name, "__numpy__") || !strcmp(class_name, "__tensor__")))
        indices = json_object_get(json_object_get(indices, "config"), "value");
    if (is_class(indices, "__keras_tensor__"))
        return take_along(o, x, axis, cornu__operand_tensor(o, "indices", 1));
    return take_fixed(o, x, axis, indices);
}

/* x times a one where an element of the axis is the wanted one, summed. */
CornuTensor *cornu__operation_take_along_axis(const CornuOperands *o)
{
    CornuTensor *x = cornu__flat_without_axis(o, cornu__operand_x(o));
    CornuTensor *indices = x ? cornu__operand_tensor(o, "indices", 1) : NULL;
    if (!indices) return NULL;
    const CornuType type = cornu_tensor_type(x);
    const int       axis = cornu__argument_axis(o, "axis", type.shape.rank, 0);
    if (axis < 0) return NULL;
    /* x (…, n, 1, …), indices (…, 1, m, …) */
    x = cornu__add_axis(x, axis + 1);
    indices = cornu__refuse_nan(o->call, indices);
    indices = cornu_op_convert(cornu__add_axis(indices, axis), CORNU_I64);
    if (!x || !indices) return NULL;
    CornuShape    counts = { .rank = type.shape.rank + 1 };
    const int64_t n = type.shape.extent[axis];
    for (int i = 0; i < counts.rank; i++) counts.extent[i] = i == axis ? n : 1;
    CornuTensor *below = cornu_op_compare(indices, CORNU_LESS, cornu__like(indices, 0.0));
    indices = cornu_op_select(below, cornu_op_shift(cornu_op_convert(indices, CORNU_F64),
                                                    (double)n),
                              cornu_op_convert(indices, CORNU_F64));
    CornuTensor *each = cornu_op_iota(o->graph, cornu_type_from(CORNU_F64, counts), axis);
    CornuTensor *same = cornu_op_compare(indices, CORNU_EQUAL, each);
    return cornu_op_reduce_sum(cornu_op_select(same, x, cornu__like(x, 0.0)), INT64_C(1) << axis,
                               false);
}

/* ---- one_hot ---- */

/* 0 where the index is out of range, unlike the op of that name. */
CornuTensor *cornu__operation_one_hot(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const int64_t classes = cornu__argument_integer(o, "num_classes", 0);
    if (!x || classes < 1) return NULL;
    const int        rank = cornu_tensor_shape(x).rank;
    const int        axis = cornu__argument_axis(o, "axis", rank + 1, -1);
    const CornuDtype dtype = cornu__argument_dtype(o, "dtype", CORNU_F32);
    x = cornu_op_convert(cornu__refuse_nan(o->call, x), CORNU_I64);
    if (axis < 0 || !(x = cornu__add_axis(x, axis))) return NULL;
    if (dtype == CORNU_DTYPE_COUNT) return cornu__operation_refuse_dtype(o);
    CornuShape counts = { .rank = rank + 1 };
    for (int i = 0; i <= rank; i++) counts.extent[i] = i == axis ? classes : 1;
    CornuTensor *each = cornu_op_iota(o->graph, cornu_type_from(CORNU_I64, counts), axis);
    return cornu_op_convert(cornu_op_compare(x, CORNU_EQUAL, each), dtype);
}

/* The largest of the one-hots along axis 1. */
CornuTensor *cornu__operation_multi_hot(const CornuOperands *o)
{
    CornuTensor *hot = cornu__operation_one_hot(o);
    if (!hot || cornu_tensor_shape(hot).rank < 3) return hot;
    return cornu_op_reduce_max(hot, INT64_C(1) << 1, false);
}
