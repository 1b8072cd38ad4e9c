/* lstm, gru and their gradients: f32. */
#include "../host/recurrent.h"
#include "kernels.h"

static bool accepts(const CornuOpCall *op, const CornuType *out_type)
{
    (void)out_type;
    return cornu__recurrent_accepts(op, CORNU_MULTIPLIES_F32);
}

static size_t scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    (void)out_type;
    return cornu__recurrent_scratch(op, CORNU_MULTIPLIES_F32, threads);
}

static CornuStatus run(const CornuKernelCall *call)
{
    return cornu__recurrent(call, CORNU_MULTIPLIES_F32);
}

const CornuKernel cornu__cpu_recurrent = { accepts, scratch, run, false };
