/*
 * Augmentation: images are shifted and mirrored at random, differently in each epoch.
 *
 *     train = cornu_dataset_augment(train, .shift = 2, .flip = true, .seed = seed);
 *     cornu_fit(model, .data = train, .batch_size = 512, .validation_data = { .data = test });
 *
 * A stage of the pipeline (dataset.h), before batch and on either side of a shuffle, run by the
 * prefetch thread. The random numbers depend on (seed, epoch, index) alone, so that threads and
 * resuming make no difference; before the shuffle, as above, the index is the image's number. fit
 * shuffles data sets that are not batched.
 */
#ifndef CORNU_DATASETS_AUGMENT_H
#define CORNU_DATASETS_AUGMENT_H

#include "../pipeline/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char          unset;
    CornuDataset *source;   /* the first component is an image, (H, W) or (H, W, C) of any dtype;
                               the others are unchanged */
    int64_t       shift;    /* maximum shift in pixels, vertically and horizontally, all shifts
                               equally likely; vacated pixels are zero. Less than H and W */
    bool          flip;     /* mirror left to right, before the shift, with probability 1/2 */
    uint64_t      seed;
} CornuAugmentConfig;

/* Takes ownership of source. NULL and a pending error: CORNU_ERR_SHAPE for other shapes and for a
 * shift not less than the image's extents, CORNU_ERR_ARGUMENT for a negative shift and for a source
 * that is batched, endless, or has more than 2^32 - 1 elements. */
CornuDataset *cornu_dataset_augment_from(const CornuAugmentConfig *config);
#define cornu_dataset_augment(...) \
    cornu_dataset_augment_from(&(CornuAugmentConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
