/*
 * Where a convolution reads: per axis, which taps of the filter meet which rows of the input.
 *
 * The walk reads "in" and writes "out". Forwards, out[o] sums tap u of the filter with
 * in[o stride + u dilation - low]. The gradient of the input is the same walk transposed: it
 * reads d_y and writes d_x, and out[o] sums tap u with in[(o + low - u dilation) / stride]
 * where that is whole. Taps whose row does not exist are skipped, so padding costs nothing.
 *
 * Filters are walked in the order in which their rows of the input ascend: slot t is tap t,
 * transposed tap taps - 1 - t.
 */
#ifndef CORNU_DEVICE_HOST_CONVOLUTION_H
#define CORNU_DEVICE_HOST_CONVOLUTION_H

#include "../../op.h"
#include "../isa/product.h"

typedef struct {
    int64_t  in, out, taps, stride, dilation, low;
    bool     transposed;
    int64_t *rows;   /* out x taps: the row that each slot meets, -1 if there is none */
    int64_t *ends;   /* out: the first output behind, whose slots meet other rows than those of
                        this one moved on by one step (a stride; transposed 1) per output */
} CornuAxis;

typedef struct {
    CornuAxis axis[2];            /* height, width */
    int64_t   batch, in_channels, out_channels;
} CornuWalk;

/* The walk of conv2d, or of conv2d_grad_input; that of conv2d_grad_filter is conv2d's; of grouped
 * ones likewise. Rows and ends are not there yet. */
CornuWalk cornu__walk(const CornuOpCall *call, const CornuType *out_type);

/* How many int64_t rows and ends of both axes take, and making them there. */
int64_t cornu__walk_size(const CornuWalk *walk);
void    cornu__walk_start(CornuWalk *walk, int64_t *memory);

int64_t cornu__axis_tap(const CornuAxis *axis, int64_t slot);
int64_t cornu__axis_row(const CornuAxis *axis, int64_t out, int64_t slot);

/* Not transposed: the rows of an input that is padded so that every tap meets a row of it, from the
 * first that any meets, those left out before included; and which of them a tap of output 0 meets.
 * Row 0 of the input is row `low` there, or 0 if low is negative. */
int64_t cornu__axis_reach(const CornuAxis *axis);
static inline int64_t cornu__axis_reached(const CornuAxis *axis, int64_t tap)
{
    return tap * axis->dilation + (axis->low < 0 ? -axis->low : 0);
}

/* The rows [*from, *to) of the input among which are all that the outputs [out, out_end) meet. */
void cornu__rows_met(const CornuAxis *axis, int64_t out, int64_t out_end, int64_t *from,
                     int64_t *to);

/* The runs that make out (i, j): offsets into one image, k counted in (slot, slot, channel).
 * At most one per tap; returns how many. */
int64_t cornu__runs(const CornuWalk *walk, int64_t i, int64_t j, CornuRun *runs);

#endif
