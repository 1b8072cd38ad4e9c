/* Traced layers: graphs of calls with weights of their own, beside the same written otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "../../skip.h"

enum { ROWS = 10, IN = 6, OUT = 4 };

static float x_data[ROWS][IN], y_data[ROWS][OUT];

static int fill_data(void **state)
{
    files_begin(state);
    for (int i = 0; i < ROWS * IN; i++) x_data[i / IN][i % IN] = (float)(i * i % 17) / 17.0f;
    for (int i = 0; i < ROWS * OUT; i++) y_data[i / OUT][i % OUT] = (float)(i * 5 % 7) / 7.0f;
    return 0;
}

static CornuArray x_array(void) { return cornu_array(x_data, CORNU_F32, ROWS, IN); }
static CornuArray y_array(void) { return cornu_array(y_data, CORNU_F32, ROWS, OUT); }

/* relu(x kernel + bias), then an inner dense layer. */
static CornuLayer *two_layers(const char *name)
{
    CornuLayer  *layer = cornu_traced(.class_name = "TwoLayers", .name = name,
                                      .config = "{\"units\": 4}");
    CornuSymbol *kernel = cornu_traced_weight(layer, "{\"name\": \"kernel\", \"shape\": [6, 5]}");
    CornuSymbol *bias = cornu_traced_weight(
        layer, "{\"name\": \"bias\", \"shape\": [5], \"initializer\": \"zeros\"}");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, IN), "x");
    CornuSymbol *y = cornu_operation("matmul", NULL, x, kernel);
    y = cornu_operation("relu", NULL, cornu_operation("add", NULL, y, bias));
    y = cornu_call(cornu_dense(OUT, .name = "inner"), y);
    expect_ok(cornu_traced_add(layer, .inputs = { x }, .outputs = { y }));
    return layer;
}

static CornuModel *traced_model(void)
{
    CornuSymbol *x = cornu_input(.shape = { IN });
    return cornu_model(.inputs = { x }, .outputs = { cornu_call(two_layers("mine"), x) });
}

static CornuModel *plain_model(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { IN });
    cornu_model_add(model, cornu_dense(5, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(OUT));
    return model;
}

static void copy_weights(const CornuModel *from, const CornuModel *to)
{
    float values[64];
    assert_int_equal(cornu_model_weight_count(from), 4);
    assert_int_equal(cornu_model_weight_count(to), 4);
    for (int i = 0; i < 4; i++) {
        const CornuArray array = cornu_array_from(values, cornu_model_weight(from, i)->type);
        expect_ok(cornu_weight_read(cornu_model_weight(from, i), array));
        expect_ok(cornu_weight_write(cornu_model_weight(to, i), array));
    }
}

static void predict(CornuModel *model, float to[ROWS][OUT])
{
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_predict(model, .x = x_array(), .verbose = CORNU_SILENT, .batch_size = 4,
                            .to = cornu_array(to, CORNU_F32, ROWS, OUT)));
}

static void train(CornuModel *model)
{
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.05),
                            .loss = CORNU_MEAN_SQUARED_ERROR));
    CornuHistory *history = cornu_fit(model, .x = x_array(), .y = y_array(), .epochs = 5,
                                      .batch_size = 4, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
}

/* The same weights give the same bits, before and after a training; so does its file. */
static void it_is_its_graph(void **state)
{
    (void)state;
    static const char *const names[] = { "m.safetensors", "m.keras" };
    float       wanted[ROWS][OUT], found[ROWS][OUT];
    CornuModel *traced = traced_model(), *plain = plain_model();
    if (!traced) fail_msg("%s", cornu_error_message());
    assert_string_equal(cornu_model_weight(traced, 0)->path, "mine/kernel");
    assert_string_equal(cornu_model_weight(traced, 2)->path, "mine/inner/kernel");
    copy_weights(plain, traced);
    train(plain);
    train(traced);
    predict(plain, wanted);
    predict(traced, found);
    assert_memory_equal(wanted, found, sizeof wanted);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = files_path(folder, names[i]);
        expect_ok(cornu_model_save(traced, path));
        CornuModel *loaded = cornu_model_load(path);
        predict(loaded, found);
        assert_memory_equal(wanted, found, sizeof wanted);
        assert_string_equal(cornu_traced_class(cornu_model_layer(loaded, 1)), "TwoLayers");
        train(loaded);
        cornu_model_free(loaded);
    }
    CornuModel *clone = cornu_model_clone(traced);
    if (!clone) fail_msg("%s", cornu_error_message());
    copy_weights(traced, clone);
    predict(clone, found);
    assert_memory_equal(wanted, found, sizeof wanted);
    cornu_model_free(clone), cornu_model_free(traced), cornu_model_free(plain);
}

/* A graph for training, one that is not, a loss, and a weight that counts the steps. */
static void graphs_lose_and_assign(void **state)
{
    (void)state;
    double       loss;
    float        y[ROWS][IN], steps;
    CornuLayer  *layer = cornu_traced(.class_name = "Counts", .name = "counts");
    CornuSymbol *count = cornu_traced_weight(layer, "{\"name\": \"count\", \"shape\": [], "
                                             "\"initializer\": \"zeros\", \"trainable\": false}");
    const CornuType type = cornu_type(CORNU_F32, CORNU_NONE, IN);
    CornuSymbol *x = cornu_placeholder(type, "x"), *given = cornu_placeholder(type, "x");
    CornuSymbol *next = cornu_operation("add", "{\"args\": [null, 1.0]}", count);
    CornuSymbol *mean = cornu_operation("mean", NULL, x);
    expect_ok(cornu_traced_add(layer, .inputs = { x }, .losses = { mean }, .values = { next },
                               .assigned = { 0 }, .training_only = true,
                               .outputs = { cornu_operation("negative", NULL, x) }));
    expect_ok(cornu_traced_add(layer, .inputs = { given }, .inference_only = true,
                               .outputs = { cornu_operation("add", NULL, given, given) }));
    CornuSymbol *in = cornu_input(.shape = { IN });
    CornuModel  *model = cornu_model(.inputs = { in }, .outputs = { cornu_call(layer, in) });
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(), .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_ok(cornu_predict(model, .x = x_array(), .verbose = CORNU_SILENT,
                            .to = cornu_array(y, CORNU_F32, ROWS, IN)));
    for (int i = 0; i < ROWS * IN; i++)
        assert_true(y[i / IN][i % IN] == 2.0f * x_data[i / IN][i % IN]);
    CornuHistory *history = cornu_fit(model, .x = x_array(), .y = x_array(), .batch_size = 4,
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    double sum = 0.0;   /* of (2 x)^2 and of the means of batches of 4, 4 and 2 rows */
    for (int first = 0; first < ROWS; first += 4) {
        const int end = first + 4 < ROWS ? first + 4 : ROWS;
        double    square = 0.0, all = 0.0;
        for (int i = first * IN; i < end * IN; i++) {
            const double value = (double)x_data[i / IN][i % IN];
            square += 4.0 * value * value, all += value;
        }
        sum += (square + all) / ((end - first) * IN) * (end - first);
    }
    loss = cornu_history_get(history, "loss", 0);
    assert_float_equal(loss, sum / ROWS, 1e-5);
    expect_ok(cornu_weight_read(cornu_model_weight(model, 0),
                                cornu_array_from(&steps, cornu_scalar(CORNU_F32))));
    assert_true(steps == 3.0f);
    cornu_history_free(history);
    const char *path = files_path(folder, "counts.safetensors");
    expect_ok(cornu_model_save(model, path));
    cornu_model_free(model);
    model = cornu_model_load(path);
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_predict(model, .x = x_array(), .verbose = CORNU_SILENT,
                            .to = cornu_array(y, CORNU_F32, ROWS, IN)));
    for (int i = 0; i < ROWS * IN; i++)
        assert_true(y[i / IN][i % IN] == 2.0f * x_data[i / IN][i % IN]);
    cornu_model_free(model);
}

/* x, with the mean squared error of labels as a loss that the layer adds, here beside the same. */
static void losses_are_layers(void **state)
{
    (void)state;
    const char      *path = files_path(folder, "loss.safetensors");
    double           alone, both, loaded;
    const CornuType  type = cornu_type(CORNU_F32, CORNU_NONE, OUT);
    CornuLayer      *layer = cornu_traced(.class_name = "Adds", .name = "adds");
    CornuSymbol     *x = cornu_placeholder(type, "x"), *labels = cornu_placeholder(type, "labels");
    CornuSymbol     *loss = cornu_call(cornu_loss_layer(CORNU_MEAN_SQUARED_ERROR, false, NULL),
                                       labels, x);
    const CornuArray y = y_array(), zero = cornu_array((float[ROWS][OUT]){ { 0 } }, CORNU_F32, ROWS,
                                                       OUT);
    expect_ok(cornu_traced_add(layer, .inputs = { x, labels }, .outputs = { x },
                               .losses = { loss }));
    CornuSymbol *in[] = { cornu_input(.shape = { OUT }), cornu_input(.shape = { OUT }) };
    CornuModel  *model = cornu_model(.inputs = { in[0], in[1] },
                                     .outputs = { cornu_call(layer, in[0], in[1]) });
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_ok(cornu_evaluate(model, .xs = { y, y }, .y = zero, .batch_size = 4, .results = &alone,
                             .verbose = CORNU_SILENT));
    expect_ok(cornu_evaluate(model, .xs = { y, zero }, .y = zero, .batch_size = 4,
                             .results = &both, .verbose = CORNU_SILENT));
    assert_true(alone > 0.1);
    assert_float_equal(both, 2.0 * alone, 1e-6);
    expect_ok(cornu_model_save(model, path));
    cornu_model_free(model);
    if (!(model = cornu_model_load(path))) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_ok(cornu_evaluate(model, .xs = { y, zero }, .y = zero, .batch_size = 4,
                             .results = &loaded, .verbose = CORNU_SILENT));
    assert_true(loaded == both);
    cornu_model_free(model);
}

/* More weights than a model has inputs: x plus the sum of 70, and the same from a file. */
static void it_reads_any_number_of_weights(void **state)
{
    (void)state;
    enum { MANY = 70 };
    float        found[ROWS][OUT];
    char         text[64];
    CornuLayer  *layer = cornu_traced(.class_name = "Many", .name = "many");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, OUT), "x"), *y = x;
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "{\"name\": \"w%d\", \"shape\": [4]}", i);
        y = cornu_operation("add", NULL, y, cornu_traced_weight(layer, text));
    }
    expect_ok(cornu_traced_add(layer, .inputs = { x }, .outputs = { y }));
    CornuSymbol *in = cornu_input(.shape = { OUT });
    CornuModel  *model = cornu_model(.inputs = { in }, .outputs = { cornu_call(layer, in) });
    if (!model) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_model_weight_count(model), MANY);
    for (int i = 0; i < MANY; i++) {
        const float value[OUT] = { (float)i, 1.0f, 0.0f, (float)(i == MANY - 1) };
        expect_ok(cornu_weight_write(cornu_model_weight(model, i),
                                     cornu_array((void *)(uintptr_t)value, CORNU_F32, OUT)));
    }
    const char *path = files_path(folder, "many.safetensors");
    expect_ok(cornu_model_save(model, path));
    CornuModel *both[] = { model, cornu_model_load(path) };
    for (int m = 0; m < 2; m++) {
        if (!both[m]) fail_msg("%s", cornu_error_message());
        expect_ok(cornu_predict(both[m], .x = y_array(), .verbose = CORNU_SILENT,
                                .to = cornu_array(found, CORNU_F32, ROWS, OUT)));
        for (int i = 0; i < ROWS; i++) {
            assert_float_equal(found[i][0], y_data[i][0] + MANY * (MANY - 1) / 2, 1e-3f);
            assert_float_equal(found[i][1], y_data[i][1] + MANY, 1e-4f);
            assert_float_equal(found[i][3], y_data[i][3] + 1.0f, 1e-5f);
        }
        cornu_model_free(both[m]);
    }
}

static void wrong_ones_are_refused(void **state)
{
    (void)state;
    expect_failure(cornu_traced(.class_name = "A", .config = "[1]"), CORNU_ERR_ARGUMENT,
                   "the config of A is [1], expected a JSON object");
    CornuLayer *layer = cornu_traced(.class_name = "A", .name = "a");
    expect_failure(cornu_traced_weight(layer, "{\"shape\": [2]}"), CORNU_ERR_FORMAT, "name");
    expect_failure(cornu_traced_weight(layer, "{\"name\": \"a/w\", \"shape\": [2]}"),
                   CORNU_ERR_FORMAT, "name is not the name of a weight, without \"/\"");
    CornuSymbol *in = cornu_input(.shape = { IN });
    expect_failure(cornu_call(layer, in), CORNU_ERR_ARGUMENT, "a: has no graph yet");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, 3), "x");
    expect_ok(cornu_traced_add(layer, .inputs = { x }, .outputs = { x }));
    in = cornu_input(.shape = { IN });
    expect_failure(cornu_call(layer, in), CORNU_ERR_SHAPE, "a: was not traced for an operand of");
    cornu_clear_session();
}

static void other_layers_and_null_are_refused(void **state)
{
    (void)state;
    static const char says[] = "d: is a layer of class Dense, expected one of cornu_traced";
    CornuLayer  *dense = cornu_dense(3, .name = "d");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, 3), "x");
    expect_failure(cornu_traced_weight(dense, "{\"name\": \"w\", \"shape\": [3]}"),
                   CORNU_ERR_ARGUMENT, says);
    expect_error(cornu_traced_set_config(dense, "{}"), CORNU_ERR_ARGUMENT, says);
    expect_error(cornu_traced_attribute(dense, dense, "a"), CORNU_ERR_ARGUMENT, says);
    expect_error(cornu_traced_add(dense, .inputs = { x }, .outputs = { x }), CORNU_ERR_ARGUMENT,
                  says);
    assert_null(cornu_traced_class(dense));
    assert_null(cornu_traced_layer(dense, "a"));
    assert_false(cornu_traced_takes(dense, NULL, 0));
    expect_failure(cornu_traced_from(&(CornuTracedConfig){ 0 }), CORNU_ERR_ARGUMENT, "class_name");
    CornuLayer *layer = cornu_traced(.class_name = "A");
    expect_error(cornu_traced_add_from(layer, NULL), CORNU_ERR_ARGUMENT, "config");
    expect_failure(cornu_traced_read(layer, NULL), CORNU_ERR_ARGUMENT, "weight");
    expect_failure(cornu_traced_weight(layer, "[1, 2]"), CORNU_ERR_FORMAT, "name");
    expect_failure(cornu_loss_layer(NULL, false, NULL), CORNU_ERR_ARGUMENT, "loss");
    cornu_layer_free(layer), cornu_layer_free(dense);
    cornu_clear_session();
}

/* Whether a model of a traced layer was made, saved, loaded and predicted. */
static bool save_and_load(const char *path, bool *saved)
{
    static float  found[ROWS][OUT];
    CornuLayer   *layer = cornu_traced(.class_name = "A", .config = "{\"units\": 4}");
    CornuSymbol  *kernel = layer ? cornu_traced_weight(layer, "{\"name\": \"w\", "
                                                       "\"shape\": [6, 4]}") : NULL;
    CornuSymbol  *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, IN), "x");
    CornuSymbol  *y = x && kernel ? cornu_operation("matmul", NULL, x, kernel) : NULL;
    CornuLayer   *inner = y ? cornu_dense(OUT, .name = "inner") : NULL;
    CornuSymbol  *z = inner ? cornu_call(inner, y) : NULL;
    bool          made = z && !cornu_traced_add(layer, .inputs = { x }, .outputs = { z }) &&
                         !cornu_traced_attribute(layer, inner, "inner");
    CornuSymbol  *in = made ? cornu_input(.shape = { IN }) : NULL;
    CornuSymbol  *out = in ? cornu_call(layer, in) : NULL;
    CornuModel   *model = out ? cornu_model(.inputs = { in }, .outputs = { out }) : NULL;
    *saved = model && cornu_model_save(model, path) == CORNU_OK;
    CornuModel *loaded = *saved ? cornu_model_load(path) : NULL;
    made = loaded && cornu_predict(loaded, .x = x_array(), .verbose = CORNU_SILENT,
                                   .to = cornu_array(found, CORNU_F32, ROWS, OUT)) == CORNU_OK;
    if (!in) cornu_layer_free(layer);    /* else a call has it */
    cornu_model_free(loaded), cornu_model_free(model);
    return made;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    const char *path = files_path(folder, "tight.safetensors");
    for (int64_t allowed = 0;; allowed += 1 + allowed / 300) {
        bool saved;
        allocations_fail_after(allowed);
        const bool        made = save_and_load(path, &saved);
        const CornuStatus status = cornu_error_status();
        allocations_fail_after(INT64_MAX);
        cornu_error_take();
        cornu_clear_session();
        if (made) break;
        /* JSON that is read without memory may seem to lack parts. */
        if (!saved && status != CORNU_ERR_MEMORY && status != CORNU_ERR_DEVICE)
            fail_msg("after %lld allocations: %s: %s", (long long)allowed,
                     cornu_status_name(status), cornu_error_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_its_graph, fill_data, files_end),
        cmocka_unit_test_setup_teardown(graphs_lose_and_assign, fill_data, files_end),
        cmocka_unit_test_setup_teardown(losses_are_layers, fill_data, files_end),
        cmocka_unit_test_setup_teardown(it_reads_any_number_of_weights, fill_data, files_end),
        cmocka_unit_test(wrong_ones_are_refused),
        cmocka_unit_test(other_layers_and_null_are_refused),
        cmocka_unit_test_setup_teardown(memory_may_run_out_anywhere, fill_data, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
