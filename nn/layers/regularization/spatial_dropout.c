/* SpatialDropout of sequences, images and volumes: whole channels. */
#include "noise_internal.h"

typedef CORNU__LAYER(CornuSpatialDropoutConfig) SpatialDropout;

/* One number per row and channel, drawn in f32 whatever the dtype of x. */
static CornuTensor *spatial_dropout_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double rate = ((SpatialDropout *)layer)->config.rate;
    if (!x || !call->training || rate == 0.0) return x;
    if (rate == 1.0) return cornu_op_constant_like(x, 0.0);
    CornuShape shape = cornu_tensor_shape(x);
    for (int i = 1; i < shape.rank - 1; i++) shape.extent[i] = 1;
    CornuTensor *ones = cornu_op_constant(call->graph, cornu_type_from(CORNU_F32, shape), 1.0);
    CornuTensor *factor = cornu_op_dropout(ones, rate, call->seed, call->iteration,
                                           call->position, layer->generator);
    CornuTensor *y = cornu_op_multiply(cornu_op_convert(x, CORNU_F32), factor);
    return y ? cornu_op_convert(y, cornu_tensor_type(x).dtype) : NULL;
}

static CornuStatus spatial_dropout_resolve(CornuLayer *layer)
{
    return cornu__resolve_share(layer, &((SpatialDropout *)layer)->config.rate);
}

#define RATE { "rate", CORNU_FIELD_NUMBER, offsetof(CornuSpatialDropoutConfig, rate) }
static const CornuField sequence_fields[] = { RATE, { 0 } };   /* Keras' has no data_format */
static const CornuField fields[] = {
    RATE,
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuSpatialDropoutConfig, data_format) },
    { 0 },
};

#define COMMON \
    .size = sizeof(SpatialDropout), .build = cornu__build_spatial, .call = spatial_dropout_call

const CornuLayerClass cornu__spatial_dropout1d_class = {
    .class_name = "SpatialDropout1D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(sequence_fields, SpatialDropout,
                                                     spatial_dropout_resolve),
                                       .never_trains = true },
};
const CornuLayerClass cornu__spatial_dropout2d_class = {
    .class_name = "SpatialDropout2D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, SpatialDropout,
                                                     spatial_dropout_resolve),
                                       .never_trains = true },
};
const CornuLayerClass cornu__spatial_dropout3d_class = {
    .class_name = "SpatialDropout3D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, SpatialDropout,
                                                     spatial_dropout_resolve),
                                       .never_trains = true },
};

CORNU__CONSTRUCTOR(spatial_dropout1d, CornuSpatialDropoutConfig)
CORNU__CONSTRUCTOR(spatial_dropout2d, CornuSpatialDropoutConfig)
CORNU__CONSTRUCTOR(spatial_dropout3d, CornuSpatialDropoutConfig)
