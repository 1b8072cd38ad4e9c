/* Sums of products over axes that an equation names. */
#ifndef CORNU_NN_LAYERS_EINSUM_INTERNAL_H
#define CORNU_NN_LAYERS_EINSUM_INTERNAL_H

#include "../../tensor/ops.h"

enum { CORNU_EINSUM_OPERANDS = 16 };

/*
 * keras.ops.einsum: "bqm,mnh->bqnh" multiplies elements whose letters agree and sums over the
 * letters that the result lacks. "..." stands for any number of leading or trailing axes, aligned
 * at the right; extents of 1 are broadcast. Without "->" the result has "...", then the letters
 * that occur once, in alphabetical order.
 *   x          1 to CORNU_EINSUM_OPERANDS tensors of one float dtype
 *   returns    the sum in `dtype`; products of two operands are summed as in cornu_op_matmul_to
 * Recorded as transposes, reshapes and matrix products. A letter twice in an operand is
 * CORNU_ERR_UNSUPPORTED; a malformed equation is CORNU_ERR_ARGUMENT.
 */
CornuTensor *cornu__einsum(const char *equation, CornuTensor *const *x, int count,
                           CornuDtype dtype);

#endif
