/*
 * Whether the rows of a batch are independent in a program: whether row i of each result depends on
 * row i of the inputs alone, so that a batch may be cut into others.
 *
 * It follows from the ops. Elements are numbered in row-major order; where a value has rows,
 * element l is of row l / stride % rows, with a stride that the analysis carries from value to
 * value, which reshaping leaves as it is. An op says along which axes it reads each operand
 * (axes.h); where it reads along the rows, it mixes them. An op that says nothing mixes them, too.
 */
#ifndef CORNU_DEVICE_ROWS_H
#define CORNU_DEVICE_ROWS_H

#include "../program_internal.h"

typedef struct {
    bool                  independent;
    const CornuProgramOp *mixed_by;   /* the first op that mixes rows; NULL: none, but a result has
                                         its rows elsewhere than along axis 0 */
} CornuRowsFound;

/* `of_rows`: for each input of the program whether its axis 0 has the rows, of which there are at
 * least 2; of a scalar whether it is the place of row 0 in the batch, by which random numbers are a
 * row's own. Results are values of the program. A prime number of rows, unlike any extent, tells
 * most: with another what is true of that number alone may seem to be true of all. */
CornuStatus cornu__rows_find(const CornuProgram *program, int64_t rows, const bool *of_rows,
                             const CornuValue *results, int count, CornuRowsFound *found);

/* Of the same program for two numbers of rows, the first op of `program` that computes with another
 * number than in `other`, as where a graph divides by the number of its rows: results depend on it,
 * although rows are independent. NULL: none. */
const CornuProgramOp *cornu__rows_counted(const CornuProgram *program, const CornuProgram *other);

#endif
