/* Further functions of one or two variables, and normalizations. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

CornuTensor *cornu__operation_deg2rad(const CornuOperands *o)
{
    return cornu_op_scale(cornu__operand_float(o), pi / 180.0);
}

CornuTensor *cornu__operation_rad2deg(const CornuOperands *o)
{
    return cornu_op_scale(cornu__operand_float(o), 180.0 / pi);
}

CORNU__OF_FLOATS(fabs, cornu_op_absolute)
CORNU__OF_FLOATS(erfc, cornu__erfc)
CORNU__OF_FLOATS(arccosh, cornu__acosh)
CORNU__OF_FLOATS(arctanh, cornu__atanh)

/* sin(pi x) / (pi x), 1 at 0 */
CornuTensor *cornu__operation_sinc(const CornuOperands *o)
{
    CornuTensor *x = cornu_op_scale(cornu__operand_float(o), pi);
    if (!x) return NULL;
    CornuTensor *zero = cornu_op_compare(x, CORNU_EQUAL, cornu__like(x, 0.0));
    CornuTensor *safe = cornu_op_select(zero, cornu__like(x, 1.0), x);
    return cornu_op_select(zero, cornu__like(x, 1.0),
                           cornu_op_divide(cornu_op_sin(safe), safe));
}

static CornuTensor *is_infinite(const CornuOperands *o, double bound)
{
    CornuTensor *x = cornu__operand_float(o);
    return x ? cornu_op_compare(x, CORNU_EQUAL, cornu__like(x, bound)) : NULL;
}

CornuTensor *cornu__operation_isposinf(const CornuOperands *o) { return is_infinite(o, INFINITY); }
CornuTensor *cornu__operation_isneginf(const CornuOperands *o) { return is_infinite(o, -INFINITY); }

/* 0 below 0, x2 at 0, 1 above; NaN of NaN */
CornuTensor *cornu__operation_heaviside(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, true, &a, &b)) return NULL;
    CornuTensor *zero = cornu__like(a, 0.0);
    CornuTensor *above = cornu_op_select(cornu_op_compare(a, CORNU_GREATER, zero),
                                         cornu__like(a, 1.0), a);
    return cornu_op_select(cornu_op_compare(a, CORNU_EQUAL, zero), b,
                           cornu_op_select(cornu_op_compare(a, CORNU_LESS, zero), zero, above));
}

/* ---- Along axes ---- */

/* The difference of each element and the one before it, n times. */
CornuTensor *cornu__operation_diff(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const int64_t times = cornu__argument_integer(o, "n", 1);
    const int     axis = x ? cornu__argument_axis(o, "axis", cornu_tensor_shape(x).rank, -1) : -1;
    if (axis < 0) return NULL;
    for (int64_t i = 0; i < times && x; i++) {
        const int64_t n = cornu_tensor_shape(x).extent[axis];
        if (n < 2) return cornu__operation_refuse(o, "its axis has too few elements");
        x = cornu_op_subtract(cornu__slice_axis(x, axis, 1, n),
                              cornu__slice_axis(x, axis, 0, n - 1));
    }
    return x;
}

/* The weights broadcast to x; those of one axis, a list, along it. */
static CornuTensor *weights_of(const CornuOperands *o, CornuTensor *x, int64_t axes)
{
    CornuTensor *weights = cornu_op_convert(cornu__operand_tensor(o, "weights", 1),
                                            cornu_tensor_type(x).dtype);
    if (!weights) return NULL;
    const CornuShape shape = cornu_tensor_shape(x), given = cornu_tensor_shape(weights);
    CornuShape       along = { .rank = shape.rank };
    for (int i = 0; i < shape.rank; i++) along.extent[i] = axes >> i & 1 ? shape.extent[i] : 1;
    if (given.rank == 1 && shape.rank > 1) {
        if (axes & (axes - 1) || cornu_shape_count(along) != given.extent[0])
            return cornu__operation_refuse(o, "expected a weight for each place of one axis, or "
                                           "for each element");
        weights = cornu_op_reshape(weights, along);
    }
    return cornu__broadcast_to(weights, shape);
}

CornuTensor *cornu__operation_average(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_float(o);
    const int64_t axes = x ? cornu__argument_axes(o, "axis", cornu_tensor_shape(x).rank) : 0;
    if (!axes) return NULL;
    if (!cornu__argument(o, "weights", 1)) return cornu_op_reduce_mean(x, axes, false);
    CornuTensor *weights = weights_of(o, x, axes);
    return cornu_op_divide(cornu_op_reduce_sum(cornu_op_multiply(x, weights), axes, false),
                           cornu_op_reduce_sum(weights, axes, false));
}

/* y times a tensor of the call, if it is given; its axes are the last ones of y, one axis of
 * several is refused. */
static CornuTensor *combined(const CornuOperands *o, CornuTensor *y, const char *name, int at,
                             CornuTensor *(*combine)(CornuTensor *, CornuTensor *))
{
    if (!y || !cornu__argument(o, name, at)) return y;
    CornuTensor *by = cornu_op_convert(cornu__operand_tensor(o, name, at), CORNU_F32);
    return by ? combine(y, cornu__broadcast_to(by, cornu_tensor_shape(y))) : NULL;
}

/* The axes, by default the last; 0 with a pending error. Scales of other axes than the last ones
 * would have to be moved. */
static int64_t normalized_axes(const CornuOperands *o, CornuTensor *x, bool scaled)
{
    const int     last = cornu_tensor_shape(x).rank - 1;
    const int64_t axes = cornu__argument(o, "axis", -1)
                             ? cornu__argument_axes(o, "axis", last + 1) : INT64_C(1) << last;
    if (axes && scaled && axes != INT64_C(1) << last)
        return cornu__operation_refuse(o, "scales are available along the last axis alone"), 0;
    return axes;
}

/* (x - mean) / sqrt(variance + epsilon) gamma + beta.
 * Source: keras/src/ops/nn.py, _layer_normalization. */
CornuTensor *cornu__operation_layer_norm(const CornuOperands *o)
{
    CornuTensor *given = cornu__operand_float(o), *x = cornu_op_convert(given, CORNU_F32);
    const double epsilon = cornu__argument_number(o, "epsilon", 1e-7);
    if (!x) return NULL;
    if (cornu__argument_flag(o, "rms_scaling"))
        return cornu__operation_refuse(o, "rms_scaling is not available");
    const int64_t axes = normalized_axes(o, x, cornu__argument(o, "gamma", 1) ||
                                                   cornu__argument(o, "beta", 2));
    if (!axes) return NULL;
    CornuTensor *y = cornu__layer_norm(x, NULL, NULL, axes, epsilon);
    y = combined(o, y, "gamma", 1, cornu_op_multiply);
    y = combined(o, y, "beta", 2, cornu_op_add);
    return cornu_op_convert(y, cornu_tensor_type(given).dtype);
}

/* x / sqrt(mean of x^2 + epsilon) scale */
CornuTensor *cornu__operation_rms_norm(const CornuOperands *o)
{
    CornuTensor *given = cornu__operand_float(o), *x = cornu_op_convert(given, CORNU_F32);
    const double epsilon = cornu__argument_number(o, "epsilon", 1e-7);
    if (!x) return NULL;
    const int64_t axes = normalized_axes(o, x, cornu__argument(o, "scale", 1) != NULL);
    if (!axes) return NULL;
    CornuTensor *y = cornu__rms_norm(x, NULL, axes, epsilon);
    y = combined(o, y, "scale", 1, cornu_op_multiply);
    return cornu_op_convert(y, cornu_tensor_type(given).dtype);
}
