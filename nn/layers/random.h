/*
 * Layers that draw: augmentation of images (B, H, W, C) and noise. They act in training alone; what
 * they draw for a row depends on the seed, the step and the row's place in the batch (random.h), so
 * neither on shards nor on threads. nn/layers/layers.h has dropout.
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

/* "horizontal_and_vertical", …; NULL for a number that is none. */
const char *cornu_flip_mode_name(CornuFlipMode mode);

/* Each image as it is or mirrored, both as likely; of both directions each by itself. */
typedef struct {
    char          unset;
    CornuFlipMode mode;
    const char   *name;
    const char   *dtype;
} CornuRandomFlipConfig;

CornuLayer *cornu_random_flip_from(const CornuRandomFlipConfig *config);
#define cornu_random_flip(...) \
    cornu_random_flip_from(&(CornuRandomFlipConfig){ .unset = 0, __VA_ARGS__ })

/* What stands outside of an image: its mirror (d c b a | a b c d | d c b a), fill_value, the pixel
 * at its edge, the image again. */
typedef enum {
    CORNU_FILL_REFLECT, CORNU_FILL_CONSTANT, CORNU_FILL_NEAREST, CORNU_FILL_WRAP
} CornuFillMode;

/* "reflect", "constant", "nearest", "wrap"; NULL for a number that is none. */
const char *cornu_fill_mode_name(CornuFillMode mode);

/* Each image moved by a part of its height, downwards, and of its width, to the right, drawn
 * uniformly. */
typedef struct {
    char               unset;
    double             height, width;     /* the most, in either direction: below 1 */
    CornuFillMode      fill_mode;
    CornuInterpolation interpolation;     /* default bilinear */
    double             fill_value;
    double             height_factor[2];  /* the least and the most, in place of height */
    double             width_factor[2];   /* likewise */
    const char        *name;
    const char        *dtype;
} CornuRandomTranslationConfig;

CornuLayer *cornu_random_translation_from(const CornuRandomTranslationConfig *config);
#define cornu_random_translation(...) \
    cornu_random_translation_from(&(CornuRandomTranslationConfig){ .unset = 0, __VA_ARGS__ })

/* Each image seen from farther away, or nearer: its height and width divided by 1 plus what is
 * drawn uniformly, above -1, so that positive numbers make it smaller; about its center. Without
 * width and width_factor what is drawn for the height stands for the width too; none at all is
 * .width_factor = { CORNU_ZERO }. */
typedef CornuRandomTranslationConfig CornuRandomZoomConfig;

CornuLayer *cornu_random_zoom_from(const CornuRandomZoomConfig *config);
#define cornu_random_zoom(...) \
    cornu_random_zoom_from(&(CornuRandomZoomConfig){ .unset = 0, __VA_ARGS__ })

/* Each image turned about its center by a part of a whole turn, counter-clockwise, drawn
 * uniformly. */
typedef struct {
    char               unset;
    double             most;              /* in either direction: 0.1 is up to 36 degrees */
    CornuFillMode      fill_mode;
    CornuInterpolation interpolation;     /* default bilinear */
    double             fill_value;
    double             factor[2];         /* the least and the most, in place of most */
    const char        *name;
    const char        *dtype;
} CornuRandomRotationConfig;

CornuLayer *cornu_random_rotation_from(const CornuRandomRotationConfig *config);
#define cornu_random_rotation(...) \
    cornu_random_rotation_from(&(CornuRandomRotationConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Noise: source keras/src/layers/regularization ---- */

/* Dropout of whole channels: of an image's, or of a sequence's. */
CornuLayer *cornu_spatial_dropout2d_from(const CornuDropoutConfig *config);
CornuLayer *cornu_spatial_dropout1d_from(const CornuDropoutConfig *config);
#define cornu_spatial_dropout2d(...) \
    cornu_spatial_dropout2d_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_spatial_dropout1d(...) \
    cornu_spatial_dropout1d_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* x times a normal number of mean 1 and standard deviation sqrt(rate / (1 - rate)). rate is below
 * 1. */
CornuLayer *cornu_gaussian_dropout_from(const CornuDropoutConfig *config);
#define cornu_gaussian_dropout(...) \
    cornu_gaussian_dropout_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* Dropout for selu: what is dropped becomes its least value, and mean and variance stay. rate is
 * below 1. */
CornuLayer *cornu_alpha_dropout_from(const CornuDropoutConfig *config);
#define cornu_alpha_dropout(...) \
    cornu_alpha_dropout_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* x plus a normal number of mean 0. */
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
