/*
 * exp, sigmoid and tanh of f32, to be inlined into vector loops. Accurate to the units in the last
 * place (ULP) said at each, over all floats, as tests/device/test_vector.c asserts; they pass NaN
 * on.
 */
#ifndef CORNU_DEVICE_HOST_ISA_EXPONENTIAL_H
#define CORNU_DEVICE_HOST_ISA_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for n in [-126, 127] */
static inline float power_of_two(int32_t n) { return float_of((uint32_t)(n + 127) << 23); }

/* x between low and high, NaN unchanged */
static inline float clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* x = n log 2 + r, |r| at most log(2) / 2, n an integer: adding 1.5 * 2^23 rounds to
 * nearest and leaves n in the low bits. log 2 in two parts, the first short enough that n
 * times it is exact. */
static inline float split_exp(float x, int32_t *n)
{
    const float magic = 0x1.8p23f;
    float       shifted = x * 0x1.715476p0f + magic;
    float       whole = shifted - magic;
    *n = (int32_t)(bits_of(shifted) - bits_of(magic));
    return (x - whole * 0x1.62e400p-1f) - whole * 0x1.7f7d1cp-20f;
}

/* exp(r) - 1 for |r| at most log(2) / 2; coefficients of Cephes' expf. */
static inline float expm1_near_zero(float r)
{
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * (r * r) + r;
}

/* 1.05 ULP. Below -104 the result rounds to 0, above 88.8 to infinity. The power of two is
 * applied in two halves: neither overflows, and denormal results round once. */
static inline float exp_of(float x)
{
    int32_t n;
    float   r = split_exp(clamp(x, -104.0f, 89.0f), &n);
    float   y = expm1_near_zero(r) + 1.0f;
    int32_t half = n >> 1;
    return y * power_of_two(half) * power_of_two(n - half);
}

/* 1 ULP; for x at most 0, where elu needs it. */
static inline float expm1_of_negative(float x)
{
    int32_t n;
    float   r = split_exp(clamp(x, -30.0f, 0.0f), &n);
    float   scale = power_of_two(n);
    return expm1_near_zero(r) * scale + (scale - 1.0f);
}

/* 2.5 ULP. From the side on which exp does not overflow. */
static inline float sigmoid_of(float x)
{
    float e = exp_of(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* 1.5 ULP. An odd polynomial near 0 (Cephes' tanhf), 1 - 2 / (exp(2|x|) + 1) further out.
 * */
static inline float tanh_of(float x)
{
    float size = fabsf(x), square = x * x;
    float p = -5.70498872745e-3f;
    p = p * square + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    float near = p * square * size + size;
    float far = 1.0f - 2.0f / (exp_of(2.0f * size) + 1.0f);
    return copysignf(size < 0.625f ? near : far, x);
}

#endif
