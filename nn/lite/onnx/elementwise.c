/* Elementwise operators, activations and conversions as ONNX nodes. */
#include "onnx_internal.h"

static int clipped(const Step *step, const int *x, double low, double high)
{
    return cornu__onnx_clip(step->to, x[0], low, high);
}

static int relu6(const Step *step, const int *x) { return clipped(step, x, 0.0, 6.0); }
static int relu_n1_to_1(const Step *step, const int *x) { return clipped(step, x, -1.0, 1.0); }

static int relu_0_to_1(const Step *step, const int *x)
{
    const int y = one(step->to, "Relu", x[0]);
    return two(step->to, "Min", y, cornu__onnx_scalar(step->to, 1.0));
}

static int inverse_root(const Step *step, const int *x)
{
    return one(step->to, "Reciprocal", one(step->to, "Sqrt", x[0]));
}

static int square(const Step *step, const int *x) { return two(step->to, "Mul", x[0], x[0]); }

static int squared_difference(const Step *step, const int *x)
{
    const int difference = two(step->to, "Sub", x[0], x[1]);
    return square(step, &difference);
}

static int not_equal(const Step *step, const int *x)
{
    return one(step->to, "Not", two(step->to, "Equal", x[0], x[1]));
}

static int leaky_relu(const Step *step, const int *x)
{
    const double             alpha = (double)step->op->options.alpha;
    const CornuOnnxAttribute attribute = { .name = "alpha", .numbers = &alpha };
    return cornu__onnx_elementwise(step->to, "LeakyRelu", x, 1, &attribute, 1);
}

static int gelu(const Step *step, const int *x)
{
    const CornuOnnxAttribute attribute = {
        .name = "approximate", .text = step->op->options.approximate ? "tanh" : "none",
    };
    return cornu__onnx_elementwise(step->to, "Gelu", x, 1, &attribute, 1);
}

/* exp(beta x) over its sum along the last axis. */
static int softmax(const Step *step, const int *x)
{
    const double beta = (double)step->op->options.beta;
    return cornu__onnx_softmax(step->to, beta != 1.0 ? scaled(step->to, x[0], beta) : x[0], -1);
}

/* Values are real numbers already, those of f16 too. */
static int as_it_is(const Step *step, const int *x)
{
    (void)step;
    return x[0];
}

static bool of_integers(const Step *step)
{
    return cornu__lite_onnx_dtype(cornu__lite_result(step)->dtype) == CORNU_I64;
}

/* a - floor(a / b) b, which Mod is of integers alone. */
static int floor_mod(const Step *step, const int *x)
{
    CornuOnnx *to = step->to;
    if (of_integers(step)) return two(to, "Mod", x[0], x[1]);
    const int floor = one(to, "Floor", two(to, "Div", x[0], x[1]));
    return two(to, "Sub", x[0], two(to, "Mul", floor, x[1]));
}

/* Div of integers rounds to 0. */
static int floor_div(const Step *step, const int *x)
{
    CornuOnnx *to = step->to;
    if (!of_integers(step)) return one(to, "Floor", two(to, "Div", x[0], x[1]));
    return two(to, "Div", two(to, "Sub", x[0], floor_mod(step, x)), x[1]);
}

/* x over its length along the last axis, which is at least 1e-6. */
static CornuStatus l2_normalization(const Step *step)
{
    CornuOnnx *to = step->to;
    const int  rank = rank_of(step, 0), x = cornu__lite_value(step, 0);
    if (rank < 1) return cornu__fail(CORNU_ERR_FORMAT, "of a number");
    int length = cornu__onnx_reduce(to, "ReduceSum", two(to, "Mul", x, x), rank,
                                    INT64_C(1) << (rank - 1), true);
    length = one(to, "Sqrt", length);
    length = two(to, "Max", length, cornu__onnx_scalar(to, 1e-6));
    return cornu__lite_give(step, two(to, "Div", x, length));
}

static bool is_bytes(const CornuLiteTensor *tensor)
{
    return (tensor->dtype == CORNU_LITE_I8 || tensor->dtype == CORNU_LITE_U8) &&
           tensor->quantization.count == 1;
}

/* To another grid, from real numbers or from integers. */
static CornuStatus quantize(const Step *step)
{
    const CornuLiteTensor *x = cornu__lite_operand(step, 0), *y = cornu__lite_result(step);
    const int              stored = step->of->quantized[step->op->in[0]];
    if (!step->of->loads || !stored || !is_bytes(x) || !is_bytes(y))
        return cornu__lite_give(step, cornu__lite_value(step, 0));
    return cornu__lite_give_stored(step, cornu__lite_requantize(step->of, x, y, stored));
}

const CornuLiteOnnxRow cornu__lite_onnx_elementwise[] = {
    { CORNU_LITE_ABS, 1, .each = "Abs" }, { CORNU_LITE_ADD, 2, .each = "Add" },
    { CORNU_LITE_CEIL, 1, .each = "Ceil" }, { CORNU_LITE_COS, 1, .each = "Cos" },
    { CORNU_LITE_DEQUANTIZE, 1, .value = as_it_is }, { CORNU_LITE_DIV, 2, .each = "Div" },
    { CORNU_LITE_ELU, 1, .each = "Elu" }, { CORNU_LITE_EQUAL, 2, .each = "Equal" },
    { CORNU_LITE_EXP, 1, .each = "Exp" }, { CORNU_LITE_FLOOR, 1, .each = "Floor" },
    { CORNU_LITE_FLOOR_DIV, 2, .value = floor_div },
    { CORNU_LITE_FLOOR_MOD, 2, .value = floor_mod }, { CORNU_LITE_GELU, 1, .value = gelu },
    { CORNU_LITE_GREATER, 2, .each = "Greater" },
    { CORNU_LITE_GREATER_EQUAL, 2, .each = "GreaterOrEqual" },
    { CORNU_LITE_HARD_SWISH, 1, .each = "HardSwish" },
    { CORNU_LITE_L2_NORMALIZATION, 1, .rule = l2_normalization },
    { CORNU_LITE_LEAKY_RELU, 1, .value = leaky_relu }, { CORNU_LITE_LESS, 2, .each = "Less" },
    { CORNU_LITE_LESS_EQUAL, 2, .each = "LessOrEqual" }, { CORNU_LITE_LOG, 1, .each = "Log" },
    { CORNU_LITE_LOGICAL_AND, 2, .each = "And" }, { CORNU_LITE_LOGICAL_NOT, 1, .each = "Not" },
    { CORNU_LITE_LOGICAL_OR, 2, .each = "Or" }, { CORNU_LITE_LOGISTIC, 1, .each = "Sigmoid" },
    { CORNU_LITE_LOG_SOFTMAX, 1, .whole = "LogSoftmax" },
    { CORNU_LITE_MAXIMUM, 2, .each = "Max" }, { CORNU_LITE_MINIMUM, 2, .each = "Min" },
    { CORNU_LITE_MUL, 2, .each = "Mul" }, { CORNU_LITE_NEG, 1, .each = "Neg" },
    { CORNU_LITE_NOT_EQUAL, 2, .value = not_equal }, { CORNU_LITE_POW, 2, .each = "Pow" },
    { CORNU_LITE_PRELU, 2, .each = "PRelu" }, { CORNU_LITE_QUANTIZE, 1, .rule = quantize },
    { CORNU_LITE_RELU, 1, .each = "Relu" }, { CORNU_LITE_RELU6, 1, .value = relu6 },
    { CORNU_LITE_RELU_0_TO_1, 1, .value = relu_0_to_1 },
    { CORNU_LITE_RELU_N1_TO_1, 1, .value = relu_n1_to_1 },
    { CORNU_LITE_ROUND, 1, .each = "Round" }, { CORNU_LITE_RSQRT, 1, .value = inverse_root },
    { CORNU_LITE_SELECT, 3, .each = "Where" }, { CORNU_LITE_SELECT_V2, 3, .each = "Where" },
    { CORNU_LITE_SIGN, 1, .each = "Sign" }, { CORNU_LITE_SIN, 1, .each = "Sin" },
    { CORNU_LITE_SOFTMAX, 1, .value = softmax }, { CORNU_LITE_SQRT, 1, .each = "Sqrt" },
    { CORNU_LITE_SQUARE, 1, .value = square },
    { CORNU_LITE_SQUARED_DIFFERENCE, 2, .value = squared_difference },
    { CORNU_LITE_SUB, 2, .each = "Sub" }, { CORNU_LITE_TANH, 1, .each = "Tanh" },
    { 0 },
};
