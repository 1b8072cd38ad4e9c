/*
 * Layers that crop, erase, blur and mix images (B, H, W, C); those of colors.h change their colors,
 * those of random.h move them. The random ones are active only in training. A factor is drawn
 * uniformly between two numbers, for each image unless said otherwise: one number, by position, is
 * its largest value, and the least one is as far below 0 as the layer allows. Values outside
 * value_range, by default from 0 to 255, are clipped where said. An image may come without the axis
 * of the batch. Source: keras/src/layers/preprocessing/image_preprocessing.
 */
#ifndef CORNU_NN_LAYERS_AUGMENTATION_H
#define CORNU_NN_LAYERS_AUGMENTATION_H

#include "colors.h"
#include "random.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Cropping ---- */

/* The center, in training and inference; smaller images are resized, with the sides that exceed the
 * ratio cropped first. */
typedef struct {
    char        unset;
    int64_t     height, width;            /* required */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuCropConfig;

CornuLayer *cornu_center_crop_from(const CornuCropConfig *config);
#define cornu_center_crop(...) \
    cornu_center_crop_from(&(CornuCropConfig){ .unset = 0, __VA_ARGS__ })

/* A place that all images of the batch share, in training, of images larger on both sides; others
 * are cropped at the center and resized. In inference it is the identity, as in Keras 3.15. */
CornuLayer *cornu_random_crop_from(const CornuCropConfig *config);
#define cornu_random_crop(...) \
    cornu_random_crop_from(&(CornuCropConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Erasing, blurring, mixing ---- */

/* With the probability `factor`, by default 1, fills a rectangle whose sides are the square roots
 * of scale's numbers, as parts of the image's: with fill_value or fill_values, by default with
 * normal
 * noise times value_range[1]; clipped. */
typedef struct {
    char         unset;
    double       most;
    double       factor[2];
    double       scale[2];                /* default { 0.02, 0.33 } */
    double       fill_value;              /* CORNU_ZERO for 0 */
    CornuNumbers fill_values;             /* three, for RGB */
    double       value_range[2];
    CornuDataFormat data_format;
    const char  *name;
    const char  *dtype;
} CornuRandomErasingConfig;

CornuLayer *cornu_random_erasing_from(const CornuRandomErasingConfig *config);
#define cornu_random_erasing(...) \
    cornu_random_erasing_from(&(CornuRandomErasingConfig){ .unset = 0, __VA_ARGS__ })

/* With the probability `factor`, by default 1, convolves with a normal density, whose standard
 * deviations along both axes all images of the batch share. */
typedef struct {
    char        unset;
    double      most;
    double      factor[2];
    int64_t     kernel_size[2];           /* odd; default 3 */
    double      sigma[2];                 /* default { CORNU_ZERO, 1 } */
    double      value_range[2];
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuRandomGaussianBlurConfig;

CornuLayer *cornu_random_gaussian_blur_from(const CornuRandomGaussianBlurConfig *config);
#define cornu_random_gaussian_blur(...) \
    cornu_random_gaussian_blur_from(&(CornuRandomGaussianBlurConfig){ .unset = 0, __VA_ARGS__ })

/* w x + (1 - w) partner, w of the distribution Beta(alpha, alpha); each image's partner is the one
 * that follows at a distance drawn for the batch. Keras also mixes labels and boxes where they are
 * given in a dictionary, which is not available.
 * Source: Zhang et al., "mixup: Beyond Empirical Risk Minimization", arXiv 1710.09412. */
typedef struct {
    char        unset;
    double      alpha;                    /* above 0; default 0.2 */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuMixUpConfig;

CornuLayer *cornu_mix_up_from(const CornuMixUpConfig *config);
#define cornu_mix_up(...) cornu_mix_up_from(&(CornuMixUpConfig){ .unset = 0, __VA_ARGS__ })

/* A rectangle is the partner's; w as above is the part that is not, alpha is drawn from `factor`,
 * by default 0 to 1, for the batch.
 * Source: Yun et al., "CutMix", arXiv 1905.04899. */
typedef struct {
    char        unset;
    double      most;
    double      factor[2];
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuCutMixConfig;

CornuLayer *cornu_cut_mix_from(const CornuCutMixConfig *config);
#define cornu_cut_mix(...) cornu_cut_mix_from(&(CornuCutMixConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Several of them ---- */

/* num_ops times one of eleven augmentations, drawn for the batch.
 * Source: Cubuk et al., "RandAugment", arXiv 1909.13719. */
typedef struct {
    char               unset;
    double             value_range[2];
    int64_t            num_ops;           /* default 2 */
    double             most;              /* or factor; default 0.5 */
    double             factor[2];
    CornuInterpolation interpolation;     /* default bilinear */
    CornuDataFormat data_format;
    const char        *name;
    const char        *dtype;
} CornuRandAugmentConfig;

CornuLayer *cornu_rand_augment_from(const CornuRandAugmentConfig *config);
#define cornu_rand_augment(...) \
    cornu_rand_augment_from(&(CornuRandAugmentConfig){ .unset = 0, __VA_ARGS__ })

/* A mean of num_chains results of up to chain_depth augmentations each, mixed with the image; what
 * is chosen and how it is weighted is drawn for the batch. Keras chooses once, when it compiles.
 * Source: Hendrycks et al., "AugMix", arXiv 1912.02781. */
typedef struct {
    char               unset;
    double             value_range[2];
    int64_t            num_chains, chain_depth; /* default 3 */
    double             most;              /* or factor; default 0.3 */
    double             factor[2];
    double             alpha;             /* of the weights; default 1 */
    bool               not_all_ops;       /* without changes of color */
    CornuInterpolation interpolation;     /* default bilinear */
    CornuDataFormat data_format;
    const char        *name;
    const char        *dtype;
} CornuAugMixConfig;

CornuLayer *cornu_aug_mix_from(const CornuAugMixConfig *config);
#define cornu_aug_mix(...) cornu_aug_mix_from(&(CornuAugMixConfig){ .unset = 0, __VA_ARGS__ })

/* Images as they are: Keras pads bounding boxes to max_number where they are given in a dictionary,
 * which is not available. */
typedef struct {
    char        unset;
    int64_t     max_number;               /* required */
    CornuDataFormat data_format;
    const char *name;
    const char *dtype;
} CornuMaxNumBoundingBoxesConfig;

CornuLayer *cornu_max_num_bounding_boxes_from(const CornuMaxNumBoundingBoxesConfig *config);
#define cornu_max_num_bounding_boxes(...) \
    cornu_max_num_bounding_boxes_from(&(CornuMaxNumBoundingBoxesConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
