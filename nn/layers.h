/*
 * The layers, by Keras' names, arguments and defaults (keras/src/layers). Each returns a layer
 * for cornu_model_add, or NULL with a pending error: an argument out of its range, named.
 *
 * Every one has .name, and .dtype: the name of the precision policy (policy.h) that the layer
 * computes by, by default the model's.
 */
#ifndef CORNU_NN_LAYERS_H
#define CORNU_NN_LAYERS_H

#include "activations.h"
#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Convolutions and pools: "valid" reads inside the image only; "same" pads with zeros so that the
 * output has ceil(n / stride) rows, the odd one after the image. */
typedef enum { CORNU_VALID, CORNU_SAME } CornuPadding;

const char *cornu_padding_name(CornuPadding padding);

/* y = activation(x kernel + bias) on the last axis: x (B, …, C), kernel (C, units). */
typedef struct {
    char             unset;
    int64_t          units;               /* required, at least 1 */
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer;  /* default glorot_uniform */
    CornuInitializer bias_initializer;    /* default zeros          */
    const char      *name;
    bool             frozen;              /* Keras' trainable = False */
    const char      *dtype;
} CornuDenseConfig;

CornuLayer *cornu_dense_from(const CornuDenseConfig *config);
#define cornu_dense(...) cornu_dense_from(&(CornuDenseConfig){ .unset = 0, __VA_ARGS__ })

/* y = activation(x * kernel + bias): x (B, H, W, C), kernel (h, w, C, filters). The positional
 * sizes are square; to give one both ways is an error. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* filters and kernel are required */
    CornuPadding     padding;
    int64_t          kernel_size[2], strides[2], dilation_rate[2]; /* {h, w}; {n} is square */
    int64_t          groups;              /* 1 is the only number available */
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer;  /* default glorot_uniform */
    CornuInitializer bias_initializer;    /* default zeros          */
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConv2dConfig;

CornuLayer *cornu_conv2d_from(const CornuConv2dConfig *config);
#define cornu_conv2d(...) cornu_conv2d_from(&(CornuConv2dConfig){ .unset = 0, __VA_ARGS__ })

/* The greatest, or the mean, of each window of (B, H, W, C). Padding never wins, nor does it
 * count in the mean. */
typedef struct {
    char         unset;
    int64_t      pool, stride;            /* square; the stride's default is the pool */
    CornuPadding padding;
    int64_t      pool_size[2], strides[2];/* {h, w}; {n} is square. Default of max: 2 */
    const char  *name;
    const char  *dtype;
} CornuPooling2dConfig;

CornuLayer *cornu_max_pooling2d_from(const CornuPooling2dConfig *config);
CornuLayer *cornu_average_pooling2d_from(const CornuPooling2dConfig *config);
#define cornu_max_pooling2d(...) \
    cornu_max_pooling2d_from(&(CornuPooling2dConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_average_pooling2d(...) \
    cornu_average_pooling2d_from(&(CornuPooling2dConfig){ .unset = 0, __VA_ARGS__ })

/* (B, …) becomes (B, n). */
typedef struct {
    char        unset;
    const char *name;
    const char *dtype;
} CornuFlattenConfig;

CornuLayer *cornu_flatten_from(const CornuFlattenConfig *config);
#define cornu_flatten(...) cornu_flatten_from(&(CornuFlattenConfig){ .unset = 0, __VA_ARGS__ })

/* (B, …) becomes (B, target_shape…); one extent may be CORNU_NONE.
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
    const char *name;
    const char *dtype;
} CornuDropoutConfig;

CornuLayer *cornu_dropout_from(const CornuDropoutConfig *config);
#define cornu_dropout(...) cornu_dropout_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta per channel, the last axis. Training
 * uses the statistics of the batch's valid rows and moves the moving ones:
 * moving = momentum moving + (1 - momentum) batch. Inference, and a frozen layer, use those.
 * On a device with several shards each normalizes with the statistics of its own rows, and the
 * moving ones follow their mean over the shards that have a row; `synchronized`, they share those
 * of the whole batch, the variance being the mean of squares less the square of the mean.
 * Source: keras/src/layers/normalization/batch_normalization.py. */
typedef struct {
    char             unset;
    int64_t          axis;                /* -1, the default, is the only one available */
    double           momentum;            /* default 0.99, or CORNU_ZERO  */
    double           epsilon;             /* default 0.001, or CORNU_ZERO */
    bool             no_center, no_scale; /* without beta, without gamma  */
    CornuInitializer beta_initializer, gamma_initializer;         /* default zeros, ones */
    CornuInitializer moving_mean_initializer, moving_variance_initializer;  /* likewise */
    const char      *name;
    bool             frozen;
    const char      *dtype;
    bool             synchronized;
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

CornuLayer *cornu_activation_from(const CornuActivationConfig *config);
#define cornu_activation(...) \
    cornu_activation_from(&(CornuActivationConfig){ .unset = 0, __VA_ARGS__ })

/* y = x scale + offset */
typedef struct {
    char        unset;
    double      scale;                    /* required; CORNU_ZERO for 0 */
    double      offset;
    const char *name;
    const char *dtype;
} CornuRescalingConfig;

CornuLayer *cornu_rescaling_from(const CornuRescalingConfig *config);
#define cornu_rescaling(...) \
    cornu_rescaling_from(&(CornuRescalingConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
