/* The data of a report: what its page is drawn from, read with a JSON parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include <cornu/cornu.h>

#include "../../expect.h"

enum { ROWS = 60, CLASSES = 3 };

static char     path[] = "/tmp/cornu-report-XXXXXX";
static uint8_t  images[ROWS * 6 * 6], labels[ROWS];
static const char *const names[] = { "a", "<b>", "</script><!--" };

static CornuModel *network(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 6, 6, 1 }, .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_conv2d(4, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.25),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { cornu_metric("accuracy") }));
    return model;
}

static CornuArray x_of(void) { return cornu_array(images, CORNU_U8, ROWS, 6, 6, 1); }
static CornuArray y_of(void) { return cornu_array(labels, CORNU_U8, ROWS); }

static CornuHistory *train(CornuModel *model, int64_t epochs, CornuCallback *report,
                           CornuCallback *other)
{
    return cornu_fit(model, .x = x_of(), .y = y_of(), .batch_size = 20, .epochs = epochs,
                     .validation_data = { .x = x_of(), .y = y_of() }, .verbose = CORNU_SILENT,
                     .callbacks = { report, other });
}

static CornuCallback *report(void)
{
    return cornu_report(path, .title = "</script><b>title", .command = "a command", .x = x_of(),
                        .y = y_of(), .names = names, .classes = CLASSES);
}

/* The page's text, to be freed. */
static char *read_page(void)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char  *text = calloc(1, 3 << 20);
    size_t size = fread(text, 1, (3 << 20) - 1, file);
    fclose(file);
    assert_true(size > 0 && size < (size_t)2 << 20);
    return text;
}

static json_t *read_data(void)
{
    static const char begin[] = "id=\"data\">", end[] = "</script>";
    json_error_t      error;
    char             *page = read_page(), *from = strstr(page, begin);
    assert_non_null(from);
    from += sizeof begin - 1;
    char *to = strstr(from, end);
    assert_non_null(to);
    assert_non_null(strstr(to, "</html>"));
    json_t *data = json_loadb(from, (size_t)(to - from), 0, &error);
    if (!data) fail_msg("%s", error.text);
    free(page);
    return data;
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number %s", key);
    return json_number_value(value);
}

/* ---- Tests ---- */

static void epochs_are_those_of_the_history(void **state)
{
    (void)state;
    CornuModel   *model = network();
    CornuHistory *history = train(model, 3, report(), NULL);
    assert_non_null(history);
    json_t *data = read_data(), *epochs = json_object_get(data, "epochs");
    assert_int_equal(json_array_size(epochs), 3);
    assert_true(json_is_true(json_object_get(data, "ended")));
    for (int i = 0; i < 3; i++) {
        const json_t *epoch = json_array_get(epochs, (size_t)i), *logs = json_object_get(epoch,
                                                                                         "logs");
        assert_int_equal(json_object_size(logs), 5);
        for (int key = 0; key < cornu_history_key_count(history); key++) {
            const char *name = cornu_history_key(history, key);
            assert_true(number_at(logs, name) ==
                        (double)(float)cornu_history_get(history, name, i) ||
                        fabs(number_at(logs, name) - cornu_history_get(history, name, i)) < 1e-8);
        }
        assert_true(number_at(logs, "learning_rate") == 0.25);
        assert_true(number_at(epoch, "epoch") == i + 1);
        assert_true(number_at(epoch, "seconds") > 0.0);
        assert_true(number_at(epoch, "samples_per_second") > 0.0);
    }
    json_decref(data);
    cornu_history_free(history);
    cornu_model_free(model);
}

static void cells_are_the_confusion_matrix(void **state)
{
    (void)state;
    CornuModel   *model = network();
    CornuHistory *history = train(model, 2, report(), NULL);
    assert_non_null(history);
    float    predictions[ROWS * CLASSES];
    int64_t  counts[CLASSES * CLASSES];
    expect_ok(cornu_predict(model, .x = x_of(), .verbose = CORNU_SILENT,
                            .to = cornu_array(predictions, CORNU_F32, ROWS, CLASSES)));
    expect_ok(cornu_confusion(cornu_array(predictions, CORNU_F32, ROWS, CLASSES), y_of(),
                              cornu_array(counts, CORNU_I64, CLASSES, CLASSES)));
    json_t *data = read_data(), *classes = json_object_get(data, "classes");
    for (int i = 0; i < CLASSES; i++) {
        assert_string_equal(json_string_value(json_array_get(json_object_get(classes, "names"),
                                                             (size_t)i)), names[i]);
        for (int j = 0; j < CLASSES; j++)
            assert_int_equal(json_integer_value(json_array_get(json_array_get(
                json_object_get(classes, "counts"), (size_t)i), (size_t)j)),
                             counts[i * CLASSES + j]);
    }
    size_t        i;
    json_t       *sample;
    const json_t *samples = json_object_get(classes, "samples");
    assert_true(json_array_size(samples) > 0);
    json_array_foreach(samples, i, sample) {
        const int index = (int)number_at(sample, "index");
        const int predicted = (int)cornu_predicted_class(predictions + CLASSES * index, CLASSES);
        assert_int_equal((int)number_at(sample, "label"), labels[index]);
        assert_int_equal((int)number_at(sample, "predicted"), predicted);
        assert_true(fabs(number_at(sample, "confidence") -
                         (double)predictions[CLASSES * index + predicted]) < 1e-7);
        assert_int_equal(strncmp(json_string_value(json_object_get(sample, "picture")),
                                 "data:image/png;base64,", 22), 0);
    }
    json_decref(data);
    cornu_history_free(history);
    cornu_model_free(model);
}

/* Of each cell the most surprising sample comes first. */
static void worst_samples_come_first(void **state)
{
    (void)state;
    CornuModel   *model = network();
    CornuHistory *history = train(model, 1, report(), NULL);
    assert_non_null(history);
    json_t *data = read_data();
    const json_t *samples = json_object_get(json_object_get(data, "classes"), "samples");
    int    compared = 0;
    for (size_t a = 0; a < json_array_size(samples); a++)
        for (size_t b = a + 1; b < json_array_size(samples); b++) {
            const json_t *x = json_array_get(samples, a), *y = json_array_get(samples, b);
            const double  label = number_at(x, "label"), predicted = number_at(x, "predicted");
            if (label != number_at(y, "label") || predicted != number_at(y, "predicted")) continue;
            const double more = number_at(x, "confidence") - number_at(y, "confidence");
            assert_true(label == predicted ? more <= 0.0 : more >= 0.0);
            compared++;
        }
    assert_true(compared > 0);
    json_decref(data);
    cornu_history_free(history);
    cornu_model_free(model);
}

static CornuStatus break_off(CornuCallback *self, CornuModel *model, int64_t epoch,
                             const CornuLogs *logs)
{
    (void)self, (void)model, (void)logs;
    return epoch < 1 ? CORNU_OK : cornu_error_set(CORNU_ERR_INTERRUPTED, "broken off");
}

static void the_last_epoch_that_ended_is_whole(void **state)
{
    (void)state;
    CornuModel *model = network();
    assert_null(train(model, 3, report(), cornu_lambda_callback(.epoch_end = break_off)));
    assert_int_equal(cornu_error_take(), CORNU_ERR_INTERRUPTED);
    json_t *data = read_data();
    assert_int_equal(json_array_size(json_object_get(data, "epochs")), 1);
    assert_true(json_is_false(json_object_get(data, "ended")));
    assert_true(json_is_null(json_object_get(data, "classes")));
    json_decref(data);
    cornu_model_free(model);
}

/* Kills this process in the third epoch, before its page is written. */
static CornuStatus kill_self(CornuCallback *self, CornuModel *model, int64_t epoch,
                             const CornuLogs *logs)
{
    (void)self, (void)model, (void)logs;
    if (epoch == 2) raise(SIGKILL);
    return CORNU_OK;
}

static int train_until_killed(const char *page)
{
    snprintf(path, sizeof path, "%s", page);
    cornu_history_free(train(network(), 5, report(),
                             cornu_lambda_callback(.epoch_end = kill_self)));
    return 1;
}

static void a_killed_training_leaves_its_last_whole_page(void **state)
{
    (void)state;
    int         status;
    const pid_t child = fork();
    if (child == 0) {   /* anew, as the threads of this process are not in its copy */
        execl("/proc/self/exe", "test_report", "killed", path, (char *)NULL);
        _exit(2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    json_t *data = read_data();
    assert_int_equal(json_array_size(json_object_get(data, "epochs")), 2);
    assert_int_equal((int)number_at(data, "planned"), 5);
    assert_true(json_is_false(json_object_get(data, "ended")));
    json_decref(data);
}

/* ---- Many classes ---- */

enum { MANY = 150 };

static void set_identity(CornuModel *model)
{
    static float kernel[MANY * MANY];
    memset(kernel, 0, sizeof kernel);
    for (int i = 0; i < MANY; i++) kernel[i * MANY + i] = 20.0f;
    expect_ok(cornu_weight_write(cornu_model_weight(model, 0),
                                 cornu_array(kernel, CORNU_F32, MANY, MANY)));
}

/* A model that predicts the class whose input is 1. */
static CornuModel *copier(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { MANY });
    cornu_model_add(model, cornu_dense(MANY, .no_bias = true, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 1e-9),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    set_identity(model);
    return model;
}

static float    columns[3 * MANY * MANY];
static int32_t  classes_of[3 * MANY];

static json_t *report_of_many(void)
{
    CornuModel      *model = copier();
    const CornuArray x = cornu_array(columns, CORNU_F32, 3 * MANY, MANY);
    const CornuArray y = cornu_array(classes_of, CORNU_I32, 3 * MANY);
    CornuHistory *history = cornu_fit(model, .x = x, .y = y, .verbose = CORNU_SILENT,
                                      .callbacks = { cornu_report(path, .x = x, .y = y) });
    assert_non_null(history);
    cornu_history_free(history);
    cornu_model_free(model);
    json_t *data = read_data(), *classes = json_incref(json_object_get(data, "classes"));
    json_decref(data);
    return classes;
}

/* Samples of 150 classes, three of each; class 7 is taken for 100 three times, 149 for 3 twice. */
static void the_most_confused_of_many_classes_are_shown(void **state)
{
    (void)state;
    memset(columns, 0, sizeof columns);
    for (int i = 0; i < 3 * MANY; i++) {
        const int label = i % MANY;
        const int taken = label == 7 ? 100 : label == MANY - 1 && i >= MANY ? 3 : label;
        classes_of[i] = label;
        columns[i * MANY + taken] = 1.0f;
    }
    json_t       *classes = report_of_many();
    const json_t *names = json_object_get(classes, "names");
    const json_t *counts = json_object_get(classes, "counts");
    assert_int_equal((int)number_at(classes, "of"), MANY);
    assert_int_equal(json_array_size(names), 20);
    assert_int_equal(json_array_size(counts), 20);
    int place[MANY];
    for (int i = 0; i < MANY; i++) place[i] = -1;
    for (int i = 0; i < 20; i++)
        place[atoi(json_string_value(json_array_get(names, (size_t)i)))] = i;
    assert_true(place[7] >= 0 && place[100] >= 0 && place[3] >= 0 && place[149] >= 0);
    const json_t *of_7 = json_array_get(counts, (size_t)place[7]);
    const json_t *of_149 = json_array_get(counts, (size_t)place[149]);
    assert_int_equal(json_integer_value(json_array_get(of_7, (size_t)place[100])), 3);
    assert_int_equal(json_integer_value(json_array_get(of_149, (size_t)place[3])), 2);
    assert_int_equal(json_integer_value(json_array_get(of_149, (size_t)place[149])), 1);
    assert_float_equal(number_at(classes, "accuracy"), (3.0 * MANY - 5.0) / (3.0 * MANY), 1e-8);
    const json_t *score = json_array_get(json_object_get(classes, "scores"), (size_t)place[3]);
    assert_float_equal(number_at(score, "precision"), 3.0 / 5.0, 1e-8);
    /* the mean recall of all 150: 148 of 1, one of 0, one of 1/3 */
    assert_float_equal(number_at(json_object_get(classes, "macro"), "recall"),
                       (148.0 + 1.0 / 3.0) / MANY, 1e-8);
    json_decref(classes);
}

/* A training that ends with predictions that are no numbers ends well, and the page says why there
 * is no matrix. */
static void predictions_that_are_no_numbers_leave_no_matrix(void **state)
{
    (void)state;
    CornuModel *model = copier();
    static float bad[2 * MANY];
    const int32_t labels_of_bad[2] = { 0, 1 };
    for (int i = 0; i < 2 * MANY; i++) bad[i] = i < MANY ? 0.5f : NAN;
    const CornuArray x = cornu_array(bad, CORNU_F32, 1, MANY);
    const CornuArray y = cornu_array((void *)labels_of_bad, CORNU_I32, 1);
    CornuHistory    *history = cornu_fit(
        model, .x = x, .y = y, .verbose = CORNU_SILENT, .callbacks = {
            cornu_report(path, .x = cornu_array(bad, CORNU_F32, 2, MANY),
                         .y = cornu_array((void *)labels_of_bad, CORNU_I32, 2)) });
    assert_non_null(history);
    json_t *data = read_data(), *classes = json_object_get(data, "classes");
    assert_string_equal(json_string_value(json_object_get(classes, "why")),
                        "the prediction of sample 1 is not a number");
    json_decref(data);
    cornu_history_free(history);
    cornu_model_free(model);
}

/* ---- The model ---- */

/* Two convolutions that are added, of an image of three channels: the graph has a diamond, and the
 * filters are in colour, byte 25 of a PNG. */
static void the_graph_and_colours_are_those_of_the_model(void **state)
{
    (void)state;
    static uint8_t  pictures[4 * 5 * 5 * 3];
    const uint8_t   of[4] = { 0, 1, 0, 1 };
    CornuSymbol    *in = cornu_input(.shape = { 5, 5, 3 });
    CornuSymbol    *a = cornu_call(cornu_conv2d(2, 3, .name = "a"), in);
    CornuSymbol    *b = cornu_call(cornu_conv2d(2, 3, .name = "b"), in);
    CornuSymbol    *sum = cornu_call(cornu_add(.name = "sum"), a, b);
    CornuSymbol    *flat = cornu_call(cornu_flatten(.name = "flat"), sum);
    CornuModel     *model = cornu_model(.inputs = { in }, .outputs = {
        cornu_call(cornu_dense(2, .activation = CORNU_SOFTMAX, .name = "out"), flat) });
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    cornu_history_free(cornu_fit(model, .x = cornu_array(pictures, CORNU_U8, 4, 5, 5, 3),
                                 .y = cornu_array((void *)of, CORNU_U8, 4),
                                 .verbose = CORNU_SILENT, .callbacks = { cornu_report(path) }));
    json_t       *data = read_data();
    const json_t *described = json_object_get(data, "model");
    const json_t *layers = json_object_get(described, "layers");
    const json_t *edge, *edges = json_object_get(described, "edges");
    char          text[256] = "";
    size_t        i;
    json_array_foreach(edges, i, edge)
        for (size_t end = 0; end < 2; end++) {
            const size_t layer = (size_t)json_integer_value(json_array_get(edge, end));
            strcat(strcat(text, json_string_value(json_object_get(json_array_get(layers, layer),
                                                                  "name"))), end ? " " : ">");
        }
    assert_non_null(strstr(text, ">a "));
    assert_non_null(strstr(text, ">b "));
    assert_non_null(strstr(text, "a>sum b>sum sum>flat flat>out "));
    assert_int_equal(json_array_size(edges), 6);
    const json_t *filters = json_object_get(json_object_get(data, "filters"), "pictures");
    assert_int_equal(json_array_size(filters), 2);
    /* Base 64 of bytes 24 and 25, depth 8 and colour type 2, is "CAI": 22 characters of the URL's
     * head, then 4 for each 3 bytes. */
    assert_int_equal(strncmp(json_string_value(json_array_get(filters, 0)) + 22 + 32, "CAI", 3), 0);
    json_decref(data);
    cornu_model_free(model);
}

/* ---- Cost ---- */

static const json_t *cost_of(const json_t *data, const char *name)
{
    size_t  i;
    json_t *row;
    json_array_foreach(json_object_get(data, "cost"), i, row)
        if (!strcmp(json_string_value(json_object_get(row, "name")), name)) return row;
    return NULL;
}

static void costs_are_those_of_the_device(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("tpu:v3-8", .shards = 2);
    CornuModel  *model = cornu_sequential(.input_shape = { 6, 6, 1 });
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(), .device = device,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    cornu_history_free(train(model, 2, cornu_report(path, .price_per_hour = 7.0), NULL));
    json_t       *data = read_data();
    const json_t *step = cost_of(data, "a step on the TPU");
    const json_t *steps = cost_of(data, "training steps on the TPU");
    const double  seconds = number_at(cost_of(data, "the run"), "value");
    assert_string_equal(json_string_value(json_object_get(data, "kind")), "emulated");
    assert_string_equal(json_string_value(json_object_get(step, "kind")), "modelled");
    assert_float_equal(number_at(steps, "value"), 6.0 * number_at(step, "value"), 1e-9);
    assert_true(number_at(cost_of(data, "chips"), "value") == 1.0);
    assert_float_equal(number_at(cost_of(data, "energy of the chips"), "value"),
                       220.0 * number_at(steps, "value"), 1e-6);
    assert_true(seconds > 0.0);
    assert_float_equal(number_at(cost_of(data, "price of the run"), "value"),
                       7.0 * seconds / 3600.0, 1e-9);
    json_decref(data);
    cornu_model_free(model);
    cornu_device_close(device);

    model = network();
    cornu_history_free(train(model, 1, report(), NULL));
    data = read_data();
    assert_string_equal(json_string_value(json_object_get(data, "kind")), "measured");
    assert_null(cost_of(data, "a step on the TPU"));
    assert_null(cost_of(data, "price of the run"));
    json_decref(data);
    cornu_model_free(model);
}

static void texts_cannot_leave_the_data(void **state)
{
    (void)state;
    CornuModel *model = network();
    cornu_history_free(train(model, 1, report(), NULL));
    char *page = read_page();
    assert_null(strstr(page, "</script><b>"));
    assert_null(strstr(page, "</script><!--"));
    free(page);
    json_t *data = read_data();
    assert_string_equal(json_string_value(json_object_get(data, "title")), "</script><b>title");
    json_decref(data);
    cornu_model_free(model);
}

static void refusals_name_what_is_wrong(void **state)
{
    (void)state;
    assert_null(cornu_report(NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "filename is required");
    assert_null(cornu_report(path, .x = x_of()));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "got only .x");
    assert_null(cornu_report("/nowhere/at/all.html"));
    expect_error(cornu_error_take(), CORNU_ERR_FILE, "/nowhere/at/all.html");
    assert_null(cornu_report(path, .price_per_hour = -1.0));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "expected 0 or more");

    CornuModel *model = network();
    labels[3] = CLASSES;
    assert_null(train(model, 1, report(), NULL));
    expect_error(cornu_error_take(), CORNU_ERR_VALUE, "label 3 is 3, expected 0 to 2");
    labels[3] = 0;
    assert_null(train(model, 1, cornu_report(path, .x = x_of(), .y = cornu_array(labels, CORNU_U8,
                                                                                 ROWS - 1)), NULL));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "59 labels");
    cornu_model_free(model);

    model = cornu_sequential(.input_shape = { 6, 6, 1 });
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(), .loss = CORNU_MEAN_SQUARED_ERROR));
    assert_null(train(model, 1, report(), NULL));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "(B, classes)");
    cornu_model_free(model);
}

int main(int count, char **arguments)
{
    for (int i = 0; i < ROWS; i++) labels[i] = (uint8_t)(i * 7 % CLASSES);
    for (int i = 0; i < ROWS * 36; i++) images[i] = (uint8_t)(37 * i % 251);
    if (count == 3 && !strcmp(arguments[1], "killed")) return train_until_killed(arguments[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_are_those_of_the_history),
        cmocka_unit_test(cells_are_the_confusion_matrix),
        cmocka_unit_test(worst_samples_come_first),
        cmocka_unit_test(the_last_epoch_that_ended_is_whole),
        cmocka_unit_test(a_killed_training_leaves_its_last_whole_page),
        cmocka_unit_test(the_most_confused_of_many_classes_are_shown),
        cmocka_unit_test(predictions_that_are_no_numbers_leave_no_matrix),
        cmocka_unit_test(the_graph_and_colours_are_those_of_the_model),
        cmocka_unit_test(costs_are_those_of_the_device),
        cmocka_unit_test(texts_cannot_leave_the_data),
        cmocka_unit_test(refusals_name_what_is_wrong),
    };
    const int file = mkstemp(path);
    if (file < 0) return 1;
    close(file);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
