/* Resizing of images. */
#ifndef CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H
#define CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H

#include "../layer_internal.h"

typedef struct {
    CornuInterpolation interpolation;
    bool               antialias;
} CornuResampling;

/* x (B, H, W, C) to (B, height, width, C). */
CornuTensor *cornu__resize(CornuTensor *x, int64_t height, int64_t width,
                           const CornuResampling *how);

/* For images of from[0] by from[1] to be resized to `size`: the extents of the largest center part
 * with that aspect ratio. */
void cornu__crop_to_ratio(const int64_t from[2], const int64_t size[2], int64_t part[2]);

#endif
