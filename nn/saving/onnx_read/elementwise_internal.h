/* Elementwise functions that other families use. */
#ifndef CORNU_NN_ONNX_ELEMENTWISE_INTERNAL_H
#define CORNU_NN_ONNX_ELEMENTWISE_INTERNAL_H

#include "run_internal.h"

CornuTensor *cornu__ceil_of(CornuTensor *x);

#endif
