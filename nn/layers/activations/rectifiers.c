/* ReLU, LeakyReLU, PReLU and ELU. */
#include "../../../tensor/functions/functions_internal.h"
#include "../layer_internal.h"

#include <math.h>

static CornuStatus check_number(const CornuLayer *layer, const char *argument, double value)
{
    if (value >= 0.0 && isfinite(value)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected 0 or more",
                       cornu_layer_name(layer), argument, value);
}

/* ---- ReLU ---- */

typedef CORNU__LAYER(CornuReluConfig) Relu;

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

static CornuStatus relu_resolve(CornuLayer *layer)
{
    CornuReluConfig *config = &((Relu *)layer)->config;
    config->negative_slope = cornu__number(config->negative_slope, 0.0);
    config->threshold = cornu__number(config->threshold, 0.0);
    CORNU__TRY(check_number(layer, "max_value", cornu__number(config->max_value, 0.0)));
    CORNU__TRY(check_number(layer, "negative_slope", config->negative_slope));
    return check_number(layer, "threshold", config->threshold);
}

static const CornuField relu_fields[] = {
    { "max_value", CORNU_FIELD_NUMBER_OR_NONE, offsetof(CornuReluConfig, max_value) },
    { "negative_slope", CORNU_FIELD_NUMBER, offsetof(CornuReluConfig, negative_slope) },
    { "threshold", CORNU_FIELD_NUMBER, offsetof(CornuReluConfig, threshold) },
    { 0 },
};

const CornuLayerClass cornu__relu_class = {
    .class_name = "ReLU", .size = sizeof(Relu), .call = relu_call, .activates = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(relu_fields, Relu, relu_resolve) },
};

CORNU__CONSTRUCTOR(relu, CornuReluConfig)

/* ---- LeakyReLU ---- */

typedef CORNU__LAYER(CornuLeakyReluConfig) LeakyRelu;

static CornuTensor *leaky_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return cornu__leaky_relu(x, ((LeakyRelu *)layer)->config.negative_slope);
}

static CornuStatus leaky_resolve(CornuLayer *layer)
{
    double *slope = &((LeakyRelu *)layer)->config.negative_slope;
    *slope = cornu__number(*slope, 0.3);
    return check_number(layer, "negative_slope", *slope);
}

static const CornuField leaky_fields[] = {
    { "negative_slope", CORNU_FIELD_NUMBER, offsetof(CornuLeakyReluConfig, negative_slope) },
    { 0 },
};

const CornuLayerClass cornu__leaky_relu_class = {
    .class_name = "LeakyReLU", .size = sizeof(LeakyRelu), .call = leaky_call, .activates = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(leaky_fields, LeakyRelu, leaky_resolve) },
};

CORNU__CONSTRUCTOR(leaky_relu, CornuLeakyReluConfig)

/* ---- PReLU ---- */

typedef CORNU__LAYER(CornuPreluConfig) Prelu;

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

static CornuStatus prelu_resolve(CornuLayer *layer)
{
    CornuPreluConfig *config = &((Prelu *)layer)->config;
    if (config->shared_axes[0] == CORNU_ZERO) config->shared_axes[0] = 0;
    return CORNU_OK;
}

static const CornuField prelu_fields[] = {
    { "alpha_initializer", CORNU_FIELD_INITIALIZER, offsetof(CornuPreluConfig, alpha_initializer) },
    { "alpha_regularizer", CORNU_FIELD_REGULARIZER, offsetof(CornuPreluConfig, alpha_regularizer) },
    { "alpha_constraint", CORNU_FIELD_CONSTRAINT, offsetof(CornuPreluConfig, alpha_constraint) },
    { "shared_axes", CORNU_FIELD_ROW_AXES_OR_NONE, offsetof(CornuPreluConfig, shared_axes) },
    { 0 },
};

const CornuLayerClass cornu__prelu_class = {
    .class_name = "PReLU", .size = sizeof(Prelu), .build = prelu_build, .call = prelu_call,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(prelu_fields, Prelu, prelu_resolve) },
};

CORNU__CONSTRUCTOR(prelu, CornuPreluConfig)

/* ---- ELU ---- */

typedef CORNU__LAYER(CornuEluConfig) Elu;

static CornuTensor *elu_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return cornu_op_elu(x, ((Elu *)layer)->config.alpha);
}

static CornuStatus elu_resolve(CornuLayer *layer)
{
    double *alpha = &((Elu *)layer)->config.alpha;
    *alpha = cornu__number(*alpha, 1.0);
    if (isfinite(*alpha)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .alpha is %g, expected a finite number",
                       cornu_layer_name(layer), *alpha);
}

static const CornuField elu_fields[] = {
    { "alpha", CORNU_FIELD_NUMBER, offsetof(CornuEluConfig, alpha) },
    { 0 },
};

const CornuLayerClass cornu__elu_class = {
    .class_name = "ELU", .size = sizeof(Elu), .call = elu_call, .activates = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(elu_fields, Elu, elu_resolve) },
};

CORNU__CONSTRUCTOR(elu, CornuEluConfig)
