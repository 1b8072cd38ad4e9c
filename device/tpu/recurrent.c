/* lstm, gru and their gradients: bf16, or f32 in parts of bf16. */
#include "../host/recurrent.h"
#include "kernels.h"

static bool accepts(const CornuOpCall *op, const CornuType *out_type)
{
    (void)out_type;
    return cornu__recurrent_accepts(op, CORNU_MULTIPLIES_BF16);
}

static size_t scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    (void)out_type;
    return cornu__recurrent_scratch(op, CORNU_MULTIPLIES_BF16, threads);
}

static CornuStatus run(const CornuKernelCall *call)
{
    return cornu__recurrent(call, CORNU_MULTIPLIES_BF16);
}

const CornuKernel cornu__tpu_recurrent = { accepts, scratch, run, false };
