/* Activation and Rescaling, element by element. */
#include "../layer_internal.h"

/* ---- Activation ---- */

typedef CORNU__LAYER(CornuActivationConfig) Activation;

static CornuTensor *activation_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__layer_activate(layer, call, ((Activation *)layer)->config.activation, x);
}

static CornuStatus activation_resolve(CornuLayer *layer)
{
    CornuActivationConfig *config = &((Activation *)layer)->config;
    return cornu__resolve_activation(layer, &config->activation);
}

static const CornuField activation_fields[] = {
    { "activation", CORNU_FIELD_ACTIVATION, offsetof(CornuActivationConfig, activation) },
    { 0 },
};

const CornuLayerClass cornu__activation_class = {
    .class_name = "Activation", .size = sizeof(Activation), .call = activation_call,
    .activates = true,
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(activation_fields, Activation, activation_resolve),
    },
};

CORNU__CONSTRUCTOR(activation, CornuActivationConfig)

/* ---- Rescaling ---- */

typedef CORNU__LAYER(CornuRescalingConfig) Rescaling;

/* The array in x's dtype. */
static CornuTensor *like(CornuTensor *x, const CornuCall *call, const CornuNumbers *numbers)
{
    if (!x) return NULL;
    return cornu_op_convert(cornu__numbers_tensor(call, numbers, numbers->shape),
                            cornu_tensor_type(x).dtype);
}

static CornuTensor *rescaling_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRescalingConfig *config = &((Rescaling *)layer)->config;
    x = cornu_op_convert(x, layer->compute);   /* whole numbers too */
    CornuTensor *y = config->scales.values
        ? cornu_op_multiply(x, like(x, call, &config->scales))
        : cornu_op_scale(x, cornu__number(config->scale, 0.0));
    const double offset = cornu__number(config->offset, 0.0);
    if (config->offsets.values) return cornu_op_add(y, like(y, call, &config->offsets));
    return offset == 0.0 ? y : cornu_op_shift(y, offset);
}

static CornuStatus rescaling_resolve(CornuLayer *layer)
{
    CornuRescalingConfig *config = &((Rescaling *)layer)->config;
    const char           *name = cornu_layer_name(layer);
    if (config->scale == 0.0 && !config->scales.values)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .scale is required", name);
    if ((config->scale != 0.0 && config->scales.values) ||
        (config->offset != 0.0 && config->offsets.values))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .scale and .scales, or .offset and "
                           ".offsets, are given, expected one of them", name);
    CORNU__TRY(cornu__layer_copy_numbers(layer, &config->scales));
    return cornu__layer_copy_numbers(layer, &config->offsets);
}

static const CornuField rescaling_fields[] = {
    { "scale", CORNU_FIELD_NUMBER, offsetof(CornuRescalingConfig, scale) },
    { "scale", CORNU_FIELD_NUMBERS, offsetof(CornuRescalingConfig, scales) },
    { "offset", CORNU_FIELD_NUMBER, offsetof(CornuRescalingConfig, offset) },
    { "offset", CORNU_FIELD_NUMBERS, offsetof(CornuRescalingConfig, offsets) },
    { 0 },
};

const CornuLayerClass cornu__rescaling_class = {
    .class_name = "Rescaling", .size = sizeof(Rescaling), .call = rescaling_call,
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(rescaling_fields, Rescaling, rescaling_resolve),
    },
};

CORNU__CONSTRUCTOR(rescaling, CornuRescalingConfig)
