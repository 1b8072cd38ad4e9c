/* Trains a convolutional or a residual network on garments: build, compile, augment, fit, test. */
#include <cornu/cornu.h>

#include "session.h"

typedef struct {
    int64_t shift;   /* pixels */
    bool    flip;
} Augmentation;

static CornuStatus train(const Options *options, const Augmentation *augmentation,
                         const CornuReferenceModel *reference, CornuModel *model,
                         CornuTrainTest *garments, CornuDevice *device)
{
    const int64_t steps = session_steps(options, garments->train_x.type.shape.extent[0]);
    cornu_compile(model, .loss = cornu_loss(reference->loss), .metrics = { CORNU_ACCURACY },
                  .optimizer = cornu_reference_optimizer(reference, steps, options->learning_rate),
                  .device = device, .steps_per_execution = options->steps_per_execution,
                  .gradient_norm = options->gradient_norm,
                  .debug_nans = options->debug_nans);
    cornu_summary(model);
    if (session_prepare(options, model, garments)) return cornu_error_status();

    CornuDataset *train = cornu_train_test_take_train(garments);
    train = cornu_dataset_augment(train, .shift = augmentation->shift, .flip = augmentation->flip,
                                  .seed = (uint64_t)options->seed);
    CornuHistory *history = cornu_fit(
        model, .data = train, .batch_size = options->batch_size, .epochs = options->epochs,
        .steps_per_epoch = options->steps_per_epoch, .validation_x = garments->test_x,
        .validation_y = garments->test_y, .verbose = options->verbose,
        .callbacks = { SESSION_CALLBACKS(options) });
    cornu_dataset_free(train);
    return session_conclude(options, model, history, garments);
}

int main(int argc, char **argv)
{
    static const char *const models[] = { "fashion_mnist_cnn", "resnet20", NULL };
    Options      options = { .model = "fashion_mnist_cnn" };
    Augmentation augmentation = { 0 };
    const Option extra[] = {
        { "augment-shift", OPTION_WHOLE, &augmentation.shift, "N",
          "shift each training image by up to N pixels each way", 0, 27, NULL },
        { "augment-flip", OPTION_SWITCH, &augmentation.flip, "",
          "flip half of the training images, chosen anew each epoch", 0, 0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "fashion_mnist_cnn", .models = models, .extra = extra,
                              .groups = OPTIONS_ALL | OPTIONS_CLASSES,
                              .purpose = "Trains a network to recognize garments." };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    const CornuReferenceModel *reference = cornu_reference_model(options.model);
    if (!options.epochs) options.epochs = reference->epochs;
    if (!options.batch_size) options.batch_size = reference->batch_size;
    CornuDevice    *device = session_open(&options);
    CornuTrainTest *garments = device ? session_data(&options, reference->load) : NULL;
    CornuModel     *model = garments ? reference->build(&(CornuNetworkConfig){ 0 }) : NULL;
    CornuStatus     status = model ? train(&options, &augmentation, reference, model, garments,
                                           device)
                                   : cornu_error_status();
    cornu_model_free(model);
    cornu_train_test_free(garments);
    cornu_device_close(device);
    return session_end("fashion_mnist_cnn", status);
}
