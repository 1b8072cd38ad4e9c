/*
 * Layers that change the colors of images (B, H, W, C) in training; augmentation.h says what
 * factors and ranges are.
 */
#ifndef CORNU_NN_LAYERS_COLORS_H
#define CORNU_NN_LAYERS_COLORS_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Colors ---- */

typedef struct {
    char        unset;
    double      most;                     /* or factor: minimum and maximum */
    double      value_range[2];
    double      factor[2];
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuRandomColorConfig;

/* The distance from each channel's mean times 1 - factor[0] to 1 + factor[1], clipped. */
CornuLayer *cornu_random_contrast_from(const CornuRandomColorConfig *config);
#define cornu_random_contrast(...) \
    cornu_random_contrast_from(&(CornuRandomColorConfig){ .unset = 0, __VA_ARGS__ })

/* Plus the factor times the width of value_range, clipped. */
CornuLayer *cornu_random_brightness_from(const CornuRandomColorConfig *config);
#define cornu_random_brightness(...) \
    cornu_random_brightness_from(&(CornuRandomColorConfig){ .unset = 0, __VA_ARGS__ })

/* RGB with the saturation times f / (1 - f + 1e-7): 0.5 leaves it as it is. */
CornuLayer *cornu_random_saturation_from(const CornuRandomColorConfig *config);
#define cornu_random_saturation(...) \
    cornu_random_saturation_from(&(CornuRandomColorConfig){ .unset = 0, __VA_ARGS__ })

/* RGB with the hue turned by half the factor of a full turn, either way; clipped. */
CornuLayer *cornu_random_hue_from(const CornuRandomColorConfig *config);
#define cornu_random_hue(...) \
    cornu_random_hue_from(&(CornuRandomColorConfig){ .unset = 0, __VA_ARGS__ })

/* The part `factor` of the way to the image in gray, clipped. */
CornuLayer *cornu_random_color_degeneration_from(const CornuRandomColorConfig *config);
#define cornu_random_color_degeneration(...) \
    cornu_random_color_degeneration_from(&(CornuRandomColorConfig){ .unset = 0, __VA_ARGS__ })

/* x + (1 - 2 factor)(smooth - x), clipped: smooth is the mean of 3 by 3 pixels with weights 1, the
 * middle one 5. */
CornuLayer *cornu_random_sharpness_from(const CornuRandomColorConfig *config);
#define cornu_random_sharpness(...) \
    cornu_random_sharpness_from(&(CornuRandomColorConfig){ .unset = 0, __VA_ARGS__ })

/* value_range[1] - x with the probability `factor`, by default 1. */
CornuLayer *cornu_random_invert_from(const CornuRandomColorConfig *config);
#define cornu_random_invert(...) \
    cornu_random_invert_from(&(CornuRandomColorConfig){ .unset = 0, __VA_ARGS__ })

/* Gray, in all channels, with the probability `factor`. */
typedef struct {
    char        unset;
    double      factor;                   /* default 0.5, or CORNU_ZERO */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuRandomGrayscaleConfig;

CornuLayer *cornu_random_grayscale_from(const CornuRandomGrayscaleConfig *config);
#define cornu_random_grayscale(...) \
    cornu_random_grayscale_from(&(CornuRandomGrayscaleConfig){ .unset = 0, __VA_ARGS__ })

/* Keeps the highest bits of 8: `most`, or factor[0] to factor[1] - 1 of them. */
typedef struct {
    char        unset;
    int64_t     most;                     /* 1 to 8, with 1 as the least */
    double      value_range[2];
    int64_t     factor[2];
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuRandomPosterizationConfig;

CornuLayer *cornu_random_posterization_from(const CornuRandomPosterizationConfig *config);
#define cornu_random_posterization(...) \
    cornu_random_posterization_from(&(CornuRandomPosterizationConfig){ .unset = 0, __VA_ARGS__ })

/* The four layers in this order, those whose factor is given. */
typedef struct {
    char        unset;
    double      value_range[2];
    double      brightness_factor[2], contrast_factor[2], saturation_factor[2], hue_factor[2];
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuRandomColorJitterConfig;

CornuLayer *cornu_random_color_jitter_from(const CornuRandomColorJitterConfig *config);
#define cornu_random_color_jitter(...) \
    cornu_random_color_jitter_from(&(CornuRandomColorJitterConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Levels: on values mapped to 0 to 255 ---- */

/* Adds up to 255 addition_factor, and inverts what is not below up to 255 threshold_factor. */
typedef struct {
    char        unset;
    double      addition, threshold;      /* or the minimum and maximum of each: */
    double      value_range[2];
    double      addition_factor[2], threshold_factor[2];
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuSolarizationConfig;

CornuLayer *cornu_solarization_from(const CornuSolarizationConfig *config);
#define cornu_solarization(...) \
    cornu_solarization_from(&(CornuSolarizationConfig){ .unset = 0, __VA_ARGS__ })

/* Spreads each channel's values over the whole range, in training and inference. */
typedef struct {
    char        unset;
    double      value_range[2];
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuAutoContrastConfig;

CornuLayer *cornu_auto_contrast_from(const CornuAutoContrastConfig *config);
#define cornu_auto_contrast(...) \
    cornu_auto_contrast_from(&(CornuAutoContrastConfig){ .unset = 0, __VA_ARGS__ })

/* Makes each channel's values equally frequent, in training: over all images of the shard. */
typedef struct {
    char        unset;
    double      value_range[2];
    int64_t     bins;                     /* default 256 */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuEqualizationConfig;

CornuLayer *cornu_equalization_from(const CornuEqualizationConfig *config);
#define cornu_equalization(...) \
    cornu_equalization_from(&(CornuEqualizationConfig){ .unset = 0, __VA_ARGS__ })

/* The same for the tiles of a grid, with each level's frequency clipped, and between the tiles'
 * centers interpolated; in training and inference. */
typedef struct {
    char        unset;
    double      value_range[2];
    double      clip_limit;               /* default 4, or CORNU_ZERO: no limit */
    int64_t     tile_grid_size[2];        /* default { 8, 8 } */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuClaheConfig;

CornuLayer *cornu_contrast_limited_adaptive_histogram_equalization_from(
    const CornuClaheConfig *config);
#define cornu_contrast_limited_adaptive_histogram_equalization(...)  \
    cornu_contrast_limited_adaptive_histogram_equalization_from(     \
        &(CornuClaheConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
