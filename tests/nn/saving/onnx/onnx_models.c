#include "../../../../nn/model/symbol_internal.h"
#include "onnx_models.h"

/* A model of one input with the outputs of each of the layers. */
static CornuModel *each(const char *name, CornuSymbol *x, CornuLayer *const *layers, int count)
{
    CornuModelConfig config = { .inputs = { x }, .name = name };
    for (int i = 0; i < count; i++) config.outputs[i] = cornu_call(layers[i], x);
    return cornu_model_from(&config);
}
#define EACH(name, x, ...)                              \
    each((name), (x), (CornuLayer *[]){ __VA_ARGS__ }, \
         (int)(sizeof((CornuLayer *[]){ __VA_ARGS__ }) / sizeof(CornuLayer *)))

/* Gives it a layer of its own: a compiled model cannot have two outputs of one layer. */
static CornuSymbol *apart(CornuSymbol *x) { return cornu_call(cornu_activation(CORNU_LINEAR), x); }

/* ---- Activations ---- */

/* All activations by name, side by side. */
static CornuModel *activations(void)
{
    enum { FIRST = CORNU_DEFAULT_ACTIVATION + 1, HALF = (CORNU_ACTIVATION_COUNT - FIRST) / 2 };
    CornuSymbol *x = cornu_input(.shape = { 12 }), *y[2][CORNU_ACTIVATION_COUNT];
    int          count[2] = { 0 };
    for (int i = FIRST; i < CORNU_ACTIVATION_COUNT; i++) {
        const int half = i - FIRST >= HALF;
        y[half][count[half]++] = cornu_call(cornu_activation((CornuActivation)i), x);
    }
    return cornu_model(.inputs = { x }, .name = "activations",
                       .outputs = { cornu_call_from(cornu_concatenate(), y[0], count[0]),
                                    cornu_call_from(cornu_concatenate(), y[1], count[1]) });
}

static CornuModel *rectifiers(void)
{
    return EACH("rectifiers", cornu_input(.shape = { 4, 3 }), cornu_relu(),
                cornu_relu(.max_value = 1.0), cornu_relu(.negative_slope = 0.1),
                cornu_relu(.threshold = 0.5, .negative_slope = 0.2, .max_value = 1.5),
                cornu_leaky_relu(), cornu_prelu(), cornu_prelu(.shared_axes = { 1 }),
                cornu_elu(0.7));
}

static CornuModel *softmaxes(void)
{
    return EACH("softmaxes", cornu_input(.shape = { 4, 3 }), cornu_softmax(), cornu_softmax(1),
                cornu_softmax(.axes = { 1, 2 }));
}

/* ---- Convolutions and pooling ---- */

static CornuModel *convolutions(void)
{
    return EACH("convolutions", cornu_input(.shape = { 9, 8, 4 }),
                cornu_conv2d(6, 3, .strides = { 2, 1 }, .padding = CORNU_SAME, .groups = 2,
                             .activation = CORNU_RELU),
                cornu_conv2d(5, .kernel_size = { 2, 3 }, .dilation_rate = { 2, 1 },
                             .no_bias = true),
                cornu_conv2d(3, 4, .padding = CORNU_SAME, .dilation_rate = { 2 }),
                cornu_depthwise_conv2d(3, 2, .padding = CORNU_SAME, .depth_multiplier = 2),
                cornu_depthwise_conv2d(2, .dilation_rate = { 3 }, .no_bias = true,
                                       .activation = CORNU_SILU),
                cornu_separable_conv2d(5, 3, 2, .depth_multiplier = 2, .activation = CORNU_TANH),
                cornu_separable_conv2d(3, .kernel_size = { 1, 2 }, .padding = CORNU_SAME,
                                       .no_bias = true));
}

static CornuModel *transposed_convolutions(void)
{
    return EACH("transposed_convolutions", cornu_input(.shape = { 5, 4, 3 }),
                cornu_conv2d_transpose(4, 3, .activation = CORNU_RELU),
                cornu_conv2d_transpose(2, 3, 2, .padding = CORNU_SAME),
                cornu_conv2d_transpose(2, 4, 2, .padding = CORNU_SAME, .no_bias = true),
                cornu_conv2d_transpose(3, 2, .strides = { 3, 4 }),
                cornu_conv2d_transpose(3, 1, 3, .padding = CORNU_SAME),
                cornu_conv2d_transpose(2, .kernel_size = { 3, 2 }, .strides = { 2, 3 },
                                       .output_padding = { 1, 2 }),
                cornu_conv2d_transpose(2, 3, 2, .padding = CORNU_SAME, .output_padding = { 1 }),
                cornu_conv2d_transpose(2, 3, .dilation_rate = { 2, 1 }, .padding = CORNU_SAME));
}

static CornuModel *pools(void)
{
    return EACH("pools", cornu_input(.shape = { 9, 8, 3 }),
                cornu_max_pooling2d(2), cornu_max_pooling2d(3, 2, CORNU_SAME),
                cornu_average_pooling2d(.pool_size = { 2, 3 }, .strides = { 1, 2 }),
                cornu_average_pooling2d(3, 2, CORNU_SAME), cornu_global_average_pooling2d(),
                cornu_global_average_pooling2d(.keepdims = true), cornu_global_max_pooling2d(),
                cornu_global_max_pooling2d(.keepdims = true));
}

static CornuModel *over_sequences(void)
{
    return EACH("over_sequences", cornu_input(.shape = { 10, 4 }),
                cornu_conv1d(6, 3, .strides = 2, .padding = CORNU_SAME, .activation = CORNU_RELU),
                cornu_conv1d(3, 2, .dilation_rate = 2, .padding = CORNU_CAUSAL),
                cornu_conv1d(4, 3, .groups = 2, .no_bias = true), cornu_max_pooling1d(3),
                cornu_max_pooling1d(3, 2, CORNU_SAME), cornu_average_pooling1d(2, 1, CORNU_SAME),
                cornu_global_average_pooling1d(), cornu_global_max_pooling1d(.keepdims = true));
}

static CornuModel *windows_of_sequences(void)
{
    return EACH("windows_of_sequences", cornu_input(.shape = { 10, 4 }),
                cornu_depthwise_conv1d(.kernel_size = { 3 }, .padding = CORNU_SAME,
                                       .depth_multiplier = 2),
                cornu_separable_conv1d(5, .kernel_size = { 3 }, .strides = { 2 },
                                       .activation = CORNU_TANH),
                cornu_conv1d_transpose(3, .kernel_size = { 3 }, .strides = { 2 },
                                       .padding = CORNU_SAME),
                cornu_conv1d_transpose(2, .kernel_size = { 2 }, .strides = { 3 }),
                cornu_conv1d_transpose(2, .kernel_size = { 3 }, .strides = { 2 },
                                       .output_padding = { 1 }),
                cornu_zero_padding1d(.padding = { 1, 2 }), cornu_cropping1d(.cropping = { 2, 1 }),
                cornu_up_sampling1d(3));
}

/* ---- Volumes ---- */

static CornuModel *volumes(void)
{
    return EACH("volumes", cornu_input(.shape = { 5, 4, 6, 2 }),
                cornu_conv3d(4, 3, .strides = { 2, 1, 1 }, .padding = CORNU_SAME, .groups = 2,
                             .activation = CORNU_RELU),
                cornu_conv3d(3, .kernel_size = { 2, 1, 3 }, .dilation_rate = { 2, 1, 1 }),
                cornu_conv3d_transpose(3, 2, 2),
                cornu_conv3d_transpose(2, 3, 2, .padding = CORNU_SAME, .output_padding = { 1 }),
                cornu_conv3d_transpose(2, .kernel_size = { 2, 3, 1 }, .strides = { 3, 1, 1 },
                                       .padding = CORNU_SAME),
                cornu_max_pooling3d(2), cornu_max_pooling3d(3, 2, CORNU_SAME),
                cornu_average_pooling3d(.pool_size = { 1, 2, 3 }, .padding = CORNU_SAME));
}

static CornuModel *around_volumes(void)
{
    return EACH("around_volumes", cornu_input(.shape = { 5, 4, 6, 2 }),
                cornu_global_average_pooling3d(), cornu_global_max_pooling3d(.keepdims = true),
                cornu_zero_padding3d(.padding = { { 1, 2 }, { 0, 1 }, { 3, 0 } }),
                cornu_cropping3d(.cropping = { { 1, 2 }, { 0, 1 }, { 3, 0 } }),
                cornu_up_sampling3d(.size = { 2, 1, 3 }), cornu_spatial_dropout3d(0.5),
                cornu_adaptive_average_pooling3d(.output_size = { 2, 4, 1 }),
                cornu_adaptive_max_pooling3d(3));
}

static CornuModel *adaptive(void)
{
    return EACH("adaptive", cornu_input(.shape = { 7, 5, 2 }),
                cornu_adaptive_average_pooling2d(3),
                cornu_adaptive_max_pooling2d(.output_size = { 2, 4 }));
}

static CornuModel *adaptive_sequences(void)
{
    return EACH("adaptive_sequences", cornu_input(.shape = { 7, 2 }),
                cornu_adaptive_average_pooling1d(3), cornu_adaptive_max_pooling1d(2));
}

/* The transposes between such layers and their operators are not written. */
static CornuModel *channels_first(void)
{
    CornuModel *model = cornu_sequential(.name = "channels_first", .input_shape = { 2, 9, 8 });
    cornu_model_add(model, cornu_conv2d(4, 3, .data_format = CORNU_CHANNELS_FIRST,
                                        .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization(.axis = 1));
    cornu_model_add(model, cornu_depthwise_conv2d(2, .data_format = CORNU_CHANNELS_FIRST,
                                                  .activation = CORNU_SOFTMAX));
    cornu_model_add(model, cornu_zero_padding2d(1, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_max_pooling2d(2, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_conv2d_transpose(2, 2, 2, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_up_sampling2d(2, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_average_pooling2d(2, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_flatten(.data_format = CORNU_CHANNELS_FIRST));
    return model;
}

static CornuModel *by_channel(void)
{
    return EACH("by_channel", cornu_input(.shape = { 5, 4, 3 }),
                cornu_batch_normalization(.axis = 1), cornu_batch_normalization(.axis = 2),
                cornu_batch_normalization(.axis = 3, .renorm = true),
                cornu_global_max_pooling2d(.data_format = CORNU_CHANNELS_FIRST));
}

/* ---- Images ---- */

static CornuModel *sizes(void)
{
    return EACH("sizes", cornu_input(.shape = { 5, 4, 2 }),
                cornu_zero_padding2d(.padding = { { 1, 2 }, { 0, 3 } }),
                cornu_cropping2d(.cropping = { { 1, 2 }, { 0, 1 } }),
                cornu_up_sampling2d(.size = { 3, 2 }),
                cornu_up_sampling2d(.size = { 2, 3 }, .interpolation = CORNU_BILINEAR),
                cornu_resizing(7, 6), cornu_resizing(3, 2),
                cornu_resizing(10, 3, .interpolation = CORNU_NEAREST), cornu_rescaling(0.5, 0.25));
}

static CornuModel *resizings(void)
{
    return EACH("resizings", cornu_input(.shape = { 6, 5, 2 }),
                cornu_resizing(9, 8, .interpolation = CORNU_BICUBIC),
                cornu_resizing(4, 3, .interpolation = CORNU_LANCZOS3),
                cornu_resizing(8, 7, .interpolation = CORNU_LANCZOS5),
                cornu_resizing(3, 2, .antialias = true),
                cornu_resizing(2, 7, .interpolation = CORNU_BICUBIC, .antialias = true),
                cornu_resizing(3, 5, .crop_to_aspect_ratio = true),
                cornu_resizing(4, 9, .pad_to_aspect_ratio = true, .fill_value = 0.5),
                cornu_up_sampling2d(2, .interpolation = CORNU_BICUBIC));
}

/* Cropping and padding before Resize keep the order of axes. */
static CornuModel *ratios_of_channels_first(void)
{
    return EACH("ratios_of_channels_first", cornu_input(.shape = { 2, 6, 5 }),
                cornu_resizing(3, 5, .crop_to_aspect_ratio = true,
                               .data_format = CORNU_CHANNELS_FIRST),
                cornu_resizing(4, 9, .pad_to_aspect_ratio = true, .fill_value = 0.5,
                               .data_format = CORNU_CHANNELS_FIRST),
                cornu_center_crop(7, 5, .data_format = CORNU_CHANNELS_FIRST),
                cornu_center_crop(4, 3, .data_format = CORNU_CHANNELS_FIRST));
}

/* Layers between convolutions keep their order of axes: one transpose, at the start. */
static CornuModel *chain(void)
{
    CornuModel *model = cornu_sequential(.name = "chain", .input_shape = { 9, 8, 2 });
    cornu_model_add(model, cornu_rescaling(0.5, 0.25));
    cornu_model_add(model, cornu_conv2d(4, 3, .strides = { 2, 1 }, .padding = CORNU_SAME,
                                        .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization(.no_scale = true));
    cornu_model_add(model, cornu_zero_padding2d(.padding = { { 0, 1 }, { 2, 0 } }));
    cornu_model_add(model, cornu_depthwise_conv2d(3, .no_bias = true,
                                                  .activation = CORNU_LEAKY_RELU));
    cornu_model_add(model, cornu_up_sampling2d(2));
    cornu_model_add(model, cornu_batch_normalization(.no_center = true));
    cornu_model_add(model, cornu_max_pooling2d(2, 1, CORNU_SAME));
    cornu_model_add(model, cornu_cropping2d(.cropping = { { 0, 1 }, { 1, 0 } }));
    cornu_model_add(model, cornu_conv2d(3, 2, .dilation_rate = { 2, 2 }, .activation = CORNU_GELU));
    cornu_model_add(model, cornu_up_sampling2d(.size = { 1, 2 }, .interpolation = CORNU_BILINEAR));
    cornu_model_add(model, cornu_global_average_pooling2d());
    cornu_model_add(model, cornu_dense(4, .activation = CORNU_SOFTMAX));
    return model;
}

/* A transpose stands before the Resize, and another may be moved to it. */
static CornuModel *upscaled(void)
{
    CornuSymbol *x = cornu_input(.shape = { 6, 4, 1 });
    CornuSymbol *y = cornu_call(cornu_conv2d(2, 3, .strides = { 2, 2 }, .padding = CORNU_SAME), x);
    y = cornu_call(cornu_up_sampling2d(2, .interpolation = CORNU_BILINEAR),
                   cornu_call(cornu_prelu(), y));
    y = cornu_call(cornu_concatenate(), y, cornu_call(cornu_conv2d(2, 1), x));
    return cornu_model(.inputs = { x }, .name = "upscaled",
                       .outputs = { cornu_call(cornu_conv2d(1, 1), y) });
}

/* Branches of the same order of axes merge without a transpose; one merges with another order. */
static CornuModel *residual(void)
{
    CornuSymbol *x = cornu_input(.shape = { 6, 5, 4 });
    CornuSymbol *a = cornu_call(cornu_conv2d(4, 3, .padding = CORNU_SAME), x);
    CornuSymbol *b = cornu_call(cornu_conv2d(4, 1, .activation = CORNU_HARD_SILU), x);
    CornuSymbol *y = cornu_call(cornu_activation(CORNU_RELU), cornu_call(cornu_add(), a, b));
    y = cornu_call(cornu_concatenate(), y, cornu_call(cornu_multiply(), a, b), a);
    y = cornu_call(cornu_conv2d(3, 2), y);
    return cornu_model(.inputs = { x }, .name = "residual",
                       .outputs = { y, cornu_call(cornu_subtract(), a, x),
                                    cornu_call(cornu_custom_scale_layer(0.2), a, b) });
}

/* ---- Normalization ---- */

static CornuModel *by_row(void)
{
    return EACH("by_row", cornu_input(.shape = { 6, 5, 4 }), cornu_layer_normalization(),
                cornu_layer_normalization(.axes = { 2, 3 }, .no_scale = true),
                cornu_layer_normalization(.axes = { 1, 3 }, .epsilon = 0.1),
                cornu_layer_normalization(1, .no_center = true),
                cornu_layer_normalization(.rms_scaling = true), cornu_rms_normalization(),
                cornu_rms_normalization(.axes = { 1, 2 }), cornu_unit_normalization(),
                cornu_layer_scale(0.5, 4), cornu_stochastic_depth(0.3));
}

static CornuModel *by_group(void)
{
    return EACH("by_group", cornu_input(.shape = { 6, 5, 4 }), cornu_group_normalization(2),
                cornu_group_normalization(-1, 1, .no_scale = true),
                cornu_group_normalization(1, .no_center = true), cornu_batch_normalization(),
                cornu_unit_normalization(.axes = { 1, 2, 3 }));
}

static CornuModel *by_data(void)
{
    return EACH("by_data", cornu_input(.shape = { 3, 4 }), cornu_normalization(),
                cornu_normalization(1, .invert = true), cornu_normalization(CORNU_ZERO),
                cornu_normalization(.mean = 0.5, .variance = 2.0),
                cornu_normalization(.mean = 1.0, .variance = CORNU_ZERO, .invert = true),
                cornu_batch_normalization(.epsilon = 0.5));
}

/* ---- Shapes, and layers without effect ---- */

static CornuModel *shapes(void)
{
    CornuSymbol *x = cornu_input(.shape = { 3, 4, 2 });
    CornuSymbol *flat = cornu_call(cornu_flatten(), x);
    CornuSymbol *turned = cornu_call(cornu_permute(.dims = { 3, 1, 2 }), x);
    CornuSymbol *back = cornu_call(cornu_permute(.dims = { 2, 3, 1 }), turned);
    return cornu_model(.inputs = { x }, .name = "shapes",
                       .outputs = { flat, turned, back, cornu_call(cornu_repeat_vector(3), flat),
                                    cornu_call(cornu_reshape(.target_shape = { 2, -1 }), x) });
}

static CornuModel *random_ones(void)
{
    CornuModel *model = cornu_sequential(.name = "random_ones", .input_shape = { 4, 4, 1 });
    cornu_model_add(model, cornu_random_flip());
    cornu_model_add(model, cornu_random_translation(0.2, 0.2));
    cornu_model_add(model, cornu_random_rotation(0.2));
    cornu_model_add(model, cornu_random_zoom(0.2));
    cornu_model_add(model, cornu_spatial_dropout2d(0.5));
    cornu_model_add(model, cornu_gaussian_noise(1.0));
    cornu_model_add(model, cornu_reshape(.target_shape = { 4, 4 }));
    cornu_model_add(model, cornu_spatial_dropout1d(0.5));
    cornu_model_add(model, cornu_gaussian_dropout(0.5));
    cornu_model_add(model, cornu_alpha_dropout(0.5));
    cornu_model_add(model, cornu_dropout(0.5));
    cornu_model_add(model, cornu_activity_regularization(0.1, 0.2));
    return model;
}

/* ---- Merges ---- */

static CornuModel *merges(void)
{
    CornuSymbol *x = cornu_input(.shape = { 3, 4 }), *y = cornu_input(.shape = { 4 });
    return cornu_model(.inputs = { x, y }, .name = "merges", .outputs = {
        cornu_call(cornu_add(), x, y, x), cornu_call(cornu_subtract(), y, x),
        cornu_call(cornu_multiply(), x, y), cornu_call(cornu_average(), x, y, y),
        cornu_call(cornu_maximum(), x, y), cornu_call(cornu_minimum(), x, y),
        cornu_call(cornu_concatenate(1), x, cornu_call(cornu_repeat_vector(2), y)),
        cornu_call(cornu_concatenate(), x, x),
    });
}

static CornuModel *dots(void)
{
    CornuSymbol *x = cornu_input(.shape = { 3, 4 }), *y = cornu_input(.shape = { 5, 4 });
    CornuSymbol *flat = cornu_call(cornu_flatten(), x);
    return cornu_model(.inputs = { x, y }, .name = "dots", .outputs = {
        cornu_call(cornu_dot(2), x, y), cornu_call(cornu_dot(-1, .normalize = true), x, y),
        cornu_call(cornu_dot(.both_axes = { 1, 2 }), x,
                   cornu_call(cornu_permute(.dims = { 2, 1 }), x)),
        cornu_call(cornu_dot(1), flat, flat),
    });
}

/* ---- Sequences ---- */

static CornuModel *sequence(void)
{
    CornuModel *model = cornu_sequential(.name = "sequence", .input_shape = { 5 });
    cornu_model_add(model, cornu_embedding(10, 4));
    cornu_model_add(model, cornu_bidirectional(cornu_lstm(3, .return_sequences = true)));
    cornu_model_add(model, cornu_time_distributed(cornu_dense(3, .activation = CORNU_TANH)));
    cornu_model_add(model, cornu_gru(4, .return_sequences = true, .go_backwards = true));
    cornu_model_add(model, cornu_gru(3, .no_reset_after = true, .return_sequences = true));
    cornu_model_add(model, cornu_bidirectional(cornu_simple_rnn(3, .return_sequences = true),
                                               .merge_mode = CORNU_MERGE_AVE));
    cornu_model_add(model, cornu_lstm(4, .no_bias = true, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *recurrence(void)
{
    return EACH("recurrence", cornu_input(.shape = { 5, 3 }), cornu_lstm(4, .go_backwards = true),
                cornu_gru(4, .no_bias = true), cornu_simple_rnn(2, .return_sequences = true),
                cornu_bidirectional(cornu_gru(3), .merge_mode = CORNU_MERGE_MUL),
                cornu_bidirectional(cornu_lstm(3, .return_sequences = true),
                                    .merge_mode = CORNU_MERGE_SUM),
                cornu_bidirectional(cornu_simple_rnn(2, .go_backwards = true),
                                    .backward_layer = cornu_lstm(4)),
                cornu_simple_rnn(3, .activation = CORNU_LINEAR),
                cornu_simple_rnn(3, .activation = CORNU_LEAKY_RELU));
}

static CornuModel *cells(void)
{
    return EACH("cells", cornu_input(.shape = { 4, 3 }),
                cornu_lstm(3, .recurrent_activation = CORNU_HARD_SIGMOID),
                cornu_lstm(3, .recurrent_activation = CORNU_KERAS_2_HARD_SIGMOID,
                           .activation = CORNU_ELU),
                cornu_gru(3, .recurrent_activation = CORNU_HARD_SIGMOID,
                          .activation = CORNU_SOFTSIGN),
                cornu_gru(3, .recurrent_activation = CORNU_SPARSE_SIGMOID,
                          .activation = CORNU_LEAKY_RELU, .no_reset_after = true),
                cornu_lstm(3, .activation = CORNU_LINEAR), cornu_gru(3, .activation = CORNU_CELU),
                cornu_simple_rnn(3, .activation = CORNU_SOFTPLUS));
}

/* Activations that ONNX' recurrent operators lack. */
static CornuModel *loops(void)
{
    return EACH("loops", cornu_input(.shape = { 4, 3 }),
                cornu_lstm(3, .recurrent_activation = CORNU_SILU, .activation = CORNU_GELU),
                cornu_gru(3, .recurrent_activation = CORNU_SOFTMAX, .go_backwards = true,
                          .return_sequences = true, .no_bias = true),
                cornu_gru(3, .activation = CORNU_MISH, .no_reset_after = true),
                cornu_simple_rnn(3, .activation = CORNU_SELU, .return_sequences = true),
                cornu_bidirectional(cornu_lstm(2, .activation = CORNU_HARD_SILU)),
                cornu_lstm(2, .activation = CORNU_SPARSE_PLUS));
}

/* A mask reaches recurrent layers. */
static CornuModel *masked_loops(void)
{
    CornuSymbol *x = cornu_input(.shape = { 5, 4 }), *y = cornu_call(cornu_masking(), x);
    CornuSymbol *h = cornu_call(cornu_lstm(3, .return_state = true, .return_sequences = true), y);
    CornuSymbol *in[] = { y, cornu_call_result(h, 1), cornu_call_result(h, 2) };
    return cornu_model(.inputs = { x }, .name = "masked_loops", .outputs = {
        h, cornu_call_from(cornu_lstm(3, .zero_output_for_mask = true), in, 3),
        cornu_call(cornu_gru(3, .return_sequences = true), h),
        cornu_call(cornu_gru(2, .go_backwards = true, .zero_output_for_mask = true), y),
        cornu_call(cornu_bidirectional(cornu_simple_rnn(2, .return_sequences = true)), y),
        cornu_call(cornu_global_average_pooling1d(), cornu_call(
            cornu_bidirectional(cornu_gru(2, .return_sequences = true)), y)),
        cornu_call(cornu_rnn(cornu_stacked_rnn_cells(.cells = { cornu_gru_cell(2),
                                                                cornu_lstm_cell(3) })), y),
    });
}

static CornuModel *own_cells(void)
{
    return EACH("own_cells", cornu_input(.shape = { 4, 3 }), cornu_rnn(cornu_lstm_cell(3)),
                cornu_rnn(cornu_gru_cell(2, .activation = CORNU_GELU), .return_sequences = true),
                cornu_bidirectional(cornu_rnn(cornu_simple_rnn_cell(2), .unroll = true)),
                cornu_rnn(cornu_stacked_rnn_cells(.cells = {
                    cornu_lstm_cell(3), cornu_gru_cell(4), cornu_simple_rnn_cell(2) }),
                          .return_sequences = true, .go_backwards = true));
}

static CornuModel *pictures_in_time(void)
{
    CornuSymbol *x = cornu_input(.shape = { 3, 6, 5, 2 });
    CornuSymbol *y = cornu_call(cornu_conv_lstm2d(2, 3, .stride = 2, .return_state = true), x);
    CornuSymbol *in[] = { cornu_call(cornu_conv_lstm2d(3, 2, .padding = CORNU_SAME,
                                                       .return_sequences = true), x),
                          cornu_call_result(y, 1), cornu_call_result(y, 2) };
    CornuSymbol *rows = cornu_call(cornu_reshape(.target_shape = { 3, 10, 6 }), x);
    return cornu_model(.inputs = { x }, .name = "pictures_in_time", .outputs = {
        cornu_call_from(cornu_conv_lstm2d(2, 3, .stride = 2, .go_backwards = true,
                                          .return_sequences = true), in, 3),
        cornu_call(cornu_conv_lstm1d(2, 3, .dilation_rate = { 2 }, .no_bias = true,
                                     .activation = CORNU_RELU), rows),
        cornu_call(cornu_bidirectional(cornu_conv_lstm1d(2, 4)), rows),
    });
}

/* A decoder starts from the states of an encoder. */
static CornuModel *states(void)
{
    CornuSymbol *source = cornu_input(.shape = { 5, 3 }), *target = cornu_input(.shape = { 4, 2 });
    CornuSymbol *h = cornu_call(cornu_lstm(3, .return_state = true, .return_sequences = true),
                                source);
    CornuSymbol *lstm[] = { target, cornu_call_result(h, 1), cornu_call_result(h, 2) };
    CornuSymbol *y = cornu_call_from(cornu_lstm(3, .return_sequences = true), lstm, 3);
    CornuSymbol *gru = cornu_call(cornu_gru(3, .return_state = true, .go_backwards = true), source);
    CornuSymbol *rnn[] = { target, cornu_call_result(gru, 1) };
    CornuSymbol *last = cornu_call_from(cornu_simple_rnn(3, .return_state = true), rnn, 2);
    return cornu_model(.inputs = { source, target }, .name = "states",
                       .outputs = { y, h, apart(cornu_call_result(h, 2)), last,
                                    apart(cornu_call_result(last, 1)) });
}

/* Likewise in both directions, whose results stay separate. */
static CornuModel *states_of_both(void)
{
    CornuSymbol *x = cornu_input(.shape = { 5, 3 });
    CornuSymbol *a = cornu_call(cornu_bidirectional(
        cornu_lstm(3, .return_state = true, .return_sequences = true),
        .merge_mode = CORNU_MERGE_NONE), x);
    CornuSymbol *in[5] = { x };
    for (int i = 1; i < 5; i++) in[i] = cornu_call_result(a, 1 + i);
    CornuSymbol *b = cornu_call_from(cornu_bidirectional(cornu_lstm(3)), in, 5);
    return cornu_model(.inputs = { x }, .name = "states_of_both",
                       .outputs = { a, apart(cornu_call_result(a, 1)),
                                    apart(cornu_call_result(a, 5)), b });
}

static CornuModel *positions(void)
{
    CornuSymbol *x = cornu_input(.shape = { 5, 3 });
    CornuSymbol *y = cornu_call(cornu_add(), x, cornu_call(cornu_position_embedding(5), x));
    CornuSymbol *z = cornu_call(cornu_position_embedding(8), x);
    return cornu_model(.inputs = { x }, .name = "positions",
                       .outputs = { y, cornu_call(cornu_multiply(), x, z) });
}

/* ---- Attention ---- */

static CornuModel *attention(void)
{
    CornuSymbol *x = cornu_input(.shape = { 5, 4 });
    CornuSymbol *scored = cornu_call(
        cornu_multi_head_attention(2, 3, 5, .return_attention_scores = true, .use_gate = true), x);
    return cornu_model(.inputs = { x }, .name = "attention", .outputs = {
        cornu_call(cornu_multi_head_attention(2, 3, .use_causal_mask = true), x), scored,
        apart(cornu_call_result(scored, 1)),
        cornu_call(cornu_multi_head_attention(3, 2, .no_bias = true, .sliding_window = 2), x),
        cornu_call(cornu_multi_head_attention(2, 2, .output_shape = { 2, 3 }), x),
    });
}

/* Along some of several axes. */
static CornuModel *attention_axes(void)
{
    CornuSymbol *x = cornu_input(.shape = { 3, 4, 5 }), *y = cornu_input(.shape = { 3, 2, 4 });
    return cornu_model(.inputs = { x, y }, .name = "attention_axes", .outputs = {
        cornu_call(cornu_multi_head_attention(2, 3), x),
        cornu_call(cornu_multi_head_attention(2, 3, .attention_axes = { 1 }), x),
        cornu_call(cornu_multi_head_attention(2, 3, .attention_axes = { 2 }, .use_gate = true), x,
                   y),
        cornu_call(cornu_multi_head_attention(1, 2, .attention_axes = { -3 },
                                              .output_shape = { 2, 3 }), x),
    });
}

static CornuModel *cross_attention(void)
{
    CornuSymbol *query = cornu_input(.shape = { 5, 4 }), *value = cornu_input(.shape = { 6, 3 });
    CornuSymbol *key = cornu_call(cornu_dense(2), value);
    CornuSymbol *mask = cornu_call(
        cornu_activation(CORNU_RELU),
        cornu_call(cornu_dot(2), cornu_call(cornu_dense(3), query), value));
    return cornu_model(.inputs = { query, value }, .name = "cross_attention", .outputs = {
        cornu_call(cornu_multi_head_attention(2, 3), query, value),
        cornu_call(cornu_multi_head_attention(2, 3), query, value, key),
        cornu_call(cornu_multi_head_attention(2, 3, .use_causal_mask = true), query, value, key,
                   mask),
    });
}

/* ---- Masks, from words that are not 0 and steps that are not all 0 ---- */

static CornuModel *masks(void)
{
    CornuSymbol *words = cornu_input(.shape = { 5 }), *steps = cornu_input(.shape = { 5, 4 });
    CornuSymbol *x = cornu_call(cornu_embedding(10, 4, .mask_zero = true), words);
    CornuSymbol *y = cornu_call(cornu_masking(), steps);
    CornuSymbol *either = cornu_call(cornu_add(), x, y);
    CornuSymbol *wide = cornu_call(cornu_concatenate(), x, y);
    CornuSymbol *long_one = cornu_call(cornu_concatenate(1), steps, x);
    CornuSymbol *on = cornu_call(cornu_time_distributed(cornu_dense(3)),
                                 cornu_call(cornu_dropout(0.5), y));
    return cornu_model(.inputs = { words, steps }, .name = "masks", .outputs = {
        cornu_call(cornu_multi_head_attention(2, 3), cornu_call(cornu_leaky_relu(), x),
                   cornu_call(cornu_leaky_relu(), y)),    /* which lose their masks by it */
        cornu_call(cornu_global_average_pooling1d(), either),
        cornu_call(cornu_global_average_pooling1d(.keepdims = true), wide),
        cornu_call(cornu_global_average_pooling1d(), long_one),
        cornu_call(cornu_global_average_pooling1d(), on),
        cornu_call(cornu_global_average_pooling1d(), cornu_call(cornu_maximum(), x, steps)), y,
        cornu_call(cornu_global_max_pooling1d(), y),
    });
}

/* Softmax takes a mask of any shape that broadcasts to its input. */
static CornuModel *masked_scores(void)
{
    CornuSymbol *x = cornu_input(.shape = { 4, 5 }), *y = cornu_input(.shape = { 4, 5 });
    CornuSymbol *mask = cornu_call(cornu_activation(CORNU_RELU), y);
    return cornu_model(.inputs = { x, y }, .name = "masked_scores", .outputs = {
        cornu__call_with(cornu_softmax(), &x, 1, &(CornuCallOptions){ .masks = { mask } }),
        cornu__call_with(cornu_softmax(1), &x, 1, &(CornuCallOptions){ .masks = { mask } }),
    });
}

/* The activation halves what the layer before it makes. */
static CornuModel *halved(void)
{
    CornuSymbol *x = cornu_input(.shape = { 6, 4 });
    CornuSymbol *y = cornu_call(cornu_reshape({ 6, 4, 1 }), x);
    CornuSymbol *first = cornu_call(cornu_reshape({ 1, 6, 4 }), x);
    return cornu_model(.inputs = { x }, .name = "halved", .outputs = {
        cornu_call(cornu_dense(6, .activation = CORNU_GLU), x),
        cornu_call(cornu_conv1d(4, 3, .activation = CORNU_GLU), x),
        cornu_call(cornu_conv2d(2, 3, .activation = CORNU_GLU), y),
        cornu_call(cornu_conv2d(3, 3, .activation = CORNU_GLU,
                                .data_format = CORNU_CHANNELS_FIRST), first),
    });
}

/* ---- Nested models, and layers that are called more than once ---- */

static CornuModel *branches(void)
{
    CornuSymbol *source = cornu_input(.shape = { 4 }, .name = "source");
    CornuSymbol *side = cornu_input(.shape = { 6 }, .name = "side");
    CornuSymbol *h = cornu_input(.shape = { 4 });
    CornuModel  *encoder = cornu_model(
        .inputs = { h }, .outputs = { cornu_call(cornu_dense(3, .activation = CORNU_TANH), h) },
        .name = "encoder");
    CornuLayer  *shared = cornu_dense(4, .activation = CORNU_ELU);
    CornuSymbol *a = cornu_call(shared, source);
    CornuSymbol *b = cornu_call(shared, cornu_call(cornu_dense(4), side));
    CornuSymbol *code = cornu_call(cornu_as_layer(encoder), a);
    CornuSymbol *again = cornu_call(cornu_as_layer(encoder), b);
    CornuSymbol *both = cornu_call(cornu_concatenate(), code, again, side);
    CornuSymbol *scores = cornu_call(cornu_dense(3, .activation = CORNU_SOFTMAX), both);
    CornuModel  *model = cornu_model(.inputs = { source, side }, .outputs = { scores, a, apart(b) },
                                     .name = "branches");
    cornu_model_free(encoder);   /* the calls hold it */
    return model;
}

/* Weights that the file has in another form are in it once. */
static CornuModel *called_again(void)
{
    CornuSymbol *image = cornu_input(.shape = { 6, 5, 2 }), *x = image;
    CornuSymbol *h = cornu_input(.shape = { 5, 6 });
    CornuLayer  *convolution = cornu_conv2d(2, 3, .padding = CORNU_SAME);
    CornuLayer  *norm = cornu_batch_normalization(), *scale = cornu_layer_normalization(1);
    CornuModel  *each_step = cornu_model(
        .inputs = { h }, .outputs = { cornu_call(cornu_gru(3), h) }, .name = "each_step");
    for (int i = 0; i < 2; i++)
        x = cornu_call(scale, cornu_call(norm, cornu_call(convolution, x)));
    CornuSymbol *rows = cornu_call(cornu_reshape(.target_shape = { 2, 5, 6 }), x);
    CornuLayer  *lstm = cornu_time_distributed(cornu_lstm(6, .return_sequences = true));
    for (int i = 0; i < 2; i++) rows = cornu_call(lstm, rows);
    rows = cornu_call(cornu_time_distributed(cornu_as_layer(each_step)), rows);
    cornu_model_free(each_step);
    return cornu_model(.inputs = { image }, .outputs = { rows }, .name = "called_again");
}

/* ---- All ---- */

const OnnxCase onnx_cases[] = {
    { "activations", activations,
      "Concat 2 HardSigmoid 3 HardSwish 1 Shrink 2 Softplus 3 Split 1 Clip 2 TopK 1 CumSum 2 "
      "constants 24" },
    { "adaptive", adaptive, "ReduceMean 6 ReduceMax 6 Slice 12 Concat 4" },
    { "adaptive_sequences", adaptive_sequences, "Slice 5 Concat 2" },
    { "around_volumes", around_volumes, "ReduceMean 4 ReduceMax 7 MaxPool 1 Pad 1 Gather 0" },
    { "attention", attention, "MatMul 25 Softmax 4 Where 2 Sigmoid 1 Transpose 16 constants 52" },
    { "attention_axes", attention_axes, "MatMul 25 Softmax 4" },
    { "augmented", onnx_augmented, "Resize 0" },
    { "branches", branches, "MatMul 6 Elu 2 Tanh 2 Concat 1 constants 8" },
    { "by_channel", by_channel, "BatchNormalization 3 ReduceMax 1" },
    { "by_data", by_data, "Div 3 BatchNormalization 1 constants 17" },
    { "by_group", by_group, "BatchNormalization 1 ReduceMean 6 ReduceL2 1 constants 25" },
    { "by_row", by_row, "LayerNormalization 2 ReduceMean 8 ReduceL2 1 constants 26" },
    { "called_again", called_again, "Conv 2 BatchNormalization 2 LSTM 2 GRU 1 constants 30" },
    { "categories", onnx_categories, "Equal 6" },
    { "cells", cells, "LSTM 3 GRU 3 RNN 1 Transpose 1 constants 28" },
    { "chain", chain,
      "Transpose 1 Conv 3 BatchNormalization 2 Gather 0 MaxPool 1 "
      "Pad 1 Slice 1 Resize 2 ReduceMean 1" },
    { "channels_first", channels_first, "Transpose 1 Conv 2 ConvTranspose 1" },
    { "convolutions", convolutions, "Conv 9 Transpose 8 constants 13" },
    { "cross_attention", cross_attention, "MatMul 21 Softmax 3 And 1 Where 1" },
    { "dots", dots, "MatMul 4 ReduceL2 2 Transpose 4" },
    { "halved", halved, "Split 4 Conv 3 Sigmoid 4" },
    { "loops", loops, "Scan 7 LSTM 0" },
    { "masked_loops", masked_loops, "Scan 9" },
    { "masked_scores", masked_scores, "Where 4" },
    { "masks", masks, "Where 7 Or 2 And 1 Equal 2 Expand 1 ReduceSum 8 ReduceMean 1" },
    { "merges", merges, "Add 4 Sub 1 Mul 2 Max 1 Min 1 Concat 2 Expand 1" },
    { "over_sequences", over_sequences,
      "Conv 3 MaxPool 2 AveragePool 1 ReduceMax 1 ReduceMean 1 Transpose 7" },
    { "own", onnx_own_layers, "Where 1 Or 1 Range 0 Conv 1 ConvTranspose 1 MatMul 1 OneHot 1" },
    { "own_cells", own_cells, "LSTM 2 GRU 1 RNN 3 Scan 1" },
    { "pictures_in_time", pictures_in_time, "Scan 6" },
    { "pools", pools, "MaxPool 2 AveragePool 2 ReduceMax 2 ReduceMean 2 Transpose 5" },
    { "positions", positions, "Expand 2 Slice 1" },
    { "products", onnx_products, "Einsum 0 Gather 1 Tanh 1" },
    { "random_ones", random_ones, "Identity 2 Reshape 1 constants 1" },
    { "rectifiers", rectifiers, "Relu 2 LeakyRelu 2 PRelu 2 Elu 1 Min 1 Where 1" },
    { "ratios_of_channels_first", ratios_of_channels_first, "Transpose 0 Resize 3 Pad 1 Slice 3" },
    { "recurrence", recurrence, "LSTM 4 GRU 3 RNN 4 Transpose 3 constants 43" },
    { "residual", residual, "Transpose 4 Conv 3 Concat 1 Add 2 Mul 2 Sub 1" },
    { "resizings", resizings, "MatMul 12 Resize 2 Pad 1" },
    { "sequence", sequence, "LSTM 3 GRU 2 RNN 2 Gather 1 Slice 1 Transpose 5" },
    { "shapes", shapes, "Transpose 1 Reshape 3 Expand 1" },
    { "scores", onnx_scores, "Softmax 4 Where 1 Tanh 2" },
    { "sizes", sizes, "Transpose 0 Pad 1 Slice 1 Gather 2 Resize 4" },
    { "softmaxes", softmaxes, "Softmax 2 ReduceMax 1 ReduceSum 1" },
    { "sounds", onnx_sounds, "Scan 1 Tanh 1" },
    { "states", states, "LSTM 2 GRU 1 RNN 1 Squeeze 6 Unsqueeze 3" },
    { "states_of_both", states_of_both, "LSTM 4 Unsqueeze 4" },
    { "tiles", onnx_tiles, "ScatterND 1" },
    { "transposed_convolutions", transposed_convolutions,
      "ConvTranspose 8 Transpose 9 constants 15" },
    { "upscaled", upscaled, "Resize 1 PRelu 1 Conv 3" },
    { "volumes", volumes, "Conv 2 ConvTranspose 3 MaxPool 2 AveragePool 1" },
    { "windows_of_sequences", windows_of_sequences, "Conv 3 ConvTranspose 3 Pad 1 Gather 0" },
};
const int onnx_case_count = (int)(sizeof onnx_cases / sizeof *onnx_cases);
