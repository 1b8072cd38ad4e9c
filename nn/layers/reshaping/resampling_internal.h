/* Resizing of images. */
#ifndef CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H
#define CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H

#include "../layer_internal.h"

typedef struct {
    CornuInterpolation interpolation;
    bool               antialias;
} CornuResampling;

/* kind->build of layers of images: (B, H, W, C) or (H, W, C). */
CornuStatus cornu__build_images(CornuLayer *layer, CornuShape input);

/* An image (H, W, C) as a batch of one, and back to that rank; a batch as it is. */
CornuTensor *cornu__as_batch(CornuTensor *x);
CornuTensor *cornu__of_batch(CornuTensor *y, int rank);

/* x (B, H, W, C) to (B, height, width, C). */
CornuTensor *cornu__resize(CornuTensor *x, int64_t height, int64_t width,
                           const CornuResampling *how);

/* For images of from[0] by from[1] to be resized to `size`: the extents of the largest center part
 * with that aspect ratio. */
void cornu__crop_to_ratio(const int64_t from[2], const int64_t size[2], int64_t part[2]);

#endif
