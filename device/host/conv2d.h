/* Convolutions: what both devices' kernels of conv2d, conv2d_grad_input and conv2d_grad_filter,
 * and of these joined with a pooling, are made of. Scratch memory in bytes. */
#ifndef CORNU_DEVICE_HOST_CONV2D_H
#define CORNU_DEVICE_HOST_CONV2D_H

#include "precision.h"

/* conv2d and conv2d_grad_input. */
size_t      cornu__conv2d_scratch(const CornuOpCall *op, const CornuType *out_type,
                                  CornuMultiplier multiplier, int threads);
size_t      cornu__conv2d_pooled_scratch(const CornuOpCall *op, const CornuType *out_type,
                                         CornuMultiplier multiplier, int threads);
CornuStatus cornu__conv2d(const CornuKernelCall *call, CornuMultiplier multiplier);

/* conv2d_grad_filter. Joined with a pooling's gradient it takes a number of filters that fills
 * registers. */
size_t      cornu__conv2d_grad_filter_scratch(const CornuOpCall *op, const CornuType *out_type,
                                              CornuMultiplier multiplier, int threads, bool pooled);
bool        cornu__conv2d_grad_filter_takes_pool(const CornuOpCall *op);
CornuStatus cornu__conv2d_grad_filter(const CornuKernelCall *call, CornuMultiplier multiplier);

#endif
