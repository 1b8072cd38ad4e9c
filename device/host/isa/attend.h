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

INLINE Four load_four(const Word *from) { return *(const UnalignedFour *)from; }

/* The rows x become columns, which are stored as rows. */
INLINE void store_columns(const Four x[4], Word *to, ptrdiff_t stride)
{
    const Four low = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
    const Four high = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
    const Four next_low = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
    const Four next_high = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    *(UnalignedFour *)to = __builtin_shufflevector(low, next_low, 0, 1, 4, 5);
    *(UnalignedFour *)(to + stride) = __builtin_shufflevector(low, next_low, 2, 3, 6, 7);
    *(UnalignedFour *)(to + 2 * stride) = __builtin_shufflevector(high, next_high, 0, 1, 4, 5);
    *(UnalignedFour *)(to + 3 * stride) = __builtin_shufflevector(high, next_high, 2, 3, 6, 7);
}

static void to_columns(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns,
                       uint32_t *to, ptrdiff_t to_stride, int64_t width)
{
    const Word   *x = from;
    const int64_t whole = columns / 4 * 4;
    int64_t       r = 0;
    for (; r + 4 <= rows; r += 4, x += 4 * from_stride) {
        for (int64_t c = 0; c < whole; c += 4) {
            const Word *at = x + c;
            const Four  four[] = { load_four(at), load_four(at + from_stride),
                                   load_four(at + 2 * from_stride),
                                   load_four(at + 3 * from_stride) };
            store_columns(four, to + c * to_stride + r, to_stride);
        }
        for (int64_t c = whole; c < columns; c++)
            for (int i = 0; i < 4; i++) to[c * to_stride + r + i] = x[i * from_stride + c];
    }
    for (; r < rows; r++, x += from_stride)
        for (int64_t c = 0; c < columns; c++) to[c * to_stride + r] = x[c];
    for (int64_t c = 0; c < columns && rows < width; c++)
        for (int64_t i = rows; i < width; i++) to[c * to_stride + i] = 0;
}

/* exp(x) for x at most 0, or 0 where that is not normal: a subnormal result takes Intel's
 * processors a hundred cycles. */
INLINE Lanes weight(Lanes x)
{
    const Lanes least = all(-87.0f);
    return (Lanes)((Bits)exp_within(max_of(least, x)) & ~(Bits)(x <= least));
}

static void update(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const float *x = s->scores + t;
        const Lanes  before = load(s->most + t);
        Lanes        most = before;
        for (int64_t r = 0; r < s->rows; r++, x += s->stride) most = max_of(load(x), most);
        const Lanes factor = weight(before - most);
        store(s->most + t, most);
        store(s->factor + t, factor);
        store(s->sum + t, load(s->sum + t) * factor);
    }
}

#if PAIRED
/* Rows c and c + 1 of pairs of two rows' elements, from columns c and c + 1 of each. */
INLINE Four even_pairs(Four a, Four b) { return (a & 0xffff) | b << 16; }
INLINE Four odd_pairs(Four a, Four b)  { return a >> 16 | (b & 0xffff0000); }

static void turn(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns, void *to,
                 ptrdiff_t to_stride)
{
    const uint16_t *x = from;
    uint16_t       *y = to;
    const int64_t   whole_rows = rows / 8 * 8, whole = columns / 8 * 8;
    for (int64_t r = 0; r < whole_rows; r += 8)
        for (int64_t c = 0; c < whole; c += 8) {
            Four even[4], odd[4];
            UNROLL for (int i = 0; i < 4; i++) {
                const uint16_t *pair = x + (r + 2 * i) * from_stride + c;
                const Four a = load_four((const void *)pair);
                const Four b = load_four((const void *)(pair + from_stride));
                even[i] = even_pairs(a, b);
                odd[i] = odd_pairs(a, b);
            }
            store_columns(even, (void *)(y + c * to_stride + r), to_stride);
            store_columns(odd, (void *)(y + (c + 1) * to_stride + r), to_stride);
        }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole : 0; c < columns; c++)
            y[c * to_stride + r] = x[r * from_stride + c];
}

/* bf16 of two rows, as pairs. */
#if defined(__AVX512BF16__)
INLINE void store_pairs(uint32_t *to, Lanes first, Lanes second)
{
    static const uint32_t in_turn[LANES] = {   /* halves 0, 16, 1, 17, ... */
        0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007,
        0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f,
    };
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_loadu_si512(in_turn), both));
}
#else
INLINE void store_pairs(uint32_t *to, Lanes first, Lanes second)
{
    *(UnalignedBits *)to = (Bits)as_stored_narrow(first) >> 16 | (Bits)as_stored_narrow(second);
}
#endif

static void weigh(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const Lanes  most = load(s->most + t);
        const float *x = s->scores + t;
        uint32_t    *to = (uint32_t *)s->panel + t;
        Lanes        sum = load(s->sum + t);
        int64_t      r = 0;
        for (; r + 2 <= s->rows; r += 2, x += 2 * s->stride, to += s->columns) {
            const Lanes first = weight(load(x) - most), second = weight(load(x + s->stride) - most);
            store_pairs(to, first, second);
            sum += first + second;
        }
        if (r < s->rows) {
            const Lanes last = weight(load(x) - most);
            store_pairs(to, last, all(0.0f));
            sum += last;
        }
        store(s->sum + t, sum);
    }
}

/* p and d_s of row r, as bf16; returns d_s. */
INLINE Lanes slope_row(const CornuScores *s, int64_t r, int64_t t, Lanes lse, Lanes delta)
{
    const ptrdiff_t at = r * s->stride + t;
    const Lanes     p = weight(load(s->scores + at) - lse);
    const Lanes     d_s = p * (load(s->d_p + at) - delta);
    store_all_narrow(s->p + at, p);
    store_all_narrow(s->d_s + at, d_s);
    return d_s;
}

static void slope(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const Lanes lse = load(s->most + t), delta = load(s->delta + t);
        uint32_t   *to = (uint32_t *)s->panel + t;
        for (int64_t r = 0; r < s->rows; r += 2, to += s->columns) {
            const Lanes first = slope_row(s, r, t, lse, delta);
            const Lanes second = r + 1 < s->rows ? slope_row(s, r + 1, t, lse, delta) : all(0.0f);
            store_pairs(to, first, second);
        }
    }
}
#else
static void turn(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns, void *to,
                 ptrdiff_t to_stride)
{
    to_columns(from, from_stride, rows, columns, to, to_stride, rows);
}

static void weigh(const CornuScores *s)
{
    for (int64_t t = 0; t < s->columns; t += LANES) {
        const Lanes most = load(s->most + t);
        Lanes       sum = load(s->sum + t);
        for (int64_t r = 0; r < s->rows; r++) {
            const Lanes p = weight(load(s->scores + r * s->stride + t) - most);
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
            const Lanes p = weight(load(x) - lse), d_s = p * (load(d) - delta);
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
    to_columns, turn, update, weigh, CORNU__FULL(slope, NULL), scale, CORNU__FULL(dot, NULL), give,
};
