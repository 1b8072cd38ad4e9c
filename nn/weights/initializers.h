/*
 * Initial values of weights, by Keras' names, arguments and formulas
 * (keras/src/initializers/random_initializers.py, constant_initializers.py).
 *
 *     cornu_dense(64, .kernel_initializer = CORNU_HE_NORMAL)
 *     cornu_dense(64, .kernel_initializer = cornu_random_normal(.stddev = 0.02, .seed = 3))
 *     cornu_dense(64, .kernel_initializer = { .call = mine })
 *
 * An initializer is a plain value; all zero means the layer's default, which is also what
 * constructors return, with a pending error, for invalid arguments.
 *
 * A draw depends only on a seed, a generator number and the element's index (device/random.h): a
 * model has the same initial weights on every device. Normally the seed is the model's and the
 * number the weight's; an initializer with its own .seed uses that and the number 0, which no
 * weight has: it draws the same values wherever it is used, as in Keras. The values differ from
 * Keras', the distribution does not.
 */
#ifndef CORNU_NN_INITIALIZERS_H
#define CORNU_NN_INITIALIZERS_H

#include "../../device/type.h"
#include "../config/keywords.h"
#include "../config/numbers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CORNU_DEFAULT_INITIALIZER,
    CORNU_ZEROS_INITIALIZER, CORNU_ONES_INITIALIZER, CORNU_CONSTANT_INITIALIZER,
    CORNU_IDENTITY_INITIALIZER, CORNU_ORTHOGONAL_INITIALIZER, CORNU_RANDOM_UNIFORM_INITIALIZER,
    CORNU_RANDOM_NORMAL_INITIALIZER, CORNU_TRUNCATED_NORMAL_INITIALIZER,
    CORNU_VARIANCE_SCALING_INITIALIZER,
    CORNU_GLOROT_UNIFORM_INITIALIZER, CORNU_GLOROT_NORMAL_INITIALIZER,
    CORNU_HE_UNIFORM_INITIALIZER, CORNU_HE_NORMAL_INITIALIZER,
    CORNU_LECUN_UNIFORM_INITIALIZER, CORNU_LECUN_NORMAL_INITIALIZER
} CornuInitializerKind;

/* The fan that a variance is divided by. The fans of a weight (I, O) are I and O; of a convolution
 * kernel (…, I, O) these times the leading extents; of (N,) both are N. */
typedef enum { CORNU_FAN_IN, CORNU_FAN_OUT, CORNU_FAN_AVG } CornuFanMode;

typedef enum {
    CORNU_DISTRIBUTION_TRUNCATED_NORMAL, CORNU_DISTRIBUTION_UNTRUNCATED_NORMAL,
    CORNU_DISTRIBUTION_UNIFORM,
    CORNU_DISTRIBUTION_NORMAL            /* Keras' alias of the first one */
} CornuDistribution;

typedef struct CornuInitializer CornuInitializer;

struct CornuInitializer {
    unsigned          kind;              /* a CornuInitializerKind */
    CornuFanMode      mode;
    CornuDistribution distribution;
    double            value, minval, maxval, mean, stddev, scale, gain;
    CornuNumbers      values;            /* of a constant; not copied */
    int64_t           seed;              /* as given */
    int64_t           input_axes[CORNU_MAX_RANK], output_axes[CORNU_MAX_RANK];
    /* A custom initializer: fills `values`, cornu_shape_count(shape) of them, as cornu_initialize
     * does. It is called when the weight is first needed, possibly more than once, and must return
     * the same values each time; `context` is the user's and must live that long. */
    CornuStatus (*call)(const CornuInitializer *self, CornuShape shape, uint64_t seed,
                        int64_t generator, float *values);
    const void       *context;
    const char *record;   /* JSON that files have of an own one, as Keras writes classes and
                             functions, which a resolver (own_objects.h) makes it of again; NULL: a
                             model with one can be neither saved nor cloned */
};

typedef struct {
    char unset;
} CornuPlainInitializerConfig;

typedef struct {
    char         unset;
    double       value;                  /* default 0 */
    CornuNumbers values;                 /* in place of it, broadcast to the weight's shape; not
                                            copied: they must live as long as the layer */
} CornuConstantConfig;

typedef struct {
    char   unset;
    double gain;                         /* default 1, or CORNU_ZERO */
} CornuIdentityConfig;

typedef struct {
    char    unset;
    double  gain;                        /* default 1, or CORNU_ZERO */
    int64_t seed;                        /* default the model's; CORNU_ZERO for 0 */
} CornuOrthogonalConfig;

typedef struct {
    char    unset;
    double  minval;                      /* default -0.05, or CORNU_ZERO */
    double  maxval;                      /* default 0.05, or CORNU_ZERO  */
    int64_t seed;
} CornuRandomUniformConfig;

typedef struct {
    char    unset;
    double  mean;                        /* default 0                   */
    double  stddev;                      /* default 0.05, or CORNU_ZERO */
    int64_t seed;
} CornuRandomNormalConfig;

/* Lists of axes end at the first 0; CORNU_ZERO is axis 0, negative axes count from the last. Where
 * both lists are given, the fans are the products of the extents along them. */
typedef struct {
    char              unset;
    double            scale;             /* above 0; default 1 */
    CornuFanMode      mode;
    CornuDistribution distribution;
    int64_t           seed;
    int64_t           input_axes[CORNU_MAX_RANK], output_axes[CORNU_MAX_RANK];
} CornuVarianceScalingConfig;

typedef struct {
    char    unset;
    int64_t seed;
    int64_t input_axes[CORNU_MAX_RANK], output_axes[CORNU_MAX_RANK];
} CornuFanConfig;

/* 0 */
CornuInitializer cornu_zeros_from(const CornuPlainInitializerConfig *config);
#define cornu_zeros(...) \
    cornu_zeros_from(&(CornuPlainInitializerConfig){ .unset = 0, __VA_ARGS__ })

/* 1 */
CornuInitializer cornu_ones_from(const CornuPlainInitializerConfig *config);
#define cornu_ones(...) cornu_ones_from(&(CornuPlainInitializerConfig){ .unset = 0, __VA_ARGS__ })

/* .value */
CornuInitializer cornu_constant_from(const CornuConstantConfig *config);
#define cornu_constant(...) cornu_constant_from(&(CornuConstantConfig){ .unset = 0, __VA_ARGS__ })

/* gain on the diagonal, else 0. CORNU_ERR_SHAPE for a weight that is not a matrix. */
CornuInitializer cornu_identity_from(const CornuIdentityConfig *config);
#define cornu_identity(...) cornu_identity_from(&(CornuIdentityConfig){ .unset = 0, __VA_ARGS__ })

/* gain Q, for the weight flattened to (rows, columns): Q has orthonormal columns, or rows where
 * these are fewer, and is uniformly distributed. CORNU_ERR_SHAPE for weights of rank below 2.
 * Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
 * networks", 2014. */
CornuInitializer cornu_orthogonal_from(const CornuOrthogonalConfig *config);
#define cornu_orthogonal(...) \
    cornu_orthogonal_from(&(CornuOrthogonalConfig){ .unset = 0, __VA_ARGS__ })

/* Uniform in [minval, maxval) */
CornuInitializer cornu_random_uniform_from(const CornuRandomUniformConfig *config);
#define cornu_random_uniform(...) \
    cornu_random_uniform_from(&(CornuRandomUniformConfig){ .unset = 0, __VA_ARGS__ })

/* Normal */
CornuInitializer cornu_random_normal_from(const CornuRandomNormalConfig *config);
#define cornu_random_normal(...) \
    cornu_random_normal_from(&(CornuRandomNormalConfig){ .unset = 0, __VA_ARGS__ })

/* Normal, truncated at 2 stddev from the mean, so that the standard deviation is 0.8796 stddev. */
CornuInitializer cornu_truncated_normal_from(const CornuRandomNormalConfig *config);
#define cornu_truncated_normal(...) \
    cornu_truncated_normal_from(&(CornuRandomNormalConfig){ .unset = 0, __VA_ARGS__ })

/* Mean 0 and variance scale / max(1, fan), where the fan is fan_in, fan_out or their mean: normal,
 * truncated at 2 standard deviations of the untruncated one or not truncated, or uniform in
 * +-sqrt(3 variance). */
CornuInitializer cornu_variance_scaling_from(const CornuVarianceScalingConfig *config);
#define cornu_variance_scaling(...) \
    cornu_variance_scaling_from(&(CornuVarianceScalingConfig){ .unset = 0, __VA_ARGS__ })

/* Variance 1 / fan_avg. Source: Glorot and Bengio, "Understanding the difficulty of training deep
 * feedforward neural networks", 2010. */
CornuInitializer cornu_glorot_uniform_from(const CornuFanConfig *config);
#define cornu_glorot_uniform(...) \
    cornu_glorot_uniform_from(&(CornuFanConfig){ .unset = 0, __VA_ARGS__ })
CornuInitializer cornu_glorot_normal_from(const CornuFanConfig *config);   /* truncated */
#define cornu_glorot_normal(...) \
    cornu_glorot_normal_from(&(CornuFanConfig){ .unset = 0, __VA_ARGS__ })

/* Variance 2 / fan_in. Source: He et al., "Delving deep into rectifiers", arXiv:1502.01852. */
CornuInitializer cornu_he_uniform_from(const CornuFanConfig *config);
#define cornu_he_uniform(...) cornu_he_uniform_from(&(CornuFanConfig){ .unset = 0, __VA_ARGS__ })
CornuInitializer cornu_he_normal_from(const CornuFanConfig *config);       /* truncated */
#define cornu_he_normal(...) cornu_he_normal_from(&(CornuFanConfig){ .unset = 0, __VA_ARGS__ })

/* Variance 1 / fan_in. Source: Klambauer et al., "Self-normalizing neural networks",
 * arXiv:1706.02515. */
CornuInitializer cornu_lecun_uniform_from(const CornuFanConfig *config);
#define cornu_lecun_uniform(...) \
    cornu_lecun_uniform_from(&(CornuFanConfig){ .unset = 0, __VA_ARGS__ })
CornuInitializer cornu_lecun_normal_from(const CornuFanConfig *config);    /* truncated */
#define cornu_lecun_normal(...) \
    cornu_lecun_normal_from(&(CornuFanConfig){ .unset = 0, __VA_ARGS__ })

/* By name, with default arguments: the names of the functions above, "zero", "one", "normal",
 * "uniform", or Keras' class name, "HeNormal". */
CornuInitializer cornu_initializer(const char *name);

#define CORNU_ZEROS            cornu_initializer("zeros")
#define CORNU_ONES             cornu_initializer("ones")
#define CORNU_ORTHOGONAL       cornu_initializer("orthogonal")
#define CORNU_RANDOM_UNIFORM   cornu_initializer("random_uniform")
#define CORNU_RANDOM_NORMAL    cornu_initializer("random_normal")
#define CORNU_TRUNCATED_NORMAL cornu_initializer("truncated_normal")
#define CORNU_GLOROT_UNIFORM   cornu_initializer("glorot_uniform")
#define CORNU_GLOROT_NORMAL    cornu_initializer("glorot_normal")
#define CORNU_HE_UNIFORM       cornu_initializer("he_uniform")
#define CORNU_HE_NORMAL        cornu_initializer("he_normal")
#define CORNU_LECUN_UNIFORM    cornu_initializer("lecun_uniform")
#define CORNU_LECUN_NORMAL     cornu_initializer("lecun_normal")

/* Fills `values` (cornu_shape_count elements). CORNU_ERR_SHAPE for a shape that the initializer
 * does not support, CORNU_ERR_ARGUMENT for the default one, which only a layer can resolve. */
CornuStatus cornu_initialize(CornuInitializer initializer, CornuShape shape, uint64_t seed,
                             int64_t generator, float *values);

#ifdef __cplusplus
}
#endif
#endif
