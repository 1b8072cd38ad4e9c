/* Pools of one, two or three axes, from pools of images. */
#ifndef CORNU_NN_LAYERS_POOLING_INTERNAL_H
#define CORNU_NN_LAYERS_POOLING_INTERNAL_H

#include "../convolutional/convolution_internal.h"

/* The most positions that a window of the ops has (tensor/ops.h). */
enum { CORNU_MOST_POSITIONS = 255 };

/* Functions: x (B, …, C) pooled along the axes between. */
typedef CornuTensor *CornuPoolFunction(CornuTensor *x, CornuPadding padding, const int64_t *size,
                                       const int64_t *strides);
CornuPoolFunction cornu__max_pool, cornu__average_pool;

#endif
