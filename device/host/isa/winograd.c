/*
 * The matrices of F(2, 3), applied along both axes:
 *
 *     B' = 1  0 -1  0     G =  1    0    0      A' = 1  1  1  0
 *          0  1  1  0         1/2  1/2  1/2          0  1 -1 -1
 *          0 -1  1  0         1/2 -1/2  1/2
 *          0  1  0 -1          0    0    1
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
 * Gain: part of conv2d_winograd.c's.
 */
#include "window.h"
#include "winograd.h"

enum { IN = CORNU_WINOGRAD_IN, OUT = CORNU_WINOGRAD_OUT, TAPS = CORNU_WINOGRAD_TAPS };

/* to = G of `from`, of `step` elements each apart. */
INLINE void filter_axis(const Lanes *from, int step, Lanes *to)
{
    const Lanes sum = (from[0] + from[2 * step]) * 0.5f, middle = from[step] * 0.5f;
    to[0] = from[0];
    to[step] = sum + middle;
    to[2 * step] = sum - middle;
    to[3 * step] = from[2 * step];
}

INLINE void input_axis(const Lanes *from, int step, Lanes *to)
{
    to[0] = from[0] - from[2 * step];
    to[step] = from[step] + from[2 * step];
    to[2 * step] = from[2 * step] - from[step];
    to[3 * step] = from[step] - from[3 * step];
}

INLINE void output_axis(const Lanes *from, int step, Lanes *to)
{
    to[0] = from[0] + from[step] + from[2 * step];
    to[step] = from[step] - from[2 * step] - from[3 * step];
}

static void filter(const float *const g[CORNU_WINOGRAD_FILTER], int64_t count, float *u,
                   ptrdiff_t part)
{
    for (int64_t n = 0; n < count; n += LANES) {
        Lanes taps[CORNU_WINOGRAD_FILTER], rows[IN * TAPS], points[CORNU_WINOGRAD_POINTS];
        UNROLL for (int t = 0; t < CORNU_WINOGRAD_FILTER; t++)
            taps[t] = load_some(g[t] + n, count - n);
        UNROLL for (int t = 0; t < TAPS; t++) filter_axis(taps + t, TAPS, rows + t);
        UNROLL for (int i = 0; i < IN; i++) {
            Lanes column[IN];
            filter_axis(rows + i * TAPS, 1, column);
            UNROLL for (int j = 0; j < IN; j++) points[i * IN + j] = column[j];
        }
        UNROLL for (int k = 0; k < CORNU_WINOGRAD_POINTS; k++)
            store_some(u + k * part + n, points[k], count - n);
    }
}

INLINE void input_lanes(const float *const x[CORNU_WINOGRAD_POINTS], int64_t c, int64_t count,
                        float *v, ptrdiff_t part)
{
    Lanes from[CORNU_WINOGRAD_POINTS], rows[CORNU_WINOGRAD_POINTS];
    UNROLL for (int k = 0; k < CORNU_WINOGRAD_POINTS; k++) from[k] = load_some(x[k] + c, count);
    UNROLL for (int j = 0; j < IN; j++) input_axis(from + j, IN, rows + j);
    UNROLL for (int i = 0; i < IN; i++) {
        Lanes column[IN];
        input_axis(rows + i * IN, 1, column);
        UNROLL for (int j = 0; j < IN; j++) store(v + (i * IN + j) * part + c, column[j]);
    }
}

static void input(const float *const x[CORNU_WINOGRAD_POINTS], int64_t channels, float *v,
                  ptrdiff_t part)
{
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES) input_lanes(x, c, LANES, v, part);
    if (c < channels) input_lanes(x, c, channels - c, v, part);
}

/* A' m A. */
INLINE void output_sums(const float *m, ptrdiff_t part, Lanes *sums)
{
    Lanes rows[OUT * IN];
    UNROLL for (int j = 0; j < IN; j++) {
        Lanes from[IN], to[OUT];
        UNROLL for (int i = 0; i < IN; i++) from[i] = load(m + (i * IN + j) * part);
        output_axis(from, 1, to);
        UNROLL for (int i = 0; i < OUT; i++) rows[i * IN + j] = to[i];
    }
    UNROLL for (int i = 0; i < OUT; i++) output_axis(rows + i * IN, 1, sums + i * OUT);
}

INLINE void output_lanes(const float *m, ptrdiff_t part, int64_t f, int64_t count,
                         const CornuWinogradOutputs *o)
{
    Lanes sums[CORNU_WINOGRAD_OUTPUTS];
    output_sums(m + f, part, sums);
    UNROLL for (int k = 0; k < CORNU_WINOGRAD_OUTPUTS; k++) {
        Lanes y = sums[k] + load(o->bias + f);
        if (!o->y[k]) continue;
        if (o->scale) y = unfused(y * load(o->scale + f)) + load(o->shift + f);
        if (o->term[k]) y += load_some(o->term[k] + f, count);
        if (o->relu) y = relu(y);
        store_some(o->y[k] + f, y, count);
    }
}

static void output(const float *m, ptrdiff_t part, int64_t channels,
                   const CornuWinogradOutputs *outputs)
{
    int64_t f = 0;
    for (; f + LANES <= channels; f += LANES) output_lanes(m, part, f, LANES, outputs);
    if (f < channels) output_lanes(m, part, f, channels - f, outputs);
}

INLINE void window_lanes(const float *m, ptrdiff_t part, int64_t f, int64_t count,
                         const CornuWinogradWindow *w)
{
    Lanes sums[CORNU_WINOGRAD_OUTPUTS];
    output_sums(m + f, part, sums);
    Lanes most = sums[0];
    Mask  at = { 0 };
    UNROLL for (int k = 1; k < CORNU_WINOGRAD_OUTPUTS; k++) window_take(sums[k], k, &most, &at);
    most += load(w->bias + f);
    if (w->relu) most = relu(most);
    store_some(w->y + f, most, count);
    store_bytes_some(w->index + f, (Bits)at, (int)count);
}

static void window(const float *m, ptrdiff_t part, int64_t channels,
                   const CornuWinogradWindow *window)
{
    int64_t f = 0;
    for (; f + LANES <= channels; f += LANES) window_lanes(m, part, f, LANES, window);
    if (f < channels) window_lanes(m, part, f, channels - f, window);
}

const CornuWinograd CORNU__PER_ISA(cornu__winograd) = { filter, input, output, window };
