/*
 * The matrices of F(2, 3), at the points 0, 1, -1 and infinity, applied along both axes:
 *
 *     B' = 1  0 -1  0     G =  1    0    0      A' = 1  1  1  0
 *          0  1  1  0         1/2  1/2  1/2          0  1 -1 -1
 *          0 -1  1  0         1/2 -1/2  1/2
 *          0  1  0 -1          0    0    1
 *
 * and of F(4, 3), F(2, 5) and F(3, 4), at 0, 1, -1, 1/2, -2 and infinity:
 *
 *     B' = 1  -3/2  -2   3/2  1  0     G = P(0)          A =  1   0   0    0
 *          0  -1    1/2  5/2  1  0         P(1) / 3           1   1   1    1
 *          0   1   -5/2  1/2  1  0        -P(-1) / 3          1  -1   1   -1
 *          0  -2   -1    2    1  0        -P(1/2) 16/15       1  1/2 1/4  1/8
 *          0   1/2 -1   -1/2  1  0         P(-2) / 15         1  -2   4   -8
 *          0   1   -3/2 -2   3/2 1         0  0 ..  1         0   0   0    1
 *
 * with P(p) = (1, p, p2 ..), as many columns of G as taps and of A as outputs; in the last one of A
 * is that 1.
 *
 * Where neighbours are equal only the point 1 is not zero, exactly so: all outputs are equal then,
 * and a max pooling takes the first of them, as without these transforms. Rounding errors, as the
 * root of their mean square, are 2.8, 2 and 2.2 times those of the sum of products, of 32 channels
 * or tiles of random numbers (at 1, -1, 2, -2 they are 4.4, 2.9 and 3.5 times).
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016; for the
 *     choice of points Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the
 *     Accuracy of Winograd Convolution for Deep Neural Networks", 2020.
 * Gain: part of conv2d_winograd.c's and conv2d_filter_winograd.c's.
 */
#include "finish.h"
#include "winograd.h"

enum { FOUR = 4, SIX = 6, MOST_OUT = 4, WINDOW = 2 };

/* Each applies a matrix to `from`; results are `step` apart. in, out and taps are constants. */

/* The polynomial with these coefficients at p. */
INLINE Lanes value_at(int taps, const Lanes *from, float p)
{
    Lanes value = from[taps - 1];
    UNROLL for (int t = taps - 2; t >= 0; t--) value = value * p + from[t];
    return value;
}

INLINE void filter_axis(int in, int taps, const Lanes *from, Lanes *to, int step)
{
    to[0] = from[0];
    to[(in - 1) * step] = from[taps - 1];
    if (in == FOUR) {
        const Lanes sum = (from[0] + from[2]) * 0.5f, middle = from[1] * 0.5f;
        to[step] = sum + middle;
        to[2 * step] = sum - middle;
    } else {
        to[step] = value_at(taps, from, 1.0f) * (1.0f / 3);
        to[2 * step] = value_at(taps, from, -1.0f) * (-1.0f / 3);
        to[3 * step] = value_at(taps, from, 0.5f) * (-16.0f / 15);
        to[4 * step] = value_at(taps, from, -2.0f) * (1.0f / 15);
    }
}

INLINE void input_axis(int in, const Lanes *from, Lanes *to, int step)
{
    if (in == FOUR) {
        to[0] = from[0] - from[2];
        to[step] = from[1] + from[2];
        to[2 * step] = from[2] - from[1];
        to[3 * step] = from[1] - from[3];
    } else {   /* differences of equal numbers are zero, whatever rounds after them */
        Lanes apart[FOUR];
        UNROLL for (int i = 0; i < FOUR; i++) apart[i] = from[i + 2] - from[i];
        const Lanes odd = apart[1] + from[2] * 1.5f, even = apart[2] + from[3] * 1.5f;
        to[0] = (apart[2] - apart[0]) + apart[1] * 1.5f;
        to[step] = even + odd;
        to[2 * step] = even - odd;
        to[3 * step] = apart[2] + apart[1] * 2.0f;
        to[4 * step] = apart[2] - apart[1] * 0.5f;
        to[5 * step] = (apart[3] - apart[1]) + apart[2] * 1.5f;
    }
}

INLINE void output_axis(int in, int out, const Lanes *from, Lanes *to, int step)
{
    const Lanes even = from[1] + from[2], odd = from[1] - from[2];
    if (in == FOUR) {
        to[0] = from[0] + even;
        to[step] = odd - from[3];
        return;
    }
    float half = 1.0f, two = 1.0f;   /* powers of 1/2 and -2 */
    UNROLL for (int k = 0; k < out; k++, half *= 0.5f, two *= -2.0f)
        to[k * step] = (k % 2 ? odd : even) + from[3] * half + from[4] * two;
    to[0] += from[0];
    to[(out - 1) * step] += from[5];
}

/* Where a transform reads vectors: at element `first` of each of `from`. The last ones, of fewer
 * elements, are copied, with zeros after them: transforms are compiled once, for whole
 * registers. */
typedef struct {
    const float *const *from;
    int64_t             first;
    const float        *copied[SIX * SIX];
    Lanes               copies[SIX * SIX];
} Vectors;

INLINE void find_vectors(int count, const float *const *x, int64_t c, int64_t length, Vectors *v)
{
    v->from = x;
    v->first = c;
    if (c + LANES <= length) return;
    for (int k = 0; k < count; k++) {
        v->copies[k] = load_some(x[k] + c, length - c);
        v->copied[k] = (const float *)&v->copies[k];
    }
    v->from = v->copied;
    v->first = 0;
}

INLINE void filters(int out, int taps, const float *const *g, int64_t count, float *u,
                    ptrdiff_t part)
{
    const int in = out + taps - 1;
    for (int64_t n = 0; n < count; n += LANES) {
        Lanes   rows[SIX * SIX], line[SIX];
        Vectors vectors;
        find_vectors(taps * taps, g, n, count, &vectors);
        UNROLL for (int t = 0; t < taps; t++) {
            UNROLL for (int i = 0; i < taps; i++)
                line[i] = load(vectors.from[i * taps + t] + vectors.first);
            filter_axis(in, taps, line, rows + t, taps);
        }
        UNROLL for (int i = 0; i < in; i++) {
            filter_axis(in, taps, rows + i * taps, line, 1);
            UNROLL for (int j = 0; j < in; j++) store(u + (i * in + j) * part + n, line[j]);
        }
    }
}

INLINE void inputs(int in, const float *const *x, int64_t channels, float *v, ptrdiff_t part)
{
    for (int64_t c = 0; c < channels; c += LANES) {
        Lanes   rows[SIX * SIX], line[SIX];
        Vectors vectors;
        find_vectors(in * in, x, c, channels, &vectors);
        UNROLL for (int j = 0; j < in; j++) {
            UNROLL for (int i = 0; i < in; i++)
                line[i] = load(vectors.from[i * in + j] + vectors.first);
            input_axis(in, line, rows + j, in);
        }
        UNROLL for (int i = 0; i < in; i++) {
            input_axis(in, rows + i * in, line, 1);
            UNROLL for (int j = 0; j < in; j++) store(v + (i * in + j) * part + c, line[j]);
        }
    }
}

INLINE bool is_zero(const float *x, int64_t channels)
{
    Bits    any = { 0 };
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES) any |= (Bits)load(x + c);
    if (c < channels) any |= (Bits)load_some(x + c, channels - c);
    return is_none(any << 1);   /* without signs */
}

/* Every output reads one of the four elements that are looked at first. */
INLINE uint64_t zeros(int out, int taps, const float *const *x, int64_t channels)
{
    const int in = out + taps - 1, rows[] = { taps - 1, out - 1 };
    bool      any = false;
    uint64_t  zero = 0;
    for (int k = 0; k < 4 && !any; k++)
        any = is_zero(x[rows[k / 2] * in + rows[k % 2]], channels);
    for (int k = 0; k < in * in && any; k++) zero |= (uint64_t)is_zero(x[k], channels) << k;
    return zero;
}

/* A' m A. */
INLINE void output_sums(int in, int out, const float *m, ptrdiff_t part, uint32_t zero,
                        Lanes *sums)
{
    Lanes rows[MOST_OUT * SIX], line[SIX];
    UNROLL for (int j = 0; j < in; j++) {
        UNROLL for (int i = 0; i < in; i++) line[i] = load(m + (i * in + j) * part);
        output_axis(in, out, line, rows + j, in);
    }
    UNROLL for (int i = 0; i < out; i++) output_axis(in, out, rows + i * in, sums + i * out, 1);
    if (zero)
        UNROLL for (int k = 0; k < out * out; k++)
            if (zero >> k & 1) sums[k] = (Lanes){ 0 };
}

INLINE void outputs(int in, int out, const float *m, ptrdiff_t part, int64_t channels,
                    const CornuWinogradOutputs *o)
{
    for (int64_t f = 0; f < channels; f += LANES) {
        Lanes sums[MOST_OUT * MOST_OUT];
        output_sums(in, out, m + f, part, o->zero, sums);
        for (int k = 0; k < out * out; k++) {
            Lanes y = sums[k] + load(o->bias + f);
            if (!o->y[k]) continue;
            finish_rows(&o->finish, f, channels - f, o->term[k] ? o->term[k] + f : NULL, 0, 1, 1,
                        &y);
            if (f + LANES <= channels) store(o->y[k] + f, y);
            else store_some(o->y[k] + f, y, channels - f);
        }
    }
}

INLINE void windows(int in, int out, const float *m, ptrdiff_t part, int64_t channels,
                    const CornuWinogradWindows *w)
{
    const int across = out / WINDOW;
    for (int64_t f = 0; f < channels; f += LANES) {
        Lanes sums[MOST_OUT * MOST_OUT];
        output_sums(in, out, m + f, part, w->zero, sums);
        for (int k = 0; k < across * across; k++) {
            const Lanes *window = sums + k / across * WINDOW * out + k % across * WINDOW;
            Lanes        most = window[0];
            Mask         at = { 0 };
            if (!w->y[k]) continue;
            UNROLL for (int tap = 1; tap < WINDOW * WINDOW; tap++)
                window_take(window[tap / WINDOW * out + tap % WINDOW], tap, &most, &at);
            most += load(w->bias + f);
            finish_rows(&w->finish, f, channels - f, NULL, 0, 1, 1, &most);
            store_some(w->y[k] + f, most, channels - f);
            store_bytes_some(w->index[k] + f, (Bits)at, (int)(channels - f));
        }
    }
}

/* The functions of F(OUT, TAPS), and of its input, which depends on their sum. */
#define INPUT(IN)                                                                          \
    static void input_##IN(const float *const *x, int64_t channels, float *v, ptrdiff_t part) \
    {                                                                                      \
        inputs(IN, x, channels, v, part);                                                  \
    }

#define FILTER(OUT, TAPS)                                                                  \
    static void filter_##OUT##_##TAPS(const float *const *g, int64_t count, float *u,      \
                                      ptrdiff_t part)                                      \
    {                                                                                      \
        filters(OUT, TAPS, g, count, u, part);                                             \
    }

#define OUTPUT(OUT, TAPS)                                                                  \
    static void output_##OUT##_##TAPS(const float *m, ptrdiff_t part, int64_t channels,    \
                                      const CornuWinogradOutputs *o)                       \
    {                                                                                      \
        outputs(OUT + TAPS - 1, OUT, m, part, channels, o);                                \
    }

#define POOLING(OUT, TAPS)                                                                 \
    static void windows_##OUT##_##TAPS(const float *m, ptrdiff_t part, int64_t channels,   \
                                       const CornuWinogradWindows *w)                      \
    {                                                                                      \
        windows(OUT + TAPS - 1, OUT, m, part, channels, w);                                \
    }                                                                                      \
    static uint64_t zeros_##OUT##_##TAPS(const float *const *x, int64_t channels)          \
    {                                                                                      \
        return zeros(OUT, TAPS, x, channels);                                              \
    }

#define CONVOLUTION(OUT, TAPS) FILTER(OUT, TAPS) OUTPUT(OUT, TAPS) POOLING(OUT, TAPS)

#define KIND(OUT, TAPS, IN)                                                                \
    { OUT, TAPS, IN, filter_##OUT##_##TAPS, input_##IN, zeros_##OUT##_##TAPS,              \
      output_##OUT##_##TAPS, windows_##OUT##_##TAPS }

INPUT(4)
INPUT(6)
CONVOLUTION(2, 3)
CONVOLUTION(4, 3)
CONVOLUTION(2, 5)

#if defined(CORNU_INFERENCE)
#define GRADIENT { 0 }
#else
FILTER(3, 4)
OUTPUT(3, 4)
#define GRADIENT { 3, 4, 6, filter_3_4, input_6, NULL, output_3_4, NULL }
#endif

const CornuWinograds CORNU__PER_ISA(cornu__winograds) = {
    { KIND(2, 3, 4), KIND(4, 3, 6), KIND(2, 5, 6) }, GRADIENT
};
