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
INLINE void turn_block(uint32_t *y, int64_t width, const char *x, ptrdiff_t apart, int64_t rows,
                       int64_t columns)
{
    for (int64_t n = 0; n < columns; n++, x += apart) {
        uint32_t row[TURNED];
        __builtin_prefetch((const void *)((uintptr_t)x + TURN_AHEAD), 0, 2);
        memcpy(row, x, (size_t)rows * sizeof *row);
        for (int64_t k = 0; k < rows; k++) y[k * width + n] = row[k];
    }
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

/* The same of a panel: columns up to `width` are zero. */
INLINE void turn(void *to, int64_t width, const void *from, ptrdiff_t apart, int64_t count,
                 int64_t columns)
{
    uint32_t *y = to;
    turn_columns(y, width, from, apart, count, columns);
    for (int64_t i = 0; i < count && columns < width; i++)
        memset(y + i * width + columns, 0, (size_t)(width - columns) * sizeof *y);
}

#endif
