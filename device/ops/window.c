#include "window.h"

#include "rules.h"

/* Everything but `out`, from attributes and operands. The attributes of grouped convolutions begin
 * with those of the others. */
static CornuSweep sweep_along(const CornuOpCall *call, int i)
{
    const CornuAttributes_CONV2D      *conv = &call->attributes->conv2d;
    const CornuAttributes_CONV2D_GRAD *conv_grad = &call->attributes->conv2d_grad;
    const CornuAttributes_WINDOW      *pool = &call->attributes->window;
    const CornuAttributes_WINDOW_GRAD *pool_grad = &call->attributes->window_grad;
    const CornuType                   *in = call->in;
    switch (call->id) {
    case CORNU_OP_CONV2D: case CORNU_OP_GROUPED_CONV2D:
        return (CornuSweep){
            in[0].shape.extent[1 + i], in[1].shape.extent[i], conv->strides[i],
            conv->dilation[i], conv->low[i], conv->high[i], 0,
        };
    case CORNU_OP_CONV2D_GRAD_INPUT: case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT:
        return (CornuSweep){
            conv_grad->extents[i], in[1].shape.extent[i], conv_grad->strides[i],
            conv_grad->dilation[i], conv_grad->low[i], conv_grad->high[i], 0,
        };
    case CORNU_OP_CONV2D_GRAD_FILTER: case CORNU_OP_GROUPED_CONV2D_GRAD_FILTER:
        return (CornuSweep){
            in[0].shape.extent[1 + i], conv_grad->extents[i], conv_grad->strides[i],
            conv_grad->dilation[i], conv_grad->low[i], conv_grad->high[i], 0,
        };
    case CORNU_OP_MAX_POOL2D:
    case CORNU_OP_AVERAGE_POOL2D:
        return (CornuSweep){
            in[0].shape.extent[1 + i], pool->size[i], pool->strides[i], 1, pool->low[i],
            pool->high[i], 0,
        };
    default: /* the gradients of pooling */
        return (CornuSweep){
            pool_grad->extents[i], pool_grad->size[i], pool_grad->strides[i], 1,
            pool_grad->low[i], pool_grad->high[i], 0,
        };
    }
}

static bool within(int64_t low, int64_t value) { return value >= low && value <= INT32_MAX; }

bool cornu__sweeps(const CornuOpCall *call, CornuSweep sweeps[2])
{
    for (int i = 0; i < 2; i++) {
        CornuSweep s = sweep_along(call, i);
        if (s.stride == 0) s.stride = 1;
        if (s.dilation == 0) s.dilation = 1;
        /* 31 bits each: no product or sum below overflows. */
        if (!within(1, s.in) || !within(1, s.size) || !within(1, s.stride) ||
            !within(1, s.dilation) || !within(-INT32_MAX, s.low) || !within(-INT32_MAX, s.high))
            return false;
        int64_t room = s.in + s.low + s.high - s.dilation * (s.size - 1) - 1;
        if (room < 0) return false;
        s.out = room / s.stride + 1;
        sweeps[i] = s;
    }
    return true;
}

int64_t cornu__conv_groups(const CornuOpCall *call)
{
    switch (call->id) {
    case CORNU_OP_GROUPED_CONV2D: return call->attributes->grouped_conv2d.groups;
    case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT: case CORNU_OP_GROUPED_CONV2D_GRAD_FILTER:
        return call->attributes->grouped_conv2d_grad.groups;
    default: return 1;
    }
}
