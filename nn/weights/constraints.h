/*
 * Constraints on weights, applied to the whole weight after each optimizer update, with Keras'
 * names, arguments and formulas (keras/src/constraints/constraints.py).
 *
 *     cornu_dense(64, .kernel_constraint = cornu_max_norm(3))
 *     cornu_conv2d(32, 3, .kernel_constraint = cornu_unit_norm(.axis = { 0, 1, 2 }))
 *
 * A constraint is a plain value; all zero means none, which is also what constructors return, with
 * a pending error, when a number is out of range.
 */
#ifndef CORNU_NN_CONSTRAINTS_H
#define CORNU_NN_CONSTRAINTS_H

#include "../../tensor/ops.h"
#include "../config/keywords.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CORNU_NO_CONSTRAINT, CORNU_MAX_NORM, CORNU_NON_NEG, CORNU_UNIT_NORM, CORNU_MIN_MAX_NORM,
    CORNU_OWN_CONSTRAINT
} CornuConstraintKind;

/* axis: the axes of the norm. The list ends at the first 0 after its first entry; negative axes
 * count from the last. The default, { 0 }, suits Dense: the norm of each unit's weights. */
typedef struct CornuConstraint CornuConstraint;

struct CornuConstraint {
    unsigned kind;            /* a CornuConstraintKind */
    double   min_value, max_value, rate;
    int64_t  axis[CORNU_MAX_RANK];
    /* Of CORNU_OWN_CONSTRAINT: the weight that holds it, in the shape of w; `context` is the user's
     * and must live as long as the layer. */
    CornuTensor *(*call)(const CornuConstraint *self, CornuTensor *w);
    const void *context;
    const char *record;   /* JSON that files have of an own one, as Keras writes classes and
                             functions, which a resolver (own_objects.h) makes it of again; NULL: a
                             model with one can be neither saved nor cloned */
};

typedef struct {
    char    unset;
    double  max_value;        /* default 2, or CORNU_ZERO */
    int64_t axis[CORNU_MAX_RANK];
} CornuMaxNormConfig;

typedef struct {
    char unset;
} CornuNonNegConfig;

typedef struct {
    char    unset;
    int64_t axis[CORNU_MAX_RANK];
} CornuUnitNormConfig;

typedef struct {
    char    unset;
    double  min_value;        /* default 0 */
    double  max_value;        /* default 1, or CORNU_ZERO */
    double  rate;             /* 0 to 1; default 1, or CORNU_ZERO */
    int64_t axis[CORNU_MAX_RANK];
} CornuMinMaxNormConfig;

/* w min(norm, max_value) / (1e-7 + norm) */
CornuConstraint cornu_max_norm_from(const CornuMaxNormConfig *config);
#define cornu_max_norm(...) cornu_max_norm_from(&(CornuMaxNormConfig){ .unset = 0, __VA_ARGS__ })

/* max(w, 0) */
CornuConstraint cornu_non_neg_from(const CornuNonNegConfig *config);
#define cornu_non_neg(...) cornu_non_neg_from(&(CornuNonNegConfig){ .unset = 0, __VA_ARGS__ })

/* w / (1e-7 + norm) */
CornuConstraint cornu_unit_norm_from(const CornuUnitNormConfig *config);
#define cornu_unit_norm(...) cornu_unit_norm_from(&(CornuUnitNormConfig){ .unset = 0, __VA_ARGS__ })

/* w (rate clip(norm, min_value, max_value) + (1 - rate) norm) / (1e-7 + norm) */
CornuConstraint cornu_min_max_norm_from(const CornuMinMaxNormConfig *config);
#define cornu_min_max_norm(...) \
    cornu_min_max_norm_from(&(CornuMinMaxNormConfig){ .unset = 0, __VA_ARGS__ })

/* "max_norm", "non_neg", "unit_norm", "min_max_norm" with their defaults. */
CornuConstraint cornu_constraint(const char *name);

/* Records the constraint on w, of any float dtype; returns the constrained weight. */
CornuTensor *cornu_constraint_call(const CornuConstraint *constraint, CornuTensor *w);

#ifdef __cplusplus
}
#endif
#endif
