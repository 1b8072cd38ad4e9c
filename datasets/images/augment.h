/*
 * More images than there are: each is shifted and mirrored at random, anew in each epoch.
 *
 *     train = cornu_dataset_augment(train, .shift = 2, .flip = true, .seed = seed);
 *     cornu_fit(model, .data = train, .batch_size = 512, .validation_data = test);
 *
 * A stage of the pipeline (dataset.h) that stands before batch, on either side of a shuffle; the
 * prefetch thread runs it. The random numbers belong to (seed, epoch, index) alone, so that threads
 * and resuming change nothing; in front of the shuffle, as above, the index is the image's own
 * number. fit shuffles what comes to it unbatched.
 */
#ifndef CORNU_DATASETS_AUGMENT_H
#define CORNU_DATASETS_AUGMENT_H

#include "../pipeline/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char          unset;
    CornuDataset *source;   /* its first component are images, (H, W) or (H, W, C), stored in any
                               dtype; the others stay */
    int64_t       shift;    /* by up to so many pixels up or down, and left or right, each distance
                               as likely; what comes in from outside is zero. Below H and W */
    bool          flip;     /* every other image, on average, is mirrored left to right, and then
                               shifted */
    uint64_t      seed;
} CornuAugmentConfig;

/* Takes source. NULL and a pending error: CORNU_ERR_SHAPE for other shapes and for a shift that is
 * no less than the image, CORNU_ERR_ARGUMENT for a shift below 0, a source that is batched, that
 * repeats without end, or has more than 2^32 - 1 elements. */
CornuDataset *cornu_dataset_augment_from(const CornuAugmentConfig *config);
#define cornu_dataset_augment(...) \
    cornu_dataset_augment_from(&(CornuAugmentConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
