/* Layers of keras.applications: LayerScale, StochasticDepth, CustomScaleLayer. */
#include "../applications.h"

#include <math.h>

#include "../layer_internal.h"

/* ---- LayerScale ---- */

typedef CORNU__LAYER(CornuLayerScaleConfig) LayerScale;

/* Keras gives the weight no name, and so the default one. */
static CornuStatus scale_build(CornuLayer *layer, CornuShape input)
{
    const CornuLayerScaleConfig *config = &((LayerScale *)layer)->config;
    const int64_t channels = input.extent[input.rank - 1];
    if (channels != config->projection_dim)
        return cornu__fail(CORNU_ERR_SHAPE, "the input has %lld channels, .projection_dim is %lld",
                           (long long)channels, (long long)config->projection_dim);
    return cornu_layer_weight(layer, "variable", cornu_shape(channels),
                              cornu_constant(config->init_values), false);
}

static CornuTensor *scale_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu_op_multiply(x, cornu_layer_read(layer, call, 0));
}

static CornuStatus scale_resolve(CornuLayer *layer)
{
    const CornuLayerScaleConfig *config = &((LayerScale *)layer)->config;
    const char                  *name = cornu_layer_name(layer);
    if (!isfinite(config->init_values))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .init_values is %g, expected a finite number",
                           name, config->init_values);
    return cornu__positive(name, "projection_dim", config->projection_dim);
}

static const CornuField scale_fields[] = {
    { "init_values", CORNU_FIELD_NUMBER, offsetof(CornuLayerScaleConfig, init_values) },
    { "projection_dim", CORNU_FIELD_INTEGER, offsetof(CornuLayerScaleConfig, projection_dim) },
    { 0 },
};

const CornuLayerClass cornu__layer_scale_class = {
    .class_name = "LayerScale", .size = sizeof(LayerScale), .build = scale_build,
    .call = scale_call,
    .keras = &(const CornuKerasClass){ .module = "keras.src.applications.convnext",
                                       CORNU__TRAINED(scale_fields, LayerScale, scale_resolve) },
};

CORNU__CONSTRUCTOR(layer_scale, CornuLayerScaleConfig)

/* ---- StochasticDepth ---- */

typedef CORNU__LAYER(CornuStochasticDepthConfig) StochasticDepth;

static CornuTensor *depth_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double rate = ((StochasticDepth *)layer)->config.drop_path_rate;
    if (!call->training || rate == 0.0) return x;
    CornuType rows = cornu_tensor_type(x);
    for (int i = 1; i < rows.shape.rank; i++) rows.shape.extent[i] = 1;
    CornuTensor *factor = cornu_op_dropout(cornu_op_constant(call->graph, rows, 1.0), rate,
                                           call->seed, call->iteration, call->position,
                                           layer->generator);
    return cornu_op_multiply(x, factor);
}

static CornuStatus depth_resolve(CornuLayer *layer)
{
    return cornu__resolve_rate(layer, "drop_path_rate",
                               &((StochasticDepth *)layer)->config.drop_path_rate);
}

static const CornuField depth_fields[] = {
    { "drop_path_rate", CORNU_FIELD_NUMBER, offsetof(CornuStochasticDepthConfig, drop_path_rate) },
    { 0 },
};

const CornuLayerClass cornu__stochastic_depth_class = {
    .class_name = "StochasticDepth", .size = sizeof(StochasticDepth), .call = depth_call,
    .keras = &(const CornuKerasClass){
        .module = "keras.src.applications.convnext",
        CORNU__CONFIG(depth_fields, StochasticDepth, depth_resolve),
    },
};

CORNU__CONSTRUCTOR(stochastic_depth, CornuStochasticDepthConfig)

/* ---- CustomScaleLayer ---- */

typedef CORNU__LAYER(CornuCustomScaleLayerConfig) CustomScale;

static CornuStatus sum_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuText a, b;
    (void)layer;
    if (in_count != 2)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, expected 2", in_count);
    if (cornu_shape_equal(in[0], in[1])) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the inputs are %s and %s, expected the same shape",
                       cornu_shape_print(&a, in[0]), cornu_shape_print(&b, in[1]));
}

static CornuTensor *sum_call(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                             int in_count, CornuTensor **out)
{
    const double scale = cornu__number(((CustomScale *)layer)->config.scale, 0.0);
    (void)call, (void)in_count, (void)out;
    return cornu_op_add(in[0], cornu_op_scale(in[1], scale));
}

static CornuStatus sum_resolve(CornuLayer *layer)
{
    const double scale = ((CustomScale *)layer)->config.scale;
    if (isfinite(scale)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .scale is %g, expected a finite number",
                       cornu_layer_name(layer), scale);
}

static const CornuField sum_fields[] = {
    { "scale", CORNU_FIELD_NUMBER, offsetof(CornuCustomScaleLayerConfig, scale) },
    { 0 },
};

const CornuLayerClass cornu__custom_scale_layer_class = {
    .class_name = "CustomScaleLayer", .size = sizeof(CustomScale), .build_many = sum_build,
    .call_many = sum_call,
    .keras = &(const CornuKerasClass){ .module = "keras.src.applications.inception_resnet_v2",
                                       CORNU__CONFIG(sum_fields, CustomScale, sum_resolve) },
};

CORNU__CONSTRUCTOR(custom_scale_layer, CornuCustomScaleLayerConfig)
