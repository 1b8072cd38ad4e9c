/*
 * Where a convolution reads: along each axis, which taps of the filter meet which rows of the
 * input.
 *
 * The walk reads "in" and writes "out". Forwards, out[o] sums tap u of the filter with in[o stride
 * + u dilation - low]. The gradient of the input is the same walk transposed: it reads d_y and
 * writes d_x, and out[o] sums tap u with in[(o + low - u dilation) / stride] where that is whole.
 * Taps whose row does not exist are skipped, so padding costs nothing.
 *
 * Filters are walked in ascending order of their rows of the input: slot t is tap t, or transposed
 * tap taps - 1 - t.
 */
#ifndef CORNU_DEVICE_HOST_CONVOLUTION_H
#define CORNU_DEVICE_HOST_CONVOLUTION_H

#include "../../../op.h"
#include "../../isa/product.h"

/* What an output meets: `count` rows, the first of them with a slot; the axis has the steps to the
 * next ones. */
typedef struct {
    int64_t slot, row, count;
} CornuMet;

typedef struct {
    int64_t   in, out, taps, stride, dilation, low;
    bool      transposed;
    int64_t   slot_step, row_step;
    CornuMet *met;    /* out */
    int64_t  *ends;   /* out: of this output and those that follow in steps of cornu__axis_step, the
                         first whose slots meet other rows than this one's moved by one step (a
                         stride; transposed 1) per output; it may lie beyond the last */
} CornuAxis;

/* Outputs between two that meet neighbouring rows: between those of the gradient with a stride are
 * others, which meet other taps. */
static inline int64_t cornu__axis_step(const CornuAxis *axis)
{
    return axis->transposed ? axis->stride : 1;
}

typedef struct {
    CornuAxis axis[2];            /* height, width */
    int64_t   batch, in_channels, out_channels;
} CornuWalk;

/* The walk of conv2d, or of conv2d_grad_input; that of conv2d_grad_filter is conv2d's; the same for
 * grouped ones. Without what outputs meet, and ends. */
CornuWalk cornu__walk(const CornuOpCall *call, const CornuType *out_type);

/* The bytes that these take for both axes, and filling them there. */
size_t cornu__walk_size(const CornuWalk *walk);
void   cornu__walk_start(CornuWalk *walk, void *memory);

/*
 * A convolution with strides as one without. With a stride of s along an axis, of which the number
 * of taps is a multiple, row i s + u of x is row i + floor(u / s) of those with the remainder
 * u mod s, its phase: so with all phases as channels side by side
 *
 *     x (B, H, W, C) -> (B, H / s, W / t, s t C)     filter (s h, t w, C, F) -> (h, w, s t C, F)
 *
 * has the same sums, and so has the gradient of x. In memory x is then (B, H / s, s, W / t, t C),
 * the filter (h, s, w, t C, F).
 */
typedef struct {
    int64_t groups;     /* s: rows of x or d_x in memory whose channels are joined */
    int64_t channels;   /* t C: of each                                            */
} CornuPhases;

/* Makes that walk of one with strides; unchanged, with one group, where phases are not whole. */
CornuPhases cornu__walk_phases(CornuWalk *walk);

int64_t cornu__axis_tap(const CornuAxis *axis, int64_t slot);
/* The row that a slot of an output meets, -1 if there is none. */
int64_t cornu__axis_row(const CornuAxis *axis, int64_t out, int64_t slot);

/* Taps that meet rows, over all outputs of an axis. */
int64_t cornu__taps_met(const CornuAxis *axis);

/* Not transposed: the number of rows of an input padded so that every tap meets one, counted from
 * the first row that any tap meets, rows that are skipped included; and the row that a tap of
 * output 0 meets. Row 0 of the input is row `low` there, or 0 if low is negative. */
int64_t cornu__axis_reach(const CornuAxis *axis);
static inline int64_t cornu__axis_reached(const CornuAxis *axis, int64_t tap)
{
    return tap * axis->dilation + (axis->low < 0 ? -axis->low : 0);
}

/* A range [*from, *to) of input rows that holds all that the outputs [out, out_end) meet. */
void cornu__rows_met(const CornuAxis *axis, int64_t out, int64_t out_end, int64_t *from,
                     int64_t *to);

/* The runs that out (i, j) sums: offsets into one image, k counted in (slot, slot, channel). At
 * most one per tap; returns the number. */
int64_t cornu__runs(const CornuWalk *walk, int64_t i, int64_t j, CornuRun *runs);

#endif
