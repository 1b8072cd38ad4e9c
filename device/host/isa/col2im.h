/* Sums of the results of a product by position and tap (col2im), in the order of the outputs. */
#ifndef CORNU_DEVICE_HOST_COL2IM_H
#define CORNU_DEVICE_HOST_COL2IM_H

#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"

/*
 * y[j y_step + c] = sum over t of x[taps[t] + j x_step + c], in the order of the taps; 0 of none
 *
 * j runs over the outputs, c over the channels. Up to CORNU_COL2IM_BEYOND elements after those
 * of x are read, whatever they are.
 */
typedef struct {
    const float     *x;
    float           *y;
    const ptrdiff_t *taps;
    int64_t          tap_count, outputs, channels;
    ptrdiff_t        x_step, y_step;
} CornuTaps;

enum { CORNU_COL2IM_QUAD = 4, CORNU_COL2IM_BEYOND = CORNU_COL2IM_QUAD - 1 };

typedef void CornuCol2im(const CornuTaps *taps);

CORNU__F32_ISAS(CORNU__DECLARE, CornuCol2im, cornu__col2im)

/* That of the instruction set in use (cpu.h). */
CornuCol2im *cornu__col2im(void);

#endif
