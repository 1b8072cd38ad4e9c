#include "convolution.h"

#include "../../../ops/window.h"

CornuWalk cornu__walk(const CornuOpCall *call, const CornuType *out_type)
{
    const bool     transposed = call->id == CORNU_OP_CONV2D_GRAD_INPUT ||
                                call->id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT;
    const bool     by_filter = call->id == CORNU_OP_CONV2D_GRAD_FILTER ||
                               call->id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
    const int64_t *in = call->in[0].shape.extent;
    CornuSweep     sweeps[2];
    cornu__sweeps(call, sweeps);
    CornuWalk walk = {
        .batch = in[0], .in_channels = in[3],
        .out_channels = by_filter ? call->in[1].shape.extent[3] : out_type->shape.extent[3],
    };
    for (int a = 0; a < 2; a++) {
        const CornuSweep *s = &sweeps[a];
        walk.axis[a] = (CornuAxis){ transposed ? s->out : s->in, transposed ? s->in : s->out,
                                    s->size, s->stride, s->dilation, s->low, transposed, NULL,
                                    NULL };
    }
    return walk;
}

/* The rows of x or d_x. */
static int64_t *x_rows(CornuAxis *axis) { return axis->transposed ? &axis->out : &axis->in; }

CornuPhases cornu__walk_phases(CornuWalk *walk)
{
    CornuAxis *height = &walk->axis[0], *width = &walk->axis[1];
    int64_t   *channels = height->transposed ? &walk->out_channels : &walk->in_channels;
    for (CornuAxis *a = height; a <= width; a++)
        if (a->taps % a->stride || a->dilation != 1 || *x_rows(a) % a->stride ||
            a->low % a->stride)
            return (CornuPhases){ 1, *channels };
    const CornuPhases phases = { height->stride, width->stride * *channels };
    *channels *= height->stride * width->stride;
    for (CornuAxis *a = height; a <= width; a++) {
        *x_rows(a) /= a->stride;
        a->low /= a->stride;
        a->taps /= a->stride;
        a->stride = 1;
    }
    return phases;
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

int64_t cornu__taps_met(const CornuAxis *axis)
{
    int64_t met = 0;
    for (int64_t out = 0; out < axis->out; out++)
        for (int64_t slot = 0; slot < axis->taps; slot++)
            met += cornu__axis_row(axis, out, slot) >= 0;
    return met;
}

int64_t cornu__axis_reach(const CornuAxis *axis)
{
    return (axis->out - 1) * axis->stride + cornu__axis_reached(axis, axis->taps - 1) + 1;
}

int64_t cornu__walk_size(const CornuWalk *walk)
{
    const CornuAxis *height = &walk->axis[0], *width = &walk->axis[1];
    return height->out * (height->taps + 1) + width->out * (width->taps + 1);
}

/* Whether the outputs meet rows with the same slots, one step apart. */
static bool alike(const CornuAxis *axis, int64_t a, int64_t b)
{
    for (int64_t slot = 0; slot < axis->taps; slot++)
        if ((axis->rows[a * axis->taps + slot] < 0) != (axis->rows[b * axis->taps + slot] < 0))
            return false;
    return true;
}

void cornu__walk_start(CornuWalk *walk, int64_t *memory)
{
    for (int a = 0; a < 2; a++) {
        CornuAxis *axis = &walk->axis[a];
        axis->rows = memory;
        axis->ends = memory += axis->out * axis->taps;
        memory += axis->out;
        for (int64_t out = 0; out < axis->out; out++)
            for (int64_t slot = 0; slot < axis->taps; slot++)
                axis->rows[out * axis->taps + slot] = cornu__axis_row(axis, out, slot);
        for (int64_t out = axis->out - 1, step = cornu__axis_step(axis); out >= 0; out--)
            axis->ends[out] = out + step < axis->out && alike(axis, out, out + step)
                            ? axis->ends[out + step] : out + step;
    }
}

void cornu__rows_met(const CornuAxis *axis, int64_t out, int64_t out_end, int64_t *from,
                     int64_t *to)
{
    *from = axis->in;
    *to = 0;
    for (const int64_t *row = axis->rows + out * axis->taps,
                       *end = axis->rows + out_end * axis->taps; row < end; row++) {
        if (*row < 0) continue;
        if (*row < *from) *from = *row;
        if (*row >= *to) *to = *row + 1;
    }
}

int64_t cornu__runs(const CornuWalk *walk, int64_t i, int64_t j, CornuRun *runs)
{
    const CornuAxis *height = &walk->axis[0], *width = &walk->axis[1];
    const int64_t   *rows = height->rows + i * height->taps;
    const int64_t   *columns = width->rows + j * width->taps;
    const int64_t    channels = walk->in_channels;
    int64_t          count = 0;
    for (int64_t u = 0; u < height->taps; u++) {
        if (rows[u] < 0) continue;
        CornuRun *last = NULL;
        for (int64_t v = 0; v < width->taps; v++) {
            if (columns[v] < 0) continue;
            const int64_t offset = (rows[u] * width->in + columns[v]) * channels;
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
