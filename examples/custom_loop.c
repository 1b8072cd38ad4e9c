/* A training loop by hand, as fast as fit: a graph, its gradients, an optimizer, a loop. */
#include <math.h>
#include <stdio.h>

#include <cornu/cornu.h>
#include <cornu/models/models.h>

#include "session.h"

/* The compiled model learns from batches of (x, y), epoch after epoch. */
static CornuStatus train(CornuModel *model, CornuGraph *graph, const CornuLoss *crossentropy,
                         CornuIterator *batches, const Options *options)
{
    /* One step is recorded: bytes in, probabilities, loss, gradients, new weights. */
    CornuTensor    *x = cornu_graph_input(graph, cornu_type(CORNU_U8, options->batch_size, 28, 28));
    CornuTensor    *y = cornu_graph_input(graph, cornu_type(CORNU_U8, options->batch_size));
    CornuTensor    *w[32], *d_w[32];
    const int       count = cornu_model_weight_count(model);
    CornuOptimizer *adam = cornu_model_optimizer(model);
    CornuTensor    *step = cornu_read(graph, cornu_optimizer_iteration(adam));
    CornuTensor *p = cornu_model_call(model, x, &(CornuCall){ .training = true, .iteration = step });
    CornuTensor *loss = cornu_op_mean(crossentropy->call(crossentropy, y, p));
    for (int i = 0; i < count; i++) w[i] = cornu_read(graph, cornu_model_weight(model, i)->variable);
    if (cornu_gradients(cornu_optimizer_scale_loss(adam, loss), w, count, d_w) ||
        cornu_optimizer_apply(adam, graph, d_w))
        return cornu_error_status();

    /* It runs on batch after batch; a thread gathers the next ones meanwhile. */
    const CornuBatch *batch;
    float             value = NAN;   /* stays so without a whole batch */
    CornuArray        to = cornu_array_from(&value, cornu_scalar(CORNU_F32));
    for (int64_t epoch = 0; epoch < options->epochs; epoch++) {
        CornuStatus status = cornu_iterator_rewind(batches, epoch);
        while (!status && !(status = cornu_iterator_next(batches, &batch)) && batch)
            if (!(status = cornu_graph_feed(x, batch->arrays[0])) &&
                !(status = cornu_graph_feed(y, batch->arrays[1])))
                status = cornu_run(graph, &loss, 1, &to);
        if (status) return status;
        if (!isfinite(value))
            return cornu_error_set(CORNU_ERR_VALUE, "epoch %lld ends with a loss that is no number: "
                                   "a smaller --learning-rate or --batch-size may help",
                                   (long long)epoch + 1);
        printf("Epoch %lld: loss of the last batch %.4f\n", (long long)epoch + 1, value);
    }
    return CORNU_OK;
}

int main(int argc, char **argv)
{
    Options       options = { .epochs = 3, .batch_size = 128 };
    const Program program = { .name = "custom_loop", .purpose = "Trains the MNIST CNN by hand.",
                              .groups = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_TRAINING };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    CornuDevice    *device = session_open(&options);
    CornuImageData *mnist = device ? session_mnist(&options) : NULL;
    CornuModel     *model = mnist ? cornu_mnist_cnn() : NULL;
    CornuOptimizer *adam = cornu_adam(.learning_rate = options.learning_rate);
    CornuStatus     status = cornu_compile(model, .optimizer = adam, .device = device);
    CornuGraph     *graph = cornu_graph_create(device);
    CornuLoss      *crossentropy = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY;
    CornuDataset   *data = NULL;
    CornuIterator  *batches = NULL;
    if (!status) {
        data = cornu_dataset_shuffle(cornu_image_data_take_train(mnist), (uint64_t)options.seed);
        data = cornu_dataset_prefetch(cornu_dataset_batch(data, options.batch_size, true), 2);
        batches = cornu_iterator_begin(data, 0);
        status = batches ? train(model, graph, crossentropy, batches, &options)
                         : cornu_error_status();
    }
    cornu_iterator_free(batches), cornu_dataset_free(data), cornu_image_data_free(mnist);
    cornu_graph_free(graph), cornu_loss_free(crossentropy);
    cornu_model_free(model), cornu_device_close(device);
    return session_end("custom_loop", status);
}
