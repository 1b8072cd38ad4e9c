#include "../layer_internal.h"

typedef struct {
    CornuLayer        base;
    CornuConv2dConfig config;   /* sizes resolved into the pairs */
} Conv2d;

static CornuConvolution convolution(const CornuConv2dConfig *config, CornuShape input)
{
    CornuConvolution c = { 0 };
    for (int i = 0; i < 2; i++) {
        c.strides[i] = config->strides[i];
        c.dilation[i] = config->dilation_rate[i];
        cornu__padding(config->padding, input.extent[i + 1], config->kernel_size[i],
                       c.strides[i], c.dilation[i], &c.low[i], &c.high[i]);
    }
    return c;
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const CornuConv2dConfig *config = &((Conv2d *)layer)->config;
    const int64_t *size = config->kernel_size, *dilation = config->dilation_rate;
    CORNU__TRY(cornu__expect_input(input, 4, "(B, H, W, C)"));
    CornuText text;
    for (int i = 0; i < 2 && config->padding == CORNU_VALID; i++)
        if (dilation[i] * (size[i] - 1) + 1 > input.extent[i + 1])
            return cornu__fail(CORNU_ERR_SHAPE, "the input %s is smaller than the kernel "
                               "(%lld, %lld) with dilation (%lld, %lld)",
                               cornu_shape_print(&text, input), (long long)size[0],
                               (long long)size[1], (long long)dilation[0],
                               (long long)dilation[1]);
    CORNU__TRY(cornu_layer_weight(layer, "kernel",
                                  cornu_shape(size[0], size[1], input.extent[3], config->filters),
                                  config->kernel_initializer, false));
    CORNU__TRY(cornu_layer_weight_rules(layer, config->kernel_regularizer,
                                        config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    CORNU__TRY(cornu_layer_weight(layer, "bias", cornu_shape(config->filters),
                                  config->bias_initializer, false));
    return cornu_layer_weight_rules(layer, config->bias_regularizer, config->bias_constraint);
}

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConv2dConfig *config = &((Conv2d *)layer)->config;
    if (!x) return NULL;
    const CornuConvolution c = convolution(config, cornu_tensor_shape(x));
    CornuTensor *y = cornu_op_conv2d(x, cornu_layer_read(layer, call, 0), &c);
    if (!config->no_bias) y = cornu_op_add(y, cornu_layer_read(layer, call, 1));
    return y ? cornu_activation_apply(config->activation, y) : NULL;
}

static CornuLayer *from(const void *config) { return cornu_conv2d_from(config); }

static const CornuField fields[] = {
    { "filters", CORNU_FIELD_INTEGER, offsetof(CornuConv2dConfig, filters) },
    { "kernel_size", CORNU_FIELD_PAIR, offsetof(CornuConv2dConfig, kernel_size) },
    { "strides", CORNU_FIELD_PAIR, offsetof(CornuConv2dConfig, strides) },
    { "padding", CORNU_FIELD_PADDING, offsetof(CornuConv2dConfig, padding) },
    { "dilation_rate", CORNU_FIELD_PAIR, offsetof(CornuConv2dConfig, dilation_rate) },
    { "groups", CORNU_FIELD_INTEGER, offsetof(CornuConv2dConfig, groups) },
    { "activation", CORNU_FIELD_ACTIVATION, offsetof(CornuConv2dConfig, activation) },
    { "use_bias", CORNU_FIELD_NOT, offsetof(CornuConv2dConfig, no_bias) },
    { "kernel_initializer", CORNU_FIELD_INITIALIZER,
      offsetof(CornuConv2dConfig, kernel_initializer) },
    { "bias_initializer", CORNU_FIELD_INITIALIZER,
      offsetof(CornuConv2dConfig, bias_initializer) },
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER,
      offsetof(CornuConv2dConfig, kernel_regularizer) },
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, offsetof(CornuConv2dConfig, bias_regularizer) },
    { "activity_regularizer", CORNU_FIELD_REGULARIZER,
      offsetof(CornuConv2dConfig, activity_regularizer) },
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, offsetof(CornuConv2dConfig, kernel_constraint) },
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, offsetof(CornuConv2dConfig, bias_constraint) },
    { 0 },
};

const CornuLayerClass cornu__conv2d_class = {
    .class_name = "Conv2D", .size = sizeof(Conv2d), .build = build, .call = call,
    .mask = cornu__no_mask,
    .fields = fields, .config_size = sizeof(CornuConv2dConfig),
    .config_offset = offsetof(Conv2d, config), .from = from,
};

/* Fills `to` from what was given. */
static CornuStatus resolve(const CornuConv2dConfig *config, const char *name,
                           CornuConv2dConfig *to)
{
    const CornuInitializer initializers[] = { config->kernel_initializer,
                                              config->bias_initializer };
    *to = *config;
    to->name = to->dtype = NULL;
    if (config->filters < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .filters is %lld, expected at least 1", name,
                           (long long)config->filters);
    if (config->groups != 0 && config->groups != 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED,
                           "%s: .groups is %lld; only 1 is available in this version", name,
                           (long long)config->groups);
    if (!cornu_padding_name(config->padding))
        return cornu__fail(CORNU_ERR_ARGUMENT,
                           "%s: .padding is %d, expected CORNU_VALID or CORNU_SAME", name,
                           (int)config->padding);
    CORNU__TRY(cornu__check_enums(name, config->activation, initializers, 2));
    CORNU__TRY(cornu__check_activity(name, &config->activity_regularizer));
    CORNU__TRY(cornu__pair(name, "kernel_size", "kernel", config->kernel, config->kernel_size, 0,
                           to->kernel_size));
    CORNU__TRY(cornu__pair(name, "strides", "stride", config->stride, config->strides, 1,
                           to->strides));
    CORNU__TRY(cornu__pair(name, "dilation_rate", "dilation_rate", 0, config->dilation_rate, 1,
                           to->dilation_rate));
    to->kernel = to->stride = 0;
    to->groups = 1;
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
