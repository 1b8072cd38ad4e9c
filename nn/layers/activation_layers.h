/* Activation layers with arguments or weights. The others: cornu_activation (layers.h). */
#ifndef CORNU_NN_LAYERS_ACTIVATION_H
#define CORNU_NN_LAYERS_ACTIVATION_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = max_value for x >= max_value, x for threshold <= x < max_value, else
 * negative_slope (x - threshold). Source: keras/src/layers/activations/relu.py. */
typedef struct {
    char        unset;
    double      max_value;                /* default none; CORNU_ZERO for 0. All three are */
    double      negative_slope;           /* at least 0                                    */
    double      threshold;
    const char *name;
    const char *dtype;
} CornuReluConfig;

CornuLayer *cornu_relu_from(const CornuReluConfig *config);
#define cornu_relu(...) cornu_relu_from(&(CornuReluConfig){ .unset = 0, __VA_ARGS__ })

/* y = x >= 0 ? x : negative_slope x. Source: keras/src/layers/activations/leaky_relu.py. */
typedef struct {
    char        unset;
    double      negative_slope;           /* at least 0; default 0.3, or CORNU_ZERO */
    const char *name;
    const char *dtype;
} CornuLeakyReluConfig;

CornuLayer *cornu_leaky_relu_from(const CornuLeakyReluConfig *config);
#define cornu_leaky_relu(...) \
    cornu_leaky_relu_from(&(CornuLeakyReluConfig){ .unset = 0, __VA_ARGS__ })

/* y = max(x, 0) - alpha max(-x, 0): alpha has the axes of a row, with an extent of 1 along the
 * shared ones. As in Keras, -1 is the last but one of these axes.
 * Source: keras/src/layers/activations/prelu.py; He et al., arXiv 1502.01852. */
typedef struct {
    char             unset;
    CornuInitializer alpha_initializer;   /* default zeros */
    CornuRegularizer alpha_regularizer;
    CornuConstraint  alpha_constraint;
    int64_t          shared_axes[CORNU_MAX_RANK];   /* ends at the first 0 */
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuPreluConfig;

CornuLayer *cornu_prelu_from(const CornuPreluConfig *config);
#define cornu_prelu(...) cornu_prelu_from(&(CornuPreluConfig){ .unset = 0, __VA_ARGS__ })

/* y = x > 0 ? x : alpha (exp(x) - 1). Source: keras/src/layers/activations/elu.py. */
typedef struct {
    char        unset;
    double      alpha;                    /* default 1, or CORNU_ZERO */
    const char *name;
    const char *dtype;
} CornuEluConfig;

CornuLayer *cornu_elu_from(const CornuEluConfig *config);
#define cornu_elu(...) cornu_elu_from(&(CornuEluConfig){ .unset = 0, __VA_ARGS__ })

/* y = exp(x) / sum of exp(x) over axes of the input after the batch. Steps that are masked in an
 * input (B, T) give 0.
 * Source: keras/src/layers/activations/softmax.py. */
typedef struct {
    char        unset;
    int64_t     axis;                     /* default -1 */
    int64_t     axes[CORNU_MAX_RANK];     /* in its place; ends at the first 0 */
    const char *name;
    const char *dtype;
} CornuSoftmaxConfig;

CornuLayer *cornu_softmax_from(const CornuSoftmaxConfig *config);
#define cornu_softmax(...) cornu_softmax_from(&(CornuSoftmaxConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
