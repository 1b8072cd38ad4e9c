/* Attention with several heads, which MultiHeadAttention and GroupQueryAttention share. */
#ifndef CORNU_NN_LAYERS_HEADS_INTERNAL_H
#define CORNU_NN_LAYERS_HEADS_INTERNAL_H

#include "../layer_internal.h"

/* The inputs, in Keras' order. */
enum { CORNU_HEADS_QUERY, CORNU_HEADS_VALUE, CORNU_HEADS_KEY, CORNU_HEADS_MASK,
       CORNU_HEADS_INPUTS };

/* A layer begins with this; all of its arguments are resolved. */
typedef struct {
    CornuLayer                    base;
    CornuMultiHeadAttentionConfig config;
    int64_t                       key_value_heads;  /* each serves the same number of heads */
} CornuHeads;

/* Checks the arguments of `config` that both layers have under the same name, and resolves their
 * defaults. */
CornuStatus cornu__heads_resolve(CornuHeads *self, int64_t key_value_heads);

/* For class tables. */
CornuStatus  cornu__heads_build(CornuLayer *layer, const CornuShape *given, int in_count);
CornuTensor *cornu__heads_call(CornuLayer *layer, const CornuCall *call,
                               CornuTensor *const *given, int in_count, CornuTensor **out);
CornuTensor *cornu__heads_continue(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out);
int          cornu__heads_outputs(const CornuLayer *layer);

/* ---- Inputs of many axes (attention_axes.c) ---- */

/* The permutation from (B, …, C) to (B', T, C): the axes without attention are folded into the
 * batch, the others, `attended` of them, into T. */
typedef struct {
    int rank, attended, order[CORNU_MAX_RANK];
} CornuAttentionLayout;

CornuAttentionLayout cornu__attention_layout(const int64_t *attention_axes, int rank);

/* Whether inputs and axes fit each other. */
CornuStatus cornu__attention_check_axes(const int64_t *attention_axes, const CornuShape *in,
                                        int in_count);

/* (B', T, C); B' is unknown where the batch is. */
CornuShape   cornu__attention_sequence_shape(const CornuAttentionLayout *layout, CornuShape shape);
CornuTensor *cornu__attention_sequence(const CornuAttentionLayout *layout, CornuTensor *x);

/* y (B', T, …) with the axes of `query` restored, except its last one. */
CornuTensor *cornu__attention_restored(const CornuAttentionLayout *layout, CornuShape query,
                                       CornuTensor *y);

/* Scores (B', N, T, S) as (B, folded axes, N, attended axes of the query, those of the value). */
CornuTensor *cornu__attention_scores(const CornuAttentionLayout *layout, CornuShape query,
                                     CornuShape value, CornuTensor *scores);

/* A mask of such scores, broadcast, for (B', N, T, S); axes after the batch may be absent up to the
 * attended ones. */
CornuTensor *cornu__attention_mask(const CornuAttentionLayout *layout, CornuShape query,
                                   CornuShape value, int64_t heads, CornuTensor *mask);
CornuStatus  cornu__attention_check_mask(const CornuAttentionLayout *layout, CornuShape query,
                                         CornuShape value, int64_t heads, CornuShape mask);

#endif
