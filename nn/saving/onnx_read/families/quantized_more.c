/* The quantized operators of onnxruntime, domain com.microsoft. Source: docs/ContribOperators.md of
 * github.com/microsoft/onnxruntime. */
#include "quantized_internal.h"

#include <string.h>

/* ---- Functions of reals between quantized numbers ---- */

/* a, scale, zero; b, scale, zero; scale and zero of the result. */
static CornuStatus two(CornuReadStep *step)
{
    CornuTensor *a = cornu__dequantized(step, 0, 1, 2, -1);
    CornuTensor *b = cornu__dequantized(step, 3, 4, 5, -1);
    return cornu__quantized_result(step, step->row->two(a, b), 6, 7);
}

/* x, scale, zero; scale and zero of the result. Of pools channels_last says the last axis is C. */
static CornuStatus one(CornuReadStep *step)
{
    const bool   last = cornu__whole(step, "channels_last", 0) && strstr(step->row->name, "Pool");
    CornuTensor *x = cornu__dequantized(step, 0, 1, 2, -1);
    if (last) x = cornu__read_channels_first(x);
    CornuTensor *y = cornu__read_by(step, step->row->name, &x, 1);
    return cornu__quantized_result(step, last ? cornu__read_channels_last(y) : y, 3, 4);
}

/* The opset whose Softmax it is is an attribute. */
static CornuStatus read_softmax(CornuReadStep *step)
{
    CornuReadRun  run = *step->run;
    CornuReadStep own = *step;
    run.opset = cornu__whole(step, "opset", step->run->opset);
    own.run = &run;
    return one(&own);
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
        if (!(x[i] = cornu__dequantized(step, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i, -1)))
            return cornu_error_take();
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
    const double alpha = cornu__real(step, "alpha", 1.0);
    CornuTensor *bias = cornu__optional_as(step, 6, CORNU_F32);
    CornuTensor *y = cornu__centred_product(step, "Gemm", (const int[]){ 0, 2 },
                                            (const int[]){ 3, 5 });
    y = cornu_op_convert(y, CORNU_F32);
    if (bias) y = cornu_op_add(y, alpha == 1.0 ? bias : cornu_op_scale(bias, alpha));
    y = cornu_op_multiply(y, cornu_op_multiply(cornu__quantity(step, 1, 2, -1),
                                               cornu__quantity(step, 4, 2, 1)));
    return cornu__given(step, 7) ? cornu__quantized_result(step, y, 7, 8)
                                 : cornu__result(step, 0, y);
}

/* The real product, of the product y of integers, its operands' scales and a bias. */
static CornuStatus real_result(CornuReadStep *step, CornuTensor *y, CornuTensor *a_scale,
                               int b_scale, int bias)
{
    const int rank = cornu__rank_of(y);
    y = cornu_op_convert(y, CORNU_F32);
    y = cornu_op_multiply(y, cornu_op_multiply(a_scale, cornu__quantity(step, b_scale, rank,
                                                                        rank - 1)));
    return cornu__result(step, 0, cornu__given(step, bias)
                                      ? cornu_op_add(y, cornu__optional(step, bias)) : y);
}

/* a, b, their scales, their zeros, a bias. */
static CornuStatus read_integer_to_float(CornuReadStep *step)
{
    const int    rank = cornu__rank_of(cornu__operand_of(step, 0));
    CornuTensor *y = cornu__centred_product(step, "MatMul", (const int[]){ 0, 4 },
                                            (const int[]){ 1, 5 });
    return real_result(step, y, cornu__quantity(step, 2, rank, rank - 2), 3, 6);
}

/* a, b, scale and zero of b, a bias. a is quantized as it comes. */
static CornuStatus read_dynamic_matmul(CornuReadStep *step)
{
    CornuTensor *scale = NULL, *zero = NULL, *b = cornu__operand_of(step, 1);
    CornuTensor *a = cornu__dynamic(cornu__operand_of(step, 0), &scale, &zero);
    CornuTensor *y = cornu__integer_product_of(step, "MatMul", cornu_op_convert(a, CORNU_U8), zero,
                                               (const int[]){ 1, 3 });
    if (!y && !cornu_error_pending()) {
        CornuTensor *in[] = { cornu_op_subtract(a, zero),
                              cornu__centred(step, b, 3, cornu__rank_of(b) - 1) };
        y = cornu__read_by(step, "MatMul", in, 2);
    }
    return real_result(step, y, scale, 2, 4);
}

const CornuReadRow cornu__read_quantized_more[] = {
    { "com.microsoft.DynamicQuantizeMatMul", read_dynamic_matmul, .operands = 2 },
    { "com.microsoft.MatMulIntegerToFloat", read_integer_to_float, .operands = 2 },
    { "com.microsoft.QGemm", read_gemm, .operands = 4 },
    { "com.microsoft.QLinearAdd", two, 4, .two = cornu_op_add },
    { "com.microsoft.QLinearAveragePool", one, 1, .name = "AveragePool" },
    { "com.microsoft.QLinearConcat", read_concat, .operands = 0 },
    { "com.microsoft.QLinearGlobalAveragePool", one, 1, .name = "GlobalAveragePool" },
    { "com.microsoft.QLinearLeakyRelu", one, 1, .name = "LeakyRelu" },
    { "com.microsoft.QLinearMul", two, 4, .two = cornu_op_multiply },
    { "com.microsoft.QLinearReduceMean", one, 1, .name = "ReduceMean" },
    { "com.microsoft.QLinearSigmoid", one, 1, .name = "Sigmoid" },
    { "com.microsoft.QLinearSoftmax", read_softmax, 1, .name = "Softmax" },
    { "com.microsoft.QLinearWhere", read_where, .operands = 5 },
    { 0 },
};
