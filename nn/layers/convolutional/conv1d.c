#include "convolution_internal.h"

typedef struct {
    CornuLayer        base;
    CornuConv1dConfig config;
} Conv1d;

/* As a convolution of an image of one row. */
static CornuKernelWindow window_of(const CornuConv1dConfig *c)
{
    return (CornuKernelWindow){ c->padding, { 1, c->kernel_size }, { 1, c->strides },
                                { 1, c->dilation_rate } };
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const CornuConv1dConfig *config = &((Conv1d *)layer)->config;
    const CornuKernelWindow  window = window_of(config);
    CORNU__TRY(cornu__row_window_fits(&window, input));
    CORNU__TRY(cornu__check_channels(input, config->groups));
    CORNU__TRY(cornu__declare_weight(layer, "kernel",
                                     cornu_shape(config->kernel_size,
                                                 input.extent[2] / config->groups,
                                                 config->filters), config->kernel_initializer,
                                     config->kernel_regularizer, config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare_weight(layer, "bias", cornu_shape(config->filters),
                                 config->bias_initializer, config->bias_regularizer,
                                 config->bias_constraint);
}

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConv1dConfig *config = &((Conv1d *)layer)->config;
    const CornuKernelWindow  window = window_of(config);
    CornuTensor             *kernel = cornu_layer_read(layer, call, 0);
    if (!x || !kernel) return NULL;
    const CornuShape k = cornu_tensor_shape(kernel);
    kernel = cornu_op_reshape(kernel, cornu_shape(1, k.extent[0], k.extent[1], k.extent[2]));
    x = cornu__as_image(x);
    const CornuConvolution c = cornu__convolution(&window, cornu_tensor_shape(x), config->groups);
    return cornu__bias_and_activate(layer, call, cornu__as_sequence(cornu_op_conv2d(x, kernel, &c)),
                                    config->no_bias ? -1 : 1, config->activation);
}

static CornuLayer *from(const void *config) { return cornu_conv1d_from(config); }

#define AT(name) offsetof(CornuConv1dConfig, name)
static const CornuField fields[] = {
    { "filters", CORNU_FIELD_INTEGER, AT(filters) },
    { "kernel_size", CORNU_FIELD_SINGLE, AT(kernel_size) },
    { "strides", CORNU_FIELD_SINGLE, AT(strides) },
    { "padding", CORNU_FIELD_PADDING, AT(padding) },
    { "dilation_rate", CORNU_FIELD_SINGLE, AT(dilation_rate) },
    { "groups", CORNU_FIELD_INTEGER, AT(groups) },
    CORNU__KERNEL_FIELDS(CornuConv1dConfig),
    { 0 },
};
#undef AT

const CornuLayerClass cornu__conv1d_class = {
    .class_name = "Conv1D", .size = sizeof(Conv1d), .build = build, .call = call,
    .mask = cornu__no_mask, .lora = "kernel",
    .fields = fields, .config_size = sizeof(CornuConv1dConfig),
    .config_offset = offsetof(Conv1d, config), .from = from,
};

static CornuStatus resolve(const char *name, CornuConv1dConfig *to)
{
    const CornuInitializer initializers[] = { to->kernel_initializer, to->bias_initializer };
    to->name = to->dtype = NULL;
    if (!to->strides) to->strides = 1;
    if (!to->dilation_rate) to->dilation_rate = 1;
    if (!to->groups) to->groups = 1;
    if (to->padding != CORNU_CAUSAL) CORNU__TRY(cornu__check_padding(name, to->padding));
    CORNU__TRY(cornu__positive(name, "filters", to->filters));
    CORNU__TRY(cornu__positive(name, "kernel_size", to->kernel_size));
    CORNU__TRY(cornu__positive(name, "strides", to->strides));
    CORNU__TRY(cornu__positive(name, "dilation_rate", to->dilation_rate));
    CORNU__TRY(cornu__check_groups(name, to->groups, to->filters));
    CORNU__TRY(cornu__check_enums(name, to->activation, initializers, 2));
    CORNU__TRY(cornu__check_activity(name, &to->activity_regularizer));
    to->activation = cornu__activation(to->activation, CORNU_LINEAR);
    to->kernel_initializer = cornu__initializer(to->kernel_initializer, CORNU_GLOROT_UNIFORM);
    to->bias_initializer = cornu__initializer(to->bias_initializer, CORNU_ZEROS);
    return CORNU_OK;
}

CornuLayer *cornu_conv1d_from(const CornuConv1dConfig *config)
{
    CornuConv1dConfig resolved = *config;
    if (resolve(config->name ? config->name : "conv1d", &resolved)) return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__conv1d_class, config->name, config->dtype);
    if (!layer) return NULL;
    ((Conv1d *)layer)->config = resolved;
    layer->frozen = config->frozen;
    layer->activity_regularizer = config->activity_regularizer;
    return layer;
}
