/* Convolutions, alone and joined with a pooling: bf16 or f32 in and out, f32 in the sums. */
#include "../host/conv2d.h"
#include "kernels.h"

static bool accepts(const CornuOpCall *op, const CornuType *out_type)
{
    return cornu__product_accepts(CORNU_MULTIPLIES_BF16, op, out_type);
}

static size_t scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    return cornu__conv2d_scratch(op, out_type, CORNU_MULTIPLIES_BF16, threads);
}

static size_t pooled_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    return cornu__conv2d_pooled_scratch(op, out_type, CORNU_MULTIPLIES_BF16, threads);
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    return cornu__conv2d(call, CORNU_MULTIPLIES_BF16);
}

static size_t filter_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    return cornu__conv2d_grad_filter_scratch(op, out_type, CORNU_MULTIPLIES_BF16, threads, false);
}

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    return cornu__conv2d_grad_filter(call, CORNU_MULTIPLIES_BF16);
}

const CornuKernel cornu__tpu_conv2d = { accepts, scratch, conv2d, true };
const CornuKernel cornu__tpu_conv2d_pooled = { accepts, pooled_scratch, conv2d, true };
const CornuKernel cornu__tpu_conv2d_grad_input = { accepts, scratch, conv2d, false };
const CornuKernel cornu__tpu_conv2d_grad_filter = { accepts, filter_scratch, grad_filter, false };
