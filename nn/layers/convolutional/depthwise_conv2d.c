/* DepthwiseConv2D and SeparableConv2D; and DepthwiseConv1D and SeparableConv1D, with sequences as
 * images of one row and kernels without the axis of rows. */
#include "convolution_internal.h"

static bool is_over_rows(const CornuLayer *layer) { return cornu__spatial_axes(layer->kind) == 1; }

static CornuStatus fits(const CornuLayer *layer, const CornuKernelWindow *window, CornuShape input)
{
    return is_over_rows(layer) ? cornu__row_window_fits(window, input)
                               : cornu__window_fits(window, input);
}

static CornuShape kernel_shape(const CornuLayer *layer, const int64_t size[2], int64_t from,
                               int64_t to)
{
    return is_over_rows(layer) ? cornu_shape(size[1], from, to)
                               : cornu_shape(size[0], size[1], from, to);
}

static int64_t channels_of(CornuShape input) { return input.extent[input.rank - 1]; }

/* The depthwise kernel (…, C, m), reshaped to (…, 1, C m), is one of C groups. */
static CornuTensor *convolve_channels(CornuLayer *layer, const CornuCall *call,
                                      const CornuKernelWindow *window, CornuTensor *x,
                                      CornuTensor *bias)
{
    if (!x) return NULL;
    const int       first = is_over_rows(layer);   /* of the window's axes */
    const CornuConv how = { window->padding, window->strides + first, window->dilation + first,
                            channels_of(cornu_tensor_shape(x)) };
    CornuTensor *kernel = cornu_op_reshape(cornu_layer_read(layer, call, 0),
                                           kernel_shape(layer, window->size, 1, CORNU_NONE));
    return cornu__conv(x, kernel, bias, &how);
}

/* ---- DepthwiseConv2D ---- */

typedef CORNU__LAYER(CornuDepthwiseConv2dConfig) Depthwise;   /* sizes resolved into the pairs */

static CornuKernelWindow depthwise_window(const CornuDepthwiseConv2dConfig *c)
{
    return cornu__kernel_window(c->padding, c->kernel_size, c->strides, c->dilation_rate);
}

static CornuStatus depthwise_build(CornuLayer *layer, CornuShape input)
{
    const CornuDepthwiseConv2dConfig *config = &((Depthwise *)layer)->config;
    const CornuKernelWindow           window = depthwise_window(config);
    const int64_t channels = channels_of(input), times = config->depth_multiplier;
    CORNU__TRY(fits(layer, &window, input));
    CORNU__TRY(cornu__declare_weight(layer, "kernel",
                                     kernel_shape(layer, window.size, channels, times),
                                     config->depthwise_initializer, config->depthwise_regularizer,
                                     config->depthwise_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare_weight(layer, "bias", cornu_shape(channels * times),
                                 config->bias_initializer, config->bias_regularizer,
                                 config->bias_constraint);
}

static CornuTensor *depthwise_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuDepthwiseConv2dConfig *config = &((Depthwise *)layer)->config;
    const CornuKernelWindow           window = depthwise_window(config);
    CornuTensor *bias = cornu__bias(layer, call, config->no_bias, 1);
    return cornu__activate_channels(layer, call, config->activation,
                                    convolve_channels(layer, call, &window, x, bias));
}

static CornuStatus depthwise_resolve(CornuLayer *layer)
{
    CornuDepthwiseConv2dConfig *config = &((Depthwise *)layer)->config;
    if (!config->depth_multiplier) config->depth_multiplier = 1;
    CORNU__TRY(cornu__positive(cornu_layer_name(layer), "depth_multiplier",
                               config->depth_multiplier));
    CORNU__TRY(cornu__resolve_window(layer, config->padding, &config->kernel, config->kernel_size,
                                     &config->stride, config->strides, config->dilation_rate));
    return cornu__resolve_activation(layer, &config->activation);
}

/* For SeparableConv too. */
#define AT(name) offsetof(CornuDepthwiseConv2dConfig, name)
#define DEPTHWISE_FIELDS                                                             \
    { "padding", CORNU_FIELD_PADDING, AT(padding) },                                 \
    { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) },                     \
    { "depth_multiplier", CORNU_FIELD_INTEGER, AT(depth_multiplier) },               \
    { "activation", CORNU_FIELD_ACTIVATION, AT(activation) },                        \
    { "use_bias", CORNU_FIELD_NOT, AT(no_bias) },                                    \
    { "depthwise_initializer", CORNU_FIELD_INITIALIZER, AT(depthwise_initializer) }, \
    { "bias_initializer", CORNU_FIELD_INITIALIZER, AT(bias_initializer) },           \
    { "depthwise_regularizer", CORNU_FIELD_REGULARIZER, AT(depthwise_regularizer) }, \
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, AT(bias_regularizer) },           \
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, AT(activity_regularizer) },   \
    { "depthwise_constraint", CORNU_FIELD_CONSTRAINT, AT(depthwise_constraint) },    \
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, AT(bias_constraint) }
static const CornuField depthwise_fields[] = {
    CORNU__WINDOW_FIELDS(CornuDepthwiseConv2dConfig), DEPTHWISE_FIELDS, { 0 },
};
static const CornuField depthwise_row_fields[] = {
    CORNU__ROW_WINDOW_FIELDS(CornuDepthwiseConv2dConfig), DEPTHWISE_FIELDS, { 0 },
};
#undef AT

const CornuLayerClass cornu__depthwise_conv2d_class = {
    .class_name = "DepthwiseConv2D", .size = sizeof(Depthwise), .build = depthwise_build,
    .call = depthwise_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(depthwise_fields, Depthwise, depthwise_resolve),
    },
};

const CornuLayerClass cornu__depthwise_conv1d_class = {
    .class_name = "DepthwiseConv1D", .size = sizeof(Depthwise), .build = depthwise_build,
    .call = depthwise_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(depthwise_row_fields, Depthwise, depthwise_resolve),
    },
};

CORNU__CONSTRUCTOR(depthwise_conv2d, CornuDepthwiseConv2dConfig)
CORNU__CONSTRUCTOR(depthwise_conv1d, CornuDepthwiseConv2dConfig)

/* ---- SeparableConv2D ---- */

typedef CORNU__LAYER(CornuSeparableConv2dConfig) Separable;   /* sizes resolved into the pairs */

static CornuKernelWindow separable_window(const CornuSeparableConv2dConfig *c)
{
    return cornu__kernel_window(c->padding, c->kernel_size, c->strides, c->dilation_rate);
}

static CornuStatus separable_build(CornuLayer *layer, CornuShape input)
{
    const CornuSeparableConv2dConfig *config = &((Separable *)layer)->config;
    const CornuKernelWindow           window = separable_window(config);
    const int64_t channels = channels_of(input), times = config->depth_multiplier;
    const int64_t one[2] = { 1, 1 };
    CORNU__TRY(fits(layer, &window, input));
    CORNU__TRY(cornu__declare_weight(layer, "depthwise_kernel",
                                     kernel_shape(layer, window.size, channels, times),
                                     config->depthwise_initializer, config->depthwise_regularizer,
                                     config->depthwise_constraint));
    CORNU__TRY(cornu__declare_weight(layer, "pointwise_kernel",
                                     kernel_shape(layer, one, channels * times, config->filters),
                                     config->pointwise_initializer, config->pointwise_regularizer,
                                     config->pointwise_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare_weight(layer, "bias", cornu_shape(config->filters),
                                 config->bias_initializer, config->bias_regularizer,
                                 config->bias_constraint);
}

static CornuTensor *separable_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuSeparableConv2dConfig *config = &((Separable *)layer)->config;
    const CornuKernelWindow           window = separable_window(config);
    const int64_t one[] = { 1, 1 };
    CornuTensor  *y = convolve_channels(layer, call, &window, x, NULL);
    y = cornu__conv(y, cornu_layer_read(layer, call, 1),
                    cornu__bias(layer, call, config->no_bias, 2),
                    &(CornuConv){ CORNU_VALID, one, one, 1 });
    return cornu__activate_channels(layer, call, config->activation, y);
}

static CornuStatus separable_resolve(CornuLayer *layer)
{
    CornuSeparableConv2dConfig *config = &((Separable *)layer)->config;
    const char                 *name = cornu_layer_name(layer);
    if (!config->depth_multiplier) config->depth_multiplier = 1;
    CORNU__TRY(cornu__positive(name, "filters", config->filters));
    CORNU__TRY(cornu__positive(name, "depth_multiplier", config->depth_multiplier));
    CORNU__TRY(cornu__resolve_window(layer, config->padding, &config->kernel, config->kernel_size,
                                     &config->stride, config->strides, config->dilation_rate));
    return cornu__resolve_activation(layer, &config->activation);
}

#define AT(name) offsetof(CornuSeparableConv2dConfig, name)
#define SEPARABLE_FIELDS                                                             \
    { "filters", CORNU_FIELD_INTEGER, AT(filters) },                                 \
    { "pointwise_initializer", CORNU_FIELD_INITIALIZER, AT(pointwise_initializer) }, \
    { "pointwise_regularizer", CORNU_FIELD_REGULARIZER, AT(pointwise_regularizer) }, \
    { "pointwise_constraint", CORNU_FIELD_CONSTRAINT, AT(pointwise_constraint) },    \
    DEPTHWISE_FIELDS
static const CornuField separable_fields[] = {
    CORNU__WINDOW_FIELDS(CornuSeparableConv2dConfig), SEPARABLE_FIELDS, { 0 },
};
static const CornuField separable_row_fields[] = {
    CORNU__ROW_WINDOW_FIELDS(CornuSeparableConv2dConfig), SEPARABLE_FIELDS, { 0 },
};
#undef AT

const CornuLayerClass cornu__separable_conv2d_class = {
    .class_name = "SeparableConv2D", .size = sizeof(Separable), .build = separable_build,
    .call = separable_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(separable_fields, Separable, separable_resolve),
    },
};

const CornuLayerClass cornu__separable_conv1d_class = {
    .class_name = "SeparableConv1D", .size = sizeof(Separable), .build = separable_build,
    .call = separable_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(separable_row_fields, Separable, separable_resolve),
    },
};

CORNU__CONSTRUCTOR(separable_conv2d, CornuSeparableConv2dConfig)
CORNU__CONSTRUCTOR(separable_conv1d, CornuSeparableConv2dConfig)
