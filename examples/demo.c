/*
 * The two-minute tour, `make demo`: trains the MNIST CNN on real digits, on the cpu device and on
 * an emulated TPU in turns, compares the two, and shows what the network reads. On a slow machine
 * they take fewer digits, and it says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "digits.h"
#include "race.h"
#include "session.h"

enum {
    BATCH = 128,
    EPOCHS = 3,
    TIMED_STEPS = 10,
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

/* Seconds a training step takes on a device, from a model that is thrown away. Its program is the
 * real model's, so the device has it compiled already when that one starts. */
static CornuStatus time_step(const Race *race, const Racer *racer, double *seconds)
{
    CornuModel      *model = race_model(race, racer->device);
    const CornuArray x = cornu_array(race->data->train_x.data, CORNU_U8, race->batch_size, 28, 28);
    const CornuArray y = cornu_array(race->data->train_y.data, CORNU_U8, race->batch_size);
    CornuStatus      status = model ? CORNU_OK : cornu_error_status();
    double           start = 0.0;
    if (!status && racer == race->racers) status = cornu_summary(model);
    for (int i = 0; i <= TIMED_STEPS && !status; i++) {
        if (i == 1) start = now();   /* the first step compiles */
        status = cornu_train_on_batch(model, x, y, NULL);
    }
    *seconds = (now() - start) / TIMED_STEPS;
    cornu_model_free(model);
    return status;
}

/* As many steps for an epoch as all have time for, at most all digits. */
static CornuStatus choose_steps(Race *race)
{
    double each, seconds = 0.0;
    for (int i = 0; i < race->count; i++) {
        CornuStatus status = time_step(race, &race->racers[i], &each);
        if (status) return status;
        seconds += each;
    }
    const double possible = (double)SECONDS / EPOCHS / seconds;
    if (possible >= (double)race->steps) return CORNU_OK;
    race->steps = possible < 1.0 ? 1 : (int64_t)possible;
    printf("A step on each takes %.0f ms here, so each epoch sees %lld of the %lld digits.\n",
           1e3 * seconds, (long long)(race->steps * race->batch_size),
           (long long)race->data->train_x.type.shape.extent[0]);
    return CORNU_OK;
}

/* ---- The tour ---- */

static CornuStatus show(CornuModel *model, const CornuTrainTest *mnist)
{
    double           test[2];
    putchar('\n');
    const CornuArray predictions = session_evaluate(model, mnist, 1000, test);
    if (!predictions.data) return cornu_error_status();
    digits_show(predictions, mnist);
    free(predictions.data);
    return CORNU_OK;
}

static CornuStatus tour(Race *race)
{
    CornuStatus status = race_open(race, "cpu,tpu");
    if (!status) status = choose_steps(race);
    if (!status) status = race_run(race);
    if (status) return status;
    race_print(race, stdout);
    CornuModel *model = race->racers[0].model;
    status = show(model, race->data);
    if (!status) status = cornu_model_save(model, MODEL_FILE);
    if (!status)
        printf("The model that cpu trained is in " MODEL_FILE ".\n"
               "    build/predict " MODEL_FILE " IMAGE.png    what a picture of yours shows\n"
               "    build/compare_devices --help             other networks and TPUs, a chart\n"
               "    build/mnist_cnn --help                   one device, longer trainings\n"
               "    examples/mnist_cnn.c                     the program to start from\n");
    return status;
}

/* Where nobody named a folder and the files are not to be had, other digits do. */
static CornuTrainTest *find_digits(Options *options)
{
    CornuTrainTest *mnist = session_mnist(options);
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
    Options       options = { .save = MODEL_FILE };
    const Program program = { .name = "demo", .purpose = "Trains a CNN on handwritten digits on "
                              "two devices, compares them, and shows what it reads.",
                              .groups = OPTIONS_THREADS | OPTIONS_DATA };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);

    CornuStatus     status = session_begin(&options);
    CornuTrainTest *mnist = status ? NULL : find_digits(&options);
    if (!mnist) return session_end("demo", cornu_error_status());
    const int64_t all = mnist->train_x.type.shape.extent[0];
    Race race = { .reference = cornu_reference_model("mnist_cnn"), .data = mnist, .epochs = EPOCHS,
                  .batch_size = all < BATCH ? all : BATCH, .seed = options.seed,
                  .threads = options.threads };
    status = tour(&race);
    race_close(&race);
    cornu_train_test_free(mnist);
    return session_end("demo", status);
}
