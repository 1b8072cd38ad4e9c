/* Traces of one step by fit, read with a JSON parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include <cornu/cornu.h>
#include <cornu/device/tpu/model.h>

#include "../../device/processes/ranks.h"
#include "../../expect.h"

enum { ROWS = 80, BATCH = 32, STEPS = 3 };   /* the last batch is half full */

static char path[] = "/tmp/cornu-trace-XXXXXX";

static CornuModel *network(CornuDevice *device, int64_t steps_per_execution)
{
    CornuModel *model = cornu_sequential(.input_shape = { 12, 12, 1 });
    cornu_model_add(model, cornu_conv2d(8, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(), .device = device,
                            .steps_per_execution = steps_per_execution,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    return model;
}

static uint8_t images[ROWS * 12 * 12], labels[ROWS];

static CornuStatus train(CornuModel *model, int64_t rows, int64_t epochs, CornuCallback *other)
{
    for (int i = 0; i < ROWS; i++) labels[i] = (uint8_t)(i % 10);
    for (int i = 0; i < ROWS * 12 * 12; i++) images[i] = (uint8_t)(37 * i % 251);
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(images, CORNU_U8, rows, 12, 12, 1),
        .y = cornu_array(labels, CORNU_U8, rows), .batch_size = BATCH, .epochs = epochs,
        .verbose = CORNU_SILENT, .callbacks = { cornu_trace(path), other });
    cornu_history_free(history);
    return history ? CORNU_OK : cornu_error_take();
}

/* ---- Reading ---- */

static json_t *read_events(void)
{
    json_error_t error;
    json_t      *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!file) fail_msg("%s, line %d", error.text, error.line);
    json_t *events = json_incref(json_object_get(file, "traceEvents"));
    assert_true(json_is_array(events));
    json_decref(file);
    return events;
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static int64_t whole_of(const json_t *event, const char *key)
{
    assert_true(json_is_integer(json_object_get(event, key)));
    return json_integer_value(json_object_get(event, key));
}

static double begin_of(const json_t *event)
{
    return json_real_value(json_object_get(event, "ts"));
}
static double length_of(const json_t *event)
{
    return json_real_value(json_object_get(event, "dur"));
}
static double end_of(const json_t *event) { return begin_of(event) + length_of(event); }

/* Two events of one track are disjoint or nested, to within a rounding of their sum. */
static void expect_nested(const json_t *events)
{
    const double rounding = 1e-6;
    for (size_t i = 0; i < json_array_size(events); i++)
        for (size_t k = 0; k < i; k++) {
            const json_t *a = json_array_get(events, k), *b = json_array_get(events, i);
            if (strcmp(text_of(a, "ph"), "X") != 0 || strcmp(text_of(b, "ph"), "X") != 0 ||
                whole_of(a, "pid") != whole_of(b, "pid") ||
                whole_of(a, "tid") != whole_of(b, "tid"))
                continue;
            const bool apart = end_of(a) <= begin_of(b) + rounding ||
                               end_of(b) <= begin_of(a) + rounding;
            const bool inside =
                (begin_of(a) <= begin_of(b) && end_of(b) <= end_of(a) + rounding) ||
                (begin_of(b) <= begin_of(a) && end_of(a) <= end_of(b) + rounding);
            if (!apart && !inside)
                fail_msg("%s and %s overlap", text_of(a, "name"), text_of(b, "name"));
        }
}

/* The number of events of a category on a track (-1: all), and the sum of their durations. */
static int count(const json_t *events, int pid, int tid, const char *category, double *sum)
{
    int found = 0;
    *sum = 0.0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "cat"), category) != 0 || whole_of(event, "pid") != pid ||
            (tid >= 0 && whole_of(event, "tid") != tid))
            continue;
        assert_true(length_of(event) >= 0.0);
        *sum += length_of(event);
        found++;
    }
    return found;
}

static const json_t *named(const json_t *events, const char *category, const char *name)
{
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (!strcmp(text_of(event, "cat"), category) && !strcmp(text_of(event, "name"), name))
            return event;
    }
    return NULL;
}

/* The name of a process or thread. */
static const char *title(const json_t *events, const char *what, int pid, int tid)
{
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (!strcmp(text_of(event, "ph"), "M") && !strcmp(text_of(event, "name"), what) &&
            whole_of(event, "pid") == pid && whole_of(event, "tid") == tid)
            return text_of(json_object_get(event, "args"), "name");
    }
    return "";
}

static void expect_step(const json_t *events, int64_t epoch, int64_t step)
{
    const json_t *args = json_object_get(named(events, "host", "training step"), "args");
    assert_int_equal(whole_of(args, "epoch"), epoch);
    assert_int_equal(whole_of(args, "step"), step);
}

/* ---- What is in it ---- */

static void check_device(const char *name, int shards, int threads, bool modelled)
{
    CornuDevice *device = cornu_device_open(name, .shards = shards, .threads = threads);
    CornuModel  *model = network(device, 1);
    expect_ok(train(model, ROWS, 2, NULL));
    json_t *events = read_events();
    expect_nested(events);
    expect_step(events, 2, STEPS - 1);

    /* Every step of the executable, once for each shard that runs it, inside the run. */
    CornuExecutable *executable = cornu_model_train_step(
        model, cornu_type(CORNU_U8, BATCH, 12, 12, 1), cornu_type(CORNU_U8, BATCH));
    int                        step_count, expected = 0, segments = 0;
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &step_count);
    for (int i = 0; i < step_count; i++) {
        expected += steps[i].per_shard ? shards : 1;
        if (steps[i].per_shard && (i == 0 || !steps[i - 1].per_shard)) segments += shards;
        assert_non_null(named(events, "step", steps[i].name));
    }
    double sum, parts, run = length_of(named(events, "host", "run"));
    assert_int_equal(count(events, 1, -1, "step", &sum), expected);
    assert_true(sum > 0.0 && sum <= run * threads);
    assert_true(count(events, 1, 0, "step", &sum) > 0 && sum <= run);
    const bool dealt = shards >= threads;
    assert_true(dealt ? count(events, 1, -1, "segment", &sum) == segments
                      : count(events, 1, 0, "segment", &sum) == segments);
    if (threads == 1) assert_int_equal(count(events, 1, -1, "part", &parts), 0);

    /* The phases fill the step. */
    const json_t *whole = named(events, "host", "training step");
    for (const char *const *phase = (const char *const[]){ "wait for the batch", "infeed", "run",
                                                           "callbacks", NULL }; *phase; phase++)
        assert_non_null(named(events, "host", *phase));
    count(events, 1, 0, "host", &sum);
    assert_true(fabs(sum - 2.0 * length_of(whole)) < 1e-3);
    const char *measured = title(events, "process_name", 1, 0);
    assert_int_equal(strncmp(measured, "measured: ", 10), 0);
    assert_non_null(strstr(measured, " | steps timed by wall clock"));
    const json_t *args = json_object_get(named(events, "step", steps[0].name), "args");
    assert_string_equal(text_of(args, "clock"), "wall clock");
    assert_string_equal(title(events, "thread_name", 1, 0), "thread 0, the program's own");

    /* Modelled events are in their own process, which says so. */
    CornuTpuModel *tpu = modelled ? cornu_tpu_model(.executable = executable, .passes = 6) : NULL;
    const struct { const char *unit; double seconds; } units[] = {
        { "MXU", tpu ? tpu->mxu_s : 0 }, { "vector unit", tpu ? tpu->vector_s : 0 },
        { "HBM", tpu ? tpu->hbm_s : 0 }, { "links", tpu ? tpu->links_s : 0 },
        { "infeed", tpu ? tpu->infeed_s : 0 }, { "host", tpu ? tpu->dispatch_s : 0 },
    };
    for (int i = 0; i < 6; i++) {
        const int found = count(events, 2, i, "modelled", &sum);
        assert_true(fabs(sum - 1e6 * units[i].seconds) <= 1e-3 * found);
        assert_string_equal(title(events, "thread_name", 2, i), modelled ? units[i].unit : "");
    }
    assert_string_equal(title(events, "process_name", 2, 0),
                        modelled ? "modelled: v3-8, one replica" : "");
    cornu_tpu_model_free(tpu);
    json_decref(events);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void test_what_is_in_a_trace(void **state)
{
    (void)state;
    check_device("cpu", 1, 1, false);
    check_device("cpu", 1, 3, false);
    check_device("tpu:v3-8", 8, 2, true);    /* a thread takes a shard */
    check_device("tpu:v3-8", 2, 3, true);    /* all threads work on each shard */
    check_device("reference", 1, 1, false);
}

/* ---- Which step ---- */

static CornuStatus stop(CornuCallback *self, CornuModel *model, int64_t index,
                        const CornuLogs *logs)
{
    (void)self, (void)logs;
    if (index == 0) cornu_model_stop_training(model);
    return CORNU_OK;
}

static void test_which_step_is_traced(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, epochs, steps_per_execution;
        bool    stops;
        int64_t epoch, step;
    } table[] = {
        { ROWS, 3, 1, false, 3, STEPS - 1 },
        { 2 * BATCH, 1, 1, false, 1, 2 },       /* of two steps not the first */
        { BATCH, 2, 1, false, 2, 1 },           /* of one step that */
        { ROWS, 3, 1, true, 1, STEPS - 1 },     /* in the last epoch that ran */
        { ROWS, 2, 2, false, 2, STEPS - 1 },    /* the end of an execution */
        { ROWS, 2, 3, false, 2, STEPS - 1 },    /* in the middle of one */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CornuDevice  *device = cornu_device_open("cpu", .threads = 1);
        CornuModel   *model = network(device, table[i].steps_per_execution);
        CornuCallback stopper = { .epoch_end = stop };
        expect_ok(train(model, table[i].rows, table[i].epochs, table[i].stops ? &stopper : NULL));
        json_t *events = read_events();
        expect_step(events, table[i].epoch, table[i].step);
        expect_nested(events);
        double run;
        assert_true(count(events, 1, 0, "step", &run) > 0);
        assert_true(run <= length_of(named(events, "host", "run")));
        json_decref(events);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* A training that ends before a second step: a message, and later steps are not measured. */
static void test_no_step_to_trace(void **state)
{
    (void)state;
    CornuDevice  *device = cornu_device_open("cpu", .threads = 1);
    CornuModel   *model = network(device, 1);
    CornuCallback stopper = { .train_batch_end = stop };
    assert_int_equal(train(model, ROWS, 1, &stopper), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "ended before the second"));
    expect_ok(train(model, ROWS, 1, NULL));
    cornu_model_free(model);
    cornu_device_close(device);
}

static void test_files_that_cannot_be_written(void **state)
{
    (void)state;
    assert_null(cornu_trace("no/such/folder/t.json"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), "no/such/folder/t.json"));
    assert_null(cornu_trace(NULL));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_file_check("/"), CORNU_ERR_FILE);
}

/* ---- A custom loop ---- */

static void test_a_custom_loop(void **state)
{
    (void)state;
    CornuDevice   *device = cornu_device_open("cpu");
    CornuGraph    *graph = cornu_graph_create(device);
    CornuVariable *v = cornu_variable_create(device, cornu_type(CORNU_F32, 16), "v");
    CornuTensor   *w = cornu_read(graph, v);
    expect_ok(cornu_assign(v, cornu_op_exp(w)));
    expect_ok(cornu_graph_prepare(graph, NULL, 0));
    CornuTrace *trace = cornu_trace_create();
    assert_int_equal(cornu_trace_write(trace, path), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "ran nothing"));
    cornu_trace_phase(trace, "think");
    expect_ok(cornu_trace_run(trace, cornu_graph_executable(graph)));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    assert_int_equal(cornu_trace_write(trace, path), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "has not ended"));
    cornu_trace_phase(trace, NULL);
    expect_ok(cornu_run(graph, NULL, 0, NULL));    /* no longer measured */
    expect_ok(cornu_trace_write(trace, path));
    json_t *events = read_events();
    expect_nested(events);
    assert_non_null(named(events, "host", "think"));
    assert_true(end_of(named(events, "step", "exp")) <= end_of(named(events, "host", "run")));
    assert_int_equal(json_object_size(json_object_get(named(events, "host", "training step"),
                                                      "args")), 0);
    json_decref(events);
    cornu_trace_free(trace);
    cornu_graph_free(graph);
    cornu_variable_free(v);
    cornu_device_close(device);
}

/* ---- Several processes ---- */

static double sent(const json_t *exchange)
{
    const json_t *args = json_object_get(exchange, "args");
    assert_int_equal(whole_of(args, "bytes sent"), whole_of(args, "bytes received"));
    return (double)whole_of(args, "bytes sent");
}

/* The title of the process and of the track after that of the only thread. */
static void expect_exchanges(const json_t *events, const char *title_part)
{
    const char *measured = title(events, "process_name", 1, 0);
    assert_int_equal(strncmp(measured, title_part, strlen(title_part)), 0);
    assert_string_equal(title(events, "thread_name", 1, 1), "exchanges");
    expect_nested(events);
    for (size_t i = 0; i < json_array_size(events); i++)
        if (!strcmp(text_of(json_array_get(events, i), "ph"), "X"))
            assert_true(begin_of(json_array_get(events, i)) >= 0.0);
}

static CornuStatus train_rank(CornuProcesses *processes)
{
    CornuDevice *device = cornu_device_open("tpu", .shards = 4, .threads = 1,
                                            .processes = processes);
    CornuModel  *model = network(device, 1);
    CornuStatus  status = train(model, ROWS, 2, NULL);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

/* Losses are summed, gradients in slices, and the weights are gathered. */
static void test_exchanges_of_a_training(void **state)
{
    (void)state;
    ranks_succeed(2, "tcp", train_rank);
    json_t *events = read_events();
    double  sum;
    expect_exchanges(events, "rank 0 of 2, measured: tpu: ");
    expect_step(events, 2, STEPS - 1);
    assert_true(count(events, 1, 1, "exchange", &sum) >= 3 && sum > 0.0);
    assert_non_null(named(events, "exchange", "all_reduce in loss"));
    const json_t *scatter = named(events, "exchange", "reduce_scatter in adam");
    const json_t *gather = named(events, "exchange", "all_gather in adam");
    assert_non_null(scatter);
    assert_non_null(gather);
    /* 80 + 2010 weights, of which half are another process', in slices of 4. */
    assert_true(sent(scatter) >= 1045 * 4 && sent(scatter) <= 1100 * 4);
    assert_true(sent(gather) == sent(scatter));
    assert_true(begin_of(gather) >= end_of(scatter) || end_of(gather) <= begin_of(scatter));
    json_decref(events);
}

/* Each shard's x is summed, in two exchanges, while something else is computed. The other rank is
 * late, so that the first of them is under way for long. */
static CornuStatus sum_beside_products(CornuProcesses *processes)
{
    enum { SIDE = 512, PRODUCTS = 4, MANY = 1 << 20 };
    CornuDevice *device = cornu_device_open("cpu", .shards = 2, .threads = 1,
                                            .processes = processes);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *sum = cornu_op_all_reduce(
        cornu_graph_shard_input(graph, cornu_type(CORNU_F32, MANY)));
    CornuTensor *y = cornu_graph_input(graph, cornu_type(CORNU_F32, SIDE, SIDE));
    for (int i = 0; i < PRODUCTS; i++) y = cornu_op_matmul(y, y);
    CornuTensor *total = cornu_op_add(cornu_op_sum(y), cornu_op_sum(sum));
    float       number;
    CornuArray  out = cornu_array_from(&number, cornu_scalar(CORNU_F32));
    CornuTrace *trace = cornu_trace_create();
    CornuStatus status = cornu_graph_prepare(graph, &total, 1);
    for (int i = 0; i < 2 && !status; i++) {
        if (i == 1) status = cornu_trace_run(trace, cornu_graph_executable(graph));
        if (i == 1 && cornu_process_rank(processes) == 1)
            nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        if (!status) status = cornu_run(graph, &total, 1, &out);
    }
    cornu_trace_phase(trace, NULL);
    if (!status) status = cornu_trace_write(trace, path);
    cornu_trace_free(trace);
    cornu_graph_free(graph);
    cornu_device_close(device);
    return status ? status : cornu_error_take();
}

static double overlap(const json_t *a, const json_t *b)
{
    return fmin(end_of(a), end_of(b)) - fmax(begin_of(a), begin_of(b));
}

static void test_exchanges_beside_computing(void **state)
{
    (void)state;
    ranks_succeed(2, "tcp", sum_beside_products);
    json_t       *events = read_events();
    const json_t *exchange = named(events, "exchange", "all_reduce");
    const json_t *parts = named(events, "exchange", "all_reduce, parts");
    double        beside = 0.0;
    expect_exchanges(events, "rank 0 of 2, measured: cpu: ");
    assert_non_null(exchange);
    assert_non_null(parts);
    assert_true(sent(exchange) == 2 << 20);
    assert_true(sent(parts) == 2 << 20);
    assert_true(end_of(exchange) <= begin_of(parts));
    const json_t *args = json_object_get(exchange, "args");
    assert_true(whole_of(args, "begun by step") < whole_of(args, "ended by step"));
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "cat"), "step") || strcmp(text_of(event, "name"), "matmul"))
            continue;
        beside += fmax(overlap(exchange, event), 0.0);
        assert_true(overlap(parts, event) <= 0.0);   /* which the rest waits for */
    }
    assert_true(beside > 0.0);
    json_decref(events);
}

static int make_file(void **state)
{
    (void)state;
    const int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_in_a_trace),
        cmocka_unit_test(test_which_step_is_traced),
        cmocka_unit_test(test_no_step_to_trace),
        cmocka_unit_test(test_files_that_cannot_be_written),
        cmocka_unit_test(test_a_custom_loop),
        cmocka_unit_test(test_exchanges_of_a_training),
        cmocka_unit_test(test_exchanges_beside_computing),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
