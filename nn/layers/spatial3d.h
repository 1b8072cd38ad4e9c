/*
 * Layers over volumes (B, D, H, W, C): what spatial.h has for images, with a depth before the
 * height. Positional sizes are those of a cube; as lists they are { depth, height, width }.
 */
#ifndef CORNU_NN_LAYERS_SPATIAL3D_H
#define CORNU_NN_LAYERS_SPATIAL3D_H

#include "spatial.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Convolutions ---- */

/* kernel (d, h, w, C / groups, filters), y (B, Do, Ho, Wo, filters).
 * Source: keras/src/layers/convolutional/base_conv.py. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* a cube; filters and kernel are required */
    CornuPadding     padding;
    int64_t          kernel_size[3], strides[3], dilation_rate[3]; /* {n} is a cube */
    int64_t          groups;              /* default 1; divides C and filters */
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer, bias_initializer; /* default glorot_uniform, zeros */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConv3dConfig;

CornuLayer *cornu_conv3d_from(const CornuConv3dConfig *config);
#define cornu_conv3d(...) cornu_conv3d_from(&(CornuConv3dConfig){ .unset = 0, __VA_ARGS__ })

/* kernel (d, h, w, filters, C); extents as those of conv2d_transpose.
 * Source: keras/src/layers/convolutional/base_conv_transpose.py. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* a cube; filters and kernel are required */
    CornuPadding     padding;
    int64_t          kernel_size[3], strides[3];
    int64_t          output_padding[3];   /* below the strides; CORNU_ZERO for 0, which differs
                                             from the default, None */
    int64_t          dilation_rate[3];
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer, bias_initializer; /* default glorot_uniform, zeros */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConv3dTransposeConfig;

CornuLayer *cornu_conv3d_transpose_from(const CornuConv3dTransposeConfig *config);
#define cornu_conv3d_transpose(...) \
    cornu_conv3d_transpose_from(&(CornuConv3dTransposeConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Pooling ---- */

typedef struct {
    char            unset;
    int64_t         pool, stride;         /* a cube; stride defaults to the pool */
    CornuPadding    padding;
    int64_t         pool_size[3], strides[3]; /* {n} is a cube. Default of max: 2 */
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuPooling3dConfig;

/* the maximum of each window */
CornuLayer *cornu_max_pooling3d_from(const CornuPooling3dConfig *config);
/* the mean of each window */
CornuLayer *cornu_average_pooling3d_from(const CornuPooling3dConfig *config);
#define cornu_max_pooling3d(...) \
    cornu_max_pooling3d_from(&(CornuPooling3dConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_average_pooling3d(...) \
    cornu_average_pooling3d_from(&(CornuPooling3dConfig){ .unset = 0, __VA_ARGS__ })

/* The mean of each channel over a volume: (B, C), or (B, 1, 1, 1, C) with keepdims. */
CornuLayer *cornu_global_average_pooling3d_from(const CornuGlobalPoolingConfig *config);
/* Likewise the maximum. */
CornuLayer *cornu_global_max_pooling3d_from(const CornuGlobalPoolingConfig *config);
#define cornu_global_average_pooling3d(...) \
    cornu_global_average_pooling3d_from(&(CornuGlobalPoolingConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_global_max_pooling3d(...) \
    cornu_global_max_pooling3d_from(&(CornuGlobalPoolingConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Padding, cropping, repeating ---- */

/* Pads with zeros. */
typedef struct {
    char            unset;
    int64_t         around;               /* on all six sides; default 1 */
    int64_t         padding[3][2];        /* {{front, back}, {top, bottom}, {left, right}}; no
                                             padding: {{CORNU_ZERO}} */
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuZeroPadding3dConfig;

CornuLayer *cornu_zero_padding3d_from(const CornuZeroPadding3dConfig *config);
#define cornu_zero_padding3d(...) \
    cornu_zero_padding3d_from(&(CornuZeroPadding3dConfig){ .unset = 0, __VA_ARGS__ })

/* Removes the borders. */
typedef struct {
    char            unset;
    int64_t         around;               /* of all six sides; default 1 */
    int64_t         cropping[3][2];       /* as padding; no cropping: {{CORNU_ZERO}} */
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuCropping3dConfig;

CornuLayer *cornu_cropping3d_from(const CornuCropping3dConfig *config);
#define cornu_cropping3d(...) \
    cornu_cropping3d_from(&(CornuCropping3dConfig){ .unset = 0, __VA_ARGS__ })

/* Repeats each element: (B, D size[0], H size[1], W size[2], C). */
typedef struct {
    char            unset;
    int64_t         factor;               /* for all axes; default 2 */
    int64_t         size[3];              /* {n} is a cube */
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuUpSampling3dConfig;

CornuLayer *cornu_up_sampling3d_from(const CornuUpSampling3dConfig *config);
#define cornu_up_sampling3d(...) \
    cornu_up_sampling3d_from(&(CornuUpSampling3dConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
