/* A training loop by hand, as fast as fit: a graph, its gradients, an optimizer, a loop. */
#include <math.h>
#include <cornu/cornu.h>
#include <cornu/models/models.h>
#include "session.h"

/* Records a step: bytes in, probabilities, loss, gradients, new weights. Runs it on every batch. */
static CornuStatus train(CornuModel *model, CornuGraph *graph, const CornuLoss *crossentropy,
                         CornuIterator *batches, const Options *options)
{
    CornuTensor    *x = cornu_graph_input(graph, cornu_type(CORNU_U8, options->batch_size, 28, 28));
    CornuTensor    *y = cornu_graph_input(graph, cornu_type(CORNU_U8, options->batch_size));
    CornuTensor    *w[32], *d_w[32];
    const int       count = cornu_model_weight_count(model);
    CornuOptimizer *adam = cornu_model_optimizer(model);
    const CornuCall training = { .training = true,
                                 .iteration = cornu_read(graph, cornu_optimizer_iteration(adam)) };
    CornuTensor    *p = cornu_model_call(model, x, &training);
    CornuTensor    *loss = cornu_op_mean(crossentropy->call(crossentropy, y, p));
    for (int i = 0; i < count; i++)
        w[i] = cornu_read(graph, cornu_model_weight(model, i)->variable);
    CornuStatus status = batches ? cornu_gradients(loss, w, count, d_w)
                                 : cornu_error_status();
    if (!status) status = cornu_optimizer_apply(adam, graph, d_w);

    for (int64_t epoch = 0; !status && epoch < options->epochs; epoch++) {
        const CornuBatch *batch = NULL;
        float             value = NAN;   /* stays so without a whole batch */
        CornuArray        to = { cornu_scalar(CORNU_F32), &value };
        status = cornu_iterator_rewind(batches, epoch);
        while (!status && !(status = cornu_iterator_next(batches, &batch)) && batch)
            if (!(status = cornu_graph_feed(x, batch->arrays[0])) &&
                !(status = cornu_graph_feed(y, batch->arrays[1])))
                status = cornu_run(graph, &loss, 1, &to);
        if (!status) status = session_epoch(epoch, value);
    }
    if (!status) session_fallbacks(cornu_graph_device(graph), cornu_graph_statistics(graph));
    return status;
}

int main(int argc, char **argv)
{
    Options       options = { .epochs = 3, .batch_size = 128, .shards = 1 };
    const Program program = { .name = "custom_loop", .purpose = "Trains the MNIST CNN by hand.",
                              .groups = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_TRAINING };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    CornuDevice    *device = session_open(&options);
    CornuImageData *mnist = device ? session_mnist(&options) : NULL;
    CornuModel     *model = mnist ? cornu_mnist_cnn() : NULL;
    CornuLoss      *crossentropy = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY;
    CornuStatus     status = cornu_compile(
        model, .optimizer = cornu_adam(.learning_rate = options.learning_rate), .device = device);
    CornuGraph     *graph = cornu_graph_create(device);
    CornuIterator  *batches = mnist ? session_batches(&options, mnist) : NULL;
    if (!status) status = train(model, graph, crossentropy, batches, &options);
    cornu_iterator_free(batches), cornu_loss_free(crossentropy), cornu_graph_free(graph);
    cornu_model_free(model), cornu_image_data_free(mnist), cornu_device_close(device);
    return session_end("custom_loop", status);
}
