/*
 * Lists of numbers as arguments, such as the means of a Normalization:
 *
 *     cornu_normalization(.means = cornu_numbers(0.5, 0.4), .variances = cornu_numbers(1, 2))
 *     cornu_rescaling(.scales = { values, { 2, { 3, 4 } } })
 *
 * Constructors copy them.
 */
#ifndef CORNU_NN_NUMBERS_H
#define CORNU_NN_NUMBERS_H

#include "../../device/type.h"

/* An array in row-major order; values NULL: none is given. */
typedef struct {
    const double *values;
    CornuShape    shape;
} CornuNumbers;

/* cornu_numbers(1, 2.5, 3): a list; the array lives as long as the block that it is in. */
#define cornu_numbers(...)                                                   \
    ((CornuNumbers){ (const double[]){ __VA_ARGS__ },                        \
                     { 1, { (int64_t)(sizeof((const double[]){ __VA_ARGS__ }) / \
                                      sizeof(double)) } } })

#endif
