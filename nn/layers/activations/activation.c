/* Activation and Rescaling, element by element. */
#include "../layer_internal.h"

/* ---- Activation ---- */

typedef struct {
    CornuLayer            base;
    CornuActivationConfig config;
} Activation;

static CornuTensor *activation_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__layer_activate(layer, call, ((Activation *)layer)->config.activation, x);
}

static CornuLayer *activation_from(const void *config) { return cornu_activation_from(config); }

static const CornuField activation_fields[] = {
    { "activation", CORNU_FIELD_ACTIVATION, offsetof(CornuActivationConfig, activation) },
    { 0 },
};

const CornuLayerClass cornu__activation_class = {
    .class_name = "Activation", .size = sizeof(Activation), .call = activation_call,
    .activates = true,
    .keras = &(const CornuKerasClass){
        CORNU__SAVED(activation_fields, Activation, activation_from),
    },
};

CornuLayer *cornu_activation_from(const CornuActivationConfig *config)
{
    if (cornu__check_enums(config->name ? config->name : "activation", config->activation, NULL,
                           0))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__activation_class, config->name, config->dtype);
    if (!layer) return NULL;
    CornuActivationConfig *to = &((Activation *)layer)->config;
    to->activation = cornu__activation(config->activation, CORNU_LINEAR);
    return cornu__with_activation(layer, to->activation);
}

/* ---- Rescaling ---- */

typedef struct {
    CornuLayer           base;
    CornuRescalingConfig config;
} Rescaling;

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

static CornuLayer *rescaling_from(const void *config) { return cornu_rescaling_from(config); }

static const CornuField rescaling_fields[] = {
    { "scale", CORNU_FIELD_NUMBER, offsetof(CornuRescalingConfig, scale) },
    { "scale", CORNU_FIELD_NUMBERS, offsetof(CornuRescalingConfig, scales) },
    { "offset", CORNU_FIELD_NUMBER, offsetof(CornuRescalingConfig, offset) },
    { "offset", CORNU_FIELD_NUMBERS, offsetof(CornuRescalingConfig, offsets) },
    { 0 },
};

const CornuLayerClass cornu__rescaling_class = {
    .class_name = "Rescaling", .size = sizeof(Rescaling), .call = rescaling_call,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(rescaling_fields, Rescaling, rescaling_from) },
};

CornuLayer *cornu_rescaling_from(const CornuRescalingConfig *config)
{
    const char *name = config->name ? config->name : "rescaling";
    if (config->scale == 0.0 && !config->scales.values)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .scale is required", name);
    if ((config->scale != 0.0 && config->scales.values) ||
        (config->offset != 0.0 && config->offsets.values))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: both .scale and .scales, or .offset and "
                                ".offsets, are given, expected one of them", name);
    CornuLayer *layer = cornu_layer_create(&cornu__rescaling_class, config->name, config->dtype);
    if (!layer) return NULL;
    CornuRescalingConfig *to = &((Rescaling *)layer)->config;
    *to = *config;
    to->name = to->dtype = NULL;
    if (!cornu__layer_copy_numbers(layer, &to->scales) &&
        !cornu__layer_copy_numbers(layer, &to->offsets))
        return layer;
    cornu_layer_free(layer);
    return cornu__null();
}
