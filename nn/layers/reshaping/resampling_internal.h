/* Resizing of images, for the layers and for their export to ONNX. */
#ifndef CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H
#define CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H

#include "../layer_internal.h"

typedef struct {
    CornuInterpolation interpolation;
    bool               antialias;
} CornuResampling;

/* The matrix (to, from), or transposed (from, to), that maps `from` pixels along an axis to
 * `to`. */
CornuStatus cornu__resampling_weights(const CornuResampling *how, int64_t from, int64_t to,
                                      bool transposed, float *values);

/* x (B, H, W, C) to (B, height, width, C). */
CornuTensor *cornu__resize(CornuGraph *graph, CornuTensor *x, int64_t height, int64_t width,
                           const CornuResampling *how);

/* For images of from[0] by from[1] to be resized to `size`: the extents of the largest center part
 * with that aspect ratio; and the rows and columns that Keras pads on each side, without an odd
 * remaining one. */
void cornu__crop_to_ratio(const int64_t from[2], const int64_t size[2], int64_t part[2]);
void cornu__pad_to_ratio(const int64_t from[2], const int64_t size[2], int64_t around[2]);

#endif
