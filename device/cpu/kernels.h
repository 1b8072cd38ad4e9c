/* The float32 kernels of the cpu device; what each op means is said in device/ops/. */
#ifndef CORNU_DEVICE_CPU_KERNELS_H
#define CORNU_DEVICE_CPU_KERNELS_H

#include "../host/kernel.h"

extern const CornuKernel cornu__cpu_matmul;

extern const CornuKernel cornu__cpu_conv2d, cornu__cpu_conv2d_grad_input,
                         cornu__cpu_conv2d_grad_filter;

/* lstm, gru and their gradients. */
extern const CornuKernel cornu__cpu_recurrent;

/* Joined with a pooling: CornuKernelCall.pool. */
extern const CornuKernel cornu__cpu_conv2d_pooled, cornu__cpu_conv2d_grad_filter_pooled;

/* By op; the rest is cornu__host_kernels. */
extern const CornuKernel *const cornu__cpu_kernels[CORNU_OP_COUNT];

#endif
