/*
 * A graph of f32 as one of int8: the rules of the LiteRT 8-bit quantization specification.
 *
 * Weights are symmetric, -127 to 127, a scale for each output channel; activations have one scale
 * and zero point, from their ranges, which are widened to contain 0. Biases are i32 in units of the
 * product of the scales of input and weights. Softmax, logistic and tanh have fixed output scales;
 * what only moves values keeps that of its input. Inputs and outputs are int8.
 * Source: "LiteRT 8-bit quantization specification", ai.google.dev/edge/litert.
 */
#ifndef CORNU_NN_LITE_TO_INT8_H
#define CORNU_NN_LITE_TO_INT8_H

#include "ranges.h"

/* Ranges of all tensors that are not constants. The caller frees the graph, NULL on failure:
 * CORNU_ERR_UNSUPPORTED names what has no form of 8 bits. */
CornuStatus cornu__lite_to_int8(const CornuLiteGraph *graph, const CornuLiteRange *ranges,
                                CornuLiteGraph **quantized);

#endif
