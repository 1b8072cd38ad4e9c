/* The data of a report: what its page is drawn from, read with a JSON parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

    CornuModel *model = cornu_sequential(.input_shape = { 6, 6, 1 });
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(), .loss = CORNU_MEAN_SQUARED_ERROR));
    assert_null(train(model, 1, report(), NULL));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "(B, classes)");
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_are_those_of_the_history),
        cmocka_unit_test(cells_are_the_confusion_matrix),
        cmocka_unit_test(worst_samples_come_first),
        cmocka_unit_test(the_last_epoch_that_ended_is_whole),
        cmocka_unit_test(texts_cannot_leave_the_data),
        cmocka_unit_test(refusals_name_what_is_wrong),
    };
    const int file = mkstemp(path);
    if (file < 0) return 1;
    close(file);
    for (int i = 0; i < ROWS; i++) labels[i] = (uint8_t)(i * 7 % CLASSES);
    for (int i = 0; i < ROWS * 36; i++) images[i] = (uint8_t)(37 * i % 251);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
