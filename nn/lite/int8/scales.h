/* Scales and zero points: which operators have which. */
#ifndef CORNU_NN_LITE_SCALES_H
#define CORNU_NN_LITE_SCALES_H

#include "../../../device/edgetpu/kernels.h"
#include "ranges.h"

/* Of an activation: 255 steps over the range with 0 in it, 0 itself exact. */
CornuAffine cornu__lite_scale_of(CornuLiteRange range);

/* Whether an operator only moves or selects values of input 0, and its result has that scale. */
bool cornu__lite_keeps_scale(CornuLiteCode code);

/* Whether all its operands and its result have one scale. */
bool cornu__lite_shares_scale(CornuLiteCode code);

/* Whether its result always has the same scale, which is set. */
bool cornu__lite_fixed_scale(CornuLiteCode code, CornuAffine *scale);

/* The input that is a product's weights, its axis of output channels, and its bias; false for an
 * operator without. */
typedef struct {
    int x, weights, axis, bias;
} CornuLiteProduct;

bool cornu__lite_product(CornuLiteCode code, CornuLiteProduct *product);

/* The scale and zero point of each tensor of a graph that is not a constant. */
CornuStatus cornu__lite_scales(const CornuLiteGraph *graph, const CornuLiteRange *ranges,
                               CornuAffine *scales);

#endif
