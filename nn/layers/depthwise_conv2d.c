/* DepthwiseConv2D and SeparableConv2D. */
#include "convolution_internal.h"

/* The depthwise kernel (h, w, C, m) is a convolution of C groups once it is (h, w, 1, C m). */
static CornuTensor *convolve_channels(const CornuKernelWindow *window, CornuTensor *x,
                                      CornuTensor *kernel)
{
    if (!x || !kernel) return NULL;
    const CornuShape       shape = cornu_tensor_shape(x), k = cornu_tensor_shape(kernel);
    const CornuConvolution c = cornu__convolution(window, shape, shape.extent[3]);
    const CornuShape       flat = cornu_shape(k.extent[0], k.extent[1], 1,
                                              k.extent[2] * k.extent[3]);
    return cornu_op_conv2d(x, cornu_op_reshape(kernel, flat), &c);
}

/* ---- DepthwiseConv2D ---- */

typedef struct {
    CornuLayer                 base;
    CornuDepthwiseConv2dConfig config;   /* sizes resolved into the pairs */
} Depthwise;

static CornuKernelWindow depthwise_window(const CornuDepthwiseConv2dConfig *c)
{
    return cornu__kernel_window(c->padding, c->kernel_size, c->strides, c->dilation_rate);
}

static CornuStatus depthwise_build(CornuLayer *layer, CornuShape input)
{
    const CornuDepthwiseConv2dConfig *config = &((Depthwise *)layer)->config;
    const CornuKernelWindow           window = depthwise_window(config);
    const int64_t                    *size = config->kernel_size, times = config->depth_multiplier;
    CORNU__TRY(cornu__window_fits(&window, input));
    CORNU__TRY(cornu__declare(layer, "kernel",
                              cornu_shape(size[0], size[1], input.extent[3], times),
                              config->depthwise_initializer, config->depthwise_regularizer,
                              config->depthwise_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare(layer, "bias", cornu_shape(input.extent[3] * times),
                          config->bias_initializer, config->bias_regularizer,
                          config->bias_constraint);
}

static CornuTensor *depthwise_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuDepthwiseConv2dConfig *config = &((Depthwise *)layer)->config;
    const CornuKernelWindow           window = depthwise_window(config);
    CornuTensor *y = convolve_channels(&window, x, cornu_layer_read(layer, call, 0));
    return cornu__biased(layer, call, y, config->no_bias ? -1 : 1, config->activation);
}

static CornuLayer *depthwise_from(const void *config)
{
    return cornu_depthwise_conv2d_from(config);
}

#define AT(name) offsetof(CornuDepthwiseConv2dConfig, name)
static const CornuField depthwise_fields[] = {
    { "kernel_size", CORNU_FIELD_PAIR, AT(kernel_size) },
    { "strides", CORNU_FIELD_PAIR, AT(strides) },
    { "padding", CORNU_FIELD_PADDING, AT(padding) },
    { "depth_multiplier", CORNU_FIELD_INTEGER, AT(depth_multiplier) },
    { "dilation_rate", CORNU_FIELD_PAIR, AT(dilation_rate) },
    { "activation", CORNU_FIELD_ACTIVATION, AT(activation) },
    { "use_bias", CORNU_FIELD_NOT, AT(no_bias) },
    { "depthwise_initializer", CORNU_FIELD_INITIALIZER, AT(depthwise_initializer) },
    { "bias_initializer", CORNU_FIELD_INITIALIZER, AT(bias_initializer) },
    { "depthwise_regularizer", CORNU_FIELD_REGULARIZER, AT(depthwise_regularizer) },
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, AT(bias_regularizer) },
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, AT(activity_regularizer) },
    { "depthwise_constraint", CORNU_FIELD_CONSTRAINT, AT(depthwise_constraint) },
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, AT(bias_constraint) },
    { 0 },
};
#undef AT

const CornuLayerClass cornu__depthwise_conv2d_class = {
    .class_name = "DepthwiseConv2D", .size = sizeof(Depthwise), .build = depthwise_build,
    .call = depthwise_call, .mask = cornu__no_mask,
    .fields = depthwise_fields, .config_size = sizeof(CornuDepthwiseConv2dConfig),
    .config_offset = offsetof(Depthwise, config), .from = depthwise_from,
};

static CornuStatus depthwise_resolve(const char *name, CornuDepthwiseConv2dConfig *to)
{
    const CornuInitializer initializers[] = { to->depthwise_initializer, to->bias_initializer };
    to->name = to->dtype = NULL;
    if (!to->depth_multiplier) to->depth_multiplier = 1;
    CORNU__TRY(cornu__positive(name, "depth_multiplier", to->depth_multiplier));
    CORNU__TRY(cornu__check_enums(name, to->activation, initializers, 2));
    CORNU__TRY(cornu__check_activity(name, &to->activity_regularizer));
    to->activation = cornu__activation(to->activation, CORNU_LINEAR);
    to->depthwise_initializer = cornu__initializer(to->depthwise_initializer,
                                                   CORNU_GLOROT_UNIFORM);
    to->bias_initializer = cornu__initializer(to->bias_initializer, CORNU_ZEROS);
    return cornu__resolve_window(name, to->padding, &to->kernel, to->kernel_size, &to->stride,
                                 to->strides, to->dilation_rate);
}

CornuLayer *cornu_depthwise_conv2d_from(const CornuDepthwiseConv2dConfig *config)
{
    CornuDepthwiseConv2dConfig resolved = *config;
    if (depthwise_resolve(config->name ? config->name : "depthwise_conv2d", &resolved))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__depthwise_conv2d_class, config->name,
                                           config->dtype);
    if (!layer) return NULL;
    ((Depthwise *)layer)->config = resolved;
    layer->frozen = config->frozen;
    layer->activity_regularizer = config->activity_regularizer;
    return layer;
}

/* ---- SeparableConv2D ---- */

typedef struct {
    CornuLayer                 base;
    CornuSeparableConv2dConfig config;   /* sizes resolved into the pairs */
} Separable;

static CornuKernelWindow separable_window(const CornuSeparableConv2dConfig *c)
{
    return cornu__kernel_window(c->padding, c->kernel_size, c->strides, c->dilation_rate);
}

static CornuStatus separable_build(CornuLayer *layer, CornuShape input)
{
    const CornuSeparableConv2dConfig *config = &((Separable *)layer)->config;
    const CornuKernelWindow           window = separable_window(config);
    const int64_t                    *size = config->kernel_size, times = config->depth_multiplier;
    CORNU__TRY(cornu__window_fits(&window, input));
    CORNU__TRY(cornu__declare(layer, "depthwise_kernel",
                              cornu_shape(size[0], size[1], input.extent[3], times),
                              config->depthwise_initializer, config->depthwise_regularizer,
                              config->depthwise_constraint));
    CORNU__TRY(cornu__declare(layer, "pointwise_kernel",
                              cornu_shape(1, 1, input.extent[3] * times, config->filters),
                              config->pointwise_initializer, config->pointwise_regularizer,
                              config->pointwise_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare(layer, "bias", cornu_shape(config->filters), config->bias_initializer,
                          config->bias_regularizer, config->bias_constraint);
}

static CornuTensor *separable_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuSeparableConv2dConfig *config = &((Separable *)layer)->config;
    const CornuKernelWindow           window = separable_window(config);
    CornuTensor *y = convolve_channels(&window, x, cornu_layer_read(layer, call, 0));
    y = cornu_op_conv2d(y, cornu_layer_read(layer, call, 1), &(CornuConvolution){ .groups = 1 });
    return cornu__biased(layer, call, y, config->no_bias ? -1 : 2, config->activation);
}

static CornuLayer *separable_from(const void *config)
{
    return cornu_separable_conv2d_from(config);
}

#define AT(name) offsetof(CornuSeparableConv2dConfig, name)
static const CornuField separable_fields[] = {
    { "filters", CORNU_FIELD_INTEGER, AT(filters) },
    { "kernel_size", CORNU_FIELD_PAIR, AT(kernel_size) },
    { "strides", CORNU_FIELD_PAIR, AT(strides) },
    { "padding", CORNU_FIELD_PADDING, AT(padding) },
    { "dilation_rate", CORNU_FIELD_PAIR, AT(dilation_rate) },
    { "depth_multiplier", CORNU_FIELD_INTEGER, AT(depth_multiplier) },
    { "activation", CORNU_FIELD_ACTIVATION, AT(activation) },
    { "use_bias", CORNU_FIELD_NOT, AT(no_bias) },
    { "depthwise_initializer", CORNU_FIELD_INITIALIZER, AT(depthwise_initializer) },
    { "pointwise_initializer", CORNU_FIELD_INITIALIZER, AT(pointwise_initializer) },
    { "bias_initializer", CORNU_FIELD_INITIALIZER, AT(bias_initializer) },
    { "depthwise_regularizer", CORNU_FIELD_REGULARIZER, AT(depthwise_regularizer) },
    { "pointwise_regularizer", CORNU_FIELD_REGULARIZER, AT(pointwise_regularizer) },
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, AT(bias_regularizer) },
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, AT(activity_regularizer) },
    { "depthwise_constraint", CORNU_FIELD_CONSTRAINT, AT(depthwise_constraint) },
    { "pointwise_constraint", CORNU_FIELD_CONSTRAINT, AT(pointwise_constraint) },
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, AT(bias_constraint) },
    { 0 },
};
#undef AT

const CornuLayerClass cornu__separable_conv2d_class = {
    .class_name = "SeparableConv2D", .size = sizeof(Separable), .build = separable_build,
    .call = separable_call, .mask = cornu__no_mask,
    .fields = separable_fields, .config_size = sizeof(CornuSeparableConv2dConfig),
    .config_offset = offsetof(Separable, config), .from = separable_from,
};

static CornuStatus separable_resolve(const char *name, CornuSeparableConv2dConfig *to)
{
    const CornuInitializer initializers[] = { to->depthwise_initializer,
                                              to->pointwise_initializer, to->bias_initializer };
    to->name = to->dtype = NULL;
    if (!to->depth_multiplier) to->depth_multiplier = 1;
    CORNU__TRY(cornu__positive(name, "filters", to->filters));
    CORNU__TRY(cornu__positive(name, "depth_multiplier", to->depth_multiplier));
    CORNU__TRY(cornu__check_enums(name, to->activation, initializers, 3));
    CORNU__TRY(cornu__check_activity(name, &to->activity_regularizer));
    to->activation = cornu__activation(to->activation, CORNU_LINEAR);
    to->depthwise_initializer = cornu__initializer(to->depthwise_initializer,
                                                   CORNU_GLOROT_UNIFORM);
    to->pointwise_initializer = cornu__initializer(to->pointwise_initializer,
                                                   CORNU_GLOROT_UNIFORM);
    to->bias_initializer = cornu__initializer(to->bias_initializer, CORNU_ZEROS);
    return cornu__resolve_window(name, to->padding, &to->kernel, to->kernel_size, &to->stride,
                                 to->strides, to->dilation_rate);
}

CornuLayer *cornu_separable_conv2d_from(const CornuSeparableConv2dConfig *config)
{
    CornuSeparableConv2dConfig resolved = *config;
    if (separable_resolve(config->name ? config->name : "separable_conv2d", &resolved))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__separable_conv2d_class, config->name,
                                           config->dtype);
    if (!layer) return NULL;
    ((Separable *)layer)->config = resolved;
    layer->frozen = config->frozen;
    layer->activity_regularizer = config->activity_regularizer;
    return layer;
}
