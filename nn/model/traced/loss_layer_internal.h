/* The struct of a loss as a layer, for files. */
#ifndef CORNU_NN_LOSS_LAYER_INTERNAL_H
#define CORNU_NN_LOSS_LAYER_INTERNAL_H

#include "loss_layer.h"

typedef struct {
    CornuLayer base;
    CornuLoss *loss;
    bool       values;
} CornuLossLayer;

extern const CornuLayerClass cornu__loss_layer_class;

/* The layer as a loss; NULL if it is another one. */
static inline const CornuLossLayer *cornu__as_loss_layer(const CornuLayer *layer)
{
    return layer->kind == &cornu__loss_layer_class ? (const CornuLossLayer *)layer : NULL;
}

#endif
