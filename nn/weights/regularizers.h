/*
 * Penalties on weights and outputs, added to the loss, with Keras' names, arguments and formulas
 * (keras/src/regularizers/regularizers.py).
 *
 *     cornu_dense(64, .kernel_regularizer = cornu_l2(1e-4), .activity_regularizer = cornu_l1())
 *
 * A regularizer is a plain value; all zero means none, which is also what constructors return, with
 * a pending error, for a number that is negative or not finite.
 */
#ifndef CORNU_NN_REGULARIZERS_H
#define CORNU_NN_REGULARIZERS_H

#include "../../tensor/ops.h"
#include "../config/keywords.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CORNU_NO_REGULARIZER, CORNU_L1, CORNU_L2, CORNU_L1_L2, CORNU_ORTHOGONAL_REGULARIZER,
    CORNU_OWN_REGULARIZER
} CornuRegularizerKind;

/* Whether the rows or the columns of a matrix shall be orthogonal to each other. */
typedef enum { CORNU_ROWS, CORNU_COLUMNS } CornuOrthogonalMode;

typedef struct CornuRegularizer CornuRegularizer;

struct CornuRegularizer {
    unsigned            kind;     /* a CornuRegularizerKind */
    double              l1, l2, factor;
    CornuOrthogonalMode mode;
    /* Of CORNU_OWN_REGULARIZER: the penalty, a scalar, for a weight or an output; `context` is the
     * user's and must live as long as the layer. */
    CornuTensor *(*call)(const CornuRegularizer *self, CornuTensor *x);
    const void          *context;
    const char *record;   /* JSON that files have of an own one, as Keras writes classes and
                             functions, which a resolver (own_objects.h) makes it of again; NULL: a
                             model with one can be neither saved nor cloned */
};

typedef struct {
    char   unset;
    double l1;                    /* default 0.01, or CORNU_ZERO */
} CornuL1Config;

typedef struct {
    char   unset;
    double l2;                    /* default 0.01, or CORNU_ZERO */
} CornuL2Config;

typedef struct {
    char   unset;
    double l1, l2;                /* default 0 */
} CornuL1L2Config;

typedef struct {
    char                unset;
    double              factor;   /* default 0.01, or CORNU_ZERO */
    CornuOrthogonalMode mode;
} CornuOrthogonalRegularizerConfig;

/* l1 sum |x|; its derivative at 0 is 0, as in Keras on TensorFlow and PyTorch (on JAX l1) */
CornuRegularizer cornu_l1_from(const CornuL1Config *config);
#define cornu_l1(...) cornu_l1_from(&(CornuL1Config){ .unset = 0, __VA_ARGS__ })

/* l2 sum x^2 */
CornuRegularizer cornu_l2_from(const CornuL2Config *config);
#define cornu_l2(...) cornu_l2_from(&(CornuL2Config){ .unset = 0, __VA_ARGS__ })

/* l1 sum |x| + l2 sum x^2 */
CornuRegularizer cornu_l1_l2_from(const CornuL1L2Config *config);
#define cornu_l1_l2(...) cornu_l1_l2_from(&(CornuL1L2Config){ .unset = 0, __VA_ARGS__ })

/* factor times the mean absolute cosine over all pairs of rows, or of columns. For matrices only;
 * not as an activity_regularizer, where it would compare the rows of a batch. */
CornuRegularizer cornu_orthogonal_regularizer_from(const CornuOrthogonalRegularizerConfig *config);
#define cornu_orthogonal_regularizer(...) \
    cornu_orthogonal_regularizer_from(    \
        &(CornuOrthogonalRegularizerConfig){ .unset = 0, __VA_ARGS__ })

/* By name, with default arguments: "l1", "l2", "l1l2", "orthogonal_regularizer". */
CornuRegularizer cornu_regularizer(const char *name);

/* The penalty on x, in x's dtype: a scalar. */
CornuTensor *cornu_regularizer_call(const CornuRegularizer *regularizer, CornuTensor *x);

#ifdef __cplusplus
}
#endif
#endif
