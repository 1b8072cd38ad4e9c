/* Operations that order the elements along an axis. All pairs are compared: an element's place is
 * the number of those before it, of which equal ones come in their order. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>
#include <string.h>

/* The places of the elements along the last axis, i32, from the smallest or the largest on. */
static CornuTensor *places(CornuTensor *x, bool descending)
{
    const int     last = cornu_tensor_shape(x).rank - 1;
    const int64_t n = cornu_tensor_shape(x).extent[last];
    CornuGraph   *graph = cornu_tensor_graph(x);
    CornuTensor  *one = cornu__add_axis(x, last + 1), *others = cornu__add_axis(x, last);
    CornuTensor  *earlier = cornu_op_compare(
        cornu_op_iota(graph, cornu_type(CORNU_I32, 1, n), 1), CORNU_LESS,
        cornu_op_iota(graph, cornu_type(CORNU_I32, n, 1), 0));
    CornuTensor *before = cornu_op_select(
        cornu__sorts_equal(others, one), earlier,
        descending ? cornu__sorts_below(one, others) : cornu__sorts_below(others, one));
    return cornu_op_reduce_sum(cornu_op_convert(before, CORNU_I32), INT64_C(1) << (last + 1),
                               false);
}

/* The elements of `values` (…, n) at the first `count` places. */
static CornuTensor *ordered(CornuTensor *values, CornuTensor *at, int64_t count)
{
    if (!values || !at) return NULL;
    const int    last = cornu_tensor_shape(values).rank - 1;
    CornuTensor *wanted = cornu_op_iota(cornu_tensor_graph(at), cornu_type(CORNU_I32, 1, count), 1);
    CornuTensor *hit = cornu_op_compare(cornu__add_axis(at, last + 1), CORNU_EQUAL, wanted);
    if (!hit) return NULL;
    CornuTensor *spread = cornu_op_broadcast(cornu__add_axis(values, last + 1),
                                             cornu_tensor_shape(hit));
    CornuTensor *picked = cornu_op_select(hit, spread, cornu__like(spread, 0.0));
    return cornu_op_reduce_sum(picked, INT64_C(1) << last, false);
}

/* 0, 1, … along the last axis of x */
static CornuTensor *positions(CornuTensor *x)
{
    CornuType type = cornu_tensor_type(x);
    type.dtype = CORNU_I32;
    return cornu_op_iota(cornu_tensor_graph(x), type, type.shape.rank - 1);
}

/* x with the axis last, as numbers; NULL with a pending error */
static CornuTensor *moved(const CornuOperands *o, CornuTensor *x, int *axis)
{
    *axis = x ? cornu__argument_axis(o, "axis", cornu_tensor_shape(x).rank, -1) : -1;
    if (*axis < 0) return NULL;
    if (cornu_tensor_shape(x).rank == CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "its tensor has too many axes to be sorted");
    if (cornu_tensor_type(x).dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    return cornu__move_axis(x, *axis, cornu_tensor_shape(x).rank - 1);
}

static int64_t length(CornuTensor *x)
{
    const CornuShape shape = cornu_tensor_shape(x);
    return shape.extent[shape.rank - 1];
}

CornuTensor *cornu__operation_sort(const CornuOperands *o)
{
    int          axis;
    CornuTensor *x = moved(o, cornu__operand_x(o), &axis);
    if (!x) return NULL;
    CornuTensor *y = ordered(x, places(x, false), length(x));
    return y ? cornu__move_axis(y, cornu_tensor_shape(y).rank - 1, axis) : NULL;
}

CornuTensor *cornu__operation_argsort(const CornuOperands *o)
{
    int          axis;
    CornuTensor *x = moved(o, cornu__operand_x(o), &axis);
    if (!x) return NULL;
    CornuTensor *y = ordered(positions(x), places(x, false), length(x));
    return y ? cornu__move_axis(y, cornu_tensor_shape(y).rank - 1, axis) : NULL;
}

/* The mean of the two in the middle, which are one if their number is odd; NaN if there is one,
 * which is then the last. */
CornuTensor *cornu__operation_median(const CornuOperands *o)
{
    int          axis;
    CornuTensor *given = cornu__operand_x(o);
    CornuTensor *x = moved(o, cornu__flat_without_axis(o, given), &axis);
    if (!x) return NULL;
    x = cornu_op_convert(x, CORNU_F32);
    const int     last = cornu_tensor_shape(x).rank - 1;
    const int64_t n = length(x), low = (n - 1) / 2, high = n / 2;
    CornuTensor  *y = ordered(x, places(x, false), n), *most = cornu__slice_axis(y, last, n - 1, n);
    y = cornu_op_add(cornu__slice_axis(y, last, low, low + 1),
                     cornu__slice_axis(y, last, high, high + 1));
    y = cornu_op_select(cornu_op_compare(most, CORNU_EQUAL, most), cornu_op_scale(y, 0.5), most);
    y = cornu__drop_axis(y, last);
    return cornu__argument_flag(o, "keepdims") ? cornu__with_axes(o, y, given, axis) : y;
}

/* x with the axes, all without any, in one that is the last; *kept: x's shape with 1 along them. */
static CornuTensor *joined(const CornuOperands *o, CornuShape *kept)
{
    CornuTensor *x = cornu__operand_float(o);
    if (!x) return NULL;
    CornuShape    shape = cornu_tensor_shape(x), flat = { .rank = 0 };
    const int64_t axes = cornu__argument_axes(o, "axis", shape.rank);
    int           order[CORNU_MAX_RANK], count = 0;
    int64_t       n = 1;
    if (cornu_error_pending()) return NULL;
    *kept = shape;
    for (int i = 0; i < shape.rank; i++)
        if (!(axes >> i & 1)) flat.extent[flat.rank++] = shape.extent[order[count++] = i];
    for (int i = 0; i < shape.rank; i++)
        if (axes >> i & 1) {
            n *= shape.extent[order[count++] = i];
            kept->extent[i] = 1;
        }
    flat.extent[flat.rank++] = n;
    if (flat.rank == CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "its tensor has too many axes to be sorted");
    return cornu_op_reshape(cornu_op_transpose(x, order), flat);
}

/* The element at the part q of the way from the least (…, n) to the largest one, between two of
 * which it is mixed, or one taken. NaN where there is one, which is then the last. */
static CornuTensor *at_part(const CornuOperands *o, CornuTensor *sorted, double q)
{
    const char *method = cornu__argument_text(o, "method", "linear");
    if (!sorted) return NULL;
    const int     last = cornu_tensor_shape(sorted).rank - 1;
    const int64_t n = length(sorted);
    const double  place = q * (double)(n - 1);
    int64_t       low = (int64_t)floor(place), high = (int64_t)ceil(place);
    double        part = place - (double)low;
    if (!(q >= 0.0 && q <= 1.0)) return cornu__operation_refuse(o, "q is out of range");
    if (!strcmp(method, "lower")) high = low;
    else if (!strcmp(method, "higher")) low = high;
    else if (!strcmp(method, "nearest")) low = high = (int64_t)nearbyint(place);
    else if (!strcmp(method, "midpoint")) part = 0.5;
    else if (strcmp(method, "linear"))
        return cornu__operation_refuse(o, "method is linear, lower, higher, midpoint or nearest");
    CornuTensor *a = cornu__slice_axis(sorted, last, low, low + 1), *y = a;
    if (high != low) {
        CornuTensor *b = cornu__slice_axis(sorted, last, high, high + 1);
        y = cornu_op_add(cornu_op_scale(a, 1.0 - part), cornu_op_scale(b, part));
    }
    CornuTensor *most = cornu__slice_axis(sorted, last, n - 1, n);
    return cornu_op_select(cornu_op_compare(most, CORNU_EQUAL, most), y, most);
}

/* Of a list of parts the results are along a new first axis. */
static CornuTensor *quantiles(const CornuOperands *o, double unit)
{
    enum { MOST = 256 };
    const json_t *q = cornu__argument(o, "q", 1);
    CornuShape    kept;
    CornuTensor  *x = joined(o, &kept), *parts[MOST];
    const json_t *value = json_object_get(json_object_get(q, "config"), "value");
    if (value) q = value;
    const size_t count = json_is_array(q) ? json_array_size(q) : 1;
    const bool   keep = cornu__argument_flag(o, "keepdims");
    if (!x) return NULL;
    if (count < 1 || count > MOST) return cornu__operation_refuse(o, "q has too many numbers");
    CornuTensor *sorted = ordered(x, places(x, false), length(x));
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_is_array(q) ? json_array_get(q, i) : q;
        if (!json_is_number(number))
            return cornu__operation_refuse(o, "q is available as a number, or a list of them");
        CornuTensor *y = at_part(o, sorted, json_number_value(number) / unit);
        if (!y) return NULL;
        y = keep ? cornu_op_reshape(y, kept) : cornu__drop_axis(y, cornu_tensor_shape(y).rank - 1);
        parts[i] = json_is_array(q) ? cornu__add_axis(y, 0) : y;
        if (!parts[i]) return NULL;
    }
    return json_is_array(q) ? cornu_op_concat(parts, (int)count, 0) : parts[0];
}

CornuTensor *cornu__operation_quantile(const CornuOperands *o) { return quantiles(o, 1.0); }
CornuTensor *cornu__operation_percentile(const CornuOperands *o) { return quantiles(o, 100.0); }

CornuTensor *cornu__operation_top_k(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const int64_t k = cornu__argument_integer(o, "k", 1);
    if (!x) return NULL;
    if (cornu_tensor_shape(x).rank < 1 || cornu_tensor_shape(x).rank == CORNU_MAX_RANK ||
        k < 1 || k > length(x))
        return cornu__operation_refuse(o, "k exceeds the last axis, or there is none");
    CornuTensor *at = places(x, true);
    o->out[0] = ordered(x, at, k);
    o->out[1] = ordered(positions(x), at, k);
    return o->out[1] ? o->out[0] : NULL;
}

int cornu__operation_top_k_count(const CornuOperands *o, CornuShape x)
{
    (void)o, (void)x;
    return 2;
}
