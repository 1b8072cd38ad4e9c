/* Conv1D, Conv2D and Conv3D: sequences are images of one row; the depth of volumes is gathered into
 * channels (depth_internal.h). */
#include "convolution_internal.h"
#include "depth_internal.h"

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

/* The window over the last two axes of x. */
static CornuKernelWindow plane_window(const CornuConv3dConfig *c, int axes)
{
    if (axes == 1)
        return (CornuKernelWindow){ c->padding, { 1, c->kernel_size[0] }, { 1, c->strides[0] },
                                    { 1, c->dilation_rate[0] } };
    const int first = axes - 2;
    return cornu__kernel_window(c->padding, c->kernel_size + first, c->strides + first,
                                c->dilation_rate + first);
}

static CornuTensor *conv_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConv3dConfig *config = &((Conv *)layer)->config;
    const int                axes = cornu__spatial_axes(layer->kind);
    CornuTensor             *kernel = cornu_layer_read(layer, call, 0), *y;
    if (!x || !kernel) return NULL;
    if (axes == 3) {
        CornuVolumeWindow window = { .padding = config->padding };
        for (int i = 0; i < 3; i++) {
            window.size[i] = config->kernel_size[i];
            window.strides[i] = config->strides[i];
            window.dilation[i] = config->dilation_rate[i];
        }
        y = cornu__convolve_volume(x, kernel, &window, config->groups);
    } else {
        const CornuKernelWindow window = plane_window(config, axes);
        const CornuShape        k = cornu_tensor_shape(kernel);
        if (axes == 1) {
            kernel = cornu_op_reshape(kernel, cornu_shape(1, k.extent[0], k.extent[1],
                                                          k.extent[2]));
            x = cornu__as_image(x);
        }
        if (!x) return NULL;
        const CornuConvolution c = cornu__convolution(&window, cornu_tensor_shape(x),
                                                      config->groups);
        y = cornu_op_conv2d(x, kernel, &c);
        if (axes == 1) y = cornu__as_sequence(y);
    }
    return cornu__bias_and_activate(layer, call, y, config->no_bias ? -1 : 1, config->activation);
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
    .class_name = "Conv1D", COMMON,
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
