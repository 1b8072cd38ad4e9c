#include "activations.h"

#include <math.h>
#include <string.h>

#include "../device/nearest.h"
#include "../device/status_internal.h"

static const char *const names[CORNU_ACTIVATION_COUNT] = {
#define X(id, name, formula) [CORNU_##id] = name,
    CORNU_ACTIVATION_MAP(X)
#undef X
};

const char *cornu_activation_name(CornuActivation activation)
{
    return (unsigned)activation < CORNU_ACTIVATION_COUNT ? names[activation] : NULL;
}

CornuStatus cornu_activation_find(const char *name, CornuActivation *activation)
{
    if (!strcmp(name, "swish")) name = names[CORNU_SILU];
    for (int i = 0; i < CORNU_ACTIVATION_COUNT; i++)
        if (!strcmp(name, names[i])) {
            *activation = (CornuActivation)i;
            return CORNU_OK;
        }
    const char *near = cornu__nearest(name, names, CORNU_ACTIVATION_COUNT);
    return cornu__fail(CORNU_ERR_ARGUMENT, "activation \"%s\" is not known%s%s%s", name,
                       near ? "; is \"" : "", near ? near : "", near ? "\" meant?" : "");
}

/* min(max(x, 0), 6), whose slope at 6 is 0 like that at 0 */
static CornuTensor *relu6(CornuTensor *x)
{
    CornuTensor *y = cornu_op_relu(x);
    CornuTensor *six = cornu_op_constant_like(y, 6.0);
    return cornu_op_select(cornu_op_compare(y, CORNU_LESS, six), y, six);
}

static CornuTensor *keras_2_hard_sigmoid(CornuTensor *x)
{
    CornuTensor *line = cornu_op_shift(cornu_op_scale(x, 0.2), 0.5);
    line = cornu_op_maximum(line, cornu_op_constant_like(line, 0.0));
    return cornu_op_minimum(line, cornu_op_constant_like(line, 1.0));
}

static CornuTensor *leaky_relu(CornuTensor *x)
{
    CornuTensor *zero = cornu_op_constant_like(x, 0.0);
    CornuTensor *positive = cornu_op_compare(x, CORNU_GREATER_EQUAL, zero);
    return cornu_op_select(positive, x, cornu_op_scale(x, 0.2));
}

static CornuTensor *gelu(CornuTensor *x)
{
    CornuTensor *erf = cornu_op_erf(cornu_op_scale(x, sqrt(0.5)));
    return cornu_op_multiply(x, cornu_op_scale(cornu_op_shift(erf, 1.0), 0.5));
}

CornuTensor *cornu_activation_apply(CornuActivation activation, CornuTensor *x)
{
    /* Source: Klambauer et al., "Self-Normalizing Neural Networks", arXiv 1706.02515. */
    const double selu_scale = 1.0507009873554804934193349852946;
    const double selu_alpha = 1.6732632423543772848170429916717;
    switch (activation) {
    case CORNU_LINEAR:       return x;
    case CORNU_RELU:         return cornu_op_relu(x);
    case CORNU_RELU6:        return relu6(x);
    case CORNU_LEAKY_RELU:   return leaky_relu(x);
    case CORNU_ELU:          return cornu_op_elu(x, 1.0);
    case CORNU_SELU:         return cornu_op_scale(cornu_op_elu(x, selu_alpha), selu_scale);
    case CORNU_GELU:         return gelu(x);
    case CORNU_SILU:         return cornu_op_multiply(x, cornu_op_sigmoid(x));
    case CORNU_SIGMOID:      return cornu_op_sigmoid(x);
    case CORNU_HARD_SIGMOID: return cornu_op_scale(relu6(cornu_op_shift(x, 3.0)), 1.0 / 6.0);
    case CORNU_KERAS_2_HARD_SIGMOID: return keras_2_hard_sigmoid(x);
    case CORNU_TANH:         return cornu_op_tanh(x);
    case CORNU_SOFTMAX:      return cornu_op_softmax(x);
    case CORNU_SOFTPLUS:     return cornu_op_softplus(x);
    case CORNU_SOFTSIGN:
        return cornu_op_divide(x, cornu_op_shift(cornu_op_absolute(x), 1.0));
    case CORNU_MISH:
        return cornu_op_multiply(x, cornu_op_tanh(cornu_op_softplus(x)));
    case CORNU_EXPONENTIAL:  return cornu_op_exp(x);
    case CORNU_DEFAULT_ACTIVATION:
    case CORNU_ACTIVATION_COUNT: break;
    }
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "activation %d computes nothing", (int)activation);
}
