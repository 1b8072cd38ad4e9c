/*
 * Registers of floats in the compilers' own vector types, so that one text serves gcc and
 * clang and every instruction set: 16 lanes with AVX-512, 8 with AVX2, 4 otherwise.
 */
#ifndef CORNU_DEVICE_HOST_ISA_LANES_H
#define CORNU_DEVICE_HOST_ISA_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "per_isa.h"

/* LANES floats fill a register. A tile of TILE_ROWS by TILE_VECTORS registers of sums, one row
 * of operands and one broadcast value are what the register file holds (32, 16, 16). */
enum {
#if defined(__AVX512F__)
    LANES = 16, TILE_ROWS = 14,
#elif defined(__AVX2__)
    LANES = 8, TILE_ROWS = 6,
#else
    LANES = 4, TILE_ROWS = 6,
#endif
    TILE_VECTORS = 2, GATHER_ROWS = TILE_ROWS < 10 ? TILE_ROWS : 10
};

typedef float   Lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t Mask __attribute__((vector_size(4 * LANES)));
typedef uint32_t Bits __attribute__((vector_size(4 * LANES)));
typedef float   Unaligned __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Before a loop whose count is known once it is inlined: no trace of the loop may be left, or
 * the sums it runs over would live in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

INLINE Lanes load(const float *from)       { return *(const Unaligned *)from; }
INLINE void  store(float *to, Lanes value) { *(Unaligned *)to = value; }

/* The last ones of a row may be fewer than a register holds. */
INLINE Lanes load_some(const float *from, int64_t count)
{
    if (count >= LANES) return load(from);
    Lanes value = { 0 };
    memcpy(&value, from, (size_t)count * sizeof(float));
    return value;
}

INLINE void store_some(float *to, Lanes value, int64_t count)
{
    if (count >= LANES) store(to, value);
    else memcpy(to, &value, (size_t)count * sizeof(float));
}

/* Lanes that hold numbers below 2^16 or 2^8, as those. gcc 12 converts vectors of its own type
 * lane by lane, with AVX2 alone a loop over them too. */
#if defined(__AVX2__) && !defined(__AVX512F__)
INLINE __m128i halves_of(__m256i x)
{
    return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

INLINE void store_halves(uint16_t *to, Bits lanes)
{
    _mm_storeu_si128((void *)to, halves_of((__m256i)lanes));
}

INLINE void store_bytes(uint8_t *to, Bits lanes)
{
    const __m128i halves = halves_of((__m256i)lanes);
    _mm_storel_epi64((void *)to, _mm_packus_epi16(halves, halves));
}
#else
INLINE void store_halves(uint16_t *to, Bits lanes)
{
    uint32_t wide[LANES];
    memcpy(wide, &lanes, sizeof wide);
    for (int n = 0; n < LANES; n++) to[n] = (uint16_t)wide[n];
}

INLINE void store_bytes(uint8_t *to, Bits lanes)
{
    uint32_t wide[LANES];
    memcpy(wide, &lanes, sizeof wide);
    for (int n = 0; n < LANES; n++) to[n] = (uint8_t)wide[n];
}
#endif

/* The first `count` lanes as bf16, rounded as cornu_bf16_from_float does; the instruction for it
 * takes subnormal numbers for zero, as the products beside it do. */
INLINE void store_narrow(uint16_t *to, Lanes value, int count)
{
#if defined(__AVX512BF16__)
    const __m256i half = (__m256i)_mm512_cvtneps_pbh((__m512)value);
    if (count >= LANES) _mm256_storeu_si256((void *)to, half);
    else memcpy(to, &half, (size_t)count * sizeof *to);
#else
    const Bits x = (Bits)value, nan = (Bits)((x & 0x7fffffffu) > 0x7f800000u);
    const Bits up = x + 0x7fffu + (x >> 16 & 1u);
    uint16_t   half[LANES];
    store_halves(half, ((nan & (x | 0x400000u)) | (~nan & up)) >> 16);
    if (count >= LANES) memcpy(to, half, sizeof half);
    else for (int n = 0; n < count; n++) to[n] = half[n];
#endif
}

/* Which of the elements that stand together along a sum are read. */
typedef enum { WHOLE, LOW, HIGH } Part;

/* max(x, 0), NaN stays NaN. */
INLINE Lanes relu(Lanes x) { return (Lanes)((Mask)x & ~(x <= 0.0f)); }

#endif
