/* Callbacks under scripted logs: their messages, files and decisions, as in Keras, and in small
 * trainings (tests/golden/callbacks, made by make_callbacks.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/formats/decimal_internal.h"
#include "../../../nn/training/training_internal.h"
#include "../../../nn/callbacks/monitor_internal.h"
#include "../golden.h"

#define FOLDER "tests/golden/callbacks/"

static CornuDevice *device;

static CornuModel *tiny_model(CornuOptimizer *optimizer)
{
    CornuModel *model = cornu_sequential(.name = "tiny", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .optimizer = optimizer,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }));
    return model;
}

static int open_device(void **state)
{
    (void)state;
    device = cornu_device_open("reference");
    return device ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    cornu_device_close(device);
    return 0;
}

/* NULL if there is no such file. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 14);
    if (file) {
        assert_true(fread(text, 1, (1 << 14) - 1, file) < (1 << 14) - 1);
        fclose(file);
        return text;
    }
    free(text);
    return NULL;
}

static char *read_golden(const char *name, const char *suffix)
{
    char path[200];
    snprintf(path, sizeof path, FOLDER "%s.%s", name, suffix);
    return read_file(path);
}

/* ---- Settings ---- */

/* The arguments in scripts, of all callbacks. */
typedef struct {
    char                             callback[40];
    CornuEarlyStoppingConfig         early;
    CornuReduceLrOnPlateauConfig     plateau;
    CornuLearningRateSchedulerConfig scheduler;
    CornuCsvLoggerConfig             csv;
    CornuTerminateOnNanConfig        terminate;
    double                           factor;
} Settings;

static double scaled(void *context, int64_t epoch, double rate)
{
    return epoch ? rate * *(double *)context : rate;
}

static int64_t zero(int64_t number) { return number ? number : CORNU_ZERO; }

static void set(Settings *s, const char *key, const char *value)
{
    const bool   yes = strcmp(value, "True") == 0;
    const double number = strtod(value, NULL);
    if (!strcmp(key, "monitor")) s->early.monitor = s->plateau.monitor = value;
    else if (!strcmp(key, "verbose"))
        s->early.verbose = s->plateau.verbose = s->scheduler.verbose = (int)number;
    else if (!strcmp(key, "mode")) s->early.mode = CORNU_MODE_MAX;
    else if (!strcmp(key, "patience")) {
        s->early.patience = (int64_t)number;
        s->plateau.patience = zero((int64_t)number);
    } else if (!strcmp(key, "min_delta")) s->early.min_delta = s->plateau.min_delta = number;
    else if (!strcmp(key, "baseline")) {
        s->early.has_baseline = true;
        s->early.baseline = number;
    } else if (!strcmp(key, "restore_best_weights")) s->early.restore_best_weights = yes;
    else if (!strcmp(key, "start_from_epoch")) s->early.start_from_epoch = (int64_t)number;
    else if (!strcmp(key, "factor")) s->factor = s->plateau.factor = number;
    else if (!strcmp(key, "cooldown")) s->plateau.cooldown = (int64_t)number;
    else if (!strcmp(key, "min_lr")) s->plateau.min_lr = number;
    else if (!strcmp(key, "separator")) s->csv.separator = value;
    else if (!strcmp(key, "append")) s->csv.append = yes;
    else fail_msg("unknown setting %s", key);
}

static CornuCallback *make(Settings *s, const char *log, FILE *out)
{
    s->early.file = s->plateau.file = s->scheduler.file = s->terminate.file = out;
    s->scheduler.schedule = scaled;
    s->scheduler.context = &s->factor;
    s->csv.filename = log;
    CornuCallback *callback = NULL;
    if (!strcmp(s->callback, "EarlyStopping"))
        callback = cornu_early_stopping_from(&s->early);
    else if (!strcmp(s->callback, "ReduceLROnPlateau"))
        callback = cornu_reduce_lr_on_plateau_from(&s->plateau);
    else if (!strcmp(s->callback, "LearningRateScheduler"))
        callback = cornu_learning_rate_scheduler_from(&s->scheduler);
    else if (!strcmp(s->callback, "CSVLogger"))
        callback = cornu_csv_logger_from(&s->csv);
    else if (!strcmp(s->callback, "TerminateOnNaN"))
        callback = cornu_terminate_on_nan_from(&s->terminate);
    const CornuParams params = { .epochs = 100, .steps = 1, .validates = true };
    if (callback) callback->params = params;
    else fail_msg("%s: %s", s->callback, cornu_error_message());
    return callback;
}

/* ---- Scripts ---- */

static void write_weights(CornuModel *model, float value)
{
    float values[6] = { value, value, value, value, value, value };
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_write(weight, cornu_array_from(values, weight->type)));
    }
}

static void expect_weights(const CornuModel *model, float value)
{
    float values[6];
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(values, weight->type)));
        for (int k = 0; k < cornu_type_count(weight->type); k++)
            assert_true(values[k] == value);
    }
}

static double rate_of(const CornuModel *model)
{
    double rate;
    expect_ok(cornu_optimizer_learning_rate(cornu_model_optimizer(model), &rate));
    return rate;
}

/* The effects of the last hook, and which of them the script has listed. */
typedef struct {
    CornuLog items[CORNU_MAX_CALLBACKS * CORNU_MAX_ADDED_LOGS];
    int      given, count;      /* logs before the hook and after it */
    double   rate;              /* before */
    bool     stops, told_rate;
} Effects;

static void run_hook(const CornuCallbackList *callbacks, Effects *e, const char *verb)
{
    CornuModel *model = callbacks->model;
    const bool  indexed = strncmp(verb, "train_", 6) != 0 || !strncmp(verb, "train_batch", 11);
    const int64_t index = indexed ? atoll(strtok(NULL, " ")) : 0;
    *e = (Effects){ .rate = rate_of(model) };
    for (char *word; (word = strtok(NULL, " "));) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        e->items[e->given++] = (CornuLog){ word, strtod(equals + 1, NULL) };
    }
    CornuLogSet set = { .logs = { e->given, e->items }, .items = e->items };
    CornuLogs   logs = set.logs;
    if (!strcmp(verb, "train_begin")) {
        expect_ok(cornu__call_hook(callbacks, CORNU__HOOK(train_begin), NULL));
    } else if (!strcmp(verb, "epoch_begin")) {
        expect_ok(cornu__call_index_hook(callbacks, CORNU__HOOK(epoch_begin), index, NULL));
        write_weights(model, (float)index + 1.0f);
    } else if (!strcmp(verb, "epoch_end")) {
        expect_ok(cornu__epoch_end(callbacks, false, index, &set, &logs));
    } else if (!strcmp(verb, "train_batch_end")) {
        assert_true(cornu__wants_logs(callbacks, CORNU__HOOK(train_batch_end), index));
        expect_ok(cornu__call_index_hook(callbacks, CORNU__HOOK(train_batch_end), index,
                                         &set.logs));
    } else {
        assert_string_equal(verb, "train_end");
        expect_ok(cornu__call_hook(callbacks, CORNU__HOOK(train_end), NULL));
    }
    e->count = logs.count;
    e->stops = model->stop_training;
    model->stop_training = false;
}

/* Checks that the script lists every effect. */
static void expect_told(const Effects *e, const CornuModel *model, const char *name)
{
    if (e->count != e->given) fail_msg("%s: %s is added", name, e->items[e->given].name);
    if (e->stops) fail_msg("%s: the training stops", name);
    if (!e->told_rate && e->rate != rate_of(model)) fail_msg("%s: the rate changes", name);
}

/* Checks a line that lists an effect of the last hook; false for other lines. */
static bool tell(Effects *e, const CornuModel *model, const char *verb, char *rest)
{
    if (!strcmp(verb, "stops")) {
        assert_true(e->stops);
        e->stops = false;
    } else if (!strcmp(verb, "rate")) {
        assert_true(rate_of(model) == strtod(rest, NULL) && e->rate != rate_of(model));
        e->told_rate = true;
    } else if (!strcmp(verb, "adds")) {
        char *equals = strchr(rest, '=');
        *equals = '\0';
        assert_int_equal(e->count, e->given + 1);
        assert_string_equal(e->items[e->given].name, rest);
        assert_true(e->items[e->given].value == strtod(equals + 1, NULL));
        e->given++;
    } else if (!strcmp(verb, "weights")) {
        expect_weights(model, strtof(rest, NULL));
    } else {
        return false;
    }
    return true;
}

static bool is_hook(const char *verb)
{
    return !strncmp(verb, "train_", 6) || !strncmp(verb, "epoch_", 6);
}

static void begin_log(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    fprintf(file, "%s\r\n", text);
    fclose(file);
}

/* Runs a script, with the effects that it has in Keras. */
static void test_script(void **state)
{
    const char *name = *state;
    char *events = read_golden(name, "events"), *expected = read_golden(name, "out");
    char *csv = read_golden(name, "csv"), *printed = NULL, log[] = "/tmp/cornu_log_XXXXXX";
    size_t         size = 0;
    FILE          *out = open_memstream(&printed, &size);
    Settings       settings[2] = { 0 };
    int            setting_count = 0;
    Effects        effects = { .told_rate = true };
    CornuModel    *model = tiny_model(cornu_sgd(.learning_rate = 0.1));
    CornuCallbackList callbacks = { .model = model };
    if (!events || !expected) fail_msg("%s: no golden files", name);
    close(mkstemp(log));
    unlink(log);

    for (char *line = events, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        char *verb = line, *rest = strchr(line, ' ');
        if (is_hook(verb)) {
            for (int i = callbacks.count; i < setting_count; i++)
                callbacks.items[callbacks.count++] = make(&settings[i], log, out);
            expect_told(&effects, model, name);
            run_hook(&callbacks, &effects, strtok(line, " "));
            continue;
        }
        if (rest) *rest++ = '\0';
        if (tell(&effects, model, verb, rest)) continue;
        if (!strcmp(verb, "before"))
            begin_log(log, rest);
        else if (!strcmp(verb, "callback"))
            snprintf(settings[setting_count++].callback, sizeof settings->callback, "%s", rest);
        else
            set(&settings[setting_count - 1], verb, rest);
    }
    expect_told(&effects, model, name);
    cornu__callback_list_close(&callbacks);
    fclose(out);
    if (strcmp(printed, expected) != 0) fail_msg("%s: printed %s", name, printed);
    char *logged = read_file(log);
    if ((csv != NULL) != (logged != NULL) || (csv && strcmp(logged, csv) != 0))
        fail_msg("%s: logged %s", name, logged ? logged : "nothing");
    unlink(log);
    free(logged);
    free(csv);
    free(printed);
    free(events);
    free(expected);
    cornu_model_free(model);
}

static const char *const scripts[] = {
    "early_default", "early_patience", "early_quiet", "early_restore",
    "early_restore_unstopped", "early_min_delta", "early_max", "early_accuracy",
    "early_baseline", "early_baseline_restore", "early_late", "early_rises",
    "early_unvalidated", "early_nan", "early_nan_first", "early_rounding",
    "plateau_default", "plateau_patience", "plateau_patience_0", "plateau_cooldown",
    "plateau_cooldown_improves", "plateau_min_lr", "plateau_min_delta", "plateau_accuracy",
    "plateau_unvalidated", "plateau_quiet", "scheduler", "scheduler_small",
    "scheduler_quiet", "csv", "csv_unvalidated", "csv_late_validation", "csv_semicolon",
    "csv_point", "csv_replace", "csv_append", "csv_append_new", "csv_before_rate",
    "csv_behind_rate", "terminate_nan", "terminate_inf", "terminate_none",
};

static void decimals_are_as_in_python(void **state)
{
    static const struct { double value; const char *text; } cases[] = {
        { 0.1, "0.1" }, { 0.0, "0.0" }, { -0.0, "-0.0" }, { 1.0, "1.0" }, { 1e5, "100000.0" },
        { 1e15, "1000000000000000.0" }, { 1e16, "1e+16" }, { 123456789012345680.0,
        "1.2345678901234568e+17" }, { 1e-4, "0.0001" }, { 1e-5, "1e-05" }, { 1.5e-7, "1.5e-07" },
        { 0.6000000238418579, "0.6000000238418579" }, { 1.0 / 3.0, "0.3333333333333333" },
        { 1e100, "1e+100" }, { 5e-324, "5e-324" }, { 1.7976931348623157e308,
        "1.7976931348623157e+308" }, { 2.5, "2.5" }, { -1234.5, "-1234.5" }, { NAN, "nan" },
        { -NAN, "nan" }, { INFINITY, "inf" }, { -INFINITY, "-inf" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuDecimal decimal;
        assert_string_equal(cornu__decimal(&decimal, cases[i].value), cases[i].text);
    }
}

/* ---- In trainings ---- */

enum { ROWS = 10 };

typedef struct {
    Golden     golden;
    CornuArray x, y;
} Data;

static Data open_data(void)
{
    Data data = { .golden = golden_open(FOLDER "ema.safetensors") };
    data.x = golden_array(&data.golden, NULL, "x");
    data.y = golden_array(&data.golden, NULL, "y");
    return data;
}

static CornuArray rows(CornuArray array, int64_t count)
{
    array.type.shape.extent[0] = count;
    return array;
}

static CornuHistory *fit(CornuModel *model, const Data *data, int64_t epochs, CornuCallback *a,
                         CornuCallback *b, CornuCallback *c)
{
    return cornu_fit(model, .x = data->x, .y = data->y, .batch_size = 4, .epochs = epochs,
                     .validation_data = { .x = rows(data->x, 6), .y = rows(data->y, 6) },
                     .no_shuffle = true, .verbose = CORNU_SILENT, .callbacks = { a, b, c });
}

/* Records the hooks of a trace, with "a " or "b " before each. */
typedef struct {
    const char *name;
    FILE       *lines;
} Recorder;

static void note(CornuCallback *self, const char *hook, int64_t index, const CornuLogs *logs)
{
    const Recorder *recorder = cornu_lambda_context(self);
    fprintf(recorder->lines, "%s on_%s", recorder->name, hook);
    if (index >= 0) fprintf(recorder->lines, " %lld", (long long)index);
    for (int i = 0; logs && i < logs->count; i++)
        fprintf(recorder->lines, "%s%s", i ? "," : " ", logs->logs[i].name);
    fputc('\n', recorder->lines);
}

#define PLAIN_HOOKS(X) X(train_begin) X(train_end) X(test_begin) X(test_end)
#define INDEX_HOOKS(X)                                                  \
    X(epoch_begin) X(epoch_end) X(train_batch_begin) X(train_batch_end) \
    X(test_batch_begin) X(test_batch_end)
#define PLAIN(hook)                                                                      \
    static CornuStatus on_##hook(CornuCallback *c, CornuModel *m, const CornuLogs *logs) \
    {                                                                                    \
        (void)m;                                                                         \
        note(c, #hook, -1, logs);                                                        \
        return CORNU_OK;                                                                 \
    }
#define INDEX(hook)                                                                       \
    static CornuStatus on_##hook(CornuCallback *c, CornuModel *m, int64_t i,              \
                                 const CornuLogs *logs)                                   \
    {                                                                                     \
        (void)m;                                                                          \
        note(c, #hook, i, logs);                                                          \
        return CORNU_OK;                                                                  \
    }
PLAIN_HOOKS(PLAIN)
INDEX_HOOKS(INDEX)

static CornuCallback *recorder(Recorder *context)
{
#define SET(hook) .hook = on_##hook,
    return cornu_lambda_callback(PLAIN_HOOKS(SET) INDEX_HOOKS(SET) .context = context);
#undef SET
}

static double same_rate(void *context, int64_t epoch, double rate)
{
    (void)context, (void)epoch;
    return rate;
}

static void added_logs_reach_those_behind(void **state)
{
    (void)state;
    Data        data = open_data();
    CornuModel *model = tiny_model(cornu_sgd());
    char       *text = NULL, *want = read_golden("trace", "txt"), *line = want;
    size_t      size;
    FILE       *lines = open_memstream(&text, &size);
    Recorder    a = { "a", lines }, b = { "b", lines };
    CornuHistory *history = fit(model, &data, 2, recorder(&a),
                                cornu_learning_rate_scheduler(same_rate), recorder(&b));
    if (!history) fail_msg("%s", cornu_error_message());
    fprintf(lines, "history");
    for (int i = 0; i < cornu_history_key_count(history); i++)
        fprintf(lines, "%s%s", i ? "," : " ", cornu_history_key(history, i));
    fputc('\n', lines);
    fclose(lines);
    assert_true(cornu_history_get(history, "learning_rate", 1) == 0.01f);
    while (strstr(line, "set_model") || strstr(line, "set_params")) {   /* are not hooks here */
        char *next = strchr(line, '\n');
        if (!memchr(line, '_', (size_t)(next - line)) || !strncmp(line + 2, "on_", 3)) break;
        line = next + 1;
    }
    assert_string_equal(text, line);
    free(text);
    free(want);
    cornu_history_free(history);
    cornu_model_free(model);
    golden_close(&data.golden);
}

/* Saves kernel and bias at the end of each epoch. */
typedef struct { float kernel[3][6], bias[3][2]; } Seen;

static CornuStatus look(CornuCallback *self, CornuModel *model, int64_t epoch,
                        const CornuLogs *logs)
{
    Seen *seen = cornu_lambda_context(self);
    (void)logs;
    expect_ok(cornu_weight_read(cornu_model_weight(model, 0),
                                cornu_array(seen->kernel[epoch], CORNU_F32, 3, 2)));
    expect_ok(cornu_weight_read(cornu_model_weight(model, 1),
                                cornu_array(seen->bias[epoch], CORNU_F32, 2)));
    return CORNU_OK;
}

static void run_ema(Data *data, const char *name, const json_t *about)
{
    const json_t *callback = json_object_get(about, "callback");
    CornuModel   *model = tiny_model(cornu_sgd(.learning_rate = 0.5, .use_ema = true,
        .ema_momentum = 0.6, .ema_overwrite_frequency =
            json_integer_value(json_object_get(about, "ema_overwrite_frequency"))));
    Golden *golden = &data->golden;
    Seen    seen;
    float   loss[3], val_loss[3], after[6];
    char    array[20];
    for (int i = 0; i < 2; i++) {
        snprintf(array, sizeof array, "start_%d", i);
        expect_ok(cornu_weight_write(cornu_model_weight(model, i),
                                     golden_array(golden, name, array)));
    }
    CornuCallback *swap = !callback ? cornu_lambda_callback()
        : cornu_swap_ema_weights(.swap_on_epoch =
                                     json_is_true(json_object_get(callback, "swap_on_epoch")));
    CornuHistory *history = fit(model, data, 3, swap,
                                cornu_lambda_callback(.epoch_end = look, .context = &seen), NULL);
    if (!history) fail_msg("%s: %s", name, cornu_error_message());
    for (int e = 0; e < 3; e++) {
        loss[e] = (float)cornu_history_get(history, "loss", e);
        val_loss[e] = (float)cornu_history_get(history, "val_loss", e);
        snprintf(array, sizeof array, "seen_%d_0", e);
        expect_near(array, seen.kernel[e], golden_array(golden, name, array), 1e-6);
        snprintf(array, sizeof array, "seen_%d_1", e);
        expect_near(array, seen.bias[e], golden_array(golden, name, array), 1e-6);
    }
    expect_near("loss", loss, golden_array(golden, name, "loss"), 1e-6);
    expect_near("val_loss", val_loss, golden_array(golden, name, "val_loss"), 1e-6);
    for (int i = 0; i < 2; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        snprintf(array, sizeof array, "after_%d", i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(after, weight->type)));
        expect_near(array, after, golden_array(golden, name, array), 1e-6);
    }
    cornu_history_free(history);
    cornu_model_free(model);
}

static void averages_are_evaluated(void **state)
{
    (void)state;
    Data        data = open_data();
    const char *name;
    json_t     *about;
    json_object_foreach(data.golden.cases, name, about) run_ema(&data, name, about);
    golden_close(&data.golden);
}

/* Keras leaves the averages in the model; see callbacks.h. */
static void predict_returns_the_weights(void **state)
{
    (void)state;
    Data        data = open_data();
    CornuModel *model = tiny_model(cornu_sgd(.learning_rate = 0.5, .use_ema = true));
    float       before[6], after[6], plain[ROWS * 2], averaged[ROWS * 2];
    const CornuArray to = cornu_array(averaged, CORNU_F32, ROWS, 2);
    const CornuWeight *kernel = cornu_model_weight(model, 0);
    /* Before the first step there are no averages. */
    expect_ok(cornu_predict(model, .x = data.x, .verbose = CORNU_SILENT,
                            .to = cornu_array(plain, CORNU_F32, ROWS, 2)));
    expect_ok(cornu_predict(model, .x = data.x, .verbose = CORNU_SILENT, .to = to,
                            .callbacks = { cornu_swap_ema_weights() }));
    assert_memory_equal(plain, averaged, sizeof plain);
    for (int i = 0; i < 3; i++)
        expect_ok(cornu_train_on_batch(model, data.x, data.y, NULL));
    expect_ok(cornu_weight_read(kernel, cornu_array_from(before, kernel->type)));
    expect_ok(cornu_predict(model, .x = data.x, .verbose = CORNU_SILENT,
                            .to = cornu_array(plain, CORNU_F32, ROWS, 2)));
    expect_ok(cornu_predict(model, .x = data.x, .verbose = CORNU_SILENT, .to = to,
                            .callbacks = { cornu_swap_ema_weights() }));
    expect_ok(cornu_weight_read(kernel, cornu_array_from(after, kernel->type)));
    assert_memory_equal(before, after, sizeof before);
    assert_memory_not_equal(plain, averaged, sizeof plain);
    cornu_model_free(model);
    golden_close(&data.golden);
}

static CornuStatus stop(CornuCallback *self, CornuModel *model, int64_t epoch,
                        const CornuLogs *logs)
{
    (void)self, (void)epoch, (void)logs;
    cornu_model_stop_training(model);
    return CORNU_OK;
}

/* A training stopped after its first epoch leaves the averages, like a training of one epoch. */
static void a_stopped_training_leaves_the_averages(void **state)
{
    (void)state;
    Data  data = open_data();
    float weights[3][6];
    for (int i = 0; i < 3; i++) {
        CornuModel *model = tiny_model(cornu_sgd(.learning_rate = 0.5, .use_ema = i < 2,
                                                 .ema_momentum = i < 2 ? 0.6 : 0.0));
        CornuWeight *kernel = cornu_model_weight(model, 0);
        float        start[6];
        for (int k = 0; k < 6; k++) start[k] = (float)k / 6.0f;
        expect_ok(cornu_weight_write(kernel, cornu_array_from(start, kernel->type)));
        CornuHistory *history =
            i < 2 ? fit(model, &data, i ? 3 : 1,
                        cornu_lambda_callback(.epoch_end = i ? stop : NULL),
                        cornu_swap_ema_weights(.swap_on_epoch = true), NULL)
                  : fit(model, &data, 1, NULL, NULL, NULL);
        if (!history) fail_msg("%s", cornu_error_message());
        assert_int_equal(cornu_history_epochs(history), 1);
        expect_ok(cornu_weight_read(kernel, cornu_array_from(weights[i], kernel->type)));
        cornu_history_free(history);
        cornu_model_free(model);
    }
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
    assert_memory_not_equal(weights[0], weights[2], sizeof weights[0]);
    golden_close(&data.golden);
}

/* An infinite loss ends fit with an error or, if a callback handles it, the training. */
static void a_loss_that_is_no_number_stops(void **state)
{
    (void)state;
    Data  data = open_data();
    FILE *out = tmpfile();
    float bad[ROWS * 3];
    memcpy(bad, data.x.data, sizeof bad);
    bad[5 * 3] = INFINITY;                       /* in the second batch */
    data.x.data = bad;
    for (int raises = 0; raises < 2; raises++) {
        CornuModel   *model = tiny_model(cornu_sgd());
        CornuHistory *history = fit(model, &data, 3, cornu_terminate_on_nan(
                                        .raise_error = raises, .file = out), NULL, NULL);
        if (raises) {
            assert_null(history);
            expect_error(cornu_error_take(), CORNU_ERR_VALUE, "encountered at batch 1");
        } else {
            if (!history) fail_msg("%s", cornu_error_message());
            assert_int_equal(cornu_history_epochs(history), 1);
            assert_false(isfinite(cornu_history_get(history, "loss", 0)));
        }
        cornu_history_free(history);
        cornu_model_free(model);
    }
    char line[80] = "";
    rewind(out);
    assert_non_null(fgets(line, sizeof line, out));
    assert_string_equal(line, "Batch 1: Invalid loss, terminating training\n");
    assert_null(fgets(line, sizeof line, out));
    fclose(out);
    golden_close(&data.golden);
}

/* ---- Refusals ---- */

static double no_rate(void *context, int64_t epoch, double rate)
{
    (void)context, (void)epoch, (void)rate;
    return NAN;
}

static void trainings_refuse(void **state)
{
    (void)state;
    static const struct { CornuStatus status; const char *part; } wanted[] = {
        { CORNU_ERR_ARGUMENT, "early stopping: no log \"val_acc\" to monitor, expected one of "
                              "accuracy, loss, val_accuracy, val_loss" },
        { CORNU_ERR_ARGUMENT, "whether a small or a large \"speed\"" },
        { CORNU_ERR_UNSUPPORTED, "the learning rate follows" },
        { CORNU_ERR_ARGUMENT, "the learning rate is nan" },
        { CORNU_ERR_FILE, "no/such/folder.csv: cannot be written" },
        { CORNU_ERR_ARGUMENT, "sgd: keeps no averages of the weights, expected .use_ema" },
        { CORNU_ERR_FILE, "/dev/full: cannot be written" },
    };
    Data data = open_data();
    for (int i = 0; i < (int)(sizeof wanted / sizeof *wanted); i++) {
        CornuCallback *callback =
            i == 0 ? cornu_early_stopping("val_acc")
          : i == 1 ? cornu_early_stopping("speed")
          : i == 2 ? cornu_reduce_lr_on_plateau()
          : i == 3 ? cornu_learning_rate_scheduler(no_rate)
          : i == 4 ? cornu_csv_logger("no/such/folder.csv")
          : i == 5 ? cornu_swap_ema_weights()
          :          cornu_csv_logger("/dev/full", .append = true);
        CornuModel *model = tiny_model(i != 2 ? cornu_sgd()
            : cornu_sgd(.schedule = cornu_exponential_decay(0.1, 2, 0.5)));
        assert_null(fit(model, &data, 2, callback, NULL, NULL));
        expect_error(cornu_error_take(), wanted[i].status, wanted[i].part);
        cornu_model_free(model);
    }
    /* Without validation there is never a val_loss. */
    CornuModel *model = tiny_model(cornu_sgd());
    assert_null(cornu_fit(model, .x = data.x, .y = data.y, .verbose = CORNU_SILENT,
                          .callbacks = { cornu_early_stopping() }));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT,
                 "expected one of accuracy, loss; fit was given no validation data");
    cornu_model_free(model);
    golden_close(&data.golden);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(decimals_are_as_in_python),
        cmocka_unit_test(added_logs_reach_those_behind),
        cmocka_unit_test(averages_are_evaluated),
        cmocka_unit_test(predict_returns_the_weights),
        cmocka_unit_test(a_stopped_training_leaves_the_averages),
        cmocka_unit_test(a_loss_that_is_no_number_stops),
        cmocka_unit_test(trainings_refuse),
    };
    enum { SCRIPTS = sizeof scripts / sizeof *scripts, OTHERS = sizeof others / sizeof *others };
    struct CMUnitTest tests[OTHERS + SCRIPTS];
    memcpy(tests, others, sizeof others);
    for (int i = 0; i < SCRIPTS; i++)
        tests[OTHERS + i] = (struct CMUnitTest){ scripts[i], test_script, NULL, NULL,
                                                 (void *)scripts[i] };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
