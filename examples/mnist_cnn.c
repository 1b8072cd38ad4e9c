/* Trains a convolutional network on handwritten digits: build, compile, fit, evaluate. */
#include <cornu/cornu.h>

#include "large_batch.h"
#include "session.h"

static CornuStatus train(const Options *options, const LargeBatch *large,
                         const CornuReferenceModel *reference, CornuModel *model,
                         const CornuTrainTest *mnist, CornuDevice *device)
{
    const int64_t    samples = mnist->train_x.type.shape.extent[0];
    const int64_t    trained = samples - (int64_t)(reference->validation_split * (double)samples);
    const int64_t    steps = session_steps(options, trained);
    const CornuArray train_x = cornu_reference_input(model, mnist->train_x);
    const CornuArray test_x = cornu_reference_input(model, mnist->test_x);
    CornuOptimizer  *optimizer =
        large->optimizer ? large_batch_optimizer(large, options, steps)
                         : cornu_reference_optimizer(reference, steps, options->learning_rate);
    cornu_compile(model, .loss = cornu_loss(reference->loss), .metrics = { CORNU_ACCURACY },
                  .optimizer = optimizer,
                  .device = device, .steps_per_execution = options->steps_per_execution,
                  .gradient_norm = options->gradient_norm,
                  .debug_nans = options->debug_nans);
    cornu_summary(model);
    if (session_prepare(options, model, mnist)) return cornu_error_status();

    /* Validation is on the held-out part of the training data, else on the test data. */
    CornuArray validation_x = test_x, validation_y = mnist->test_y;
    if (reference->validation_split > 0.0) validation_x.data = validation_y.data = NULL;
    CornuHistory *history = cornu_fit(
        model, .x = train_x, .y = mnist->train_y, .batch_size = options->batch_size,
        .epochs = options->epochs, .steps_per_epoch = options->steps_per_epoch,
        .validation_split = reference->validation_split, .validation_x = validation_x,
        .validation_y = validation_y, .verbose = options->verbose,
        .callbacks = { SESSION_CALLBACKS(options) });
    return session_conclude(options, model, history, mnist);
}

int main(int argc, char **argv)
{
    static const char *const models[] = { "mnist_cnn", "mnist_cnn_bn", "mnist_convnet", NULL };
    Options       options = { .model = "mnist_cnn" };
    LargeBatch    large = { 0 };
    const Option  extra[] = { LARGE_BATCH_OPTIONS(large),
                              { NULL, 0, NULL, NULL, NULL, 0, 0, NULL } };
    const Program program = { .name = "mnist_cnn", .models = models, .extra = extra,
                              .groups = OPTIONS_ALL | OPTIONS_CLASSES,
                              .purpose = "Trains a convolutional network on handwritten digits." };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    /* models/mnist_cnn.c and its neighbours say how the networks are made. */
    const CornuReferenceModel *reference = cornu_reference_model(options.model);
    if (!options.epochs) options.epochs = reference->epochs;
    if (!options.batch_size) options.batch_size = reference->batch_size;
    CornuDevice    *device = large_batch_check(&large, &options) ? NULL : session_open(&options);
    CornuTrainTest *mnist = device ? session_data(&options, reference->load) : NULL;
    CornuModel     *model = mnist ? reference->build(&(CornuNetworkConfig){ 0 }) : NULL;
    CornuStatus     status = model ? train(&options, &large, reference, model, mnist,
                                           device)
                                   : cornu_error_status();
    cornu_model_free(model);
    cornu_train_test_free(mnist);
    cornu_device_close(device);
    return session_end("mnist_cnn", status);
}
