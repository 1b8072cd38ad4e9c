/* Operations of keras.ops.nn: activations and what is near them. */
#include "operation_internal.h"

#include "../activations.h"

#include <math.h>
#include <string.h>

static CornuTensor *activated(const CornuOperands *o, CornuActivation activation)
{
    CornuTensor *x = cornu__operand_float(o);
    return x ? cornu_activation_apply(activation, x) : NULL;
}

#define ACTIVATION(name, activation)                                   \
    CornuTensor *cornu__operation_##name(const CornuOperands *o)       \
    {                                                                  \
        return activated(o, (activation));                             \
    }
ACTIVATION(relu, CORNU_RELU)
ACTIVATION(relu6, CORNU_RELU6)
ACTIVATION(silu, CORNU_SILU)
ACTIVATION(selu, CORNU_SELU)
ACTIVATION(sigmoid, CORNU_SIGMOID)
ACTIVATION(softplus, CORNU_SOFTPLUS)
ACTIVATION(softsign, CORNU_SOFTSIGN)
ACTIVATION(log_sigmoid, CORNU_LOG_SIGMOID)
ACTIVATION(hard_sigmoid, CORNU_HARD_SIGMOID)
ACTIVATION(hard_silu, CORNU_HARD_SILU)
ACTIVATION(hard_tanh, CORNU_HARD_TANH)
ACTIVATION(tanh_shrink, CORNU_TANH_SHRINK)
ACTIVATION(sparse_sigmoid, CORNU_SPARSE_SIGMOID)
ACTIVATION(sparse_plus, CORNU_SPARSE_PLUS)
#undef ACTIVATION

CornuTensor *cornu__operation_gelu(const CornuOperands *o)
{
    const json_t *approximate = cornu__argument(o, "approximate", -1);
    return activated(o, json_is_false(approximate) ? CORNU_GELU : CORNU_GELU_APPROXIMATE);
}

/* ---- With arguments ---- */

/* comparison(x, bound) ? a : b */
static CornuTensor *where(CornuTensor *x, CornuComparison comparison, double bound, CornuTensor *a,
                          CornuTensor *b)
{
    return x ? cornu_op_select(cornu_op_compare(x, comparison, cornu__like(x, bound)), a, b) : NULL;
}

CornuTensor *cornu__operation_leaky_relu(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    const double slope = cornu__argument_number(o, "negative_slope", 0.2);
    return where(x, CORNU_GREATER_EQUAL, 0.0, x, cornu_op_scale(x, slope));
}

CornuTensor *cornu__operation_elu(const CornuOperands *o)
{
    return cornu_op_elu(cornu__operand_float(o), cornu__argument_number(o, "alpha", 1.0));
}

/* max(x, 0) + min(alpha (exp(x / alpha) - 1), 0) */
CornuTensor *cornu__operation_celu(const CornuOperands *o)
{
    const double alpha = cornu__argument_number(o, "alpha", 1.0);
    return cornu_op_scale(cornu_op_elu(cornu_op_scale(cornu__operand_float(o), 1.0 / alpha), 1.0),
                          alpha);
}

CornuTensor *cornu__operation_hard_shrink(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    const double bound = cornu__argument_number(o, "threshold", 0.5);
    CornuTensor *size = cornu_op_absolute(x);
    return where(size, CORNU_GREATER, bound, x, cornu__like(x, 0.0));
}

CornuTensor *cornu__operation_soft_shrink(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    const double bound = cornu__argument_number(o, "threshold", 0.5);
    CornuTensor *below = where(x, CORNU_LESS, -bound, cornu_op_shift(x, bound),
                               cornu__like(x, 0.0));
    return where(x, CORNU_GREATER, bound, cornu_op_shift(x, -bound), below);
}

CornuTensor *cornu__operation_threshold(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    const double bound = cornu__argument_number(o, "threshold", 0.0);
    const double value = cornu__argument_number(o, "default_value", 0.0);
    return where(x, CORNU_GREATER, bound, x, cornu__like(x, value));
}

/* (x + sqrt(x^2 + b)) / 2 */
CornuTensor *cornu__operation_squareplus(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    const double b = cornu__argument_number(o, "b", 4.0);
    CornuTensor *root = cornu_op_sqrt(cornu_op_shift(cornu_op_square(x), b));
    return cornu_op_scale(cornu_op_add(x, root), 0.5);
}

/* x and the axis, the last by default; false with a pending error */
static bool along(const CornuOperands *o, CornuTensor **x, int *axis)
{
    *x = cornu__operand_float(o);
    *axis = *x ? cornu__argument_axis(o, "axis", cornu_tensor_shape(*x).rank, -1) : -1;
    return *axis >= 0;
}

CornuTensor *cornu__operation_glu(const CornuOperands *o)
{
    CornuTensor *x;
    int          axis;
    if (!along(o, &x, &axis)) return NULL;
    const int64_t half = cornu_tensor_shape(x).extent[axis] / 2;
    return cornu_op_multiply(cornu__slice_axis(x, axis, 0, half),
                             cornu_op_sigmoid(cornu__slice_axis(x, axis, half, 2 * half)));
}

/* The activation along the last axis, with the axis moved there and back. */
static CornuTensor *along_axis(const CornuOperands *o, CornuActivation activation)
{
    CornuTensor *x;
    int          axis;
    if (!along(o, &x, &axis)) return NULL;
    const int last = cornu_tensor_shape(x).rank - 1;
    if (axis == last) return cornu_activation_apply(activation, x);
    return cornu__move_axis(cornu_activation_apply(activation, cornu__move_axis(x, axis, last)),
                            last, axis);
}

/* Over several axes: exp(x) / sum of exp(x), less the largest. */
CornuTensor *cornu__operation_softmax(const CornuOperands *o)
{
    if (!json_is_array(cornu__argument(o, "axis", -1))) return along_axis(o, CORNU_SOFTMAX);
    CornuTensor *x = cornu__operand_float(o);
    const int64_t axes = x ? cornu__argument_axes(o, "axis", cornu_tensor_shape(x).rank) : 0;
    if (!axes) return NULL;
    CornuTensor *exps = cornu_op_exp(cornu_op_subtract(x, cornu_op_reduce_max(x, axes, true)));
    return cornu_op_divide(exps, cornu_op_reduce_sum(exps, axes, true));
}

CornuTensor *cornu__operation_log_softmax(const CornuOperands *o)
{
    return along_axis(o, CORNU_LOG_SOFTMAX);
}

CornuTensor *cornu__operation_sparsemax(const CornuOperands *o)
{
    return along_axis(o, CORNU_SPARSEMAX);
}

/* x / max(length, epsilon) over an axis, for the 2-norm.
 * Source: keras/src/ops/nn.py, _normalize. */
CornuTensor *cornu__operation_normalize(const CornuOperands *o)
{
    CornuTensor *x;
    int          axis;
    const double epsilon = cornu__argument_number(o, "epsilon", 1e-7);
    if (!along(o, &x, &axis)) return NULL;
    if (cornu__argument_number(o, "order", 2.0) != 2.0)
        return cornu__operation_refuse(o, "order is only available as 2");
    CornuTensor *sum = cornu_op_reduce_sum(cornu_op_square(x), INT64_C(1) << axis, true);
    return cornu_op_multiply(x, cornu_op_rsqrt(cornu_op_maximum(sum, cornu__like(sum, epsilon *
                                                                                 epsilon))));
}

/* The weights of the three channels: keras/src/backend/jax/image.py, rgb_to_grayscale. */
CornuTensor *cornu__operation_rgb_to_grayscale(const CornuOperands *o)
{
    static const double weights[] = { 0.2989, 0.587, 0.114 };
    CornuTensor *x = cornu__operand_float(o), *y = NULL;
    if (!x) return NULL;
    const int last = cornu_tensor_shape(x).rank - 1;
    if (strcmp(cornu__argument_text(o, "data_format", "channels_last"), "channels_last") ||
        cornu_tensor_shape(x).extent[last] != 3)
        return cornu__operation_refuse(o, "expected three channels, the last axis");
    for (int c = 0; c < 3; c++) {
        CornuTensor *part = cornu_op_scale(cornu__slice_axis(x, last, c, c + 1), weights[c]);
        y = y ? cornu_op_add(y, part) : part;
    }
    return y;
}
