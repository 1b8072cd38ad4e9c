/* What becomes of sums in registers before they are stored: the end of an epilogue, and the largest
 * element of a window, as max_pool2d finds it. */
#ifndef CORNU_DEVICE_HOST_ISA_FINISH_H
#define CORNU_DEVICE_HOST_ISA_FINISH_H

#include "lanes.h"
#include "product.h"

/* y where y >= 0, else y slope. */
INLINE Lanes sloped(Lanes y, Lanes slope)
{
#if defined(__AVX512F__)
    const __mmask16 low = _mm512_cmp_ps_mask((__m512)y, _mm512_setzero_ps(), _CMP_NGE_UQ);
    return (Lanes)_mm512_mask_mul_ps((__m512)y, low, (__m512)y, (__m512)slope);
#else
    return choose(y >= 0.0f, y, y * slope);
#endif
}

/* `rows` registers, `step` apart in `sum`, of the same columns, from n on, of which the first
 * `count` exist; their terms are `stride` elements apart. */
INLINE void finish_rows(const CornuFinish *f, int64_t n, int64_t count, const float *term,
                        ptrdiff_t stride, int rows, int step, Lanes *sum)
{
    if (f->scale) {
        const Lanes scale = load_some(f->scale + n, count);
        UNROLL for (int m = 0; m < rows; m++) sum[m * step] = unfused(sum[m * step] * scale);
    }
    if (f->shift) {
        const Lanes shift = load_some(f->shift + n, count);
        UNROLL for (int m = 0; m < rows; m++) sum[m * step] += shift;
    }
    if (term)
        UNROLL for (int m = 0; m < rows; m++) sum[m * step] += load_some(term + m * stride, count);
    if (f->slope) {
        const Lanes slope = load_some(f->slope + n, count);
        UNROLL for (int m = 0; m < rows; m++) sum[m * step] = sloped(sum[m * step], slope);
    }
    if (f->bound > 0.0f) {   /* y where that is NaN */
        const Lanes bound = all(f->bound);
        UNROLL for (int m = 0; m < rows; m++) sum[m * step] = min_of(bound, sum[m * step]);
    }
    if (f->relu)
        UNROLL for (int m = 0; m < rows; m++) sum[m * step] = relu(sum[m * step]);
}

/* Adds a tap of a window: keeps the largest value, the first of equal ones, or the first NaN, and
 * the tap it is from. */
INLINE void window_take(Lanes value, int tap, Lanes *most, Mask *at)
{
    const Mask take = ~(value <= *most) & (*most == *most);
    *most = (Lanes)((take & (Mask)value) | (~take & (Mask)*most));
    *at = (take & tap) | (~take & *at);
}

#endif
