/* What int8.c and int8_vnni.c share; each defines sums_of, the sums of a tile. */
#include "../../host/isa/lanes.h"
#include "int8.h"

#define SIMD _Pragma("omp simd")

/* ---- From sums to int8 ---- */

/* fixed.h's arithmetic, in loops that compilers turn into vectors: mantissas are not negative, so
 * no product overflows, and of the product's bits shifted out at the top none is kept. */
INLINE void finish_fixed(const CornuInt8Finish *f, int64_t count, const int32_t *restrict sums,
                         int8_t *restrict y)
{
    const int32_t zero = f->zero, low = f->low, high = f->high;
    SIMD for (int64_t c = 0; c < count; c++) {
        const int32_t x = (int32_t)((uint32_t)sums[c] << f->left[c]);
        const int32_t product =
            (int32_t)((uint64_t)((int64_t)x * f->mantissa[c] + (INT64_C(1) << 30)) >> 31);
        const int32_t mask = (int32_t)((UINT32_C(1) << f->right[c]) - 1);
        const int32_t up = (product & mask) > (mask >> 1) + (product < 0);
        const int32_t to = (product >> f->right[c]) + up + zero;
        const int32_t above = to < low ? low : to;
        y[c] = (int8_t)(above > high ? high : above);
    }
}

/* The largest number below one half: with it added, away from zero, a number is rounded to nearest,
 * halves away from zero, by dropping its fraction. One half would round up what is just below. */
#define BELOW_HALF 0x1.fffffffffffffp-2

/* In double. What is beyond a thousand saturates, so that integers of 32 bits hold the rest. */
INLINE void finish_real(const CornuInt8Finish *f, int count, const int32_t *restrict sums,
                        int8_t *restrict y)
{
    const int32_t zero = f->zero, low = f->low, high = f->high;
    int32_t       whole[CORNU_INT8_BLOCK];
    SIMD for (int c = 0; c < count; c++) {
        const double product = (double)sums[c] * f->factors[c];
        const double above = product > -1000.0 ? product : -1000.0;
        const double real = above < 1000.0 ? above : 1000.0;
        whole[c] = (int32_t)(real + __builtin_copysign(BELOW_HALF, real));
    }
    SIMD for (int c = 0; c < count; c++) {
        const int32_t to = whole[c] + zero, above = to < low ? low : to;
        y[c] = (int8_t)(above > high ? high : above);
    }
}

#if defined(__AVX2__)
/* A register of LANES integers. */
#if defined(__AVX512BW__)
typedef __m512i Ints;
INLINE Ints load_ints(const int32_t *x) { return _mm512_loadu_si512(x); }
INLINE Ints ints_of(int32_t x) { return _mm512_set1_epi32(x); }
INLINE Ints longs_of(int64_t x) { return _mm512_set1_epi64(x); }
INLINE Ints plus(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
INLINE Ints plus_long(Ints a, Ints b) { return _mm512_add_epi64(a, b); }
INLINE Ints times_even(Ints a, Ints b) { return _mm512_mul_epi32(a, b); }
INLINE Ints odd_of(Ints x) { return _mm512_srli_epi64(x, 32); }
INLINE Ints shift_left(Ints x, Ints by) { return _mm512_sllv_epi32(x, by); }
INLINE Ints shift_right(Ints x, Ints by) { return _mm512_srav_epi32(x, by); }
INLINE Ints half_of(Ints x) { return _mm512_srli_epi32(x, 1); }
INLINE Ints least(Ints a, Ints b) { return _mm512_min_epu32(a, b); }
INLINE bool all_zero(Ints x) { return _mm512_test_epi32_mask(x, x) == 0; }
INLINE Ints high_halves(Ints even, Ints odd)
{
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}
INLINE Ints less_if_negative(Ints x, Ints sign, Ints unit)
{
    return _mm512_mask_sub_epi32(x, _mm512_movepi32_mask(sign), x, unit);
}
INLINE __m128i to_bytes(Ints x) { return _mm512_cvtsepi32_epi8(x); }
INLINE void store_finished(int8_t *to, __m128i x) { _mm_storeu_si128((__m128i *)to, x); }
INLINE void store_first(int8_t *to, int count, __m128i x)
{
    _mm_mask_storeu_epi8(to, (__mmask16)((1u << count) - 1), x);
}
#else
typedef __m256i Ints;
INLINE Ints load_ints(const int32_t *x) { return _mm256_loadu_si256((const __m256i *)x); }
INLINE Ints ints_of(int32_t x) { return _mm256_set1_epi32(x); }
INLINE Ints longs_of(int64_t x) { return _mm256_set1_epi64x(x); }
INLINE Ints plus(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
INLINE Ints plus_long(Ints a, Ints b) { return _mm256_add_epi64(a, b); }
INLINE Ints times_even(Ints a, Ints b) { return _mm256_mul_epi32(a, b); }
INLINE Ints odd_of(Ints x) { return _mm256_srli_epi64(x, 32); }
INLINE Ints shift_left(Ints x, Ints by) { return _mm256_sllv_epi32(x, by); }
INLINE Ints shift_right(Ints x, Ints by) { return _mm256_srav_epi32(x, by); }
INLINE Ints half_of(Ints x) { return _mm256_srli_epi32(x, 1); }
INLINE Ints least(Ints a, Ints b) { return _mm256_min_epu32(a, b); }
INLINE bool all_zero(Ints x) { return _mm256_testz_si256(x, x); }
INLINE Ints high_halves(Ints even, Ints odd)
{
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
INLINE Ints less_if_negative(Ints x, Ints sign, Ints unit)
{
    return _mm256_sub_epi32(x, _mm256_and_si256(_mm256_srai_epi32(sign, 31), unit));
}
INLINE __m128i to_bytes(Ints x)
{
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x),
                                          _mm256_extracti128_si256(x, 1));
    return _mm_packs_epi16(words, words);
}
INLINE void store_finished(int8_t *to, __m128i x) { _mm_storel_epi64((__m128i *)to, x); }
INLINE void store_first(int8_t *to, int count, __m128i x) { memcpy(to, &x, (size_t)count); }
#endif

/*
 * The same where nothing overflows, for a register of columns: the high half of 2 x mantissa + 2^31
 * is x times mantissa, rounded; and halves are rounded away from zero by adding one half, less one
 * unit where the product is negative, of which a bound of real 0 leaves nothing to see. The zero
 * point is added with it, shifted.
 */
typedef struct {
    Ints    even, odd, left, nudge, unit, right;
    __m128i low, high;
    bool    positive;   /* no output is below real 0 */
    bool    shrinks;    /* nothing is shifted to the left */
} Scale;

INLINE Scale scale_of(const CornuInt8Finish *f, int64_t c)
{
    const Ints one = ints_of(1), mantissa = load_ints(f->mantissa + c);
    const Ints right = load_ints(f->right + c), left = load_ints(f->left + c);
    return (Scale){
        .even = mantissa, .odd = odd_of(mantissa), .left = plus(left, one),
        .nudge = plus(half_of(shift_left(one, right)), shift_left(ints_of(f->zero), right)),
        .unit = least(right, one), .right = right,
        .low = _mm_set1_epi8((char)f->low), .high = _mm_set1_epi8((char)f->high),
        .positive = f->low >= f->zero, .shrinks = all_zero(left)
    };
}

INLINE Ints rescaled(const Scale *by, Ints sums)
{
    const Ints round = longs_of(INT64_C(1) << 31);
    const Ints x = by->shrinks ? plus(sums, sums) : shift_left(sums, by->left);
    const Ints even = plus_long(times_even(x, by->even), round);
    const Ints odd = plus_long(times_even(odd_of(x), by->odd), round);
    const Ints product = high_halves(even, odd), nudged = plus(product, by->nudge);
    return shift_right(by->positive ? nudged : less_if_negative(nudged, product, by->unit),
                       by->right);
}

INLINE __m128i finished(const Scale *by, Ints sums)
{
    return _mm_min_epi8(_mm_max_epi8(to_bytes(rescaled(by, sums)), by->low), by->high);
}

/* Whole registers; returns how many elements they have. */
INLINE int64_t finish_vectors(const CornuInt8Finish *f, int64_t count, const int32_t *sums,
                              int8_t *y)
{
    int64_t c = 0;
    if (!f->bounded || count < LANES) return 0;
    Scale by = scale_of(f, 0);
    for (; count - c >= LANES; c += LANES) {
        if (!f->uniform) by = scale_of(f, c);
        store_finished(y + c, finished(&by, load_ints(sums + c)));
    }
    return c;
}
#else
INLINE int64_t finish_vectors(const CornuInt8Finish *f, int64_t count, const int32_t *sums,
                              int8_t *y)
{
    (void)f, (void)count, (void)sums, (void)y;
    return 0;
}
#endif

static void finish(const CornuInt8Finish *f, int64_t count, const int32_t *sums, int8_t *y)
{
    const int64_t   done = finish_vectors(f, count, sums, y);
    CornuInt8Finish rest = *f;
    rest.mantissa += done, rest.left += done, rest.right += done;
    finish_fixed(&rest, count - done, sums + done, y + done);
}

/* ---- Bytes ---- */

INLINE int32_t term_of(const CornuInt8Term *term, int8_t x)
{
    const int32_t d = x - term->zero, unit = term->right > 0;
    const int32_t half = (int32_t)((UINT32_C(1) << term->right) >> 1);
    const int32_t product = d * term->high + ((d * term->low + (1 << 10)) >> 11);
    return ((product + half - (product < 0 ? unit : 0)) >> term->right) * term->sign;
}

#if defined(__AVX2__)
#if defined(__AVX512BW__)
INLINE Ints widen(const int8_t *x)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)x));
}
INLINE Ints minus(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
INLINE Ints times(Ints a, int32_t b) { return _mm512_mullo_epi32(a, _mm512_set1_epi32(b)); }
#else
INLINE Ints widen(const int8_t *x)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)x));
}
INLINE Ints minus(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
INLINE Ints times(Ints a, int32_t b) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(b)); }
#endif

/* Of a register. `whole`: by exactly 1/2, as the operand of the larger scale is. */
INLINE Ints terms_of(const CornuInt8Term *term, bool whole, const int8_t *x)
{
    const Ints d = minus(widen(x), ints_of(term->zero)), high = times(d, term->high);
    if (whole) return high;
    const Ints low = shift_right(plus(times(d, term->low), ints_of(1 << 10)), ints_of(11));
    const Ints product = plus(high, low);
    const Ints up = plus(product, ints_of((int32_t)((UINT32_C(1) << term->right) >> 1)));
    return shift_right(less_if_negative(up, product, ints_of(term->right > 0)),
                       ints_of(term->right));
}

INLINE int64_t add_vectors(const CornuInt8Term terms[2], bool whole1, bool whole2,
                           const CornuInt8Finish *f, int64_t count, const int8_t *x1,
                           const int8_t *x2, int8_t *y)
{
    const Scale by = scale_of(f, 0);
    int64_t     i = 0;
    for (; count - i >= LANES; i += LANES) {
        const Ints a = terms_of(&terms[0], whole1, x1 + i);
        const Ints b = terms_of(&terms[1], whole2, x2 + i);
        store_finished(y + i, finished(&by, terms[1].sign < 0 ? minus(a, b) : plus(a, b)));
    }
    return i;
}

INLINE int64_t add_registers(const CornuInt8Term terms[2], const CornuInt8Finish *f, int64_t count,
                             const int8_t *x1, const int8_t *x2, int8_t *y)
{
    const bool whole1 = terms[0].low == 0 && terms[0].right == 0;
    const bool whole2 = terms[1].low == 0 && terms[1].right == 0;
    if (!f->bounded || count < LANES) return 0;
    if (whole1) return add_vectors(terms, true, false, f, count, x1, x2, y);
    if (whole2) return add_vectors(terms, false, true, f, count, x1, x2, y);
    return add_vectors(terms, false, false, f, count, x1, x2, y);
}
#else
INLINE int64_t add_registers(const CornuInt8Term terms[2], const CornuInt8Finish *f, int64_t count,
                             const int8_t *x1, const int8_t *x2, int8_t *y)
{
    (void)terms, (void)f, (void)count, (void)x1, (void)x2, (void)y;
    return 0;
}
#endif

static void add(const CornuInt8Term terms[2], const CornuInt8Finish *f, int64_t count,
                const int8_t *restrict x1, const int8_t *restrict x2, int8_t *restrict y)
{
    const CornuInt8Term first = terms[0], second = terms[1];
    int32_t             sums[CORNU_INT8_BLOCK];
    for (int64_t i = add_registers(terms, f, count, x1, x2, y); i < count; i += CORNU_INT8_BLOCK) {
        const int64_t some = count - i < CORNU_INT8_BLOCK ? count - i : CORNU_INT8_BLOCK;
        SIMD for (int64_t k = 0; k < some; k++)
            sums[k] = term_of(&first, x1[i + k]) + term_of(&second, x2[i + k]);
        finish_fixed(f, some, sums, y + i);
    }
}

static void multiply(int32_t zero1, int32_t zero2, int64_t count, const int8_t *restrict x1,
                     const int8_t *restrict x2, int32_t *restrict sums)
{
    SIMD for (int64_t i = 0; i < count; i++) sums[i] = (x1[i] - zero1) * (x2[i] - zero2);
}

static void accumulate(int64_t count, const int8_t *restrict x, int32_t *restrict sums)
{
    SIMD for (int64_t c = 0; c < count; c++)
        sums[c] = (int32_t)((uint32_t)sums[c] + (uint32_t)x[c]);
}

static void maximum(int64_t count, const int8_t *restrict x, int8_t *restrict y)
{
    SIMD for (int64_t c = 0; c < count; c++) y[c] = x[c] > y[c] ? x[c] : y[c];
}

static int32_t total(int64_t count, const uint8_t *x)
{
    int32_t sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum;
}

/* ---- Tiles ---- */

/* Sums of a tile, of which a row has SUMS; of a pooled one those of its outputs. True if it has
 * finished them itself. */
enum { SUMS = 2 * CORNU_INT8_COLUMNS };
static bool sums_of(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS]);

INLINE const uint8_t *row_of(const CornuInt8Tile *tile, int row)
{
    const int half = tile->rows / 2;
    return tile->pooled && row >= half ? tile->x + tile->half_stride + (row - half) * tile->x_stride
                                       : tile->x + row * tile->x_stride;
}

/* Takes the largest of each four rows: bounded sums are scaled in their order. */
INLINE void pool_sums(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    const int half = tile->rows / 2, width = tile->panels * CORNU_INT8_COLUMNS;
    for (int m = 0; m < tile->rows / 4; m++) {
        const int32_t *a = sums[2 * m], *b = sums[2 * m + 1];
        const int32_t *c = sums[half + 2 * m], *d = sums[half + 2 * m + 1];
        SIMD for (int i = 0; i < width; i++) {
            const int32_t above = a[i] > b[i] ? a[i] : b[i], below = c[i] > d[i] ? c[i] : d[i];
            sums[m][i] = above > below ? above : below;
        }
    }
}

INLINE void finish_panels(const CornuInt8Tile *tile, int rows, int panels,
                          int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    const int width = panels * CORNU_INT8_COLUMNS;
    int8_t    y[SUMS];
    for (int m = 0; m < rows; m++) {
        if (tile->finish.factors) finish_real(&tile->finish, width, sums[m], y);
        else                      finish_fixed(&tile->finish, width, sums[m], y);
        memcpy(tile->y + m * tile->y_stride, y, (size_t)tile->columns);
    }
}

#if defined(__AVX2__)
INLINE void finish_rows(const CornuInt8Tile *tile, const Scale *scale, bool positive, bool shrinks,
                        int first, int rows, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    const int left = tile->columns - first;
    int8_t   *y = tile->y + first;
    Scale     by = *scale;
    by.positive = positive, by.shrinks = shrinks;   /* constants */
    for (int m = 0; m < rows; m++, y += tile->y_stride) {
        const __m128i to = finished(&by, load_ints(sums[m] + first));
        if (left >= LANES) store_finished(y, to);
        else               store_first(y, left, to);
    }
}

INLINE void finish_bounded(const CornuInt8Tile *tile, int rows,
                           int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    for (int c = 0; c < tile->columns; c += LANES) {
        const Scale by = scale_of(&tile->finish, c);
        if (!by.shrinks)      finish_rows(tile, &by, false, false, c, rows, sums);
        else if (by.positive) finish_rows(tile, &by, true, true, c, rows, sums);
        else                  finish_rows(tile, &by, false, true, c, rows, sums);
    }
}
#endif

static void keep_sums(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    for (int m = 0; m < tile->rows; m++) {
        const uint32_t total = tile->totals ? (uint32_t)tile->totals[m] : 0;
        int32_t       *y = tile->sums + m * tile->y_stride;
        SIMD for (int c = 0; c < tile->columns; c++)
            y[c] = (int32_t)((uint32_t)sums[m][c] - (uint32_t)tile->zeros[c] * total);
    }
}

static void product(const CornuInt8Tile *tile)
{
    _Alignas(64) int32_t sums[CORNU_INT8_ROWS][SUMS];
    const int            rows = tile->pooled ? tile->rows / 4 : tile->rows;
    if (sums_of(tile, sums)) return;
    if (tile->sums) {
        keep_sums(tile, sums);
        return;
    }
#if defined(__AVX2__)
    if (tile->finish.bounded && !tile->finish.factors) {
        finish_bounded(tile, rows, sums);
        return;
    }
#endif
    if (tile->panels == 2) finish_panels(tile, rows, 2, sums);
    else                   finish_panels(tile, rows, 1, sums);
}

/* The 4 bytes of a group. */
INLINE int32_t group_of(const uint8_t *x)
{
    int32_t group;
    memcpy(&group, x, sizeof group);
    return group;
}
