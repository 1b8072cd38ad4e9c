/* Conv2DTranspose, and Conv1DTranspose with sequences as images of one row. */
#include "../../../device/integer_internal.h"
#include "convolution_internal.h"

/* Sizes resolved into the pairs. */
typedef CORNU__LAYER(CornuConv2dTransposeConfig) Conv2dTranspose;

extern const CornuLayerClass cornu__conv1d_transpose_class;

static bool is_over_rows(const CornuLayer *layer)
{
    return cornu__spatial_axes(layer->kind) == 1;
}

/*
 * Keras dilates x with s - 1 rows of zeros between its rows and pads the result on both sides; the
 * padding of the convolution here is smaller by as many rows.
 * Source: keras/src/backend/common/backend_utils.py.
 */
void cornu__transposed_axis(const CornuTransposedAxis *axis, int64_t extent, int64_t *low,
                            int64_t *high, int64_t *out)
{
    const int64_t stride = axis->stride, size = (axis->size - 1) * axis->dilation + 1;
    const int64_t more = cornu__integer(axis->output_padding, 0);
    const bool    none = !axis->output_padding;
    int64_t       left = size - 1, right = size - 1 + (none ? larger(stride - size, 0) : more);
    if (axis->padding == CORNU_SAME) {
        const int64_t both = none ? stride + size - 2 : size + size % 2 - 2 + more;
        left = smaller(ceil_divide(both, 2), size - 1);
        right = both - left;
    }
    *low = size - 1 - left;
    *high = size - 1 - right;
    *out = (extent - 1) * stride + left + right - size + 2;
}

static CornuStatus conv2d_transpose_build(CornuLayer *layer, CornuShape input)
{
    const CornuConv2dTransposeConfig *config = &((Conv2dTranspose *)layer)->config;
    const int64_t *size = config->kernel_size, filters = config->filters;
    const bool     row = is_over_rows(layer);
    CORNU__TRY(cornu__build_spatial(layer, input));
    CORNU__TRY(cornu__declare_weight(layer, "kernel",
                                     row ? cornu_shape(size[1], filters, input.extent[2])
                                  : cornu_shape(size[0], size[1], filters, input.extent[3]),
                                     config->kernel_initializer, config->kernel_regularizer,
                                     config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    return cornu__declare_weight(layer, "bias", cornu_shape(config->filters),
                                 config->bias_initializer, config->bias_regularizer,
                                 config->bias_constraint);
}

static CornuTensor *conv2d_transpose_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConv2dTransposeConfig *config = &((Conv2dTranspose *)layer)->config;
    const int    first = is_over_rows(layer);   /* of the arguments' axes */
    CornuTensor *kernel = cornu_layer_read(layer, call, 0);
    CornuTensor *y = cornu__conv_transpose(
        x, kernel, cornu__bias(layer, call, config->no_bias, 1),
        &(CornuConvTranspose){ config->padding, config->strides + first,
                               config->dilation_rate + first, config->output_padding + first });
    return cornu__activate_channels(layer, call, config->activation, y);
}

static CornuStatus conv2d_transpose_resolve(CornuLayer *layer)
{
    CornuConv2dTransposeConfig *config = &((Conv2dTranspose *)layer)->config;
    const char                 *name = cornu_layer_name(layer);
    int64_t                    *more = config->output_padding;
    CORNU__TRY(cornu__positive(name, "filters", config->filters));
    CORNU__TRY(cornu__resolve_window(layer, config->padding, &config->kernel, config->kernel_size,
                                     &config->stride, config->strides, config->dilation_rate));
    if (cornu__spatial_axes(layer->kind) == 1) {
        if (!more[1]) more[1] = more[0];
        if (more[1]) more[0] = CORNU_ZERO;
    }
    CORNU__TRY(cornu__resolve_output_padding(name, 2, config->strides, more));
    return cornu__resolve_activation(layer, &config->activation);
}

#define AT(name) offsetof(CornuConv2dTransposeConfig, name)
static const CornuField fields[] = {
    { "filters", CORNU_FIELD_INTEGER, AT(filters) },
    CORNU__WINDOW_FIELDS(CornuConv2dTransposeConfig),
    { "padding", CORNU_FIELD_PADDING, AT(padding) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) },
    { "output_padding", CORNU_FIELD_PAIR_OR_NONE, AT(output_padding) },
    CORNU__KERNEL_FIELDS(CornuConv2dTransposeConfig),
    { 0 },
};

static const CornuField row_fields[] = {
    { "filters", CORNU_FIELD_INTEGER, AT(filters) },
    CORNU__ROW_WINDOW_FIELDS(CornuConv2dTransposeConfig),
    { "padding", CORNU_FIELD_PADDING, AT(padding) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) },
    { "output_padding", CORNU_FIELD_SINGLE_OR_NONE, AT(output_padding[1]) },
    CORNU__KERNEL_FIELDS(CornuConv2dTransposeConfig),
    { 0 },
};
#undef AT

const CornuLayerClass cornu__conv2d_transpose_class = {
    .class_name = "Conv2DTranspose", .size = sizeof(Conv2dTranspose),
    .build = conv2d_transpose_build, .call = conv2d_transpose_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields, Conv2dTranspose,
                                                      conv2d_transpose_resolve) },
};

const CornuLayerClass cornu__conv1d_transpose_class = {
    .class_name = "Conv1DTranspose", .size = sizeof(Conv2dTranspose),
    .build = conv2d_transpose_build, .call = conv2d_transpose_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(row_fields, Conv2dTranspose,
                                                      conv2d_transpose_resolve) },
};

CornuStatus cornu__resolve_output_padding(const char *name, int axes, const int64_t *strides,
                                          int64_t *padding)
{
    bool given = false;
    for (int i = 0; i < axes; i++) given |= padding[i] != 0;
    for (int i = 0; i < axes && given; i++) {
        if (!padding[i]) padding[i] = i && padding[0] != CORNU_ZERO ? padding[0] : CORNU_ZERO;
        const int64_t rows = cornu__integer(padding[i], 0);
        if (rows < 0 || rows >= strides[i])
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .output_padding is %lld, expected 0 "
                               "or more and less than .strides, %lld", name, (long long)rows,
                               (long long)strides[i]);
    }
    return CORNU_OK;
}

CORNU__CONSTRUCTOR(conv2d_transpose, CornuConv2dTransposeConfig)
CORNU__CONSTRUCTOR(conv1d_transpose, CornuConv2dTransposeConfig)
