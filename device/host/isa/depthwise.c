/*
 * Depthwise convolution by vectors over the channels; depthwise.h says what each function computes.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain: not measured.
 */
#include "../../inference_internal.h"
#include "depthwise.h"
#include "lanes.h"

/* Sums that stay in registers: of so many outputs, or of so many taps (those of 3 by 3). */
enum { MOST_OUTPUTS = 8, MOST_TAPS = 9 };

/* Outputs j to j + outputs, up to LANES channels from c on; each output's terms in the order of
 * the taps. */
INLINE void convolve_tile(const CornuDepthwiseRun *run, const float *x, const float *filter,
                          float *y, int64_t j, int64_t c, int outputs, int64_t count)
{
    Lanes sum[MOST_OUTPUTS] = { { 0 } };
    for (int64_t t = 0; t < run->tap_count; t++) {
        const Lanes  weight = load_some(filter + run->taps[t].filter + c, count);
        const float *from = x + run->taps[t].x + j * run->x_step + c;
        UNROLL
        for (int k = 0; k < outputs; k++)
            sum[k] += load_some(from + k * run->x_step, count) * weight;
    }
    UNROLL
    for (int k = 0; k < outputs; k++)
        store_some(y + (j + k) * run->y_step + c, sum[k], count);
}

INLINE void convolve_channels(const CornuDepthwiseRun *run, const float *x, const float *filter,
                              float *y, int64_t c, int64_t count)
{
    int64_t j = 0;
    for (; j + MOST_OUTPUTS <= run->outputs; j += MOST_OUTPUTS)
        convolve_tile(run, x, filter, y, j, c, MOST_OUTPUTS, count);
    if (run->outputs - j >= 4) convolve_tile(run, x, filter, y, j, c, 4, count), j += 4;
    if (run->outputs - j >= 2) convolve_tile(run, x, filter, y, j, c, 2, count), j += 2;
    if (run->outputs - j >= 1) convolve_tile(run, x, filter, y, j, c, 1, count);
}

/* The last register of channels may compute some channels a second time. */
static void convolve(const CornuDepthwiseRun *run, const float *x, const float *filter, float *y)
{
    const int64_t C = run->channels;
    if (C < LANES) convolve_channels(run, x, filter, y, 0, C);
    for (int64_t c = 0; c < C && C >= LANES; c += LANES)
        convolve_channels(run, x, filter, y, c + LANES <= C ? c : C - LANES, LANES);
}

/* Taps t to t + taps, up to LANES channels from c on, of which the first `done` stay as they are;
 * each tap's terms in the order of the outputs. */
INLINE void filter_tile(const CornuDepthwiseRun *run, const float *x, const float *y, float *sums,
                        int64_t t, int64_t c, int taps, int64_t count, int64_t done)
{
    Lanes        sum[MOST_TAPS];
    const float *from[MOST_TAPS];
    UNROLL
    for (int k = 0; k < taps; k++) {
        sum[k] = load_some(sums + run->taps[t + k].filter + c, count);
        from[k] = x + run->taps[t + k].x + c;
    }
    for (int64_t j = 0; j < run->outputs; j++) {
        const Lanes by = load_some(y + j * run->y_step + c, count);
        UNROLL
        for (int k = 0; k < taps; k++) sum[k] += load_some(from[k] + j * run->x_step, count) * by;
    }
    for (int k = 0; k < taps && done == 0; k++)
        store_some(sums + run->taps[t + k].filter + c, sum[k], count);
    for (int k = 0; k < taps && done > 0; k++)
        memcpy(sums + run->taps[t + k].filter + c + done, (const float *)&sum[k] + done,
               (size_t)(LANES - done) * sizeof(float));
}

INLINE void filter_channels(const CornuDepthwiseRun *run, const float *x, const float *y,
                            float *sums, int64_t c, int64_t count, int64_t done)
{
    int64_t t = 0;
    for (; t + MOST_TAPS <= run->tap_count; t += MOST_TAPS)
        filter_tile(run, x, y, sums, t, c, MOST_TAPS, count, done);
    for (; t + 4 <= run->tap_count; t += 4) filter_tile(run, x, y, sums, t, c, 4, count, done);
    for (; t + 2 <= run->tap_count; t += 2) filter_tile(run, x, y, sums, t, c, 2, count, done);
    if (t < run->tap_count) filter_tile(run, x, y, sums, t, c, 1, count, done);
}

static void grad_filter(const CornuDepthwiseRun *run, const float *x, const float *y, float *sums)
{
    const int64_t C = run->channels, whole = C / LANES * LANES;
    if (C < LANES) filter_channels(run, x, y, sums, 0, C, 0);
    for (int64_t c = 0; c < whole; c += LANES) filter_channels(run, x, y, sums, c, LANES, 0);
    if (C > LANES && whole < C)
        filter_channels(run, x, y, sums, C - LANES, LANES, whole - (C - LANES));
}

const CornuDepthwises CORNU__PER_ISA(cornu__depthwises) = {
    convolve, CORNU__FULL(grad_filter, NULL),
};
