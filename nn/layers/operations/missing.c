/* Reductions that leave NaN out; ptp and trapezoid. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>

/* What a reduction is given: x with NaN replaced, where it is a number, and the axes. */
typedef struct {
    CornuTensor *x, *valid;
    int64_t      axes;
    bool         keep;
} Reduced;

static bool reduced(const CornuOperands *o, double instead, Reduced *r)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return false;
    r->axes = cornu__argument_axes(o, "axis", cornu_tensor_shape(x).rank);
    r->keep = cornu__argument_flag(o, "keepdims");
    if (cornu_error_pending()) return false;
    if (cornu_tensor_type(x).dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    r->valid = cornu_op_compare(x, CORNU_EQUAL, x);
    r->x = r->valid && cornu_dtype_is_float(cornu_tensor_type(x).dtype)
               ? cornu_op_select(r->valid, x, cornu__like(x, instead)) : x;
    return r->x != NULL;
}

/* The number of numbers, in the dtype of x. */
static CornuTensor *number(const Reduced *r, bool keep)
{
    CornuTensor *one = cornu_op_convert(r->valid, cornu_tensor_type(r->x).dtype);
    return cornu_op_reduce_sum(one, r->axes, keep);
}

CornuTensor *cornu__operation_nansum(const CornuOperands *o)
{
    Reduced r;
    return reduced(o, 0.0, &r) ? cornu_op_reduce_sum(r.x, r.axes, r.keep) : NULL;
}

static CornuTensor *mean(const Reduced *r, CornuTensor *x, bool keep)
{
    return cornu_op_divide(cornu_op_reduce_sum(x, r->axes, keep), number(r, keep));
}

static bool floats(const CornuOperands *o, Reduced *r)
{
    if (!reduced(o, 0.0, r)) return false;
    if (!cornu_dtype_is_float(cornu_tensor_type(r->x).dtype))
        r->x = cornu_op_convert(r->x, CORNU_F32);
    return r->x != NULL;
}

CornuTensor *cornu__operation_nanmean(const CornuOperands *o)
{
    Reduced r;
    return floats(o, &r) ? mean(&r, r.x, r.keep) : NULL;
}

CornuTensor *cornu__operation_nanvar(const CornuOperands *o)
{
    Reduced r;
    if (!floats(o, &r)) return NULL;
    CornuTensor *distance = cornu_op_subtract(r.x, mean(&r, r.x, true));
    distance = distance ? cornu_op_select(r.valid, distance, cornu__like(distance, 0.0)) : NULL;
    return mean(&r, cornu_op_square(distance), r.keep);
}

CornuTensor *cornu__operation_nanstd(const CornuOperands *o)
{
    return cornu_op_sqrt(cornu__operation_nanvar(o));
}

/* NaN where all are. */
static CornuTensor *extreme(const CornuOperands *o, double instead,
                            CornuTensor *(*of)(CornuTensor *, int64_t, bool))
{
    Reduced r;
    if (!reduced(o, instead, &r)) return NULL;
    CornuTensor *y = of(r.x, r.axes, r.keep);
    if (!y || !cornu_dtype_is_float(cornu_tensor_type(y).dtype)) return y;
    CornuTensor *none = cornu_op_compare(number(&r, r.keep), CORNU_EQUAL, cornu__like(y, 0.0));
    return cornu_op_select(none, cornu__like(y, NAN), y);
}

CornuTensor *cornu__operation_nanmax(const CornuOperands *o)
{
    return extreme(o, -INFINITY, cornu_op_reduce_max);
}

CornuTensor *cornu__operation_nanmin(const CornuOperands *o)
{
    return extreme(o, INFINITY, cornu__reduce_min);
}

/* Another rule, of x in which numbers replace NaN: it reads the call's other arguments. */
static CornuTensor *without(const CornuOperands *o, double instead, CornuOperationRule *rule)
{
    CornuTensor  *x = cornu__operand_x(o), *in[1];
    CornuOperands own = *o;
    if (!x) return NULL;
    if (cornu_dtype_is_float(cornu_tensor_type(x).dtype))
        x = cornu_op_select(cornu_op_compare(x, CORNU_EQUAL, x), x, cornu__like(x, instead));
    json_t *args = json_pack("[{s:s, s:i}]", "class_name", "__keras_tensor__", "config", 0);
    in[0] = x;
    own.in = in;
    own.in_count = 1;
    own.args = args;
    x = x && args ? rule(&own) : NULL;
    json_decref(args);
    return x;
}

CornuTensor *cornu__operation_nanprod(const CornuOperands *o)
{
    return without(o, 1.0, cornu__operation_prod);
}

CornuTensor *cornu__operation_nancumsum(const CornuOperands *o)
{
    return without(o, 0.0, cornu__operation_cumsum);
}

CornuTensor *cornu__operation_nancumprod(const CornuOperands *o)
{
    return without(o, 1.0, cornu__operation_cumprod);
}

CornuTensor *cornu__operation_ptp(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    const int64_t axes = cornu__argument_axes(o, "axis", cornu_tensor_shape(x).rank);
    const bool    keep = cornu__argument_flag(o, "keepdims");
    if (cornu_error_pending()) return NULL;
    return cornu_op_subtract(cornu_op_reduce_max(x, axes, keep), cornu__reduce_min(x, axes, keep));
}

/* The sum of (y[i] + y[i + 1]) / 2 times the distance of their places x, or dx. */
CornuTensor *cornu__operation_trapezoid(const CornuOperands *o)
{
    CornuTensor *y = cornu_op_convert(cornu__operand_tensor(o, "y", 0), CORNU_F32);
    const double dx = cornu__argument_number(o, "dx", 1.0);
    const int    axis = y ? cornu__argument_axis(o, "axis", cornu_tensor_shape(y).rank, -1) : -1;
    if (axis < 0) return NULL;
    const int64_t n = cornu_tensor_shape(y).extent[axis];
    if (n < 2) return cornu__operation_refuse(o, "its axis has too few elements");
    CornuTensor *sum = cornu_op_scale(cornu_op_add(cornu__slice_axis(y, axis, 1, n),
                                                   cornu__slice_axis(y, axis, 0, n - 1)), 0.5);
    if (!cornu__argument(o, "x", 1))
        return cornu_op_reduce_sum(cornu_op_scale(sum, dx), INT64_C(1) << axis, false);
    CornuTensor *x = cornu_op_convert(cornu__operand_tensor(o, "x", 1), CORNU_F32);
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(y).rank, own = cornu_tensor_shape(x).rank;
    for (int i = axis + 1; own == 1 && i < rank && x; i++) x = cornu__add_axis(x, i - axis);
    const int at = own == 1 ? 0 : axis;
    if (!x || at >= cornu_tensor_shape(x).rank || cornu_tensor_shape(x).extent[at] != n)
        return cornu__operation_refuse(o, "expected a place x for each element along the axis");
    CornuTensor *steps = cornu_op_subtract(cornu__slice_axis(x, at, 1, n),
                                           cornu__slice_axis(x, at, 0, n - 1));
    return cornu_op_reduce_sum(cornu_op_multiply(sum, steps), INT64_C(1) << axis, false);
}
