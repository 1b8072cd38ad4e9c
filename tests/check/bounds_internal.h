/* The bounds of one op (bounds_ops.c), for programs (bounds.c). */
#ifndef CORNU_TESTS_CHECK_BOUNDS_INTERNAL_H
#define CORNU_TESTS_CHECK_BOUNDS_INTERNAL_H

#include <math.h>

#include "../../device/program_internal.h"
#include "bounds.h"

enum { MOST_OPERANDS = 64 };

/* One op on one shard. */
typedef struct {
    CornuOpCall      call;
    const double   **in, **in_bound;
    const CornuType *out_type;
    double         **out, **bound;
    double           pending;   /* terms of the sums among the operands */
    double           terms;     /* of the result */
} BoundsStep;

/* Computes the op on a shard, in double, and the bounds of its results. */
CornuStatus bounds_of_op(BoundsStep *step, int shard);

/* The dtype in which sums of this dtype are taken. */
static inline double sum_roundoff(CornuDtype dtype)
{
    return cornu_dtype_is_float(dtype) ? unit_roundoff(dtype == CORNU_F64 ? CORNU_F64 : CORNU_F32)
                                       : 0.0;
}

/* Not a number, or without a finite bound. */
static inline double at_least(double bound) { return isnan(bound) ? INFINITY : bound; }

static inline double magnitude(double x, double bound) { return fabs(x) + bound; }

#endif
