/*
 * Matrices turned, whole lines of the cache at a time: with AVX-512 in registers of 16 by 16 words,
 * a word being an element of four bytes or two of two bytes, one below the other.
 *
 * Reference: device/ops/shape.c; tests/device/host/machine/test_transpose.c compares.
 * Source: own.
 * Gain: not measured apart from the products that use it.
 */
#include "transpose.h"

#include "lanes.h"

#if defined(__AVX512BW__)

enum { SIDE = 16, HALVES = 2 * SIDE };

/* Column j of 16 registers becomes register j. */
INLINE void turn_words(__m512i r[SIDE])
{
    __m512i t[SIDE];
    UNROLL
    for (int i = 0; i < SIDE; i += 4) {   /* fours of rows in each lane of 128 bits */
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

INLINE __mmask32 first_halves(int64_t count)
{
    return count >= HALVES ? 0xffffffffu : (1u << count) - 1;
}

/* Up to 32 by 32 elements. Rows in pairs are words; of each lane's columns a register has the first
 * four, another the others. */
static void turn_halves(const uint16_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns,
                        uint16_t *y, ptrdiff_t y_row)
{
    const __mmask32 in = first_halves(columns), out = first_halves(rows);
    __m512i         low[SIDE], high[SIDE];
    for (int i = 0; i < SIDE; i++) {
        const __m512i none = _mm512_setzero_si512();
        const __m512i a = 2 * i < rows ? _mm512_maskz_loadu_epi16(in, x + 2 * i * x_row) : none;
        const __m512i b = 2 * i + 1 < rows ? _mm512_maskz_loadu_epi16(in, x + (2 * i + 1) * x_row)
                                           : none;
        low[i] = _mm512_unpacklo_epi16(a, b);
        high[i] = _mm512_unpackhi_epi16(a, b);
    }
    turn_words(low);
    turn_words(high);
    for (int j = 0; j < SIDE; j++) {
        const int column = j / 4 * 8 + j % 4;
        if (column < columns) _mm512_mask_storeu_epi16(y + column * y_row, out, low[j]);
        if (column + 4 < columns) _mm512_mask_storeu_epi16(y + (column + 4) * y_row, out, high[j]);
    }
}

static void halves(const uint16_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint16_t *y,
                   ptrdiff_t y_row)
{
    for (int64_t j = 0; j < columns; j += HALVES)
        for (int64_t i = 0; i < rows; i += HALVES)
            turn_halves(x + i * x_row + j, x_row, rows - i, columns - j, y + j * y_row + i, y_row);
}

static void words(const uint32_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint32_t *y,
                  ptrdiff_t y_row)
{
    for (int64_t j = 0; j < columns; j += SIDE)
        for (int64_t i = 0; i < rows; i += SIDE) {
            const __mmask16 in = first_lanes(columns - j), out = first_lanes(rows - i);
            __m512i         r[SIDE];
            for (int k = 0; k < SIDE; k++)
                r[k] = i + k < rows ? _mm512_maskz_loadu_epi32(in, x + (i + k) * x_row + j)
                                    : _mm512_setzero_si512();
            turn_words(r);
            for (int k = 0; k < SIDE && j + k < columns; k++)
                _mm512_mask_storeu_epi32(y + (j + k) * y_row + i, out, r[k]);
        }
}

#else

enum { BLOCK = 16 };   /* a side of what stays in the first-level cache */

/* Of a constant size once inlined. */
INLINE void turn(const char *x, ptrdiff_t x_row, int64_t rows, int64_t columns, char *y,
                 ptrdiff_t y_row, ptrdiff_t size)
{
    for (int64_t j = 0; j < columns; j += BLOCK)
        for (int64_t i = 0; i < rows; i += BLOCK)
            for (int64_t l = j; l < columns && l < j + BLOCK; l++)
                for (int64_t k = i; k < rows && k < i + BLOCK; k++)
                    memcpy(y + (l * y_row + k) * size, x + (k * x_row + l) * size, (size_t)size);
}

static void halves(const uint16_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint16_t *y,
                   ptrdiff_t y_row)
{
    turn((const char *)x, x_row, rows, columns, (char *)y, y_row, sizeof *x);
}

static void words(const uint32_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint32_t *y,
                  ptrdiff_t y_row)
{
    turn((const char *)x, x_row, rows, columns, (char *)y, y_row, sizeof *x);
}

#endif

const CornuTransposes CORNU__PER_ISA(cornu__transposes) = { halves, words };
