/* Pools of one, two or three axes, from pools of images. */
#ifndef CORNU_NN_LAYERS_POOLING_INTERNAL_H
#define CORNU_NN_LAYERS_POOLING_INTERNAL_H

#include "../convolutional/convolution_internal.h"

/* The most positions that a window of the ops has (tensor/ops.h). */
enum { CORNU_MOST_POSITIONS = 255 };

/* The parts of a layer that adapts `from` elements to `to` along an axis: part i is elements
 * start to end - 1. */
static inline int64_t cornu__adaptive_start(int64_t i, int64_t from, int64_t to)
{
    return i * from / to;
}
static inline int64_t cornu__adaptive_end(int64_t i, int64_t from, int64_t to)
{
    return ((i + 1) * from + to - 1) / to;
}

typedef CornuTensor *CornuPoolOp(CornuTensor *x, const CornuWindow *window);

typedef struct {
    int     axes;
    int64_t size[3], strides[3], low[3], high[3];
} CornuPool;

/* Pools x (B, …, C). The axes are pooled one after the other where the op has no window for them:
 * the maximum of maxima is that of all, of equal ones the first; and as each part of a window has
 * the same number of elements that are not padding, the mean of means is theirs. */
CornuTensor *cornu__pool_axes(CornuTensor *x, const CornuPool *pool, CornuPoolOp *op);

#endif
