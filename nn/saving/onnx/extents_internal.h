/*
 * Extents that are unknown until a model runs: of the batch, and those that its inputs leave open.
 *
 * Instead of rules for the shapes of all layers and ops, a model is looked at for three different
 * choices of the unknown numbers, "worlds". An extent that is the same in all of them is known; any
 * other is found as a multiple, a product or a sum of those that have been met; or else it is a new
 * one, the extent of the value where it is met, which a Shape node reads. Shapes hold a handle in
 * its place, a number far below all others, for the functions here.
 */
#ifndef CORNU_NN_ONNX_EXTENTS_INTERNAL_H
#define CORNU_NN_ONNX_EXTENTS_INTERNAL_H

#include "onnx_internal.h"

/* The batch in each world: primes, so that a multiple of one is rarely anything else. */
extern const int64_t cornu__onnx_batches[CORNU_ONNX_WORLDS];

/* The number of an extent, known or not, in a world. CORNU_NONE is the batch. */
int64_t cornu__onnx_extent_in(const CornuOnnx *to, int64_t extent, int world);

/* The extent that has these numbers: known, or a handle; 0 if nothing explains them. */
int64_t cornu__onnx_extent(CornuOnnx *to, const int64_t *numbers);

/* A new one: of this axis of a value, which may be given later, when it is written. */
int64_t cornu__onnx_axis(CornuOnnx *to, const int64_t *numbers, int value, int axis);
void    cornu__onnx_axis_of(CornuOnnx *to, int64_t extent, int value);

/* From now on the batch is axis 0 of this value. */
void cornu__onnx_batch_of(CornuOnnx *to, int value);

/* ---- worlds.c ---- */

/* How many choices of the worlds' numbers there are for a model: some models can be looked at for
 * certain numbers only. to->attempt is the one that is tried. */
int cornu__onnx_attempts(const CornuModel *model);

/* The shape of an input of the model, which is this value. */
CornuShape cornu__onnx_input_shape(CornuOnnx *to, CornuShape shape, int value);

/* Replaces unknown extents of a layer's results, CORNU_NONE, by handles. */
CornuStatus cornu__onnx_results(CornuOnnx *to, const CornuLayer *layer, const CornuShape *shapes,
                                const CornuDtype *dtypes, int in_count, CornuShape *results);

#endif
