/*
 * A graph as an ONNX file, of opset 18, or 20 with GELU. What is quantized is a pair of nodes
 * QuantizeLinear and DequantizeLinear after each operator, "QDQ", which runtimes replace by
 * operators of integers: their products are LiteRT's, their rounding need not be.
 */
#ifndef CORNU_NN_LITE_TO_ONNX_H
#define CORNU_NN_LITE_TO_ONNX_H

#include "../../../device/files/protobuf_internal.h"
#include "../graph/graph.h"

/* Appends a ModelProto to an empty message, whose bytes the caller releases. With `named` it is for
 * the reader of this library alone: a node has the name of the tensor that it computes, maybe as
 * others have; quantized constants are real numbers, other quantized values nodes FakeQuantize, and
 * variables nodes State (onnx_read/families/states.c), which runtimes do not know.
 * CORNU_ERR_UNSUPPORTED names an operator, or a type, that has no nodes. */
CornuStatus cornu__lite_to_onnx(const CornuLiteGraph *graph, bool named, CornuMessage *file);

/* The same to a path; the file appears whole or not at all. */
CornuStatus cornu__lite_export_onnx(const CornuLiteGraph *graph, const char *path);

#endif
