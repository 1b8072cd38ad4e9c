/* What callbacks choose the best epoch by: logs that some or all epochs lack, metrics under other
 * names; and what epochs without validation leave in the history. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/callbacks/monitor_internal.h"
#include "../../../device/memory_internal.h"
#include "../training/tiny.h"

static char logged[2048];
static int  warnings;

static void remember(void *context, CornuLogLevel level, const char *message)
{
    (void)context;
    if (level != CORNU_LOG_WARNING) return;
    snprintf(logged, sizeof logged, "%s", message);
    warnings++;
}

static int open_all(void **state)
{
    cornu_set_log(CORNU_LOG_WARNING, remember, NULL);
    return open_device(state);
}

static int close_all(void **state)
{
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    return close_device(state);
}

/* Which of four epochs leave a file; its name has the epoch. */
static void expect_saved(CornuDevice *device, const char *monitor, int64_t save_freq,
                         int64_t validation_freq, const char *epochs)
{
    char format[64], path[80];
    snprintf(format, sizeof format, "/tmp/cornu-best-%d-{epoch}.safetensors", (int)getpid());
    cornu_set_random_seed(2);
    warnings = 0;
    CornuModel   *model = tiny_model(device, cornu_sgd(.learning_rate = 0.1), accuracy);
    CornuArray    none = { .data = NULL };
    CornuHistory *history = cornu_fit(
        model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS), .epochs = 4, .verbose = CORNU_SILENT,
        .validation_freq = validation_freq ? validation_freq : 1,
        .validation_data.x = validation_freq ? rows_x(0, ROWS) : none,
        .validation_data.y = validation_freq ? rows_y(0, ROWS) : none,
        .callbacks = { cornu_model_checkpoint(format, monitor, .save_best_only = true,
                                              .save_freq = save_freq) });
    expect_ok(history ? CORNU_OK : cornu_error_take());
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "/tmp/cornu-best-%d-%d.safetensors", (int)getpid(), i + 1);
        if ((unlink(path) == 0) != (epochs[i] == '1')) fail_msg("epoch %d of %s", i + 1, epochs);
    }
    cornu_history_free(history);
    cornu_model_free(model);
}

static void the_best_waits_for_validation(void **state)
{
    expect_saved(*state, "val_loss", 0, 1, "1111");
    assert_int_equal(warnings, 0);
    expect_saved(*state, "val_loss", 0, 2, "0101");
    assert_int_equal(warnings, 1);
    assert_string_equal(logged, "checkpoint: an epoch without \"val_loss\", by which the best "
                                "model is chosen, is not saved");
}

/* As Keras, which warns each time. */
static void without_the_log_all_are_saved(void **state)
{
    static const struct { const char *monitor; int64_t save_freq, validation_freq; } cases[] = {
        { "val_auc", 0, 1 }, { "val_auc", 0, 2 }, { "val_loss", 0, 0 }, { "val_loss", 1, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[200];
        expect_saved(*state, cases[i].monitor, cases[i].save_freq, cases[i].validation_freq,
                     "1111");
        assert_int_equal(warnings, 1);
        snprintf(wanted, sizeof wanted, "checkpoint: there is no log \"%s\" to choose the best "
                 "model by, so every one is saved", cases[i].monitor);
        assert_string_equal(logged, wanted);
    }
}

/* By the metric, as Keras: names say nothing, or the opposite. */
static void a_metric_tells_its_direction(void **state)
{
    static const struct { const char *log; CornuMonitorMode mode; } cases[] = {
        { "score", CORNU_MODE_MAX }, { "val_score", CORNU_MODE_MAX },
        { "my_error", CORNU_MODE_MAX }, { "val_my_error", CORNU_MODE_MAX },
        { "quality", CORNU_MODE_MIN },
        { "val_precision", CORNU_MODE_MIN }, { "loss", CORNU_MODE_MIN },
        { "val_loss", CORNU_MODE_MIN }, { "cosine", CORNU_MODE_MIN }, { "alike", CORNU_MODE_MAX },
        { "custom_error", CORNU_MODE_MIN },
    };
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(1, .activation = CORNU_SIGMOID));
    expect_ok(cornu_compile(model, .device = *state, .loss = CORNU_BINARY_CROSSENTROPY, .metrics = {
        cornu_auc(.name = "score"), cornu_binary_accuracy(.name = "my_error"),
        cornu_loss_metric("quality", cornu_mean_squared_error()),
        cornu_loss_metric("precision", cornu_huber()),
        cornu_loss_metric("cosine", cornu_cosine_similarity()),
        cornu_cosine_similarity_metric(.name = "alike") }));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuMonitor monitor = { .who = "a test" };
        expect_ok(cornu__monitor_open(&monitor, cases[i].log));
        expect_ok(cornu__monitor_find_mode(&monitor, model));
        if (monitor.mode != cases[i].mode) fail_msg("%s: %d", cases[i].log, (int)monitor.mode);
        cornu__release(monitor.name);
    }
    cornu_model_free(model);
}

/* Early stopping on an AUC under another name stops when it no longer rises. */
static void early_stopping_uses_it(void **state)
{
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(1, .activation = CORNU_SIGMOID));
    expect_ok(cornu_compile(model, .device = *state, .loss = CORNU_BINARY_CROSSENTROPY,
                            .optimizer = cornu_sgd(.learning_rate = 1e-9),
                            .metrics = { cornu_auc(.name = "score") }));
    CornuHistory *history = cornu_fit(
        model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS), .epochs = 9, .verbose = CORNU_SILENT,
        .callbacks = { cornu_early_stopping("score", .patience = 1),
                       cornu_reduce_lr_on_plateau("score") });
    expect_ok(history ? CORNU_OK : cornu_error_take());
    assert_int_equal(cornu_history_epochs(history), 2);
    cornu_history_free(history);
    cornu_model_free(model);
}

/* ---- Validation ---- */

/* Batch i has labels i: with predictions of 0 its mean absolute error is i. */
static CornuStatus numbered(void *context, CornuSample sample, const CornuArray *to, bool *end)
{
    (void)context, (void)end;
    const int64_t batch = sample.index / 4;
    for (int k = 0; k < 3; k++) ((float *)to[0].data)[k] = 0.0f;
    *(float *)to[1].data = (float)batch;
    return CORNU_OK;
}

/* Keras 3.15: 0.5 in each epoch, also of a Python generator. */
static void each_epoch_validates_on_the_same(void **state)
{
    const CornuType types[] = { cornu_type(CORNU_F32, 3), cornu_scalar(CORNU_F32) };
    CornuModel     *model = cornu_sequential(.input_shape = { 3 });
    float           y[ROWS] = { 0 };
    cornu_model_add(model, cornu_dense(1, .no_bias = true));
    expect_ok(cornu_compile(model, .device = *state, .loss = cornu_loss("mae"),
                            .optimizer = cornu_sgd(.learning_rate = 1e-9)));
    for (int kind = 0; kind < 2; kind++) {
        CornuDataset *data = cornu_dataset_generator(numbered, types, 2);
        if (kind) data = cornu_dataset_batch(data, 4, false);
        CornuHistory *history = cornu_fit(
            model, .x = rows_x(0, ROWS), .y = cornu_array(y, CORNU_F32, ROWS), .epochs = 4,
            .verbose = CORNU_SILENT, .validation_data.data = data, .validation_steps = 2,
            .validation_batch_size = kind ? 0 : 4, .validation_freq = kind ? 2 : 1);
        expect_ok(history ? CORNU_OK : cornu_error_take());
        for (int i = 0; i < 4; i++) {   /* NaN stands for an epoch that Keras' list leaves out */
            const double loss = cornu_history_get(history, "val_loss", i);
            if (kind == 1 && i % 2 == 0) assert_true(isnan(loss));
            else assert_float_equal(loss, 0.5, 1e-6);
        }
        cornu_history_free(history);
        cornu_dataset_free(data);
    }
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_waits_for_validation),
        cmocka_unit_test(without_the_log_all_are_saved),
        cmocka_unit_test(a_metric_tells_its_direction),
        cmocka_unit_test(early_stopping_uses_it),
        cmocka_unit_test(each_epoch_validates_on_the_same),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
