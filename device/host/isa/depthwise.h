/* Depthwise convolution of f32 with vectors over the channels, C of them everywhere. */
#ifndef CORNU_DEVICE_HOST_DEPTHWISE_H
#define CORNU_DEVICE_HOST_DEPTHWISE_H

#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"
#include "product.h"

/* Where the first output of a run meets x, and with which C elements of the filter. */
typedef struct {
    ptrdiff_t x, filter;
} CornuDepthwiseTap;

/* A run of outputs that meet the same taps: output j is C elements from y + j y_step on and reads
 * x + j x_step. Taps come in rows of row_taps, each x_step after the one before; 0: they do not. */
typedef struct {
    const CornuDepthwiseTap *taps;
    int64_t                  tap_count, row_taps, outputs, channels;
    ptrdiff_t                x_step, y_step;
} CornuDepthwiseRun;

/* What a run reads and makes; the term is laid out as y; NULL: no bias, no term. */
typedef struct {
    const float *x, *filter, *bias, *term;
    float       *y;
    CornuFinish  finish;
} CornuDepthwiseOperands;

typedef struct {
    /* y[j y_step + c] = bias[c] + sum over taps of x[j x_step + tap.x + c] filter[tap.filter + c],
     * finished */
    void (*convolve)(const CornuDepthwiseRun *run, const CornuDepthwiseOperands *o);
    /* sum[tap.filter + c] += sum over j of x[j x_step + tap.x + c] y[j y_step + c] */
    void (*grad_filter)(const CornuDepthwiseRun *run, const float *x, const float *y, float *sum);
} CornuDepthwises;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuDepthwises, cornu__depthwises)

/* Those of the instruction set in use (cpu.h). */
const CornuDepthwises *cornu__depthwises(void);

#endif
