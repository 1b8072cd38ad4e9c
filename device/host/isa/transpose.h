/* Matrices turned: columns become rows. */
#ifndef CORNU_DEVICE_HOST_TRANSPOSE_H
#define CORNU_DEVICE_HOST_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"

/* y[j y_row + i] = x[i x_row + j] for `rows` i and `columns` j: elements of two bytes, of four. x
 * and y do not overlap. */
typedef struct {
    void (*halves)(const uint16_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint16_t *y,
                   ptrdiff_t y_row);
    void (*words)(const uint32_t *x, ptrdiff_t x_row, int64_t rows, int64_t columns, uint32_t *y,
                  ptrdiff_t y_row);
} CornuTransposes;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuTransposes, cornu__transposes)

/* Those of the instruction set in use (cpu.h). */
const CornuTransposes *cornu__transposes(void);

#endif
