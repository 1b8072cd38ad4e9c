/* Convolutions, alone and joined with a pooling: f32. */
#include "../host/conv2d.h"
#include "kernels.h"

static size_t scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    return cornu__conv2d_scratch(op, out_type, CORNU_MULTIPLIES_F32, threads);
}

static size_t pooled_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    return cornu__conv2d_pooled_scratch(op, out_type, CORNU_MULTIPLIES_F32, threads);
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    return cornu__conv2d(call, CORNU_MULTIPLIES_F32);
}

static size_t filter_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    return cornu__conv2d_grad_filter_scratch(op, out_type, CORNU_MULTIPLIES_F32, threads, false);
}

static size_t filter_pooled_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    return cornu__conv2d_grad_filter_scratch(op, out_type, CORNU_MULTIPLIES_F32, threads, true);
}

static bool filter_pooled_accepts(const CornuOpCall *op, const CornuType *out_type)
{
    return cornu__product_accepts(CORNU_MULTIPLIES_F32, op, out_type) &&
           cornu__conv2d_grad_filter_takes_pool(op);
}

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    return cornu__conv2d_grad_filter(call, CORNU_MULTIPLIES_F32);
}

const CornuKernel cornu__cpu_conv2d = { NULL, scratch, conv2d, true };
const CornuKernel cornu__cpu_conv2d_pooled = { NULL, pooled_scratch, conv2d, true };
const CornuKernel cornu__cpu_conv2d_grad_input = { NULL, scratch, conv2d, false };
const CornuKernel cornu__cpu_conv2d_grad_filter = { NULL, filter_scratch, grad_filter, false };
const CornuKernel cornu__cpu_conv2d_grad_filter_pooled = {
    filter_pooled_accepts, filter_pooled_scratch, grad_filter, false,
};
