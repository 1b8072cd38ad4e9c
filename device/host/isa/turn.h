/* Turning a matrix of elements of 4 bytes, f32 or pairs of bf16, on its way into a panel. */
#ifndef CORNU_DEVICE_HOST_ISA_TURN_H
#define CORNU_DEVICE_HOST_ISA_TURN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lanes.h"

/* TURNED elements of a row are a line of the cache, read once: rows that are a power of two apart
 * share a set of the first-level cache, from which they would be gone by the next column. */
enum { TURNED = 16, TURN_AHEAD = 16 * TURNED };   /* elements; bytes ahead */

#if defined(__AVX512F__)
/* Column j of 16 registers becomes register j. */
INLINE void turn_words(__m512i r[TURNED])
{
    __m512i t[TURNED];
    UNROLL
    for (int i = 0; i < TURNED; i += 4) {   /* fours of rows in each lane of 128 bits */
        const __m512i a = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        const __m512i b = _mm512_unpackhi_epi32(r[i], r[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]);
        const __m512i d = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {         /* a 4 by 4 of lanes is turned */
        const __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
        r[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        r[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
        r[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

/* Up to 16 rows of 16 elements. */
INLINE void turn_block(uint32_t *y, int64_t width, const char *x, ptrdiff_t apart, int64_t rows,
                       int64_t columns)
{
    const __mmask16 in = first_lanes(rows), out = first_lanes(columns);
    __m512i         r[TURNED];
    for (int n = 0; n < TURNED; n++) {
        r[n] = _mm512_setzero_si512();
        if (n >= columns) continue;
        __builtin_prefetch((const void *)((uintptr_t)(x + n * apart) + TURN_AHEAD), 0, 2);
        r[n] = _mm512_maskz_loadu_epi32(in, x + n * apart);
    }
    turn_words(r);
    for (int k = 0; k < rows; k++) _mm512_mask_storeu_epi32(y + k * width, out, r[k]);
}
#else
/* Four words, at any even address. */
typedef uint32_t Four __attribute__((vector_size(16)));
typedef uint32_t UnalignedFour __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t Word __attribute__((aligned(2), may_alias));

/* Four rows of four words. */
INLINE void turn_four(uint32_t *y, int64_t width, const char *x, ptrdiff_t apart)
{
    const Four a = *(const UnalignedFour *)x, b = *(const UnalignedFour *)(x + apart);
    const Four c = *(const UnalignedFour *)(x + 2 * apart);
    const Four d = *(const UnalignedFour *)(x + 3 * apart);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(UnalignedFour *)y = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(UnalignedFour *)(y + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(UnalignedFour *)(y + 2 * width) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(UnalignedFour *)(y + 3 * width) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

INLINE void turn_block(uint32_t *y, int64_t width, const char *x, ptrdiff_t apart, int64_t rows,
                       int64_t columns)
{
    const int64_t whole_rows = rows / 4 * 4, whole = columns / 4 * 4;
    for (int64_t n = 0; n < columns; n++)
        __builtin_prefetch((const void *)((uintptr_t)(x + n * apart) + TURN_AHEAD), 0, 2);
    for (int64_t n = 0; n < whole; n += 4)
        for (int64_t k = 0; k < whole_rows; k += 4)
            turn_four(y + k * width + n, width, x + n * apart + k * (int64_t)sizeof *y, apart);
    for (int64_t n = 0; n < columns; n++)
        for (int64_t k = n < whole ? whole_rows : 0; k < rows; k++)
            y[k * width + n] = ((const Word *)(const void *)(x + n * apart))[k];
}
#endif

/* Element (i, n) of `to`, `count` rows `width` elements apart, is element i of the row that begins
 * `apart` bytes after that of n - 1, the first of `columns` at `from`. */
INLINE void turn_columns(uint32_t *restrict to, int64_t width, const void *from, ptrdiff_t apart,
                         int64_t count, int64_t columns)
{
    for (int64_t i = 0; i < count; i += TURNED)
        for (int64_t n = 0; n < columns; n += TURNED)
            turn_block(to + i * width + n, width,
                       (const char *)from + n * apart + i * (int64_t)sizeof *to, apart,
                       count - i < TURNED ? count - i : TURNED,
                       columns - n < TURNED ? columns - n : TURNED);
}

/* The same, and zeros in columns up to `padded`. */
INLINE void turn_padded(void *to, int64_t width, const void *from, ptrdiff_t apart, int64_t count,
                        int64_t columns, int64_t padded)
{
    uint32_t *y = to;
    turn_columns(y, width, from, apart, count, columns);
    for (int64_t i = 0; i < count && columns < padded; i++)
        memset(y + i * width + columns, 0, (size_t)(padded - columns) * sizeof *y);
}

/* Of a panel of `width` columns. */
INLINE void turn(void *to, int64_t width, const void *from, ptrdiff_t apart, int64_t count,
                 int64_t columns)
{
    turn_padded(to, width, from, apart, count, columns, width);
}

#endif
