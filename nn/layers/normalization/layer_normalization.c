/* LayerNormalization, RMSNormalization and UnitNormalization. */
#include "../../../tensor/functions/functions_internal.h"
#include "../layer_internal.h"

/* ---- LayerNormalization ---- */

typedef struct {
    CornuLayer                    base;
    CornuLayerNormalizationConfig config;   /* with axes set */
    int64_t                       axes;     /* as a bit mask */
} LayerNormalization;

/* Keras has gamma with rms_scaling even where scale is false. */
static bool has_gamma(const CornuLayerNormalizationConfig *config)
{
    return !config->no_scale || config->rms_scaling;
}

static CornuStatus layer_build(CornuLayer *layer, CornuShape input)
{
    LayerNormalization *self = (LayerNormalization *)layer;
    const CornuLayerNormalizationConfig *config = &self->config;
    CORNU__TRY(cornu__axis_bits(config->axes, input, &self->axes));
    const CornuShape shape = cornu__along(input, self->axes, false);
    if (has_gamma(config)) {
        CORNU__TRY(cornu_layer_weight(layer, "gamma", shape, config->gamma_initializer, false));
        CORNU__TRY(cornu_layer_weight_rules(layer, config->gamma_regularizer,
                                            config->gamma_constraint));
    }
    if (config->no_center) return CORNU_OK;
    CORNU__TRY(cornu_layer_weight(layer, "beta", shape, config->beta_initializer, false));
    return cornu_layer_weight_rules(layer, config->beta_regularizer, config->beta_constraint);
}

/* With rms_scaling x itself is divided by its deviation. */
static CornuTensor *rms_scaled(CornuTensor *x, CornuTensor *gamma, int64_t axes, double epsilon)
{
    if (!x) return NULL;
    CornuTensor *centred = cornu_op_subtract(x, cornu_op_reduce_mean(x, axes, true));
    CornuTensor *y = cornu_op_multiply(x, cornu__inverse_root(centred, axes, epsilon));
    return cornu_op_multiply(
        y, cornu_op_reshape(gamma, cornu__along(cornu_tensor_shape(x), axes, true)));
}

static CornuTensor *layer_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const LayerNormalization *self = (LayerNormalization *)layer;
    const CornuLayerNormalizationConfig *config = &self->config;
    CornuTensor *gamma = NULL, *beta = NULL;
    int          next = 0;
    x = cornu_op_convert(x, CORNU_F32);
    if (has_gamma(config)) gamma = cornu_layer_read_as(layer, call, next++, CORNU_F32);
    if (!config->no_center) beta = cornu_layer_read_as(layer, call, next, CORNU_F32);
    return cornu_op_convert(
        config->rms_scaling ? rms_scaled(x, gamma, self->axes, config->epsilon)
                            : cornu__layer_norm(x, gamma, beta, self->axes, config->epsilon),
        layer->result);
}

static CornuStatus layer_resolve(CornuLayer *layer)
{
    CornuLayerNormalizationConfig *config = &((LayerNormalization *)layer)->config;
    config->no_center |= config->rms_scaling;   /* which in Keras has a gamma whatever `scale` is */
    config->no_scale &= !config->rms_scaling;
    CORNU__TRY(cornu__resolve_epsilon(layer, &config->epsilon, 0.001));
    return cornu__axes(cornu_layer_name(layer), &config->axis, config->axes);
}

#define FIELD(field) offsetof(CornuLayerNormalizationConfig, field)
static const CornuField layer_fields[] = {
    { "axis", CORNU_FIELD_ROW_AXES, FIELD(axes) },
    { "epsilon", CORNU_FIELD_NUMBER, FIELD(epsilon) },
    { "center", CORNU_FIELD_NOT, FIELD(no_center) },
    { "scale", CORNU_FIELD_NOT, FIELD(no_scale) },
    { "rms_scaling", CORNU_FIELD_FLAG, FIELD(rms_scaling) },
    { "beta_initializer", CORNU_FIELD_INITIALIZER, FIELD(beta_initializer) },
    { "gamma_initializer", CORNU_FIELD_INITIALIZER, FIELD(gamma_initializer) },
    CORNU__SCALE_FIELDS(CornuLayerNormalizationConfig),
    { 0 },
};
#undef FIELD

const CornuLayerClass cornu__layer_normalization_class = {
    .class_name = "LayerNormalization", .size = sizeof(LayerNormalization), .build = layer_build,
    .call = layer_call,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(layer_fields, LayerNormalization, layer_resolve),
    },
};

CORNU__CONSTRUCTOR(layer_normalization, CornuLayerNormalizationConfig)

/* ---- RMSNormalization ---- */

typedef struct {
    CornuLayer                  base;
    CornuRmsNormalizationConfig config;   /* with axes set */
    int64_t                     axes;
} RmsNormalization;

static CornuStatus rms_build(CornuLayer *layer, CornuShape input)
{
    RmsNormalization *self = (RmsNormalization *)layer;
    CORNU__TRY(cornu__axis_bits(self->config.axes, input, &self->axes));
    return cornu_layer_weight(layer, "scale", cornu__along(input, self->axes, false), CORNU_ONES,
                              false);
}

static CornuTensor *rms_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const RmsNormalization *self = (RmsNormalization *)layer;
    x = cornu_op_convert(x, CORNU_F32);
    CornuTensor *scale = cornu_layer_read_as(layer, call, 0, CORNU_F32);
    CornuTensor *y = cornu__rms_norm(x, scale, self->axes, self->config.epsilon);
    return cornu_op_convert(y, layer->result);
}

static CornuStatus rms_resolve(CornuLayer *layer)
{
    CornuRmsNormalizationConfig *config = &((RmsNormalization *)layer)->config;
    CORNU__TRY(cornu__resolve_epsilon(layer, &config->epsilon, 1e-6));
    return cornu__axes(cornu_layer_name(layer), &config->axis, config->axes);
}

static const CornuField rms_fields[] = {
    { "axis", CORNU_FIELD_ROW_AXES, offsetof(CornuRmsNormalizationConfig, axes) },
    { "epsilon", CORNU_FIELD_NUMBER, offsetof(CornuRmsNormalizationConfig, epsilon) },
    { 0 },
};

const CornuLayerClass cornu__rms_normalization_class = {
    .class_name = "RMSNormalization", .size = sizeof(RmsNormalization), .build = rms_build,
    .call = rms_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(rms_fields, RmsNormalization, rms_resolve) },
};

CORNU__CONSTRUCTOR(rms_normalization, CornuRmsNormalizationConfig)

/* ---- UnitNormalization ---- */

typedef struct {
    CornuLayer                   base;
    CornuUnitNormalizationConfig config;   /* with axes set */
    int64_t                      axes;
} UnitNormalization;

static CornuStatus unit_build(CornuLayer *layer, CornuShape input)
{
    UnitNormalization *self = (UnitNormalization *)layer;
    return cornu__axis_bits(self->config.axes, input, &self->axes);
}

static CornuTensor *unit_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    CornuTensor *y = cornu__unit_norm(cornu_op_convert(x, CORNU_F32),
                                      ((UnitNormalization *)layer)->axes);
    return cornu_op_convert(y, layer->result);
}

static CornuStatus unit_resolve(CornuLayer *layer)
{
    CornuUnitNormalizationConfig *config = &((UnitNormalization *)layer)->config;
    return cornu__axes(cornu_layer_name(layer), &config->axis, config->axes);
}

static const CornuField unit_fields[] = {
    { "axis", CORNU_FIELD_ROW_AXES, offsetof(CornuUnitNormalizationConfig, axes) },
    { 0 },
};

const CornuLayerClass cornu__unit_normalization_class = {
    .class_name = "UnitNormalization", .size = sizeof(UnitNormalization), .build = unit_build,
    .call = unit_call,
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(unit_fields, UnitNormalization, unit_resolve),
    },
};

CORNU__CONSTRUCTOR(unit_normalization, CornuUnitNormalizationConfig)
