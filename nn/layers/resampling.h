/* Layers that pad, crop, resample and permute images (B, H, W, C) and sequences (B, T, C). */
#ifndef CORNU_NN_LAYERS_RESAMPLING_H
#define CORNU_NN_LAYERS_RESAMPLING_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Padding and cropping ---- */

/* Pads images with zeros. */
typedef struct {
    char        unset;
    int64_t     around;                   /* on all four sides; default 1 */
    int64_t     padding[2][2];            /* {{top, bottom}, {left, right}}; no padding:
                                             {{CORNU_ZERO}} */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuZeroPadding2dConfig;

CornuLayer *cornu_zero_padding2d_from(const CornuZeroPadding2dConfig *config);
#define cornu_zero_padding2d(...) \
    cornu_zero_padding2d_from(&(CornuZeroPadding2dConfig){ .unset = 0, __VA_ARGS__ })

/* Pads sequences (B, T, C) with zeros. */
typedef struct {
    char        unset;
    int64_t     around;                   /* on both sides; default 1 */
    int64_t     padding[2];               /* { before, after }; no padding: { CORNU_ZERO } */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuZeroPadding1dConfig;

CornuLayer *cornu_zero_padding1d_from(const CornuZeroPadding1dConfig *config);
#define cornu_zero_padding1d(...) \
    cornu_zero_padding1d_from(&(CornuZeroPadding1dConfig){ .unset = 0, __VA_ARGS__ })

/* Removes the borders of images. */
typedef struct {
    char        unset;
    int64_t     around;                   /* of all four sides; default 0 */
    int64_t     cropping[2][2];           /* {{top, bottom}, {left, right}} */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuCropping2dConfig;

CornuLayer *cornu_cropping2d_from(const CornuCropping2dConfig *config);
#define cornu_cropping2d(...) \
    cornu_cropping2d_from(&(CornuCropping2dConfig){ .unset = 0, __VA_ARGS__ })

/* Removes steps at both ends of sequences (B, T, C). */
typedef struct {
    char        unset;
    int64_t     around;                   /* of both ends; default 1 */
    int64_t     cropping[2];              /* { first, last }; no cropping: { CORNU_ZERO } */
    const char *name;
    const char *dtype;
} CornuCropping1dConfig;

CornuLayer *cornu_cropping1d_from(const CornuCropping1dConfig *config);
#define cornu_cropping1d(...) \
    cornu_cropping1d_from(&(CornuCropping1dConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Resampling ---- */

/* Interpolation between pixels, whose centers are at 0.5, 1.5, …: the nearest pixel, or a mean
 * weighted by a function of the distance with a radius of 1, 2 (Keys' cubic, a = -1/2), 3 or 5
 * pixels. At the border the weights of the existing pixels are normalized to a sum of 1. */
typedef enum {
    CORNU_DEFAULT_INTERPOLATION, CORNU_NEAREST, CORNU_BILINEAR, CORNU_BICUBIC, CORNU_LANCZOS3,
    CORNU_LANCZOS5
} CornuInterpolation;

/* "nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"; NULL for an unknown value. */
const char *cornu_interpolation_name(CornuInterpolation interpolation);

/* (B, H size[0], W size[1], C) */
typedef struct {
    char               unset;
    int64_t            factor;            /* for both axes; default 2 */
    CornuInterpolation interpolation;     /* default nearest */
    int64_t            size[2];           /* {h, w}; {n} is square */
    CornuDataFormat    data_format;
    const char        *name;
    const char        *dtype;
} CornuUpSampling2dConfig;

CornuLayer *cornu_up_sampling2d_from(const CornuUpSampling2dConfig *config);
#define cornu_up_sampling2d(...) \
    cornu_up_sampling2d_from(&(CornuUpSampling2dConfig){ .unset = 0, __VA_ARGS__ })

/* Repeats each step `size` times: (B, T size, C). */
typedef struct {
    char        unset;
    int64_t     size;                     /* default 2 */
    const char *name;
    const char *dtype;
} CornuUpSampling1dConfig;

CornuLayer *cornu_up_sampling1d_from(const CornuUpSampling1dConfig *config);
#define cornu_up_sampling1d(...) \
    cornu_up_sampling1d_from(&(CornuUpSampling1dConfig){ .unset = 0, __VA_ARGS__ })

/* (B, height, width, C), in training and inference. Source: jax.image.resize and
 * keras/src/layers/preprocessing/image_preprocessing/resizing.py. */
typedef struct {
    char               unset;
    int64_t            height, width;     /* required */
    CornuInterpolation interpolation;     /* default bilinear */
    bool               crop_to_aspect_ratio; /* crop to the center part of the new ratio  */
    bool               pad_to_aspect_ratio;  /* pad two sides with fill_value to the ratio */
    bool               antialias;            /* when shrinking, widen the radius accordingly */
    double             fill_value;           /* default 0 */
    CornuDataFormat    data_format;
    const char        *name;
    const char        *dtype;
} CornuResizingConfig;

CornuLayer *cornu_resizing_from(const CornuResizingConfig *config);
#define cornu_resizing(...) cornu_resizing_from(&(CornuResizingConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Axes ---- */

/* Axis i of the output is axis dims[i - 1] of x, counted from 1, as the batch stays in place:
 * cornu_permute(.dims = { 2, 1 }) gives (B, C, T). */
typedef struct {
    char        unset;
    int64_t     dims[CORNU_MAX_RANK];     /* required: each of 1, 2, … once */
    const char *name;
    const char *dtype;
} CornuPermuteConfig;

CornuLayer *cornu_permute_from(const CornuPermuteConfig *config);
#define cornu_permute(...) cornu_permute_from(&(CornuPermuteConfig){ .unset = 0, __VA_ARGS__ })

/* Repeats (B, C) n times: (B, n, C). */
typedef struct {
    char        unset;
    int64_t     n;                        /* required */
    const char *name;
    const char *dtype;
} CornuRepeatVectorConfig;

CornuLayer *cornu_repeat_vector_from(const CornuRepeatVectorConfig *config);
#define cornu_repeat_vector(...) \
    cornu_repeat_vector_from(&(CornuRepeatVectorConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
