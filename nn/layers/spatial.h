/*
 * Layers over images (B, H, W, C) and sequences (B, T, C): the convolution family and pooling.
 * layers.h describes what all layers have in common, and has conv2d and the two-dimensional pools;
 * resampling.h pads, crops and resamples.
 */
#ifndef CORNU_NN_LAYERS_SPATIAL_H
#define CORNU_NN_LAYERS_SPATIAL_H

#include "activations.h"
#include "layer.h"
#include "resampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Padding of convolutions and pools: "valid" is none; "same" pads with zeros so that the output has
 * ceil(n / stride) rows, an odd row of padding after the image. "causal", conv1d only, pads before
 * the sequence, so that no step depends on later ones. */
typedef enum { CORNU_VALID, CORNU_SAME, CORNU_CAUSAL } CornuPadding;

/* Keras' name, "same"; NULL for unknown values. */
const char *cornu_padding_name(CornuPadding padding);

/* With .data_format = CORNU_CHANNELS_FIRST (layer.h) inputs and outputs are (B, C, H, W) and
 * (B, C, T). */

/* ---- Convolutions ---- */

/* y = activation(x * kernel + bias), each channel convolved separately: kernel
 * (h, w, C, depth_multiplier), y (B, Ho, Wo, C depth_multiplier), with the outputs of a channel
 * next to each other. Source: keras/src/layers/convolutional/base_depthwise_conv.py. */
typedef struct {
    char             unset;
    int64_t          kernel, stride;      /* square; kernel is required */
    CornuPadding     padding;
    int64_t          depth_multiplier;    /* default 1 */
    int64_t          kernel_size[2], strides[2], dilation_rate[2]; /* {h, w}; {n} is square */
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer depthwise_initializer, bias_initializer; /* default glorot_uniform, zeros */
    CornuRegularizer depthwise_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  depthwise_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuDepthwiseConv2dConfig;

CornuLayer *cornu_depthwise_conv2d_from(const CornuDepthwiseConv2dConfig *config);
#define cornu_depthwise_conv2d(...) \
    cornu_depthwise_conv2d_from(&(CornuDepthwiseConv2dConfig){ .unset = 0, __VA_ARGS__ })

/* The same over sequences (B, T, C): kernel (k, C, depth_multiplier). The window has one extent,
 * .kernel_size = { 3 }, as for the 1-D layers below. */
CornuLayer *cornu_depthwise_conv1d_from(const CornuDepthwiseConv2dConfig *config);
#define cornu_depthwise_conv1d(...) \
    cornu_depthwise_conv1d_from(&(CornuDepthwiseConv2dConfig){ .unset = 0, __VA_ARGS__ })

/* A depthwise convolution with depthwise_kernel (h, w, C, depth_multiplier), then one of 1 by 1
 * with pointwise_kernel (1, 1, C depth_multiplier, filters), then bias and activation.
 * Source: keras/src/layers/convolutional/base_separable_conv.py. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* square; filters and kernel are required */
    CornuPadding     padding;
    int64_t          kernel_size[2], strides[2], dilation_rate[2]; /* {h, w}; {n} is square */
    int64_t          depth_multiplier;    /* default 1 */
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer depthwise_initializer, pointwise_initializer; /* default glorot_uniform */
    CornuInitializer bias_initializer;                             /* default zeros          */
    CornuRegularizer depthwise_regularizer, pointwise_regularizer, bias_regularizer;
    CornuRegularizer activity_regularizer;
    CornuConstraint  depthwise_constraint, pointwise_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuSeparableConv2dConfig;

CornuLayer *cornu_separable_conv2d_from(const CornuSeparableConv2dConfig *config);
#define cornu_separable_conv2d(...) \
    cornu_separable_conv2d_from(&(CornuSeparableConv2dConfig){ .unset = 0, __VA_ARGS__ })

/* Over sequences: depthwise_kernel (k, C, depth_multiplier), pointwise_kernel
 * (1, C depth_multiplier, filters). */
CornuLayer *cornu_separable_conv1d_from(const CornuSeparableConv2dConfig *config);
#define cornu_separable_conv1d(...) \
    cornu_separable_conv1d_from(&(CornuSeparableConv2dConfig){ .unset = 0, __VA_ARGS__ })

/* Transposed convolution, the gradient of a convolution by x: kernel (h, w, filters, C), strides
 * enlarge the image. "valid" gives (H - 1) s + d (h - 1) + 1 rows, or H s where the stride exceeds
 * the kernel; "same" gives H s. With output_padding there are
 * (H - 1) s + d (h - 1) + 1 + output_padding rows, for "same" minus 2 (h / 2).
 * Source: keras/src/layers/convolutional/base_conv_transpose.py. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* square; filters and kernel are required */
    CornuPadding     padding;
    int64_t          kernel_size[2], strides[2];
    int64_t          output_padding[2];   /* {h, w}, below the strides; CORNU_ZERO for 0, which
                                             differs from the default, None */
    int64_t          dilation_rate[2];
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer, bias_initializer; /* default glorot_uniform, zeros */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConv2dTransposeConfig;

CornuLayer *cornu_conv2d_transpose_from(const CornuConv2dTransposeConfig *config);
#define cornu_conv2d_transpose(...) \
    cornu_conv2d_transpose_from(&(CornuConv2dTransposeConfig){ .unset = 0, __VA_ARGS__ })

/* Over sequences: kernel (k, filters, C). */
CornuLayer *cornu_conv1d_transpose_from(const CornuConv2dTransposeConfig *config);
#define cornu_conv1d_transpose(...) \
    cornu_conv1d_transpose_from(&(CornuConv2dTransposeConfig){ .unset = 0, __VA_ARGS__ })

/* x (B, T, C), kernel (k, C / groups, filters), y (B, To, filters).
 * Source: keras/src/layers/convolutional/conv1d.py. */
typedef struct {
    char             unset;
    int64_t          filters, kernel_size; /* required */
    int64_t          strides;              /* default 1 */
    CornuPadding     padding;              /* CORNU_CAUSAL too */
    int64_t          dilation_rate, groups; /* default 1 */
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer, bias_initializer; /* default glorot_uniform, zeros */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConv1dConfig;

CornuLayer *cornu_conv1d_from(const CornuConv1dConfig *config);
#define cornu_conv1d(...) cornu_conv1d_from(&(CornuConv1dConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Pooling ---- */

/* The maximum, or the mean, of each window of (B, T, C). */
typedef struct {
    char            unset;
    int64_t         pool_size;            /* default of max: 2 */
    int64_t         strides;              /* default: the pool */
    CornuPadding    padding;
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuPooling1dConfig;

CornuLayer *cornu_max_pooling1d_from(const CornuPooling1dConfig *config);  /* the maximum */
CornuLayer *cornu_average_pooling1d_from(const CornuPooling1dConfig *config);  /* the mean */
#define cornu_max_pooling1d(...) \
    cornu_max_pooling1d_from(&(CornuPooling1dConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_average_pooling1d(...) \
    cornu_average_pooling1d_from(&(CornuPooling1dConfig){ .unset = 0, __VA_ARGS__ })

/* The mean, or the maximum, of each channel over an image or sequence: (B, C). The mean of a masked
 * sequence is over its valid steps, NaN without any. The gradient of the maximum is shared among
 * equal maxima. Source: keras/src/layers/pooling. */
typedef struct {
    char            unset;
    bool            keepdims;             /* (B, 1, 1, C), (B, 1, C) */
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuGlobalPoolingConfig;

/* the mean */
CornuLayer *cornu_global_average_pooling2d_from(const CornuGlobalPoolingConfig *config);
/* the maximum */
CornuLayer *cornu_global_max_pooling2d_from(const CornuGlobalPoolingConfig *config);
/* the mean */
CornuLayer *cornu_global_average_pooling1d_from(const CornuGlobalPoolingConfig *config);
/* the maximum */
CornuLayer *cornu_global_max_pooling1d_from(const CornuGlobalPoolingConfig *config);
#define cornu_global_average_pooling2d(...) \
    cornu_global_average_pooling2d_from(&(CornuGlobalPoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_global_max_pooling2d(...) \
    cornu_global_max_pooling2d_from(&(CornuGlobalPoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_global_average_pooling1d(...) \
    cornu_global_average_pooling1d_from(&(CornuGlobalPoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_global_max_pooling1d(...) \
    cornu_global_max_pooling1d_from(&(CornuGlobalPoolingConfig){ .unset = 0, __VA_ARGS__ })

/* Pools (B, H, W, C) to output_size, whatever the input's extents: window i of n along an axis is
 * floor(i H / n) to ceil((i + 1) H / n) - 1. Source: keras/src/layers/pooling. */
typedef struct {
    char            unset;
    int64_t         output;               /* of every axis; required, or the next */
    int64_t         output_size[3];       /* of each; {n} is a square or cube */
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuAdaptivePoolingConfig;

/* means */
CornuLayer *cornu_adaptive_average_pooling1d_from(const CornuAdaptivePoolingConfig *config);
/* means */
CornuLayer *cornu_adaptive_average_pooling2d_from(const CornuAdaptivePoolingConfig *config);
/* means */
CornuLayer *cornu_adaptive_average_pooling3d_from(const CornuAdaptivePoolingConfig *config);
/* maxima */
CornuLayer *cornu_adaptive_max_pooling1d_from(const CornuAdaptivePoolingConfig *config);
/* maxima */
CornuLayer *cornu_adaptive_max_pooling2d_from(const CornuAdaptivePoolingConfig *config);
/* maxima */
CornuLayer *cornu_adaptive_max_pooling3d_from(const CornuAdaptivePoolingConfig *config);
#define cornu_adaptive_average_pooling1d(...) \
    cornu_adaptive_average_pooling1d_from(&(CornuAdaptivePoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_adaptive_average_pooling2d(...) \
    cornu_adaptive_average_pooling2d_from(&(CornuAdaptivePoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_adaptive_average_pooling3d(...) \
    cornu_adaptive_average_pooling3d_from(&(CornuAdaptivePoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_adaptive_max_pooling1d(...) \
    cornu_adaptive_max_pooling1d_from(&(CornuAdaptivePoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_adaptive_max_pooling2d(...) \
    cornu_adaptive_max_pooling2d_from(&(CornuAdaptivePoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_adaptive_max_pooling3d(...) \
    cornu_adaptive_max_pooling3d_from(&(CornuAdaptivePoolingConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
