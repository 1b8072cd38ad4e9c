/* SpatialDropout of sequences, images and volumes: whole channels. */
#include "../layer_internal.h"

typedef struct {
    CornuLayer                base;
    CornuSpatialDropoutConfig config;
} SpatialDropout;

/* One number per row and channel, drawn in f32 whatever the dtype of x. */
static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
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

static CornuLayer *create(const CornuLayerClass *kind, const char *label,
                          const CornuSpatialDropoutConfig *config)
{
    const double rate = cornu__number(config->rate, 0.0);
    if (!(rate >= 0.0 && rate <= 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .rate is %g, expected 0 to 1",
                                config->name ? config->name : label, rate);
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (!layer) return NULL;
    ((SpatialDropout *)layer)->config.rate = rate;
    ((SpatialDropout *)layer)->config.data_format = config->data_format;
    return layer;
}

static CornuLayer *from1d(const void *config) { return cornu_spatial_dropout1d_from(config); }
static CornuLayer *from2d(const void *config) { return cornu_spatial_dropout2d_from(config); }
static CornuLayer *from3d(const void *config) { return cornu_spatial_dropout3d_from(config); }

#define RATE { "rate", CORNU_FIELD_NUMBER, offsetof(CornuSpatialDropoutConfig, rate) }
static const CornuField sequence_fields[] = { RATE, { 0 } };   /* Keras' has no data_format */
static const CornuField fields[] = {
    RATE,
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuSpatialDropoutConfig, data_format) },
    { 0 },
};

#define COMMON .size = sizeof(SpatialDropout), .build = cornu__build_spatial, .call = call

const CornuLayerClass cornu__spatial_dropout1d_class = {
    .class_name = "SpatialDropout1D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(sequence_fields, SpatialDropout, from1d),
                                       .never_trains = true },
};
const CornuLayerClass cornu__spatial_dropout2d_class = {
    .class_name = "SpatialDropout2D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, SpatialDropout, from2d),
                                       .never_trains = true },
};
const CornuLayerClass cornu__spatial_dropout3d_class = {
    .class_name = "SpatialDropout3D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, SpatialDropout, from3d),
                                       .never_trains = true },
};

CornuLayer *cornu_spatial_dropout1d_from(const CornuSpatialDropoutConfig *config)
{
    return create(&cornu__spatial_dropout1d_class, "spatial_dropout1d", config);
}

CornuLayer *cornu_spatial_dropout2d_from(const CornuSpatialDropoutConfig *config)
{
    return create(&cornu__spatial_dropout2d_class, "spatial_dropout2d", config);
}

CornuLayer *cornu_spatial_dropout3d_from(const CornuSpatialDropoutConfig *config)
{
    return create(&cornu__spatial_dropout3d_class, "spatial_dropout3d", config);
}
