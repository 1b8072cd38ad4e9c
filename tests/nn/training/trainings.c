#include "trainings.h"

enum { ROWS = 30, BATCH = 8, FEATURES = 6, TIMES = 3, SIDE = 6, CLASSES = 3 };

static float   x[ROWS * FEATURES];
static uint8_t images[2 * ROWS * SIDE * SIDE];
static int32_t y[2 * ROWS];

static void make_data(void)
{
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < 2 * ROWS * SIDE * SIDE; i++) images[i] = (uint8_t)(i * 53 % 251);
    for (int i = 0; i < 2 * ROWS; i++) y[i] = (i * 7 + i / 5) % CLASSES;
}

const char *training_name(Training training)
{
    static const char *const names[] = { "shuffled", "stateful", "augmented", "groups" };
    return names[training];
}

static CornuModel *shuffled_model(void)
{
    CornuModel *model = cornu_sequential(.name = "shuffled", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(12, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization(.momentum = 0.9));
    cornu_model_add(model, cornu_dropout(0.3));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *stateful_model(void)
{
    CornuModel *model = cornu_sequential(.name = "stateful", .input_shape = { TIMES, 2 });
    cornu_model_add(model, cornu_lstm(5, .stateful = true, .dropout = 0.2));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *augmented_model(void)
{
    CornuModel *model = cornu_sequential(.name = "augmented", .input_shape = { SIDE, SIDE, 1 },
                                         .input_scale = 1.0 / 255);
    cornu_model_add(model, cornu_conv2d(4, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

CornuModel *training_model(Training training, CornuDevice *device)
{
    cornu_set_random_seed(11);
    CornuModel *model = training == TRAINING_STATEFUL  ? stateful_model()
                      : training == TRAINING_AUGMENTED ? augmented_model() : shuffled_model();
    CornuOptimizer *optimizer =
        training == TRAINING_SHUFFLED ? cornu_adam(.use_ema = true, .ema_momentum = 0.8)
        : training == TRAINING_STATEFUL ? cornu_rmsprop(.momentum = 0.5)
        : training == TRAINING_GROUPS
            ? cornu_cross_shard_optimizer(cornu_adam(), .group_size = 2,
                                          .group_assignment = { 0, 3, 1, 2 })
        : cornu_sgd(.momentum = 0.9, .schedule = cornu_exponential_decay(0.1, 3, 0.7));
    if (!cornu_compile(model, .optimizer = optimizer, .metrics = { CORNU_ACCURACY },
                       .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .device = device))
        return model;
    cornu_model_free(model);
    return NULL;
}

/* The same elements each time. */
static CornuDataset *augmented_images(void)
{
    const CornuArray arrays[] = { cornu_array(images, CORNU_U8, 2 * ROWS, SIDE, SIDE, 1),
                                  cornu_array(y, CORNU_I32, 2 * ROWS) };
    return cornu_dataset_augment(cornu_dataset_from_arrays(arrays, 2), .shift = 2, .flip = true,
                                 .seed = 5);
}

CornuHistory *training_fit(Training training, CornuModel *model, CornuCallback *a,
                           CornuCallback *b)
{
    make_data();
    if (training == TRAINING_SHUFFLED || training == TRAINING_GROUPS)
        return cornu_fit(model, .x = cornu_array(x, CORNU_F32, ROWS, FEATURES),
                         .y = cornu_array(y, CORNU_I32, ROWS), .batch_size = BATCH,
                         .epochs = TRAINING_EPOCHS, .verbose = CORNU_SILENT, .validation_freq = 2,
                         .validation_data.x = cornu_array(x, CORNU_F32, 10, FEATURES),
                         .validation_data.y = cornu_array(y, CORNU_I32, 10), .callbacks = { a, b });
    if (training == TRAINING_STATEFUL)
        return cornu_fit(model, .x = cornu_array(x, CORNU_F32, 24, TIMES, 2),
                         .y = cornu_array(y, CORNU_I32, 24), .batch_size = 6,
                         .epochs = TRAINING_EPOCHS, .verbose = CORNU_SILENT, .no_shuffle = true,
                         .callbacks = { a, b });
    CornuDataset *data = augmented_images();
    CornuHistory *history = cornu_fit(model, data, .batch_size = BATCH, .epochs = TRAINING_EPOCHS,
                                      .steps_per_epoch = TRAINING_STEPS, .verbose = CORNU_SILENT,
                                      .callbacks = { a, b });
    cornu_dataset_free(data);
    return history;
}
