#include "convolution_internal.h"

typedef struct {
    CornuLayer        base;
    CornuConv2dConfig config;   /* sizes resolved into the pairs */
} Conv2d;

static CornuKernelWindow window_of(const CornuConv2dConfig *c)
{
    return cornu__kernel_window(c->padding, c->kernel_size, c->strides, c->dilation_rate);
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const CornuConv2dConfig *config = &((Conv2d *)layer)->config;
    const CornuKernelWindow  window = window_of(config);
    const int64_t           *size = config->kernel_size, groups = config->groups;
    CORNU__TRY(cornu__window_fits(&window, input));
    CORNU__TRY(cornu__check_channels(input, groups));
    CORNU__TRY(cornu__declare_weight(layer, "kernel",
                                     cornu_shape(size[0], size[1], input.extent[3] / groups,
                                                 config->filters), config->kernel_initializer,
                                     config->kernel_regularizer, config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare_weight(layer, "bias", cornu_shape(config->filters),
                                 config->bias_initializer, config->bias_regularizer,
                                 config->bias_constraint);
}

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConv2dConfig *config = &((Conv2d *)layer)->config;
    const CornuKernelWindow  window = window_of(config);
    if (!x) return NULL;
    const CornuConvolution c = cornu__convolution(&window, cornu_tensor_shape(x), config->groups);
    CornuTensor *y = cornu_op_conv2d(x, cornu_layer_read(layer, call, 0), &c);
    return cornu__bias_and_activate(layer, call, y, config->no_bias ? -1 : 1, config->activation);
}

static CornuLayer *from(const void *config) { return cornu_conv2d_from(config); }

static const CornuField fields[] = {
    { "filters", CORNU_FIELD_INTEGER, offsetof(CornuConv2dConfig, filters) },
    { "kernel_size", CORNU_FIELD_PAIR, offsetof(CornuConv2dConfig, kernel_size) },
    { "strides", CORNU_FIELD_PAIR, offsetof(CornuConv2dConfig, strides) },
    { "padding", CORNU_FIELD_PADDING, offsetof(CornuConv2dConfig, padding) },
    { "dilation_rate", CORNU_FIELD_PAIR, offsetof(CornuConv2dConfig, dilation_rate) },
    { "groups", CORNU_FIELD_INTEGER, offsetof(CornuConv2dConfig, groups) },
    CORNU__KERNEL_FIELDS(CornuConv2dConfig),
    { 0 },
};

const CornuLayerClass cornu__conv2d_class = {
    .class_name = "Conv2D", .size = sizeof(Conv2d), .build = build, .call = call,
    .mask = cornu__no_mask, .lora = "kernel",
    .fields = fields, .config_size = sizeof(CornuConv2dConfig),
    .config_offset = offsetof(Conv2d, config), .from = from,
};

/* Resolves the given arguments into `to`. */
static CornuStatus resolve(const CornuConv2dConfig *config, const char *name,
                           CornuConv2dConfig *to)
{
    const CornuInitializer initializers[] = { config->kernel_initializer,
                                              config->bias_initializer };
    *to = *config;
    to->name = to->dtype = NULL;
    to->groups = config->groups ? config->groups : 1;
    CORNU__TRY(cornu__positive(name, "filters", config->filters));
    CORNU__TRY(cornu__check_groups(name, to->groups, to->filters));
    CORNU__TRY(cornu__check_enums(name, config->activation, initializers, 2));
    CORNU__TRY(cornu__check_activity(name, &config->activity_regularizer));
    CORNU__TRY(cornu__resolve_window(name, to->padding, &to->kernel, to->kernel_size, &to->stride,
                                     to->strides, to->dilation_rate));
    to->activation = cornu__activation(to->activation, CORNU_LINEAR);
    to->kernel_initializer = cornu__initializer(to->kernel_initializer, CORNU_GLOROT_UNIFORM);
    to->bias_initializer = cornu__initializer(to->bias_initializer, CORNU_ZEROS);
    return CORNU_OK;
}

CornuLayer *cornu_conv2d_from(const CornuConv2dConfig *config)
{
    CornuConv2dConfig resolved;
    if (resolve(config, config->name ? config->name : "conv2d", &resolved)) return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__conv2d_class, config->name, config->dtype);
    if (!layer) return NULL;
    ((Conv2d *)layer)->config = resolved;
    layer->frozen = config->frozen;
    layer->activity_regularizer = config->activity_regularizer;
    return layer;
}
