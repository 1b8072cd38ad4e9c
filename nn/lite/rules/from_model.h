/*
 * A model's graph of LiteRT operators, in f32, for inference, as TensorFlow's converter has it:
 * the batch is unknown, normalization is folded into the product before it, and ReLU is fused into
 * the operator before it.
 */
#ifndef CORNU_NN_LITE_FROM_MODEL_H
#define CORNU_NN_LITE_FROM_MODEL_H

#include "../../saving/files_internal.h"
#include "../graph/graph.h"

/* The model must be built. `values` are its weights, or NULL: they are read from the model.
 * CORNU_ERR_UNSUPPORTED names a layer that has no operators. The caller frees the graph, which is
 * NULL on failure. */
CornuStatus cornu__lite_from_model(const CornuModel *model, const CornuValues *values,
                                   CornuLiteGraph **graph);

/* fold.c: multiplications by constants, and additions of them, after a product become part of its
 * weights and bias; activations become part of the operator before them. What nothing reads is
 * removed. */
CornuStatus cornu__lite_fold(CornuLiteGraph *graph);

#endif
