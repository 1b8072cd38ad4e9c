/* Hooks of fit, evaluate and predict come in Keras' order (tests/golden/hooks). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny.h"

typedef struct {
    CornuCallback base;
    const char   *name;
    FILE         *lines;
    const char   *stop_hook;
    int64_t       stop_index;
} Recorder;

static CornuStatus note(CornuCallback *self, CornuModel *model, const char *hook, int64_t index,
                        const CornuLogs *logs)
{
    Recorder *recorder = (Recorder *)self;
    fprintf(recorder->lines, "%s on_%s", recorder->name, hook);
    if (index >= 0) fprintf(recorder->lines, " %lld", (long long)index);
    for (int i = 0; logs && i < logs->count; i++)
        fprintf(recorder->lines, "%s%s", i ? "," : " ", logs->logs[i].name);
    fputc('\n', recorder->lines);
    if (recorder->stop_hook && !strcmp(recorder->stop_hook, hook) &&
        recorder->stop_index == index)
        cornu_model_stop_training(model);
    return CORNU_OK;
}

#define PLAIN_HOOKS(X) \
    X(train_begin) X(train_end) X(test_begin) X(test_end) X(predict_begin) X(predict_end)
#define INDEX_HOOKS(X)                                                              \
    X(epoch_begin) X(epoch_end) X(train_batch_begin) X(train_batch_end)             \
    X(test_batch_begin) X(test_batch_end) X(predict_batch_begin) X(predict_batch_end)
#define PLAIN(hook)                                                                      \
    static CornuStatus on_##hook(CornuCallback *c, CornuModel *m, const CornuLogs *logs) \
    {                                                                                    \
        return note(c, m, #hook, -1, logs);                                              \
    }
#define INDEX(hook)                                                                       \
    static CornuStatus on_##hook(CornuCallback *c, CornuModel *m, int64_t i,              \
                                 const CornuLogs *logs)                                   \
    {                                                                                     \
        return note(c, m, #hook, i, logs);                                                \
    }
PLAIN_HOOKS(PLAIN)
INDEX_HOOKS(INDEX)

static Recorder recorder(const char *name, FILE *lines)
{
    return (Recorder){ .base = {
#define SET(hook) .hook = on_##hook,
        PLAIN_HOOKS(SET) INDEX_HOOKS(SET)
#undef SET
        .wants_batch_logs = cornu_always_wants_logs }, .name = name, .lines = lines };
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot read %s", path);
    char  *text = calloc(1, 1 << 16);
    size_t size = fread(text, 1, (1 << 16) - 1, file);
    assert_true(size > 0);
    fclose(file);
    return text;
}

/* Keras' lines without set_model and set_params, which are a field here, and without the outputs of
 * predict, which are not logs here. */
static void expect_lines(const char *name, const char *got, const CornuParams *params)
{
    char path[128];
    snprintf(path, sizeof path, "tests/golden/hooks/%s.txt", name);
    char *want = read_text(path), *next;
    for (char *line = want; line && *line; line = next) {
        if ((next = strchr(line, '\n'))) *next++ = '\0';
        char *outputs = strstr(line, " outputs");
        if (outputs) *outputs = '\0';
        if (strstr(line, " set_model")) continue;
        if (strstr(line, " set_params")) {
            char of_ours[128];
            snprintf(of_ours, sizeof of_ours, "set_params epochs=%lld steps=%lld verbose=%d",
                     (long long)params->epochs, (long long)params->steps, params->verbose);
            assert_non_null(strstr(line, of_ours));
            continue;
        }
        const size_t length = strlen(line);
        if (strncmp(got, line, length) || got[length] != '\n')
            fail_msg("%s: expected '%s', got '%.*s'", name, line, (int)strcspn(got, "\n"), got);
        got += length + 1;
    }
    assert_string_equal(got, "");
    free(want);
}

typedef struct {
    const char *name;
    const char *stop_hook;
    int64_t     stop_index;
    bool        two, no_validation;
    const char *metrics[2];
    int64_t     epochs, batch_size, steps_per_execution;
    CornuFitConfig more;   /* further arguments of fit */
} HookCase;

static void run_hooks(CornuDevice *device, const HookCase *c)
{
    char       *text = NULL;
    size_t      size;
    FILE       *lines = open_memstream(&text, &size);
    Recorder    a = recorder("a", lines), b = recorder("b", lines);
    CornuModel *model = executing_model(device, cornu_sgd(), c->metrics, c->steps_per_execution);
    a.stop_hook = c->stop_hook;
    a.stop_index = c->stop_index;
    CornuFitConfig config = c->more;
    config.model = model;
    config.x = rows_x(0, ROWS);
    config.y = rows_y(0, ROWS);
    config.epochs = c->epochs ? c->epochs : 2;
    config.batch_size = c->batch_size ? c->batch_size : 4;
    config.verbose = CORNU_SILENT;
    config.callbacks[0] = &a.base;
    config.callbacks[1] = c->two ? &b.base : NULL;
    if (!c->no_validation) {
        config.validation_data.x = rows_x(0, 6);
        config.validation_data.y = rows_y(0, 6);
    }
    CornuHistory *history = cornu_fit_from(&config);
    if (!history) fail_msg("%s: %s", c->name, cornu_error_message());
    fprintf(lines, "result epochs %d\n", cornu_history_epochs(history));
    fclose(lines);
    expect_lines(c->name, text, &a.base.params);
    free(text);
    cornu_history_free(history);
    cornu_model_free(model);
}

static void hooks_come_in_keras_order(void **state)
{
    static const HookCase cases[] = {
        { "fit", .metrics = { "accuracy" } },
        { "fit_two_callbacks", .metrics = { "accuracy" }, .two = true },
        { "fit_no_validation", .metrics = { "accuracy" }, .no_validation = true },
        { .name = "fit_no_metrics" },
        { "fit_more_metrics", .epochs = 1,
          .metrics = { "sparse_categorical_crossentropy", "accuracy" } },
        { "fit_one_batch", .metrics = { "accuracy" }, .epochs = 1, .batch_size = 32 },
        { "fit_initial_epoch", .metrics = { "accuracy" }, .epochs = 3,
          .more = { .initial_epoch = 1 } },
        { "fit_no_epochs", .metrics = { "accuracy" }, .epochs = CORNU_ZERO },
        { "fit_validation_freq", .metrics = { "accuracy" }, .epochs = 4,
          .more = { .validation_freq = 2 } },
        { "fit_validation_split", .metrics = { "accuracy" }, .no_validation = true,
          .more = { .validation_split = 0.25 } },
        { "fit_validation_batch", .metrics = { "accuracy" }, .epochs = 1,
          .more = { .validation_batch_size = 3 } },
        { "fit_steps", .metrics = { "accuracy" }, .epochs = 1,
          .more = { .steps_per_epoch = 2, .validation_steps = 1 } },
        { "fit_steps_per_execution_2", .metrics = { "accuracy" }, .epochs = 1,
          .steps_per_execution = 2 },
        { "fit_steps_per_execution_9", .metrics = { "accuracy" }, .two = true,
          .steps_per_execution = 9 },
        { "fit_steps_in_executions", .metrics = { "accuracy" }, .batch_size = 2,
          .steps_per_execution = 2, .more = { .steps_per_epoch = 4, .validation_steps = 3 } },
        { "stop_in_execution_end", "train_batch_end", 1, .metrics = { "accuracy" },
          .steps_per_execution = 2 },
        { "stop_in_batch_begin", "train_batch_begin", 1, .metrics = { "accuracy" } },
        { "stop_in_batch_end", "train_batch_end", 1, .metrics = { "accuracy" }, .two = true },
        { "stop_in_epoch_begin", "epoch_begin", 0, .metrics = { "accuracy" } },
        { "stop_in_epoch_end", "epoch_end", 0, .metrics = { "accuracy" } },
        { "stop_in_validation", "test_batch_end", 0, .metrics = { "accuracy" } },
        { "stop_in_train_begin", "train_begin", -1, .metrics = { "accuracy" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_hooks(*state, &cases[i]);
}

static void evaluate_and_predict_call_theirs(void **state)
{
    static const char *const names[] = { "evaluate", "predict", "evaluate_steps_per_execution_2",
                                         "predict_steps_per_execution_2" };
    for (int i = 0; i < 4; i++) {
        CornuModel *model = executing_model(*state, cornu_sgd(), accuracy, i / 2 + 1);
        char       *text = NULL;
        size_t      size;
        FILE       *lines = open_memstream(&text, &size);
        Recorder    a = recorder("a", lines);
        float       out[ROWS * 2];
        if (i % 2)
            expect_ok(cornu_predict(model, .x = rows_x(0, ROWS), .batch_size = 4,
                                    .verbose = CORNU_SILENT, .callbacks = { &a.base },
                                    .to = cornu_array(out, CORNU_F32, ROWS, 2)));
        else
            expect_ok(cornu_evaluate(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                     .batch_size = 4, .verbose = CORNU_SILENT,
                                     .callbacks = { &a.base }));
        fclose(lines);
        expect_lines(names[i], text, &a.base.params);
        free(text);
        cornu_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_come_in_keras_order),
        cmocka_unit_test(evaluate_and_predict_call_theirs),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
