/*
 * Products of bf16 pairs by vdpbf16ps or bfdot: exact products, f32 sums; subnormal numbers are
 * taken for zero.
 *
 * vdpbf16ps adds the products of a pair to the sum one after the other and rounds to nearest even.
 * bfdot, without FEAT_EBF16 or while FPCR.EBF is 0, which Linux does not change, adds them to each
 * other, then that to the sum, and rounds both to odd: what is not a float becomes the one of its
 * two neighbours whose last bit is 1. So each addition is off by less than 2^-23 of its result, not
 * by 2^-24 at most, but there is one for two products on the way of a sum, and as the direction
 * does not depend on the sign of the error, these cancel as those of rounding to nearest do. Of n
 * products the sum is off by less than
 *     (n / 2 + 1) 2^-23 of the sum of their absolute values
 * as n additions that round to nearest are off by n 2^-24; what is exact in f32 stays exact.
 *
 * Reference: device/ops/matmul.c and conv2d.c, within that bound;
 *     tests/device/host/machine/test_bf16.c also compares with an emulation of the instructions.
 * Source: "Arm Architecture Reference Manual for A-profile architecture", DDI 0487, BFDOT and the
 *     functions BFDotAdd and BFRound of its pseudocode.
 * Gain, Zen 4: twice the multiply-adds of f32; results rounded by the instruction on their way out
 *     of a tile of 14 x 128 x 32: 88 % of the limit, then 99.
 */
#include "lanes.h"
#include "turn.h"

#include <string.h>

enum { DEPTH = 2 };

typedef uint16_t Element;
typedef uint32_t Operand;
typedef uint32_t Vector __attribute__((vector_size(4 * LANES)));
typedef uint32_t UnalignedPairs __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

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

#if defined(CORNU_NEON)
INLINE Lanes multiply(Lanes sum, Operand a, Vector b)
{
    return (Lanes)vbfdotq_lane_f32((float32x4_t)sum, vreinterpretq_bf16_u32((uint32x4_t)b),
                                   vreinterpret_bf16_u32((uint32x2_t){ a }), 0);
}
#else
INLINE Lanes multiply_lanes(Lanes sum, Vector a, Vector b)
{
    return (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

INLINE Lanes multiply(Lanes sum, Operand a, Vector b)
{
    return multiply_lanes(sum, (Vector){ 0 } + a, b);
}

enum { NEXT_SELECTION = 0x00040004 };

INLINE Vector selected(Vector table, Bits at)
{
    return (Vector)_mm512_permutexvar_epi16((__m512i)at, (__m512i)table);
}
#endif

#include "tiles.h"

/* `columns` pairs of two rows, then zeros, `width` in all. */
#if defined(CORNU_NEON)
static void pack_pairs(uint32_t *to, int64_t width, const uint16_t *x, const uint16_t *next,
                       int64_t columns)
{
    int64_t n = 0;
    for (; n + LANES <= columns; n += LANES) {
        const uint16x4x2_t pairs = vzip_u16(vld1_u16(x + n), vld1_u16(next + n));
        vst1q_u32(to + n, vreinterpretq_u32_u16(vcombine_u16(pairs.val[0], pairs.val[1])));
    }
    for (; n < columns; n++) to[n] = x[n] | (uint32_t)next[n] << 16;
    for (; n < width; n++) to[n] = 0;
}
#else
static __mmask16 first(int64_t count)
{
    return (__mmask16)(count >= LANES ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

static void pack_pairs(uint32_t *to, int64_t width, const uint16_t *x, const uint16_t *next,
                       int64_t columns)
{
    for (int64_t n = 0; n < width; n += LANES) {
        const __m256i low = _mm256_maskz_loadu_epi16(first(columns - n), x + n);
        const __m256i high = _mm256_maskz_loadu_epi16(first(columns - n), next + n);
        _mm512_mask_storeu_epi32(to + n, first(width - n),
                                 _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                                 _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16)));
    }
}
#endif

/* Two columns of the panel stand where two rows meet; an odd row has the upper half. */
static void pack(void *panel, int64_t width, int64_t k, int64_t count, const void *from,
                 ptrdiff_t k_step, ptrdiff_t n_step, int64_t columns)
{
    const uint16_t *x = from;
    const int64_t   end = k + count;
    while (k < end) {
        uint16_t *to = (uint16_t *)panel + k / 2 * 2 * width;
        if (k % 2 == 0 && k + 1 < end && k_step == 1 && n_step != 1) {
            const int64_t pairs = (end - k) / 2;
            turn(to, width, x, n_step * (ptrdiff_t)sizeof *x, pairs, columns);
            k += 2 * pairs;
            x += 2 * pairs;
        } else if (k % 2 == 0 && k + 1 < end) {
            uint32_t *restrict pairs = (uint32_t *)(void *)to;
            __builtin_prefetch(x + width * n_step);   /* of the next panel, packed next */
            __builtin_prefetch(x + k_step + width * n_step);
            if (n_step == 1) {
                pack_pairs(pairs, width, x, x + k_step, columns);
            } else {
                for (int64_t n = 0; n < columns; n++)
                    pairs[n] = x[n * n_step] | (uint32_t)x[k_step + n * n_step] << 16;
                for (int64_t n = columns; n < width; n++) pairs[n] = 0;
            }
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

const CornuProducts CORNU__PER_ISA(cornu__products) = {
    LANES, TILE_ROWS, PANELS_ROWS, WINDOWS, TILE_ROWS, GATHER_ROWS, DEPTH, sizeof(Element), tile,
    panels, windows, outer, NULL, pack, NULL, NULL, NULL,
    limit, 2 * DEPTH * LANES * TILE_SUMS, SELECTS, NULL, NULL,
};
