/* Confusion counts and the report on each class, compared with scikit-learn (tests/golden/report)
 * and with the metric accuracy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

enum { MAX_SAMPLES = 500, MAX_CLASSES = 10 };

/* ---- Against scikit-learn ---- */

/* One case of reports.json. */
typedef struct {
    const char *name, *text, *names[MAX_CLASSES];
    int         digits;
    int64_t     samples, classes;
    float       predictions[MAX_SAMPLES * MAX_CLASSES];
    int64_t     labels[MAX_SAMPLES], confusion[MAX_CLASSES * MAX_CLASSES];
} Case;

static json_t *part(const json_t *json, const char *key)
{
    json_t *found = json_object_get(json, key);
    assert_non_null(found);
    return found;
}

static void read_case(Case *to, const char *name, const json_t *json)
{
    json_t *labels = part(json, "labels"), *names = part(json, "names");
    to->name = name;
    to->text = json_string_value(part(json, "text"));
    to->digits = (int)json_integer_value(part(json, "digits"));
    to->samples = (int64_t)json_array_size(labels);
    to->classes = (int64_t)json_array_size(names);
    assert_true(to->samples <= MAX_SAMPLES && to->classes <= MAX_CLASSES);
    for (int64_t i = 0; i < to->samples; i++) {
        json_t *row = json_array_get(part(json, "predictions"), (size_t)i);
        to->labels[i] = json_integer_value(json_array_get(labels, (size_t)i));
        for (int64_t c = 0; c < to->classes; c++)
            to->predictions[i * to->classes + c] =
                (float)json_number_value(json_array_get(row, (size_t)c));
    }
    for (int64_t c = 0; c < to->classes; c++) {
        json_t *row = json_array_get(part(json, "confusion"), (size_t)c);
        to->names[c] = json_string_value(json_array_get(names, (size_t)c));
        for (int64_t k = 0; k < to->classes; k++)
            to->confusion[c * to->classes + k] =
                json_integer_value(json_array_get(row, (size_t)k));
    }
}

/* The report as a string for the caller to free. */
static char *report_text(CornuArray counts, const char *const *names, int digits)
{
    char  *text = NULL;
    size_t size;
    FILE  *file = open_memstream(&text, &size);
    assert_non_null(file);
    expect_ok(cornu_report_print(counts, names, digits, file));
    fclose(file);
    return text;
}

static void expect_case(const Case *want)
{
    int64_t          counts[MAX_CLASSES * MAX_CLASSES];
    const int64_t    classes = want->classes, samples = want->samples;
    const CornuArray confusion = cornu_array(counts, CORNU_I64, classes, classes);
    memset(counts, 0x55, sizeof counts);
    expect_ok(cornu_confusion(
        cornu_array((void *)(uintptr_t)want->predictions, CORNU_F32, samples, classes),
        cornu_array((void *)(uintptr_t)want->labels, CORNU_I64, samples, 1), confusion));
    assert_memory_equal(counts, want->confusion, (size_t)(classes * classes) * sizeof *counts);
    char        *text = report_text(confusion, want->names, want->digits);
    const size_t length = strlen(want->text);
    if (strncmp(text, want->text, length) != 0)
        fail_msg("%s:\n%sinstead of\n%s", want->name, text, want->text);
    /* After scikit-learn's report ours lists the numbers that are 0 by definition. */
    const bool never = !strcmp(want->name, "never_predicted");
    const bool absent = !strcmp(want->name, "absent");
    assert_string_equal(text + length,
        never  ? "\ncounted as 0: the precision of 2 classes never predicted\n" :
        absent ? "\ncounted as 0: the precision of 1 class never predicted, the recall of 2 "
                 "classes without samples\n" : "");
    free(text);
}

static void reports_are_those_of_scikit_learn(void **state)
{
    (void)state;
    static Case one;
    json_t     *cases = json_load_file("tests/golden/report/reports.json", 0, NULL), *json;
    const char *name;
    assert_non_null(cases);
    assert_int_equal(json_object_size(cases), 6);
    json_object_foreach(cases, name, json) {
        read_case(&one, name, json);
        expect_case(&one);
    }
    json_decref(cases);
}

/* ---- By hand ---- */

static void near(double got, double want) { assert_true(fabs(got - want) < 1e-15); }

/* 3 of 4 of class 0 are right, 1 of 2 of class 1. */
static void scores_follow_the_formulas(void **state)
{
    (void)state;
    int64_t          counts[] = { 3, 1, 1, 1 };
    CornuClassScores each[2], macro, weighted;
    double           accuracy;
    expect_ok(cornu_class_scores(cornu_array(counts, CORNU_I64, 2, 2), each, &macro, &weighted,
                                 &accuracy));
    near(each[0].precision, 3.0 / 4.0);
    near(each[0].recall, 3.0 / 4.0);
    near(each[1].precision, 1.0 / 2.0);
    near(each[1].recall, 1.0 / 2.0);
    near(macro.f1, (3.0 / 4.0 + 1.0 / 2.0) / 2.0);
    near(weighted.f1, (4.0 * 3.0 / 4.0 + 2.0 * 1.0 / 2.0) / 6.0);
    near(accuracy, 4.0 / 6.0);
    assert_int_equal(each[0].support, 4);
    assert_int_equal(macro.support, 6);
    assert_int_equal(weighted.support, 6);
    /* Rows are the true classes. */
    counts[1] = 0;
    expect_ok(cornu_class_scores(cornu_array(counts, CORNU_I64, 2, 2), each, &macro, &weighted,
                                 &accuracy));
    near(each[0].precision, 3.0 / 4.0);
    near(each[0].recall, 1.0);
}

static void no_samples_are_zeros(void **state)
{
    (void)state;
    int64_t          counts[4] = { 0 };
    CornuClassScores each[2], macro, weighted;
    double           accuracy = 1.0;
    const CornuArray none = cornu_array(counts, CORNU_I64, 2, 2);
    expect_ok(cornu_class_scores(none, each, &macro, &weighted, &accuracy));
    assert_true(each[1].f1 == 0.0 && macro.recall == 0.0 && weighted.precision == 0.0);
    assert_true(accuracy == 0.0);
    char *text = report_text(none, NULL, 2);
    assert_non_null(strstr(text, "           1       0.00      0.00      0.00         0\n"));
    assert_null(strstr(text, "nan"));
    free(text);
}

static void bad_samples_are_refused(void **state)
{
    (void)state;
    float      p[] = { 0.1F, 0.9F, 0.8F, 0.2F };
    int32_t    y[] = { 1, 2 };
    int64_t    counts[9];
    CornuArray two = cornu_array(p, CORNU_F32, 2, 2), labels = cornu_array(y, CORNU_I32, 2);
    CornuArray square = cornu_array(counts, CORNU_I64, 2, 2);
    expect_error(cornu_confusion(two, labels, square), CORNU_ERR_VALUE,
                 "label 1 is 2, expected 0 to 1");
    y[1] = -1;
    expect_error(cornu_confusion(two, labels, square), CORNU_ERR_VALUE, "label 1 is -1");
    y[1] = 0;
    p[2] = NAN;
    expect_error(cornu_confusion(two, labels, square), CORNU_ERR_VALUE,
                 "prediction 1 is not a number");
    p[2] = 0.8F;
    expect_error(cornu_confusion(two, cornu_array(y, CORNU_I32, 1), square), CORNU_ERR_SHAPE,
                 "expected (N, 2) and N of them");
    expect_error(cornu_confusion(two, labels, cornu_array(counts, CORNU_I64, 3, 3)),
                 CORNU_ERR_SHAPE, "expected (N, 3)");
    expect_error(cornu_confusion(two, labels, cornu_array(counts, CORNU_I64, 2, 3)),
                 CORNU_ERR_SHAPE, "expected (classes, classes)");
    expect_error(cornu_confusion(two, labels, cornu_array(counts, CORNU_F64, 2, 2)),
                 CORNU_ERR_DTYPE, "expected i64");
    expect_error(cornu_confusion(two, cornu_array(p, CORNU_F32, 2), square), CORNU_ERR_DTYPE,
                 "one of u8, i32, i64");
    expect_error(cornu_confusion(two, (CornuArray){ .data = NULL }, square), CORNU_ERR_ARGUMENT,
                 "the labels are required");
    expect_ok(cornu_confusion(two, labels, square));
    counts[1] = -1;
    expect_error(cornu_report_print(square, NULL, 2, stdout), CORNU_ERR_VALUE,
                 "-1 samples of class 0 as class 1");
    expect_error(cornu_report_print(square, NULL, 10, stdout), CORNU_ERR_ARGUMENT, "10 digits");
}

/* ---- Of a model: evaluate keeps the predictions of its one pass ---- */

/* Batches of 20: on eight shards neither the full nor the last batch divides evenly. */
enum { ROWS = 23 };

static CornuModel *random_model(const char *device_name, CornuDevice **device, int64_t executions)
{
    *device = cornu_device_open(device_name, .threads = 2);
    CornuModel *model = cornu_sequential(.name = "random", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(4, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = *device, .metrics = { CORNU_ACCURACY },
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .steps_per_execution = executions));
    return model;
}

static void evaluations_keep_their_predictions(void **state)
{
    const char *name = *state;
    float       x[ROWS * 3], kept[ROWS * 4], predicted[ROWS * 4];
    uint8_t     y[ROWS];
    for (int i = 0; i < ROWS; i++) y[i] = (uint8_t)(i % 4);
    for (int i = 0; i < 3 * ROWS; i++) x[i] = (float)(i * 7 % 19) / 9.0F - 1.0F;
    const CornuArray xs = cornu_array(x, CORNU_F32, ROWS, 3), ys = cornu_array(y, CORNU_U8, ROWS);
    const CornuArray to = cornu_array(kept, CORNU_F32, ROWS, 4);
    for (int executions = 1; executions <= 2; executions++) {
        CornuDevice *device;
        CornuModel  *model = random_model(name, &device, executions);
        double       with[2], without[2];
        memset(kept, 0, sizeof kept);
        expect_ok(cornu_evaluate(model, .x = xs, .y = ys, .batch_size = 20, .results = with,
                                 .to = to, .verbose = CORNU_SILENT));
        expect_ok(cornu_evaluate(model, .x = xs, .y = ys, .batch_size = 20, .results = without,
                                 .verbose = CORNU_SILENT));
        expect_ok(cornu_predict(model, .x = xs, .batch_size = 20, .verbose = CORNU_SILENT,
                                .to = cornu_array(predicted, CORNU_F32, ROWS, 4)));
        assert_memory_equal(kept, predicted, sizeof kept);
        assert_memory_equal(with, without, sizeof with);

        int64_t          counts[16];
        CornuClassScores each[4], macro, weighted;
        double           accuracy;
        const CornuArray confusion = cornu_array(counts, CORNU_I64, 4, 4);
        expect_ok(cornu_confusion(to, ys, confusion));
        expect_ok(cornu_class_scores(confusion, each, &macro, &weighted, &accuracy));
        assert_true(accuracy == with[1]);

        expect_error(cornu_evaluate(model, .x = xs, .y = ys, .batch_size = 20,
                                    .to = cornu_array(kept, CORNU_F32, ROWS - 1, 4),
                                    .verbose = CORNU_SILENT),
                     CORNU_ERR_SHAPE, "evaluate: .to has 22 rows, the data 23");
        expect_error(cornu_evaluate(model, .x = xs, .y = ys, .batch_size = 20, .steps = 1, .to = to,
                                    .verbose = CORNU_SILENT),
                     CORNU_ERR_SHAPE, "evaluate: .to has 23 rows, the data 20");
        expect_error(cornu_evaluate(model, .x = xs, .y = ys, .batch_size = 20,
                                    .to = cornu_array(kept, CORNU_F32, ROWS, 3),
                                    .verbose = CORNU_SILENT),
                     CORNU_ERR_SHAPE, "evaluate: .to is f32 (23, 3), expected one for");
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* Class names come from folders and files. */
static void control_characters_are_shown(void **state)
{
    static const char *const names[] = { "a\033[31m", "b\xc2\x9b" "2J" };
    static int64_t           counts[4] = { 1, 0, 0, 1 };
    (void)state;
    char *text = report_text(cornu_array(counts, CORNU_I64, 2, 2), names, 2);
    assert_non_null(strstr(text, " a\\x1b[31m "));
    assert_non_null(strstr(text, " b\\xc2\\x9b2J "));
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, 0x9b));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_those_of_scikit_learn),
        cmocka_unit_test(scores_follow_the_formulas),
        cmocka_unit_test(no_samples_are_zeros),
        cmocka_unit_test(bad_samples_are_refused),
        cmocka_unit_test(control_characters_are_shown),
        { "evaluations_keep_their_predictions (cpu)", evaluations_keep_their_predictions, NULL,
          NULL, "cpu" },
        { "evaluations_keep_their_predictions (tpu)", evaluations_keep_their_predictions, NULL,
          NULL, "tpu" },
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
