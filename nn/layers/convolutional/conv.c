/* Conv1D, Conv2D and Conv3D. */
#include "../steps/past_internal.h"
#include "convolution_internal.h"

/* One config for all three: the first extents count, as many as there are axes. */
typedef CORNU__LAYER(CornuConv3dConfig) Conv;

static CornuStatus conv_build(CornuLayer *layer, CornuShape input)
{
    const CornuConv3dConfig *config = &((Conv *)layer)->config;
    const int                axes = cornu__spatial_axes(layer->kind);
    CORNU__TRY(cornu__kernel_fits(config->padding, axes, config->kernel_size,
                                  config->dilation_rate, input));
    CORNU__TRY(cornu__check_channels(input, config->groups));
    CornuShape kernel = cornu_shape_from(axes, config->kernel_size);
    kernel.extent[kernel.rank++] = input.extent[axes + 1] / config->groups;
    kernel.extent[kernel.rank++] = config->filters;
    CORNU__TRY(cornu__declare_weight(layer, "kernel", kernel, config->kernel_initializer,
                                     config->kernel_regularizer, config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare_weight(layer, "bias", cornu_shape(config->filters),
                                 config->bias_initializer, config->bias_regularizer,
                                 config->bias_constraint);
}

static CornuTensor *conv_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConv3dConfig *config = &((Conv *)layer)->config;
    CornuTensor             *kernel = cornu_layer_read(layer, call, 0);
    CornuTensor *y = cornu__conv(x, kernel, cornu__bias(layer, call, config->no_bias, 1),
                                 &(CornuConv){ config->padding, config->strides,
                                               config->dilation_rate, config->groups });
    return cornu__activate_channels(layer, call, config->activation, y);
}

/* The next steps of sequences: a causal convolution reads the last ones before them. */
static CornuTensor *conv_continue(CornuLayer *layer, const CornuCall *call,
                                  CornuTensor *const *in, int in_count, CornuTensor **out)
{
    const CornuConv3dConfig *config = &((Conv *)layer)->config;
    const int64_t            before = config->dilation_rate[0] * (config->kernel_size[0] - 1);
    const char *why = cornu__channels_first(layer)                    ? "has channels first"
                      : config->strides[0] > 1                        ? "strides over steps"
                      : before > 0 && config->padding != CORNU_CAUSAL ? "is not causal" : NULL;
    (void)in_count;
    if (why && cornu__past_refuse(layer, why)) return cornu__null();
    CornuTensor *x = before ? cornu__past_lead(call, in[0], before) : in[0];
    CornuTensor *y = cornu__conv(x, cornu_layer_read(layer, call, 0),
                                 cornu__bias(layer, call, config->no_bias, 1),
                                 &(CornuConv){ CORNU_VALID, config->strides,
                                               config->dilation_rate, config->groups });
    return out[0] = cornu__activate_channels(layer, call, config->activation, y);
}

/* ---- Classes ---- */

static CornuStatus conv_resolve(CornuLayer *layer)
{
    CornuConv3dConfig *config = &((Conv *)layer)->config;
    const char        *name = cornu_layer_name(layer);
    const int          axes = cornu__spatial_axes(layer->kind);
    if (!config->groups) config->groups = 1;
    CORNU__TRY(cornu__positive(name, "filters", config->filters));
    CORNU__TRY(cornu__check_groups(name, config->groups, config->filters));
    if (axes > 1 || config->padding != CORNU_CAUSAL)
        CORNU__TRY(cornu__check_padding(name, config->padding));
    CORNU__TRY(cornu__extents(name, "kernel_size", "kernel", config->kernel, config->kernel_size,
                              0, axes, config->kernel_size));
    CORNU__TRY(cornu__extents(name, "strides", "stride", config->stride, config->strides, 1, axes,
                              config->strides));
    CORNU__TRY(cornu__extents(name, "dilation_rate", "dilation_rate", 0, config->dilation_rate, 1,
                              axes, config->dilation_rate));
    config->kernel = config->stride = 0;
    return cornu__resolve_activation(layer, &config->activation);
}

#define AT(name) offsetof(CornuConv3dConfig, name)
#define FIELDS(EXTENTS)                                    \
    {                                                      \
        { "filters", CORNU_FIELD_INTEGER, AT(filters) },   \
        { "kernel_size", EXTENTS, AT(kernel_size) },       \
        { "strides", EXTENTS, AT(strides) },               \
        { "padding", CORNU_FIELD_PADDING, AT(padding) },   \
        { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) }, \
        { "dilation_rate", EXTENTS, AT(dilation_rate) },   \
        { "groups", CORNU_FIELD_INTEGER, AT(groups) },     \
        CORNU__KERNEL_FIELDS(CornuConv3dConfig),           \
        { 0 },                                             \
    }
static const CornuField fields_1d[] = FIELDS(CORNU_FIELD_SINGLE);
static const CornuField fields_2d[] = FIELDS(CORNU_FIELD_PAIR);
static const CornuField fields_3d[] = FIELDS(CORNU_FIELD_TRIPLE);
#undef FIELDS
#undef AT

#define COMMON .size = sizeof(Conv), .build = conv_build, .call = conv_call, .mask = cornu__no_mask

const CornuLayerClass cornu__conv1d_class = {
    .class_name = "Conv1D", COMMON, .continues = CORNU__FULL(conv_continue, NULL),
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields_1d, Conv, conv_resolve),
                                       .lora = "kernel" },
};
const CornuLayerClass cornu__conv2d_class = {
    .class_name = "Conv2D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields_2d, Conv, conv_resolve),
                                       .lora = "kernel" },
};
const CornuLayerClass cornu__conv3d_class = {
    .class_name = "Conv3D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields_3d, Conv, conv_resolve),
                                       .lora = "kernel" },
};

/* ---- Constructors ---- */

/* The members that all configs have under the same names. */
#define SAME(c)                                                                                \
    .filters = (c)->filters, .padding = (c)->padding, .groups = (c)->groups,                   \
    .data_format = (c)->data_format, .activation = (c)->activation, .no_bias = (c)->no_bias,   \
    .kernel_initializer = (c)->kernel_initializer, .bias_initializer = (c)->bias_initializer,  \
    .kernel_regularizer = (c)->kernel_regularizer, .bias_regularizer = (c)->bias_regularizer,  \
    .activity_regularizer = (c)->activity_regularizer,                                         \
    .kernel_constraint = (c)->kernel_constraint, .bias_constraint = (c)->bias_constraint,      \
    .name = (c)->name, .frozen = (c)->frozen, .dtype = (c)->dtype

CornuLayer *cornu_conv1d_from(const CornuConv1dConfig *c)
{
    return cornu__layer_from(&cornu__conv1d_class, &(CornuConv3dConfig){
        SAME(c), .kernel_size = { c->kernel_size }, .strides = { c->strides },
        .dilation_rate = { c->dilation_rate } });
}

CornuLayer *cornu_conv2d_from(const CornuConv2dConfig *c)
{
    return cornu__layer_from(&cornu__conv2d_class, &(CornuConv3dConfig){
        SAME(c), .kernel = c->kernel, .stride = c->stride,
        .kernel_size = { c->kernel_size[0], c->kernel_size[1] },
        .strides = { c->strides[0], c->strides[1] },
        .dilation_rate = { c->dilation_rate[0], c->dilation_rate[1] } });
}

CORNU__CONSTRUCTOR(conv3d, CornuConv3dConfig)
