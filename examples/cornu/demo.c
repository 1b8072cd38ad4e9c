/*
 * The tour, `make demo`: trains the MNIST CNN on real digits, on the cpu device and on an emulated
 * TPU in turns, until both classify 98.5 % of the test digits correctly; compares the two, and
 * shows some predictions. A minute on two fast cores, minutes on slow ones: it measures and says so
 * first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "common/digits.h"
#include "common/session.h"
#include "compare/race.h"

enum {
    BATCH = 128,
    EPOCHS = 3,          /* usually enough */
    MOST_EPOCHS = 8,
    TIMED_STEPS = 10,
    LONG_SECONDS = 120,  /* a longer wait is explained */
};

static const double ENOUGH = 0.985;

/* In the source tree the model lies with what was built there, elsewhere in the working folder. */
static bool in_tree(void) { return access("build", F_OK) == 0; }

/* ---- How long it takes here ---- */

/* Seconds per training step on a device, of a model that is thrown away. Its program is the real
 * model's, which the device then need not compile again. */
static CornuStatus time_step(const Race *race, const Racer *racer, double *seconds)
{
    CornuModel      *model = race_model(race, racer->device);
    const CornuArray x = cornu_array(race->data->train_x.data, CORNU_U8, race->batch_size, 28, 28);
    const CornuArray y = cornu_array(race->data->train_y.data, CORNU_U8, race->batch_size);
    CornuStatus      status = model ? CORNU_OK : cornu_error_status();
    double           start = 0.0;
    if (!status && racer == race->racers) status = cornu_summary(model);
    for (int i = 0; i <= TIMED_STEPS && !status; i++) {
        if (i == 1) start = clock_seconds();   /* the first step compiles */
        status = cornu_train_on_batch(model, x, y, NULL);
    }
    *seconds = (clock_seconds() - start) / TIMED_STEPS;
    cornu_model_free(model);
    return status;
}

/* "40 s" or "12 minutes". */
static void print_time(double seconds)
{
    if (seconds < 99.5) printf("%.0f s", seconds);
    else printf("%.0f minutes", seconds / 60.0);
}

/* Says what will happen and how long it will take, extrapolated from a few steps. */
static CornuStatus announce(const Race *race, int64_t limit)
{
    const double train = (double)race->data->train_x.type.shape.extent[0];
    const double test = (double)race->data->test_x.type.shape.extent[0];
    double       each, seconds = 0.0;
    for (int i = 0; i < race->count; i++) {
        CornuStatus status = time_step(race, &race->racers[i], &each);
        if (status) return status;
        seconds += each;
    }
    /* A prediction takes a third of the time of a training sample. */
    const double all = EPOCHS * (double)race->steps * seconds * (1.0 + test / train / 3.0);
    if (limit) {
        printf("--limit %lld: each learns from %.0f digits, %d times, which makes the tour short\n"
               "and the reading poor.\n", (long long)limit, train, EPOCHS);
        return CORNU_OK;
    }
    printf("Each learns from all %.0f digits %d times, about ", train, EPOCHS);
    print_time(all);
    printf(" here, and goes on if one reads\nless than %.1f %% of the %.0f test digits then, up to "
           "%d times.\n", 100.0 * ENOUGH, test, MOST_EPOCHS);
    if (all > LONG_SECONDS)
        printf("Two fast cores take a minute; here a step on both devices takes %.0f ms, and\n"
               "there are %lld. Fewer digits would be quicker and teach less: cornu demo\n"
               "--limit %.0f takes a tenth of the time.\n", 1e3 * seconds,
               (long long)(EPOCHS * race->steps), train / 10.0);
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

static CornuStatus tour(Race *race, int64_t limit, const char *file)
{
    const char *cornu = in_tree() ? "build/cornu" : "cornu";
    CornuStatus status = race_open(race, "cpu,tpu");
    if (!status) status = announce(race, limit);
    if (!status)
        puts("loss: how far the answers are from the right ones; val_accuracy: the part of the\n"
             "test digits that are read rightly.");
    if (!status) status = race_run(race);
    if (status) return status;
    race_print(race, stdout);
    for (int i = 0; i < race->count; i++)
        if (race->racers[i].val_accuracy < race->enough)
            printf("%s reads %.2f %% after %lld epochs, less than it should.\n",
                   race->racers[i].name, 100.0 * race->racers[i].val_accuracy,
                   (long long)race->done);
    CornuModel *model = race->racers[0].model;
    status = show(model, race->data);
    if (!status) status = cornu_model_save(model, file);
    if (!status)
        printf("The model that cpu trained is in %s.\n"
               "What a picture of yours shows:\n"
               "    %s predict %s IMAGE.png\n"
               "    %s help compare    other networks and TPUs, a chart\n"
               "    %s help train      one device, longer trainings\n"
               "    examples/mnist_convnet.c    the program to start from\n",
               file, cornu, file, cornu, cornu);
    return status;
}

/* If no folder was named and the files cannot be downloaded, uses synthetic digits. */
static CornuTrainTest *find_digits(Options *options)
{
    CornuTrainTest *mnist = session_mnist(options);
    const char     *folder = getenv("CORNU_DATA");
    if (mnist || options->data || (folder && *folder) || cornu_error_status() != CORNU_ERR_DATA)
        return mnist;
    printf("%s\n\nThe tour goes on with SYNTHETIC digits, drawn by code; what it scores says "
           "nothing about real handwriting.\n", options_translate(cornu_error_message()));
    cornu_error_take();
    options->data = "synthetic";
    return session_mnist(options);
}

int command_demo(int argc, char **argv)
{
    Options       options = { .save = in_tree() ? "build/demo.safetensors" : "demo.safetensors" };
    const Program program = { .name = "cornu demo",
                              .purpose = "Trains a network for digits on two devices, compares "
                                         "them, and shows it.",
                              .data = "mnist, a folder as --data-dir, or synthetic; default mnist",
                              .groups = OPTIONS_THREADS | OPTIONS_DATA };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);

    CornuStatus     status = session_begin(&options);
    CornuTrainTest *mnist = status ? NULL : find_digits(&options);
    if (!mnist) return session_end("cornu demo", cornu_error_status());
    const int64_t all = mnist->train_x.type.shape.extent[0];
    Race race = { .reference = cornu_reference_model("mnist_cnn"), .data = mnist,
                  .epochs = options.limit ? EPOCHS : MOST_EPOCHS, .least = EPOCHS,
                  .enough = options.limit ? 0.0 : ENOUGH,
                  .batch_size = all < BATCH ? all : BATCH, .seed = options.seed,
                  .threads = options.threads };
    status = tour(&race, options.limit, options.save);
    race_close(&race);
    cornu_train_test_free(mnist);
    return session_end("cornu demo", status);
}
