#include "convolution.h"

#include "../../../integer_internal.h"
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
        walk.axis[a] = (CornuAxis){ .in = transposed ? s->out : s->in,
                                    .out = transposed ? s->in : s->out,
                                    .taps = s->size, .stride = s->stride,
                                    .dilation = s->dilation, .low = s->low,
                                    .transposed = transposed };
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

/* From one slot that meets a row to the next one, and from that row: all slots meet rows that are a
 * dilation apart, or transposed those of which the rows are whole. */
static void find_steps(CornuAxis *axis)
{
    axis->slot_step = 1;
    while (axis->transposed && axis->slot_step * axis->dilation % axis->stride) axis->slot_step++;
    axis->row_step = axis->slot_step * axis->dilation / (axis->transposed ? axis->stride : 1);
}

static CornuMet met_by(const CornuAxis *axis, int64_t out)
{
    CornuMet met = { .row = -1 };
    for (; met.slot < axis->taps; met.slot++)
        if ((met.row = cornu__axis_row(axis, out, met.slot)) >= 0) break;
    if (met.row < 0) return (CornuMet){ 0 };
    met.count = smaller((axis->taps - 1 - met.slot) / axis->slot_step,
                        (axis->in - 1 - met.row) / axis->row_step) + 1;
    return met;
}

/* The same as `before` by an output earlier, a stride on, where both meet all taps. */
static CornuMet met_after(const CornuAxis *axis, int64_t out, const CornuMet *before)
{
    const int64_t last = before->row + axis->stride + (axis->taps - 1) * axis->dilation;
    if (axis->transposed || before->count < axis->taps || last >= axis->in)
        return met_by(axis, out);
    return (CornuMet){ 0, before->row + axis->stride, axis->taps };
}

int64_t cornu__taps_met(const CornuAxis *given)
{
    CornuAxis axis = *given;
    int64_t   met = 0;
    find_steps(&axis);
    for (int64_t out = 0; out < axis.out; out++) met += met_by(&axis, out).count;
    return met;
}

int64_t cornu__axis_reach(const CornuAxis *axis)
{
    return (axis->out - 1) * axis->stride + cornu__axis_reached(axis, axis->taps - 1) + 1;
}

size_t cornu__walk_size(const CornuWalk *walk)
{
    return (size_t)(walk->axis[0].out + walk->axis[1].out) * (sizeof(CornuMet) + sizeof(int64_t));
}

void cornu__walk_start(CornuWalk *walk, void *memory)
{
    for (int a = 0; a < 2; a++) {
        CornuAxis    *axis = &walk->axis[a];
        const int64_t step = cornu__axis_step(axis);
        axis->met = memory;
        axis->ends = (int64_t *)(axis->met + axis->out);
        memory = axis->ends + axis->out;
        find_steps(axis);
        for (int64_t out = 0; out < axis->out; out++)
            axis->met[out] = out > 0 ? met_after(axis, out, &axis->met[out - 1])
                                     : met_by(axis, out);
        for (int64_t out = axis->out - 1; out >= 0; out--) {
            const CornuMet *met = &axis->met[out], *next = met + step;
            const bool      alike = out + step < axis->out && met->slot == next->slot &&
                                    met->count == next->count;
            axis->ends[out] = alike ? axis->ends[out + step] : out + step;
        }
    }
}

void cornu__rows_met(const CornuAxis *axis, int64_t out, int64_t out_end, int64_t *from,
                     int64_t *to)
{
    *from = axis->in;
    *to = 0;
    for (const CornuMet *met = axis->met + out; met < axis->met + out_end; met++) {
        if (!met->count) continue;
        *from = smaller(*from, met->row);
        *to = larger(*to, met->row + (met->count - 1) * axis->row_step + 1);
    }
}

int64_t cornu__runs(const CornuWalk *walk, int64_t i, int64_t j, CornuRun *runs)
{
    const CornuAxis *height = &walk->axis[0], *width = &walk->axis[1];
    const CornuMet   rows = height->met[i], columns = width->met[j];
    const int64_t    C = walk->in_channels;
    const bool       joined = width->slot_step == 1 && width->row_step == 1;
    const int64_t    each = joined ? columns.count : 1;
    int64_t          count = 0;
    for (int64_t u = 0; u < rows.count; u++) {
        const int64_t row = (rows.row + u * height->row_step) * width->in + columns.row;
        const int64_t slot = (rows.slot + u * height->slot_step) * width->taps + columns.slot;
        for (int64_t v = 0; v < columns.count; v += each)
            runs[count++] = (CornuRun){ (row + v * width->row_step) * C,
                                        (slot + v * width->slot_step) * C, each * C };
    }
    return count;
}
