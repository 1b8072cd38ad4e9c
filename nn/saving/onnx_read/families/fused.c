/* What onnxruntime's optimizer makes of several nodes, domain com.microsoft. Source:
 * docs/ContribOperators.md of github.com/microsoft/onnxruntime. */
#include "quantized_internal.h"

#include <string.h>

#include "../../../../tensor/functions/functions_internal.h"

/* ---- Activations ---- */

static double number_of(const CornuReadAttribute *list, int i, double usual)
{
    return list && i < list->number_count ? list->numbers[i] : usual;
}

/* The attribute `activation`, with its numbers in activation_params or activation_alpha, …. */
static CornuStatus activate(CornuReadStep *step, CornuTensor **x)
{
    const char *name = cornu__word(step, "activation", "");
    const CornuReadAttribute *list = cornu__attribute(step, "activation_params");
    const double alpha = cornu__real(step, "activation_alpha", number_of(list, 0, 0.01));
    const double beta = cornu__real(step, "activation_beta", number_of(list, 1, 0.0));
    if (!*x) return cornu_error_take();
    if (!strcmp(name, "Relu")) *x = cornu_op_relu(*x);
    else if (!strcmp(name, "Tanh")) *x = cornu_op_tanh(*x);
    else if (!strcmp(name, "Sigmoid")) *x = cornu_op_sigmoid(*x);
    else if (!strcmp(name, "Clip")) *x = cornu_op_clip(*x, alpha, beta);
    else if (!strcmp(name, "HardSigmoid"))
        *x = cornu_op_clip(cornu_op_shift(cornu_op_scale(*x, alpha), beta), 0.0, 1.0);
    else if (!strcmp(name, "LeakyRelu")) {
        CornuTensor *above = cornu_op_compare(*x, CORNU_GREATER_EQUAL,
                                              cornu_op_constant_like(*x, 0.0));
        *x = cornu_op_select(above, *x, cornu_op_scale(*x, alpha));
    } else if (*name)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the activation %.40s is not supported", name);
    return *x ? CORNU_OK : cornu_error_take();
}

static CornuStatus gelu(CornuReadStep *step, bool quick)
{
    CornuTensor *x = cornu__operand_of(step, 0), *bias = cornu__optional(step, 1);
    if (x && bias) x = cornu_op_add(x, bias);
    return cornu__result(step, 0, !x ? NULL : quick ? cornu__gelu_approximate(x) : cornu__gelu(x));
}

static CornuStatus read_gelu(CornuReadStep *step) { return gelu(step, false); }
static CornuStatus read_fast_gelu(CornuReadStep *step) { return gelu(step, true); }

static CornuStatus read_quick_gelu(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    const double alpha = cornu__real(step, "alpha", 1.702);
    return cornu__result(step, 0, cornu_op_multiply(x, cornu_op_sigmoid(cornu_op_scale(x, alpha))));
}

/* ---- Products ---- */

static CornuTensor *turned(CornuTensor *x, bool turn)
{
    const int rank = cornu__rank_of(x);
    return turn && rank > 1 ? cornu__read_moved_axis(x, rank - 1, rank - 2) : x;
}

static CornuStatus read_matmul(CornuReadStep *step)
{
    CornuTensor *in[] = { turned(cornu__operand_of(step, 0), cornu__whole(step, "transA", 0)),
                          turned(cornu__operand_of(step, 1), cornu__whole(step, "transB", 0)) };
    CornuTensor *y = NULL;
    if (cornu__whole(step, "transBatchA", 0) || cornu__whole(step, "transBatchB", 0))
        return cornu__cannot("transBatchA", "expected 0");
    if (!in[0] || !in[1]) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, "MatMul", in, 2, &y));
    return cornu__result(step, 0, cornu_op_scale(y, cornu__real(step, "alpha", 1.0)));
}

static CornuStatus read_conv(CornuReadStep *step)
{
    CornuTensor *in[] = { cornu__operand_of(step, 0), cornu__operand_of(step, 1),
                          cornu__optional(step, 2) };
    CornuTensor *more = cornu__optional(step, 3), *y = NULL;
    if (!in[0] || !in[1]) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, "Conv", in, 3, &y));
    if (more) y = cornu_op_add(y, more);
    CORNU__TRY(activate(step, &y));
    return cornu__result(step, 0, y);
}

static CornuStatus read_gemm(CornuReadStep *step)
{
    CornuTensor *in[] = { cornu__operand_of(step, 0), cornu__operand_of(step, 1),
                          cornu__optional(step, 2) };
    CornuTensor *y = NULL;
    if (!in[0] || !in[1]) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, "Gemm", in, 3, &y));
    CORNU__TRY(activate(step, &y));
    return cornu__result(step, 0, y);
}

/* ---- Normalizations ---- */

/* x + skip + bias, normalized; result 3 is the sum. */
static CornuStatus skip_norm(CornuReadStep *step, const char *op, int bias)
{
    CornuTensor *sum = cornu_op_add(cornu__operand_of(step, 0), cornu__operand_of(step, 1));
    CornuTensor *scale = cornu__operand_of(step, 2), *y = NULL;
    CornuTensor *shift = bias == 4 ? cornu__optional(step, 3) : NULL;
    if (cornu__given(step, bias)) sum = cornu_op_add(sum, cornu__optional(step, bias));
    if (!sum || !scale) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, op, (CornuTensor *const[]){ sum, scale, shift }, bias - 1, &y));
    CORNU__TRY(cornu__result(step, 0, y));
    return cornu__wanted(step, 3) ? cornu__result(step, 3, sum) : CORNU_OK;
}

static CornuStatus read_skip_norm(CornuReadStep *step)
{
    return skip_norm(step, "LayerNormalization", 4);
}

static CornuStatus read_skip_rms(CornuReadStep *step)
{
    return skip_norm(step, "RMSNormalization", 3);
}

static CornuStatus read_rms(CornuReadStep *step)
{
    CornuTensor *in[] = { cornu__operand_of(step, 0), cornu__operand_of(step, 1) }, *y = NULL;
    if (!in[0] || !in[1]) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, "RMSNormalization", in, 2, &y));
    return cornu__result(step, 0, y);
}

/* Operand i; of the quantized operator dequantized by its scale and zero. */
static CornuTensor *table(CornuReadStep *step, int i, bool quantized)
{
    if (!cornu__given(step, i)) return NULL;
    return quantized ? cornu__dequantized(step, i, i + 6, i + 11, -1) : cornu__operand_of(step, i);
}

static CornuTensor *rows_of(CornuTensor *table, CornuTensor *indices)
{
    return table && indices ? cornu_op_gather(table, cornu_op_convert(indices, CORNU_I32)) : NULL;
}

/* Words, positions and segments are looked up, added and normalized. */
static CornuStatus read_embed(CornuReadStep *step)
{
    const bool   quantized = *step->node->op == 'Q';
    CornuTensor *words = cornu__operand_of(step, 0), *segments = cornu__optional(step, 1);
    CornuTensor *positions = quantized ? NULL : cornu__optional(step, 8);
    CornuTensor *tables[3], *in[3], *y = NULL;
    if (!words) return cornu_error_take();
    for (int i = 0; i < 3; i++) tables[i] = table(step, 2 + i, quantized);
    CornuTensor *sum = rows_of(tables[0], words);
    if (!positions)
        positions = cornu__count_along(step->run->graph, CORNU_I64, 2, 1,
                                       cornu__extent_of(words, 1));
    sum = cornu_op_add(sum, rows_of(tables[1], positions));
    if (segments && tables[2]) sum = cornu_op_add(sum, rows_of(tables[2], segments));
    in[0] = sum;
    for (int i = 0; i < 2; i++) in[1 + i] = table(step, 5 + i, quantized);
    if (!sum || !in[1]) return cornu_error_take();
    CORNU__TRY(cornu__read_by(step, "LayerNormalization", in, 3, &y));
    CORNU__TRY(cornu__result(step, 0, y));
    if (cornu__wanted(step, 2)) CORNU__TRY(cornu__result(step, 2, sum));
    if (!cornu__wanted(step, 1)) return CORNU_OK;
    /* The number of words of each row that count. */
    CornuTensor *mask = cornu__optional(step, 7);
    const CornuType counts = cornu_type(CORNU_I32, cornu__extent_of(words, 0));
    return cornu__result(step, 1, mask ? cornu_op_reduce_sum(cornu_op_convert(mask, CORNU_I32), 2,
                                                             false)
                                       : cornu_op_constant(step->run->graph, counts, 0.0));
}

const CornuReadRow cornu__read_fused[] = {
    { "SimplifiedLayerNormalization", read_rms }, { "com.microsoft.BiasGelu", read_gelu },
    { "com.microsoft.EmbedLayerNormalization", read_embed },
    { "com.microsoft.FastGelu", read_fast_gelu }, { "com.microsoft.FusedConv", read_conv },
    { "com.microsoft.FusedGemm", read_gemm }, { "com.microsoft.FusedMatMul", read_matmul },
    { "com.microsoft.Gelu", read_gelu },
    { "com.microsoft.QEmbedLayerNormalization", read_embed },
    { "com.microsoft.QuickGelu", read_quick_gelu },
    { "com.microsoft.SimplifiedLayerNormalization", read_rms },
    { "com.microsoft.SkipLayerNormalization", read_skip_norm },
    { "com.microsoft.SkipSimplifiedLayerNormalization", read_skip_rms },
    { 0 },
};
