/* lstm and its gradient: bf16, or f32 in parts of bf16. */
#include "../host/recurrent.h"
#include "kernels.h"

static bool accepts(const CornuOpCall *op, const CornuType *out_type)
{
    (void)out_type;
    return cornu__lstm_accepts(op, CORNU_MULTIPLIES_BF16);
}

static size_t scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    (void)out_type;
    return cornu__lstm_scratch(op, CORNU_MULTIPLIES_BF16, threads);
}

static CornuStatus run(const CornuKernelCall *call)
{
    return cornu__lstm(call, CORNU_MULTIPLIES_BF16);
}

const CornuKernel cornu__tpu_lstm = { accepts, scratch, run, false };
