/*
 * The layers, with Keras' names, arguments and defaults (keras/src/layers). Each constructor
 * returns a layer for cornu_model_add, or NULL with a pending error that names an invalid argument.
 *
 * Every layer has .name and .dtype, the name of its precision policy (policy.h), by default the
 * model's. Regularizers (regularizers.h) of weights and of a layer's output, the latter divided by
 * the rows of the batch, are added to the loss; a weight's constraint (constraints.h) is applied
 * after each update. An activity_regularizer inside TimeDistributed has no effect, as in Keras;
 * that of simple_rnn works here, while Keras 3.15 ignores it.
 *
 * This header includes those of the other layers: activation_layers.h, attention.h, core.h,
 * normalization.h, position.h, sequences.h, spatial.h, random.h.
 */
#ifndef CORNU_NN_LAYERS_H
#define CORNU_NN_LAYERS_H

#include "activations.h"
#include "layer.h"
#include "activation_layers.h"
#include "attention.h"
#include "core.h"
#include "normalization.h"
#include "position.h"
#include "spatial.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = activation(x kernel + bias) on the last axis: x (B, …, C), kernel (C, units). */
typedef struct {
    char             unset;
    int64_t          units;               /* required, at least 1 */
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer;  /* default glorot_uniform */
    CornuInitializer bias_initializer;    /* default zeros          */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;              /* Keras' trainable = False */
    const char      *dtype;
} CornuDenseConfig;

CornuLayer *cornu_dense_from(const CornuDenseConfig *config);
#define cornu_dense(...) cornu_dense_from(&(CornuDenseConfig){ .unset = 0, __VA_ARGS__ })

/* y = activation(x * kernel + bias): x (B, H, W, C), kernel (h, w, C / groups, filters); C and
 * filters are split into groups that are convolved separately. Positional sizes are square; giving
 * a size both ways is an error. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* filters and kernel are required */
    CornuPadding     padding;
    int64_t          kernel_size[2], strides[2], dilation_rate[2]; /* {h, w}; {n} is square */
    int64_t          groups;              /* default 1; divides C and filters */
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer;  /* default glorot_uniform */
    CornuInitializer bias_initializer;    /* default zeros          */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConv2dConfig;

CornuLayer *cornu_conv2d_from(const CornuConv2dConfig *config);
#define cornu_conv2d(...) cornu_conv2d_from(&(CornuConv2dConfig){ .unset = 0, __VA_ARGS__ })

/* The maximum, or the mean, of each window of (B, H, W, C). Padding counts in neither. */
typedef struct {
    char         unset;
    int64_t      pool, stride;            /* square; stride defaults to the pool */
    CornuPadding padding;
    int64_t      pool_size[2], strides[2];/* {h, w}; {n} is square. Default of max: 2 */
    CornuDataFormat data_format;
    const char  *name;
    const char  *dtype;
} CornuPooling2dConfig;

CornuLayer *cornu_max_pooling2d_from(const CornuPooling2dConfig *config);      /* the maximum */
CornuLayer *cornu_average_pooling2d_from(const CornuPooling2dConfig *config);  /* the mean    */
#define cornu_max_pooling2d(...) \
    cornu_max_pooling2d_from(&(CornuPooling2dConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_average_pooling2d(...) \
    cornu_average_pooling2d_from(&(CornuPooling2dConfig){ .unset = 0, __VA_ARGS__ })

/* Reshapes (B, …) to (B, n), elements in the order of channels last. */
typedef struct {
    char            unset;
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuFlattenConfig;

CornuLayer *cornu_flatten_from(const CornuFlattenConfig *config);
#define cornu_flatten(...) cornu_flatten_from(&(CornuFlattenConfig){ .unset = 0, __VA_ARGS__ })

/* Reshapes (B, …) to (B, target_shape…); one extent may be CORNU_NONE.
 * cornu_reshape(.target_shape = { 28, 28, 1 }) */
typedef struct {
    char        unset;
    int64_t     target_shape[CORNU_MAX_RANK]; /* required; ends at the first 0 */
    const char *name;
    const char *dtype;
} CornuReshapeConfig;

CornuLayer *cornu_reshape_from(const CornuReshapeConfig *config);
#define cornu_reshape(...) cornu_reshape_from(&(CornuReshapeConfig){ .unset = 0, __VA_ARGS__ })

/* In training each element is 0 with probability rate, else x / (1 - rate). */
typedef struct {
    char        unset;
    double      rate;                     /* 0 to 1 */
    int64_t     noise_shape[CORNU_MAX_RANK]; /* of the draws, broadcast to x: CORNU_NONE is x's
                                             extent; default all of them. Dropout, AlphaDropout */
    const char *name;
    const char *dtype;
} CornuDropoutConfig;

CornuLayer *cornu_dropout_from(const CornuDropoutConfig *config);
#define cornu_dropout(...) cornu_dropout_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta per channel, the last axis. Training
 * uses the statistics of the batch's valid rows and updates the moving ones:
 * moving = momentum moving + (1 - momentum) batch. Inference, and a frozen layer, use these.
 * On a device with several shards, each shard normalizes with the statistics of its own rows, and
 * the moving ones follow the mean over the shards that have a row. With `synchronized`, all shards
 * use the statistics of the whole batch; the variance is then the mean of the squares minus the
 * square of the mean. Steps that a mask leaves out, (B, T) or all axes but the last one, do not
 * count, but are normalized.
 * With `renorm`, training corrects each batch towards the moving statistics: with s the root of the
 * batch's variance + epsilon, and m' and s' of moving averages kept for that,
 *     y = (x' r + d) gamma + beta   r = clip(s / s', rmin, rmax)   d = clip((m - m') / s', dmax)
 * where x' is x normalized as without, and r and d carry no gradient.
 * Source: keras/src/layers/normalization/batch_normalization.py; Ioffe, "Batch Renormalization",
 * arXiv 1702.03275. */
typedef struct {
    char             unset;
    int64_t          axis;                /* of the channels: default -1, the last */
    double           momentum;            /* default 0.99, or CORNU_ZERO  */
    double           epsilon;             /* default 0.001, or CORNU_ZERO */
    bool             no_center, no_scale; /* without beta, without gamma  */
    CornuInitializer beta_initializer, gamma_initializer;         /* default zeros, ones */
    CornuInitializer moving_mean_initializer, moving_variance_initializer;  /* likewise */
    CornuRegularizer beta_regularizer, gamma_regularizer;
    CornuConstraint  beta_constraint, gamma_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
    bool             synchronized;
    bool             renorm;
    double           renorm_clipping[3];  /* rmax, rmin, dmax; 0: none, CORNU_ZERO is 0 */
    double           renorm_momentum;     /* default 0.99, or CORNU_ZERO */
} CornuBatchNormalizationConfig;

CornuLayer *cornu_batch_normalization_from(const CornuBatchNormalizationConfig *config);
#define cornu_batch_normalization(...) \
    cornu_batch_normalization_from(&(CornuBatchNormalizationConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char            unset;
    CornuActivation activation;
    const char     *name;
    const char     *dtype;
} CornuActivationConfig;

/* The activation as a layer of its own, Keras' Activation. */
CornuLayer *cornu_activation_from(const CornuActivationConfig *config);
#define cornu_activation(...) \
    cornu_activation_from(&(CornuActivationConfig){ .unset = 0, __VA_ARGS__ })

/* A layer as the activation of others, Keras' Dense(10, activation=LeakyReLU(0.1)):
 *     cornu_dense(10, .activation = cornu_activation_of(cornu_leaky_relu(0.1)))
 * Takes the layer, which has one input and one output; recurrent layers take a relu, leaky_relu,
 * elu, softmax or activation only. Equal layers give the same value, which stays valid; each layer
 * with the activation has weights of its own for it. On failure the default activation, with a
 * pending error. */
CornuActivation cornu_activation_of(CornuLayer *layer);

/* Keras' layer.activation = …, of a layer that has one, to one of the named ones. A model reads it
 * when its graphs are made, at its first step and first prediction after cornu_compile.
 * CORNU_ERR_UNSUPPORTED for another activation, or for a layer that has none, or one with
 * weights. */
CornuStatus cornu_layer_set_activation(CornuLayer *layer, CornuActivation activation);

/* y = x scale + offset */
typedef struct {
    char         unset;
    double       scale;                   /* required, or scales; CORNU_ZERO for 0 */
    double       offset;
    CornuNumbers scales, offsets;         /* in place of them: arrays, broadcast to x */
    const char  *name;
    const char  *dtype;
} CornuRescalingConfig;

CornuLayer *cornu_rescaling_from(const CornuRescalingConfig *config);
#define cornu_rescaling(...) \
    cornu_rescaling_from(&(CornuRescalingConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Layers with several inputs: for cornu_call (functional.h) ----
 *
 *     x = cornu_call(cornu_add(), x, shortcut);
 *
 * Element by element, with broadcasting: all axes but the batch are aligned at the right; a tensor
 * of lower rank gets extents of 1 after the batch. Source: keras/src/layers/merging.
 */
typedef struct {
    char        unset;
    const char *name;
    const char *dtype;
} CornuMergeLayerConfig;

CornuLayer *cornu_add_from(const CornuMergeLayerConfig *config);        /* the sum           */
CornuLayer *cornu_subtract_from(const CornuMergeLayerConfig *config);   /* a - b: two inputs */
CornuLayer *cornu_multiply_from(const CornuMergeLayerConfig *config);   /* the product       */
CornuLayer *cornu_average_from(const CornuMergeLayerConfig *config);    /* the mean          */
CornuLayer *cornu_maximum_from(const CornuMergeLayerConfig *config);    /* the largest       */
CornuLayer *cornu_minimum_from(const CornuMergeLayerConfig *config);    /* the smallest      */
#define cornu_add(...) cornu_add_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_subtract(...) cornu_subtract_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_multiply(...) cornu_multiply_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_average(...) cornu_average_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_maximum(...) cornu_maximum_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_minimum(...) cornu_minimum_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })

/* Concatenates along an axis; the other extents are equal. */
typedef struct {
    char        unset;
    int64_t     axis;                     /* default -1, the last one; 0 is the batch */
    const char *name;
    const char *dtype;
} CornuConcatenateConfig;

CornuLayer *cornu_concatenate_from(const CornuConcatenateConfig *config);
#define cornu_concatenate(...) \
    cornu_concatenate_from(&(CornuConcatenateConfig){ .unset = 0, __VA_ARGS__ })

/* Dot products of two tensors along an axis of each: (B, …) with the remaining axes of the first
 * tensor, then those of the second; (B, 1) if there are none. */
typedef struct {
    char        unset;
    int64_t     axes;                     /* of both; required, or the next */
    bool        normalize;                /* l2-normalizes both first, which gives cosines */
    int64_t     both_axes[2];             /* of each */
    const char *name;
    const char *dtype;
} CornuDotConfig;

CornuLayer *cornu_dot_from(const CornuDotConfig *config);
#define cornu_dot(...) cornu_dot_from(&(CornuDotConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif

#include "augmentation.h"
#include "categories.h"
#include "text_layers.h"
#include "random.h"
#include "sequences.h"
#include "spectrograms.h"

#endif
