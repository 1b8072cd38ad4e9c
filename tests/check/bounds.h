/*
 * What a program computes, in double, and how far from it a device may be that computes in the
 * declared dtypes: one bound for each element of each value.
 *
 * The bounds are those of a running error analysis (Higham, "Accuracy and Stability of Numerical
 * Algorithms", 2nd edition, section 3.3), op by op from the bounds of the operands:
 *
 *     moving     the bounds move with the elements
 *     sums       the sum of the bounds, and n u times the sum of the magnitudes, for n terms in
 *                any order
 *     products   |a| e_b + e_a |b| + e_a e_b summed as the products are, and n u sum |a| |b|
 *     functions  the largest change of the result where the operands move by their bounds, and
 *                what the function itself may be wrong by (device/host/machine/vector.h)
 *     others     as the ops that they decompose into
 *
 * A sum may begin with what the program adds to it afterwards, as a product begins with its bias:
 * so what is added to a sum of n terms is rounded n times more. On tpu a product of f32 is six of
 * bf16, and so has six times the terms.
 *
 * with u half a unit in the last place of the dtype. Where a comparison, a step or a largest
 * element may differ within the bounds, the bound covers both results; where nothing is known, it
 * is infinite. So an ill-conditioned program has large bounds, and no tolerance is chosen anywhere.
 *
 * A value that varies has one part for each shard, one after the other.
 */
#ifndef CORNU_TESTS_CHECK_BOUNDS_H
#define CORNU_TESTS_CHECK_BOUNDS_H

#include "../../device/ops/rules.h"

typedef struct {
    int     shards;
    int     count;     /* values */
    double **value;    /* by number of the value */
    double **bound;
    bool   *varies;
    double *terms;     /* of a sum that a device may still be taking: see below */
} Bounds;

/* Whether a pool may choose any of several equal maxima, as after tensor/rewrite.c; else it is the
 * first. */
extern bool bounds_any_maximum;

/* Whether roots are only taken of values that are not negative but for rounding, as in models,
 * where they are sums of squares; else the bound is infinite where the operand may be negative. */
extern bool bounds_roots_of_squares;

/* Elements of value v of the program, of all shards. */
int64_t bounds_count(const Bounds *bounds, const CornuProgram *program, CornuValue v);

/* Evaluates a program. input[i] are the elements of input i, input_bound[i] their bounds; NULL for
 * exact inputs. The status of the first op that fails, whose message says why. */
CornuStatus bounds_of(Bounds *bounds, const CornuProgram *program, int shards,
                      double *const *input, double *const *input_bound);

/* Continues with the ops recorded since; `input` as above, for the new inputs only. */
CornuStatus bounds_extend(Bounds *bounds, const CornuProgram *program, double *const *input,
                          double *const *input_bound);

/* Forgets all values from number `count` on. */
void bounds_cut(Bounds *bounds, int count);
void bounds_free(Bounds *bounds);

/* Half a unit in the last place of 1; 0 for integers and bools. */
double unit_roundoff(CornuDtype dtype);
/* x as an element of this dtype. */
double rounded(double x, CornuDtype dtype);

#endif
