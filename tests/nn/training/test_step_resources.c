/*
 * Steps that run again allocate nothing; memory of a training, and time to its first step.
 *
 * tests/run: alone
 */
#define _DEFAULT_SOURCE    /* wait4 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/mnist/mnist.h"
#include "../../../datasets/synthetic/synthetic.h"
#include "../../../models/models.h"
#include "../../allocations.h"
#include "../golden.h"
#include "../../skip.h"

enum { ROWS = 125, TEST_ROWS = 37, BATCH = 16, PIXELS = 784 };

static uint8_t images[ROWS * PIXELS], labels[ROWS];

static int draw(void **state)
{
    (void)state;
    cornu_synthetic_digits(1, 0, ROWS, images, labels);
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static CornuModel *open_model(const char *name, CornuDevice *device)
{
    const CornuReferenceModel *reference = cornu_reference_model(name);
    CornuModel                *model = reference->build(&(CornuNetworkConfig){ 0 });
    expect_ok(cornu_compile(model, .loss = cornu_loss(reference->loss),
                            .optimizer = cornu_reference_optimizer(reference, 8, 0.0),
                            .metrics = { CORNU_ACCURACY }, .device = device));
    return model;
}

static CornuArray images_for(const CornuModel *model, int64_t count)
{
    return cornu_reference_input(model, cornu_array(images, CORNU_U8, count, 28, 28));
}

/* ---- Allocations ---- */

static void single_steps_allocate_nothing(void **state)
{
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDevice     *device = cornu_device_open("cpu", .threads = 3);
    CornuModel      *model = open_model(*state, device);
    const CornuArray x = images_for(model, BATCH), y = cornu_array(labels, CORNU_U8, BATCH);
    double           values[2];
    expect_ok(cornu_train_on_batch(model, x, y, values));
    const int64_t before = allocations();
    for (int i = 0; i < 10; i++) expect_ok(cornu_train_on_batch(model, x, y, values));
    assert_int_equal(allocations() - before, 0);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* Sums over many shards are added up block by block in memory that the first step has. */
static void steps_on_many_shards_allocate_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    enum { MANY = 64 };
    static const int shards[] = { 12, 33, MANY };
    for (int k = 0; k < 3; k++) {
        CornuDevice     *device = cornu_device_open("cpu", .threads = 2, .shards = shards[k]);
        CornuModel      *model = open_model("mnist_cnn_bn", device);
        const CornuArray x = images_for(model, MANY), y = cornu_array(labels, CORNU_U8, MANY);
        double           values[2];
        expect_ok(cornu_train_on_batch(model, x, y, values));
        const int64_t before = allocations();
        for (int i = 0; i < 2; i++) expect_ok(cornu_train_on_batch(model, x, y, values));
        assert_int_equal(allocations() - before, 0);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* Counts from the end of batch 5 of the first epoch to its last batch, a partial one; and in each
 * later epoch from its start to its end, validation included. Between epochs the history grows. */
typedef struct {
    CornuCallback base;
    int64_t       epoch, since, in_first, in_later, batches;
} Counter;

static CornuStatus epoch_begin(CornuCallback *self, CornuModel *model, int64_t index,
                               const CornuLogs *logs)
{
    (void)model, (void)logs;
    Counter *counter = (Counter *)self;
    counter->epoch = index;
    counter->since = allocations();
    return CORNU_OK;
}

static CornuStatus batch_end(CornuCallback *self, CornuModel *model, int64_t index,
                             const CornuLogs *logs)
{
    (void)model, (void)logs;
    Counter *counter = (Counter *)self;
    counter->batches++;
    if (counter->epoch == 0 && index == 5) counter->since = allocations();
    if (counter->epoch == 0) counter->in_first = allocations() - counter->since;
    return CORNU_OK;
}

static CornuStatus epoch_end(CornuCallback *self, CornuModel *model, int64_t index,
                             const CornuLogs *logs)
{
    (void)model, (void)logs;
    Counter *counter = (Counter *)self;
    if (index > 0) counter->in_later += allocations() - counter->since;
    return CORNU_OK;
}

static void fit_allocates_nothing(void **state)
{
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    enum { EPOCHS = 4 };
    CornuDevice *device = cornu_device_open("cpu", .threads = 2);
    CornuModel  *model = open_model(*state, device);
    Counter      counter = { .base = { .epoch_begin = epoch_begin, .epoch_end = epoch_end,
                                       .train_batch_end = batch_end,
                                       .wants_batch_logs = cornu_always_wants_logs } };
    CornuHistory *history = cornu_fit(
        model, .x = images_for(model, ROWS), .y = cornu_array(labels, CORNU_U8, ROWS),
        .validation_data.x = images_for(model, TEST_ROWS), .batch_size = BATCH, .epochs = EPOCHS,
        .validation_data.y = cornu_array(labels, CORNU_U8, TEST_ROWS),
        .callbacks = { &counter.base }, .verbose = CORNU_LINES);
    assert_non_null(history);
    assert_int_equal(counter.batches, EPOCHS * ((ROWS + BATCH - 1) / BATCH));
    assert_int_equal(counter.in_first, 0);
    assert_int_equal(counter.in_later, 0);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* ---- Memory and time ---- */

static bool have_real_digits(void)
{
    const char *folder = getenv("CORNU_DATA");
    return folder && *folder;
}

/* A second copy of the images would take half of the promised memory. */
static void memory_of_mnist_cnn(void **state)
{
    (void)state;
    enum { LIMIT_MB = 300 };
    const char *build = getenv("BUILD");
    char        program[512];
    snprintf(program, sizeof program, "%s/cornu", build ? build : "build");
    /* In an emulator it would be the emulator's memory, if the program started at all. */
    if (!allocations_counted() || access(program, X_OK) || getenv("CORNU_TEST_WRAPPER"))
        SKIP_FOR(SKIP_SANITIZER);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const char *data = have_real_digits() ? getenv("CORNU_DATA") : "synthetic";
        if (!freopen("/dev/null", "w", stdout)) _exit(126);
        execl(program, program, "train", "mnist_cnn", "--batch-size", "128", "--epochs", "1",
              "--steps-per-epoch", "20", "--data", data, (char *)NULL);
        _exit(127);
    }
    int           status;
    struct rusage usage;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    printf("# mnist_cnn, batch 128: at most %ld MB resident\n", usage.ru_maxrss / 1024);
    assert_true(usage.ru_maxrss / 1024 < LIMIT_MB);
}

static CornuStatus note_first_step(CornuCallback *self, CornuModel *model, int64_t index,
                                   const CornuLogs *logs)
{
    (void)index, (void)logs;
    double *seconds = (double *)(self + 1);
    *seconds = now();
    cornu_model_stop_training(model);
    return CORNU_OK;
}

/* From the start of the program to the end of the first step, compiling included. The time is
 * printed; the limit is wide, for busy or slow machines. */
static void time_to_first_step(void **state)
{
    (void)state;
    if (!have_real_digits() || !allocations_counted() || getenv("CORNU_TEST_WRAPPER"))
        SKIP_FOR(!have_real_digits() ? SKIP_DATA : SKIP_SANITIZER);
    const double    start = now();
    CornuDevice    *device = cornu_device_open("cpu");
    CornuTrainTest *mnist = cornu_mnist_load();
    assert_non_null(mnist);
    CornuModel *model = open_model("mnist_cnn", device);
    struct { CornuCallback base; double seconds; } timer = {
        .base = { .train_batch_end = note_first_step } };
    CornuHistory *history = cornu_fit(model, .x = cornu_reference_input(model, mnist->train_x),
                                      .y = mnist->train_y, .batch_size = 128,
                                      .callbacks = { &timer.base }, .verbose = CORNU_SILENT);
    assert_non_null(history);
    printf("# first step done %.3f s after the start\n", timer.seconds - start);
    assert_true(timer.seconds - start < 10.0);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_train_test_free(mnist);
    cornu_device_close(device);
}

#define FOR_EACH_MODEL(test)                                     \
    { #test " mnist_cnn", test, NULL, NULL, "mnist_cnn" },       \
    { #test " mnist_cnn_bn", test, NULL, NULL, "mnist_cnn_bn" }, \
    { #test " mnist_convnet", test, NULL, NULL, "mnist_convnet" }

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOR_EACH_MODEL(single_steps_allocate_nothing),
        cmocka_unit_test(steps_on_many_shards_allocate_nothing),
        FOR_EACH_MODEL(fit_allocates_nothing),
        cmocka_unit_test(memory_of_mnist_cnn),
        cmocka_unit_test(time_to_first_step),
    };
    return cmocka_run_group_tests(tests, draw, NULL);
}
