/* The float32 kernels of the cpu device; device/ops/ says what each op means. */
#ifndef CORNU_DEVICE_CPU_KERNELS_H
#define CORNU_DEVICE_CPU_KERNELS_H

#include "../host/kernels/kernel.h"

extern const CornuKernel cornu__cpu_matmul;

/* A library that multiplies matrices for these kernels. */
typedef struct {
    const char *name;
    const char *(*version)(void), *(*kernels)(void);   /* once opened */
    CornuStatus (*open)(int threads);   /* that will multiply at the same time */
    void        (*close)(int threads);
} CornuCpuLibrary;

/* NULL: none, and the kernels that all host devices share multiply. */
extern const CornuCpuLibrary *const cornu__cpu_library;

/* By op, asked before cornu__host_kernels. */
extern CornuKernels cornu__cpu_kernels[CORNU_OP_COUNT];

#endif
