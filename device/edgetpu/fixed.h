/*
 * The fixed-point arithmetic of 8-bit quantization, the same integers as the reference kernels of
 * LiteRT (TensorFlow Lite).
 *
 * A real factor becomes mantissa 2^(shift - 31). Multiplying by it rounds twice: the high half of
 * the doubled product to nearest, halves up, then the right shift to nearest, halves away from
 * zero. That is what LiteRT does unless it is built with TFLITE_SINGLE_ROUNDING, which its
 * packages are not.
 *
 * Sources: "LiteRT 8-bit quantization specification"; Jacob et al., "Quantization and Training of
 * Neural Networks for Efficient Integer-Arithmetic-Only Inference", arXiv 1712.05877, section 2.2;
 * LiteRT, tflite/kernels/internal/common.cc and quantization_util.cc; gemmlowp,
 * fixedpoint/fixedpoint.h.
 */
#ifndef CORNU_DEVICE_EDGETPU_FIXED_H
#define CORNU_DEVICE_EDGETPU_FIXED_H

#include <stdint.h>

typedef struct {
    int32_t mantissa;   /* in [2^30, 2^31), or 0           */
    int32_t shift;      /* to the left; at least -31       */
} CornuMultiplier;

/* The nearest multiplier. Factors below 2^-31 or so give 0, those beyond 2^31, NaN and infinity
 * the largest there is. */
CornuMultiplier cornu__multiplier(double factor);

/* round(a b / 2^31), halves up; the one product that overflows saturates. For negative products
 * gemmlowp adds 1 - 2^30 and truncates, which is the same. */
static inline int32_t cornu__fixed_product(int32_t a, int32_t b)
{
    const int64_t high = ((int64_t)a * b + (INT64_C(1) << 30)) >> 31;
    return high > INT32_MAX ? INT32_MAX : (int32_t)high;
}

/* round(x / 2^shift), halves away from zero; shift in [0, 31]. */
static inline int32_t cornu__fixed_shift_right(int32_t x, int shift)
{
    const int32_t mask = (int32_t)((UINT32_C(1) << shift) - 1), remainder = x & mask;
    /* cppcheck-suppress shiftTooManyBitsSigned ; gcc and clang shift signs in */
    return (x >> shift) + (remainder > (mask >> 1) + (x < 0));
}

/* x << shift, wrapping around. */
static inline int32_t cornu__fixed_shift_left(int32_t x, int shift)
{
    return (int32_t)((uint32_t)x << shift);
}

static inline int32_t cornu__fixed_scale(int32_t x, CornuMultiplier by)
{
    const int left = by.shift > 0 ? by.shift : 0, right = by.shift > 0 ? 0 : -by.shift;
    return cornu__fixed_shift_right(
        cornu__fixed_product(cornu__fixed_shift_left(x, left), by.mantissa), right);
}

static inline int32_t cornu__fixed_clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

#endif
