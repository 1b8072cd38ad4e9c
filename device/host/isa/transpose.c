/*
 * Matrices turned, whole lines of the cache at a time. With AVX-512 two elements of two bytes, one
 * below the other, are a word, and words are turned in registers (turn.h).
 *
 * Reference: device/ops/shape.c; tests/device/host/machine/test_transpose.c compares.
 * Source: own.
 * Gain, Xeon: packing a transposed b of 4096 x 4096 in bf16, two threads, 24 ms, then 11.5.
 */
#include "transpose.h"

#include "lanes.h"
#include "turn.h"

#if defined(__AVX512BW__)

enum { SIDE = TURNED, HALVES = 2 * SIDE };

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

#else

static void halves(const uint16_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint16_t *y,
                   ptrdiff_t y_row)
{
    for (int64_t j = 0; j < columns; j += TURNED)
        for (int64_t i = 0; i < rows; i += TURNED)
            for (int64_t l = j; l < columns && l < j + TURNED; l++)
                for (int64_t k = i; k < rows && k < i + TURNED; k++)
                    y[l * y_row + k] = x[k * x_row + l];
}

#endif

static void words(const uint32_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint32_t *y,
                  ptrdiff_t y_row)
{
    turn_columns(y, y_row, x, x_row * (ptrdiff_t)sizeof *x, columns, rows);
}

const CornuTransposes CORNU__PER_ISA(cornu__transposes) = { halves, words };
