/* One call of a layer by itself, on the cpu. */
#ifndef CORNU_TESTS_NN_CALL_LAYER_H
#define CORNU_TESTS_NN_CALL_LAYER_H

#include "../../../nn/cornu.h"

typedef struct {
    bool           training;
    int64_t        position, iteration;   /* of the first row in the batch, and of the step */
    const uint8_t *mask;                  /* (B, T); or NULL */
} LayerCall;

/* Builds and calls the layer, which is taken, on x of any type; y gets the result, converted to
 * f32, which has at most `most` elements. Returns their number. */
int64_t call_layer(CornuLayer *layer, CornuArray x, const LayerCall *how, float *y, int64_t most);

#endif
