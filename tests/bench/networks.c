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

static CornuModel *gru(void)
{
    CornuModel *model = cornu_sequential(.name = "gru", .input_shape = { 100 });
    cornu_model_add(model, cornu_embedding(256, 512));
    cornu_model_add(model, cornu_gru(512, .return_sequences = true));
    cornu_model_add(model, cornu_dense(256, .activation = CORNU_SOFTMAX));
    return model;
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
