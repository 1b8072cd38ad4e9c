#include "networks.h"

#include <string.h>

#include "../../nn/layers/layers.h"
#include "../../nn/model/functional.h"

/* ---- Dense layers ---- */

static CornuModel *mlp(void)
{
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { 784 },
                                         .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_dense(4096, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(4096, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return model;
}

enum { FIELDS = 26, FIELD_ROWS = 100000 };

/* The tables of 26 fields in one of 2.6 million rows; the gradient of each is dense. */
static CornuModel *embeddings(void)
{
    CornuModel *model = cornu_sequential(.name = "embeddings", .input_shape = { FIELDS });
    cornu_model_add(model, cornu_embedding(FIELDS * FIELD_ROWS, 16));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(256, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(128, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    return model;
}

/* ---- Sequences ---- */

/* Keras' example bidirectional_lstm_imdb, with masks. */
static CornuModel *masked_lstm(void)
{
    CornuModel *model = cornu_sequential(.name = "masked_lstm", .input_shape = { 200 });
    cornu_model_add(model, cornu_embedding(20000, 128, .mask_zero = true));
    cornu_model_add(model, cornu_bidirectional(cornu_lstm(64, .return_sequences = true)));
    cornu_model_add(model, cornu_bidirectional(cornu_lstm(64)));
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    return model;
}

/* Characters predicted by a recurrent layer, which is taken. */
static CornuModel *of_characters(const char *name, int64_t units, CornuLayer *recurrent)
{
    CornuModel *model = cornu_sequential(.name = name, .input_shape = { 100 });
    cornu_model_add(model, cornu_embedding(256, units));
    cornu_model_add(model, recurrent);
    cornu_model_add(model, cornu_dense(256, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *gru(void)
{
    return of_characters("gru", 512, cornu_gru(512, .return_sequences = true));
}

static CornuModel *simple_rnn(void)
{
    return of_characters("simple_rnn", 256, cornu_simple_rnn(256, .return_sequences = true));
}

/* Two blocks as in Keras' example text_classification_with_transformer, of 128 steps by 256. */
static CornuModel *encoder(void)
{
    enum { STEPS = 128, CHANNELS = 256, HEADS = 4, BLOCKS = 2 };
    CornuSymbol *tokens = cornu_input(.shape = { STEPS }, .name = "tokens");
    CornuSymbol *x = cornu_call(cornu_embedding(20000, CHANNELS), tokens);
    x = cornu_call(cornu_add(), x, cornu_call(cornu_position_embedding(STEPS), x));
    for (int i = 0; i < BLOCKS; i++) {
        CornuSymbol *y = cornu_call(cornu_multi_head_attention(HEADS, CHANNELS / HEADS), x, x);
        x = cornu_call(cornu_layer_normalization(), cornu_call(cornu_add(), x, y));
        y = cornu_call(cornu_dense(4 * CHANNELS, .activation = CORNU_RELU), x);
        y = cornu_call(cornu_dense(CHANNELS), y);
        x = cornu_call(cornu_layer_normalization(), cornu_call(cornu_add(), x, y));
    }
    x = cornu_call(cornu_global_average_pooling1d(), x);
    x = cornu_call(cornu_dense(2, .activation = CORNU_SOFTMAX), x);
    return cornu_model(.inputs = { tokens }, .outputs = { x }, .name = "encoder");
}

/* M5 of Dai et al., "Very deep convolutional neural networks for raw waveforms", table 1. */
static CornuModel *waves(void)
{
    static const struct { int64_t filters, kernel, stride; } layers[] = {
        { 128, 80, 4 }, { 128, 3, 1 }, { 256, 3, 1 }, { 512, 3, 1 },
    };
    CornuModel *model = cornu_sequential(.name = "waves", .input_shape = { 16000, 1 },
                                         .input_scale = 1.0 / 255.0);
    for (int i = 0; i < 4; i++) {
        cornu_model_add(model, cornu_conv1d(layers[i].filters, layers[i].kernel,
                                            layers[i].stride));
        cornu_model_add(model, cornu_batch_normalization());
        cornu_model_add(model, cornu_activation(CORNU_RELU));
        cornu_model_add(model, cornu_max_pooling1d(4));
    }
    cornu_model_add(model, cornu_global_average_pooling1d());
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return model;
}

/* ---- Images ---- */

static void add_normalized(CornuModel *model, CornuLayer *layer)
{
    cornu_model_add(model, layer);
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_activation(CORNU_RELU));
}

/* The first seven convolutions of MobileNet: Howard et al., "MobileNets", table 1. */
static CornuModel *depthwise(void)
{
    static const struct { int64_t filters, stride; } blocks[] = {
        { 64, 1 }, { 128, 2 }, { 128, 1 }, { 256, 2 }, { 256, 1 }, { 512, 2 },
    };
    CornuModel *model = cornu_sequential(.name = "depthwise", .input_shape = { 96, 96, 3 },
                                         .input_scale = 1.0 / 255.0);
    add_normalized(model, cornu_conv2d(32, 3, 2, CORNU_SAME, .no_bias = true));
    for (int i = 0; i < 6; i++) {
        add_normalized(model, cornu_depthwise_conv2d(3, blocks[i].stride, CORNU_SAME,
                                                     .no_bias = true));
        add_normalized(model, cornu_conv2d(blocks[i].filters, 1, .no_bias = true));
    }
    cornu_model_add(model, cornu_global_average_pooling2d());
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuSymbol *twice(CornuSymbol *x, int64_t filters)
{
    for (int i = 0; i < 2; i++)
        x = cornu_call(cornu_conv2d(filters, 3, .padding = CORNU_SAME, .activation = CORNU_RELU),
                       x);
    return x;
}

/* Ronneberger et al., "U-Net", figure 1, with three poolings, 32 channels first, padding. */
static CornuModel *unet(void)
{
    enum { LEVELS = 3, CHANNELS = 32 };
    CornuSymbol *image = cornu_input(.shape = { 128, 128, 1 }, .scale = 1.0 / 255.0);
    CornuSymbol *x = image, *maps[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        maps[i] = twice(x, CHANNELS << i);
        x = cornu_call(cornu_max_pooling2d(2), maps[i]);
    }
    x = twice(x, CHANNELS << LEVELS);
    for (int i = LEVELS - 1; i >= 0; i--) {
        x = cornu_call(cornu_conv2d_transpose(CHANNELS << i, 2, 2), x);
        x = twice(cornu_call(cornu_concatenate(), maps[i], x), CHANNELS << i);
    }
    x = cornu_call(cornu_conv2d(2, 1, .activation = CORNU_SOFTMAX), x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "unet");
}

/* Dosovitskiy et al., "An image is worth 16 x 16 words": patches of 8 x 8, four blocks. */
static CornuModel *vit(void)
{
    enum { PATCHES = 64, CHANNELS = 192, HEADS = 3, BLOCKS = 4 };
    CornuSymbol *image = cornu_input(.shape = { 64, 64, 3 }, .scale = 1.0 / 255.0);
    CornuSymbol *x = cornu_call(cornu_conv2d(CHANNELS, 8, 8), image);
    x = cornu_call(cornu_reshape(.target_shape = { PATCHES, CHANNELS }), x);
    x = cornu_call(cornu_add(), x, cornu_call(cornu_position_embedding(PATCHES), x));
    for (int i = 0; i < BLOCKS; i++) {
        CornuSymbol *y = cornu_call(cornu_layer_normalization(), x);
        y = cornu_call(cornu_multi_head_attention(HEADS, CHANNELS / HEADS), y, y);
        x = cornu_call(cornu_add(), x, y);
        y = cornu_call(cornu_layer_normalization(), x);
        y = cornu_call(cornu_dense(4 * CHANNELS, .activation = CORNU_GELU), y);
        x = cornu_call(cornu_add(), x, cornu_call(cornu_dense(CHANNELS), y));
    }
    x = cornu_call(cornu_global_average_pooling1d(), cornu_call(cornu_layer_normalization(), x));
    x = cornu_call(cornu_dense(10, .activation = CORNU_SOFTMAX), x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "vit");
}

/* Blocks of Liu et al., "A ConvNet for the 2020s", figure 4, two at each of three sizes. */
static CornuModel *convnext(void)
{
    CornuSymbol *image = cornu_input(.shape = { 64, 64, 3 }, .scale = 1.0 / 255.0), *x = image;
    for (int64_t channels = 64, i = 0; i < 3; i++, channels *= 2) {
        const int64_t patch = i ? 2 : 4;
        if (i) x = cornu_call(cornu_layer_normalization(), x);
        x = cornu_call(cornu_conv2d(channels, patch, patch), x);
        for (int block = 0; block < 2; block++) {
            CornuSymbol *y = cornu_call(cornu_depthwise_conv2d(7, .padding = CORNU_SAME), x);
            y = cornu_call(cornu_layer_normalization(), y);
            y = cornu_call(cornu_dense(4 * channels, .activation = CORNU_GELU), y);
            x = cornu_call(cornu_add(), x, cornu_call(cornu_dense(channels), y));
        }
    }
    x = cornu_call(cornu_global_average_pooling2d(), x);
    x = cornu_call(cornu_dense(10, .activation = CORNU_SOFTMAX), x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "convnext");
}

static CornuSymbol *normalized(CornuSymbol *x, CornuActivation activation)
{
    return cornu_call(cornu_activation(activation), cornu_call(cornu_batch_normalization(), x));
}

/* Blocks of Xie et al., "Aggregated residual transformations", table 1, in 8 groups. */
static CornuModel *resnext(void)
{
    enum { GROUPS = 8 };
    CornuSymbol *image = cornu_input(.shape = { 32, 32, 3 }, .scale = 1.0 / 255.0);
    CornuSymbol *x = cornu_call(cornu_conv2d(64, 3, .padding = CORNU_SAME, .no_bias = true), image);
    x = normalized(x, CORNU_RELU);
    for (int64_t channels = 64, i = 0; i < 3; i++, channels *= 2) {
        const int64_t stride = i ? 2 : 1;
        CornuSymbol *y = cornu_call(cornu_conv2d(channels, 1, .no_bias = true), x);
        y = cornu_call(cornu_conv2d(channels, 3, stride, CORNU_SAME, .groups = GROUPS,
                                    .no_bias = true), normalized(y, CORNU_RELU));
        y = cornu_call(cornu_conv2d(2 * channels, 1, .no_bias = true), normalized(y, CORNU_RELU));
        y = cornu_call(cornu_batch_normalization(), y);
        x = cornu_call(cornu_conv2d(2 * channels, 1, stride, .no_bias = true), x);
        x = cornu_call(cornu_add(), cornu_call(cornu_batch_normalization(), x), y);
        x = cornu_call(cornu_activation(CORNU_RELU), x);
    }
    x = cornu_call(cornu_global_average_pooling2d(), x);
    x = cornu_call(cornu_dense(10, .activation = CORNU_SOFTMAX), x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "resnext");
}

/* An inverted residual of Sandler et al., "MobileNetV2", table 1; `squeeze`: with squeeze and
 * excitation between, as in Tan and Le, "EfficientNet". */
static CornuSymbol *inverted(CornuSymbol *x, int64_t before, int64_t filters, int64_t kernel,
                             int64_t stride, CornuActivation activation, bool squeeze)
{
    const int64_t wide = 6 * before;
    CornuSymbol  *y = normalized(cornu_call(cornu_conv2d(wide, 1, .no_bias = true), x), activation);
    y = cornu_call(cornu_depthwise_conv2d(kernel, stride, CORNU_SAME, .no_bias = true), y);
    y = normalized(y, activation);
    if (squeeze) {
        CornuSymbol *scale = cornu_call(cornu_global_average_pooling2d(.keepdims = true), y);
        scale = cornu_call(cornu_conv2d(before / 4, 1, .activation = activation), scale);
        scale = cornu_call(cornu_conv2d(wide, 1, .activation = CORNU_SIGMOID), scale);
        y = cornu_call(cornu_multiply(), y, scale);
    }
    y = cornu_call(cornu_conv2d(filters, 1, .no_bias = true), y);
    y = cornu_call(cornu_batch_normalization(), y);
    return stride == 1 && before == filters ? cornu_call(cornu_add(), x, y) : y;
}

static CornuModel *inverted_residuals(const char *name, CornuActivation activation, bool squeeze)
{
    static const struct { int64_t filters, stride; } blocks[] = {
        { 24, 2 }, { 24, 1 }, { 40, 2 }, { 40, 1 }, { 80, 2 }, { 80, 1 },
    };
    int64_t      before = 16;
    CornuSymbol *image = cornu_input(.shape = { 96, 96, 3 }, .scale = 1.0 / 255.0);
    CornuSymbol *x = cornu_call(cornu_conv2d(before, 3, 2, CORNU_SAME, .no_bias = true), image);
    x = normalized(x, activation);
    for (int i = 0; i < 6; i++) {
        const int64_t kernel = squeeze && i / 2 == 1 ? 5 : 3;
        x = inverted(x, before, blocks[i].filters, kernel, blocks[i].stride, activation, squeeze);
        before = blocks[i].filters;
    }
    x = cornu_call(cornu_global_average_pooling2d(), x);
    x = cornu_call(cornu_dense(10, .activation = CORNU_SOFTMAX), x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = name);
}

static CornuModel *mobile(void)    { return inverted_residuals("mobile", CORNU_RELU6, false); }
static CornuModel *efficient(void) { return inverted_residuals("efficient", CORNU_SILU, true); }

/* The generator of Keras' example dcgan_overriding_train_step, with two classes for each pixel. */
static CornuModel *generator(void)
{
    static const int64_t filters[] = { 128, 256, 256 };
    CornuModel *model = cornu_sequential(.name = "generator", .input_shape = { 128 },
                                         .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_dense(8 * 8 * 128));
    cornu_model_add(model, cornu_reshape(.target_shape = { 8, 8, 128 }));
    for (int i = 0; i < 3; i++)
        cornu_model_add(model, cornu_conv2d_transpose(filters[i], 4, 2, CORNU_SAME,
                                                      .activation = CORNU_RELU));
    cornu_model_add(model, cornu_conv2d(2, 5, .padding = CORNU_SAME, .activation = CORNU_SOFTMAX));
    return model;
}

/* ---- All ---- */

static const Network networks[] = {
    { "mlp", mlp, CORNU_U8, 256, false, "64,1024" },
    { "embeddings", embeddings, CORNU_I32, FIELDS * FIELD_ROWS, false, "4096" },
    { "masked_lstm", masked_lstm, CORNU_I32, 20000, true, "32" },
    { "gru", gru, CORNU_U8, 256, false, "128" },
    { "encoder", encoder, CORNU_I32, 20000, false, "32" },
    { "waves", waves, CORNU_U8, 256, false, "32" },
    { "depthwise", depthwise, CORNU_U8, 256, false, "32" },
    { "unet", unet, CORNU_U8, 256, false, "8" },
    { "simple_rnn", simple_rnn, CORNU_U8, 256, false, "64" },
    { "vit", vit, CORNU_U8, 256, false, "32" },
    { "convnext", convnext, CORNU_U8, 256, false, "32" },
    { "resnext", resnext, CORNU_U8, 256, false, "64" },
    { "mobile", mobile, CORNU_U8, 256, false, "32" },
    { "efficient", efficient, CORNU_U8, 256, false, "32" },
    { "generator", generator, CORNU_U8, 256, false, "16" },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

const Network *network(int i) { return i < NETWORKS ? &networks[i] : NULL; }

const Network *network_named(const char *name)
{
    for (int i = 0; i < NETWORKS; i++)
        if (!strcmp(name, networks[i].name)) return &networks[i];
    return NULL;
}

int64_t network_length(int64_t i, int64_t steps)
{
    const int64_t least = steps / 4;
    return least + i * 37 % (steps - least + 1);
}
