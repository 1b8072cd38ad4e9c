/*
 * Convolutions of volumes by the ops for images: the planes that the taps along the depth read
 * become channels of one image per output plane, and the kernel's taps input channels.
 */
#ifndef CORNU_NN_LAYERS_DEPTH_INTERNAL_H
#define CORNU_NN_LAYERS_DEPTH_INTERNAL_H

#include "../layer_internal.h"

/* The window along the depth; low and high are planes of zeros before and after, negative ones
 * only where planes are scattered. */
typedef struct {
    int64_t size, stride, dilation, low, high;
} CornuDepth;

/* x (B, D, H, W, C) to (B Do, H, W, size C), where channels are ordered by group, tap, channel. */
CornuTensor *cornu__gather_planes(CornuTensor *x, const CornuDepth *depth, int64_t groups);

/* The transpose of gathering, without groups: y (rows D, H, W, size F) to (rows, out, H, W, F). */
CornuTensor *cornu__scatter_planes(CornuTensor *y, int64_t rows, const CornuDepth *depth,
                                   int64_t out);

/* The kernel (d, h, w, from, to) as (h, w, d from, to). */
CornuTensor *cornu__flat_kernel(CornuTensor *kernel);

/* Resolved arguments, each {d, h, w}. */
typedef struct {
    CornuPadding padding;
    int64_t      size[3], strides[3], dilation[3];
} CornuVolumeWindow;

/* x (B, D, H, W, C) convolved with the kernel (d, h, w, C / groups, F): (B, D', H', W', F). */
CornuTensor *cornu__convolve_volume(CornuTensor *x, CornuTensor *kernel,
                                    const CornuVolumeWindow *window, int64_t groups);

#endif
