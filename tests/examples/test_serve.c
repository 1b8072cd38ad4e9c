/*
 * cornu serve predicts what cornu_predict does, to the last bit, whatever else it computes at the
 * same time: many requests at once, of one and of several rows, in both formats, for models with
 * images, several inputs and outputs, sequences of any length, strings. Skipped without curl, and
 * without libmicrohttpd.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../skip.h"
#include <jansson.h>

#include "../../nn/cornu.h"
#include "../../models/models.h"
#include "../datasets/files.h"
#include "../expect.h"

enum { REQUESTS = 60, MOST_ROWS = 12, MOST = 4 /* inputs and outputs */ };

/* ---- The server ---- */

static pid_t server;
static char  url[128];

/* Of the model that was saved, as "m", with an option. False if the server was built without its
 * library. */
static bool start_server(const char *path, const char *option, const char *value)
{
    const char *build = getenv("BUILD");
    char        program[FILES_PATH], model[FILES_PATH + 2];
    int         ends[2];
    snprintf(program, sizeof program, "%s/cornu", build ? build : "build");
    snprintf(model, sizeof model, "m=%s", path);
    assert_int_equal(pipe(ends), 0);
    if (!(server = fork())) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execl(program, program, "serve", "--port", "0", "--model", model, "--threads", "1", option,
              value, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    assert_non_null(said);
    const bool listens = fscanf(said, "listening on %127s", url) == 1;
    fclose(said);
    return listens;
}

static void stop_server(void)
{
    int status = 1;
    if (server <= 0) return;
    kill(server, SIGTERM);
    assert_int_equal(waitpid(server, &status, 0), server);
    assert_int_equal(status, 0);
    server = 0;
}

/* ---- Requests: r has 1 + r % MOST_ROWS rows, from row r on ---- */

typedef struct {
    CornuModel *model;
    int         x_count, y_count;
    const char *names[MOST], *outputs[MOST];
    CornuArray  x[MOST], y[MOST];      /* rows of all requests; predictions of one */
    int         bad;                   /* a row that fails, from 1; 0: none */
} Case;

static int64_t rows_of(int r) { return 1 + r % MOST_ROWS; }

static CornuArray part(CornuArray all, int64_t first, int64_t rows)
{
    const int64_t size = cornu_shape_count(all.type.shape) / all.type.shape.extent[0];
    all.data = (char *)all.data + (size_t)(first * size) * cornu_dtype_size(all.type.dtype);
    all.type.shape.extent[0] = rows;
    return all;
}

static json_t *element(CornuArray x, int64_t i)
{
    if (x.type.dtype == CORNU_STRING) return json_string(((const char **)x.data)[i]);
    return x.type.dtype == CORNU_F32 ? json_real(cornu_array_get(x, i))
                                     : json_integer((json_int_t)cornu_array_get(x, i));
}

/* Nested lists of a tensor from element *at on, below an axis. */
static json_t *lists(CornuArray x, int axis, int64_t *at)
{
    if (axis == x.type.shape.rank) return element(x, (*at)++);
    json_t *list = json_array();
    for (int64_t i = 0; i < x.type.shape.extent[axis]; i++)
        json_array_append_new(list, lists(x, axis + 1, at));
    return list;
}

static json_t *columns_of(const Case *c, int r)
{
    json_t *inputs = json_object();
    for (int i = 0; i < c->x_count; i++) {
        int64_t at = 0;
        json_object_set_new(inputs, c->names[i], lists(part(c->x[i], r, rows_of(r)), 0, &at));
    }
    return json_pack("{s:o}", "inputs", inputs);
}

static json_t *instances_of(const Case *c, int r)
{
    json_t *instances = json_array();
    for (int64_t row = r; row < r + rows_of(r); row++) {
        json_t *object = json_object();
        for (int i = 0; i < c->x_count; i++) {
            int64_t at = 0;
            json_object_set_new(object, c->names[i], lists(part(c->x[i], row, 1), 1, &at));
        }
        if (c->x_count == 1 && r % 4 == 0) {        /* the value alone */
            json_t *value = json_incref(json_object_get(object, c->names[0]));
            json_decref(object);
            object = value;
        }
        json_array_append_new(instances, object);
    }
    return json_pack("{s:o}", "instances", instances);
}

static const char *file_of(const char *kind, int r)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, r);
    return files_path(folder, name);
}

/* All requests by one curl, 16 at once. */
static void send_all(const Case *c)
{
    char  command[FILES_PATH + 100];
    FILE *config = fopen(files_path(folder, "requests"), "w");
    assert_non_null(config);
    for (int r = 0; r < REQUESTS; r++) {
        json_t *body = r % 2 ? columns_of(c, r) : instances_of(c, r);
        assert_int_equal(json_dump_file(body, file_of("body", r), JSON_REAL_PRECISION(9)), 0);
        json_decref(body);
        fprintf(config, "%surl = \"%s/v1/models/m:predict\"\ndata-binary = \"@%s\"\n",
                r ? "next\n" : "", url, file_of("body", r));
        fprintf(config, "output = \"%s\"\n", file_of("answer", r));
    }
    fclose(config);
    snprintf(command, sizeof command, "curl -s -Z --parallel-max 16 -K '%s' 2>/dev/null",
             files_path(folder, "requests"));
    assert_int_equal(system(command), 0);
}

/* ---- Answers ---- */

static void expect_list(const json_t *list, CornuShape shape, int axis, const float **wanted)
{
    if (axis == shape.rank) {
        const float got = (float)json_number_value(list);
        assert_true(json_is_real(list));
        assert_memory_equal(&got, (*wanted)++, sizeof got);
        return;
    }
    assert_int_equal(json_array_size(list), shape.extent[axis]);
    for (size_t i = 0; i < json_array_size(list); i++)
        expect_list(json_array_get(list, i), shape, axis + 1, wanted);
}

static void expect_answer(Case *c, int r)
{
    const int64_t rows = rows_of(r);
    CornuArray    x[MOST], y[MOST];
    for (int i = 0; i < c->x_count; i++) x[i] = part(c->x[i], r, rows);
    for (int i = 0; i < c->y_count; i++) y[i] = part(c->y[i], 0, rows);
    json_t *answer = json_load_file(file_of("answer", r), 0, NULL);
    assert_non_null(answer);
    const json_t *error = json_object_get(answer, "error");
    if (c->bad > r && c->bad <= r + rows) {
        assert_non_null(strstr(json_string_value(error), "index 50"));
        json_decref(answer);
        return;
    }
    if (error) fail_msg("%s", json_string_value(error));
    CornuPredictConfig predict = { .model = c->model, .verbose = CORNU_SILENT };
    memcpy(predict.xs, x, sizeof *x * (size_t)c->x_count);
    memcpy(predict.tos, y, sizeof *y * (size_t)c->y_count);
    expect_ok(cornu_predict_from(&predict));

    const json_t *all = json_object_get(answer, r % 2 ? "outputs" : "predictions");
    for (int i = 0; i < c->y_count; i++) {
        const float *wanted = y[i].data;
        if (r % 2) {
            expect_list(c->y_count > 1 ? json_object_get(all, c->outputs[i]) : all,
                        y[i].type.shape, 0, &wanted);
            continue;
        }
        assert_int_equal(json_array_size(all), rows);
        for (size_t row = 0; row < json_array_size(all); row++) {
            const json_t *one = json_array_get(all, row);
            expect_list(c->y_count > 1 ? json_object_get(one, c->outputs[i]) : one,
                        y[i].type.shape, 1, &wanted);
        }
    }
    json_decref(answer);
}

static void serve(CornuModel *model, const char *option, const char *value)
{
    const char *path = files_path(folder, "m.safetensors");
    if (system("command -v curl >/dev/null")) SKIP_FOR(SKIP_CURL);
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_model_save(model, path));
    if (start_server(path, option, value)) return;
    server = 0;
    cornu_model_free(model);
    SKIP_FOR("libmicrohttpd: make deps-serve");
}

/* While its one thread waits for more, requests come that it then computes together. */
static void compare(Case *c)
{
    serve(c->model, "--batch-timeout", "20");
    send_all(c);
    for (int r = 0; r < REQUESTS; r++) expect_answer(c, r);
    stop_server();
    cornu_model_free(c->model);
}

static int end_test(void **state)
{
    if (server > 0) kill(server, SIGKILL);
    return files_end(state);
}

/* ---- Models ---- */

static float   floats[(REQUESTS + MOST_ROWS) * 784], predicted[MOST][MOST_ROWS * 1000];
static int32_t indices[(REQUESTS + MOST_ROWS) * 8];

static void fill(void)
{
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        floats[i] = 2.0F * (float)rand() / (float)RAND_MAX - 1.0F;
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) indices[i] = rand() % 50;
}

enum { ALL = REQUESTS + MOST_ROWS };

static void test_images(void **state)
{
    (void)state;
    Case c = { .model = cornu_mnist_convnet(), .x_count = 1, .y_count = 1 };
    fill();
    c.names[0] = "input_layer";
    c.x[0] = cornu_array(floats, CORNU_F32, ALL, 28, 28, 1);
    c.y[0] = cornu_array(predicted[0], CORNU_F32, MOST_ROWS, 10);
    compare(&c);
}

static void test_several(void **state)
{
    (void)state;
    CornuSymbol *numbers = cornu_input(.shape = { 6 }, .name = "numbers");
    CornuSymbol *words = cornu_input(.shape = { 8 }, .dtype = CORNU_I32, .name = "words");
    CornuSymbol *x = cornu_call(cornu_embedding(50, 5), words);
    x = cornu_call(cornu_flatten(), x);
    x = cornu_call(cornu_concatenate(), x, cornu_call(cornu_dense(7), numbers));
    CornuSymbol *price = cornu_call(cornu_dense(1, .name = "price"), x);
    CornuSymbol *kind = cornu_call(cornu_dense(4, .activation = CORNU_SOFTMAX, .name = "kind"), x);
    Case c = {
        .model = cornu_model(.inputs = { numbers, words }, .outputs = { price, kind }),
        .x_count = 2, .y_count = 2, .names = { "numbers", "words" }, .outputs = { "price", "kind" },
    };
    fill();
    c.x[0] = cornu_array(floats, CORNU_F32, ALL, 6);
    c.x[1] = cornu_array(indices, CORNU_I32, ALL, 8);
    c.y[0] = cornu_array(predicted[0], CORNU_F32, MOST_ROWS, 1);
    c.y[1] = cornu_array(predicted[1], CORNU_F32, MOST_ROWS, 4);
    compare(&c);
}

static void test_sequences(void **state)
{
    (void)state;
    CornuSymbol *in = cornu_input(.shape = { CORNU_NONE, 5 }, .name = "steps");
    CornuSymbol *x = cornu_call(cornu_lstm(9, .return_sequences = true), in);
    Case c = { .model = cornu_model(.inputs = { in }, .outputs = { x }), .x_count = 1,
               .y_count = 1, .names = { "steps" } };
    fill();
    c.x[0] = cornu_array(floats, CORNU_F32, ALL, 7, 5);
    c.y[0] = cornu_array(predicted[0], CORNU_F32, MOST_ROWS, 7, 9);
    compare(&c);
}

/* The output has fewer steps than the input. */
static void test_shorter(void **state)
{
    (void)state;
    CornuSymbol *in = cornu_input(.shape = { CORNU_NONE, 5 }, .name = "steps");
    CornuSymbol *x = cornu_call(cornu_conv1d(6, 3), in);
    Case c = { .model = cornu_model(.inputs = { in }, .outputs = { x }), .x_count = 1,
               .y_count = 1, .names = { "steps" } };
    fill();
    c.x[0] = cornu_array(floats, CORNU_F32, ALL, 7, 5);
    c.y[0] = cornu_array(predicted[0], CORNU_F32, MOST_ROWS, 5, 6);
    compare(&c);
}

static void test_strings(void **state)
{
    (void)state;
    static const char *const vocabulary[] = { "a", "b", "caf\u00e9" };
    static const char *const words[] = { "a", "b", "caf\u00e9", "other", "" };
    static const char       *strings[ALL];
    CornuSymbol *in = cornu_input(.shape = { 1 }, .dtype = CORNU_STRING, .name = "word");
    CornuSymbol *x = cornu_call(cornu_string_lookup(.vocabulary = { vocabulary, 3 }), in);
    x = cornu_call(cornu_flatten(), cornu_call(cornu_embedding(5, 6), x));
    Case c = { .model = cornu_model(.inputs = { in }, .outputs = { x }), .x_count = 1,
               .y_count = 1, .names = { "word" } };
    for (int i = 0; i < ALL; i++) strings[i] = words[i % 5];
    c.x[0] = cornu_array(strings, CORNU_STRING, ALL, 1);
    c.y[0] = cornu_array(predicted[0], CORNU_F32, MOST_ROWS, 6);
    compare(&c);
}

/* A request that fails does so alone, also if it shared a batch. */
static void test_bad_among_good(void **state)
{
    (void)state;
    CornuSymbol *in = cornu_input(.shape = { 8 }, .dtype = CORNU_I32, .name = "words");
    CornuSymbol *x = cornu_call(cornu_flatten(), cornu_call(cornu_embedding(50, 3), in));
    Case c = { .model = cornu_model(.inputs = { in }, .outputs = { x }), .x_count = 1,
               .y_count = 1, .names = { "words" }, .bad = 31 };
    fill();
    indices[30 * 8 + 5] = 50;
    c.x[0] = cornu_array(indices, CORNU_I32, ALL, 8);
    c.y[0] = cornu_array(predicted[0], CORNU_F32, MOST_ROWS, 24);
    compare(&c);
}

/* The answer to a body. */
static const char *ask(const char *body)
{
    static char answer[2000];
    char        command[FILES_PATH + 2500];
    snprintf(command, sizeof command, "curl -s -d '%s' '%s/v1/models/m:predict'", body, url);
    FILE *said = popen(command, "r");
    assert_non_null(said);
    const size_t length = fread(answer, 1, sizeof answer - 1, said);
    assert_int_equal(pclose(said), 0);
    answer[length] = '\0';
    return answer;
}

static void expect(const char *body, const char *part)
{
    const char *answer = ask(body);
    if (!strstr(answer, part)) fail_msg("%s: %s", body, answer);
}

static void test_inputs_of_other_rows(void **state)
{
    (void)state;
    CornuSymbol *a = cornu_input(.shape = { 1 }, .name = "a");
    CornuSymbol *b = cornu_input(.shape = { 1 }, .name = "b");
    CornuSymbol *c = cornu_input(.shape = { 1 }, .name = "c");
    CornuModel  *model = cornu_model(.inputs = { a, b, c },
                                     .outputs = { cornu_call(cornu_add(), a, b, c) });
    serve(model, "--queue", "9");
    expect("{\"inputs\": {\"a\": [1, 2], \"b\": [10, 20], \"c\": [100, 200]}}",
           "\"outputs\": [111.0, 222.0]");
    expect("{\"inputs\": {\"a\": [1], \"b\": [10], \"c\": [100, 200]}}",
           "Input \\\"c\\\" has inconsistent batch size: 2 expecting: 1");
    expect("{\"inputs\": {\"a\": [1, 2], \"b\": [10], \"c\": [100, 200]}}",
           "Input \\\"b\\\" has inconsistent batch size: 1 expecting: 2");
    expect("{\"inputs\": {\"a\": [1], \"b\": [10], \"b\": [20], \"c\": [1]}}",
           "the name b comes twice");
    expect("{\"instances\": [{\"a\": 1, \"b\": 10, \"\\u0063\": 100}]}", "[111.0");
    expect("{\"instances\": [{\"a\": 1, \"b\": 10, \"a\": 100}]}",
           "element: 0 key: a of 'instances' list. Error: INVALID_ARGUMENT: the name "
           "comes twice");
    stop_server();
    cornu_model_free(model);
}

/* Numbers that an input's type has, and the first that it lacks on either side. */
static void test_numbers_beyond_types(void **state)
{
    (void)state;
    static const struct { CornuDtype dtype; const char *least, *most, *below, *above; } cases[] = {
        { CORNU_U8, "0", "255", "-1", "256" },
        { CORNU_I32, "-2147483648", "2147483647", "-2147483649", "2147483648" },
        { CORNU_F32, "-3.4028234e38", "16777215", "-3.5e38", "16777216" },
    };
    char body[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool   whole = cases[i].dtype == CORNU_U8 || cases[i].dtype == CORNU_I32;
        CornuSymbol *x = cornu_input(.shape = { 2 }, .dtype = cases[i].dtype, .name = "x");
        CornuModel  *model = cornu_model(.inputs = { x },
                                         .outputs = { cornu_call(cornu_rescaling(0.5), x) });
        serve(model, "--queue", "9");
        snprintf(body, sizeof body, "{\"instances\": [[%s, %s]]}", cases[i].least, cases[i].most);
        expect(body, "\"predictions\": [[");
        for (int k = 0; k < 2; k++) {
            const char *number = k ? cases[i].above : cases[i].below;
            snprintf(body, sizeof body, "{\"instances\": [[0, %s]]}", number);
            expect(body, whole ? "Type: Number is not of expected type: "
                               : "without loss of precision.");
            expect(body, number);
        }
        stop_server();
        cornu_model_free(model);
    }
}

/* JSON has no pixels: numbers are floats where the model's input is. */
static void test_whole_numbers_are_not_scaled(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { 1 }, .scale = 1.0 / 255.0, .name = "x");
    CornuModel  *model = cornu_model(.inputs = { x }, .outputs = { cornu_call(cornu_rescaling(2),
                                                                              x) });
    serve(model, "--queue", "9");
    expect("{\"instances\": [[255], [255.0], [1]]}", "[[510.0], [510.0], [2.0]");
    stop_server();
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_images, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_several, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_sequences, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_shorter, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_strings, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_bad_among_good, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_inputs_of_other_rows, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_numbers_beyond_types, files_begin, end_test),
        cmocka_unit_test_setup_teardown(test_whole_numbers_are_not_scaled, files_begin, end_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
