/* Rows of C channels: statistics and normalization per channel, softmax per row. */
#ifndef CORNU_DEVICE_HOST_NORMALIZE_H
#define CORNU_DEVICE_HOST_NORMALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "../machine/isa.h"

/* x, y and their gradients are f32, or bf16 if `narrow`; the rest is f32. Vectors that are applied
 * have `period` elements, a channel each: those of one row, or of several, one after the other, as
 * long loops take less time for an element. */
typedef struct {
    /* Means of the rows of x, and sums of their squared differences from these; two passes, the
     * second from the cache if the rows fit there. At least one row. */
    void (*statistics)(const void *x, bool narrow, int64_t rows, int64_t channels, float *mean,
                       float *squares);
    /* y = (x - mean) factor + offset, then min(max(y, 0), high) if `relu` */
    void (*apply)(const void *x, bool narrow, int64_t count, int64_t period, const float *mean,
                  const float *factor, const float *offset, bool relu, float high, void *y);
    /* Sums of d_y, and of d_y (x - mean) inverse. */
    void (*sums)(const void *x, const void *d_y, bool narrow, int64_t rows, int64_t channels,
                 const float *mean, const float *inverse, float *d_offset, float *d_scale);
    /* d_x = factor (d_y - a - (x - mean) b) */
    void (*apply_grad)(const void *x, const void *d_y, bool narrow, int64_t count, int64_t period,
                       const float *mean, const float *factor, const float *a, const float *b,
                       void *d_x);
    /* y = exp(x) / sum exp(x) of each row, or its logarithm; may be in place. All of a row NaN if x
     * contains one there or only -inf. The relative error of exp / sum, and the error of the
     * logarithm relative to 1 + |y|, are at most (max(x) - x + classes / 4 + 8) 2^-24. */
    void (*softmax)(const float *x, int64_t rows, int64_t classes, bool logarithm, float *y);
} CornuNormalizes;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuNormalizes, cornu__normalizes)

const CornuNormalizes *cornu__normalizes(void);

#endif
