/* A training loop written by hand, as fast as fit: a graph, its gradients, an optimizer, a loop. */
#include <math.h>
#include <cornu/cornu.h>
#include "session.h"

/*
 * Records a step, from pixels to probabilities, loss, gradients and new weights, and runs it on
 * every batch. It is the step of one shard on its rows of the batch: the optimizer sums the shards'
 * gradients, all_reduce their losses, so each loss is divided by the size of the whole batch.
 */
static CornuStatus train(CornuModel *model, CornuGraph *graph, const CornuLoss *crossentropy,
                         CornuIterator *batches, const Options *options)
{
    const int64_t   shards = cornu_device_shards(cornu_model_device(model));
    const int64_t   size = options->batch_size, rows = size / shards;
    if (size % shards)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "--batch-size is %lld, expected a multiple of "
                               "the %lld shards", (long long)size, (long long)shards);
    CornuTensor    *x = cornu_graph_shard_input(graph, cornu_type(CORNU_U8, rows, 28, 28));
    CornuTensor    *y = cornu_graph_shard_input(graph, cornu_type(CORNU_U8, rows));
    CornuTensor    *w[32], *d_w[32];
    const int       count = cornu_model_weight_count(model);
    CornuOptimizer *adam = cornu_model_optimizer(model);
    const CornuCall training = { .training = true,
                                 .iteration = cornu_read(graph, cornu_optimizer_iteration(adam)) };
    CornuTensor    *p = cornu_model_call(model, x, &training);
    CornuTensor    *part = cornu_op_scale(cornu_op_sum(crossentropy->call(crossentropy, y, p)),
                                          1.0 / (double)size);
    CornuTensor    *loss = cornu_op_all_reduce(part);
    for (int i = 0; i < count; i++)
        w[i] = cornu_read(graph, cornu_model_weight(model, i)->variable);
    CornuStatus status = batches ? cornu_gradients(part, w, count, d_w) : cornu_error_status();
    if (!status) status = cornu_optimizer_apply(adam, graph, d_w);

    for (int64_t epoch = 0; !status && epoch < options->epochs; epoch++) {
        const CornuBatch *batch = NULL;
        float             value = NAN;   /* if there is no whole batch */
        CornuArray        to = { cornu_scalar(CORNU_F32), &value };
        status = cornu_iterator_rewind(batches, epoch);
        while (!status && !(status = cornu_iterator_next(batches, &batch)) && batch) {
            CornuArray xs = cornu_array(batch->arrays[0].data, CORNU_U8, shards, rows, 28, 28);
            CornuArray ys = cornu_array(batch->arrays[1].data, CORNU_U8, shards, rows);
            if (!(status = cornu_graph_feed(x, xs)) && !(status = cornu_graph_feed(y, ys)))
                status = cornu_run(graph, &loss, 1, &to);
        }
        if (!status) status = session_epoch(epoch, value);
    }
    if (!status) session_remarks(cornu_graph_device(graph), cornu_graph_statistics(graph));
    return status;
}

int main(int argc, char **argv)
{
    Options       options = { .epochs = 3, .batch_size = 128, .learning_rate = 1e-3 };
    const Program program = { .name = "custom_loop",
                              .purpose = "Trains the MNIST CNN in a training loop written by hand.",
                              .groups = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_TRAINING };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    CornuDevice    *device = session_open(&options);
    CornuTrainTest *mnist = device ? session_mnist(&options) : NULL;
    CornuModel     *model = mnist ? cornu_mnist_cnn() : NULL;
    CornuLoss      *crossentropy = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY;
    CornuStatus     status = cornu_compile(
        model, .optimizer = cornu_adam(.learning_rate = options.learning_rate), .device = device);
    CornuGraph     *graph = cornu_graph_create(device);
    CornuIterator  *batches = mnist ? session_batches(&options, mnist, device) : NULL;
    if (!status) status = train(model, graph, crossentropy, batches, &options);
    cornu_iterator_free(batches), cornu_loss_free(crossentropy), cornu_graph_free(graph);
    cornu_model_free(model), cornu_train_test_free(mnist), cornu_device_close(device);
    return session_end("custom_loop", status);
}
