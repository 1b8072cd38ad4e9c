#include "models.h"

#include <string.h>

#include "../device/nearest.h"
#include "../device/status_internal.h"

static const CornuReferenceModel models[] = {
    { .name = "mnist_cnn", .build = cornu_mnist_cnn_from,
      .load = cornu_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-3, .decay_per_epoch = 1.0,
      .epochs = 10, .batch_size = 1024 },
    { .name = "mnist_cnn_bn", .build = cornu_mnist_cnn_bn_from,
      .load = cornu_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-2, .decay_per_epoch = 0.7,
      .epochs = 10, .batch_size = 512 },
    { .name = "mnist_convnet", .build = cornu_mnist_convnet_from,
      .load = cornu_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-3, .decay_per_epoch = 1.0,
      .epochs = 15, .batch_size = 128, .validation_split = 0.1 },
    { .name = "fashion_mnist_cnn", .build = cornu_fashion_mnist_cnn_from,
      .load = cornu_fashion_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-3, .decay_per_epoch = 1.0,
      .epochs = 10, .batch_size = 1024 },
};
enum { MODELS = sizeof models / sizeof *models };

const CornuReferenceModel *cornu_reference_models(int *count)
{
    *count = MODELS;
    return models;
}

const CornuReferenceModel *cornu_reference_model(const char *name)
{
    const char *names[MODELS];
    for (int i = 0; i < MODELS; i++) {
        names[i] = models[i].name;
        if (name && !strcmp(name, models[i].name)) return &models[i];
    }
    const char *near = name ? cornu__nearest(name, names, MODELS) : NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "model \"%s\" is not known%s%s%s",
                            name ? name : "(NULL)", near ? "; is \"" : "", near ? near : "",
                            near ? "\" meant?" : "");
}

CornuOptimizer *cornu_reference_optimizer(const CornuReferenceModel *reference,
                                          int64_t steps_per_epoch, double learning_rate)
{
    if (learning_rate != 0.0) return cornu_adam(.learning_rate = learning_rate);
    if (reference->decay_per_epoch == 1.0)
        return cornu_adam(.learning_rate = reference->learning_rate);
    return cornu_adam(.schedule = cornu_exponential_decay(
        reference->learning_rate, (double)steps_per_epoch, reference->decay_per_epoch,
        .staircase = true));
}

CornuArray cornu_reference_input(const CornuModel *model, CornuArray images)
{
    CornuShape shape = cornu_model_input_shape(model);
    shape.extent[0] = images.type.shape.extent[0];
    return cornu_array_from(images.data, cornu_type_from(images.type.dtype, shape));
}
