/*
 * Products of int8 without VNNI. maddubs, which multiplies u8 by i8, saturates the sum of two
 * products; so both operands are kept in 16 bits and multiplied by madd, which is exact:
 * 2 * 255 * 128 fits into 32 bits.
 *
 * Reference: reference.c; tests/device/edgetpu/test_products.c compares them.
 * Source: own.
 * Gain: tests/bench/RESULTS.md.
 */
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "loops_internal.h"

static void raise(int64_t count, const int8_t *restrict x, void *restrict to)
{
    int16_t *y = to;
    SIMD for (int64_t c = 0; c < count; c++) y[c] = (int16_t)(x[c] + 128);
}

#if defined(__AVX2__) || defined(__SSE2__)

/* Registers of LANES columns, as many of a panel as its part; a tile of TALL rows by a part leaves
 * registers for it, a row's group and a product. */
#if defined(__AVX512BW__)
enum { TALL = 12 };
INLINE Ints load_part(const uint8_t *panel) { return _mm512_loadu_si512(panel); }
INLINE Ints add_pairs(Ints sum, Ints a, Ints b)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}
INLINE void store_ints(int32_t *to, Ints x) { _mm512_storeu_si512(to, x); }
#elif defined(__AVX2__)
enum { TALL = 6 };
INLINE Ints load_part(const uint8_t *panel) { return _mm256_loadu_si256((const __m256i *)panel); }
INLINE Ints add_pairs(Ints sum, Ints a, Ints b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
INLINE void store_ints(int32_t *to, Ints x) { _mm256_storeu_si256((__m256i *)to, x); }
#else
enum { TALL = 2 };
typedef __m128i Ints;
INLINE Ints load_ints(const int32_t *x) { return _mm_loadu_si128((const __m128i *)x); }
INLINE Ints ints_of(int32_t x) { return _mm_set1_epi32(x); }
INLINE Ints load_part(const uint8_t *panel) { return _mm_loadu_si128((const __m128i *)panel); }
INLINE Ints add_pairs(Ints sum, Ints a, Ints b) { return _mm_add_epi32(sum, _mm_madd_epi16(a, b)); }
INLINE void store_ints(int32_t *to, Ints x) { _mm_storeu_si128((__m128i *)to, x); }
#endif

enum { PARTS = CORNU_INT8_COLUMNS / LANES, PART_BYTES = CORNU_INT8_PANEL / PARTS };

INLINE void panel_sums(const CornuInt8Tile *tile, int panel, int first, int rows,
                       int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    Ints           sum[TALL * PARTS];
    const uint8_t *row[TALL], *filter = tile->panel[panel];
    const int32_t *bias = tile->finish.bias + panel * CORNU_INT8_COLUMNS;
    UNROLL for (int i = 0; i < rows * PARTS; i++) sum[i] = load_ints(bias + i % PARTS * LANES);
    UNROLL for (int m = 0; m < rows; m++) row[m] = row_of(tile, first + m);
    for (int64_t s = 0; s < tile->segments; s++) {
        const ptrdiff_t begin = tile->offsets[s];
        for (int64_t g = 0; g < tile->groups; g++, filter += CORNU_INT8_PANEL) {
            Ints part[PARTS];
            UNROLL for (int i = 0; i < PARTS; i++) part[i] = load_part(filter + i * PART_BYTES);
            UNROLL for (int m = 0; m < rows; m++) {
                const Ints group = ints_of(group_of(row[m] + begin + g * CORNU_INT8_GROUP));
                UNROLL for (int i = 0; i < PARTS; i++)
                    sum[m * PARTS + i] = add_pairs(sum[m * PARTS + i], group, part[i]);
            }
        }
    }
    UNROLL for (int i = 0; i < rows * PARTS; i++)
        store_ints(sums[first + i / PARTS] + panel * CORNU_INT8_COLUMNS + i % PARTS * LANES,
                   sum[i]);
}

INLINE void all_sums(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    for (int p = 0; p < tile->panels; p++) {
        int m = 0;
        for (; tile->rows - m >= TALL; m += TALL) panel_sums(tile, p, m, TALL, sums);
#if defined(__AVX2__)
        for (; tile->rows - m >= 4; m += 4) panel_sums(tile, p, m, 4, sums);
#endif
        for (; tile->rows - m >= 2; m += 2) panel_sums(tile, p, m, 2, sums);
        for (; m < tile->rows; m++) panel_sums(tile, p, m, 1, sums);
    }
}

#else

static void row_sums(const CornuInt8Tile *tile, int panel, const uint8_t *x,
                     int32_t to[CORNU_INT8_COLUMNS])
{
    const int16_t *filter = (const int16_t *)tile->panel[panel];
    uint32_t       sum[CORNU_INT8_COLUMNS];
    for (int c = 0; c < CORNU_INT8_COLUMNS; c++)
        sum[c] = (uint32_t)tile->finish.bias[panel * CORNU_INT8_COLUMNS + c];
    for (int64_t s = 0; s < tile->segments; s++) {
        const uint8_t *from = x + tile->offsets[s];
        for (int64_t g = 0; g < tile->groups; g++, filter += 2 * CORNU_INT8_COLUMNS) {
            int16_t pair[2];
            memcpy(pair, from + g * CORNU_INT8_GROUP, sizeof pair);
            const int32_t first = pair[0], second = pair[1];
            SIMD for (int c = 0; c < CORNU_INT8_COLUMNS; c++)
                sum[c] += (uint32_t)(first * filter[2 * c] + second * filter[2 * c + 1]);
        }
    }
    for (int c = 0; c < CORNU_INT8_COLUMNS; c++) to[c] = (int32_t)sum[c];
}

INLINE void all_sums(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    for (int p = 0; p < tile->panels; p++)
        for (int m = 0; m < tile->rows; m++)
            row_sums(tile, p, row_of(tile, m), sums[m] + p * CORNU_INT8_COLUMNS);
}
#endif

#if defined(__AVX2__)
/* Of 16 channels from c on; pairs of taps are interleaved for madd. */
INLINE void channel_sums(const CornuInt8Depthwise *tile, const uint8_t *x, int c,
                         int32_t sums[CORNU_INT8_BLOCK])
{
    const int16_t *filter = (const int16_t *)tile->filter + c;
    __m256i        low = _mm256_setzero_si256(), high = low;
    for (int64_t t = 0; t < tile->taps; t += 2, filter += 2 * CORNU_INT8_BLOCK) {
        const uint8_t *first = x + tile->offsets[t] + 2 * c;
        const uint8_t *next = x + tile->offsets[t + 1] + 2 * c;
        const __m256i  a = _mm256_loadu_si256((const __m256i *)first);
        const __m256i  b = _mm256_loadu_si256((const __m256i *)next);
        const __m256i  by_a = _mm256_loadu_si256((const __m256i *)filter);
        const __m256i  by_b = _mm256_loadu_si256((const __m256i *)(filter + CORNU_INT8_BLOCK));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b),
                                                      _mm256_unpacklo_epi16(by_a, by_b)));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b),
                                                        _mm256_unpackhi_epi16(by_a, by_b)));
    }
    const __m256i *bias = (const __m256i *)(tile->finish.bias + c);
    __m256i       *to = (__m256i *)(sums + c);
    _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(bias),
                                             _mm256_permute2x128_si256(low, high, 0x20)));
    _mm256_storeu_si256(to + 1, _mm256_add_epi32(_mm256_loadu_si256(bias + 1),
                                                 _mm256_permute2x128_si256(low, high, 0x31)));
}

static void depthwise_sums(const CornuInt8Depthwise *tile, const uint8_t *x,
                           int32_t sums[CORNU_INT8_BLOCK])
{
    for (int c = 0; c < tile->channels; c += 16) channel_sums(tile, x, c, sums);
}

#else
static void multiply_add(int channels, const int16_t *restrict x, const int16_t *restrict filter,
                         int32_t *restrict sums)
{
    SIMD for (int c = 0; c < channels; c++)
        sums[c] = (int32_t)((uint32_t)sums[c] + (uint32_t)(filter[c] * x[c]));
}

static void depthwise_sums(const CornuInt8Depthwise *tile, const uint8_t *x,
                           int32_t sums[CORNU_INT8_BLOCK])
{
    memcpy(sums, tile->finish.bias, (size_t)tile->channels * sizeof *sums);
    for (int64_t t = 0; t < tile->taps; t++)
        multiply_add(tile->channels, (const int16_t *)(x + tile->offsets[t]),
                     (const int16_t *)tile->filter + t * CORNU_INT8_BLOCK, sums);
}

#endif

static bool sums_of(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    all_sums(tile, sums);
    if (tile->pooled) pool_sums(tile, sums);
    return false;
}

static void depthwise(const CornuInt8Depthwise *tile)
{
    int32_t        sums[CORNU_INT8_BLOCK];
    const uint8_t *x = tile->x;
    for (int64_t o = 0; o < tile->outputs; o++, x += tile->x_stride) {
        depthwise_sums(tile, x, sums);
        finish(&tile->finish, tile->channels, sums, tile->y + o * tile->y_stride);
    }
}

const CornuInt8Loops CORNU__PER_ISA(cornu__int8_loops) = {
    2, false, product, depthwise, add, multiply, finish, accumulate, maximum, raise,
    total
};
