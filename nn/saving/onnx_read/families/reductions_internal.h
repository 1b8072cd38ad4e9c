/* A reduction that other families use. */
#ifndef CORNU_NN_ONNX_REDUCTIONS_INTERNAL_H
#define CORNU_NN_ONNX_REDUCTIONS_INTERNAL_H

#include "../run_internal.h"

/* Of booleans: all of them. */
CornuTensor *cornu__least(CornuTensor *x, int64_t axes, bool keep);

#endif
