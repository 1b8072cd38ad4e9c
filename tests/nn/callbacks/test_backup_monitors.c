/* Backups of trainings with callbacks that watch a log: what early stopping and a plateau have seen
 * goes on after a kill, and so do the best weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../golden.h"
#include "stopper.h"

enum { MAX_FILE = 1 << 16 };

typedef struct {
    const char *device;
    int         shards;
} Placement;

enum { WATCHED_EPOCHS = 10, WATCHED_ROWS = 20, WATCHED_STEPS = 3, BEST_EPOCH = 3, LAST_EPOCH = 7 };

/* The results of a training that ends early, with the weights of an earlier epoch. */
typedef struct {
    unsigned char bytes[MAX_FILE];
    size_t        size;
    int64_t       epochs;
    double        losses[WATCHED_EPOCHS], rates[WATCHED_EPOCHS];
} Watched;

/* Adds the monitored log: its best value is neither the first nor the last. */
static CornuStatus add_score(CornuCallback *base, CornuModel *model, int64_t epoch,
                             const CornuLogs *logs)
{
    static const double scores[WATCHED_EPOCHS] = { 1, 2, 1, 4, 3, 2, 3, 1, 9, 9 };
    (void)model, (void)logs;
    base->added[0] = (CornuLog){ "score", scores[epoch] };
    return CORNU_OK;
}

/* True if it ended. */
static bool watch(const Placement *on, int threads, int64_t steps, bool backs_up, Watched *result)
{
    static float   x[WATCHED_ROWS * 4];
    static int32_t y[WATCHED_ROWS];
    for (int i = 0; i < WATCHED_ROWS * 4; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < WATCHED_ROWS; i++) y[i] = i * 7 % 3 > 0;
    Stopper stopper = stop_after(steps, NULL);
    stopper.base.epoch_end = add_score;
    CornuDevice *device = cornu_device_open(on->device, .threads = threads, .shards = on->shards);
    cornu_set_random_seed(5);
    CornuModel *model = cornu_sequential(.name = "watched", .input_shape = { 4 });
    cornu_model_add(model, cornu_dense(8, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_adam(), .device = device));
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, WATCHED_ROWS, 4),
        .y = cornu_array(y, CORNU_I32, WATCHED_ROWS), .batch_size = 8,
        .epochs = WATCHED_EPOCHS, .verbose = CORNU_SILENT,
        .callbacks = { &stopper.base,
                       cornu_early_stopping("score", .mode = CORNU_MODE_MAX, .patience = 4,
                                            .restore_best_weights = true),
                       cornu_reduce_lr_on_plateau("score", .mode = CORNU_MODE_MAX, .factor = 0.5,
                                                  .patience = 2),
                       backs_up ? cornu_backup_and_restore(files_path(folder, "backup"), 2)
                                : NULL });
    if (!history && cornu_error_take() != CORNU_ERR_INTERRUPTED)
        fail_msg("%s", cornu_error_message());
    if (history) {
        const char *path = files_path(folder, "model.safetensors");
        expect_ok(cornu_model_save(model, path));
        *result = (Watched){ .epochs = cornu_history_epochs(history) };
        result->size = files_read(path, result->bytes, MAX_FILE);
        for (int i = 0; i < result->epochs; i++) {
            result->losses[i] = cornu_history_get(history, "loss", i);
            result->rates[i] = cornu_history_get(history, "learning_rate", i);
        }
    }
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return history != NULL;
}

static void best_weights_go_on(void **state)
{
    static const Placement cases[] = { { .device = "cpu", .shards = 1 },
                                       { .device = "tpu", .shards = 4 } };
    (void)state;
    for (int i = 0; i < 2; i++) {
        static Watched whole, resumed;
        assert_true(watch(&cases[i], 1, -1, false, &whole));
        assert_int_equal(whole.epochs, LAST_EPOCH + 1);
        assert_true(whole.rates[LAST_EPOCH] < whole.rates[BEST_EPOCH]);
        for (int64_t at = 2; at <= whole.epochs * WATCHED_STEPS; at += 3) {
            assert_false(watch(&cases[i], 2, at, true, &resumed));
            assert_true(watch(&cases[i], 1, -1, true, &resumed));
            if (memcmp(&resumed, &whole, sizeof whole))
                fail_msg("killed after step %lld on %s: another model or history", (long long)at,
                         cases[i].device);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(best_weights_go_on, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
