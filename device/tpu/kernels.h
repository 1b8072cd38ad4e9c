/* The matrix kernels of the tpu device: bf16 products and f32 sums. f32 operands take as many
 * passes as the device was opened for (host/precision.h). device/ops/ says what each op means. */
#ifndef CORNU_DEVICE_TPU_KERNELS_H
#define CORNU_DEVICE_TPU_KERNELS_H

#include "../host/kernel.h"

extern const CornuKernel cornu__tpu_matmul;

/* By op; the rest is cornu__host_kernels. */
extern const CornuKernel *const cornu__tpu_kernels[CORNU_OP_COUNT];

#endif
