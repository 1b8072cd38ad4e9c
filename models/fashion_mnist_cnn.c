#include "../nn/layers/layers.h"
#include "models.h"

/* Pixels are not scaled: the first batch normalization does it. */
CornuModel *cornu_fashion_mnist_cnn_from(const CornuNetworkConfig *config)
{
    const double pooled = config->dropout == 0.0 ? 0.25 : config->dropout;
    const double dense = config->dropout == 0.0 ? 0.5 : config->dropout;
    CornuModel  *model = cornu_sequential(.name = "fashion_mnist_cnn",
                                          .input_shape = { 28, 28, 1 });
    for (int64_t filters = 64; filters <= 256; filters *= 2) {
        cornu_model_add(model, cornu_batch_normalization());
        cornu_model_add(model, cornu_conv2d(filters, 5, .padding = CORNU_SAME,
                                            .activation = CORNU_ELU));
        cornu_model_add(model, cornu_max_pooling2d(2));
        cornu_model_add(model, cornu_dropout(pooled));
    }
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(256));
    cornu_model_add(model, cornu_activation(CORNU_ELU));
    cornu_model_add(model, cornu_dropout(dense));
    cornu_model_add(model, cornu_dense(10));
    cornu_model_add(model, cornu_activation(CORNU_SOFTMAX));
    return model;
}
