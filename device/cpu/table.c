/* The tables of the cpu device: its kernels and the library that they call, which is BLIS. */
#include "../host/kernels/kernels.h"
#include "../inference_internal.h"
#include "blis.h"
#include "kernels.h"

CornuKernels cornu__cpu_kernels[CORNU_OP_COUNT] = {
    [CORNU_OP_MATMUL] = { CORNU__FULL(&cornu__cpu_matmul, &cornu__host_matmul_few),
                          CORNU__FULL(&cornu__host_matmul_few, NULL) },
};

static const CornuCpuLibrary blis = {
    .name = "BLIS", .version = cornu__blis_version, .kernels = cornu__blis_kernels,
    .open = cornu__blis_open, .close = cornu__blis_close,
};
const CornuCpuLibrary *const cornu__cpu_library = CORNU__FULL(&blis, NULL);
