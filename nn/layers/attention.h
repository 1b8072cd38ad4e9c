/* Attention of a sequence to another one, or to itself. */
#ifndef CORNU_NN_LAYERS_ATTENTION_H
#define CORNU_NN_LAYERS_ATTENTION_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Attention of query (B, T, C) to key (B, S, C), and value (B, S, V) weighted by it:
 *     p = softmax(scores) over S, where a mask is false 0;   y = p value, (B, T, V)
 * Called on query, value; or on query, value, key, where by default the key is the value. Scores of
 * step t of T and s of S are
 *     dot        query[t] . key[s], times scale
 *     concat     concat_score_weight times the sum of tanh(scale (query[t] + key[s]))
 *     additive_attention: the sum of scale tanh(query[t] + key[s])
 * with the weights scale (), or (C) for additive_attention, and concat_score_weight (). Steps of S
 * that the value's mask marks are not attended to, steps of T that the query's mask marks give 0;
 * the output has the query's mask. Source: keras/src/layers/attention/attention.py,
 * additive_attention.py; Luong et al., arXiv 1508.04025; Bahdanau et al., arXiv 1409.0473.
 */
typedef enum { CORNU_SCORE_DOT, CORNU_SCORE_CONCAT } CornuScoreMode;

/* "dot", "concat"; NULL for unknown values. */
const char *cornu_score_mode_name(CornuScoreMode mode);

typedef struct {
    char           unset;
    bool           use_scale;
    CornuScoreMode score_mode;
    double         dropout;                 /* of the elements of p: 0 or more, below 1  */
    bool           use_causal_mask;         /* no step attends to later ones; and p      */
    bool           return_attention_scores; /* (B, T, S) is a second output: in Keras    */
    const char    *name;                    /* both are arguments of the call            */
    bool           frozen;
    const char    *dtype;
} CornuAttentionConfig;

/* Keras' Attention: scores by dot or concat. */
CornuLayer *cornu_attention_from(const CornuAttentionConfig *config);
#define cornu_attention(...) \
    cornu_attention_from(&(CornuAttentionConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    bool        no_scale;                /* without the weight */
    double      dropout;
    bool        use_causal_mask, return_attention_scores;   /* as above */
    const char *name;
    bool        frozen;
    const char *dtype;
} CornuAdditiveAttentionConfig;

/* Keras' AdditiveAttention, Bahdanau's. */
CornuLayer *cornu_additive_attention_from(const CornuAdditiveAttentionConfig *config);
#define cornu_additive_attention(...) \
    cornu_additive_attention_from(&(CornuAdditiveAttentionConfig){ .unset = 0, __VA_ARGS__ })

/*
 * Multi-head attention. For each of N heads, with linear maps of query (B, T, Dq), key (B, S, Dk)
 * and value (B, S, Dv) to q (B, T, N, H), k (B, S, N, H) and v (B, S, N, V),
 *     p = softmax(q k' / sqrt(H)) over S, where a mask is false 0;   y = p v
 * and a linear map of all heads together gives (B, T, Dq). Called on
 *     x                              query, value and key are x; the only form in a Sequential
 *     query, value
 *     query, value, key
 *     query, value, key, mask        and a mask (B, T, S) or (B, N, T, S), 0 or false: not
 *                                    attended to; extents of 1 are broadcast
 *
 *     cornu_call(cornu_multi_head_attention(8, 64, .use_causal_mask = true), x)
 *
 * With more axes, all inputs being (B, …, C), the steps are the positions along .attention_axes;
 * positions along other axes do not attend to each other. Masks and scores then have the axes
 * (B, other axes, N, attention axes of the query, attention axes of the value); a mask may lack N,
 * and the other axes. Such inputs cannot have masks of their own.
 *
 * All masks are combined: the fourth input, the causal mask, the window, and the masks of the
 * sequences. A query step with every key masked attends to all of them equally, with dropout,
 * scores or more axes to none, as in Keras. The query's own mask is the output's.
 *
 * Weights: query/kernel (Dq, N, H), query/bias (N, H), likewise key and value, with use_gate gate
 * before value, and attention_output/kernel (N, V, Dq), attention_output/bias (Dq). Products are
 * computed in the layer's dtype, the softmax in f32.
 * Source: keras/src/layers/attention/multi_head_attention.py; Vaswani et al., arXiv 1706.03762.
 */
typedef struct {
    char             unset;
    int64_t          num_heads, key_dim;      /* N, H: required, at least 1 */
    int64_t          value_dim;               /* V: default key_dim */
    double           dropout;                 /* of the elements of p: 0 or more, below 1 */
    bool             no_bias;
    int64_t          output_shape[CORNU_MAX_RANK];  /* in place of Dq; ends at the first 0 */
    int64_t          attention_axes[CORNU_MAX_RANK]; /* ends at the first 0; negative axes count
                                                        from the last. Default: all between the
                                                        first and the last */
    int64_t          sliding_window;          /* steps at least this far apart are masked */
    CornuInitializer kernel_initializer;      /* default glorot_uniform */
    CornuInitializer bias_initializer;        /* default zeros          */
    CornuRegularizer kernel_regularizer, bias_regularizer;   /* of all linear maps */
    CornuConstraint  kernel_constraint, bias_constraint;
    bool             use_gate;                /* multiplies y by sigmoid(a linear map of query) */
    bool             use_causal_mask;         /* no step attends to later ones; and p            */
    bool             return_attention_scores; /* (B, N, T, S) is a second output: in Keras both  */
    const char      *name;                    /* are arguments of the call                       */
    bool             frozen;
    const char      *dtype;
} CornuMultiHeadAttentionConfig;

CornuLayer *cornu_multi_head_attention_from(const CornuMultiHeadAttentionConfig *config);
#define cornu_multi_head_attention(...) \
    cornu_multi_head_attention_from(&(CornuMultiHeadAttentionConfig){ .unset = 0, __VA_ARGS__ })

/* Multi-head attention of (B, T, C) in which each head of key and value serves several heads of the
 * query: num_query_heads / num_key_value_heads of them. Called as multi_head_attention, whose words
 * apply. Weights: query/kernel (Dq, N, H), key/kernel and value/kernel (D, G, H), likewise biases,
 * gate, and attention_output. Source: keras/src/layers/attention/grouped_query_attention.py;
 * Ainslie et al., arXiv 2305.13245. */
typedef struct {
    char             unset;
    int64_t          head_dim, num_query_heads, num_key_value_heads;   /* H, N, G: required */
    double           dropout;
    bool             no_bias;
    int64_t          sliding_window;
    CornuInitializer kernel_initializer, bias_initializer;
    CornuRegularizer kernel_regularizer, bias_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    bool             use_gate, use_causal_mask, return_attention_scores;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuGroupQueryAttentionConfig;

CornuLayer *cornu_group_query_attention_from(const CornuGroupQueryAttentionConfig *config);
#define cornu_group_query_attention(...) \
    cornu_group_query_attention_from(&(CornuGroupQueryAttentionConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
