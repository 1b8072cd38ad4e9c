#include "../nn/layers/layers.h"
#include "models.h"

CornuModel *cornu_mnist_cnn_from(const CornuNetworkConfig *config)
{
    CornuModel *model = cornu_sequential(.name = "mnist_cnn", .input_shape = { 28, 28, 1 },
                                         .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_conv2d(32, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(64, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(64, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(64, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(config->dropout == 0.0 ? 0.5 : config->dropout));
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return model;
}
