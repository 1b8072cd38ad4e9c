/* Models of attention by scores, products by equations, and layers around others. */
#include "onnx_models.h"

CornuModel *onnx_scores(void)
{
    CornuSymbol *x = cornu_input(.shape = { 4, 3 }, .name = "x");
    CornuSymbol *other = cornu_input(.shape = { 5, 3 }, .name = "other");
    CornuSymbol *dot = cornu_call(cornu_attention(.use_scale = true, .use_causal_mask = true,
                                                  .return_attention_scores = true), x, other);
    CornuSymbol *joined = cornu_call(cornu_attention(.score_mode = CORNU_SCORE_CONCAT), x, other,
                                     cornu_call(cornu_dense(3), other));
    CornuSymbol *sum = cornu_call(cornu_additive_attention(), x, other);
    CornuSymbol *grouped = cornu_call(cornu_group_query_attention(2, 4, 2, .use_gate = true), x,
                                      other);
    return cornu_model(.inputs = { x, other }, .name = "scores",
                       .outputs = { dot, joined, sum, grouped });
}

CornuModel *onnx_products(void)
{
    CornuSymbol *x = cornu_input(.shape = { 4, 3 }, .name = "x");
    CornuSymbol *text = cornu_input(.shape = { 4 }, .dtype = CORNU_I32, .name = "text");
    CornuLayer  *tokens = cornu_reversible_embedding(20, 3, .logit_soft_cap = 2.0);
    CornuSymbol *rows = cornu_call(tokens, text);
    CornuSymbol *y = cornu_call(cornu_einsum_dense("abc,cde->abde", .bias_axes = "e",
                                                   .output_shape = { 4, 2, 3 }), x);
    y = cornu_call(cornu_activity_regularization(0.1), cornu_call(cornu_identity_layer(), y));
    CornuSymbol *z = cornu_call(cornu_spectral_normalization(cornu_dense(3)), rows);
    return cornu_model(.inputs = { x, text }, .name = "products",
                       .outputs = { y, cornu_call_reverse(tokens, z) });
}
