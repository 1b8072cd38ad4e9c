/*
 * Depthwise convolution by vectors over the channels; depthwise.h says what each function computes.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain, Xeon with AMX, two threads: rows of 5 taps, convolutions of 5 x 5 by 128 to 320 channels
 *     and their gradients, 16 images, AVX-512 19.9 ms, then 16.3; AVX2 26.6, then 24.8. Zen 4, one
 *     thread: outputs at the sides by four registers, 16 x 16 x 384 by 5 x 5, with two transposes
 *     of images, 0.186 ms, then 0.141.
 */
#include <stdbool.h>

#include "../../inference_internal.h"
#include "depthwise.h"
#include "finish.h"
#include "lanes.h"

/* Sums that stay in registers: of so many outputs, or of so many taps (those of 3 by 3); and
 * outputs of a piece of d_filter's sums, long enough that reading and writing these costs little.
 */
enum { MOST_OUTPUTS = 8, MOST_TAPS = 9, PIECE = 16 };

/* Sums of outputs begin as the bias of `count` channels from c on. */
INLINE void start_outputs(const CornuDepthwiseOperands *o, int64_t c, int64_t count, int outputs,
                          int step, Lanes *sum)
{
    const Lanes bias = o->bias ? load_some(o->bias + c, count) : (Lanes){ 0 };
    UNROLL for (int k = 0; k < outputs; k++) sum[k * step] = bias;
}

/* Finishes and stores outputs from j on. */
INLINE void store_outputs(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o, int64_t j,
                          int64_t c, int64_t count, int outputs, int step, Lanes *sum)
{
    const ptrdiff_t at = j * run->y_step + c;
    finish_rows(&o->finish, c, count, o->term ? o->term + at : NULL, run->y_step, outputs, step,
                sum);
    UNROLL for (int k = 0; k < outputs; k++)
        store_some(o->y + at + k * run->y_step, sum[k * step], count);
}

/* Outputs j to j + outputs, up to LANES channels from c on; each output's terms in the order of
 * the taps. */
INLINE void convolve_tile(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o, int64_t j,
                          int64_t c, int outputs, int64_t count)
{
    Lanes sum[MOST_OUTPUTS];
    start_outputs(o, c, count, outputs, 1, sum);
    for (int64_t t = 0; t < run->tap_count; t++) {
        const Lanes  weight = load_some(o->filter + run->taps[t].filter + c, count);
        const float *from = o->x + run->taps[t].x + j * run->x_step + c;
        UNROLL
        for (int k = 0; k < outputs; k++)
            sum[k] += load_some(from + k * run->x_step, count) * weight;
    }
    store_outputs(run, o, j, c, count, outputs, 1, sum);
}

/* The same where taps come in rows of `taps`, each a step of the outputs after the one before: an
 * element of x is loaded once for all that meet it. */
INLINE void convolve_rows(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o, int64_t j,
                          int64_t c, int outputs, int taps)
{
    Lanes sum[MOST_OUTPUTS];
    start_outputs(o, c, LANES, outputs, 1, sum);
    for (int64_t t = 0; t < run->tap_count; t += taps) {
        const float *from = o->x + run->taps[t].x + j * run->x_step + c;
        Lanes        weight[MOST_TAPS];
        UNROLL
        for (int v = 0; v < taps; v++) weight[v] = load(o->filter + run->taps[t + v].filter + c);
        UNROLL
        for (int k = 0; k < outputs + taps - 1; k++) {
            const Lanes at = load(from + k * run->x_step);
            UNROLL
            for (int v = 0; v < taps; v++)
                if (k - v >= 0 && k - v < outputs) sum[k - v] += at * weight[v];
        }
    }
    store_outputs(run, o, j, c, LANES, outputs, 1, sum);
}

/* One or two outputs, by several registers of channels at once: the sums of one each would wait for
 * their last term. */
INLINE void convolve_few(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o, int64_t j,
                         int outputs)
{
    enum { VECTORS = 4 };
    int64_t c = 0;
    for (; c + VECTORS * LANES <= run->channels; c += VECTORS * LANES) {
        Lanes sum[2 * VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            start_outputs(o, c + v * LANES, LANES, outputs, VECTORS, sum + v);
        for (int64_t t = 0; t < run->tap_count; t++) {
            const float *weights = o->filter + run->taps[t].filter + c;
            const float *from = o->x + run->taps[t].x + j * run->x_step + c;
            UNROLL
            for (int i = 0; i < outputs * VECTORS; i++)
                sum[i] += load(from + i / VECTORS * run->x_step + i % VECTORS * LANES) *
                          load(weights + i % VECTORS * LANES);
        }
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            store_outputs(run, o, j, c + v * LANES, LANES, outputs, VECTORS, sum + v);
    }
    for (; c < run->channels; c += LANES) {
        const int64_t left = run->channels - c;
        convolve_tile(run, o, j, c, outputs, left < LANES ? left : LANES);
    }
}

/* Outputs j to j + outputs, all channels: what they meet of x are pieces of its rows, so that the
 * processor fetches them ahead. The last register of channels may compute some a second time. */
INLINE void convolve_outputs(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o,
                             int64_t j, int outputs, int row_taps)
{
    const int64_t C = run->channels;
    if (C < LANES) convolve_tile(run, o, j, 0, outputs, C);
    for (int64_t c = 0, at; c < C && C >= LANES; c += LANES) {
        at = c + LANES <= C ? c : C - LANES;
        if (row_taps) convolve_rows(run, o, j, at, outputs, row_taps);
        else convolve_tile(run, o, j, at, outputs, LANES);
    }
}

static bool has_rows(const CornuDepthwiseRun *run, int taps)
{
    return run->row_taps > 0 && run->row_taps % taps == 0;
}

/* All outputs but up to three; returns the first of these. */
INLINE int64_t convolve_run(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o,
                            int row_taps)
{
    int64_t j = 0;
    for (; j + MOST_OUTPUTS <= run->outputs; j += MOST_OUTPUTS)
        convolve_outputs(run, o, j, MOST_OUTPUTS, row_taps);
    if (run->outputs - j >= 4) convolve_outputs(run, o, j, 4, row_taps), j += 4;
    return j;
}

static void convolve(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o)
{
    int64_t j = 0;
    if (run->outputs >= 4)
        j = has_rows(run, 5) ? convolve_run(run, o, 5)
          : has_rows(run, 3) ? convolve_run(run, o, 3)
                             : convolve_run(run, o, 0);
    if (run->outputs - j >= 2) convolve_few(run, o, j, 2), j += 2;
    if (run->outputs - j >= 1) convolve_few(run, o, j, 1);
}

/* A piece of the outputs from j on; taps t to t + taps, up to LANES channels from c on, of which
 * the first `done` stay as they are; each tap's terms in the order of the outputs. */
INLINE void filter_tile(const CornuDepthwiseRun *run, const float *x, const float *y, float *sums,
                        int64_t j, int64_t t, int64_t c, int taps, int64_t count, int64_t done)
{
    const int64_t end = j + PIECE < run->outputs ? j + PIECE : run->outputs;
    Lanes        sum[MOST_TAPS];
    const float *from[MOST_TAPS];
    UNROLL
    for (int k = 0; k < taps; k++) {
        sum[k] = load_some(sums + run->taps[t + k].filter + c, count);
        from[k] = x + run->taps[t + k].x + c;
    }
    for (; j < end; j++) {
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
                            float *sums, int64_t j, int64_t c, int64_t count, int64_t done)
{
    int64_t t = 0;
    for (; t + MOST_TAPS <= run->tap_count; t += MOST_TAPS)
        filter_tile(run, x, y, sums, j, t, c, MOST_TAPS, count, done);
    for (; t + 4 <= run->tap_count; t += 4) filter_tile(run, x, y, sums, j, t, c, 4, count, done);
    for (; t + 2 <= run->tap_count; t += 2) filter_tile(run, x, y, sums, j, t, c, 2, count, done);
    if (t < run->tap_count) filter_tile(run, x, y, sums, j, t, c, 1, count, done);
}

static void grad_filter(const CornuDepthwiseRun *run, const float *x, const float *y, float *sums)
{
    const int64_t C = run->channels, whole = C / LANES * LANES;
    for (int64_t j = 0; j < run->outputs; j += PIECE) {
        if (C < LANES) filter_channels(run, x, y, sums, j, 0, C, 0);
        for (int64_t c = 0; c < whole; c += LANES) filter_channels(run, x, y, sums, j, c, LANES, 0);
        if (C > LANES && whole < C)
            filter_channels(run, x, y, sums, j, C - LANES, LANES, whole - (C - LANES));
    }
}

const CornuDepthwises CORNU__PER_ISA(cornu__depthwises) = {
    convolve, CORNU__FULL(grad_filter, NULL),
};
