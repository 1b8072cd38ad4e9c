/*
 * As in "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2: VDPBF16PS, with
 * LANES pairs a register, the second element of each added before the first; and what packing
 * needs. Subnormal numbers are kept.
 */
#include "bf16_emulation.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "../../../../device/host/isa/lanes.h"

typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));

static Lanes add_products(Lanes sum, Bits a, Bits b)
{
    return sum + (Lanes)(a & 0xffff0000u) * (Lanes)(b & 0xffff0000u) +
           (Lanes)(a << 16) * (Lanes)(b << 16);
}

static Halves load_masked(unsigned mask, const uint16_t *from)
{
    Halves x = { 0 };
    for (int n = 0; n < LANES; n++)
        if (mask >> n & 1) x[n] = from[n];
    return x;
}

static void store_masked(uint32_t *to, unsigned mask, Bits x)
{
    for (int n = 0; n < LANES; n++)
        if (mask >> n & 1) to[n] = x[n];
}

static Bits widened(Halves x)
{
    Bits wide;
    for (int n = 0; n < LANES; n++) wide[n] = x[n];
    return wide;
}

static Bits shifted(Bits x, int bits) { return x << bits; }
static Bits together(Bits a, Bits b) { return a | b; }

/* Elements `at` of all halves of a register. */
static Bits chosen(Bits at, Bits table)
{
    uint16_t halves[2 * LANES], numbers[2 * LANES], picked[2 * LANES];
    memcpy(halves, &table, sizeof halves);
    memcpy(numbers, &at, sizeof numbers);
    for (int n = 0; n < 2 * LANES; n++) picked[n] = halves[numbers[n] % (2 * LANES)];
    memcpy(&table, picked, sizeof picked);
    return table;
}

#undef _mm512_slli_epi32
#define __m512                    Lanes
#define __m512i                   Bits
#define __m512bh                  Bits
#define __m256i                   Halves
#define _mm512_dpbf16_ps          add_products
#define _mm512_permutexvar_epi16  chosen
#define _mm256_maskz_loadu_epi16  load_masked
#define _mm512_mask_storeu_epi32  store_masked
#define _mm512_cvtepu16_epi32     widened
#define _mm512_slli_epi32         shifted
#define _mm512_or_si512           together

#define CORNU_ISA_NAME emulated_bf16
/* NOLINTNEXTLINE(bugprone-suspicious-include): its macros */
#include "../../../../device/host/isa/product_bf16.c"
#endif
