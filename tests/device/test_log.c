/* What the library logs, and where: nowhere unless asked, never in a step that runs again, from any
 * thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../nn/cornu.h"
#include "../allocations.h"
#include "../datasets/files.h"
#include "../nn/golden.h"
#include "../nn/training/trainings.h"
#include "../skip.h"

/* ---- Listening ---- */

/* The messages, one per line, "info: …". */
typedef struct {
    char text[1 << 16];
    int  lines;
} Heard;

static Heard heard;

static void hear(void *context, CornuLogLevel level, const char *message)
{
    Heard       *to = context;
    const size_t used = strlen(to->text);
    snprintf(to->text + used, sizeof to->text - used, "%s: %s\n", cornu_log_level_name(level),
             message);
    to->lines++;
}

static void listen(CornuLogLevel level)
{
    memset(&heard, 0, sizeof heard);
    cornu_set_log(level, hear, &heard);
}

static void expect_heard(const char *part)
{
    if (!strstr(heard.text, part)) fail_msg("\"%s\" is not in\n%s", part, heard.text);
}

/* No listener, and no variable in the environment. */
static int silence(void **state)
{
    (void)state;
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    return unsetenv("CORNU_LOG");
}

static int begin(void **state) { return silence(state) || files_begin(state); }
static int end(void **state) { return silence(state) || files_end(state); }

/* ---- The environment ---- */

/* Runs a graph on a new device. */
static void use_device(void)
{
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    if (!device) fail_msg("%s", cornu_error_message());
    CornuGraph *graph = cornu_graph_create(device);
    float       value = 0;
    CornuArray  to = cornu_array_from(&value, cornu_scalar(CORNU_F32));
    CornuTensor *two = cornu_op_sqrt(cornu_op_constant(graph, to.type, 4));
    expect_ok(cornu_run(graph, &two, 1, &to));
    assert_float_equal(value, 2, 1e-6);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* What use_device prints on stderr with this CORNU_LOG; NULL: without. */
static const char *printed(const char *level)
{
    static char text[4000];
    const char *path = files_path(folder, "stderr");
    if (level) setenv("CORNU_LOG", level, 1);
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    assert_non_null(freopen(path, "wb", stderr));
    use_device();
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    unsetenv("CORNU_LOG");
    text[files_read(path, text, sizeof text - 1)] = '\0';
    return text;
}

static void it_is_silent_unless_asked(void **state)
{
    (void)state;
    assert_string_equal(printed(NULL), "");
    assert_string_equal(printed(""), "");
    assert_string_equal(printed("error"), "");
    assert_string_equal(printed("warning"), "");
    const char *info = printed("info");
    assert_memory_equal(info, "cornu: info: opened cpu: ", 25);
    assert_non_null(strstr(info, " | native, 1 shard\ncornu: info: cpu: compiled a program of "));
    assert_null(strstr(info, "debug"));
    assert_non_null(strstr(printed("debug"), "cornu: debug: cpu: ran a program of "));
    /* The listener gets everything. */
    listen(CORNU_LOG_WARNING);
    assert_string_equal(printed("info"), "");
    assert_string_equal(heard.text, "");
}

static void other_words_are_refused(void **state)
{
    (void)state;
    setenv("CORNU_LOG", "loud", 1);
    assert_null(cornu_device_open("cpu"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT,
                 "CORNU_LOG is 'loud', expected error, warning, info or debug");
    assert_null(cornu_log_level_name(CORNU_LOG_NOTHING));
    assert_null(cornu_log_level_name((CornuLogLevel)5));
    assert_string_equal(cornu_log_level_name(CORNU_LOG_DEBUG), "debug");
}

/* ---- What is said ---- */

static CornuStatus stop_fit(CornuCallback *base, CornuModel *model, int64_t batch,
                            const CornuLogs *logs)
{
    (void)base, (void)model, (void)logs;
    return batch == 1 ? cornu_error_set(CORNU_ERR_INTERRUPTED, "killed") : CORNU_OK;
}

/* A training that is killed in its second step, and one that resumes it. */
static void train(CornuCallback *killer)
{
    CornuDevice  *device = cornu_device_open("tpu", .threads = 2, .shards = 2);
    CornuModel   *model = training_model(TRAINING_SHUFFLED, device);
    const char   *kept = files_path(folder, "kept");
    CornuHistory *history = training_fit(TRAINING_SHUFFLED, model,
                                         cornu_backup_and_restore(kept, 1), killer);
    assert_true(killer ? !history : !!history);
    cornu_error_take();
    if (history) expect_ok(cornu_model_save(model, files_path(folder, "model.safetensors")));
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void a_training_tells_what_it_does(void **state)
{
    (void)state;
    CornuCallback killer = { .train_batch_end = stop_fit };
    listen(CORNU_LOG_INFO);
    train(&killer);
    expect_heard("info: opened tpu: emulated v2-8 on ");
    expect_heard(" | emulated, 2 shards\n");
    expect_heard("info: fit: 4 steps with batches of 8 rows\n");
    expect_heard("info: fit's validation: 2 steps with batches of 8 rows\n");
    expect_heard("info: shuffled: a new step that trains with batches of 8 rows\n");
    expect_heard("info: tpu: compiled a program of ");
    expect_heard("kept/backup-000000-00000001.safetensors: ");
    expect_heard("info: fit: killed\n");
    assert_null(strstr(heard.text, "warning: "));
    listen(CORNU_LOG_INFO);
    train(NULL);
    expect_heard("info: read ");
    expect_heard("info: Resuming from ");
    expect_heard("/backup-000000-00000001.safetensors: epoch 1, 1 of 4 steps are done.\n");
    expect_heard("info: shuffled: a new step that tests with batches of 8 rows\n");
    expect_heard("/model.safetensors: ");
    assert_null(strstr(heard.text, "error: "));
}

static void troubles_are_told(void **state)
{
    (void)state;
    listen(CORNU_LOG_WARNING);
    assert_null(cornu_device_open("gpu"));
    cornu_error_take();
    expect_heard("error: a device cannot be opened: device \"gpu\" is unknown");
    /* A damaged backup is skipped. */
    CornuCallback killer = { .train_batch_end = stop_fit };
    train(&killer);
    files_write(files_path(folder, "kept/backup-000000-00000002.safetensors"), "?", 1);
    listen(CORNU_LOG_WARNING);
    train(NULL);
    expect_heard("warning: ");
    expect_heard("; trying the previous backup\n");
    assert_int_equal(heard.lines, 1);
}

static void libhdf5_is_told_of(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2));
    listen(CORNU_LOG_INFO);
    const CornuStatus status = cornu_model_save(model, files_path(folder, "model.keras"));
    cornu_model_free(model);
    if (status == CORNU_ERR_UNSUPPORTED) SKIP_FOR(SKIP_HDF5);
    expect_ok(status);
    expect_heard("info: loaded libhdf5");
    expect_heard("/model.keras: ");
}

/* ---- Steps ---- */

static void steps_that_run_again_say_nothing(void **state)
{
    (void)state;
    static float   x[8 * 6];
    static int32_t y[8];
    CornuDevice   *device = cornu_device_open("cpu", .threads = 2);
    CornuModel    *model = training_model(TRAINING_SHUFFLED, device);
    const CornuArray a = cornu_array(x, CORNU_F32, 8, 6), b = cornu_array(y, CORNU_I32, 8);
    for (CornuLogLevel level = CORNU_LOG_NOTHING; level <= CORNU_LOG_DEBUG; level++) {
        expect_ok(cornu_train_on_batch(model, a, b));
        listen(level);
        const int64_t before = allocations();
        for (int i = 0; i < 3; i++) expect_ok(cornu_train_on_batch(model, a, b));
        if (allocations_counted()) assert_int_equal(allocations(), before);
        assert_int_equal(heard.lines, level == CORNU_LOG_DEBUG ? 3 : 0);
    }
    expect_heard("debug: cpu: ran a program of ");
    cornu_model_free(model);
    cornu_device_close(device);
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 60 };

/* One of two listeners in turn. As calls come one at a time, a plain counter suffices. */
typedef struct {
    int         calls;
    atomic_bool deaf;
} Listener;

static atomic_int heard_deaf;

static void count(void *context, CornuLogLevel level, const char *message)
{
    Listener *self = context;
    (void)level, (void)message;
    self->calls++;
    if (self->deaf) atomic_fetch_add(&heard_deaf, 1);
    /* Messages from within a listener are dropped, without deadlock. */
    CornuDevice *device = cornu_device_open("reference");
    cornu_device_close(device);
}

static void *open_devices(void *context)
{
    (void)context;
    for (int i = 0; i < ROUNDS; i++) cornu_device_close(cornu_device_open("reference"));
    return NULL;
}

static void all_threads_are_heard(void **state)
{
    (void)state;
    static Listener listeners[2];
    pthread_t       threads[THREADS];
    cornu_set_log(CORNU_LOG_DEBUG, count, &listeners[0]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_devices, NULL), 0);
    for (int i = 1; i <= ROUNDS; i++) {
        listeners[i % 2].deaf = false;
        cornu_set_log(CORNU_LOG_DEBUG, count, &listeners[i % 2]);
        listeners[1 - i % 2].deaf = true;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    assert_int_equal(listeners[0].calls + listeners[1].calls, THREADS * ROUNDS);
    assert_int_equal(heard_deaf, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(libhdf5_is_told_of, begin, end),   /* loaded once */
        cmocka_unit_test_setup_teardown(it_is_silent_unless_asked, begin, end),
        cmocka_unit_test_setup_teardown(other_words_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_training_tells_what_it_does, begin, end),
        cmocka_unit_test_setup_teardown(troubles_are_told, begin, end),
        cmocka_unit_test_setup_teardown(steps_that_run_again_say_nothing, begin, end),
        cmocka_unit_test_setup_teardown(all_threads_are_heard, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
