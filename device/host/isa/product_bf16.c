/*
 * Products of bf16 pairs: exact products, f32 sums. vdpbf16ps where the processor has it, which
 * takes subnormal numbers for zero; otherwise both halves are widened to f32 and multiplied one
 * after the other.
 */
#include "../bf16.h"
#include "lanes.h"

#include <string.h>
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

enum { DEPTH = 2 };

typedef uint16_t Element;
typedef uint32_t Operand;
typedef uint32_t Vector __attribute__((vector_size(4 * LANES)));
typedef uint32_t UnalignedPairs __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

INLINE Vector ones(void) { return (Vector){ 0 } + 0x3f803f80u; }

INLINE Operand operand(const Element *x, Part part)
{
    uint32_t pair;
    if (part == LOW) return *x;
    if (part == HIGH) return (uint32_t)*x << 16;
    memcpy(&pair, x, sizeof pair);
    return pair;
}

INLINE Vector lanes(const Operand *from, Part part)
{
    const Vector pairs = *(const UnalignedPairs *)from;
    return part == LOW ? pairs & 0xffffu : part == HIGH ? pairs & 0xffff0000u : pairs;
}

#if defined(__AVX512BF16__)

enum { TURNS = 1 };

INLINE Vector of_turn(Vector b, int turn) { (void)turn; return b; }

INLINE Lanes multiply(Lanes sum, Operand a, Vector b, int turn)
{
    (void)turn;
    const Vector wide = (Vector){ 0 } + a;
    return (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)wide, (__m512bh)b);
}

#else

enum { TURNS = 2 };

INLINE Vector of_turn(Vector b, int turn) { return turn == 0 ? b << 16 : b & 0xffff0000u; }

INLINE Lanes multiply(Lanes sum, Operand a, Vector b, int turn)
{
    return sum + (Lanes)of_turn((Vector){ 0 } + a, turn) * (Lanes)b;
}

#endif

#include "tiles.h"

/* Two columns of the panel stand where two rows meet; an odd row has the upper half. */
static void pack(void *panel, int64_t width, int64_t k, int64_t count, const void *from,
                 ptrdiff_t k_step, ptrdiff_t n_step, int64_t columns)
{
    const uint16_t *x = from;
    const int64_t   end = k + count;
    while (k < end) {
        uint16_t *to = (uint16_t *)panel + k / 2 * 2 * width;
        if (k % 2 == 0 && k + 1 < end) {
            uint32_t *restrict pairs = (uint32_t *)(void *)to;
            if (n_step == 1)
                for (int64_t n = 0; n < columns; n++)
                    pairs[n] = x[n] | (uint32_t)x[k_step + n] << 16;
            else
                for (int64_t n = 0; n < columns; n++)
                    pairs[n] = x[n * n_step] | (uint32_t)x[k_step + n * n_step] << 16;
            for (int64_t n = columns; n < width; n++) pairs[n] = 0;
            k += 2;
            x += 2 * k_step;
        } else {
            for (int64_t n = 0; n < width; n++)
                to[2 * n + k % 2] = n < columns ? x[n * n_step] : 0;
            k++;
            x += k_step;
        }
    }
}

/* ---- Conversions ---- */

static void widen(const uint16_t *restrict x, int64_t count, float *restrict y)
{
    uint32_t *bits = (uint32_t *)(void *)y;
    for (int64_t i = 0; i < count; i++) bits[i] = (uint32_t)x[i] << 16;
}

INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* As cornu_bf16_from_float. */
INLINE uint32_t rounded(uint32_t x)
{
    const uint32_t up = x + 0x7fff + (x >> 16 & 1), nan = x | 0x400000;
    return ((x & 0x7fffffff) > 0x7f800000 ? nan : up) >> 16;
}

static void narrow(const float *restrict x, int64_t count, uint16_t *restrict y)
{
    for (int64_t i = 0; i < count; i++) y[i] = (uint16_t)rounded(bits_of(x[i]));
}

/* x = high + middle + low; what is not finite has no rest. */
static void split(const float *restrict x, int64_t count, uint16_t *restrict high,
                  uint16_t *restrict middle, uint16_t *restrict low)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t h = rounded(bits_of(x[i]));
        const float    rest = x[i] - float_of(h << 16);
        const uint32_t m = rounded(bits_of(rest)), l = rounded(bits_of(rest - float_of(m << 16)));
        const uint32_t finite = (h & 0x7f80) == 0x7f80 ? 0 : 0xffff;
        high[i] = (uint16_t)h;
        middle[i] = (uint16_t)(m & finite);
        low[i] = (uint16_t)(l & finite);
    }
}

static void pair(const uint16_t *restrict a, const uint16_t *restrict b, int64_t count,
                 uint32_t *restrict to)
{
    if (b)
        for (int64_t i = 0; i < count; i++) to[i] = a[i] | (uint32_t)b[i] << 16;
    else
        for (int64_t i = 0; i < count; i++) to[i] = a[i];
}

static void finish(uint16_t *y, int64_t rows, int64_t columns, const uint16_t *bias, bool relu)
{
    for (int64_t m = 0; m < rows; m++, y += columns)
        for (int64_t n = 0; n < columns; n++) {
            float value = float_of((uint32_t)y[n] << 16);
            if (bias) value += float_of((uint32_t)bias[n] << 16);
            if (relu) value = value <= 0.0f ? 0.0f : value;
            y[n] = (uint16_t)rounded(bits_of(value));
        }
}

const CornuBf16 CORNU__PER_ISA(cornu__bf16) = {
    { LANES, TILE_ROWS, GATHER_ROWS, DEPTH, sizeof(Element), tile, outer, pack, NULL, limit,
      2 * DEPTH * LANES * LIMIT_SUMS },
    widen, narrow, split, pair, finish,
};
