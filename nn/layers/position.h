/* Layers that encode the position of a step in its sequence. */
#ifndef CORNU_NN_LAYERS_POSITION_H
#define CORNU_NN_LAYERS_POSITION_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Learned position embeddings: for x (B, T, C), T at most sequence_length, the first T rows of a
 * table (sequence_length, C), the same for every row of the batch: (B, T, C), to be added to x.
 *
 *     x = cornu_call(cornu_add(), x, cornu_call(cornu_position_embedding(128), x));
 *
 * Weight: embeddings. Source: keras_hub/src/layers/modeling/position_embedding.py, a layer of
 * KerasHub; Keras itself has none.
 */
typedef struct {
    char             unset;
    int64_t          sequence_length;   /* required, at least 1 */
    CornuInitializer initializer;       /* default glorot_uniform */
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuPositionEmbeddingConfig;

CornuLayer *cornu_position_embedding_from(const CornuPositionEmbeddingConfig *config);
#define cornu_position_embedding(...) \
    cornu_position_embedding_from(&(CornuPositionEmbeddingConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
