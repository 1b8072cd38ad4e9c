/*
 * Activations with Keras' names and formulas. Source: keras/src/activations/activations.py, without
 * threshold, which has no default arguments. gelu_approximate is gelu(x, approximate=True), for
 * which Keras has no name; keras_2_hard_sigmoid is the hard_sigmoid of Keras 2, source:
 * tensorflow/python/keras/backend.py of TensorFlow 1.
 */
#ifndef CORNU_NN_ACTIVATIONS_H
#define CORNU_NN_ACTIVATIONS_H

#include "../../tensor/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* id, Keras' name, formula */
#define CORNU_ACTIVATION_MAP(X)                                                  \
    X(DEFAULT_ACTIVATION, "default", "the layer's default")                        \
    X(LINEAR,       "linear",       "x")                                         \
    X(RELU,         "relu",         "max(x, 0)")                                 \
    X(RELU6,        "relu6",        "min(max(x, 0), 6)")                         \
    X(LEAKY_RELU,   "leaky_relu",   "x >= 0 ? x : 0.2 x")                        \
    X(ELU,          "elu",          "x > 0 ? x : exp(x) - 1")                    \
    X(SELU,         "selu",         "1.05070098 (x > 0 ? x : 1.67326324 (exp(x) - 1))") \
    X(GELU,         "gelu",         "x (1 + erf(x / sqrt(2))) / 2")              \
    X(SILU,         "silu",         "x sigmoid(x)")                              \
    X(SIGMOID,      "sigmoid",      "1 / (1 + exp(-x))")                         \
    X(HARD_SIGMOID, "hard_sigmoid", "min(max(x + 3, 0), 6) / 6")                 \
    X(KERAS_2_HARD_SIGMOID, "keras_2_hard_sigmoid", "min(max(0.2 x + 0.5, 0), 1)") \
    X(TANH,         "tanh",         "tanh(x)")                                   \
    X(SOFTMAX,      "softmax",      "exp(x) / sum of exp(x) over the last axis") \
    X(SOFTPLUS,     "softplus",     "log(1 + exp(x))")                           \
    X(SOFTSIGN,     "softsign",     "x / (1 + |x|)")                             \
    X(MISH,         "mish",         "x tanh(softplus(x))")                       \
    X(EXPONENTIAL,  "exponential",  "exp(x)")                                    \
    X(GELU_APPROXIMATE, "gelu_approximate",                                      \
      "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2")                       \
    X(HARD_SILU,    "hard_silu",    "x hard_sigmoid(x)")                         \
    X(HARD_TANH,    "hard_tanh",    "min(max(x, -1), 1)")                        \
    X(HARD_SHRINK,  "hard_shrink",  "|x| > 0.5 ? x : 0")                         \
    X(SOFT_SHRINK,  "soft_shrink",  "sign(x) max(|x| - 0.5, 0)")                 \
    X(TANH_SHRINK,  "tanh_shrink",  "x - tanh(x)")                               \
    X(CELU,         "celu",         "x > 0 ? x : exp(x) - 1")                    \
    X(LOG_SIGMOID,  "log_sigmoid",  "log(sigmoid(x))")                           \
    X(LOG_SOFTMAX,  "log_softmax",  "log(softmax(x))")                           \
    X(SPARSE_SIGMOID, "sparse_sigmoid", "min(max(x + 1, 0), 2) / 2")             \
    X(SPARSE_PLUS,  "sparse_plus",  "x <= -1 ? 0 : x >= 1 ? x : (x + 1)^2 / 4")  \
    X(SQUAREPLUS,   "squareplus",   "(x + sqrt(x^2 + 4)) / 2")                   \
    X(GLU,          "glu",          "a sigmoid(b), the halves of the last axis") \
    X(SPARSEMAX,    "sparsemax",    "max(x - t, 0), t by Keras' rule over the last axis")

typedef enum {
#define X(id, name, formula) CORNU_##id,
    CORNU_ACTIVATION_MAP(X)
#undef X
    CORNU_ACTIVATION_COUNT
} CornuActivation;

/* NULL for an unknown value. A layer as activation (cornu_activation_of) has the name of its
 * class. */
const char *cornu_activation_name(CornuActivation activation);

/* Also accepts Keras' aliases ("swish", "hard_swish"). CORNU_ERR_ARGUMENT suggests the nearest
 * name. */
CornuStatus cornu_activation_find(const char *name, CornuActivation *activation);

/* x is a float tensor; NULL on failure, as ops do. CORNU_ERR_ARGUMENT for the default, which only a
 * layer can resolve. */
CornuTensor *cornu_activation_apply(CornuActivation activation, CornuTensor *x);

#ifdef __cplusplus
}
#endif
#endif
