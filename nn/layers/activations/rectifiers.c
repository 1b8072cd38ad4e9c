/* ReLU, LeakyReLU, PReLU and ELU. */
#include "../../../tensor/functions/functions_internal.h"
#include "../layer_internal.h"

#include <math.h>

static CornuStatus check_number(const char *name, const char *argument, double value)
{
    if (value >= 0.0 && isfinite(value)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected 0 or more", name, argument,
                       value);
}

/* ---- ReLU ---- */

typedef struct {
    CornuLayer      base;
    CornuReluConfig config;
} Relu;

static CornuTensor *relu_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuReluConfig *config = &((Relu *)layer)->config;
    const double slope = config->negative_slope, threshold = config->threshold;
    const double most = cornu__number(config->max_value, 0.0);
    (void)call;
    if (slope != 0.0 && threshold == 0.0 && config->max_value == 0.0)
        return cornu__leaky_relu(x, slope);
    if (slope == 0.0 && threshold == 0.0 && most > 0.0) return cornu_op_bounded_relu(x, most);
    CornuTensor *y = cornu_op_relu(x);
    if (threshold != 0.0) {
        CornuTensor *above = cornu_op_compare(x, CORNU_GREATER,
                                              cornu_op_constant_like(x, threshold));
        y = cornu_op_select(above, x, cornu_op_constant_like(x, 0.0));
    }
    if (config->max_value != 0.0)
        y = cornu_op_minimum(y, cornu_op_constant_like(x, most));
    if (slope == 0.0) return y;
    CornuTensor *below = cornu_op_relu(cornu_op_shift(cornu_op_negative(x), threshold));
    return cornu_op_subtract(y, cornu_op_scale(below, slope));
}

static CornuLayer *relu_from(const void *config) { return cornu_relu_from(config); }

static const CornuField relu_fields[] = {
    { "max_value", CORNU_FIELD_NUMBER_OR_NONE, offsetof(CornuReluConfig, max_value) },
    { "negative_slope", CORNU_FIELD_NUMBER, offsetof(CornuReluConfig, negative_slope) },
    { "threshold", CORNU_FIELD_NUMBER, offsetof(CornuReluConfig, threshold) },
    { 0 },
};

const CornuLayerClass cornu__relu_class = {
    .class_name = "ReLU", .size = sizeof(Relu), .call = relu_call, .activates = true,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(relu_fields, Relu, relu_from) },
};

CornuLayer *cornu_relu_from(const CornuReluConfig *config)
{
    const char  *name = config->name ? config->name : "re_lu";
    const double slope = cornu__number(config->negative_slope, 0.0);
    const double threshold = cornu__number(config->threshold, 0.0);
    if (check_number(name, "max_value", cornu__number(config->max_value, 0.0)) ||
        check_number(name, "negative_slope", slope) || check_number(name, "threshold", threshold))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__relu_class, config->name, config->dtype);
    if (layer)
        ((Relu *)layer)->config = (CornuReluConfig){ .max_value = config->max_value,
                                                     .negative_slope = slope,
                                                     .threshold = threshold };
    return layer;
}

/* ---- LeakyReLU ---- */

typedef struct {
    CornuLayer           base;
    CornuLeakyReluConfig config;
} LeakyRelu;

static CornuTensor *leaky_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return cornu__leaky_relu(x, ((LeakyRelu *)layer)->config.negative_slope);
}

static CornuLayer *leaky_from(const void *config) { return cornu_leaky_relu_from(config); }

static const CornuField leaky_fields[] = {
    { "negative_slope", CORNU_FIELD_NUMBER, offsetof(CornuLeakyReluConfig, negative_slope) },
    { 0 },
};

const CornuLayerClass cornu__leaky_relu_class = {
    .class_name = "LeakyReLU", .size = sizeof(LeakyRelu), .call = leaky_call, .activates = true,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(leaky_fields, LeakyRelu, leaky_from) },
};

CornuLayer *cornu_leaky_relu_from(const CornuLeakyReluConfig *config)
{
    const double slope = cornu__number(config->negative_slope, 0.3);
    if (check_number(config->name ? config->name : "leaky_re_lu", "negative_slope", slope))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__leaky_relu_class, config->name, config->dtype);
    if (layer) ((LeakyRelu *)layer)->config.negative_slope = slope;
    return layer;
}

/* ---- PReLU ---- */

typedef struct {
    CornuLayer       base;
    CornuPreluConfig config;
} Prelu;

static CornuStatus prelu_build(CornuLayer *layer, CornuShape input)
{
    const CornuPreluConfig *config = &((Prelu *)layer)->config;
    CornuShape shape = { .rank = input.rank - 1 };
    CornuText  text;
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = input.extent[i + 1];
    for (int i = 0; i < CORNU_MAX_RANK && config->shared_axes[i]; i++) {
        const int64_t axis = config->shared_axes[i];
        /* Keras subtracts 1 before it resolves negative axes. */
        const int64_t at = axis < 0 ? axis - 1 + shape.rank : axis - 1;
        if (at < 0 || at >= shape.rank)
            return cornu__fail(CORNU_ERR_ARGUMENT, ".shared_axes has %lld, which the input %s "
                               "lacks", (long long)axis, cornu_shape_print(&text, input));
        shape.extent[at] = 1;
    }
    CORNU__TRY(cornu_layer_weight(layer, "alpha", shape, config->alpha_initializer, false));
    return cornu_layer_weight_rules(layer, config->alpha_regularizer, config->alpha_constraint);
}

static CornuTensor *prelu_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu_op_convert(cornu__prelu(x, cornu_layer_read(layer, call, 0)), layer->result);
}

static CornuLayer *prelu_from(const void *config) { return cornu_prelu_from(config); }

static const CornuField prelu_fields[] = {
    { "alpha_initializer", CORNU_FIELD_INITIALIZER, offsetof(CornuPreluConfig, alpha_initializer) },
    { "alpha_regularizer", CORNU_FIELD_REGULARIZER, offsetof(CornuPreluConfig, alpha_regularizer) },
    { "alpha_constraint", CORNU_FIELD_CONSTRAINT, offsetof(CornuPreluConfig, alpha_constraint) },
    { "shared_axes", CORNU_FIELD_ROW_AXES_OR_NONE, offsetof(CornuPreluConfig, shared_axes) },
    { 0 },
};

const CornuLayerClass cornu__prelu_class = {
    .class_name = "PReLU", .size = sizeof(Prelu), .build = prelu_build, .call = prelu_call,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(prelu_fields, Prelu, prelu_from) },
};

CornuLayer *cornu_prelu_from(const CornuPreluConfig *config)
{
    if (cornu__check_enums(config->name ? config->name : "p_re_lu", CORNU_LINEAR,
                           &config->alpha_initializer, 1))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__prelu_class, config->name, config->dtype);
    if (!layer) return NULL;
    CornuPreluConfig *to = &((Prelu *)layer)->config;
    *to = *config;
    to->name = to->dtype = NULL;
    if (to->shared_axes[0] == CORNU_ZERO) to->shared_axes[0] = 0;
    to->alpha_initializer = cornu__initializer(config->alpha_initializer, CORNU_ZEROS);
    layer->frozen = config->frozen;
    return layer;
}

/* ---- ELU ---- */

typedef struct {
    CornuLayer     base;
    CornuEluConfig config;
} Elu;

static CornuTensor *elu_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return cornu_op_elu(x, ((Elu *)layer)->config.alpha);
}

static CornuLayer *elu_from(const void *config) { return cornu_elu_from(config); }

static const CornuField elu_fields[] = {
    { "alpha", CORNU_FIELD_NUMBER, offsetof(CornuEluConfig, alpha) },
    { 0 },
};

const CornuLayerClass cornu__elu_class = {
    .class_name = "ELU", .size = sizeof(Elu), .call = elu_call, .activates = true,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(elu_fields, Elu, elu_from) },
};

CornuLayer *cornu_elu_from(const CornuEluConfig *config)
{
    const double alpha = cornu__number(config->alpha, 1.0);
    if (!isfinite(alpha))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .alpha is %g, expected a finite number",
                                config->name ? config->name : "elu", alpha);
    CornuLayer *layer = cornu_layer_create(&cornu__elu_class, config->name, config->dtype);
    if (layer) ((Elu *)layer)->config.alpha = alpha;
    return layer;
}
