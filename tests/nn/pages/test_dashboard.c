/* A training with a dashboard: what it shows, that it obeys, and that its numbers are those of one
 * without. Commands are sent by a callback, so that it is known at which step they are obeyed. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cornu/cornu.h>

#include "../../../device/system/clock_internal.h"
#include "../../device/processes/ranks.h"
#include "../../expect.h"
#include "../../skip.h"
#include "client.h"

enum { ROWS = 64, FEATURES = 5, CLASSES = 3, EPOCHS = 5 };

static float    x[ROWS * FEATURES];
static int32_t  y[ROWS];
static char     folder[] = "/tmp/cornu-dashboard-XXXXXX", saved[100];
static char     text[CLIENT_TEXT];

static CornuArray x_of(void) { return cornu_array(x, CORNU_F32, ROWS, FEATURES); }
static CornuArray y_of(void) { return cornu_array(y, CORNU_I32, ROWS); }

static CornuModel *network(CornuDevice *device)
{
    cornu_set_random_seed(7);
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(8, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device,
                            .optimizer = cornu_adam(.learning_rate = 0.01),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { cornu_metric("accuracy") }));
    return model;
}

static CornuHistory *train(CornuModel *model, CornuCallback *a, CornuCallback *b)
{
    return cornu_fit(model, .x = x_of(), .y = y_of(), .batch_size = 8, .epochs = EPOCHS,
                     .verbose = CORNU_SILENT, .callbacks = { a, b });
}

static float *weights_of(const CornuModel *model)
{
    static float all[1000];
    size_t       at = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(all + at, weight->type)));
        at += (size_t)cornu_type_count(weight->type);
    }
    return memcpy(calloc(1, sizeof all), all, sizeof all);
}

static void need_http(void)
{
    if (!cornu_dashboard_check(NULL, 0)) return;
    cornu_error_take();
    SKIP_FOR("libmicrohttpd: make deps-serve");
}

/* ---- A callback that sends commands ---- */

typedef struct {
    const char *url;               /* NULL: of no dashboard */
    int64_t     epoch;             /* at whose end they are sent, */
    const char *commands[5];       /* up to NULL */
    int         listener;          /* a reader of events, connected by then; 0: none */
    double      begun_s, took_s;   /* of the first epoch, by the clock on the wall */
} Script;

static CornuStatus send_commands(CornuCallback *self, CornuModel *model, int64_t epoch,
                                 const CornuLogs *logs)
{
    Script *script = cornu_lambda_context(self);
    (void)model, (void)logs;
    if (!script->url || !*script->url || epoch != script->epoch) return CORNU_OK;
    script->listener = client_listen(script->url);
    for (int i = 0; script->commands[i]; i++)
        assert_int_equal(client_command(script->url, script->commands[i]), 202);
    return CORNU_OK;
}

static CornuCallback *script_of(Script *script, CornuCallback *dashboard)
{
    assert_non_null(dashboard);
    script->url = cornu_dashboard_url(dashboard);
    return cornu_lambda_callback(.epoch_end = send_commands, .context = script);
}

/* Trains with the script; what its reader was sent is in `text`. Returns the weights. */
static float *train_by(Script *script, CornuCallback *dashboard, int epochs)
{
    CornuModel    *model = network(NULL);
    CornuCallback *sender = script_of(script, dashboard);
    CornuHistory  *history = train(model, sender, dashboard);
    assert_non_null(history);
    assert_int_equal(cornu_history_epochs(history), epochs);
    if (script->listener > 0) {
        client_hears(script->listener, "\"state\":\"ended\"", text);
        close(script->listener);
    }
    float *weights = weights_of(model);
    cornu_history_free(history);
    cornu_model_free(model);
    return weights;
}

static void expect_same(float *a, float *b, bool same)
{
    assert_int_equal(memcmp(a, b, 1000 * sizeof *a) == 0, same);
    free(a);
    free(b);
}

static float *plain_weights(CornuCallback *callback, int epochs)
{
    CornuModel   *model = network(NULL);
    CornuHistory *history = cornu_fit(model, .x = x_of(), .y = y_of(), .batch_size = 8,
                                      .epochs = epochs, .verbose = CORNU_SILENT,
                                      .callbacks = { callback });
    assert_non_null(history);
    float *weights = weights_of(model);
    cornu_history_free(history);
    cornu_model_free(model);
    return weights;
}

/* ---- Tests ---- */

static void a_look_changes_nothing(void **state)
{
    (void)state;
    need_http();
    Script script = { .epoch = 1, .commands = { "{\"action\":\"pause\"}",
                                                "{\"action\":\"resume\"}" } };
    float *looked_at = train_by(&script, cornu_dashboard(.quiet = true, .x = x_of(), .y = y_of()),
                                EPOCHS);
    assert_non_null(strstr(text, "\"text\":\"paused after epoch 2\""));
    assert_non_null(strstr(text, "\"text\":\"resumed\""));
    assert_non_null(strstr(text, "\"ended\":true"));
    assert_non_null(strstr(text, "\"counts\":"));            /* of the confusion matrix */
    assert_non_null(strstr(text, "\"SHA-256 of the weights\""));
    expect_same(looked_at, plain_weights(NULL, EPOCHS), true);
}

static double halve(void *context, int64_t epoch, double rate)
{
    (void)context;
    return epoch == 2 ? 0.5 * rate : rate;
}

/* As if a scheduler had done it. */
static void the_learning_rate_changes(void **state)
{
    (void)state;
    need_http();
    Script script = { .epoch = 1,
                      .commands = { "{\"action\":\"learning_rate\",\"value\":0.005}" } };
    float *steered = train_by(&script, cornu_dashboard(.quiet = true), EPOCHS);
    assert_non_null(strstr(text, "\"text\":\"learning rate from 0.01 to 0.005 after epoch 2\""));
    expect_same(steered, plain_weights(cornu_learning_rate_scheduler(halve), EPOCHS), true);
    expect_same(plain_weights(NULL, EPOCHS),
                plain_weights(cornu_learning_rate_scheduler(halve), EPOCHS), false);
}

static void it_stops_after_the_epoch(void **state)
{
    (void)state;
    need_http();
    Script script = { .epoch = 2, .commands = { "{\"action\":\"stop\"}" } };
    float *stopped = train_by(&script, cornu_dashboard(.quiet = true), 3);
    assert_non_null(strstr(text, "\"text\":\"stopped after epoch 3 of 5\""));
    expect_same(stopped, plain_weights(NULL, 3), true);

    script = (Script){ .epoch = 2, .commands = { "{\"action\":\"stop\"}",
                                                 "{\"action\":\"go_on\"}" } };
    free(train_by(&script, cornu_dashboard(.quiet = true), EPOCHS));
    assert_non_null(strstr(text, "\"text\":\"not stopping after this epoch\""));
}

static void it_saves_the_model(void **state)
{
    (void)state;
    need_http();
    Script script = { .epoch = 2, .commands = { "{\"action\":\"save\"}" } };
    free(train_by(&script, cornu_dashboard(.quiet = true, .save = saved), EPOCHS));
    assert_non_null(strstr(text, "after epoch 3"));
    CornuModel *model = cornu_model_load(saved);
    assert_non_null(model);
    expect_same(weights_of(model), plain_weights(NULL, 3), true);
    cornu_model_free(model);
}

/* The folder goes while it trains: it is said, and the training ends as if nothing were. */
static void a_failed_save_is_said(void **state)
{
    (void)state;
    need_http();
    char gone[100], path[120];
    snprintf(gone, sizeof gone, "%s/gone", folder);
    assert_int_equal(mkdir(gone, 0777), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", gone);
    CornuCallback *dashboard = cornu_dashboard(.quiet = true, .save = path);
    rmdir(gone);
    Script script = { .epoch = 0, .commands = { "{\"action\":\"save\"}" } };
    float *weights = train_by(&script, dashboard, EPOCHS);
    assert_non_null(strstr(text, "\"text\":\"not saved: "));
    expect_same(weights, plain_weights(NULL, EPOCHS), true);
}

static void a_schedule_stays(void **state)
{
    (void)state;
    need_http();
    CornuModel *model = network(NULL);
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_sgd(.schedule = cornu_exponential_decay(
                                .initial_learning_rate = 0.1, .decay_steps = 10,
                                .decay_rate = 0.5))));
    Script script = { .epoch = 0,
                      .commands = { "{\"action\":\"learning_rate\",\"value\":0.005}" } };
    CornuCallback *dashboard = cornu_dashboard(.quiet = true);
    CornuCallback *sender = script_of(&script, dashboard);
    CornuHistory  *history = train(model, sender, dashboard);
    assert_non_null(history);
    client_hears(script.listener, "\"state\":\"ended\"", text);
    assert_non_null(strstr(text, "\"text\":\"the learning rate stays: "));
    close(script.listener);
    cornu_history_free(history);
    cornu_model_free(model);
}

/* ---- Pausing ---- */

static atomic_bool asked;

/* Waits until it has paused, then asks for the end of that, or for that of the training. */
static void *resume_later(void *context)
{
    Script *script = context;
    static char heard[CLIENT_TEXT];
    client_hears(script->listener, "\"state\":\"paused\"", heard);
    poll(NULL, 0, 300);
    if (script->commands[2]) client_command(script->url, script->commands[2]);
    else asked = 1;
    return NULL;
}

static pthread_t resumer;

static CornuStatus pause_it(CornuCallback *self, CornuModel *model, int64_t epoch,
                            const CornuLogs *logs)
{
    Script *script = cornu_lambda_context(self);
    (void)model, (void)logs;
    if (epoch != 0) return CORNU_OK;
    script->begun_s = cornu__seconds();
    script->listener = client_listen(script->url);
    assert_int_equal(client_command(script->url, "{\"action\":\"pause\"}"), 202);
    assert_int_equal(pthread_create(&resumer, NULL, resume_later, script), 0);
    return CORNU_OK;
}

static CornuStatus note_time(CornuCallback *self, CornuModel *model, int64_t epoch,
                             const CornuLogs *logs)
{
    Script *script = cornu_lambda_context(self);
    (void)model, (void)logs;
    if (epoch == 0) script->took_s = cornu__seconds() - script->begun_s;
    return CORNU_OK;
}

static bool is_asked(CornuCallback *self) { return (void)self, asked; }

/* The pause is not in the time of the epoch, and ends by a command, or with the training. */
static void a_pause_is_not_counted(void **state)
{
    (void)state;
    need_http();
    for (int ends = 0; ends < 2; ends++) {
        Script script = { .commands = { NULL, NULL,
                                        ends ? NULL : "{\"action\":\"resume\"}" } };
        CornuModel    *model = network(NULL);
        CornuCallback *dashboard = cornu_dashboard(.quiet = true);
        script.url = cornu_dashboard_url(dashboard);
        CornuCallback *other = cornu_lambda_callback(
            .epoch_begin = pause_it, .epoch_end = note_time, .context = &script);
        other->interrupted = is_asked;
        CornuHistory *history = train(model, dashboard, other);
        assert_non_null(history);
        pthread_join(resumer, NULL);
        assert_true(cornu_history_seconds(history, 0) > 0.0);
        assert_true(cornu_history_seconds(history, 0) <= script.took_s - 0.3);
        assert_true(client_hears(script.listener, "\"state\":\"ended\"", text));
        assert_non_null(strstr(text, ends ? "as the training is about to end" : "\"resumed\""));
        close(script.listener);
        cornu_history_free(history);
        cornu_model_free(model);
    }
}

/* ---- Several processes ---- */

static CornuStatus train_as_rank(CornuProcesses *processes)
{
    static Script  script;
    double         own[1000], all[2000];
    CornuDevice   *device = cornu_device_open("cpu", .threads = 1, .shards = 2,
                                              .processes = processes);
    CornuModel    *model = network(device);
    CornuCallback *dashboard = cornu_dashboard(.quiet = true, .save = saved);
    if (!device || !model || !dashboard) return cornu_error_take();
    script = (Script){ .epoch = 1, .url = cornu_dashboard_url(dashboard), .commands = {
        "{\"action\":\"learning_rate\",\"value\":0.005}", "{\"action\":\"pause\"}",
        "{\"action\":\"resume\"}", "{\"action\":\"save\"}" } };
    CornuHistory *history = train(model, dashboard, cornu_lambda_callback(
                                  .epoch_end = send_commands, .context = &script));
    CornuStatus status = history ? CORNU_OK : cornu_error_take();
    float      *weights = status ? NULL : weights_of(model);
    for (int i = 0; weights && i < 1000; i++) own[i] = weights[i];
    if (!status) status = cornu_processes_gather(processes, own, 1000, all);
    if (!status && memcmp(all, all + 1000, sizeof own) != 0)
        status = cornu_error_set(CORNU_ERR_VALUE, "the weights differ");
    free(weights);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

/* All ranks obey, and their weights are those of one process whose rate a scheduler halves. */
static void ranks_obey_together(void **state)
{
    (void)state;
    need_http();
    ranks_succeed(2, "shm", train_as_rank);
    CornuDevice  *device = cornu_device_open("cpu", .threads = 1, .shards = 2);
    CornuModel   *model = network(device), *other = cornu_model_load(saved);
    CornuHistory *history = cornu_fit(model, .x = x_of(), .y = y_of(), .batch_size = 8,
                                      .epochs = 2, .verbose = CORNU_SILENT);
    assert_non_null(history);
    assert_non_null(other);
    expect_same(weights_of(model), weights_of(other), true);
    cornu_history_free(history);
    cornu_model_free(other);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* ---- Refusals ---- */

static void refusals_name_what_is_wrong(void **state)
{
    (void)state;
    need_http();
    expect_failure(cornu_dashboard(.port = 65536), CORNU_ERR_ARGUMENT, "65536");
    expect_failure(cornu_dashboard(.port = -1), CORNU_ERR_ARGUMENT, "expected 1 to 65535");
    expect_failure(cornu_dashboard(.address = ""), CORNU_ERR_ARGUMENT, ".address");
    expect_failure(cornu_dashboard(.address = "no.such.host.invalid"), CORNU_ERR_ARGUMENT,
                   "no.such.host.invalid");
    expect_failure(cornu_dashboard(.address = "192.0.2.1"), CORNU_ERR_ARGUMENT, "192.0.2.1");
    expect_failure(cornu_dashboard(.x = x_of()), CORNU_ERR_ARGUMENT, "dashboard: .x and .y");
    expect_failure(cornu_dashboard(.save = "/nowhere/at/all.keras"), CORNU_ERR_FILE, "/nowhere");

    CornuCallback *first = cornu_dashboard(.quiet = true);
    assert_non_null(first);
    const char   *url = cornu_dashboard_url(first);
    const int64_t port = atoll(strrchr(url, ':') + 1);
    expect_failure(cornu_dashboard(.port = port), CORNU_ERR_BUSY, "expected another .port");
    expect_error(cornu_dashboard_check(NULL, port), CORNU_ERR_BUSY, "Address already in use");
    first->free(first);
    expect_ok(cornu_dashboard_check(NULL, port));
}

static void tokens_differ(void **state)
{
    (void)state;
    need_http();
    CornuCallback *one = cornu_dashboard(.quiet = true), *two = cornu_dashboard(.quiet = true);
    assert_int_equal(strspn(client_token(cornu_dashboard_url(one)), "0123456789abcdef"), 48);
    assert_string_not_equal(client_token(cornu_dashboard_url(one)),
                            client_token(cornu_dashboard_url(two)));
    one->free(one);
    two->free(two);
}

/* A fit that fails says so to its readers. */
static CornuStatus break_off(CornuCallback *self, CornuModel *model, int64_t epoch,
                             const CornuLogs *logs)
{
    const CornuStatus status = send_commands(self, model, epoch, logs);
    return status ? status : cornu_error_set(CORNU_ERR_INTERRUPTED, "broken off");
}

static void a_broken_training_is_said(void **state)
{
    (void)state;
    need_http();
    FILE          *out = tmpfile();
    Script         script = { .epoch = 0 };
    CornuModel    *model = network(NULL);
    CornuCallback *dashboard = cornu_dashboard(.file = out);
    char           line[600] = "", url[600];
    script.url = cornu_dashboard_url(dashboard);
    snprintf(url, sizeof url, "Dashboard: %s\n", script.url);
    assert_null(train(model, dashboard, cornu_lambda_callback(.epoch_end = break_off,
                                                              .context = &script)));
    assert_int_equal(cornu_error_take(), CORNU_ERR_INTERRUPTED);
    assert_true(client_hears(script.listener, "\"state\":\"broken\"", text));
    close(script.listener);
    rewind(out);
    assert_non_null(fgets(line, sizeof line, out));
    assert_string_equal(line, url);
    fclose(out);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_changes_nothing),
        cmocka_unit_test(the_learning_rate_changes),
        cmocka_unit_test(it_stops_after_the_epoch),
        cmocka_unit_test(it_saves_the_model),
        cmocka_unit_test(a_failed_save_is_said),
        cmocka_unit_test(a_schedule_stays),
        cmocka_unit_test(a_pause_is_not_counted),
        cmocka_unit_test(ranks_obey_together),
        cmocka_unit_test(refusals_name_what_is_wrong),
        cmocka_unit_test(tokens_differ),
        cmocka_unit_test(a_broken_training_is_said),
    };
    if (!mkdtemp(folder)) return 1;
    snprintf(saved, sizeof saved, "%s/model.safetensors", folder);
    for (int i = 0; i < ROWS; i++) y[i] = i * 7 % CLASSES;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(37 * i % 101) / 101.0f;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(saved);
    rmdir(folder);
    return failed;
}
