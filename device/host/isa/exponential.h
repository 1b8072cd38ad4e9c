/*
 * exp, sigmoid and tanh of registers of f32. Accurate to the units in the last place (ULP) said at
 * each, over all floats, as tests/device/host/machine/test_vector.c asserts; they pass NaN on.
 */
#ifndef CORNU_DEVICE_HOST_ISA_EXPONENTIAL_H
#define CORNU_DEVICE_HOST_ISA_EXPONENTIAL_H

#include "lanes.h"

INLINE Lanes absolute(Lanes x) { return (Lanes)((Bits)x & 0x7fffffffu); }

/* The size of x, which is not negative, with the sign of `sign`. */
INLINE Lanes signed_as(Lanes x, Lanes sign)
{
    return (Lanes)((Bits)x | ((Bits)sign & 0x80000000u));
}

/* x = n log 2 + r, |r| at most log(2) / 2, n whole: adding CORNU__WHOLE rounds to nearest. log 2 in
 * two parts, the first short enough that n times it is exact. Returns r. */
INLINE Lanes split_exp(Lanes x, Lanes *n)
{
    *n = x * 0x1.715476p0f + CORNU__WHOLE;
    const Lanes whole = *n - CORNU__WHOLE;
    return (x - whole * 0x1.62e400p-1f) - whole * 0x1.7f7d1cp-20f;
}

/* (exp(r) - 1 - r) / r^2 for |r| at most log(2) / 2; coefficients of Cephes' expf. */
INLINE Lanes exp_rest(Lanes r)
{
    Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    return p * r + 5.0000001201e-1f;
}

/* exp(r) - 1 for |r| at most log(2) / 2. */
INLINE Lanes expm1_near_zero(Lanes r) { return exp_rest(r) * (r * r) + r; }

/* 1.05 ULP. At -104 the result rounds to 0, at 89 it is infinite. */
INLINE Lanes exp_of(Lanes x)
{
    Lanes       n;
    const Lanes r = split_exp(min_of(all(89.0f), max_of(all(-104.0f), x)), &n);
    return scaled(expm1_near_zero(r) + 1.0f, n);
}

/* 2^more exp(x) = s + s q, of which a sum with another power is rounded once; s is normal. */
INLINE Lanes exp_parts(Lanes x, int more, Lanes *s)
{
    Lanes       n;
    const Lanes r = split_exp(x, &n);
    *s = power_of_two(n, more);
    return expm1_near_zero(r);
}

/* 1.01 ULP, for x between -87 and 88, where the result is normal. */
INLINE Lanes exp_between(Lanes x)
{
    Lanes       s;
    const Lanes q = exp_parts(x, 0, &s);
    return q * s + s;
}

/* 1.01 ULP, for x at most 88; 0 where the result is not normal: a subnormal one takes Intel's
 * processors a hundred cycles. */
INLINE Lanes exp_normal(Lanes x)
{
    const Lanes least = all(-87.0f);
#if defined(__AVX512F__)
    Lanes           n;
    const Lanes     r = split_exp(x, &n);
    const __mmask16 kept = _mm512_cmp_ps_mask((__m512)x, (__m512)least, _CMP_NLE_UQ);
    const Lanes     y = (exp_rest(r) * r + 1.0f) * r + 1.0f;
    return (Lanes)_mm512_maskz_scalef_ps(kept, (__m512)y, (__m512)(n - CORNU__WHOLE));
#else
    return (Lanes)((Bits)exp_between(max_of(least, x)) & ~(Bits)(x <= least));
#endif
}

/* 1 ULP; for x at most 0, where elu needs it. */
INLINE Lanes expm1_of_negative(Lanes x)
{
    Lanes       n;
    const Lanes r = split_exp(max_of(all(-30.0f), x), &n);
    const Lanes scale = scaled(all(1.0f), n);
    return expm1_near_zero(r) * scale + (scale - 1.0f);
}

/* 2.5 ULP: 1 / (1 + exp(-x)), both sides of the quotient times 2^-64, since exp(-x) overflows
 * before the result is 0. */
INLINE Lanes sigmoid_of(Lanes x)
{
    Lanes       s;
    const Lanes q = exp_parts(min_of(all(104.0f), max_of(all(-43.0f), -x)), -64, &s);
    return 0x1p-64f / (q * s + (s + 0x1p-64f));
}

/* 1.5 ULP. An odd polynomial near 0 (Cephes' tanhf), 1 - 2 / (exp(2|x|) + 1) elsewhere. */
INLINE Lanes tanh_of(Lanes x)
{
    const Lanes size = absolute(x), square = x * x;
    Lanes p = square * -5.70498872745e-3f + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    const Lanes near = p * square * size + size;
    const Lanes far = 1.0f - 2.0f / (exp_between(min_of(all(40.0f), size * 2.0f)) + 1.0f);
    return signed_as(choose(size < 0.625f, near, far), x);
}

/* The same in two thirds of the operations, for cells: 2.4 ULP. */
INLINE Lanes quick_tanh(Lanes x)
{
    Lanes       s;
    const Lanes q = exp_parts(2.0f * min_of(all(10.0f), absolute(x)), 0, &s);
    const Lanes e = q * s + (s - 1.0f);
    return signed_as(e / (e + 2.0f), x);
}

#endif
