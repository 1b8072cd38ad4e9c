/* A loss within a model: for layers that add one, as of Keras' add_loss(loss(y_true, y_pred)). */
#ifndef CORNU_NN_LOSS_LAYER_H
#define CORNU_NN_LOSS_LAYER_H

#include "../../layers/layer.h"
#include "../../losses/loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The layer, called on y_true and y_pred, (B, …), and perhaps sample weights, (B) or (B, T),
 * returns the loss of the batch, a scalar, or, with `values`, what the loss reduces, (B, …).
 * Steps that the mask of y_pred leaves out do not count.
 *
 *     CornuSymbol *loss = cornu_call(cornu_loss_layer(cornu_ctc(), false, NULL), labels, y);
 *     cornu_traced_add(layer, .inputs = { labels, y }, .outputs = { y }, .losses = { loss });
 *
 * Takes the loss, also on failure. NULL for NULL, and while an error is pending. A loss of the
 * program's own can be called, but is in no file. The scalar depends on all rows of a batch, so
 * that a device has one shard.
 */
CornuLayer *cornu_loss_layer(CornuLoss *loss, bool values, const char *name);

#ifdef __cplusplus
}
#endif
#endif
