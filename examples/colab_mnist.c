/*
 * The notebook that made Keras on TPUs known, in C and in its order: find the TPU, load the data,
 * compile a model as usual, convert it, train, evaluate, save, show the digits it misreads.
 * Sources: tensorflow/tpu, tools/colab/keras_mnist.ipynb, 2018; cedrickchee/data-science-notebooks,
 * google_cloud_tpu/guide_to_tensorflow_keras_on_tpu_mnist.ipynb.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cornu/cornu.h>

#include "digits.h"
#include "pictures.h"
#include "session.h"

static CornuStatus notebook(const Options *options, const CornuReferenceModel *reference,
                            CornuStrategy *strategy, const CornuTrainTest *mnist,
                            CornuModel *model)
{
    /* A model for the CPU; --load gives it weights of an earlier run. */
    const CornuArray train_x = cornu_reference_input(model, mnist->train_x);
    const CornuArray test_x = cornu_reference_input(model, mnist->test_x);
    const int64_t    samples = mnist->train_x.type.shape.extent[0];
    const int64_t    steps = (samples + options->batch_size - 1) / options->batch_size;
    cornu_compile(model, .loss = cornu_loss(reference->loss), .metrics = { CORNU_ACCURACY },
                  .optimizer = cornu_reference_optimizer(reference, steps,
                                                         options->learning_rate),
                  .gradient_norm = options->gradient_norm,
                  .debug_nans = options->debug_nans);
    cornu_summary(model);
    if (session_prepare(options, model, mnist)) return cornu_error_status();

    /* On the TPU: batches are split over its cores, products are in bfloat16. */
    CornuModel   *tpu_model = cornu_keras_to_tpu_model(model, strategy);
    CornuHistory *history = cornu_fit(
        tpu_model, .x = train_x, .y = mnist->train_y, .batch_size = options->batch_size,
        .epochs = options->epochs, .steps_per_epoch = options->steps_per_epoch,
        .validation_x = test_x, .validation_y = mnist->test_y, .verbose = options->verbose,
        .callbacks = { SESSION_CALLBACKS(options) });
    if (!history) return session_stopped(options, tpu_model);

    double      test[2];
    CornuArray  predictions = { .data = NULL };
    CornuStatus status = session_save(options, tpu_model);
    if (!status) predictions = session_evaluate(tpu_model, mnist, options->batch_size, test);
    if (!status && !predictions.data) status = cornu_error_status();
    if (!status) status = session_record(options, tpu_model, history, mnist, test);
    if (!status) {
        session_remarks(cornu_strategy_device(strategy), cornu_model_statistics(tpu_model));
        digits_show(predictions, mnist);
    }
    if (!status && options->plots)
        status = pictures_of_test(options->plots, tpu_model, mnist, "test", predictions);
    if (!status) status = session_finish(options);
    free(predictions.data);
    cornu_history_free(history);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const models[] = { "mnist_cnn", "mnist_cnn_bn", NULL };
    Options       options = { .model = "mnist_cnn", .device = "tpu" };
    const Program program = { .name = "colab_mnist", .models = models,
                              .groups = OPTIONS_ALL & ~OPTIONS_DEVICE,
                              .purpose = "Trains on a TPU, as the Colab notebook did; CORNU_TPU or "
                                         "TPU_NAME names it." };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    const CornuReferenceModel *reference = cornu_reference_model(options.model);
    if (!options.epochs) options.epochs = reference->epochs;
    if (!options.batch_size) options.batch_size = reference->batch_size;

    CornuTpuTarget tpu;
    CornuStatus    status = session_begin(&options);
    if (!status) status = cornu_tpu_resolve(&tpu);
    if (!status) fputs(tpu.text, stdout);
    CornuStrategy  *strategy = status ? NULL
        : cornu_tpu_strategy(&tpu, .num_shards = session_shards(&options),
                             .threads = (int)options.threads,
                             .precision = session_precision(&options),
                             .processes = session_processes(),
                             .iterations_per_loop = options.steps_per_execution);
    CornuTrainTest *mnist = strategy ? session_mnist(&options) : NULL;
    CornuModel     *model = mnist ? reference->build(&(CornuNetworkConfig){ 0 }) : NULL;
    if (!status) status = model ? notebook(&options, reference, strategy, mnist, model)
                                : cornu_error_status();
    cornu_model_free(model);
    cornu_train_test_free(mnist);
    cornu_strategy_free(strategy);
    return session_end("colab_mnist", status);
}
