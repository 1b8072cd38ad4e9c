/* A window that moves along one axis of an image: what convolution and pooling share. */
#ifndef CORNU_DEVICE_OPS_WINDOW_H
#define CORNU_DEVICE_OPS_WINDOW_H

#include "rules.h"

/* Output o reads, for u in [0, size), position o stride + u dilation - low, if it is in
 * [0, in). */
typedef struct {
    int64_t in, size, stride, dilation, low, high;
    int64_t out;   /* floor((in + low + high - dilation (size - 1) - 1) / stride) + 1 */
} CornuSweep;

/* The sweeps along height (0) and width (1) of a convolution or pooling op or its gradient; zero
 * strides and dilations become 1. Extents are those of the forward op: `in` is x's. False if no
 * window fits, or a number is out of range; always true for a call that passed its type rule. */
bool cornu__sweeps(const CornuOpCall *call, CornuSweep sweeps[2]);

/* The groups of a convolution or of its gradient; 1 for ops that are not grouped. */
int64_t cornu__conv_groups(const CornuOpCall *call);

/* The position that output o reads with tap u, -1 for padding. */
static inline int64_t cornu__tap(const CornuSweep *sweep, int64_t o, int64_t u)
{
    int64_t position = o * sweep->stride + u * sweep->dilation - sweep->low;
    return position >= 0 && position < sweep->in ? position : -1;
}

#endif
