/* Operations that reduce axes, or add up along one. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <string.h>

/* x and the axes to reduce; false with a pending error. */
static bool reduced(const CornuOperands *o, CornuTensor *x, int64_t *axes, bool *keep)
{
    if (!x) return false;
    *axes = cornu__argument_axes(o, "axis", cornu_tensor_shape(x).rank);
    *keep = cornu__argument_flag(o, "keepdims");
    return !cornu_error_pending();
}

CornuTensor *cornu__operation_sum(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      axes;
    bool         keep;
    if (!reduced(o, x, &axes, &keep)) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    if (dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    if (dtype == CORNU_U8) x = cornu_op_convert(x, CORNU_U32);
    return cornu_op_reduce_sum(x, axes, keep);
}

CornuTensor *cornu__operation_mean(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    int64_t      axes;
    bool         keep;
    return reduced(o, x, &axes, &keep) ? cornu_op_reduce_mean(x, axes, keep) : NULL;
}

CornuTensor *cornu__operation_max(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      axes;
    bool         keep;
    return reduced(o, x, &axes, &keep) ? cornu_op_reduce_max(x, axes, keep) : NULL;
}

CornuTensor *cornu__operation_min(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      axes;
    bool         keep;
    if (!reduced(o, x, &axes, &keep)) return NULL;
    return cornu__reduce_min(x, axes, keep);
}

/* Mean square of the distance to the mean. */
static CornuTensor *variance(CornuTensor *x, int64_t axes, bool keep)
{
    CornuTensor *distance = cornu_op_subtract(x, cornu_op_reduce_mean(x, axes, true));
    return cornu_op_reduce_mean(cornu_op_square(distance), axes, keep);
}

CornuTensor *cornu__operation_var(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    int64_t      axes;
    bool         keep;
    return reduced(o, x, &axes, &keep) ? variance(x, axes, keep) : NULL;
}

CornuTensor *cornu__operation_std(const CornuOperands *o)
{
    return cornu_op_sqrt(cornu__operation_var(o));
}

/* Mean and variance over config's axes. */
CornuTensor *cornu__operation_moments(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    if (!x) return NULL;
    const int64_t axes = cornu__argument_axes(o, "axes", cornu_tensor_shape(x).rank);
    const bool    keep = cornu__argument_flag(o, "keepdims");
    if (cornu_error_pending()) return NULL;
    o->out[0] = cornu_op_reduce_mean(x, axes, keep);
    o->out[1] = variance(x, axes, keep);
    return o->out[1] ? o->out[0] : NULL;
}

int cornu__operation_moments_count(const CornuOperands *o, CornuShape x)
{
    (void)o, (void)x;
    return 2;
}

/* ---- Bools ---- */

/* Whether any element is true: the largest, as 0 or 1, is 1. */
static CornuTensor *any_of(CornuTensor *x, int64_t axes, bool keep)
{
    CornuTensor *largest = cornu_op_reduce_max(cornu_op_convert(x, CORNU_I32), axes, keep);
    return cornu_op_convert(largest, CORNU_BOOL);
}

static CornuTensor *negated(CornuTensor *x)
{
    return cornu_op_compare(x, CORNU_EQUAL, cornu__like(x, 0.0));
}

CornuTensor *cornu__operation_any(const CornuOperands *o)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_x(o), CORNU_BOOL);
    int64_t      axes;
    bool         keep;
    return reduced(o, x, &axes, &keep) ? any_of(x, axes, keep) : NULL;
}

CornuTensor *cornu__operation_all(const CornuOperands *o)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_x(o), CORNU_BOOL);
    int64_t      axes;
    bool         keep;
    return reduced(o, x, &axes, &keep) ? negated(any_of(negated(x), axes, keep)) : NULL;
}

CornuTensor *cornu__operation_count_nonzero(const CornuOperands *o)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_x(o), CORNU_BOOL);
    int64_t      axes;
    bool         keep;
    if (!reduced(o, x, &axes, &keep)) return NULL;
    return cornu_op_reduce_sum(cornu_op_convert(x, CORNU_I32), axes, keep);
}

/* ---- Exponents and lengths ---- */

/* m + log(sum of exp(x - m)) with the largest element m */
CornuTensor *cornu__operation_logsumexp(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    int64_t      axes;
    bool         keep;
    if (!reduced(o, x, &axes, &keep)) return NULL;
    CornuTensor *most = cornu_op_reduce_max(x, axes, true);
    CornuTensor *exps = cornu_op_exp(cornu_op_subtract(x, most));
    CornuTensor *sum = cornu_op_log(cornu_op_reduce_sum(exps, axes, keep));
    return cornu_op_add(keep ? most : cornu_op_reduce_max(x, axes, false), sum);
}

/* The 1-, 2- and infinity-norms of vectors, and the Frobenius norm. */
CornuTensor *cornu__operation_norm(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_float(o);
    const json_t *order = cornu__argument(o, "ord", -1);
    const char   *name = json_string_value(order);
    int64_t       axes;
    bool          keep;
    if (!reduced(o, x, &axes, &keep)) return NULL;
    const bool of_vectors = (axes & (axes - 1)) == 0;
    if (of_vectors && json_is_number(order) && json_number_value(order) == 1.0)
        return cornu_op_reduce_sum(cornu_op_absolute(x), axes, keep);
    if (order && !(of_vectors && json_number_value(order) == 2.0) &&
        !(name && !strcmp(name, "fro") && !of_vectors))
        return cornu__operation_refuse(o, "a norm of this order is not available");
    return cornu_op_sqrt(cornu_op_reduce_sum(cornu_op_square(x), axes, keep));
}

/* ---- Positions ---- */

static CornuTensor *position(const CornuOperands *o, CornuTensor *(*of)(CornuTensor *, int))
{
    CornuTensor *given = cornu__operand_x(o), *x = cornu__flat_without_axis(o, given);
    const int    axis = x ? cornu__argument_axis(o, "axis", cornu_tensor_shape(x).rank, 0) : -1;
    if (axis < 0) return NULL;
    if (cornu_tensor_type(x).dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    CornuTensor *y = of(x, axis);
    return cornu__argument_flag(o, "keepdims") ? cornu__with_axes(o, y, given, axis) : y;
}

CornuTensor *cornu__operation_argmax(const CornuOperands *o)
{
    return position(o, cornu_op_argmax);
}

CornuTensor *cornu__operation_argmin(const CornuOperands *o)
{
    return position(o, cornu__argmin);
}

/* ---- Along one axis ---- */

typedef CornuTensor *Combine(CornuTensor *a, CornuTensor *b);

/* Combines each element with those before it: after step k with the 2^k nearest. */
static CornuTensor *accumulated(const CornuOperands *o, CornuTensor *x, Combine *combine,
                                double neutral)
{
    x = cornu__flat_without_axis(o, x);
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        axis = cornu__argument_axis(o, "axis", shape.rank, 0);
    if (axis < 0) return NULL;
    if (cornu_tensor_type(x).dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    for (int64_t step = 1; step < shape.extent[axis]; step *= 2) {
        int64_t low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
        low[axis] = step;
        CornuTensor *before = cornu__slice_axis(x, axis, 0, shape.extent[axis] - step);
        x = combine(x, cornu_op_pad(before, low, high, neutral));
    }
    return x;
}

CornuTensor *cornu__operation_cumsum(const CornuOperands *o)
{
    return accumulated(o, cornu__operand_x(o), cornu_op_add, 0.0);
}

CornuTensor *cornu__operation_cumprod(const CornuOperands *o)
{
    return accumulated(o, cornu__operand_x(o), cornu_op_multiply, 1.0);
}

CornuTensor *cornu__operation_prod(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    int64_t      axes;
    bool         keep;
    if (!reduced(o, x, &axes, &keep)) return NULL;
    if (cornu_tensor_type(x).dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    for (int axis = cornu_tensor_shape(x).rank - 1; axis >= 0 && x; axis--) {
        if (!(axes >> axis & 1)) continue;
        x = cornu__product(x, axis);
        if (!keep) x = cornu__drop_axis(x, axis);
    }
    return x;
}
