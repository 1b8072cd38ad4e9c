/*
 * Every op at work: rows that tests/device/ops/test_ops.c makes its tests of. An op without a row
 * fails the run. Adding an op means adding rows to its family in op_cases/: one with numbers
 * checked by hand or by an independent program, one that is refused, one to differentiate.
 */
#ifndef CORNU_TESTS_OP_CASES_H
#define CORNU_TESTS_OP_CASES_H

#include "../device/ops/rules.h"

/* How operands without given numbers are made; the same ones each time. */
typedef enum {
    DRAW_ANY,       /* in (-2, 2)                                          */
    DRAW_POSITIVE,  /* in (0.5, 2.5)                                       */
    DRAW_APART,     /* in (-2, 2), no two near each other and none near 0  */
    DRAW_SMALL,     /* in (-0.25, 0.25): weights that a recurrence goes through again and again */
    DRAW_LABELS,    /* 0, 1, 2, 0, …                                       */
    DRAW_BOOL       /* 0 or 1                                              */
} OpDraw;

/* How near a device computing in the declared dtypes must come to the reference: the largest
 * difference, relative to the largest element. Integers and bools must always be equal. */
typedef enum {
    NEAR_ROUNDED,   /* a few operations per element       */
    NEAR_EXACT,     /* moving, comparing, choosing         */
    NEAR_SUMMED,    /* sums of many terms                  */
    NEAR_BF16,      /* a result of 8 significant bits      */
    NEAR_COMPOSED   /* a few ops, each of which rounds to the dtype of the row */
} OpNear;

typedef struct {
    CornuOpId       id;
    CornuAttributes attributes;
    int             in_count;                    /* only for ops with any number */
    CornuType       in[CORNU_MAX_INPUTS];
    const double   *given[CORNU_MAX_INPUTS];     /* NULL: drawn */
    OpDraw          draw[CORNU_MAX_INPUTS];
    const double   *out[CORNU_MAX_OUTPUTS];      /* what must come out, if known */
    OpNear          near;
    unsigned        differentiate;               /* bit i: by operand i */
    bool            by_reference;                /* nothing but reference kernels compute it */
    unsigned        no_weight;                   /* bit i: output i carries no gradient */
    CornuStatus     refused;                     /* recording must fail with this */
    const char     *fault;                       /* running must fail with this text in the
                                                    message and CORNU_ERR_VALUE */
} OpCase;

/* Row i of all families, NULL past the last. */
const OpCase *op_case(int i);

/* The row's family, a file of op_cases/, and its number there; NULL for one of no family. */
const char *op_case_place(const OpCase *row, int *number);

/* Gives a row of a registered op the body that fits the types of its operands. */
void op_case_compose(OpCase *row);

/* The operand's elements, cornu_type_count() of them. */
void op_case_fill(const OpCase *row, int operand, double *to);

int op_case_in_count(const OpCase *row);

#endif
