/* Functions of one number, which other operators name as their activations. */
#ifndef CORNU_NN_ONNX_ELEMENTWISE_INTERNAL_H
#define CORNU_NN_ONNX_ELEMENTWISE_INTERNAL_H

#include "../run_internal.h"

/* The row of "Tanh" or another such operator; NULL, pending, if there is none. */
const CornuReadRow *cornu__read_function(const char *name);

/* That function of x, with the numbers that its row names. */
CornuTensor *cornu__read_function_of(const CornuReadRow *row, CornuTensor *x,
                                     const double numbers[2]);

#endif
