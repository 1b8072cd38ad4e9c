/*
 * The bodies of attention.h's functions, for products of f32 and of bf16. The file that includes
 * this defines
 *     PAIRED   1: what is multiplied next is rounded to bf16
 *
 * Reference: device/ops/attention.c; tests/device/host/kernels/test_attention.c compares them.
 * Source: own.
 * Gain: see kernels/attention.c.
 */
#include "../../inference_internal.h"
#include "attention.h"
#include "exponential.h"

#include <math.h>

/* Four words; of bf16 their addresses are multiples of 2. */
typedef uint32_t Four __attribute__((vector_size(16)));
typedef uint32_t UnalignedFour __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t Word __attribute__((aligned(2), may_alias));

/* Four rows of four words. */
INLINE void transpose_four(const Word *from, ptrdiff_t from_stride, uint32_t *to,
                           ptrdiff_t to_stride)
{
    const Four a = *(const UnalignedFour *)from;
    const Four b = *(const UnalignedFour *)(from + from_stride);
    const Four c = *(const UnalignedFour *)(from + 2 * from_stride);
    const Four d = *(const UnalignedFour *)(from + 3 * from_stride);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(UnalignedFour *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(UnalignedFour *)(to + to_stride) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(UnalignedFour *)(to + 2 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(UnalignedFour *)(to + 3 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

static void to_columns(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns,
                       uint32_t *to, ptrdiff_t to_stride, int64_t width)
{
    const Word   *x = from;
    const int64_t whole = columns / 4 * 4;
    int64_t       r = 0;
    for (; r + 4 <= rows; r += 4, x += 4 * from_stride) {
        for (int64_t c = 0; c < whole; c += 4)
            transpose_four(x + c, from_stride, to + c * to_stride + r, to_stride);
        for (int64_t c = whole; c < columns; c++)
            for (int i = 0; i < 4; i++) to[c * to_stride + r + i] = x[i * from_stride + c];
    }
    for (; r < rows; r++, x += from_stride)
        for (int64_t c = 0; c < columns; c++) to[c * to_stride + r] = x[c];
    for (int64_t c = 0; c < columns && rows < width; c++)
        for (int64_t i = rows; i < width; i++) to[c * to_stride + i] = 0;
}

static void largest(const CornuScores *s, float *most)
{
    for (int64_t t = s->begin; t < s->end; t += LANES) {
        const float *x = s->scores + t;
        Lanes        best = load(most + t);
        for (int64_t r = 0; r < s->rows; r++, x += s->stride) best = max_of(load(x), best);
        store(most + t, best);
    }
}

INLINE Lanes weight(const float *score, Lanes most)
{
    return exp_within(max_of(all(-104.0f), load(score) - most));
}

#if PAIRED
/* bf16 in the low halves, as store_all_narrow stores them. */
INLINE Bits low_halves(Lanes x) { return (Bits)as_stored_narrow(x) >> 16; }

INLINE Bits pair_of(Lanes low, Lanes high)
{
    return low_halves(low) | (Bits)as_stored_narrow(high);
}

INLINE void store_bits(uint32_t *to, Bits x) { *(UnalignedBits *)to = x; }

static void weigh(const CornuScores *s)
{
    for (int64_t t = s->begin; t < s->end; t += LANES) {
        const Lanes  most = load(s->most + t);
        const float *x = s->scores + t;
        uint32_t    *to = s->pairs + t;
        Lanes        sum = load(s->sum + t);
        int64_t      r = 0;
        for (; r + 2 <= s->rows; r += 2, x += 2 * s->stride, to += s->stride) {
            const Lanes first = weight(x, most), second = weight(x + s->stride, most);
            store_bits(to, pair_of(first, second));
            sum += first + second;
        }
        if (r < s->rows) {
            const Lanes last = weight(x, most);
            store_bits(to, pair_of(last, all(0.0f)));
            sum += last;
        }
        store(s->sum + t, sum);
    }
}

/* p and d_s of row r, as bf16; returns d_s. */
INLINE Lanes slope_row(const CornuScores *s, int64_t r, int64_t t, Lanes lse, Lanes delta)
{
    const Lanes p = exp_of(load(s->scores + r * s->stride + t) - lse);
    const Lanes d_s = p * (load(s->d_p + r * s->stride + t) - delta);
    store_all_narrow(s->p + r * s->half_stride + t, p);
    store_all_narrow(s->d_s + r * s->half_stride + t, d_s);
    return d_s;
}

static void slope(const CornuScores *s)
{
    for (int64_t t = s->begin; t < s->end; t += LANES) {
        const Lanes lse = load(s->most + t), delta = load(s->delta + t);
        uint32_t   *to = s->pairs + t;
        for (int64_t r = 0; r < s->rows; r += 2, to += s->stride) {
            const Lanes first = slope_row(s, r, t, lse, delta);
            const Lanes second = r + 1 < s->rows ? slope_row(s, r + 1, t, lse, delta) : all(0.0f);
            store_bits(to, pair_of(first, second));
        }
    }
}
#else
static void weigh(const CornuScores *s)
{
    for (int64_t t = s->begin; t < s->end; t += LANES) {
        const Lanes most = load(s->most + t);
        float      *x = s->scores + t;
        Lanes       sum = load(s->sum + t);
        for (int64_t r = 0; r < s->rows; r++, x += s->stride) {
            const Lanes p = weight(x, most);
            store(x, p);
            sum += p;
        }
        store(s->sum + t, sum);
    }
}

static void slope(const CornuScores *s)
{
    for (int64_t t = s->begin; t < s->end; t += LANES) {
        const Lanes lse = load(s->most + t), delta = load(s->delta + t);
        float      *x = s->scores + t, *d = s->d_p + t;
        for (int64_t r = 0; r < s->rows; r++, x += s->stride, d += s->stride) {
            const Lanes p = exp_of(load(x) - lse);
            store(x, p);
            store(d, p * (load(d) - delta));
        }
    }
}
#endif

static void shrink(const float *before, const float *after, int64_t count, float *factor,
                   float *sum)
{
    for (int64_t t = 0; t < count; t += LANES) {
        const Lanes f = weight(before + t, load(after + t));
        store(factor + t, f);
        store(sum + t, load(sum + t) * f);
    }
}

static void scale(float *x, ptrdiff_t stride, int64_t rows, int64_t columns, const float *factor)
{
    for (int64_t r = 0; r < rows; r++, x += stride)
        for (int64_t c = 0; c < columns; c++) x[c] *= factor[r];
}

static void add(const float *restrict x, ptrdiff_t stride, int64_t rows, int64_t columns,
                float *restrict to, ptrdiff_t to_stride)
{
    for (int64_t r = 0; r < rows; r++, x += stride, to += to_stride)
        for (int64_t c = 0; c < columns; c++) to[c] += x[c];
}

INLINE float sum_of_lanes(Lanes x)
{
    float lanes[LANES];
    store(lanes, x);
    UNROLL for (int half = LANES / 2; half; half /= 2)
        for (int n = 0; n < half; n++) lanes[n] += lanes[n + half];
    return lanes[0];
}

INLINE Lanes take(const void *x, int64_t at, int64_t count, bool narrow)
{
    return narrow ? load_narrow((const uint16_t *)x + at, count - at)
                  : load_some((const float *)x + at, count - at);
}

static float dot(const void *x, const void *y, int64_t count, bool narrow)
{
    Lanes sum = all(0.0f);
    for (int64_t c = 0; c < count; c += LANES)
        sum += take(x, c, count, narrow) * take(y, c, count, narrow);
    return sum_of_lanes(sum);
}

static void give(const float *x, ptrdiff_t stride, int64_t rows, int64_t columns, void *to,
                 ptrdiff_t to_stride, bool narrow)
{
    for (int64_t r = 0; r < rows; r++, x += stride)
        for (int64_t c = 0; c < columns; c += LANES) {
            if (narrow) store_narrow((uint16_t *)to + r * to_stride + c, load(x + c), columns - c);
            else store_some((float *)to + r * to_stride + c, load(x + c), columns - c);
        }
}

const CornuAttends CORNU__PER_ISA(cornu__attends) = {
    to_columns, largest, weigh, CORNU__FULL(slope, NULL), shrink, scale, CORNU__FULL(add, NULL),
    CORNU__FULL(dot, NULL), give,
};
