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
#include "turn.h"

#include <math.h>

static void to_columns(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns,
                       uint32_t *to, ptrdiff_t to_stride, int64_t width)
{
    turn_padded(to, to_stride, from, from_stride * (ptrdiff_t)sizeof *to, columns, rows, width);
}

/* ---- Weights ---- */

static void update(const CornuScores *s)
{
    enum { CHAINS = 4 };   /* a maximum takes its time, others start meanwhile */
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const float *x = s->scores + t;
        const Lanes  before = load(s->most + t);
        Lanes        most[CHAINS] = { before, before, before, before };
        int64_t      r = 0;
        for (; r + CHAINS <= s->rows; r += CHAINS)
            UNROLL for (int i = 0; i < CHAINS; i++)
                most[i] = max_of(load(x + (r + i) * s->stride), most[i]);
        for (; r < s->rows; r++) most[0] = max_of(load(x + r * s->stride), most[0]);
        most[0] = max_of(max_of(most[0], most[1]), max_of(most[2], most[3]));
        const Lanes factor = exp_normal(before - most[0]);
        store(s->most + t, most[0]);
        store(s->factor + t, factor);
        store(s->sum + t, load(s->sum + t) * factor);
    }
}

#if PAIRED
/* bf16 of two rows, and as pairs. */
#if defined(__AVX512BF16__)
typedef __m512i Halves;

INLINE Halves halves_of_two(Lanes first, Lanes second)
{
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
}

INLINE void store_pairs(uint32_t *to, Halves x)
{
    static const uint32_t in_turn[LANES] = {   /* halves 0, 16, 1, 17, ... */
        0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007,
        0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f,
    };
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_loadu_si512(in_turn), x));
}

INLINE void store_first(uint16_t *to, Halves x)
{
    _mm256_storeu_si256((void *)to, _mm512_castsi512_si256(x));
}

INLINE void store_second(uint16_t *to, Halves x)
{
    _mm256_storeu_si256((void *)to, _mm512_extracti64x4_epi64(x, 1));
}
#else
typedef struct { Lanes first, second; } Halves;   /* as bf16, but f32 */

INLINE Halves halves_of_two(Lanes first, Lanes second)
{
    return (Halves){ as_stored_narrow(first), as_stored_narrow(second) };
}

INLINE void store_pairs(uint32_t *to, Halves x)
{
    *(UnalignedBits *)to = (Bits)x.first >> 16 | (Bits)x.second;
}

INLINE void store_first(uint16_t *to, Halves x)  { store_halves(to, (Bits)x.first >> 16); }
INLINE void store_second(uint16_t *to, Halves x) { store_halves(to, (Bits)x.second >> 16); }
#endif

static void weigh(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const Lanes  most = load(s->most + t);
        const float *x = s->scores + t;
        uint32_t    *to = (uint32_t *)s->panel + t;
        Lanes        sum = load(s->sum + t);
        for (int64_t r = 0; r < s->rows; r += 2, x += 2 * s->stride, to += s->columns) {
            const Lanes first = exp_normal(load(x) - most);
            const Lanes second = r + 1 < s->rows ? exp_normal(load(x + s->stride) - most)
                                                 : all(0.0f);
            store_pairs(to, halves_of_two(first, second));
            sum += first + second;
        }
        store(s->sum + t, sum);
    }
}

/* p and d_s of two rows, the second of which may not exist. */
INLINE void slope_rows(const CornuScores *s, ptrdiff_t at, bool two, Lanes lse, Lanes delta,
                       uint32_t *pairs)
{
    const ptrdiff_t next = two ? at + s->stride : at;
    const Lanes     p = exp_normal(load(s->scores + at) - lse);
    const Lanes     next_p = exp_normal(load(s->scores + next) - lse);
    const Lanes     d_s = p * (load(s->d_p + at) - delta);
    const Lanes     next_d_s = next_p * (load(s->d_p + next) - delta);
    const Halves    of_p = halves_of_two(p, next_p);
    const Halves    of_d = halves_of_two(d_s, two ? next_d_s : all(0.0f));
    store_first(s->p + at, of_p);
    store_first(s->d_s + at, of_d);
    if (two) store_second(s->p + next, of_p);
    if (two) store_second(s->d_s + next, of_d);
    store_pairs(pairs, of_d);
}

static void slope(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const Lanes lse = load(s->most + t), delta = load(s->delta + t);
        uint32_t   *to = (uint32_t *)s->panel + t;
        int64_t     r = 0;
        for (; r + 2 <= s->rows; r += 2, to += s->columns)
            slope_rows(s, r * s->stride + t, true, lse, delta, to);
        if (r < s->rows) slope_rows(s, r * s->stride + t, false, lse, delta, to);
    }
}
#else
static void weigh(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const Lanes most = load(s->most + t);
        Lanes       sum = load(s->sum + t);
        for (int64_t r = 0; r < s->rows; r++) {
            const Lanes p = exp_normal(load(s->scores + r * s->stride + t) - most);
            store((float *)s->panel + r * s->columns + t, p);
            sum += p;
        }
        store(s->sum + t, sum);
    }
}

static void slope(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const Lanes lse = load(s->most + t), delta = load(s->delta + t);
        float      *x = s->scores + t, *d = s->d_p + t, *to = (float *)s->panel + t;
        for (int64_t r = 0; r < s->rows; r++, x += s->stride, d += s->stride, to += s->columns) {
            const Lanes p = exp_normal(load(x) - lse), d_s = p * (load(d) - delta);
            store(x, p);
            store(d, d_s);
            store(to, d_s);
        }
    }
}
#endif

static void scale(float *x, ptrdiff_t stride, int64_t rows, int64_t columns, const float *factor)
{
    for (int64_t r = 0; r < rows; r++, x += stride)
        for (int64_t c = 0; c < columns; c += LANES) store(x + c, load(x + c) * load(factor + c));
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
    to_columns, update, weigh, CORNU__FULL(slope, NULL), scale, CORNU__FULL(dot, NULL), give,
};
