/*
 * The two-minute tour, `make demo`: trains the MNIST CNN on real digits, and shows what it reads
 * in them. On a slow machine it takes fewer digits, and says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cornu/cornu.h>
#include <cornu/models/models.h>

#include "digits.h"
#include "session.h"

enum {
    EPOCHS = 3,
    TIMED_STEPS = 20,
    SECONDS = 75,   /* for training; evaluation and the rest add a little */
};

#define MODEL_FILE "build/demo.safetensors"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- How many digits this machine can learn from in the time ---- */

static CornuModel *compiled(const CornuReferenceModel *reference, CornuDevice *device)
{
    CornuModel *model = reference->build(&(CornuNetworkConfig){ 0 });
    if (cornu_compile(model, .loss = cornu_loss(reference->loss), .metrics = { CORNU_ACCURACY },
                      .optimizer = cornu_reference_optimizer(reference, 1, 0.0),
                      .device = device) == CORNU_OK)
        return model;
    cornu_model_free(model);
    return NULL;
}

/* Seconds a training step takes, from a model that is thrown away. Its program is the real
 * model's, so the device has it compiled already when that one starts. */
static CornuStatus time_step(const CornuReferenceModel *reference, CornuDevice *device,
                             const CornuImageData *mnist, int64_t batch, double *seconds)
{
    CornuModel      *model = compiled(reference, device);
    const CornuArray x = cornu_array(mnist->train_x.data, CORNU_U8, batch, 28, 28);
    const CornuArray y = cornu_array(mnist->train_y.data, CORNU_U8, batch);
    CornuStatus      status = model ? CORNU_OK : cornu_error_status();
    double           start = 0.0;
    for (int i = 0; i <= TIMED_STEPS && !status; i++) {
        if (i == 1) start = now();   /* the first step compiles */
        status = cornu_train_on_batch(model, x, y, NULL);
    }
    *seconds = (now() - start) / TIMED_STEPS;
    cornu_model_free(model);
    return status;
}

/* As many steps for an epoch as there is time for, at most all digits. */
static int64_t choose_steps(int64_t all, int64_t batch, double seconds)
{
    const int64_t steps = (all + batch - 1) / batch;
    const double  possible = (double)SECONDS / EPOCHS / seconds;
    if (possible >= (double)steps) return steps;
    const int64_t fewer = possible < 1.0 ? 1 : (int64_t)possible;
    printf("A step takes %.0f ms here, so each epoch sees %lld of the %lld digits.\n",
           1e3 * seconds, (long long)(fewer * batch), (long long)all);
    return fewer;
}

/* ---- The tour ---- */

static CornuStatus show(CornuModel *model, const CornuImageData *mnist)
{
    double      test[2];
    CornuStatus status = cornu_evaluate(model, .x = mnist->test_x, .y = mnist->test_y,
                                        .verbose = CORNU_SILENT, .batch_size = 1000,
                                        .results = test);
    if (status) return status;
    printf("\nTest accuracy%s: %.4f\n", mnist->synthetic ? " on synthetic digits" : "", test[1]);
    return digits_show(model, mnist);
}

static CornuStatus tour(const Options *options, CornuDevice *device, CornuModel *model,
                        CornuImageData *mnist, const CornuReferenceModel *reference)
{
    const int64_t all = mnist->train_x.type.shape.extent[0];
    const int64_t batch = options->batch_size < all ? options->batch_size : all;
    double        seconds;
    if (cornu_summary(model) || time_step(reference, device, mnist, batch, &seconds))
        return cornu_error_status();
    const int64_t steps = choose_steps(all, batch, seconds);

    CornuDataset *train = cornu_dataset_prefetch(cornu_image_data_take_train(mnist), 2);
    CornuHistory *history = cornu_fit(model, train, .epochs = EPOCHS, .steps_per_epoch = steps,
                                      .batch_size = batch);
    CornuStatus   status = history ? show(model, mnist) : cornu_error_status();
    if (!status) status = cornu_model_save(model, MODEL_FILE);
    if (!status)
        printf("The trained model is in " MODEL_FILE ".\n"
               "    build/predict " MODEL_FILE " IMAGE.png    what a picture of yours shows\n"
               "    build/mnist_cnn --help                   longer trainings, other networks\n"
               "    examples/mnist_cnn.c                     the program to start from\n");
    cornu_history_free(history);
    cornu_dataset_free(train);
    return status;
}

/* Where nobody named a folder and the files are not to be had, other digits do. */
static CornuImageData *find_digits(Options *options)
{
    CornuImageData *mnist = session_mnist(options);
    const char     *folder = getenv("CORNU_DATA");
    if (mnist || options->data || (folder && *folder) || cornu_error_status() != CORNU_ERR_DATA)
        return mnist;
    printf("%s\n\nThe tour goes on with SYNTHETIC digits, drawn by code; what it scores says "
           "nothing about real handwriting.\n", cornu_error_message());
    cornu_error_take();
    options->data = "synthetic";
    return session_mnist(options);
}

int main(int argc, char **argv)
{
    Options       options = { .batch_size = 128, .save = MODEL_FILE };
    const Program program = { .name = "demo", .purpose = "Trains a CNN on handwritten digits and "
                              "shows what it reads in them.",
                              .groups = OPTIONS_MACHINE | OPTIONS_DATA };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);

    const CornuReferenceModel *reference = cornu_reference_model("mnist_cnn");
    CornuDevice    *device = session_open(&options);
    CornuImageData *mnist = device ? find_digits(&options) : NULL;
    CornuModel     *model = mnist ? compiled(reference, device) : NULL;
    CornuStatus     status = model ? tour(&options, device, model, mnist, reference)
                                   : cornu_error_status();
    cornu_model_free(model);
    cornu_image_data_free(mnist);
    cornu_device_close(device);
    return session_end("demo", status);
}
