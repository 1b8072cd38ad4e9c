#include "../nn/layers/layers.h"
#include "models.h"

CornuModel *cornu_mnist_tutorial_from(const CornuNetworkConfig *config)
{
    CornuModel *model = cornu_sequential(.name = "mnist_tutorial", .input_shape = { 28, 28 },
                                         .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_reshape(.target_shape = { 28, 28, 1 }));
    cornu_model_add(model, cornu_conv2d(32, 5, .padding = CORNU_SAME, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2, .padding = CORNU_SAME));
    cornu_model_add(model, cornu_conv2d(64, 5, .padding = CORNU_SAME, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2, .padding = CORNU_SAME));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(1024, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(config->dropout == 0.0 ? 0.4 : config->dropout));
    cornu_model_add(model, cornu_dense(10));
    return model;
}
