/* A training loop by hand, as fast as fit: a graph, its gradients, an optimizer, a loop. */
#include <stdio.h>

#include <cornu/cornu.h>
#include <cornu/models/models.h>

#include "session.h"

enum { MAX_WEIGHTS = 32 };

int main(int argc, char **argv)
{
    Options       options = { .epochs = 3, .batch_size = 128 };
    const Program program = { .name = "custom_loop", .purpose = "Trains the MNIST CNN by hand.",
                              .groups = OPTIONS_MACHINE | OPTIONS_TRAINING };
    const int     status = options_parse(&options, &program, argc, argv);
    if (status >= 0) return status;
    CornuDevice    *device = session_open(&options);
    CornuImageData *mnist = device ? session_mnist(&options) : NULL;
    CornuModel     *model = mnist ? cornu_mnist_cnn() : NULL;
    if (!model || cornu_compile(model, .device = device)) return session_fail("custom_loop");

    /* One step is recorded: bytes in, probabilities, loss, gradients, new weights. */
    const int64_t  batch = options.batch_size;
    CornuGraph    *graph = cornu_graph_create(device);
    CornuTensor   *x = cornu_graph_input(graph, cornu_type(CORNU_U8, batch, 28, 28));
    CornuTensor   *y = cornu_graph_input(graph, cornu_type(CORNU_U8, batch));
    CornuVariable *weights[MAX_WEIGHTS];
    CornuTensor   *w[MAX_WEIGHTS], *d_w[MAX_WEIGHTS];
    const int      count = cornu_model_weight_count(model);
    for (int i = 0; i < count; i++) weights[i] = cornu_model_weight(model, i)->variable;
    CornuOptimizer *adam = cornu_adam(.learning_rate = options.learning_rate);
    if (cornu_optimizer_build(adam, weights, count)) return session_fail("custom_loop");
    CornuTensor *step = cornu_read(graph, cornu_optimizer_variable(adam, 0));
    CornuTensor *p = cornu_model_call(model, x, &(CornuCall){ .training = true, .iteration = step });
    CornuLoss   *crossentropy = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY;
    CornuTensor *loss = cornu_op_mean(crossentropy->call(crossentropy, y, p));
    for (int i = 0; i < count; i++) w[i] = cornu_read(graph, weights[i]);
    if (cornu_gradients(loss, w, count, d_w) || cornu_optimizer_apply(adam, graph, d_w))
        return session_fail("custom_loop");

    /* It runs on shuffled batches, which a thread gathers meanwhile. */
    CornuDataset *train = cornu_dataset_shuffle(cornu_image_data_take_train(mnist), 0);
    train = cornu_dataset_prefetch(cornu_dataset_batch(train, batch, true), 2);
    CornuIterator    *iterator = cornu_iterator_begin(train, 0);
    const CornuBatch *rows = NULL;
    for (int64_t epoch = 0; iterator && epoch < options.epochs; epoch++) {
        float      value = 0;
        CornuArray to = cornu_array_from(&value, cornu_scalar(CORNU_F32));
        for (cornu_iterator_rewind(iterator, epoch); !cornu_iterator_next(iterator, &rows) && rows;)
            if (cornu_graph_feed(x, rows->arrays[0]) || cornu_graph_feed(y, rows->arrays[1]) ||
                cornu_run(graph, &loss, 1, &to))
                return session_fail("custom_loop");
        printf("Epoch %lld: loss of the last batch %.4f\n", (long long)epoch + 1, value);
    }
    cornu_iterator_free(iterator), cornu_dataset_free(train), cornu_image_data_free(mnist);
    cornu_graph_free(graph), cornu_optimizer_free(adam), cornu_loss_free(crossentropy);
    cornu_model_free(model), cornu_device_close(device);
    return iterator ? 0 : session_fail("custom_loop");
}
