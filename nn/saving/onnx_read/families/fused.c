/* What onnxruntime's optimizer makes of several nodes, domain com.microsoft. Source:
 * docs/ContribOperators.md of github.com/microsoft/onnxruntime. */
#include "elementwise_internal.h"
#include "quantized_internal.h"

#include <string.h>


/* ---- Activations ---- */

static double number_of(const CornuReadAttribute *list, int i, double usual)
{
    return list && i < list->number_count ? list->numbers[i] : usual;
}

/* The attribute `activation`, with its numbers in activation_params or activation_alpha, …. */
static CornuStatus activated_result(CornuReadStep *step, CornuTensor *x)
{
    static const char *const single[] = { "activation_alpha", "activation_beta" };
    const CornuReadAttribute *list = cornu__attribute(step, "activation_params");
    const char  *name = cornu__word(step, "activation", "");
    double       n[2] = { 0.0 };
    if (!*name) return cornu__result(step, 0, x);
    const bool          clip = !strcmp(name, "Clip");
    const CornuReadRow *row = clip ? NULL : cornu__read_function(name);
    if (!x || (!row && !clip)) return cornu_error_take();
    for (int i = 0; i < 2; i++)
        n[i] = cornu__real(step, single[i], number_of(list, i, clip ? 0.0 : row->numbers[i].usual));
    return cornu__result(step, 0, clip ? cornu_op_clip(x, n[0], n[1])
                                       : cornu__read_function_of(row, x, n));
}

/* ---- Gelu of a sum ---- */

static CornuStatus read_gelu(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *bias = cornu__optional(step, 1);
    return cornu__result(step, 0, step->row->one(bias ? cornu_op_add(x, bias) : x));
}

/* ---- Products ---- */

static CornuTensor *turned(CornuTensor *x, bool turn)
{
    const int rank = cornu__rank_of(x);
    return turn && rank > 1 ? cornu__move_axis(x, rank - 1, rank - 2) : x;
}

static CornuStatus read_matmul(CornuReadStep *step)
{
    CornuTensor *in[] = { turned(cornu__operand_of(step, 0), cornu__whole(step, "transA", 0)),
                          turned(cornu__operand_of(step, 1), cornu__whole(step, "transB", 0)) };
    if (cornu__whole(step, "transBatchA", 0) || cornu__whole(step, "transBatchB", 0))
        return cornu__cannot("transBatchA", "expected 0");
    return cornu__result(step, 0, cornu_op_scale(cornu__read_by(step, "MatMul", in, 2),
                                                 cornu__real(step, "alpha", 1.0)));
}

/* Conv, with what is added to it, or Gemm; an activation. */
static CornuStatus read_product(CornuReadStep *step)
{
    CornuTensor *in[] = { cornu__operand_of(step, 0), cornu__operand_of(step, 1),
                          cornu__optional(step, 2) };
    CornuTensor *more = cornu__optional(step, 3), *y = cornu__read_by(step, step->row->name, in, 3);
    return activated_result(step, more ? cornu_op_add(y, more) : y);
}

/* ---- Normalizations ---- */

/* x + skip + bias, normalized; result 3 is the sum. The bias of the sum is the last operand. */
static CornuStatus read_skip_norm(CornuReadStep *step)
{
    const bool   shifts = *step->row->name == 'L';
    CornuTensor *in[] = { cornu_op_add(cornu__operand_of(step, 0), cornu__operand_of(step, 1)),
                          cornu__operand_of(step, 2), shifts ? cornu__optional(step, 3) : NULL };
    CornuTensor *bias = cornu__optional(step, 3 + shifts);
    if (bias) in[0] = cornu_op_add(in[0], bias);
    CORNU__TRY(cornu__result(step, 0, cornu__read_by(step, step->row->name, in, 2 + shifts)));
    return cornu__wanted(step, 3) ? cornu__result(step, 3, in[0]) : CORNU_OK;
}

/* Operand i; of the quantized operator dequantized by its scale and zero. */
static CornuTensor *table(CornuReadStep *step, int i, bool quantized)
{
    if (!quantized || !cornu__given(step, i)) return cornu__optional(step, i);
    return cornu__dequantized(step, i, i + 6, i + 11, -1);
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
    CornuTensor *tables[3], *in[3];
    for (int i = 0; i < 3; i++) tables[i] = table(step, 2 + i, quantized);
    CornuTensor *sum = rows_of(tables[0], words);
    if (!positions)
        positions = cornu__count_along(step->run->graph, CORNU_I64, 2, 1,
                                       cornu__extent_of(words, 1));
    sum = cornu_op_add(sum, rows_of(tables[1], positions));
    if (segments && tables[2]) sum = cornu_op_add(sum, rows_of(tables[2], segments));
    in[0] = sum;
    for (int i = 0; i < 2; i++) in[1 + i] = table(step, 5 + i, quantized);
    CORNU__TRY(cornu__result(step, 0, cornu__read_by(step, "LayerNormalization", in, 3)));
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
    { "com.microsoft.BiasGelu", read_gelu, 1, .one = cornu__gelu },
    { "com.microsoft.EmbedLayerNormalization", read_embed, .operands = 1 },
    { "com.microsoft.FastGelu", read_gelu, 1, .one = cornu__gelu_approximate },
    { "com.microsoft.FusedConv", read_product, 2, .name = "Conv" },
    { "com.microsoft.FusedGemm", read_product, 2, .name = "Gemm" },
    { "com.microsoft.FusedMatMul", read_matmul, .operands = 2 },
    { "com.microsoft.Gelu", read_gelu, 1, .one = cornu__gelu },
    { "com.microsoft.QEmbedLayerNormalization", read_embed, .operands = 1 },
    { "com.microsoft.SkipLayerNormalization", read_skip_norm, 3, .name = "LayerNormalization" },
    { "com.microsoft.SkipSimplifiedLayerNormalization", read_skip_norm, 3,
      .name = "RMSNormalization" },
    { 0 },
};
