/* How images are resized: what the layers record, and what a file of such a layer has to hold. */
#ifndef CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H
#define CORNU_NN_LAYERS_RESAMPLING_INTERNAL_H

#include "../layer_internal.h"

typedef struct {
    CornuInterpolation interpolation;
    bool               antialias;
} CornuResampling;

/* The weights (to, from), or turned (from, to), by which `from` pixels along an axis make `to`. */
CornuStatus cornu__resampling_weights(const CornuResampling *how, int64_t from, int64_t to,
                                      bool turned, float *values);

/* Of images of from[0] by from[1] that shall become `size`: the extents of the middle part that has
 * its ratio, as large as it goes; and how many rows and columns Keras adds on either side, where
 * one that is left over is not. */
void cornu__crop_to_ratio(const int64_t from[2], const int64_t size[2], int64_t part[2]);
void cornu__pad_to_ratio(const int64_t from[2], const int64_t size[2], int64_t around[2]);

#endif
