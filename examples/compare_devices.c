/*
 * The same model on several devices: trained from the same weights on the same batches, by the
 * processor with all of its threads and with one, and by an emulated TPU. A table says how long an
 * epoch took, what was reached, and whether the weights are the same: for any number of threads to
 * the bit, on a TPU, whose products have bfloat16 operands, roughly.
 * Takes 22 seconds on two cores (AMD EPYC, Zen 4), half of them on one; 98.4 % of the test digits
 * on each.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cornu/cornu.h>

enum { EPOCHS = 2, MOST = 100000 };

static CornuModel *build(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 28, 28, 1 }, .input_scale = 1.0 / 255);
    cornu_model_add(model, cornu_conv2d(32, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(64, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return model;
}

/* Trains on the device, prints its row but for the end, and reads all weights into to. */
static CornuStatus train(CornuDevice *device, const CornuTrainTest *mnist, float *to)
{
    double      test[2];
    CornuModel *model = build();
    cornu_compile(model, .optimizer = cornu_adam(), .metrics = { CORNU_ACCURACY },
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .device = device);
    CornuHistory *history = cornu_fit(model, .x = mnist->train_x, .y = mnist->train_y,
                                      .batch_size = 128, .epochs = EPOCHS, .verbose = CORNU_SILENT);
    CornuStatus   status = cornu_evaluate(model, .x = mnist->test_x, .y = mnist->test_y,
                                          .results = test, .verbose = CORNU_SILENT);
    for (int i = 0; i < cornu_model_weight_count(model) && !status; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        status = cornu_weight_read(weight, cornu_array_from(to, weight->type));
        to += cornu_type_count(weight->type);
    }
    if (!status)
        printf("%-9s %7d %7d %12.2f %10.4f", cornu_device_name(device),
               cornu_device_threads(device), cornu_device_shards(device),
               cornu_history_seconds(history, EPOCHS - 1), test[1]);
    cornu_history_free(history);
    cornu_model_free(model);
    return status;
}

int main(void)
{
    static float weights[3][MOST];   /* zeros after the model's */
    CornuDevice *devices[3] = { cornu_device_open("cpu"), cornu_device_open("cpu", .threads = 1),
                                cornu_device_open("tpu") };
    CornuTrainTest *mnist = cornu_mnist_load();
    if (!mnist) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("device    threads  shards  s per epoch   accuracy  weights\n");
    for (int d = 0; d < 3; d++) {
        float most = 0.0f;
        if (train(devices[d], mnist, weights[d]))
            return fprintf(stderr, "\n%s\n", cornu_error_message()), 1;
        for (int i = 0; i < MOST; i++) most = fmaxf(most, fabsf(weights[d][i] - weights[0][i]));
        if (!d) printf("  (these are compared with)\n");
        else if (!memcmp(weights[d], weights[0], sizeof *weights)) printf("  the same bits\n");
        else printf("  at most %.3f apart\n", (double)most);
    }
    for (int d = 0; d < 3; d++) cornu_device_close(devices[d]);
    cornu_train_test_free(mnist);
}
