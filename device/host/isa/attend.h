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

/* ---- Transposing ---- */

/* Words, of bf16 at any even address. Four of a row are transposed with those of three more; a
 * register of AVX-512 has GROUPS of fours, each of other rows. */
typedef uint32_t Word __attribute__((aligned(2), may_alias));

#if defined(__AVX512F__)
enum { GROUPS = LANES / 4 };
typedef Bits Fours;
typedef uint32_t UnalignedFours __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

INLINE __m128i load_four(const void *from) { return _mm_loadu_si128(from); }

/* A group's row is `apart` bytes after that of the one before. */
INLINE Fours load_fours(const void *from, ptrdiff_t apart)
{
    const char *x = from;
    __m512i     fours = _mm512_castsi128_si512(load_four(x));
    fours = _mm512_inserti32x4(fours, load_four(x + apart), 1);
    fours = _mm512_inserti32x4(fours, load_four(x + 2 * apart), 2);
    return (Fours)_mm512_inserti32x4(fours, load_four(x + 3 * apart), 3);
}

INLINE Fours low_words(Fours a, Fours b)
{
    return (Fours)_mm512_unpacklo_epi32((__m512i)a, (__m512i)b);
}

INLINE Fours high_words(Fours a, Fours b)
{
    return (Fours)_mm512_unpackhi_epi32((__m512i)a, (__m512i)b);
}

INLINE Fours low_halves(Fours a, Fours b)
{
    return (Fours)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b);
}

INLINE Fours high_halves(Fours a, Fours b)
{
    return (Fours)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b);
}
#else
enum { GROUPS = 1 };
typedef uint32_t Fours __attribute__((vector_size(16)));
typedef uint32_t UnalignedFours __attribute__((vector_size(16), aligned(2), may_alias));

INLINE Fours load_fours(const void *from, ptrdiff_t apart)
{
    (void)apart;
    return *(const UnalignedFours *)from;
}

INLINE Fours low_words(Fours a, Fours b)   { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
INLINE Fours high_words(Fours a, Fours b)  { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
INLINE Fours low_halves(Fours a, Fours b)  { return __builtin_shufflevector(a, b, 0, 1, 4, 5); }
INLINE Fours high_halves(Fours a, Fours b) { return __builtin_shufflevector(a, b, 2, 3, 6, 7); }
#endif

/* Column c of x[0] to x[3], of all groups, becomes row c. */
INLINE void store_columns(const Fours x[4], void *to, ptrdiff_t stride)
{
    const Fours low = low_words(x[0], x[1]), next_low = low_words(x[2], x[3]);
    const Fours high = high_words(x[0], x[1]), next_high = high_words(x[2], x[3]);
    Word       *row = to;
    *(UnalignedFours *)row = low_halves(low, next_low);
    *(UnalignedFours *)(row + stride) = high_halves(low, next_low);
    *(UnalignedFours *)(row + 2 * stride) = low_halves(high, next_high);
    *(UnalignedFours *)(row + 3 * stride) = high_halves(high, next_high);
}

static void to_columns(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns,
                       uint32_t *to, ptrdiff_t to_stride, int64_t width)
{
    enum { ROWS = 4 * GROUPS };
    const Word     *x = from;
    const int64_t   whole_rows = rows / ROWS * ROWS, whole = columns / 4 * 4;
    const ptrdiff_t apart = 4 * from_stride * (ptrdiff_t)sizeof *x;
    for (int64_t r = 0; r < whole_rows; r += ROWS)
        for (int64_t c = 0; c < whole; c += 4) {
            const Word *at = x + r * from_stride + c;
            const Fours fours[] = { load_fours(at, apart), load_fours(at + from_stride, apart),
                                    load_fours(at + 2 * from_stride, apart),
                                    load_fours(at + 3 * from_stride, apart) };
            store_columns(fours, to + c * to_stride + r, to_stride);
        }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole : 0; c < columns; c++)
            to[c * to_stride + r] = x[r * from_stride + c];
    for (int64_t c = 0; c < columns && rows < width; c++)
        for (int64_t i = rows; i < width; i++) to[c * to_stride + i] = 0;
}

#if PAIRED
/* Elements are transposed as pairs of two rows, those of even columns and of odd ones by
 * themselves. */
INLINE Fours even_pairs(Fours a, Fours b) { return (a & 0xffff) | b << 16; }
INLINE Fours odd_pairs(Fours a, Fours b)  { return a >> 16 | (b & 0xffff0000); }

static void turn(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns, void *to,
                 ptrdiff_t to_stride)
{
    enum { ROWS = 8 * GROUPS };
    const uint16_t *x = from;
    uint16_t       *y = to;
    const int64_t   whole_rows = rows / ROWS * ROWS, whole = columns / 8 * 8;
    const ptrdiff_t apart = 8 * from_stride * (ptrdiff_t)sizeof *x;
    for (int64_t r = 0; r < whole_rows; r += ROWS)
        for (int64_t c = 0; c < whole; c += 8) {
            Fours even[4], odd[4];
            UNROLL for (int i = 0; i < 4; i++) {
                const uint16_t *pair = x + (r + 2 * i) * from_stride + c;
                const Fours     a = load_fours(pair, apart);
                const Fours     b = load_fours(pair + from_stride, apart);
                even[i] = even_pairs(a, b);
                odd[i] = odd_pairs(a, b);
            }
            store_columns(even, y + c * to_stride + r, to_stride);
            store_columns(odd, y + (c + 1) * to_stride + r, to_stride);
        }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole : 0; c < columns; c++)
            y[c * to_stride + r] = x[r * from_stride + c];
}
#else
static void turn(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns, void *to,
                 ptrdiff_t to_stride)
{
    to_columns(from, from_stride, rows, columns, to, to_stride, rows);
}
#endif

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
    to_columns, turn, update, weigh, CORNU__FULL(slope, NULL), scale, CORNU__FULL(dot, NULL), give,
};
