/* Runs programs in double, op by op through the reference kernels, keeping every value. */
#ifndef CORNU_TESTS_EVALUATE_H
#define CORNU_TESTS_EVALUATE_H

#include "../device/ops/rules.h"

typedef struct {
    CornuStatus status;   /* of the first op that failed; later ones did not run */
    int         count;
    double    **value;    /* by number of the value */
} Evaluation;

/* inputs: one array per input of the program. */
Evaluation evaluate(const CornuProgram *program, const double *const *inputs);
void       evaluation_free(Evaluation *evaluation);

/* Equal bits, or both NaN, or a difference of at most `near` times `scale`. */
bool is_near(double a, double b, double near, double scale);

#endif
