/*
 * Random layers: augmentation of images (B, H, W, C) and noise. They are active only in training.
 * The random numbers of a row depend on the seed, the step and the row's position in the batch
 * (device/random.h), not on shards or threads. nn/layers/layers.h has dropout.
 */
#ifndef CORNU_NN_LAYERS_RANDOM_H
#define CORNU_NN_LAYERS_RANDOM_H

#include "layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Augmentation: source keras/src/layers/preprocessing/image_preprocessing ---- */

typedef enum {
    CORNU_FLIP_HORIZONTAL_AND_VERTICAL, CORNU_FLIP_HORIZONTAL, CORNU_FLIP_VERTICAL
} CornuFlipMode;

/* "horizontal_and_vertical", …; NULL for an unknown value. */
const char *cornu_flip_mode_name(CornuFlipMode mode);

/* Mirrors each image with probability 1/2; with both directions, each independently. */
typedef struct {
    char          unset;
    CornuFlipMode mode;
    CornuDataFormat data_format;
    const char   *name;
    const char   *dtype;
} CornuRandomFlipConfig;

CornuLayer *cornu_random_flip_from(const CornuRandomFlipConfig *config);
#define cornu_random_flip(...) \
    cornu_random_flip_from(&(CornuRandomFlipConfig){ .unset = 0, __VA_ARGS__ })

/* The pixels outside an image: its mirror (d c b a | a b c d | d c b a), fill_value, the nearest
 * edge pixel, or the image repeated. */
typedef enum {
    CORNU_FILL_REFLECT, CORNU_FILL_CONSTANT, CORNU_FILL_NEAREST, CORNU_FILL_WRAP
} CornuFillMode;

/* "reflect", "constant", "nearest", "wrap"; NULL for an unknown value. */
const char *cornu_fill_mode_name(CornuFillMode mode);

/* Moves each image down and to the right by fractions of its height and width, drawn uniformly. */
typedef struct {
    char               unset;
    double             height, width;     /* maximum in either direction: below 1 */
    CornuFillMode      fill_mode;
    CornuInterpolation interpolation;     /* default bilinear */
    double             fill_value;
    double             height_factor[2];  /* minimum and maximum, in place of height */
    double             width_factor[2];   /* likewise */
    CornuDataFormat data_format;
    const char        *name;
    const char        *dtype;
} CornuRandomTranslationConfig;

CornuLayer *cornu_random_translation_from(const CornuRandomTranslationConfig *config);
#define cornu_random_translation(...) \
    cornu_random_translation_from(&(CornuRandomTranslationConfig){ .unset = 0, __VA_ARGS__ })

/* Zooms each image about its center: height and width are divided by 1 plus a number above -1,
 * drawn uniformly, so that positive numbers zoom out. Without width and width_factor the height's
 * number is used for the width too; .width_factor = { CORNU_ZERO } leaves the width as it is. */
typedef CornuRandomTranslationConfig CornuRandomZoomConfig;

CornuLayer *cornu_random_zoom_from(const CornuRandomZoomConfig *config);
#define cornu_random_zoom(...) \
    cornu_random_zoom_from(&(CornuRandomZoomConfig){ .unset = 0, __VA_ARGS__ })

/* Rotates each image about its center, counterclockwise, by a fraction of a full turn, drawn
 * uniformly. */
typedef struct {
    char               unset;
    double             most;              /* in either direction: 0.1 is 36 degrees */
    CornuFillMode      fill_mode;
    CornuInterpolation interpolation;     /* default bilinear */
    double             fill_value;
    double             factor[2];         /* minimum and maximum, in place of most */
    CornuDataFormat data_format;
    const char        *name;
    const char        *dtype;
} CornuRandomRotationConfig;

CornuLayer *cornu_random_rotation_from(const CornuRandomRotationConfig *config);
#define cornu_random_rotation(...) \
    cornu_random_rotation_from(&(CornuRandomRotationConfig){ .unset = 0, __VA_ARGS__ })

/* Shears each image: column + x row, row + y column, both with the same random sign. */
typedef struct {
    char               unset;
    double             x, y;              /* maximum: up to 1 */
    CornuFillMode      fill_mode;
    CornuInterpolation interpolation;     /* default bilinear */
    double             fill_value;
    double             x_factor[2], y_factor[2];  /* minimum and maximum, in place of x and y */
    CornuDataFormat data_format;
    const char        *name;
    const char        *dtype;
} CornuRandomShearConfig;

CornuLayer *cornu_random_shear_from(const CornuRandomShearConfig *config);
#define cornu_random_shear(...) \
    cornu_random_shear_from(&(CornuRandomShearConfig){ .unset = 0, __VA_ARGS__ })

/* With a probability drawn from `factor`, by default 0 to 1, moves each corner by up to half of
 * `scale` times its coordinates, and the image with them. */
typedef struct {
    char               unset;
    double             most;
    double             scale;             /* 0 to 1, the default */
    CornuInterpolation interpolation;     /* default bilinear */
    double             fill_value;
    double             factor[2];
    CornuDataFormat data_format;
    const char        *name;
    const char        *dtype;
} CornuRandomPerspectiveConfig;

CornuLayer *cornu_random_perspective_from(const CornuRandomPerspectiveConfig *config);
#define cornu_random_perspective(...) \
    cornu_random_perspective_from(&(CornuRandomPerspectiveConfig){ .unset = 0, __VA_ARGS__ })

/* With a probability drawn from `factor`, by default 0 to 1, moves each pixel by blurred normal
 * noise: with s drawn from `scale` for the batch, by 0.1 s times the longer side times noise of
 * the standard deviation 0.05 s times the shorter side, blurred by as much. */
typedef struct {
    char               unset;
    double             most;
    double             factor[2], scale[2];  /* scale: by default 0 to 1 */
    CornuInterpolation interpolation;     /* default bilinear */
    CornuFillMode      fill_mode;
    double             fill_value;
    double             value_range[2];    /* default 0 to 255 */
    CornuDataFormat data_format;
    const char        *name;
    const char        *dtype;
} CornuRandomElasticTransformConfig;

CornuLayer *cornu_random_elastic_transform_from(const CornuRandomElasticTransformConfig *config);
#define cornu_random_elastic_transform(...)                                                 \
    cornu_random_elastic_transform_from(                                                    \
        &(CornuRandomElasticTransformConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Noise: source keras/src/layers/regularization ---- */

/* Dropout of whole channels of sequences, images and volumes (B, D, H, W, C). */
typedef struct {
    char            unset;
    double          rate;                 /* 0 to 1 */
    CornuDataFormat data_format;          /* not for sequences */
    const char     *name;
    const char     *dtype;
} CornuSpatialDropoutConfig;

/* (B, T, C)    */
CornuLayer *cornu_spatial_dropout1d_from(const CornuSpatialDropoutConfig *config);
/* (B, H, W, C) */
CornuLayer *cornu_spatial_dropout2d_from(const CornuSpatialDropoutConfig *config);
/* volumes      */
CornuLayer *cornu_spatial_dropout3d_from(const CornuSpatialDropoutConfig *config);
#define cornu_spatial_dropout1d(...) \
    cornu_spatial_dropout1d_from(&(CornuSpatialDropoutConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_spatial_dropout2d(...) \
    cornu_spatial_dropout2d_from(&(CornuSpatialDropoutConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_spatial_dropout3d(...) \
    cornu_spatial_dropout3d_from(&(CornuSpatialDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* Multiplies x by normal noise of mean 1 and standard deviation sqrt(rate / (1 - rate)), with rate
 * below 1. */
CornuLayer *cornu_gaussian_dropout_from(const CornuDropoutConfig *config);
#define cornu_gaussian_dropout(...) \
    cornu_gaussian_dropout_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* Dropout for selu: dropped elements get selu's least value, and mean and variance are preserved.
 * rate is below 1. */
CornuLayer *cornu_alpha_dropout_from(const CornuDropoutConfig *config);
#define cornu_alpha_dropout(...) \
    cornu_alpha_dropout_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* Adds normal noise of mean 0. */
typedef struct {
    char        unset;
    double      stddev;                   /* 0 or more */
    const char *name;
    const char *dtype;
} CornuGaussianNoiseConfig;

CornuLayer *cornu_gaussian_noise_from(const CornuGaussianNoiseConfig *config);
#define cornu_gaussian_noise(...) \
    cornu_gaussian_noise_from(&(CornuGaussianNoiseConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
