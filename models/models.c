#include "models.h"

#include <string.h>

#include "../device/text/nearest.h"
#include "../device/status_internal.h"

/* The LSTMs have no dropout, and the transformer's is fixed. */
static CornuModel *full(const CornuNetworkConfig *config)
{
    (void)config;
    return cornu_shakespeare_lstm(.preset = cornu_text_preset("full"));
}

static CornuModel *quick(const CornuNetworkConfig *config)
{
    (void)config;
    return cornu_shakespeare_lstm(.preset = cornu_text_preset("quick"));
}

/* With the sequence length of the other text models. */
static CornuModel *transformer(const CornuNetworkConfig *config)
{
    (void)config;
    return cornu_char_gpt(.sequence_length = CORNU_SHAKESPEARE_STEPS);
}

static CornuModel *large_transformer(const CornuNetworkConfig *config)
{
    (void)config;
    return cornu_char_gpt(.preset = cornu_text_preset("gpt_large"),
                          .sequence_length = CORNU_SHAKESPEARE_STEPS);
}

static const CornuReferenceModel models[] = {
    { .name = "mnist_cnn", .target = "class",
      .build = cornu_mnist_cnn_from, .load = cornu_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-3, .decay_per_epoch = 1.0,
      .epochs = 10, .batch_size = 1024, .epoch_samples = 60000 },
    { .name = "mnist_cnn_bn", .target = "class",
      .build = cornu_mnist_cnn_bn_from, .load = cornu_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-2, .decay_per_epoch = 0.7,
      .epochs = 10, .batch_size = 512, .epoch_samples = 60000 },
    { .name = "mnist_convnet", .target = "class",
      .build = cornu_mnist_convnet_from, .load = cornu_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-3, .decay_per_epoch = 1.0,
      .epochs = 15, .batch_size = 128, .epoch_samples = 54000, .validation_split = 0.1 },
    { .name = "fashion_mnist_cnn", .target = "class",
      .build = cornu_fashion_mnist_cnn_from, .load = cornu_fashion_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-3, .decay_per_epoch = 1.0,
      .epochs = 10, .batch_size = 1024, .epoch_samples = 60000 },
    /* Published for CIFAR-10 only: its learning rate, fewer epochs. */
    { .name = "resnet20", .target = "class",
      .build = cornu_resnet20_from, .load = cornu_fashion_mnist_load_from,
      .loss = "sparse_categorical_crossentropy", .learning_rate = 1e-3, .decay_per_epoch = 0.8,
      .epochs = 15, .batch_size = 128, .epoch_samples = 60000 },
    /* 100 steps of 1024 windows; the quick one uses all blocks of the text. */
    { .name = "shakespeare_lstm", .target = "character",
      .build = full, .load = cornu_shakespeare_load_from,
      .loss = "sparse_categorical_crossentropy",
      .optimizer = CORNU_REFERENCE_RMSPROP_TENSORFLOW_1, .learning_rate = 1e-2,
      .decay_per_epoch = 1.0, .epochs = 10, .batch_size = 1024, .epoch_samples = 102400 },
    { .name = "shakespeare_lstm_quick", .target = "character",
      .build = quick, .load = cornu_shakespeare_load_from,
      .loss = "sparse_categorical_crossentropy", .optimizer = CORNU_REFERENCE_RMSPROP,
      .learning_rate = 1e-2, .decay_per_epoch = 1.0, .epochs = 6, .batch_size = 32,
      .epoch_samples = 9939 },
    { .name = "char_gpt", .target = "character",
      .build = transformer, .load = cornu_shakespeare_load_from,
      .loss = "sparse_categorical_crossentropy", .optimizer = CORNU_REFERENCE_ADAMW,
      .learning_rate = 1e-3, .decay_per_epoch = 1.0, .epochs = 10, .batch_size = 64,
      .epoch_samples = 16000 },
    { .name = "gpt_large", .target = "character", .large = true,
      .build = large_transformer, .load = cornu_shakespeare_load_from,
      .loss = "sparse_categorical_crossentropy", .optimizer = CORNU_REFERENCE_ADAMW,
      .learning_rate = 3e-4, .decay_per_epoch = 1.0, .epochs = 10, .batch_size = 64,
      .epoch_samples = 16000 },
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
    const char *near = name ? cornu_nearest(name, names, MODELS) : NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "model \"%s\" is not known%s%s%s",
                            name ? name : "(NULL)", near ? "; did you mean \"" : "",
                            near ? near : "", near ? "\"?" : "");
}

CornuModel *cornu_text_network_from(const CornuShakespeareConfig *config)
{
    const bool attends = config->preset && config->preset->heads > 0;
    return attends ? cornu_char_gpt_from(config) : cornu_shakespeare_lstm_from(config);
}

static CornuType batch_type(CornuShape shape, int64_t batch_size)
{
    shape.extent[0] = batch_size;
    return cornu_type_from(CORNU_U8, shape);
}

CornuType cornu_reference_input_type(const CornuModel *model, int64_t batch_size)
{
    return batch_type(cornu_model_input_shape(model), batch_size);
}

CornuType cornu_reference_label_type(const CornuModel *model, int64_t batch_size)
{
    CornuShape shape = cornu_model_output_shape(model);
    shape.extent[--shape.rank] = 0;
    return batch_type(shape, batch_size);
}

static CornuOptimizer *adamw(double rate, double steps, double learning_rate)
{
    const double   warmup = steps < 200 ? steps / 2 : 100;
    CornuSchedule *schedule = learning_rate ? NULL
        : cornu_cosine_decay((double)CORNU_ZERO, steps - warmup, .alpha = 0.1,
                             .warmup_target = rate, .warmup_steps = warmup);
    return cornu_adamw(.learning_rate = learning_rate, .schedule = schedule, .beta_2 = 0.99,
                       .weight_decay = 0.01, .global_clipnorm = 1.0);
}

CornuOptimizer *cornu_reference_optimizer(const CornuReferenceModel *reference,
                                          int64_t steps_per_epoch, double learning_rate)
{
    CornuSchedule *schedule = NULL;
    if (reference->optimizer == CORNU_REFERENCE_ADAMW)
        return adamw(reference->learning_rate, (double)(reference->epochs * steps_per_epoch),
                     learning_rate);
    if (learning_rate == 0.0 && reference->decay_per_epoch != 1.0)
        schedule = cornu_exponential_decay(reference->learning_rate, (double)steps_per_epoch,
                                           reference->decay_per_epoch, .staircase = true);
    else if (learning_rate == 0.0)
        learning_rate = reference->learning_rate;
    switch (reference->optimizer) {
    case CORNU_REFERENCE_RMSPROP:
        return cornu_rmsprop(.learning_rate = learning_rate, .schedule = schedule);
    case CORNU_REFERENCE_RMSPROP_TENSORFLOW_1:
        return cornu_rmsprop(.learning_rate = learning_rate, .schedule = schedule,
                             .epsilon = 1e-10, .initial_velocity = 1.0);
    case CORNU_REFERENCE_ADAMW:
    case CORNU_REFERENCE_ADAM: break;
    }
    return cornu_adam(.learning_rate = learning_rate, .schedule = schedule);
}

CornuArray cornu_reference_input(const CornuModel *model, CornuArray x)
{
    CornuShape shape = cornu_model_input_shape(model);
    shape.extent[0] = x.type.shape.extent[0];
    return cornu_array_from(x.data, cornu_type_from(x.type.dtype, shape));
}
