/* The float32 kernels of the cpu device; what each op means is said in device/ops/. */
#ifndef CORNU_DEVICE_CPU_KERNELS_H
#define CORNU_DEVICE_CPU_KERNELS_H

#include "../host/kernels/kernel.h"

extern const CornuKernel cornu__cpu_matmul;

/* By op; the rest is cornu__host_kernels. */
extern const CornuKernel *const cornu__cpu_kernels[CORNU_OP_COUNT];

#endif
