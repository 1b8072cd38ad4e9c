/* Attention: what a sequence gathers from another one, or from itself. */
#ifndef CORNU_NN_LAYERS_ATTENTION_H
#define CORNU_NN_LAYERS_ATTENTION_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Multi-head attention. For each of N heads, with linear maps of query (B, T, Dq), key (B, S, Dk)
 * and value (B, S, Dv) to q (B, T, N, H), k (B, S, N, H) and v (B, S, N, V),
 *     p = softmax(q k' / sqrt(H)) over S, where a mask is false 0;   y = p v
 * and a linear map of all heads together gives (B, T, Dq). Called on
 *     x                              query, value and key are x; the one that a Sequential makes
 *     query, value
 *     query, value, key
 *     query, value, key, mask        and a mask (B, T, S) or (B, N, T, S), 0 or false for what is
 *                                    not looked at; extents may be 1
 *
 *     cornu_call(cornu_multi_head_attention(8, 64, .use_causal_mask = true), x)
 *
 * With more axes, (B, …, C) all of them, the steps are the positions along .attention_axes; those
 * along other axes have nothing to do with each other. Then there are no masks and no scores.
 *
 * All masks hold together: that one, the causal one, the window's, and those that come with the
 * sequences. A step of the query that may look nowhere looks at all alike, as in Keras without
 * dropout. The query's own mask goes on.
 *
 * Weights: query/kernel (Dq, N, H), query/bias (N, H), likewise key and value, with use_gate gate
 * before value, and attention_output/kernel (N, V, Dq), attention_output/bias (Dq). The products
 * are of the layer's dtype, the softmax is f32.
 * Source: keras/src/layers/attention/multi_head_attention.py; Vaswani et al., arXiv 1706.03762.
 */
typedef struct {
    char             unset;
    int64_t          num_heads, key_dim;      /* N, H: required, at least 1 */
    int64_t          value_dim;               /* V: default key_dim */
    double           dropout;                 /* of the elements of p: 0 or more, below 1 */
    bool             no_bias;
    int64_t          output_shape[CORNU_MAX_RANK];  /* in place of Dq; ends at the first 0 */
    int64_t          attention_axes[CORNU_MAX_RANK]; /* ends at the first 0; negative ones are from
                                                        the end. Default: all but first and last */
    int64_t          sliding_window;          /* steps farther apart than this less 1 are masked */
    CornuInitializer kernel_initializer;      /* default glorot_uniform */
    CornuInitializer bias_initializer;        /* default zeros          */
    CornuRegularizer kernel_regularizer, bias_regularizer;   /* of all maps */
    CornuConstraint  kernel_constraint, bias_constraint;
    bool             use_gate;                /* y sigmoid(a linear map of the query) */
    bool             use_causal_mask;         /* these two are Keras' arguments of the call: no  */
    bool             return_attention_scores; /* step looks at later ones; p (B, N, T, S) is the */
    const char      *name;                    /* second result                                   */
    bool             frozen;
    const char      *dtype;
} CornuMultiHeadAttentionConfig;

CornuLayer *cornu_multi_head_attention_from(const CornuMultiHeadAttentionConfig *config);
#define cornu_multi_head_attention(...) \
    cornu_multi_head_attention_from(&(CornuMultiHeadAttentionConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
