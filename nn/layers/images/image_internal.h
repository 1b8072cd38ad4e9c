/* Changes of images, for the layers of augmentation.h and for those made of several of them. Images
 * are (B, H, W, C) in f32; a factor is (B, 1, 1, 1), or scalar-like where all images share it. */
#ifndef CORNU_NN_IMAGE_INTERNAL_H
#define CORNU_NN_IMAGE_INTERNAL_H

#include "../augmentation.h"
#include "../reshaping/resampling_internal.h"

/* ---- Calls ---- */

/* What a layer does to images. */
typedef CornuTensor *CornuImageChange(const CornuLayer *layer, const CornuCall *call,
                                      CornuTensor *x);

/* What tells the classes apart, kind->family, or its first member. */
typedef struct {
    CornuImageChange *change;
    bool              always;   /* in inference too */
} CornuImageFamily;

/* For class tables: x, of any number type and perhaps without a batch, in the layer's compute
 * dtype, changed. */
CornuTensor *cornu__image_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* Both, with such a family. */
#define CORNU__CHANGES_IMAGES(change, always)                                          \
    .build = cornu__build_images, .call = cornu__image_call, .mask = cornu__no_mask,   \
    .one_image = true, .family = &(const CornuImageFamily){ change, always }

/* ---- Random numbers: a row of uniform ones in [0, 1) for each image, taken one by one ---- */

typedef struct {
    CornuTensor *numbers;     /* (B, count), or (1, count) where all images share them */
    int64_t      next;
} CornuDraws;

CornuDraws cornu__draws(const CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                        int64_t count);
/* Of another generator than those. A layer may use both. */
CornuDraws cornu__shared_draws(const CornuLayer *layer, const CornuCall *call, int64_t count);

/* The next number, (B, 1, 1, 1); in [range[0], range[1]), of which CORNU_ZERO is 0. */
CornuTensor *cornu__draw(CornuDraws *draws);
CornuTensor *cornu__draw_between(CornuDraws *draws, const double range[2]);
/* The next `count` numbers, (B, count). */
CornuTensor *cornu__draw_many(CornuDraws *draws, int64_t count);
/* bool: a number drawn from the range exceeds one from 0 to 1. Takes two. */
CornuTensor *cornu__draw_chance(CornuDraws *draws, const double range[2]);

/* Standard normal numbers of this shape, which has B rows. Takes two for each element of a row. */
CornuTensor *cornu__draw_normal(CornuDraws *draws, CornuShape shape);

/* log of numbers of the distribution Gamma(alpha), alpha like the draws. */
enum { CORNU_GAMMA_DRAWS = 19 };
CornuTensor *cornu__draw_log_gamma(CornuDraws *draws, CornuTensor *alpha);

/* ---- Arguments ---- */

/* Resolves a range from 0 to 255 by default; zeros become CORNU_ZERO. */
CornuStatus cornu__resolve_value_range(const CornuLayer *layer, double range[2]);

/* Resolves a factor: `most` gives from max(-most, low) to most, `usual` (if not 0) stands for an
 * absent one; the result overlaps [low, high]. Zeros become CORNU_ZERO. */
CornuStatus cornu__resolve_factor(const CornuLayer *layer, const char *argument, double *most,
                                  double range[2], double usual, double low, double high);

static inline double cornu__end(const double range[2], int i)
{
    return cornu__number(range[i], 0.0);
}

/* ---- Helpers ---- */

/* Maps [from[0], from[1]] to [to[0], to[1]]. */
CornuTensor *cornu__map_range(CornuTensor *x, const double from[2], const double to[2]);
CornuTensor *cornu__clip_to(CornuTensor *x, const double range[2]);
/* x < y, x the constant: as booleans */
CornuTensor *cornu__less(CornuTensor *x, CornuTensor *y);
CornuTensor *cornu__below(CornuTensor *x, double bound);
extern const double cornu__bytes[2];      /* 0 (CORNU_ZERO) to 255 */

/* ---- Changes ---- */

CornuTensor *cornu__change_contrast(CornuTensor *x, CornuDraws *draws, const double factor[2],
                                    const double range[2]);
CornuTensor *cornu__change_brightness(CornuTensor *x, CornuDraws *draws, const double factor[2],
                                      const double range[2]);
CornuTensor *cornu__change_saturation(CornuTensor *x, CornuDraws *draws, const double factor[2],
                                      const double range[2]);
CornuTensor *cornu__change_hue(CornuTensor *x, CornuDraws *draws, const double factor[2],
                               const double range[2]);
CornuTensor *cornu__degenerate(CornuTensor *x, CornuDraws *draws, const double factor[2],
                               const double range[2]);
CornuTensor *cornu__sharpen(CornuTensor *x, CornuDraws *draws, const double factor[2],
                            const double range[2]);
CornuTensor *cornu__invert(CornuTensor *x, CornuDraws *draws, const double factor[2],
                           const double range[2]);
CornuTensor *cornu__posterize(CornuTensor *x, CornuDraws *draws, const int64_t factor[2],
                              const double range[2]);
CornuTensor *cornu__grayscale(CornuTensor *x);
CornuTensor *cornu__solarize(CornuTensor *x, CornuDraws *draws, const double addition[2],
                             const double threshold[2], const double range[2]);
CornuTensor *cornu__spread_levels(CornuTensor *x, const double range[2]);
CornuTensor *cornu__equalize(const CornuCall *call, CornuTensor *x, int64_t bins,
                             const double range[2]);

#endif
