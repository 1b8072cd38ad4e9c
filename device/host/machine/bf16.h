/*
 * Conversions between f32, bf16 and pairs of bf16, and gates of bf16. Rounding is to nearest even,
 * overflow to infinity; NaN stays NaN.
 */
#ifndef CORNU_DEVICE_HOST_BF16_H
#define CORNU_DEVICE_HOST_BF16_H

#include <stdint.h>

#include "isa.h"

typedef struct {
    void (*widen)(const uint16_t *x, int64_t count, float *y);
    void (*narrow)(const float *x, int64_t count, uint16_t *y);
    /* x = high + middle + low, which together carry 24 bits, each the rounded rest of those before;
     * finite is high. For an infinity or NaN only high is set, the others are zero. Henry, Tang and
     * Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
     * Computations", arXiv 1904.06376. */
    void (*split)(const float *x, int64_t count, uint16_t *high, uint16_t *finite,
                  uint16_t *middle, uint16_t *low);
    /* to[i] = the pair (a[i], b[i]); b NULL: zeros. */
    void (*pair)(const uint16_t *a, const uint16_t *b, int64_t count, uint32_t *to);
    /* y where 0 < gate < bound, a number of bf16; else zero of y's sign, NaN if y is not finite.
     * An infinite bound is none. */
    void (*gate)(const uint16_t *gate, float bound, int64_t count, uint16_t *y);
} CornuBf16;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuBf16, cornu__bf16)

/* Those of the instruction set in use (cpu.h). */
const CornuBf16 *cornu__bf16(void);

#endif
