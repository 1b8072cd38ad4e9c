/*
 * Products of int8 without VNNI. maddubs, which multiplies u8 by i8, saturates the sum of two
 * products; so both operands are widened to 16 bits and multiplied by madd, which is exact:
 * 2 * 255 * 128 fits into 32 bits.
 *
 * Reference: reference.c; tests/device/edgetpu/test_products.c compares them.
 * Source: own.
 * Gain: README.md of the folder.
 */
#include "loops_internal.h"

#if defined(__AVX2__)

/* A register of 32-bit sums has two for each column, of the first and the last two elements of a
 * group: SPAN columns. */
#if defined(__AVX512BW__)
enum { SPAN = 8, MOST_ROWS = 12 };
typedef __m512i Sums;
INLINE Sums zero_sums(void) { return _mm512_setzero_si512(); }
INLINE Sums widened(const int8_t *panel)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)panel));
}
INLINE Sums spread(const uint8_t *x)
{
    return _mm512_cvtepu8_epi16(_mm256_set1_epi32(group_of(x)));
}
INLINE Sums add_products(Sums sums, Sums a, Sums b)
{
    return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
}
INLINE void store_sums(int32_t *to, Sums sums, const int32_t *bias)
{
    const __m256i both = _mm512_cvtepi64_epi32(
        _mm512_add_epi32(sums, _mm512_srli_epi64(sums, 32)));
    _mm256_storeu_si256((__m256i *)to, _mm256_add_epi32(
        both, _mm256_loadu_si256((const __m256i *)bias)));
}
#else
enum { SPAN = 4, MOST_ROWS = 3 };
typedef __m256i Sums;
INLINE Sums zero_sums(void) { return _mm256_setzero_si256(); }
INLINE Sums widened(const int8_t *panel)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)panel));
}
INLINE Sums spread(const uint8_t *x)
{
    return _mm256_cvtepu8_epi16(_mm_set1_epi32(group_of(x)));
}
INLINE Sums add_products(Sums sums, Sums a, Sums b)
{
    return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
}
INLINE void store_sums(int32_t *to, Sums sums, const int32_t *bias)
{
    const __m256i both = _mm256_add_epi32(sums, _mm256_srli_epi64(sums, 32));
    const __m256i low = _mm256_permutevar8x32_epi32(
        both, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_storeu_si128((__m128i *)to, _mm_add_epi32(
        _mm256_castsi256_si128(low), _mm_loadu_si128((const __m128i *)bias)));
}
#endif

enum { SPANS = CORNU_INT8_COLUMNS / SPAN };

INLINE void panel_sums(const CornuInt8Tile *tile, int panel, int first, int rows,
                       int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    Sums           sum[MOST_ROWS * SPANS];
    const uint8_t *x = tile->x + first * tile->x_stride;
    const int8_t  *filter = tile->panel[panel];
    UNROLL for (int i = 0; i < rows * SPANS; i++) sum[i] = zero_sums();
    for (int64_t g = 0; g < tile->groups; g++) {
        Sums group[MOST_ROWS];
        UNROLL for (int m = 0; m < rows; m++)
            group[m] = spread(x + m * tile->x_stride + g * CORNU_INT8_GROUP);
        UNROLL for (int s = 0; s < SPANS; s++) {
            const Sums part = widened(filter + g * CORNU_INT8_PANEL +
                                      s * SPAN * CORNU_INT8_GROUP);
            UNROLL for (int m = 0; m < rows; m++)
                sum[m * SPANS + s] = add_products(sum[m * SPANS + s], group[m], part);
        }
    }
    UNROLL for (int i = 0; i < rows * SPANS; i++) {
        const int column = panel * CORNU_INT8_COLUMNS + i % SPANS * SPAN;
        store_sums(sums[first + i / SPANS] + column, sum[i], tile->finish.bias + column);
    }
}

static void sums_of(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    for (int p = 0; p < tile->panels; p++) {
        int m = 0;
#if defined(__AVX512BW__)
        for (; tile->rows - m >= 8; m += 8) panel_sums(tile, p, m, 8, sums);
        for (; tile->rows - m >= 4; m += 4) panel_sums(tile, p, m, 4, sums);
#endif
        for (; tile->rows - m >= 3; m += 3) panel_sums(tile, p, m, 3, sums);
        for (; m < tile->rows; m++) panel_sums(tile, p, m, 1, sums);
    }
}

#else

static void sums_of(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    for (int p = 0; p < tile->panels; p++)
        for (int m = 0; m < tile->rows; m++) {
            const uint8_t *x = tile->x + m * tile->x_stride;
            const int8_t  *filter = tile->panel[p];
            uint32_t       sum[CORNU_INT8_COLUMNS];
            for (int c = 0; c < CORNU_INT8_COLUMNS; c++)
                sum[c] = (uint32_t)tile->finish.bias[p * CORNU_INT8_COLUMNS + c];
            for (int64_t g = 0; g < tile->groups; g++, x += CORNU_INT8_GROUP)
                for (int c = 0; c < CORNU_INT8_COLUMNS; c++, filter += CORNU_INT8_GROUP)
                    for (int k = 0; k < CORNU_INT8_GROUP; k++)
                        sum[c] += (uint32_t)(x[k] * filter[k]);
            for (int c = 0; c < CORNU_INT8_COLUMNS; c++)
                sums[m][p * CORNU_INT8_COLUMNS + c] = (int32_t)sum[c];
        }
}

#endif

const CornuInt8Loops CORNU__PER_ISA(cornu__int8_loops) = {
    product, multiply_add, finish, maximum, raise
};
