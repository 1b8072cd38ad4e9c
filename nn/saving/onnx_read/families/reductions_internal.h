/* Reductions that other families use. */
#ifndef CORNU_NN_ONNX_REDUCTIONS_INTERNAL_H
#define CORNU_NN_ONNX_REDUCTIONS_INTERNAL_H

#include "../run_internal.h"

CornuTensor *cornu__least(CornuTensor *x, int64_t axes, bool keep);
/* The product along one axis, which stays with extent 1. */
CornuTensor *cornu__product(CornuTensor *x, int axis);

#endif
