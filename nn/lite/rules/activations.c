/* Activations, as layers and as arguments of layers. */
#include "rules_internal.h"

#include <math.h>

static int one(CornuLite *to, CornuLiteCode code, int x) { return cornu__lite_one(to, code, x); }

static int two(CornuLite *to, CornuLiteCode code, int a, int b)
{
    return cornu__lite_two(to, code, a, b);
}

static int with(CornuLite *to, CornuLiteCode code, int x, double value)
{
    return cornu__lite_with(to, code, x, value);
}

/* ---- By name ---- */

/* x >= 0 ? x : alpha x */
static int leaky_relu(CornuLite *to, int x, double alpha)
{
    const CornuLiteOptions options = { .alpha = (float)alpha };
    return cornu__lite_node(to, CORNU_LITE_LEAKY_RELU, &x, 1, shape_of(to, x), &options);
}

/* x > 0 ? x : alpha (exp(x) - 1); the operator has alpha 1. */
static int elu(CornuLite *to, int x, double alpha)
{
    if (alpha == 1.0) return one(to, CORNU_LITE_ELU, x);
    const int below = one(to, CORNU_LITE_ELU, with(to, CORNU_LITE_MINIMUM, x, 0.0));
    const int scaled = with(to, CORNU_LITE_MUL, below, alpha);
    return two(to, CORNU_LITE_ADD, scaled, one(to, CORNU_LITE_RELU, x));
}

/* min(max(x + 3, 0), 6) / 6 */
static int hard_sigmoid(CornuLite *to, int x)
{
    const int bounded = one(to, CORNU_LITE_RELU6, with(to, CORNU_LITE_ADD, x, 3.0));
    return with(to, CORNU_LITE_MUL, bounded, 1.0 / 6.0);
}

/* min(max(slope x + 1/2, 0), 1) */
static int clipped_line(CornuLite *to, int x, double slope)
{
    const int line = with(to, CORNU_LITE_ADD, with(to, CORNU_LITE_MUL, x, slope), 0.5);
    return with(to, CORNU_LITE_MINIMUM, one(to, CORNU_LITE_RELU, line), 1.0);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)) */
static int softplus(CornuLite *to, int x)
{
    const int size = one(to, CORNU_LITE_ABS, x);
    const int small = one(to, CORNU_LITE_EXP, one(to, CORNU_LITE_NEG, size));
    const int rest = one(to, CORNU_LITE_LOG, with(to, CORNU_LITE_ADD, small, 1.0));
    return two(to, CORNU_LITE_ADD, rest, one(to, CORNU_LITE_RELU, x));
}

static int gelu(CornuLite *to, int x, bool approximate)
{
    const CornuLiteOptions options = { .approximate = approximate };
    return cornu__lite_node(to, CORNU_LITE_GELU, &x, 1, shape_of(to, x), &options);
}

static int softmax(CornuLite *to, int x)
{
    const CornuLiteOptions options = { .beta = 1.0f };
    return cornu__lite_node(to, CORNU_LITE_SOFTMAX, &x, 1, shape_of(to, x), &options);
}

/* Constants of "Self-Normalizing Neural Networks", arXiv 1706.02515. */
static int selu(CornuLite *to, int x)
{
    return with(to, CORNU_LITE_MUL, elu(to, x, 1.6732632423543772), 1.0507009873554805);
}

CornuStatus cornu__lite_activate(CornuLite *to, const CornuLayer *layer, CornuActivation activation,
                                 int x, int *y)
{
    switch (activation) {
    case CORNU_LINEAR:       *y = x; break;
    case CORNU_RELU:         *y = one(to, CORNU_LITE_RELU, x); break;
    case CORNU_RELU6:        *y = one(to, CORNU_LITE_RELU6, x); break;
    case CORNU_LEAKY_RELU:   *y = leaky_relu(to, x, 0.2); break;
    case CORNU_ELU:
    case CORNU_CELU:         *y = elu(to, x, 1.0); break;
    case CORNU_SELU:         *y = selu(to, x); break;
    case CORNU_GELU:         *y = gelu(to, x, false); break;
    case CORNU_GELU_APPROXIMATE: *y = gelu(to, x, true); break;
    case CORNU_SILU:
        *y = two(to, CORNU_LITE_MUL, x, one(to, CORNU_LITE_LOGISTIC, x)); break;
    case CORNU_SIGMOID:      *y = one(to, CORNU_LITE_LOGISTIC, x); break;
    case CORNU_HARD_SIGMOID: *y = hard_sigmoid(to, x); break;
    case CORNU_KERAS_2_HARD_SIGMOID: *y = clipped_line(to, x, 0.2); break;
    case CORNU_SPARSE_SIGMOID: *y = clipped_line(to, x, 0.5); break;
    case CORNU_HARD_SILU:    *y = one(to, CORNU_LITE_HARD_SWISH, x); break;
    case CORNU_TANH:         *y = one(to, CORNU_LITE_TANH, x); break;
    case CORNU_HARD_TANH:    *y = one(to, CORNU_LITE_RELU_N1_TO_1, x); break;
    case CORNU_TANH_SHRINK:
        *y = two(to, CORNU_LITE_SUB, x, one(to, CORNU_LITE_TANH, x)); break;
    case CORNU_SOFTMAX:      *y = softmax(to, x); break;
    case CORNU_LOG_SOFTMAX:  *y = one(to, CORNU_LITE_LOG_SOFTMAX, x); break;
    case CORNU_SOFTPLUS:     *y = softplus(to, x); break;
    case CORNU_LOG_SIGMOID:
        *y = one(to, CORNU_LITE_NEG, softplus(to, one(to, CORNU_LITE_NEG, x))); break;
    case CORNU_SOFTSIGN:
        *y = two(to, CORNU_LITE_DIV, x,
                 with(to, CORNU_LITE_ADD, one(to, CORNU_LITE_ABS, x), 1.0)); break;
    case CORNU_MISH:
        *y = two(to, CORNU_LITE_MUL, x, one(to, CORNU_LITE_TANH, softplus(to, x))); break;
    case CORNU_EXPONENTIAL:  *y = one(to, CORNU_LITE_EXP, x); break;
    default:
        return cornu__lite_refuse(layer, cornu_activation_name(activation),
                                  "which this version has no operators for");
    }
    return CORNU_OK;
}

CornuStatus cornu__lite_activated(const CornuLiteCall *call, int x, int *y)
{
    const CornuActivation activation = activation_of(call->layer, "activation");
    const CornuLayer     *own = call->layer->activation;
    const CornuLayer     *layer = own ? own : cornu__activation_layer(activation);
    if (!layer) return cornu__lite_activate(call->to, call->layer, activation, x, y);
    CornuLiteCall inner = *call;
    inner.layer = layer;
    inner.in = &x;
    inner.in_count = 1;
    inner.shapes = call->results;
    inner.out = y;
    return cornu__lite_layer(&inner);
}

/* ---- Layers ---- */

static CornuStatus activation(const CornuLiteCall *call)
{
    return cornu__lite_activated(call, call->in[0], call->out);
}

/* x >= 0 ? x : slope x; threshold and max_value as in layers/activations/rectifiers.c. */
static CornuStatus relu(const CornuLiteCall *call)
{
    CornuLite    *to = call->to;
    const int     x = call->in[0];
    const double  slope = number(call->layer, "negative_slope");
    const double *bound = cornu__layer_argument(call->layer, "max_value");
    const double  most = number(call->layer, "max_value");
    if (number(call->layer, "threshold") != 0.0 || (slope != 0.0 && *bound != 0.0))
        return cornu__lite_refuse(call->layer, "this ReLU", "which has no threshold, and either a "
                                  "negative slope or a largest value");
    if (slope != 0.0) *call->out = leaky_relu(to, x, slope);
    else if (*bound == 0.0) *call->out = one(to, CORNU_LITE_RELU, x);
    else if (most == 6.0) *call->out = one(to, CORNU_LITE_RELU6, x);
    else *call->out = with(to, CORNU_LITE_MINIMUM, one(to, CORNU_LITE_RELU, x), most);
    return CORNU_OK;
}

static CornuStatus leaky_layer(const CornuLiteCall *call)
{
    *call->out = leaky_relu(call->to, call->in[0], number(call->layer, "negative_slope"));
    return CORNU_OK;
}

static CornuStatus elu_layer(const CornuLiteCall *call)
{
    *call->out = elu(call->to, call->in[0], number(call->layer, "alpha"));
    return CORNU_OK;
}

static CornuStatus prelu(const CornuLiteCall *call)
{
    CornuLite *to = call->to;
    const int  in[] = { call->in[0], cornu__lite_weight(to, call->layer, 0) };
    *call->out = cornu__lite_node(to, CORNU_LITE_PRELU, in, 2, call->results[0], NULL);
    return CORNU_OK;
}

/* exp(x - max) / sum, over any axes; the operator takes the last one. */
static CornuStatus softmax_layer(const CornuLiteCall *call)
{
    CornuLite *to = call->to;
    int64_t    axes;
    CORNU__TRY(cornu__axis_bits(cornu__layer_argument(call->layer, "axis"), call->shapes[0],
                                &axes));
    if (axes == INT64_C(1) << (call->shapes[0].rank - 1)) {
        *call->out = softmax(to, call->in[0]);
        return CORNU_OK;
    }
    const int most = cornu__lite_reduce(to, CORNU_LITE_REDUCE_MAX, call->in[0], axes, true);
    const int exps = one(to, CORNU_LITE_EXP, two(to, CORNU_LITE_SUB, call->in[0], most));
    *call->out = two(to, CORNU_LITE_DIV, exps,
                     cornu__lite_reduce(to, CORNU_LITE_SUM, exps, axes, true));
    return CORNU_OK;
}

const CornuLiteRow cornu__lite_activations[] = {
    { "Activation", activation },
    { "ELU", elu_layer },
    { "LeakyReLU", leaky_layer },
    { "PReLU", prelu },
    { "ReLU", relu },
    { "Softmax", softmax_layer },
    { 0 },
};
