/*
 * Batch normalization and a learning rate that falls, as in the notebook by which TensorFlow shows
 * its TPUs (tensorflow/tpu, tools/colab/keras_mnist_tpu.ipynb): strided convolutions in place of
 * pooling, no bias before a normalization, and a rate that a callback sets for each epoch.
 * Ten epochs take 75 seconds on two cores (AMD EPYC, Zen 4) and reach 99.4 % of the test
 * digits.
 */
#include <math.h>
#include <stdio.h>

#include <cornu/cornu.h>

/* A normalization has an offset of its own, so the layer before it needs no bias; and relu makes
 * a scale superfluous. */
static void add_normalized(CornuModel *model, CornuLayer *layer)
{
    cornu_model_add(model, layer);
    cornu_model_add(model, cornu_batch_normalization(.no_scale = true));
    cornu_model_add(model, cornu_activation(CORNU_RELU));
}

/* The learning rate of an epoch, counted from 0. */
static double decay(void *context, int64_t epoch, double learning_rate)
{
    (void)context, (void)learning_rate;
    return 0.01 * pow(0.666, (double)epoch);
}

int main(void)
{
    CornuTrainTest *mnist = cornu_mnist_load();
    if (!mnist) return fprintf(stderr, "%s\n", cornu_error_message()), 1;

    CornuModel *model = cornu_sequential(.name = "mnist_cnn", .input_shape = { 28, 28, 1 },
                                         .input_scale = 1.0 / 255);   /* bytes to 0 to 1 */
    add_normalized(model, cornu_conv2d(12, 3, .padding = CORNU_SAME, .no_bias = true));
    add_normalized(model, cornu_conv2d(24, 6, 2, CORNU_SAME, .no_bias = true));
    add_normalized(model, cornu_conv2d(32, 6, 2, CORNU_SAME, .no_bias = true));
    cornu_model_add(model, cornu_flatten());
    add_normalized(model, cornu_dense(200, .no_bias = true));
    cornu_model_add(model, cornu_dropout(0.3));
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    cornu_summary(model);

    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01),
                  .metrics = { CORNU_ACCURACY }, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    CornuHistory *history = cornu_fit(
        model, .x = mnist->train_x, .y = mnist->train_y, .batch_size = 128, .epochs = 10,
        .validation_data = { .x = mnist->test_x, .y = mnist->test_y },
        .callbacks = { cornu_learning_rate_scheduler(decay, .verbose = 1) });

    double test[2];   /* loss, accuracy */
    if (!history || cornu_evaluate(model, .x = mnist->test_x, .y = mnist->test_y, .results = test,
                                   .verbose = CORNU_SILENT))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("Test loss: %.4f\nTest accuracy: %.4f\n", test[0], test[1]);

    cornu_history_free(history);
    cornu_model_free(model);
    cornu_train_test_free(mnist);
}
