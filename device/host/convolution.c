#include "convolution.h"

static int64_t at_least_one(int64_t n) { return n > 0 ? n : 1; }

CornuConvolved cornu__convolved(const CornuOpCall *call, const CornuType *out_type)
{
    const int64_t *strides, *low, *dilation, *in = call->in[0].shape.extent;
    const int64_t *out = out_type->shape.extent, *filter = call->in[1].shape.extent;
    const bool     transposed = call->id == CORNU_OP_CONV2D_GRAD_INPUT;
    if (call->id == CORNU_OP_CONV2D) {
        strides = call->attributes->conv2d.strides;
        low = call->attributes->conv2d.low;
        dilation = call->attributes->conv2d.dilation;
    } else {
        strides = call->attributes->conv2d_grad.strides;
        low = call->attributes->conv2d_grad.low;
        dilation = call->attributes->conv2d_grad.dilation;
    }
    if (call->id == CORNU_OP_CONV2D_GRAD_FILTER) {   /* in: x, d_y; out: the filter */
        filter = out;
        out = call->in[1].shape.extent;
    }
    CornuConvolved walk = { .batch = in[0], .in_channels = in[3], .out_channels = out[3] };
    for (int a = 0; a < 2; a++)
        walk.axis[a] = (CornuAxis){ in[1 + a], out[1 + a], filter[a], at_least_one(strides[a]),
                                    at_least_one(dilation[a]), low[a], transposed };
    return walk;
}

int64_t cornu__axis_tap(const CornuAxis *axis, int64_t slot)
{
    return axis->transposed ? axis->taps - 1 - slot : slot;
}

int64_t cornu__axis_row(const CornuAxis *axis, int64_t out, int64_t slot)
{
    const int64_t shift = cornu__axis_tap(axis, slot) * axis->dilation - axis->low;
    int64_t       row = out * axis->stride + shift;
    if (axis->transposed) {
        if ((out - shift) % axis->stride) return -1;
        row = (out - shift) / axis->stride;
    }
    return row >= 0 && row < axis->in ? row : -1;
}

int64_t cornu__axis_segment(const CornuAxis *axis, int64_t out)
{
    int64_t end = out + 1;
    if (axis->transposed && axis->stride > 1) return end;
    for (; end < axis->out; end++)
        for (int64_t slot = 0; slot < axis->taps; slot++)
            if ((cornu__axis_row(axis, out, slot) < 0) != (cornu__axis_row(axis, end, slot) < 0))
                return end;
    return end;
}

int64_t cornu__runs(const CornuConvolved *walk, int64_t i, int64_t j, CornuRun *runs)
{
    const CornuAxis *height = &walk->axis[0], *width = &walk->axis[1];
    const int64_t    channels = walk->in_channels;
    int64_t          count = 0;
    for (int64_t u = 0; u < height->taps; u++) {
        const int64_t row = cornu__axis_row(height, i, u);
        if (row < 0) continue;
        CornuRun *last = NULL;
        for (int64_t v = 0; v < width->taps; v++) {
            const int64_t column = cornu__axis_row(width, j, v);
            if (column < 0) continue;
            const int64_t offset = (row * width->in + column) * channels;
            const int64_t k = (u * width->taps + v) * channels;
            if (last && offset == last->offset + last->length && k == last->k + last->length) {
                last->length += channels;
            } else {
                last = &runs[count++];
                *last = (CornuRun){ offset, k, channels };
            }
        }
    }
    return count;
}
