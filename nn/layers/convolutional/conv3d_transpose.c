/* Conv3DTranspose: the gradient of the convolution of an image, whose channels are the planes that
 * each plane of x adds to; these are then scattered along the depth. */
#include "convolution_internal.h"

/* Sizes resolved into the triples. */
typedef CORNU__LAYER(CornuConv3dTransposeConfig) Conv3dTranspose;

static CornuStatus conv3d_transpose_build(CornuLayer *layer, CornuShape input)
{
    const CornuConv3dTransposeConfig *config = &((Conv3dTranspose *)layer)->config;
    const int64_t                    *size = config->kernel_size;
    CORNU__TRY(cornu__build_spatial(layer, input));
    CORNU__TRY(cornu__declare_weight(layer, "kernel",
                                     cornu_shape(size[0], size[1], size[2], config->filters,
                                                 input.extent[4]),
                                     config->kernel_initializer, config->kernel_regularizer,
                                     config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare_weight(layer, "bias", cornu_shape(config->filters),
                                 config->bias_initializer, config->bias_regularizer,
                                 config->bias_constraint);
}

static CornuTensor *conv3d_transpose_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConv3dTransposeConfig *config = &((Conv3dTranspose *)layer)->config;
    CornuTensor                      *kernel = cornu_layer_read(layer, call, 0);
    CornuTensor *y = cornu__conv_transpose(
        x, kernel, cornu__bias(layer, call, config->no_bias, 1),
        &(CornuConvTranspose){ config->padding, config->strides, config->dilation_rate,
                               config->output_padding });
    return cornu__activate_channels(layer, call, config->activation, y);
}

static CornuStatus conv3d_transpose_resolve(CornuLayer *layer)
{
    CornuConv3dTransposeConfig *config = &((Conv3dTranspose *)layer)->config;
    const char                 *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__positive(name, "filters", config->filters));
    CORNU__TRY(cornu__resolve_window(layer, config->padding, &config->kernel, config->kernel_size,
                                     &config->stride, config->strides, config->dilation_rate));
    CORNU__TRY(cornu__resolve_output_padding(name, 3, config->strides, config->output_padding));
    return cornu__resolve_activation(layer, &config->activation);
}

#define AT(name) offsetof(CornuConv3dTransposeConfig, name)
static const CornuField fields[] = {
    { "filters", CORNU_FIELD_INTEGER, AT(filters) },
    { "kernel_size", CORNU_FIELD_TRIPLE, AT(kernel_size) },
    { "strides", CORNU_FIELD_TRIPLE, AT(strides) },
    { "padding", CORNU_FIELD_PADDING, AT(padding) },
    { "output_padding", CORNU_FIELD_TRIPLE_OR_NONE, AT(output_padding) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) },
    { "dilation_rate", CORNU_FIELD_TRIPLE, AT(dilation_rate) },
    CORNU__KERNEL_FIELDS(CornuConv3dTransposeConfig),
    { 0 },
};
#undef AT

const CornuLayerClass cornu__conv3d_transpose_class = {
    .class_name = "Conv3DTranspose", .size = sizeof(Conv3dTranspose),
    .build = conv3d_transpose_build, .call = conv3d_transpose_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields, Conv3dTranspose,
                                                      conv3d_transpose_resolve) },
};

CORNU__CONSTRUCTOR(conv3d_transpose, CornuConv3dTransposeConfig)
