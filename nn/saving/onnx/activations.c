/* Activations, as layers and as arguments of layers. */
#include "rules_internal.h"

#include <math.h>

/* ---- By name ---- */

static int with_one(CornuOnnx *to, const char *operator, int x, const char *name, double value)
{
    const CornuOnnxAttribute attribute = { .name = name, .numbers = &value };
    return cornu__onnx_elementwise(to, operator, &x, 1, &attribute, 1);
}

static int with_two(CornuOnnx *to, const char *operator, int x, const char *first, double a,
                    const char *second, double b)
{
    const CornuOnnxAttribute attributes[] = { { .name = first, .numbers = &a },
                                              { .name = second, .numbers = &b } };
    return cornu__onnx_elementwise(to, operator, &x, 1, attributes, 2);
}

/* min(max(alpha x + beta, 0), 1) */
static int hard_sigmoid(CornuOnnx *to, int x, double alpha, double beta)
{
    return with_two(to, "HardSigmoid", x, "alpha", alpha, "beta", beta);
}

static int hard_silu(CornuOnnx *to, int x)
{
    if (to->opset >= 14) return one(to, "HardSwish", x);
    return two(to, "Mul", x, hard_sigmoid(to, x, 1.0 / 6.0, 0.5));
}

/* x < -1/2 ? x + bias : x > 1/2 ? x - bias : 0 */
static int shrink(CornuOnnx *to, int x, double bias)
{
    return with_two(to, "Shrink", x, "lambd", 0.5, "bias", bias);
}

static int clip(CornuOnnx *to, int x, double low, double high)
{
    const int in[] = { x, cornu__onnx_scalar(to, low), cornu__onnx_scalar(to, high) };
    return cornu__onnx_elementwise(to, "Clip", in, 3, NULL, 0);
}

/* x (1 + curve) / 2 */
static int gate(CornuOnnx *to, int x, int curve)
{
    return scaled(to, two(to, "Mul", x, shifted(to, curve, 1.0)), 0.5);
}

static int gelu_approximate(CornuOnnx *to, int x)
{
    const int cube = two(to, "Mul", x, two(to, "Mul", x, x));
    const int inner = two(to, "Add", x, scaled(to, cube, 0.044715));
    return gate(to, x, one(to, "Tanh", scaled(to, inner, sqrt(2.0 / acos(-1.0)))));
}

/* x < 1 ? max(x + 1, 0)^2 / 4 : x */
static int sparse_plus(CornuOnnx *to, int x)
{
    const int above = one(to, "Relu", shifted(to, x, 1.0));
    const int curve = scaled(to, two(to, "Mul", above, above), 0.25);
    return selected(to, two(to, "Less", x, cornu__onnx_scalar(to, 1.0)), curve, x);
}

static int squareplus(CornuOnnx *to, int x)
{
    const int root = one(to, "Sqrt", shifted(to, two(to, "Mul", x, x), 4.0));
    return scaled(to, two(to, "Add", x, root), 0.5);
}

static int glu(CornuOnnx *to, int x)
{
    const int a = cornu__onnx_split(to, x, -1, 2);
    return two(to, "Mul", a, one(to, "Sigmoid", a + 1));
}

/* The sum of x over the last axis, which is kept with extent 1. */
static int sum_of_last(CornuOnnx *to, int x)
{
    const int64_t last = -1;
    return joined(to, "ReduceSum", x, cornu__onnx_integers(to, &last, 1));
}

/* Cumulative sums of x along the last axis. */
static int running_sum(CornuOnnx *to, int x)
{
    int64_t last = -1;
    return joined(to, "CumSum", x,
                  cornu__onnx_constant(to, cornu_array_from(&last, cornu_scalar(CORNU_I64))));
}

/* max(x - t, 0). With z the numbers in descending order and s the sum of the first k of them, those
 * count for which k z > s - 1; t is the sum of their s, less 1, divided by their number. */
static int sparsemax(CornuOnnx *to, int x)
{
    const int count = cornu__onnx_part_of_shape(to, x, "start", -1);
    const int z = cornu__onnx_node(to, "TopK", (const int[]){ x, count }, 2, NULL, 0, 2);
    const int shape = one(to, "Shape", z);
    const int ones = joined(to, "Expand", cornu__onnx_scalar(to, 1.0), shape);
    const int s = running_sum(to, z);
    const int kz = two(to, "Mul", running_sum(to, ones), z);
    const int counts = cast(to, two(to, "Greater", kz, shifted(to, s, -1.0)), CORNU_ONNX_FLOAT);
    const int sum = shifted(to, sum_of_last(to, two(to, "Mul", counts, s)), -1.0);
    return one(to, "Relu", two(to, "Sub", x, two(to, "Div", sum, sum_of_last(to, counts))));
}

static int last_axis(CornuOnnx *to, const char *operator, int x)
{
    const int in[] = { x };
    return CORNU__ONNX_NODE(to, operator, in, { .name = "axis", .whole = -1 });
}

int cornu__onnx_activate(CornuOnnx *to, CornuActivation activation, int x)
{
    switch (activation) {
    case CORNU_LINEAR:       return x;
    case CORNU_RELU:         return one(to, "Relu", x);
    case CORNU_RELU6:        return clip(to, x, 0.0, 6.0);
    case CORNU_LEAKY_RELU:   return with_one(to, "LeakyRelu", x, "alpha", 0.2);
    case CORNU_ELU:
    case CORNU_CELU:         return one(to, "Elu", x);
    case CORNU_SELU:         return one(to, "Selu", x);
    case CORNU_GELU:         return gate(to, x, one(to, "Erf", scaled(to, x, sqrt(0.5))));
    case CORNU_GELU_APPROXIMATE: return gelu_approximate(to, x);
    case CORNU_SILU:         return two(to, "Mul", x, one(to, "Sigmoid", x));
    case CORNU_SIGMOID:      return one(to, "Sigmoid", x);
    case CORNU_HARD_SIGMOID: return hard_sigmoid(to, x, 1.0 / 6.0, 0.5);
    case CORNU_KERAS_2_HARD_SIGMOID: return hard_sigmoid(to, x, 0.2, 0.5);
    case CORNU_SPARSE_SIGMOID: return hard_sigmoid(to, x, 0.5, 0.5);
    case CORNU_HARD_SILU:    return hard_silu(to, x);
    case CORNU_TANH:         return one(to, "Tanh", x);
    case CORNU_HARD_TANH:    return clip(to, x, -1.0, 1.0);
    case CORNU_HARD_SHRINK:  return shrink(to, x, 0.0);
    case CORNU_SOFT_SHRINK:  return shrink(to, x, 0.5);
    case CORNU_TANH_SHRINK:  return two(to, "Sub", x, one(to, "Tanh", x));
    case CORNU_SOFTMAX:      return last_axis(to, "Softmax", x);
    case CORNU_LOG_SOFTMAX:  return last_axis(to, "LogSoftmax", x);
    case CORNU_SOFTPLUS:     return one(to, "Softplus", x);
    case CORNU_LOG_SIGMOID:  return one(to, "Neg", one(to, "Softplus", one(to, "Neg", x)));
    case CORNU_SOFTSIGN:     return one(to, "Softsign", x);
    case CORNU_MISH:         return two(to, "Mul", x, one(to, "Tanh", one(to, "Softplus", x)));
    case CORNU_EXPONENTIAL:  return one(to, "Exp", x);
    case CORNU_SPARSE_PLUS:  return sparse_plus(to, x);
    case CORNU_SQUAREPLUS:   return squareplus(to, x);
    case CORNU_GLU:          return glu(to, x);
    case CORNU_SPARSEMAX:    return sparsemax(to, x);
    case CORNU_DEFAULT_ACTIVATION:
    case CORNU_ACTIVATION_COUNT: break;   /* not an activation */
    }
    return x;
}

int cornu__onnx_activated(const CornuOnnxCall *call, int x)
{
    const CornuActivation activation = activation_of(call->layer, "activation");
    const CornuLayer     *own = call->layer->activation;
    const CornuLayer     *layer = own ? own : cornu__activation_layer(activation);
    int                   y = x, mask = CORNU_ONNX_NONE, out_mask;
    if (!layer) return cornu__onnx_activate(call->to, activation, x);
    const CornuStatus status = call->to->layer(&(CornuOnnxCall){
        .to = call->to, .layer = layer, .in = &x, .masks = &mask, .shapes = call->results,
        .in_count = 1, .results = call->results, .out = &y, .out_masks = &out_mask });
    if (status && !call->to->status) call->to->status = status;
    return y;
}

/* ---- Layers ---- */

static CornuStatus activation(const CornuOnnxCall *call)
{
    *call->out = activated(call, call->in[0]);
    return CORNU_OK;
}

/* x >= 0 ? x : slope x; threshold and max_value as in layers/activations/rectifiers.c. */
static CornuStatus relu(const CornuOnnxCall *call)
{
    CornuOnnx   *to = call->to;
    const int    x = call->in[0];
    const double slope = number(call->layer, "negative_slope");
    const double threshold = number(call->layer, "threshold");
    const bool   bounded = *(const double *)cornu__layer_argument(call->layer, "max_value") != 0.0;
    if (slope != 0.0 && threshold == 0.0 && !bounded) {
        *call->out = with_one(to, "LeakyRelu", x, "alpha", slope);
        return CORNU_OK;
    }
    int y = one(to, "Relu", x);
    if (threshold != 0.0) {
        const int zero = cornu__onnx_scalar(to, 0.0);
        y = selected(to, two(to, "Greater", x, cornu__onnx_scalar(to, threshold)), x, zero);
    }
    if (bounded)
        y = two(to, "Min", y, cornu__onnx_scalar(to, number(call->layer, "max_value")));
    if (slope != 0.0) {
        const int below = one(to, "Relu", shifted(to, one(to, "Neg", x), threshold));
        y = two(to, "Sub", y, scaled(to, below, slope));
    }
    *call->out = y;
    return CORNU_OK;
}

static CornuStatus leaky_relu(const CornuOnnxCall *call)
{
    *call->out = with_one(call->to, "LeakyRelu", call->in[0], "alpha",
                          number(call->layer, "negative_slope"));
    return CORNU_OK;
}

static CornuStatus prelu(const CornuOnnxCall *call)
{
    *call->out = joined(call->to, "PRelu", call->in[0],
                        cornu__onnx_weight(call->to, call->layer, 0));
    return CORNU_OK;
}

static CornuStatus elu(const CornuOnnxCall *call)
{
    *call->out = with_one(call->to, "Elu", call->in[0], "alpha", number(call->layer, "alpha"));
    return CORNU_OK;
}

/* Softmax over one axis is an operator; over several it is composed. */
static int softmax_over(CornuOnnx *to, int x, int rank, int64_t axes)
{
    const int in[] = { x };
    for (int i = 1; i < rank; i++)
        if (axes == INT64_C(1) << i)
            return CORNU__ONNX_NODE(to, "Softmax", in, { .name = "axis", .whole = i });
    const int most = cornu__onnx_reduce(to, "ReduceMax", x, rank, axes, true);
    const int exps = one(to, "Exp", two(to, "Sub", x, most));
    return two(to, "Div", exps, cornu__onnx_reduce(to, "ReduceSum", exps, rank, axes, true));
}

/* Masked elements give 0; the mask broadcasts to the input. */
static CornuStatus softmax(const CornuOnnxCall *call)
{
    int64_t axes;
    CORNU__TRY(cornu__axis_bits(cornu__layer_argument(call->layer, "axis"), call->shapes[0],
                                &axes));
    CornuOnnx *to = call->to;
    const int  mask = call->masks[0];
    int        x = call->in[0];
    if (mask) x = selected(to, mask, x, cornu__onnx_scalar(to, -1e9));
    x = softmax_over(to, x, call->shapes[0].rank, axes);
    *call->out = mask ? selected(to, mask, x, cornu__onnx_scalar(to, 0.0)) : x;
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_activations[] = {
    { "Activation", activation },
    { "ELU", elu },
    { "LeakyReLU", leaky_relu },
    { "PReLU", prelu },
    { "ReLU", relu },
    { "Softmax", softmax },
    { 0 },
};
