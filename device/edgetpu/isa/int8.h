/*
 * The inner loops of 8-bit products, compiled once per instruction set; all give the same bits.
 *
 * A product multiplies rows of x, as x + 128 in u8, with panels of 16 columns of the filter:
 * for each group of 4 consecutive elements of the sum a panel has 4 elements of each column, so
 * that one instruction of VNNI adds the group to 16 sums. The sums begin with biases that hold
 * what 128 and the zero point of x contribute.
 */
#ifndef CORNU_DEVICE_EDGETPU_ISA_INT8_H
#define CORNU_DEVICE_EDGETPU_ISA_INT8_H

#include <stddef.h>
#include <stdint.h>

#include "../../host/machine/isa.h"

enum { CORNU_INT8_GROUP = 4, CORNU_INT8_COLUMNS = 16, CORNU_INT8_PANEL = 64, CORNU_INT8_ROWS = 12 };

/* How sums become int8; arrays of one element a column. A multiplier's shift is in `left` or, the
 * other way, in `right` (fixed.h). */
typedef struct {
    const int32_t *bias, *mantissa, *left, *right;
    int32_t        zero, low, high;
} CornuInt8Finish;

/* Up to CORNU_INT8_ROWS rows, `x_stride` bytes apart and padded to whole groups, by `panels`
 * panels, 1 or 2; y has `columns`. */
typedef struct {
    const uint8_t  *x;
    ptrdiff_t       x_stride;
    int64_t         groups;
    const int8_t   *panel[2];
    int             rows, panels, columns;
    CornuInt8Finish finish;
    int8_t         *y;
    int32_t        *sums;       /* if not NULL, where these go instead, as they are */
    ptrdiff_t       y_stride;   /* elements, of y or sums */
} CornuInt8Tile;

typedef struct {
    void (*product)(const CornuInt8Tile *tile);
    /* sums[c] += filter[c] (x[c] - zero); |zero| at most 128 */
    void (*multiply_add)(int64_t count, const int8_t *x, int32_t zero, const int8_t *filter,
                         int32_t *sums);
    /* y[c] of sums[c], which already have the bias */
    void (*finish)(const CornuInt8Finish *finish, int64_t count, const int32_t *sums, int8_t *y);
    /* y = the larger of x and y */
    void (*maximum)(int64_t count, const int8_t *x, int8_t *y);
    /* y = x + 128 */
    void (*raise)(int64_t count, const int8_t *x, uint8_t *y);
} CornuInt8Loops;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuInt8Loops, cornu__int8_loops)
CORNU__VNNI_ISAS(CORNU__DECLARE, const CornuInt8Loops, cornu__int8_loops)

/* Those of the instruction set in use (cpu.h). */
const CornuInt8Loops *cornu__int8_loops(void);

#endif
