#include "lite_models.h"

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

/* ---- Products ---- */

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

static CornuModel *transposed(void)
{
    return EACH("transposed", cornu_input(.shape = { 5, 4, 3 }),
                cornu_conv2d_transpose(4, 3, .activation = CORNU_RELU),
                cornu_conv2d_transpose(2, 3, 2, .padding = CORNU_SAME),
                cornu_conv2d_transpose(2, 4, 2, .padding = CORNU_SAME, .no_bias = true),
                cornu_conv2d_transpose(3, 2, .strides = { 3, 4 }),
                cornu_conv2d_transpose(3, 1, 3, .padding = CORNU_SAME));
}

static CornuModel *sequences(void)
{
    return EACH("sequences", cornu_input(.shape = { 9, 4 }),
                cornu_conv1d(6, 3, .padding = CORNU_CAUSAL, .activation = CORNU_RELU),
                cornu_conv1d(3, 2, 2, .padding = CORNU_SAME, .no_bias = true),
                cornu_separable_conv1d(5, 3, .activation = CORNU_RELU6),
                cornu_depthwise_conv1d(3, .depth_multiplier = 2),
                cornu_max_pooling1d(2), cornu_average_pooling1d(3, .padding = CORNU_SAME),
                cornu_global_average_pooling1d(), cornu_global_max_pooling1d(.keepdims = true),
                cornu_up_sampling1d(3), cornu_zero_padding1d(2), cornu_cropping1d(1),
                cornu_dense(5, .activation = CORNU_ELU), cornu_dense(2, .no_bias = true));
}

static CornuModel *rows(void)
{
    CornuSymbol *x = cornu_input(.shape = { 5 }, .dtype = CORNU_I32, .name = "numbers");
    CornuSymbol *y = cornu_call(cornu_embedding(12, 6), x);
    return cornu_model(.inputs = { x }, .name = "rows",
                       .outputs = { cornu_call(cornu_dense(3), cornu_call(cornu_flatten(), y)) });
}

static CornuModel *recurrence(void)
{
    CornuSymbol *x = cornu_input(.shape = { 4, 3 });
    CornuSymbol *y = cornu_call(cornu_lstm(5, .return_sequences = true), x);
    y = cornu_call(cornu_gru(4, .return_sequences = true, .go_backwards = true), y);
    y = cornu_call(cornu_bidirectional(cornu_gru(3, .no_reset_after = true,
                                                 .return_sequences = true)), y);
    y = cornu_call(cornu_time_distributed(cornu_dense(4, .activation = CORNU_TANH)), y);
    CornuSymbol *z = cornu_call(cornu_bidirectional(cornu_lstm(2), .merge_mode = CORNU_MERGE_AVE),
                                y);
    return cornu_model(.inputs = { x }, .name = "recurrence",
                       .outputs = { y, z, cornu_call(cornu_simple_rnn(3), y),
                                    cornu_call(cornu_gru(3, .no_bias = true), y),
                                    cornu_call(cornu_lstm(2, .no_bias = true,
                                                          .activation = CORNU_RELU), y) });
}

/* More steps than a layer of an ONNX node has operands. */
static CornuModel *many_steps(void)
{
    CornuSymbol *x = cornu_input(.shape = { 100, 1 });
    return cornu_model(.inputs = { x }, .name = "many_steps",
                       .outputs = { cornu_call(cornu_simple_rnn(2, .return_sequences = true), x) });
}

/* A decoder begins with the states of its encoder. */
static CornuModel *states(void)
{
    CornuSymbol *x = cornu_input(.shape = { 3, 2 }, .name = "x");
    CornuSymbol *y = cornu_input(.shape = { 2, 2 }, .name = "y");
    CornuSymbol *last = cornu_call(cornu_lstm(4, .return_state = true), x);
    CornuSymbol *h = cornu_call_result(last, 1), *c = cornu_call_result(last, 2);
    CornuSymbol *z = cornu_call(cornu_lstm(4, .return_sequences = true), y, h, c);
    return cornu_model(.inputs = { x, y }, .name = "states",
                       .outputs = { z, cornu_call(cornu_gru(4), y, h) });
}

/* ---- Pooling, shapes, images ---- */

static CornuModel *pools(void)
{
    return EACH("pools", cornu_input(.shape = { 9, 8, 3 }), cornu_max_pooling2d(2),
                cornu_max_pooling2d(3, 2, .padding = CORNU_SAME),
                cornu_average_pooling2d(.pool_size = { 2, 3 }),
                cornu_average_pooling2d(3, 2, .padding = CORNU_SAME),
                cornu_global_average_pooling2d(), cornu_global_max_pooling2d(),
                cornu_global_average_pooling2d(.keepdims = true));
}

static CornuModel *shapes(void)
{
    return EACH("shapes", cornu_input(.shape = { 6, 4, 3 }), cornu_flatten(),
                cornu_reshape(.target_shape = { 8, 9 }), cornu_permute(.dims = { 3, 1, 2 }),
                cornu_zero_padding2d(.padding = { { 1, 2 }, { CORNU_ZERO, 3 } }),
                cornu_cropping2d(.cropping = { { 1, 2 }, { CORNU_ZERO, 1 } }),
                cornu_up_sampling2d(2),
                cornu_up_sampling2d(.size = { 3, 2 }, .interpolation = CORNU_BILINEAR),
                cornu_resizing(5, 9), cornu_resizing(4, 3, .interpolation = CORNU_NEAREST),
                cornu_rescaling(1.0 / 127.5, .offset = -1.0), cornu_rescaling(0.5),
                cornu_dropout(0.5), cornu_random_flip());
}

/* The transposes between such layers and their operators are not written. */
static CornuModel *channels_first(void)
{
    CornuModel *model = cornu_sequential(.name = "channels_first", .input_shape = { 2, 9, 8 });
    cornu_model_add(model, cornu_conv2d(4, 3, .data_format = CORNU_CHANNELS_FIRST,
                                        .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization(.axis = 1));
    cornu_model_add(model, cornu_depthwise_conv2d(2, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_max_pooling2d(2, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_conv2d_transpose(2, 2, 2, .data_format = CORNU_CHANNELS_FIRST));
    cornu_model_add(model, cornu_flatten(.data_format = CORNU_CHANNELS_FIRST));
    return model;
}

static CornuModel *volumes(void)
{
    return EACH("volumes", cornu_input(.shape = { 4, 4, 6, 2 }),
                cornu_conv3d(4, 3, .strides = { 2, 1, 1 }, .padding = CORNU_SAME,
                             .activation = CORNU_RELU),
                cornu_conv3d_transpose(3, 2, 2), cornu_max_pooling3d(2),
                cornu_average_pooling3d(.pool_size = { 1, 2, 3 }, .padding = CORNU_SAME),
                cornu_adaptive_max_pooling3d(3));
}

/* ---- Masks ---- */

/* Those that no layer needs are not written. */
static CornuModel *masks(void)
{
    CornuSymbol *x = cornu_input(.shape = { 8, 3 }), *m = cornu_call(cornu_masking(), x);
    CornuSymbol *mean = cornu_call(cornu_global_average_pooling1d(), m);
    CornuSymbol *both = cornu_call(cornu_bidirectional(cornu_lstm(2)), m);
    CornuSymbol *steps = cornu_call(cornu_gru(2, .return_sequences = true), m);
    CornuSymbol *mixed = cornu_call(cornu_multi_head_attention(2, 3), m, m);   /* ends the mask */
    CornuSymbol *words = cornu_input(.shape = { 5 }, .dtype = CORNU_I32);
    CornuSymbol *rows = cornu_call(cornu_embedding(12, 4, .mask_zero = true), words);
    rows = cornu_call(cornu_dense(2), cornu_call(cornu_flatten(), rows));
    return cornu_model(.inputs = { x, words }, .outputs = { mean, both, steps, mixed, rows },
                       .name = "masks");
}

/* ---- Layers of one's own ---- */

/* y = x gain, which adds nothing to any format. */
static CornuStatus gain_build(CornuLayer *layer, CornuShape input)
{
    return cornu_layer_weight(layer, "gain", cornu_shape(input.extent[input.rank - 1]),
                              CORNU_ONES, false);
}

static CornuTensor *gain_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu_op_multiply(x, cornu_layer_read(layer, call, 0));
}

static CornuModel *own(void)
{
    static const CornuLayerClass gain = { .class_name = "Gain", .size = sizeof(CornuLayer),
                                          .build = gain_build, .call = gain_call };
    return EACH("own", cornu_input(.shape = { 4, 3 }), cornu_layer_create(&gain, "gain", NULL),
                cornu_position_embedding(4),
                cornu_einsum_dense("abc,cd->abd", .output_shape = { 4, 5 }));
}

/* ---- Normalization ---- */

static CornuModel *repeated(void)
{
    CornuSymbol *x = cornu_input(.shape = { 3 });
    return cornu_model(.inputs = { x }, .name = "repeated",
                       .outputs = { cornu_call(cornu_repeat_vector(4), x) });
}

/* Folded after products, with channels of another factor each, and after the activation not. */
static CornuModel *folded(void)
{
    CornuSymbol *x = cornu_input(.shape = { 8, 7, 3 }), *y = x;
    y = cornu_call(cornu_conv2d(6, 3, .no_bias = true), y);
    y = cornu_call(cornu_relu(), cornu_call(cornu_batch_normalization(), y));
    y = cornu_call(cornu_batch_normalization(.no_scale = true),
                   cornu_call(cornu_depthwise_conv2d(2, .depth_multiplier = 2), y));
    y = cornu_call(cornu_relu(.max_value = 6.0), y);
    y = cornu_call(cornu_batch_normalization(), y);
    y = cornu_call(cornu_batch_normalization(.no_center = true),
                   cornu_call(cornu_conv2d_transpose(4, 2, 2), y));
    y = cornu_call(cornu_flatten(), cornu_call(cornu_max_pooling2d(4), y));
    y = cornu_call(cornu_batch_normalization(), cornu_call(cornu_dense(5, .no_bias = true), y));
    return cornu_model(.inputs = { x }, .name = "folded",
                       .outputs = { cornu_call(cornu_softmax(), y) });
}

/* What a second layer reads, or an output is, keeps its numbers. */
static CornuModel *read_twice(void)
{
    CornuSymbol *x = cornu_input(.shape = { 6, 6, 3 });
    CornuSymbol *a = cornu_call(cornu_conv2d(4, 3), x);
    CornuSymbol *b = cornu_call(cornu_batch_normalization(), a);
    CornuSymbol *c = cornu_call(cornu_relu(), cornu_call(cornu_add(), a, b));
    CornuSymbol *d = cornu_call(cornu_conv2d(2, 2, .activation = CORNU_RELU), c);
    return cornu_model(.inputs = { x }, .name = "read_twice", .outputs = { c, d });
}

static CornuModel *norms(void)
{
    return EACH("norms", cornu_input(.shape = { 4, 5, 6 }), cornu_batch_normalization(),
                cornu_batch_normalization(.axis = 1), cornu_layer_normalization(),
                cornu_layer_normalization(.axes = { 2, 3 }, .no_center = true),
                cornu_layer_normalization(.rms_scaling = true), cornu_rms_normalization(),
                cornu_normalization(), cornu_normalization(.mean = 2.0, .variance = 4.0),
                cornu_normalization(.axis = 1, .invert = true), cornu_layer_scale(0.1, 6),
                cornu_group_normalization(2), cornu_unit_normalization());
}

/* ---- Activations ---- */

static CornuModel *activations(void)
{
    static const CornuActivation all[] = {
        CORNU_RELU, CORNU_RELU6, CORNU_LEAKY_RELU, CORNU_ELU, CORNU_SELU, CORNU_GELU,
        CORNU_GELU_APPROXIMATE, CORNU_SILU, CORNU_SIGMOID, CORNU_HARD_SIGMOID, CORNU_HARD_SILU,
        CORNU_TANH, CORNU_HARD_TANH, CORNU_TANH_SHRINK, CORNU_SOFTMAX, CORNU_LOG_SOFTMAX,
        CORNU_SOFTPLUS, CORNU_LOG_SIGMOID, CORNU_MISH, CORNU_EXPONENTIAL, CORNU_CELU,
        CORNU_KERAS_2_HARD_SIGMOID, CORNU_SPARSE_SIGMOID, CORNU_SOFTSIGN,
    };
    enum { COUNT = sizeof all / sizeof *all };
    CornuSymbol *x = cornu_input(.shape = { 12 }), *y[COUNT];
    for (int i = 0; i < COUNT; i++) y[i] = cornu_call(cornu_activation(all[i]), x);
    return cornu_model(.inputs = { x }, .name = "activations",
                       .outputs = { cornu_call_from(cornu_concatenate(), y, COUNT) });
}

/* Those that LiteRT has no operators for, in others. */
static CornuModel *composed(void)
{
    CornuSymbol *x = cornu_input(.shape = { 12 });
    CornuSymbol *near = cornu_call(cornu_rescaling(0.03125), x);
    return cornu_model(.inputs = { x }, .name = "composed",
                       .outputs = { cornu_call(cornu_activation(CORNU_SPARSEMAX), near),
                                    cornu_call(cornu_activation(CORNU_SPARSE_PLUS), x),
                                    cornu_call(cornu_activation(CORNU_SQUAREPLUS), x),
                                    cornu_call(cornu_activation(CORNU_GLU), x),
                                    cornu_call(cornu_activation(CORNU_HARD_SHRINK), x),
                                    cornu_call(cornu_activation(CORNU_SOFT_SHRINK), x),
                                    cornu_call(cornu_relu(.threshold = 0.5, .negative_slope = 0.2,
                                                          .max_value = 1.5), x) });
}

/* Comparisons and choices of more axes than LiteRT's kernels broadcast along, which they must not
 * be asked for. */
static CornuModel *many_axes(void)
{
    CornuSymbol *x = cornu_input(.shape = { 12 });
    CornuSymbol *volume = cornu_call(cornu_reshape({ 2, 2, 1, 3 }), x);
    CornuSymbol *wider = cornu_call(cornu_reshape({ 2, 2, 1, 3, 1 }), x);
    CornuSymbol *image = cornu_call(cornu_reshape({ 2, 2, 3 }), x);
    return cornu_model(.inputs = { x }, .name = "many_axes",
                       .outputs = { cornu_call(cornu_activation(CORNU_HARD_SHRINK), volume),
                                    cornu_call(cornu_activation(CORNU_SOFT_SHRINK), volume),
                                    cornu_call(cornu_relu(.threshold = 0.5), volume),
                                    cornu_call(cornu_activation(CORNU_SPARSE_PLUS), wider),
                                    cornu_call(cornu_activation(CORNU_SPARSEMAX), image) });
}

/* The activation halves what the layer before it makes. */
static CornuModel *halved(void)
{
    CornuSymbol *x = cornu_input(.shape = { 6, 4 });
    CornuSymbol *image = cornu_call(cornu_reshape({ 6, 4, 1 }), x);
    return cornu_model(.inputs = { x }, .name = "halved",
                       .outputs = { cornu_call(cornu_dense(6, .activation = CORNU_GLU), x),
                                    cornu_call(cornu_conv1d(4, 3, .activation = CORNU_GLU), x),
                                    cornu_call(cornu_conv2d(2, 3, .activation = CORNU_GLU),
                                               image) });
}

static CornuModel *rectifiers(void)
{
    return EACH("rectifiers", cornu_input(.shape = { 4, 3 }), cornu_relu(),
                cornu_relu(.max_value = 1.0), cornu_relu(.negative_slope = 0.1),
                cornu_leaky_relu(), cornu_prelu(), cornu_prelu(.shared_axes = { 1 }),
                cornu_elu(0.7), cornu_softmax(), cornu_softmax(1), cornu_softmax(.axes = { 1, 2 }),
                cornu_dense(5, .activation = cornu_activation_of(cornu_leaky_relu(0.3))));
}

/* ---- Graphs ---- */

static CornuModel *merges(void)
{
    CornuSymbol *x = cornu_input(.shape = { 4, 3 }, .name = "x");
    CornuSymbol *y = cornu_input(.shape = { 4, 3 }, .name = "y");
    CornuSymbol *z = cornu_input(.shape = { 3 }, .name = "z");
    return cornu_model(.inputs = { x, y, z }, .name = "merges",
                       .outputs = { cornu_call(cornu_add(), x, y, z),
                                    cornu_call(cornu_subtract(), x,
                                               cornu_call(cornu_activation(CORNU_TANH), y)),
                                    cornu_call(cornu_multiply(), x, y),
                                    cornu_call(cornu_maximum(), x, y, y),
                                    cornu_call(cornu_minimum(), x, y),
                                    cornu_call(cornu_average(), x, y, x),
                                    cornu_call(cornu_concatenate(), x, y),
                                    cornu_call(cornu_concatenate(1), x, y) });
}

/* A model in a model, a layer that is called again, an input that is an output. */
static CornuModel *nested(void)
{
    CornuModel *inner = cornu_sequential(.input_shape = { 6 }, .name = "inner");
    cornu_model_add(inner, cornu_dense(6, .activation = CORNU_TANH));
    cornu_model_add(inner, cornu_batch_normalization());
    CornuLayer  *dense = cornu_dense(6), *part = cornu_as_layer(inner);
    CornuSymbol *x = cornu_input(.shape = { 6 }, .name = "x");
    CornuSymbol *y = cornu_call(part, cornu_call(dense, x));
    CornuSymbol *z = cornu_call(dense, cornu_call(cornu_activation(CORNU_RELU), y));
    cornu_model_free(inner);   /* the calls hold it */
    return cornu_model(.inputs = { x }, .name = "nested",
                       .outputs = { z, cornu_call(cornu_identity_layer(), x) });
}

const LiteCase lite_cases[] = {
    { "activations", activations, "GELU 2 HARD_SWISH 1 CONCATENATION 1 ELU 3" },
    { "channels_first", channels_first, "CONV_2D 1 DEPTHWISE_CONV_2D 1 TRANSPOSE 1 MUL 1 ADD 1" },
    { "composed", composed, "SELECT_V2 7 STRIDED_SLICE 2" },
    { "convolutions", convolutions, "CONV_2D 5 DEPTHWISE_CONV_2D 4 RELU 0 PAD 0" },
    { "folded", folded, "CONV_2D 1 DEPTHWISE_CONV_2D 1 FULLY_CONNECTED 1 MUL 1 ADD 1 RELU 0" },
    { "halved", halved, "FULLY_CONNECTED 1 CONV_2D 2 LOGISTIC 3 RELU 0" },
    { "many_axes", many_axes, "SELECT_V2 7" },
    { "many_steps", many_steps, "UNPACK 1 PACK 1 FULLY_CONNECTED 100" },
    { "masks", masks, "NOT_EQUAL 2 SELECT_V2 42" },
    { "merges", merges, "ADD 4 SUB 1 MUL 2 MAXIMUM 2 MINIMUM 1 CONCATENATION 2" },
    { "nested", nested, "FULLY_CONNECTED 3 MUL 1 ADD 1" },
    { "norms", norms, "MUL 23 RSQRT 6" },
    { "own", own, "MUL 1 FULLY_CONNECTED 1" },
    { "pools", pools, "MAX_POOL_2D 2 AVERAGE_POOL_2D 2 MEAN 2 REDUCE_MAX 1" },
    { "read_twice", read_twice, "CONV_2D 2 MUL 1 ADD 2 RELU 0" },
    { "recurrence", recurrence, "UNPACK 9 UNIDIRECTIONAL_SEQUENCE_LSTM 0" },
    { "rectifiers", rectifiers, "RELU 3 LEAKY_RELU 3 PRELU 2 ELU 1 SOFTMAX 1" },
    { "repeated", repeated, "TILE 1" },
    { "rows", rows, "GATHER 1 CAST 0" },
    { "sequences", sequences, "CONV_2D 3 DEPTHWISE_CONV_2D 2 PAD 2 RELU 0 FULLY_CONNECTED 2" },
    { "shapes", shapes, "RESHAPE 4 TRANSPOSE 1 PAD 1 RESIZE_NEAREST_NEIGHBOR 2 MUL 2 ADD 1" },
    { "states", states, "UNPACK 3 PACK 1" },
    { "transposed", transposed, "TRANSPOSE_CONV 5 PACK 5" },
    { "volumes", volumes, "CONV_2D 1 TRANSPOSE_CONV 1" },
};
const int lite_case_count = sizeof lite_cases / sizeof *lite_cases;
