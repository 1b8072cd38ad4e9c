/*
 * The layer OnnxNode: a node of an ONNX graph, with the nodes that compute its parameters from the
 * shapes of tensors. Its only argument is a small ONNX model, as text: the layer's inputs and
 * outputs with their types, the nodes, and the tensors; weights have no data there.
 */
#ifndef CORNU_NN_ONNX_LAYER_INTERNAL_H
#define CORNU_NN_ONNX_LAYER_INTERNAL_H

#include "../../layers/layer_internal.h"
#include "../files_internal.h"
#include "run_internal.h"

typedef struct {
    char        unset;
    const char *graph;           /* a ModelProto in base64 */
} CornuOnnxNodeConfig;

typedef struct {
    CornuLayer          base;
    CornuOnnxNodeConfig config;  /* its text is the layer's own */
    CornuArena          arena;
    unsigned char      *bytes;   /* of the model */
    CornuReadModel      model;
    CornuLookup         names;   /* numbers of values */
} CornuOnnxNode;

extern const CornuLayerClass cornu__onnx_node_class;

/* The layer; messages begin with `name`. NULL with a pending error. */
CornuLayer *cornu__onnx_node_layer(const char *name, const CornuOnnxNodeConfig *config);

#endif
