/*
 * Initial values of weights, by Keras' names and formulas.
 * Source: keras/src/initializers/random_initializers.py.
 *
 * The draw depends on the seed, the weight's generator number and the element alone
 * (device/random.h), so a model has the same initial weights on every device.
 */
#ifndef CORNU_NN_INITIALIZERS_H
#define CORNU_NN_INITIALIZERS_H

#include "../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* id, Keras' name */
#define CORNU_INITIALIZER_MAP(X)                   \
    X(DEFAULT_INITIALIZER, "default")              \
    X(GLOROT_UNIFORM,      "glorot_uniform")       \
    X(GLOROT_NORMAL,       "glorot_normal")        \
    X(HE_UNIFORM,          "he_uniform")           \
    X(HE_NORMAL,           "he_normal")            \
    X(LECUN_UNIFORM,       "lecun_uniform")        \
    X(LECUN_NORMAL,        "lecun_normal")         \
    X(RANDOM_UNIFORM,      "random_uniform")       \
    X(RANDOM_NORMAL,       "random_normal")        \
    X(TRUNCATED_NORMAL,    "truncated_normal")     \
    X(ORTHOGONAL,          "orthogonal")           \
    X(ZEROS,               "zeros")                \
    X(ONES,                "ones")

typedef enum {
#define X(id, name) CORNU_##id,
    CORNU_INITIALIZER_MAP(X)
#undef X
    CORNU_INITIALIZER_COUNT
} CornuInitializer;

/* NULL for a number that is no initializer. */
const char *cornu_initializer_name(CornuInitializer initializer);

/* Also knows Keras' second name "uniform". CORNU_ERR_ARGUMENT naming the nearest one. */
CornuStatus cornu_initializer_find(const char *name, CornuInitializer *initializer);

/* Fills `values` (cornu_shape_count elements). CORNU_ERR_SHAPE for orthogonal on rank below 2,
 * CORNU_ERR_ARGUMENT for the default, which only a layer knows. */
CornuStatus cornu_initialize(CornuInitializer initializer, CornuShape shape, uint64_t seed,
                             int64_t generator, float *values);

#ifdef __cplusplus
}
#endif
#endif
