/* The struct of a loss as a layer, and a layer as a loss, for files. */
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

/* A loss whose values (B, …) a layer without weights computes of y_true and y_pred; each_row: each
 * value of its own row. `record` is its JSON, of malloc. Takes the layer, which has one owner, and
 * the record, also on failure: NULL with a pending error. */
CornuLoss *cornu__layer_loss(CornuLayer *layer, CornuReduction reduction, bool each_row,
                             char *record);

#endif
