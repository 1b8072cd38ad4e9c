/* Dropout and its relatives: the shape of the draws. */
#ifndef CORNU_NN_NOISE_INTERNAL_H
#define CORNU_NN_NOISE_INTERNAL_H

#include "../layer_internal.h"

typedef CORNU__LAYER(CornuDropoutConfig) CornuDropoutLayer;

/* For kind->resolve: replaces the default rate by 0; CORNU_ERR_ARGUMENT unless it is 0 to 1. */
CornuStatus cornu__resolve_share(const CornuLayer *layer, double *rate);

/* Likewise: CORNU_ERR_ARGUMENT for an extent below 1. */
CornuStatus cornu__check_noise_shape(const CornuLayer *layer, const int64_t *noise);

/* For class tables: kind->build, CORNU_ERR_SHAPE if the noise cannot be broadcast to the input. */
CornuStatus cornu__build_noise(CornuLayer *layer, CornuShape input);

/* The shape of the draws for x. */
CornuShape cornu__noise_of(const CornuLayer *layer, CornuShape x);

/* The position of the draws' first row: 0 if all rows of the batch share them. */
CornuTensor *cornu__noise_position(const CornuLayer *layer, const CornuCall *call);

#endif
