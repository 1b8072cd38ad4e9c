/*
 * What the files of rows share; there is one for each family of ops. Expected numbers were worked
 * out by hand or, where they have many digits, by PyTorch in float64 and Python's math module,
 * which share no code with this project.
 */
#ifndef CORNU_TESTS_OP_CASES_ROWS_H
#define CORNU_TESTS_OP_CASES_ROWS_H

#include "../op_cases.h"

/* T(F32, 2, 3, 4): element type, rank, extents (a scalar's is 0). */
#define T(dtype, rank, ...) { CORNU_##dtype, { rank, { __VA_ARGS__ } } }
#define D(...) (const double[]){ __VA_ARGS__ }

/* The rows of a family. */
typedef struct {
    const char   *name;
    const OpCase *rows;
    int           count;
} OpCases;

/* All of them: a table that ../op_cases.c puts together. */
extern const OpCases op_cases_source, op_cases_collective, op_cases_elementwise, op_cases_compare,
    op_cases_shape, op_cases_reduce, op_cases_matmul, op_cases_conv2d,
    op_cases_pool, op_cases_batch_norm, op_cases_softmax, op_cases_gather,
    op_cases_scan, op_cases_recurrent, op_cases_random, op_cases_update,
    op_cases_custom, op_cases_attention;

/* Registers the ops of the family custom and fills its rows in, once. */
void op_cases_custom_make(void);

#endif
