/* The quantized operators of onnxruntime, domain com.microsoft. Source: docs/ContribOperators.md of
 * github.com/microsoft/onnxruntime. */
#include "quantized_internal.h"

/* ---- Functions of reals between quantized numbers ---- */

typedef CornuTensor *Two(CornuTensor *a, CornuTensor *b);

/* a, scale, zero; b, scale, zero; scale and zero of the result. */
static CornuStatus two(CornuReadStep *step, Two *function)
{
    CornuTensor *a = cornu__dequantized(step, 0, 1, 2, -1);
    CornuTensor *b = cornu__dequantized(step, 3, 4, 5, -1);
    return cornu__quantized_result(step, a && b ? function(a, b) : NULL, 6, 7);
}

static CornuStatus read_add(CornuReadStep *step) { return two(step, cornu_op_add); }
static CornuStatus read_mul(CornuReadStep *step) { return two(step, cornu_op_multiply); }

/* x, scale, zero; scale and zero of the result. `images`: channels_last says the last axis is C. */
static CornuStatus by(CornuReadStep *step, const char *op, bool images)
{
    const bool   last = images && cornu__whole(step, "channels_last", 0);
    CornuTensor *x = cornu__dequantized(step, 0, 1, 2, -1), *y = NULL;
    if (last) x = cornu__read_channels_first(x);
    if (!x) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, op, &x, 1, &y));
    return cornu__quantized_result(step, last ? cornu__read_channels_last(y) : y, 3, 4);
}

static CornuStatus read_sigmoid(CornuReadStep *step) { return by(step, "Sigmoid", false); }
static CornuStatus read_leaky(CornuReadStep *step) { return by(step, "LeakyRelu", false); }
static CornuStatus read_average(CornuReadStep *step) { return by(step, "AveragePool", true); }
static CornuStatus read_reduce(CornuReadStep *step) { return by(step, "ReduceMean", false); }
static CornuStatus read_global(CornuReadStep *step)
{
    return by(step, "GlobalAveragePool", true);
}

/* The opset whose Softmax it is is an attribute. */
static CornuStatus read_softmax(CornuReadStep *step)
{
    CornuReadRun  run = *step->run;
    CornuReadStep own = *step;
    run.opset = cornu__whole(step, "opset", step->run->opset);
    own.run = &run;
    return by(&own, "Softmax", false);
}

/* scale and zero of the result; then x, scale and zero of each operand. */
static CornuStatus read_concat(CornuReadStep *step)
{
    enum { MOST = 64 };
    CornuTensor *x[MOST];
    const int    count = (step->in_count - 2) / 3;
    int          axis;
    if (count < 1 || count > MOST)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%d operands, expected 1 to %d", count, MOST);
    for (int i = 0; i < count; i++) {
        x[i] = cornu__dequantized(step, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i, -1);
        if (!x[i]) return cornu_error_take();
    }
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", 0), cornu__rank_of(x[0]), &axis));
    return cornu__quantized_result(step, cornu_op_concat(x, count, axis), 0, 1);
}

static CornuStatus read_where(CornuReadStep *step)
{
    CornuTensor *which = cornu_op_convert(cornu__operand_of(step, 0), CORNU_BOOL);
    CornuTensor *a = cornu__dequantized(step, 1, 2, 3, -1);
    CornuTensor *b = cornu__dequantized(step, 4, 5, 6, -1);
    return cornu__quantized_result(step, cornu_op_select(which, a, b), 7, 8);
}

/* ---- Products ---- */

/* a, scale, zero; b, scale, zero, with one or one for each column; a bias of scale
 * alpha a_scale b_scale; scale and zero of the result, which is real if they are absent. */
static CornuStatus read_gemm(CornuReadStep *step)
{
    const bool   turned = cornu__whole(step, "transB", 0);
    const double alpha = cornu__real(step, "alpha", 1.0);
    CornuTensor *in[] = { cornu__centred(step, cornu__operand_of(step, 0), 2, -1),
                          cornu__centred(step, cornu__operand_of(step, 3), 5, turned ? 0 : 1) };
    CornuTensor *bias = cornu__optional_as(step, 6, CORNU_F32), *y = NULL;
    if (!in[0] || !in[1]) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, "Gemm", in, 2, &y));
    if (bias) y = cornu_op_add(y, alpha == 1.0 ? bias : cornu_op_scale(bias, alpha));
    y = cornu_op_multiply(y, cornu_op_multiply(cornu__quantity(step, 1, 2, -1),
                                               cornu__quantity(step, 4, 2, 1)));
    return cornu__given(step, 7) ? cornu__quantized_result(step, y, 7, 8)
                                 : cornu__result(step, 0, y);
}

/* The real product of a and b, which are centred, their scales and a bias. */
static CornuStatus real_product(CornuReadStep *step, CornuTensor *a, CornuTensor *a_scale,
                                CornuTensor *b, int b_scale, int bias)
{
    CornuTensor *y = NULL;
    if (!a || !b) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, "MatMul", (CornuTensor *const[]){ a, b }, 2, &y));
    const int rank = cornu__rank_of(y);
    y = cornu_op_multiply(y, cornu_op_multiply(a_scale, cornu__quantity(step, b_scale, rank,
                                                                     rank - 1)));
    if (cornu__given(step, bias)) y = cornu_op_add(y, cornu__optional(step, bias));
    return cornu__result(step, 0, y);
}

/* a, b, their scales, their zeros, a bias. */
static CornuStatus read_integer_to_float(CornuReadStep *step)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    const int    row = cornu__rank_of(a) - 2, column = cornu__rank_of(b) - 1;
    return real_product(step, cornu__centred(step, a, 4, row),
                        cornu__quantity(step, 2, cornu__rank_of(a), row),
                        cornu__centred(step, b, 5, column), 3, 6);
}

/* a, b, scale and zero of b, a bias. a is quantized as it comes. */
static CornuStatus read_dynamic_matmul(CornuReadStep *step)
{
    CornuTensor *scale = NULL, *zero = NULL, *b = cornu__operand_of(step, 1);
    CornuTensor *a = cornu__dynamic(cornu__operand_of(step, 0), &scale, &zero);
    return real_product(step, cornu_op_subtract(a, zero), scale,
                        cornu__centred(step, b, 3, cornu__rank_of(b) - 1), 2, 4);
}

const CornuReadRow cornu__read_quantized_more[] = {
    { "com.microsoft.DynamicQuantizeMatMul", read_dynamic_matmul, .operands = 0 },
    { "com.microsoft.MatMulIntegerToFloat", read_integer_to_float, .operands = 0 },
    { "com.microsoft.QGemm", read_gemm, .operands = 0 },
    { "com.microsoft.QLinearAdd", read_add, .operands = 0 },
    { "com.microsoft.QLinearAveragePool", read_average, .operands = 0 },
    { "com.microsoft.QLinearConcat", read_concat, .operands = 0 },
    { "com.microsoft.QLinearGlobalAveragePool", read_global, .operands = 0 },
    { "com.microsoft.QLinearLeakyRelu", read_leaky, .operands = 0 },
    { "com.microsoft.QLinearMul", read_mul, .operands = 0 },
    { "com.microsoft.QLinearReduceMean", read_reduce, .operands = 0 },
    { "com.microsoft.QLinearSigmoid", read_sigmoid, .operands = 0 },
    { "com.microsoft.QLinearSoftmax", read_softmax, .operands = 0 },
    { "com.microsoft.QLinearWhere", read_where, .operands = 0 },
    { 0 },
};
