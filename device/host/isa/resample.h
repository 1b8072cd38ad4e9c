/* Sums of few rows that lie next to each other, weighted: interpolations. */
#ifndef CORNU_DEVICE_HOST_RESAMPLE_H
#define CORNU_DEVICE_HOST_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"

/* Where the first element of a row of a matrix is that is not zero, and how many there are up to
 * the last one. */
typedef struct {
    int32_t first, count;
} CornuBand;

/*
 * y[t y_row + i] = sum over k of weights[t columns + k] x[k x_row + i]
 *
 * k runs over the band of row t, in order; t below `rows`, i below `width`. Rows of x before those
 * that the bands meet need not exist.
 */
typedef struct {
    const float     *weights;
    const CornuBand *bands;
    int64_t          rows, columns, width;
    const float     *x;
    ptrdiff_t        x_row;
    float           *y;
    ptrdiff_t        y_row;
} CornuResample;

typedef struct {
    void (*bands)(const float *weights, int64_t rows, int64_t columns, CornuBand *bands);
    void (*rows)(const CornuResample *r);
} CornuResamples;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuResamples, cornu__resamples)

/* Those of the instruction set in use (cpu.h). */
const CornuResamples *cornu__resamples(void);

#endif
