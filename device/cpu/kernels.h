/* The float32 kernels of the cpu device; device/ops/ says what each op means. */
#ifndef CORNU_DEVICE_CPU_KERNELS_H
#define CORNU_DEVICE_CPU_KERNELS_H

#include "../host/kernels/kernel.h"

extern const CornuKernel cornu__cpu_matmul;

/* By op; for all others, cornu__host_kernels. */
extern const CornuKernel *const cornu__cpu_kernels[CORNU_OP_COUNT];

#endif
