/* Elementwise operators, activations and conversions as ONNX nodes. */
#include "onnx_internal.h"

typedef CornuLiteStepOnnx Step;

static CornuStatus unary(const Step *step, const char *operator)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    return cornu__lite_give(step, one(step->to, operator, cornu__lite_value(step, 0)));
}

static CornuStatus binary(const Step *step, const char *operator)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int a = cornu__lite_value(step, 0), b = cornu__lite_value(step, 1);
    return cornu__lite_give(step, two(step->to, operator, a, b));
}

#define UNARY(name, operator) \
    static CornuStatus name(const Step *step) { return unary(step, operator); }
#define BINARY(name, operator) \
    static CornuStatus name(const Step *step) { return binary(step, operator); }
UNARY(absolute, "Abs")
UNARY(cosine, "Cos")
UNARY(elu, "Elu")
UNARY(exponential, "Exp")
UNARY(hard_swish, "HardSwish")
UNARY(round_down, "Floor")
UNARY(round_even, "Round")
UNARY(round_up, "Ceil")
UNARY(sign_of, "Sign")
UNARY(logarithm, "Log")
UNARY(logistic, "Sigmoid")
UNARY(negative, "Neg")
UNARY(opposite, "Not")
UNARY(relu, "Relu")
UNARY(sine, "Sin")
UNARY(square_root, "Sqrt")
UNARY(tanh_, "Tanh")
BINARY(add, "Add")
BINARY(subtract, "Sub")
BINARY(multiply, "Mul")
BINARY(divide, "Div")
BINARY(maximum, "Max")
BINARY(minimum, "Min")
BINARY(power, "Pow")
BINARY(equal, "Equal")
BINARY(less, "Less")
BINARY(less_equal, "LessOrEqual")
BINARY(greater, "Greater")
BINARY(greater_equal, "GreaterOrEqual")
BINARY(both, "And")
BINARY(either, "Or")
BINARY(prelu, "PRelu")
#undef UNARY
#undef BINARY

static CornuStatus clip(const Step *step, double low, double high)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    return cornu__lite_give(step, cornu__onnx_clip(step->to, cornu__lite_value(step, 0), low,
                                                   high));
}

static CornuStatus relu6(const Step *step) { return clip(step, 0.0, 6.0); }
static CornuStatus relu_n1_to_1(const Step *step) { return clip(step, -1.0, 1.0); }

static CornuStatus log_softmax(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = cornu__lite_value(step, 0);
    return cornu__lite_give(step, cornu__onnx_node(step->to, "LogSoftmax", &x, 1, NULL, 0, 1));
}

static CornuStatus inverse_root(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int root = one(step->to, "Sqrt", cornu__lite_value(step, 0));
    return cornu__lite_give(step, one(step->to, "Reciprocal", root));
}

static CornuStatus square(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = cornu__lite_value(step, 0);
    return cornu__lite_give(step, two(step->to, "Mul", x, x));
}

static CornuStatus squared_difference(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int a = cornu__lite_value(step, 0), b = cornu__lite_value(step, 1);
    const int difference = two(step->to, "Sub", a, b);
    return cornu__lite_give(step, two(step->to, "Mul", difference, difference));
}

static CornuStatus not_equal(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int a = cornu__lite_value(step, 0), b = cornu__lite_value(step, 1);
    return cornu__lite_give(step, one(step->to, "Not", two(step->to, "Equal", a, b)));
}

/* condition ? a : b */
static CornuStatus select_(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 3, -1));
    const int condition = cornu__lite_value(step, 0), a = cornu__lite_value(step, 1);
    return cornu__lite_give(step, selected(step->to, condition, a, cornu__lite_value(step, 2)));
}

static CornuStatus leaky_relu(const Step *step)
{
    const double             alpha = (double)step->op->options.alpha;
    const CornuOnnxAttribute attribute = { .name = "alpha", .numbers = &alpha };
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = cornu__lite_value(step, 0);
    return cornu__lite_give(step, cornu__onnx_elementwise(step->to, "LeakyRelu", &x, 1, &attribute,
                                                          1));
}

static CornuStatus gelu(const Step *step)
{
    const CornuOnnxAttribute attribute = {
        .name = "approximate", .text = step->op->options.approximate ? "tanh" : "none",
    };
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = cornu__lite_value(step, 0);
    return cornu__lite_give(step, cornu__onnx_elementwise(step->to, "Gelu", &x, 1, &attribute, 1));
}

/* exp(beta x) over its sum along the last axis. */
static CornuStatus softmax(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const double beta = (double)step->op->options.beta;
    int          x = cornu__lite_value(step, 0);
    if (beta != 1.0) x = scaled(step->to, x, beta);
    return cornu__lite_give(step, cornu__onnx_softmax(step->to, x, -1));
}

/* Values are real numbers already, those of f16 too. */
static CornuStatus as_it_is(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    return cornu__lite_give(step, cornu__lite_value(step, 0));
}

/* Between 0 and 1. */
static CornuStatus relu_0_to_1(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = one(step->to, "Relu", cornu__lite_value(step, 0));
    return cornu__lite_give(step, two(step->to, "Min", x, cornu__onnx_scalar(step->to, 1.0)));
}

static bool of_integers(const Step *step)
{
    return cornu__lite_onnx_dtype(cornu__lite_result(step)->dtype) == CORNU_I64;
}

/* a - floor(a / b) b, which Mod is of integers alone. */
static int remainder_of(const Step *step, int a, int b)
{
    if (of_integers(step)) return two(step->to, "Mod", a, b);
    const int floor = one(step->to, "Floor", two(step->to, "Div", a, b));
    return two(step->to, "Sub", a, two(step->to, "Mul", floor, b));
}

/* Div of integers rounds to 0. */
static CornuStatus floor_div(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int a = cornu__lite_value(step, 0), b = cornu__lite_value(step, 1);
    if (!of_integers(step))
        return cornu__lite_give(step, one(step->to, "Floor", two(step->to, "Div", a, b)));
    const int exact = two(step->to, "Sub", a, remainder_of(step, a, b));
    return cornu__lite_give(step, two(step->to, "Div", exact, b));
}

static CornuStatus floor_mod(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int a = cornu__lite_value(step, 0), b = cornu__lite_value(step, 1);
    return cornu__lite_give(step, remainder_of(step, a, b));
}

/* x over its length along the last axis, which is at least 1e-6. */
static CornuStatus l2_normalization(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int rank = cornu__lite_operand(step, 0)->shape.rank, x = cornu__lite_value(step, 0);
    if (rank < 1) return cornu__fail(CORNU_ERR_FORMAT, "of a number");
    int length = cornu__onnx_reduce(step->to, "ReduceSum", two(step->to, "Mul", x, x), rank,
                                    INT64_C(1) << (rank - 1), true);
    length = one(step->to, "Sqrt", length);
    length = two(step->to, "Max", length, cornu__onnx_scalar(step->to, 1e-6));
    return cornu__lite_give(step, two(step->to, "Div", x, length));
}

static bool is_bytes(const CornuLiteTensor *tensor)
{
    return (tensor->dtype == CORNU_LITE_I8 || tensor->dtype == CORNU_LITE_U8) &&
           tensor->quantization.count == 1;
}

/* To another grid, from real numbers or from integers. */
static CornuStatus quantize(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const CornuLiteTensor *x = cornu__lite_operand(step, 0), *y = cornu__lite_result(step);
    const int              stored = step->of->quantized[step->op->in[0]];
    if (!step->of->loads || !stored || !is_bytes(x) || !is_bytes(y)) return as_it_is(step);
    return cornu__lite_give_stored(step, cornu__lite_requantize(step->of, x, y, stored));
}

const CornuLiteOnnxRow cornu__lite_onnx_elementwise[] = {
    { CORNU_LITE_ABS, absolute },
    { CORNU_LITE_ADD, add },
    { CORNU_LITE_CEIL, round_up },
    { CORNU_LITE_COS, cosine },
    { CORNU_LITE_DEQUANTIZE, as_it_is },
    { CORNU_LITE_DIV, divide },
    { CORNU_LITE_ELU, elu },
    { CORNU_LITE_EQUAL, equal },
    { CORNU_LITE_EXP, exponential },
    { CORNU_LITE_FLOOR, round_down },
    { CORNU_LITE_FLOOR_DIV, floor_div },
    { CORNU_LITE_FLOOR_MOD, floor_mod },
    { CORNU_LITE_GELU, gelu },
    { CORNU_LITE_GREATER, greater },
    { CORNU_LITE_GREATER_EQUAL, greater_equal },
    { CORNU_LITE_HARD_SWISH, hard_swish },
    { CORNU_LITE_L2_NORMALIZATION, l2_normalization },
    { CORNU_LITE_LEAKY_RELU, leaky_relu },
    { CORNU_LITE_LESS, less },
    { CORNU_LITE_LESS_EQUAL, less_equal },
    { CORNU_LITE_LOG, logarithm },
    { CORNU_LITE_LOGICAL_AND, both },
    { CORNU_LITE_LOGICAL_NOT, opposite },
    { CORNU_LITE_LOGICAL_OR, either },
    { CORNU_LITE_LOGISTIC, logistic },
    { CORNU_LITE_LOG_SOFTMAX, log_softmax },
    { CORNU_LITE_MAXIMUM, maximum },
    { CORNU_LITE_MINIMUM, minimum },
    { CORNU_LITE_MUL, multiply },
    { CORNU_LITE_NEG, negative },
    { CORNU_LITE_NOT_EQUAL, not_equal },
    { CORNU_LITE_POW, power },
    { CORNU_LITE_PRELU, prelu },
    { CORNU_LITE_QUANTIZE, quantize },
    { CORNU_LITE_RELU, relu },
    { CORNU_LITE_RELU6, relu6 },
    { CORNU_LITE_RELU_0_TO_1, relu_0_to_1 },
    { CORNU_LITE_RELU_N1_TO_1, relu_n1_to_1 },
    { CORNU_LITE_ROUND, round_even },
    { CORNU_LITE_RSQRT, inverse_root },
    { CORNU_LITE_SELECT, select_ },
    { CORNU_LITE_SELECT_V2, select_ },
    { CORNU_LITE_SIGN, sign_of },
    { CORNU_LITE_SIN, sine },
    { CORNU_LITE_SOFTMAX, softmax },
    { CORNU_LITE_SQRT, square_root },
    { CORNU_LITE_SQUARE, square },
    { CORNU_LITE_SQUARED_DIFFERENCE, squared_difference },
    { CORNU_LITE_SUB, subtract },
    { CORNU_LITE_TANH, tanh_ },
    { 0 },
};
