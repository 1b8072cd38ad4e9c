/* A graph as an ONNX file. */
#ifndef CORNU_NN_LITE_TO_ONNX_H
#define CORNU_NN_LITE_TO_ONNX_H

#include "../formats/protobuf_internal.h"
#include "graph.h"

/* Appends a ModelProto to an empty message, whose bytes the caller releases. CORNU_ERR_UNSUPPORTED
 * names an operator, or a type, that has no nodes. */
CornuStatus cornu__lite_to_onnx(const CornuLiteGraph *graph, CornuMessage *file);

#endif
