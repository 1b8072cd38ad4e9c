/* The arguments of compile as Keras writes them (tests/golden/compiled): models train to the same
 * logs, and are written so that they load again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/saving/architecture/architecture_internal.h"
#include "../../../nn/saving/keras_internal.h"
#include "../golden.h"

enum { STEPS = 3, MOST = 40, OUTPUTS = 10 };

typedef struct {
    Golden  golden;
    json_t *models, *cases;
} Compiled;

static Compiled compiled_open(void)
{
    Compiled file = { .golden = golden_open("tests/golden/compiled/compiled.safetensors") };
    file.models = json_object_get(file.golden.cases, "models");
    file.cases = json_object_get(file.golden.cases, "cases");
    assert_int_equal(json_object_size(file.cases), 38);
    return file;
}

static CornuArray array_at(Compiled *file, const char *model, const char *letter, int i)
{
    char name[16];
    snprintf(name, sizeof name, "%s%d", letter, i);
    return golden_array(&file->golden, model, name);
}

static CornuModel *model_of(Compiled *file, const char *name)
{
    CornuModel *model = cornu__model_from_config(json_object_get(file->models, name), NULL);
    if (!model) fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        expect_ok(cornu_weight_write(cornu_model_weight(model, i), array_at(file, name, "w", i)));
    return model;
}

static int index_of(const json_t *names, const char *name)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        if (!strcmp(json_string_value(json_array_get(names, i)), name)) return (int)i;
    fail_msg("Keras has no log %s", name);
    return -1;
}

/* Three steps with the logs of Keras, which sorts them by name. */
static void train(Compiled *file, const char *name, const json_t *about, CornuModel *model)
{
    const char       *of = json_string_value(json_object_get(about, "model"));
    const json_t     *names = json_object_get(about, "names");
    const CornuArray  logs = golden_array(&file->golden, name, "logs");
    const CornuArray  x = golden_array(&file->golden, NULL, "x");
    const int         count = cornu_model_metric_count(model);
    CornuArray        y[OUTPUTS];
    assert_int_equal(count, json_array_size(names));
    for (int i = 0; i < cornu_model_output_count(model); i++) y[i] = array_at(file, of, "y", i);
    for (int step = 0; step < STEPS; step++) {
        double values[MOST];
        float  sorted[MOST];
        char   what[80];
        expect_ok(cornu_model_reset_metrics(model));
        expect_ok(cornu_train_on_batch_many(model, &x, y, values));
        for (int i = 0; i < count; i++)
            sorted[index_of(names, cornu_model_metric_name(model, i))] = (float)values[i];
        snprintf(what, sizeof what, "%s, step %d", name, step);
        const CornuArray row = cornu_array((float *)logs.data + step * count, CORNU_F32, count);
        for (int i = 0; i < count; i++)
            expect_near(what, &sorted[i], cornu_array((float *)row.data + i, CORNU_F32, 1), 2e-5);
    }
}

static CornuModel *compile_as(Compiled *file, const char *name, const json_t *about,
                              const json_t *config)
{
    CornuModel *model = model_of(file, json_string_value(json_object_get(about, "model")));
    if (cornu__compile_from_config(model, config, NULL))
        fail_msg("%s: %s", name, cornu_error_message());
    return model;
}

static bool is_own(const char *name) { return !strncmp(name, "own_", 4); }

/* Also compiled by what was written of the first compilation. */
static void test_trains_as_keras(void **state)
{
    Compiled    file = compiled_open();
    const char *name;
    json_t     *about;
    (void)state;
    json_object_foreach(file.cases, name, about) {
        if (is_own(name)) continue;
        const json_t *config = json_object_get(about, "compile_config");
        CornuModel   *first = compile_as(&file, name, about, config);
        json_t       *written = cornu__compile_config(first);
        CornuModel   *second = compile_as(&file, name, about, written);
        assert_int_equal(cornu_model_optimizer_variable_count(first),
                         json_integer_value(json_object_get(about, "variables")));
        train(&file, name, about, first);
        train(&file, name, about, second);
        json_t *again = cornu__compile_config(second);
        assert_true(json_equal(written, again));
        const json_t *jit = json_object_get(config, "jit_compile");
        assert_true(json_equal(json_object_get(written, "jit_compile"), jit));
        assert_true(json_equal(json_object_get(written, "run_eagerly"),
                               json_object_get(config, "run_eagerly")));
        json_decref(written);
        json_decref(again);
        cornu_model_free(first);
        cornu_model_free(second);
    }
    golden_close(&file.golden);
}

static void test_own_losses_are_refused_by_name(void **state)
{
    Compiled file = compiled_open();
    (void)state;
    static const char *const cases[][2] = {
        { "own_loss", "compile_config: the loss \"quartic\" is none of Keras' that Cornu has; load "
                      "the model by cornu_model_load" },
        { "own_metric", "the metric \"quartic\" is none of Keras'" },
    };
    for (int i = 0; i < 2; i++) {
        CornuModel   *model = model_of(&file, "one");
        const json_t *config = json_object_get(json_object_get(file.cases, cases[i][0]),
                                               "compile_config");
        expect_error(cornu__compile_from_config(model, config, NULL), CORNU_ERR_UNSUPPORTED,
                     cases[i][1]);
        cornu_model_free(model);
    }
    golden_close(&file.golden);
}

/* The outputs' arguments by name, in another order than the outputs. */
static void test_outputs_by_name(void **state)
{
    Compiled      file = compiled_open();
    const json_t *about = json_object_get(file.cases, "two_dictionaries");
    (void)state;
    CornuModel *model = model_of(&file, "two");
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(), .outputs = {
        { "kind", CORNU_CATEGORICAL_CROSSENTROPY, 2, .metrics = { CORNU_ACCURACY } },
        { "size", CORNU_MEAN_SQUARED_ERROR, 0.2, .metrics = { cornu_metric("mae") } } }));
    train(&file, "two_dictionaries", about, model);
    expect_error(cornu_compile(model, .outputs = { { .name = "sizes",
                                                     .loss = CORNU_MEAN_SQUARED_ERROR } }),
                 CORNU_ERR_ARGUMENT, "two: has no output \"sizes\", expected one of size, kind");
    expect_error(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR,
                               .outputs = { { .name = "size", .loss = CORNU_MEAN_SQUARED_ERROR } }),
                 CORNU_ERR_ARGUMENT, "two: .outputs is given and losses");
    expect_error(cornu_compile(model, .outputs = {
                     { .name = "size", .loss = CORNU_MEAN_SQUARED_ERROR },
                     { .name = "size", .loss = CORNU_MEAN_SQUARED_ERROR } }),
                 CORNU_ERR_ARGUMENT, "two: .outputs has \"size\" twice");
    expect_ok(cornu_compile(model, .losses = { CORNU_NO_LOSS, CORNU_NO_LOSS }));
    double values[MOST];
    const CornuArray x = golden_array(&file.golden, NULL, "x");
    const CornuArray y[] = { array_at(&file, "two", "y", 0), array_at(&file, "two", "y", 1) };
    expect_error(cornu_train_on_batch_many(model, &x, y, values), CORNU_ERR_ARGUMENT,
                 "two: compiled without .loss");
    cornu_model_free(model);
    golden_close(&file.golden);
}

/* Data by name in fit, evaluate, predict and single steps give what data in order give. */
static void test_data_by_name(void **state)
{
    enum { ROWS = 16 };
    Compiled         file = compiled_open();
    const CornuArray x = golden_array(&file.golden, NULL, "x");
    const CornuArray y[] = { array_at(&file, "two", "y", 0), array_at(&file, "two", "y", 1) };
    float            weights[ROWS], sizes[2][ROWS], kinds[2][ROWS * 3];
    double           results[2][MOST], trained[2][MOST];
    (void)state;
    for (int i = 0; i < ROWS; i++) weights[i] = (float)(i % 3);
    const CornuArray weight = cornu_array(weights, CORNU_F32, ROWS);
    for (int named = 0; named < 2; named++) {
        CornuModel      *model = model_of(&file, "two");
        const CornuArray size = cornu_array(sizes[named], CORNU_F32, ROWS, 1);
        const CornuArray kind = cornu_array(kinds[named], CORNU_F32, ROWS, 3);
        CornuHistory    *history;
        CornuArray       in[1], out[2];
        expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
        if (named)
            history = cornu_fit(model, .xs_by_name = { { "x", x } }, .ys_by_name = {
                { "kind", y[1] }, { "size", y[0] } }, .sample_weights_by_name = {
                { "kind", weight }, { "size", weight } }, .validation_data = {
                .xs_by_name = { { "x", x } },
                .ys_by_name = { { "kind", y[1] }, { "size", y[0] } } }, .verbose = 0);
        else
            history = cornu_fit(model, .x = x, .ys = { y[0], y[1] }, .sample_weights = {
                weight, weight }, .validation_data = { .x = x, .ys = { y[0], y[1] } },
                .verbose = 0);
        if (!history) fail_msg("%s", cornu_error_message());
        cornu_history_free(history);
        if (named) {
            expect_ok(cornu_evaluate(model, .xs_by_name = { { "x", x } }, .ys_by_name = {
                { "kind", y[1] }, { "size", y[0] } }, .results = results[1], .verbose = 0));
            expect_ok(cornu_predict(model, .xs_by_name = { { "x", x } }, .tos_by_name = {
                { "kind", kind }, { "size", size } }, .verbose = 0));
            expect_error(cornu_predict(model, .xs_by_name = { { "z", x } }, .tos_by_name = {
                { "kind", kind }, { "size", size } }, .verbose = 0), CORNU_ERR_ARGUMENT,
                "two: has no input \"z\", expected one of x");
            expect_error(cornu_predict(model, .x = x, .tos_by_name = { { "kind", kind } },
                                       .verbose = 0), CORNU_ERR_ARGUMENT,
                         "two: output \"size\" is not given");
            expect_error(cornu_predict(model, .x = x, .to = kind, .tos_by_name = {
                { "kind", kind }, { "size", size } }, .verbose = 0), CORNU_ERR_ARGUMENT,
                "predict: both .to and .tos_by_name are given, expected one");
        } else {
            expect_ok(cornu_evaluate(model, .x = x, .ys = { y[0], y[1] }, .results = results[0],
                                     .verbose = 0));
            expect_ok(cornu_predict(model, .x = x, .tos = { size, kind }, .verbose = 0));
        }
        expect_ok(cornu_model_order_inputs(model, (CornuNamedArray[]){ { "x", x } }, 1, in));
        expect_ok(cornu_model_order_outputs(model, (CornuNamedArray[]){
            { "kind", y[1] }, { "size", y[0] } }, 2, out));
        expect_ok(cornu_train_on_batch_many(model, in, out, trained[named]));
        assert_int_equal(cornu_model_metric_count(model), 3);
        cornu_model_free(model);
    }
    assert_memory_equal(sizes[0], sizes[1], sizeof sizes[0]);
    assert_memory_equal(kinds[0], kinds[1], sizeof kinds[0]);
    assert_memory_equal(results[0], results[1], 3 * sizeof results[0][0]);
    assert_memory_equal(trained[0], trained[1], 3 * sizeof trained[0][0]);
    golden_close(&file.golden);
}

/* The keys of a model are the names of its outputs, in logs, too. */
static void test_keys(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { 2 }, .name = "first");
    CornuSymbol *a = cornu_call(cornu_dense(1, .name = "left"), x);
    CornuSymbol *b = cornu_call(cornu_dense(1, .name = "right"), x);
    CornuModel  *model = cornu_model(.inputs = { x }, .outputs = { a, b }, .name = "keyed",
                                     .input_keys = { "in" }, .output_keys = { "p", "q" });
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .outputs = { { .name = "q", .loss = CORNU_MEAN_SQUARED_ERROR },
                                                { .name = "p", .loss = cornu_loss("mae") } }));
    assert_string_equal(cornu_model_metric_name(model, 1), "p_loss");
    assert_string_equal(cornu_model_metric_name(model, 2), "q_loss");
    float            ones[2] = { 1, 1 }, p, q;
    const CornuArray one = cornu_array(ones, CORNU_F32, 1, 2);
    expect_ok(cornu_predict(model, .xs_by_name = { { "in", one } }, .tos_by_name = {
        { "q", cornu_array(&q, CORNU_F32, 1, 1) }, { "p", cornu_array(&p, CORNU_F32, 1, 1) } },
        .verbose = 0));
    cornu_model_free(model);
    x = cornu_input(.shape = { 2 });
    assert_null(cornu_model(.inputs = { x }, .outputs = { x, x }, .name = "keyed",
                            .output_keys = { "q", "p" }));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT,
                 "keyed: .output_keys has \"p\" after \"q\", expected ascending keys");
}

/* Keras' own: its string is another one. */
static void test_default_names(void **state)
{
    (void)state;
    json_t      *json = json_pack("{s:s, s:{}}", "class_name", "LogCoshError", "config");
    CornuMetric *metric = cornu__metric_from_json(json);
    CornuMetric *by_string = cornu_metric("log_cosh_error");
    assert_non_null(metric);
    assert_string_equal(metric->name, "logcosh");
    assert_string_equal(by_string->name, "log_cosh_error");
    cornu_metric_free(metric);
    cornu_metric_free(by_string);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trains_as_keras),
        cmocka_unit_test(test_own_losses_are_refused_by_name),
        cmocka_unit_test(test_outputs_by_name),
        cmocka_unit_test(test_data_by_name),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_default_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
