#include "../nn/layers/layers.h"
#include "models.h"

/* The normalization has an offset, so the layer before it needs no bias. */
static void add_normalized(CornuModel *model, CornuLayer *layer)
{
    cornu_model_add(model, layer);
    cornu_model_add(model, cornu_batch_normalization(.no_scale = true));
    cornu_model_add(model, cornu_activation(CORNU_RELU));
}

CornuModel *cornu_mnist_cnn_bn_from(const CornuNetworkConfig *config)
{
    CornuModel *model = cornu_sequential(.name = "mnist_cnn_bn", .input_shape = { 784 },
                                         .input_scale = 1.0 / 256.0);
    cornu_model_add(model, cornu_reshape({ 28, 28, 1 }));
    add_normalized(model, cornu_conv2d(12, 3, .padding = CORNU_SAME, .no_bias = true));
    add_normalized(model, cornu_conv2d(24, 6, 2, CORNU_SAME, .no_bias = true));
    add_normalized(model, cornu_conv2d(32, 6, 2, CORNU_SAME, .no_bias = true));
    cornu_model_add(model, cornu_flatten());
    add_normalized(model, cornu_dense(200, .no_bias = true));
    cornu_model_add(model, cornu_dropout(config->dropout == 0.0 ? 0.4 : config->dropout));
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return model;
}
