/*
 * Registers of floats in the compilers' own vector types, so that one source serves gcc and
 * clang and every instruction set: 16 lanes with AVX-512, 8 with AVX2, 4 otherwise.
 * CORNU_NEON is defined where kernels are compiled for NEON (isa.mk).
 */
#ifndef CORNU_DEVICE_HOST_ISA_LANES_H
#define CORNU_DEVICE_HOST_ISA_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(CORNU_NEON)
#include <arm_neon.h>
#endif

#include "per_isa.h"

/* LANES floats fill a register. The register file (32 with AVX-512 and NEON, else 16) holds a tile
 * of TILE_ROWS by TILE_VECTORS registers of sums, a row of operands and one broadcast value;
 * likewise one of WINDOWS of two by two rows. */
#if defined(__AVX512F__) || defined(CORNU_NEON)
#define CORNU__TALL_TILES 1
#else
#define CORNU__TALL_TILES 0
#endif

enum {
#if defined(__AVX512F__)
    LANES = 16,
#elif defined(__AVX2__)
    LANES = 8,
#else
    LANES = 4,
#endif
    TILE_ROWS = CORNU__TALL_TILES ? 14 : 6,
    TILE_VECTORS = 2, GATHER_ROWS = TILE_ROWS < 10 ? TILE_ROWS : 10, WINDOWS = TILE_ROWS / 4
};

typedef float   Lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t Mask __attribute__((vector_size(4 * LANES)));
typedef uint32_t Bits __attribute__((vector_size(4 * LANES)));
typedef float   Unaligned __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t UnalignedBits __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Before a loop whose count is known after inlining: it must be unrolled completely, or the sums
 * that it runs over would live in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* A product as it is in f32: without this the compiler may add to it before it is rounded. */
INLINE Lanes unfused(Lanes x)
{
#if defined(__AVX512F__)
    __asm__("" : "+v"(x));
#elif defined(__AVX2__)
    __asm__("" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#endif
    return x;
}

INLINE Lanes load(const float *from)       { return *(const Unaligned *)from; }
INLINE void  store(float *to, Lanes value) { *(Unaligned *)to = value; }

/* The end of a row may be fewer than a register holds, or none. */
#if defined(__AVX512F__)
INLINE __mmask16 first_lanes(int64_t count)
{
    return (__mmask16)(count >= LANES ? 0xffff : count > 0 ? (1 << count) - 1 : 0);
}

INLINE Lanes load_some(const float *from, int64_t count)
{
    return (Lanes)_mm512_maskz_loadu_ps(first_lanes(count), from);
}

INLINE void store_some(float *to, Lanes value, int64_t count)
{
    _mm512_mask_storeu_ps(to, first_lanes(count), (__m512)value);
}
#elif defined(__AVX2__)
INLINE __m256i first_lanes(int64_t count)
{
    const int32_t least = count < LANES ? (int32_t)count : LANES;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(least), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE Lanes load_some(const float *from, int64_t count)
{
    if (__builtin_constant_p(count >= LANES) && count >= LANES) return load(from);
    return (Lanes)_mm256_maskload_ps(from, first_lanes(count));
}

INLINE void store_some(float *to, Lanes value, int64_t count)
{
    if (__builtin_constant_p(count >= LANES) && count >= LANES) store(to, value);
    else _mm256_maskstore_ps(to, first_lanes(count), (__m256)value);
}
#else
INLINE Lanes load_some(const float *from, int64_t count)
{
    if (count >= LANES) return load(from);
    Lanes value = { 0 };
    if (count > 0) memcpy(&value, from, (size_t)count * sizeof(float));
    return value;
}

INLINE void store_some(float *to, Lanes value, int64_t count)
{
    if (count >= LANES) store(to, value);
    else if (count > 0) memcpy(to, &value, (size_t)count * sizeof(float));
}
#endif

/* Whether no bit is set. */
INLINE bool is_none(Bits x)
{
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) == 0;
#elif defined(__AVX2__)
    return _mm256_testz_si256((__m256i)x, (__m256i)x);
#else
    uint32_t any = 0;
    for (int i = 0; i < LANES; i++) any |= x[i];
    return any == 0;
#endif
}

/* Stores lanes that hold numbers below 2^16 or 2^8 as such. gcc 12 and clang 14 convert vectors of
 * their own types lane by lane. */
#if defined(__AVX512F__)
INLINE void store_halves(uint16_t *to, Bits lanes)
{
    _mm256_storeu_si256((void *)to, _mm512_cvtepi32_epi16((__m512i)lanes));
}

INLINE void store_bytes(uint8_t *to, Bits lanes)
{
    _mm_storeu_si128((void *)to, _mm512_cvtepi32_epi8((__m512i)lanes));
}
#elif defined(__AVX2__)
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
#elif defined(CORNU_NEON)
INLINE void store_halves(uint16_t *to, Bits lanes) { vst1_u16(to, vmovn_u32((uint32x4_t)lanes)); }

INLINE void store_bytes(uint8_t *to, Bits lanes)
{
    const uint16x4_t halves = vmovn_u32((uint32x4_t)lanes);
    const uint8x8_t  bytes = vmovn_u16(vcombine_u16(halves, halves));
    memcpy(to, &bytes, LANES);
}
#else
INLINE void store_halves(uint16_t *to, Bits lanes)
{
    for (int n = 0; n < LANES; n++) to[n] = (uint16_t)lanes[n];
}

INLINE void store_bytes(uint8_t *to, Bits lanes)
{
    for (int n = 0; n < LANES; n++) to[n] = (uint8_t)lanes[n];
}
#endif

/* Stores the first `count` of them. */
INLINE void store_bytes_some(uint8_t *to, Bits lanes, int count)
{
    uint8_t bytes[LANES];
    if (count >= LANES) {
        store_bytes(to, lanes);
    } else {
        store_bytes(bytes, lanes);
        for (int n = 0; n < count; n++) to[n] = bytes[n];
    }
}

/* The lanes as bf16 in their low halves, rounded as cornu_bf16_from_float does. */
INLINE Bits narrowed(Lanes value)
{
    const Bits x = (Bits)value, up = x + 0x7fffu + (x >> 16 & 1u);
#if defined(__AVX512F__)
    const __mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
    return (Bits)_mm512_mask_or_epi32((__m512i)up, nan, (__m512i)x,
                                      _mm512_set1_epi32(0x400000)) >> 16;
#else
    const Bits nan = (Bits)(value != value);
    return ((nan & (x | 0x400000u)) | (~nan & up)) >> 16;
#endif
}

/* All lanes as bf16. AVX-512's instruction takes subnormal numbers for zero, as the products that
 * come with it do; NEON's keeps them, though its products do not. */
#if defined(__AVX512F__)
INLINE __m256i all_narrow(Lanes value)
{
#if defined(__AVX512BF16__)
    return (__m256i)_mm512_cvtneps_pbh((__m512)value);
#else
    return _mm512_cvtepi32_epi16((__m512i)narrowed(value));
#endif
}

INLINE void store_all_narrow(uint16_t *to, Lanes value)
{
    _mm256_storeu_si256((void *)to, all_narrow(value));
}
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
INLINE void store_all_narrow(uint16_t *to, Lanes value)
{
    vst1_u16(to, vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)value)));
}
#else
INLINE void store_all_narrow(uint16_t *to, Lanes value) { store_halves(to, narrowed(value)); }
#endif

/* The numbers that store_all_narrow stores, as lanes. */
INLINE Lanes as_stored_narrow(Lanes value)
{
#if defined(__AVX512BF16__)
    return (Lanes)((Bits)_mm512_cvtepu16_epi32(all_narrow(value)) << 16);
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    return (Lanes)((Bits)vmovl_u16(vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)value))) << 16);
#else
    return (Lanes)(narrowed(value) << 16);
#endif
}

/* The first `count` lanes as bf16. */
INLINE void store_narrow(uint16_t *to, Lanes value, int64_t count)
{
#if defined(__AVX512F__)
    _mm256_mask_storeu_epi16(to, first_lanes(count), all_narrow(value));
#else
    uint16_t half[LANES];
    if (count >= LANES) {
        store_all_narrow(to, value);
        return;
    }
    store_all_narrow(half, value);
    for (int64_t n = 0; n < count; n++) to[n] = half[n];
#endif
}

/* As store and store_narrow of all lanes, but past the caches; `to` is aligned to the size written.
 * Other threads see it after store_fence. */
#if defined(__AVX512F__)
INLINE void stream(float *to, Lanes value) { _mm512_stream_ps(to, (__m512)value); }

INLINE void stream_narrow(uint16_t *to, Lanes value)
{
    _mm256_stream_si256((void *)to, all_narrow(value));
}

INLINE void store_fence(void) { _mm_sfence(); }
#elif defined(__AVX2__)
INLINE void stream(float *to, Lanes value) { _mm256_stream_ps(to, (__m256)value); }

INLINE void stream_narrow(uint16_t *to, Lanes value)
{
    _mm_stream_si128((void *)to, halves_of((__m256i)narrowed(value)));
}

INLINE void store_fence(void) { _mm_sfence(); }
#else
INLINE void stream(float *to, Lanes value) { store(to, value); }

INLINE void stream_narrow(uint16_t *to, Lanes value) { store_narrow(to, value, LANES); }

INLINE void store_fence(void) { }
#endif

/* bf16 as lanes. */
INLINE Lanes load_halves(const uint16_t *from)
{
#if defined(__AVX512F__)
    return (Lanes)((Bits)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from)) << 16);
#elif defined(__AVX2__)
    return (Lanes)((Bits)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from)) << 16);
#elif defined(CORNU_NEON)
    return (Lanes)((Bits)vmovl_u16(vld1_u16(from)) << 16);
#else
    Bits bits;
    for (int n = 0; n < LANES; n++) bits[n] = (uint32_t)from[n] << 16;
    return (Lanes)bits;
#endif
}

/* The first `count` bf16, zeros in the other lanes. */
INLINE Lanes load_narrow(const uint16_t *from, int64_t count)
{
    uint16_t half[LANES] = { 0 };
    if (count >= LANES) return load_halves(from);
    memcpy(half, from, (size_t)count * sizeof *half);
    return load_halves(half);
}

/* The bits of one number. */
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

/* The bits of a number as bf16, rounded as cornu_bf16_from_float does. */
INLINE uint16_t rounded(uint32_t x)
{
    const uint32_t up = x + 0x7fff + (x >> 16 & 1), nan = x | 0x400000;
    return (uint16_t)(((x & 0x7fffffff) > 0x7f800000 ? nan : up) >> 16);
}

INLINE Lanes all(float value) { return (Lanes){ 0 } + value; }

/* a > b ? a : b and a < b ? a : b, so b where either is NaN; a where the mask is negative, else b;
 * y 2^n for y that is normal and whole n in [-252, 254], rounded once; 2^(n + more), normal. n is
 * CORNU__WHOLE + n, which leaves it in the low bits. */
#define CORNU__WHOLE 0x1.8p23f
#if defined(__AVX512F__)
INLINE Lanes max_of(Lanes a, Lanes b) { return (Lanes)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE Lanes min_of(Lanes a, Lanes b) { return (Lanes)_mm512_min_ps((__m512)a, (__m512)b); }

INLINE Lanes choose(Mask mask, Lanes a, Lanes b)
{
    return (Lanes)_mm512_mask_mov_ps((__m512)b, _mm512_movepi32_mask((__m512i)mask), (__m512)a);
}

INLINE Lanes scaled(Lanes y, Lanes n)
{
    return (Lanes)_mm512_scalef_ps((__m512)y, (__m512)(n - CORNU__WHOLE));
}

INLINE Lanes power_of_two(Lanes n, int more)
{
    return scaled((Lanes)((Bits){ 0 } + (uint32_t)((127 + more) << 23)), n);
}
#else
#if defined(__AVX2__)
INLINE Lanes max_of(Lanes a, Lanes b) { return (Lanes)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE Lanes min_of(Lanes a, Lanes b) { return (Lanes)_mm256_min_ps((__m256)a, (__m256)b); }

INLINE Lanes choose(Mask mask, Lanes a, Lanes b)
{
    return (Lanes)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
}
#else
INLINE Lanes choose(Mask mask, Lanes a, Lanes b)
{
    mask = mask < 0;
    return (Lanes)((mask & (Mask)a) | (~mask & (Mask)b));
}

INLINE Lanes max_of(Lanes a, Lanes b) { return choose(a > b, a, b); }
INLINE Lanes min_of(Lanes a, Lanes b) { return choose(a < b, a, b); }
#endif

/* By two powers, neither of which overflows. */
INLINE Lanes scaled(Lanes y, Lanes n)
{
    const Mask whole = (Mask)n - (Mask)all(CORNU__WHOLE), half = whole >> 1;
    return y * (Lanes)((half + 127) << 23) * (Lanes)((whole - half + 127) << 23);
}

INLINE Lanes power_of_two(Lanes n, int more)
{
    return (Lanes)(((Bits)n + (uint32_t)(127 + more)) << 23);
}
#endif

/* The elements of a group along a sum that are read. */
typedef enum { WHOLE, LOW, HIGH } Part;

/* max(x, 0), NaN stays NaN. */
INLINE Lanes relu(Lanes x) { return (Lanes)((Mask)x & ~(x <= 0.0f)); }

#endif
