/*
 * Where a convolution reads: per axis, which taps of the filter meet which rows of the input.
 *
 * The convolution reads "in" and writes "out". Forwards, out[o] sums tap u of the filter with
 * in[o stride + u dilation - low]. The gradient of the input is the same walk transposed: it
 * reads d_y and writes d_x, and out[o] sums tap u with in[(o + low - u dilation) / stride]
 * where that is whole. Taps whose row does not exist are skipped, so padding costs nothing.
 */
#ifndef CORNU_DEVICE_HOST_CONVOLUTION_H
#define CORNU_DEVICE_HOST_CONVOLUTION_H

#include "../op.h"
#include "product.h"

typedef struct {
    int64_t in, out, taps, stride, dilation, low;
    bool    transposed;
} CornuAxis;

typedef struct {
    CornuAxis axis[2];            /* height, width */
    int64_t   batch, in_channels, out_channels;
} CornuConvolved;

/* The walk of conv2d, or of conv2d_grad_input. conv2d_grad_filter uses conv2d's. */
CornuConvolved cornu__convolved(const CornuOpCall *call, const CornuType *out_type);

/* Filters are walked in the order in which their rows of the input ascend: slot t is tap t,
 * transposed tap taps - 1 - t. */
int64_t cornu__axis_tap(const CornuAxis *axis, int64_t slot);

/* The row that `slot` meets at `out`, -1 if there is none. */
int64_t cornu__axis_row(const CornuAxis *axis, int64_t out, int64_t slot);

/* The first output from `out` on, up to axis->out, whose taps differ from those at `out` by more
 * than a shift of one stride per output: between them one list of runs serves all. */
int64_t cornu__axis_segment(const CornuAxis *axis, int64_t out);

/* The runs that make out (i, j): offsets into one image, k counted in (slot, slot, channel).
 * At most taps * taps; returns how many. */
int64_t cornu__runs(const CornuConvolved *walk, int64_t i, int64_t j, CornuRun *runs);

#endif
