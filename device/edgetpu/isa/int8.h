/*
 * The inner loops of 8-bit products, compiled once per instruction set; all give the same bits.
 *
 * A product multiplies rows of x, as x + 128 from 0 to 255, by panels of 16 columns of the filter.
 * Elements have one byte with VNNI, which multiplies u8 by i8, and else two, as other instructions
 * multiply and add pairs of 16 bits exactly. For each 4 bytes of a row, a group, a panel has as
 * many elements of each column, so that one instruction adds the group to all sums of a register.
 * The sums begin with biases that hold what 128 and the zero point of x contribute.
 *
 * What is under a window is read where it lies: in segments, one for each row of the window, or for
 * each pixel of it where they are apart. Segments are multiplied in whole groups; what they read
 * past their end meets zeros of the filter.
 */
#ifndef CORNU_DEVICE_EDGETPU_ISA_INT8_H
#define CORNU_DEVICE_EDGETPU_ISA_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../host/machine/isa.h"

/* Bytes of a group, and of it in a panel. */
enum { CORNU_INT8_GROUP = 4, CORNU_INT8_COLUMNS = 16, CORNU_INT8_PANEL = 64, CORNU_INT8_ROWS = 12 };

/* How sums become int8; arrays of one element a column. A multiplier's shift is in `left` or, the
 * other way, in `right` (fixed.h). */
typedef struct {
    const int32_t *bias, *mantissa, *left, *right;
    int32_t        zero, low, high;
    bool           bounded;     /* no sum is so large that rounding could overflow: is_bounded */
    bool           uniform;     /* one multiplier for all */
    const double  *factors;     /* if not NULL: sums times these, rounded to nearest, halves away
                                   from zero */
} CornuInt8Finish;

/* Whether sums of at most `most` in magnitude stay within 32 bits on their way to int8. */
bool cornu__int8_is_bounded(int64_t most, int32_t left, int32_t right, int32_t zero);

/* Up to CORNU_INT8_ROWS rows by `panels` panels, 1 or 2; y has `columns`, one of the last panel
 * at least. Of a pooled tile, whose sums are bounded, y has a row for each four: the largest of a
 * pair in the first half of the rows and one in the second. */
typedef struct {
    const uint8_t   *x;                       /* of row 0 */
    ptrdiff_t        x_stride, half_stride;   /* bytes from row to row; from half to half */
    const ptrdiff_t *offsets;                 /* of each segment, from a row's x */
    int64_t          segments, groups;        /* groups of one segment */
    const uint8_t   *panel[2];
    int              rows, panels, columns;
    bool             pooled;
    CornuInt8Finish  finish;
    int8_t          *y;
    ptrdiff_t        y_stride;
    /* Not NULL, in a tile that is not pooled: the sums themselves, in place of y, y_stride apart,
     * less the product of the column's zero and the row's total unless `totals` is NULL. */
    int32_t         *sums;
    const int32_t   *zeros, *totals;
} CornuInt8Tile;

/* Outputs of a depthwise convolution next to each other, of up to CORNU_INT8_BLOCK channels. The
 * filter and the offsets are filled up to whole fours of taps; the filter with zeros. Where an
 * element of the filter is, and where a channel is in the arrays of `finish`, the functions below
 * say. */
enum { CORNU_INT8_TAPS = 4, CORNU_INT8_BLOCK = 64 };
typedef struct {
    const uint8_t   *x;          /* of output 0 */
    ptrdiff_t        x_stride;   /* bytes from one output to the next */
    const ptrdiff_t *offsets;    /* of taps */
    int64_t          taps;
    const uint8_t   *filter;     /* of each four CORNU_INT8_TAPS * CORNU_INT8_BLOCK elements */
    int64_t          outputs;
    int              channels;
    CornuInt8Finish  finish;
    int8_t          *y;
    ptrdiff_t        y_stride;
} CornuInt8Depthwise;

/* An operand of a sum in units of 2^-20: d 2^20, d = x - zero, by a multiplier of at most 1/2. Of
 * its mantissa, high 2^11 + low, the high half of the doubled product is exactly
 * d high + (d low + 2^10 >> 11). */
typedef struct {
    int32_t zero, high, low, right, sign;   /* -1 for what is subtracted */
} CornuInt8Term;

typedef struct {
    int  width;         /* bytes of an element, 1 or 2 */
    bool interleaved;   /* the order of depthwise */
    void (*product)(const CornuInt8Tile *tile);
    void (*depthwise)(const CornuInt8Depthwise *tile);
    /* y[i] of the terms of x1[i] and x2[i], added; `finish` has CORNU_INT8_BLOCK equal elements */
    void (*add)(const CornuInt8Term terms[2], const CornuInt8Finish *finish, int64_t count,
                const int8_t *x1, const int8_t *x2, int8_t *y);
    /* sums[i] = (x1[i] - zero1) (x2[i] - zero2) */
    void (*multiply)(int32_t zero1, int32_t zero2, int64_t count, const int8_t *x1,
                     const int8_t *x2, int32_t *sums);
    /* y[c] of sums[c], which already have the bias */
    void (*finish)(const CornuInt8Finish *finish, int64_t count, const int32_t *sums, int8_t *y);
    /* sums[c] += x[c] */
    void (*accumulate)(int64_t count, const int8_t *x, int32_t *sums);
    /* y = the larger of x and y */
    void (*maximum)(int64_t count, const int8_t *x, int8_t *y);
    /* y = x + 128, of the width */
    void (*raise)(int64_t count, const int8_t *x, void *y);
    /* the sum of x */
    int32_t (*total)(int64_t count, const uint8_t *x);
} CornuInt8Loops;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuInt8Loops, cornu__int8_loops)
CORNU__VNNI_ISAS(CORNU__DECLARE, const CornuInt8Loops, cornu__int8_loops)

/* Those of the instruction set in use (cpu.h). */
const CornuInt8Loops *cornu__int8_loops(void);

/* Writes element i of an array of the width; reads nothing else of it. */
static inline void cornu__int8_put(int width, void *to, int64_t i, int32_t element)
{
    if (width == 1) ((uint8_t *)to)[i] = (uint8_t)element;
    else            ((int16_t *)to)[i] = (int16_t)element;
}

/* Interleaving four rows of bytes within each 16 bytes of a register gives four registers, of every
 * fourth four channels each. */
static inline int cornu__int8_channel_at(bool interleaved, int channel)
{
    return interleaved ? channel % 16 / 4 * 16 + channel / 16 * 4 + channel % 4 : channel;
}

/* Of the last block, the channels that an output has a register's part for; the filter and the
 * arrays have them again for the other parts. */
static inline int cornu__int8_span(bool interleaved, int64_t channels)
{
    return !interleaved || channels > 32 ? CORNU_INT8_BLOCK : channels > 16 ? 32 : 16;
}

static inline int cornu__int8_tap_at(bool interleaved, int tap, int channel)
{
    return interleaved ? cornu__int8_channel_at(true, channel) * CORNU_INT8_TAPS + tap
                       : tap * CORNU_INT8_BLOCK + channel;
}

#endif
