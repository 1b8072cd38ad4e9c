/* Attention, and the gradient that computes its scores anew. */
#include "../../device/ops/attention.h"
#include "../tensor_internal.h"

enum { Q = CORNU_ATTENTION_Q, K = CORNU_ATTENTION_K, V = CORNU_ATTENTION_V,
       MASK = CORNU_ATTENTION_MASK, GRAD_MASK = CORNU_ATTENTION_GRAD_MASK };

/* The mask with all four axes. */
static CornuTensor *of_rank_4(CornuTensor *mask)
{
    if (!mask) return NULL;
    const CornuShape from = cornu_tensor_shape(mask);
    CornuShape       shape = { .rank = 4 };
    if (from.rank >= 4) return mask;
    for (int i = 0; i < 4; i++)
        shape.extent[i] = i < 4 - from.rank ? 1 : from.extent[i - (4 - from.rank)];
    return cornu_op_reshape(mask, shape);
}

CornuTensor *cornu_op_attention(CornuTensor *q, CornuTensor *k, CornuTensor *v,
                                const CornuAttention *attention, CornuTensor **lse)
{
    static const CornuAttention plain;
    const CornuAttention *a = attention ? attention : &plain;
    CornuAttributes       attributes = { .attention = { a->causal, a->window } };
    CornuTensor          *in[MASK + 1] = { q, k, v, of_rank_4(a->mask) };
    CornuTensor          *out[CORNU_MAX_OUTPUTS] = { NULL };
    CornuTensor *y = cornu__record(CORNU_OP_ATTENTION, &attributes, in, a->mask ? MASK + 1 : MASK,
                                   out);
    if (lse) *lse = out[1];
    return y;
}

/* Records the gradient for other values v, whose results and their gradient are y and d_y. */
static bool record_gradient(const CornuRecorded *op, CornuTensor *v, CornuTensor *y,
                            CornuTensor *d_y, CornuTensor **made)
{
    const bool   masked = op->in_count > MASK;
    CornuTensor *in[GRAD_MASK + 1] = { op->in[Q], op->in[K], v, y, op->out[1], d_y };
    if (masked) in[GRAD_MASK] = op->in[MASK];
    return cornu__record(CORNU_OP_ATTENTION_GRAD, op->attributes, in,
                         masked ? GRAD_MASK + 1 : GRAD_MASK, made) != NULL;
}

static CornuTensor *sum_of(CornuTensor *a, CornuTensor *b) { return a ? cornu_op_add(a, b) : b; }

/* With respect to lse: d_q = d_lse p k and d_k = p' (d_lse q), which are the result of attention,
 * and the gradient of values, with k as the values. Where all steps are masked it is 0. */
static void lse_gradient(const CornuRecorded *op, CornuTensor *d_lse, CornuTensor **d_x)
{
    CornuTensor *made[CORNU_MAX_OUTPUTS], *q = op->in[Q], *k = op->in[K];
    const CornuDtype dtype = cornu_tensor_type(q).dtype;
    const CornuAttributes_ATTENTION *attributes = &op->attributes->attention;
    const CornuAttention same = { op->in_count > MASK ? op->in[MASK] : NULL, attributes->causal,
                                  attributes->window };
    CornuTensor *lse = op->out[1];
    CornuTensor *open = cornu_op_compare(lse, CORNU_LESS,
                                         cornu_op_constant_like(lse, CORNU_ATTENTION_OPEN));
    d_lse = cornu_op_select(open, cornu_op_constant_like(lse, 0.0), d_lse);
    if (!d_lse) return;
    CornuShape shape = cornu_tensor_shape(d_lse);   /* (B, N, T), then (B, T, N, 1) */
    d_lse = cornu_op_transpose(d_lse, (const int[]){ 0, 2, 1 });
    d_lse = cornu_op_reshape(d_lse, cornu_shape(shape.extent[0], shape.extent[2], shape.extent[1],
                                                1));
    d_lse = cornu_op_convert(d_lse, dtype);
    CornuTensor *mean = cornu_op_attention(q, k, k, &same, NULL);
    d_x[Q] = sum_of(d_x[Q], cornu_op_multiply(mean, d_lse));
    if (op->wanted[K] && record_gradient(op, k, mean, cornu_op_multiply(q, d_lse), made))
        d_x[K] = sum_of(d_x[K], made[V]);
}

static void attention_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    CornuTensor *made[CORNU_MAX_OUTPUTS];
    if (d_y[0] && record_gradient(op, op->in[V], op->out[0], d_y[0], made))
        for (int i = Q; i <= V; i++) d_x[i] = made[i];
    if (d_y[1] && (op->wanted[Q] || op->wanted[K])) lse_gradient(op, d_y[1], d_x);
}
CornuGradient *const cornu__attention_gradient = attention_gradient;
CornuGradient *const cornu__attention_grad_gradient = CORNU_GRADIENT_OF_DECOMPOSITION;
