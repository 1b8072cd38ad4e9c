/* fit, evaluate and train_on_batch with sample weights and class weights, against Keras
 * (tests/golden/make_losses.py), on every device; the ways in which weights can be given. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

enum { ROWS = 20, HELD = 10, IN = 6, CLASSES = 5, BATCH = 8, EPOCHS = 3 };

static const struct {
    const char *device;
    int         shards;
} places[] = { { "reference", 1 }, { "cpu", 1 }, { "tpu", 1 }, { "tpu", 8 } };

enum { PLACES = sizeof places / sizeof *places };

static Golden golden;

static int open_golden(void **state)
{
    (void)state;
    golden = golden_open("tests/golden/losses/training.safetensors");
    return 0;
}

static int close_golden(void **state)
{
    (void)state;
    golden_close(&golden);
    return 0;
}

static CornuArray of(const char *name) { return golden_array(&golden, NULL, name); }

static bool lists(const json_t *settings, const char *list, const char *word)
{
    const json_t *words = json_object_get(settings, list);
    for (size_t i = 0; i < json_array_size(words); i++)
        if (!strcmp(json_string_value(json_array_get(words, i)), word)) return true;
    return false;
}

static CornuLoss *loss_of(const json_t *settings)
{
    const char *loss = json_string_value(json_object_get(settings, "loss"));
    if (!strcmp(loss, "sum")) return cornu_categorical_crossentropy(.reduction = CORNU_SUM);
    if (!strcmp(loss, "mean_with_sample_weight"))
        return cornu_categorical_crossentropy(.reduction = CORNU_MEAN_WITH_SAMPLE_WEIGHT);
    return cornu_loss(loss);
}

static CornuModel *build(CornuDevice *device, CornuLoss *loss, bool one_hot)
{
    CornuModel *model = cornu_sequential(.input_shape = { IN }, .policy = "float32");
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(
        model, .device = device, .loss = loss, .optimizer = cornu_sgd(.learning_rate = 0.2),
        .metrics = { CORNU_ACCURACY }, .weighted_metrics = {
            CORNU_ACCURACY,
            cornu_metric(one_hot ? "mse" : "sparse_categorical_crossentropy") }));
    expect_ok(cornu_weight_write(cornu_model_weight(model, 0), of("kernel")));
    expect_ok(cornu_weight_write(cornu_model_weight(model, 1), of("bias")));
    return model;
}

static void expect_kernel(CornuModel *model, const char *what, CornuArray want)
{
    float kernel[IN * CLASSES];
    expect_ok(cornu_weight_read(cornu_model_weight(model, 0),
                                cornu_array(kernel, CORNU_F32, IN, CLASSES)));
    expect_near(what, kernel, want, 2e-5);
}

/* values are in the order of the model's metrics. */
static void expect_values(CornuModel *model, const char *name, const char *prefix,
                          const char *place, const double *values)
{
    for (int i = 0; i < cornu_model_metric_count(model); i++) {
        char key[96], what[160];
        snprintf(key, sizeof key, "%s_%s", prefix, cornu_model_metric_name(model, i));
        snprintf(what, sizeof what, "%s/%s on %s", name, key, place);
        expect_near(what, &(float){ (float)values[i] }, golden_array(&golden, name, key), 2e-5);
    }
}

static void expect_history(const CornuHistory *history, const char *name, const json_t *settings,
                           const char *place)
{
    const json_t *logs = json_object_get(settings, "logs");
    assert_int_equal(cornu_history_key_count(history), (int)json_array_size(logs));
    for (int k = 0; k < cornu_history_key_count(history); k++) {
        const char *key = cornu_history_key(history, k);
        CornuArray  want = golden_array(&golden, name, key);
        float       got[EPOCHS];
        int         count = 0;
        char        what[160];
        assert_string_equal(key, json_string_value(json_array_get(logs, (size_t)k)));
        for (int e = 0; e < EPOCHS; e++)   /* epochs without validation have none */
            if (!isnan(cornu_history_get(history, key, e)))
                got[count++] = (float)cornu_history_get(history, key, e);
        snprintf(what, sizeof what, "%s/%s on %s", name, key, place);
        assert_int_equal(cornu_type_count(want.type), count);
        expect_near(what, got, want, 2e-5);
    }
}

static void run(const char *name, const json_t *settings, CornuDevice *device, const char *place)
{
    const CornuArray none = { .data = NULL };
    CornuArray y = golden_array(&golden, name, "y"), held_y = golden_array(&golden, name, "held_y");
    const bool one_hot = y.type.shape.rank == 2;
    const bool weighs = lists(settings, "weights", "sample_weight");
    const bool by_class = lists(settings, "weights", "class_weight");
    const bool splits = lists(settings, "weights", "validation_split");
    const bool validates = golden_array(&golden, name, "val_loss").data && !splits;
    CornuArray weights = weighs ? of("weights") : none;
    CornuArray classes = by_class ? of("class_weight") : none;
    CornuArray held = lists(settings, "evaluate", "sample_weight") ? of("held_weights") : none;
    CornuModel   *model = build(device, loss_of(settings), one_hot);
    CornuHistory *history = cornu_fit(
        model, .x = of("x"), .y = y, .batch_size = BATCH, .epochs = EPOCHS, .no_shuffle = true,
        .verbose = CORNU_SILENT, .sample_weight = weights, .class_weight = classes,
        .validation_split = splits ? 0.3 : 0.0,
        .validation_freq = lists(settings, "weights", "validation_freq") ? 2 : 0,
        .validation_data = { .x = validates ? of("held_x") : none, .y = validates ? held_y : none,
                             .sample_weight = validates ? held : none });
    if (!history) fail_msg("%s on %s: %s", name, place, cornu_error_message());
    expect_history(history, name, settings, place);
    cornu_history_free(history);
    char what[96];
    snprintf(what, sizeof what, "%s's kernel on %s", name, place);
    expect_kernel(model, what, golden_array(&golden, name, "kernel_after"));

    double values[4];
    expect_ok(cornu_evaluate(model, .x = of("held_x"), .y = held_y, .sample_weight = held,
                             .batch_size = BATCH, .results = values, .verbose = CORNU_SILENT));
    expect_values(model, name, "evaluated", place, values);

    CornuArray x = of("x");
    x.type.shape.extent[0] = y.type.shape.extent[0] = BATCH;
    if (weighs) weights.type.shape.extent[0] = BATCH;
    expect_ok(cornu_model_reset_metrics(model));
    expect_ok(cornu_train_on_batch(model, x, y, values, weights, classes));
    expect_values(model, name, "on_batch", place, values);
    expect_kernel(model, what, golden_array(&golden, name, "kernel_last"));
    cornu_model_free(model);
}

static void training_matches_keras(void **state)
{
    (void)state;
    const char *name;
    json_t     *settings;
    for (int i = 0; i < PLACES; i++) {
        char         place[32];
        CornuDevice *device = cornu_device_open(places[i].device, .shards = places[i].shards);
        assert_non_null(device);
        snprintf(place, sizeof place, "%s:%d", places[i].device, places[i].shards);
        json_object_foreach(golden.cases, name, settings) run(name, settings, device, place);
        cornu_device_close(device);
    }
}

/* ---- Ways to give them ---- */

static void fit_data(CornuDataset *data, CornuArray class_weight, float *kernel)
{
    CornuModel   *model = build(NULL, CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, false);
    CornuHistory *history = cornu_fit(model, data, .epochs = 2, .no_shuffle = true,
                                      .class_weight = class_weight, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
    expect_ok(cornu_weight_read(cornu_model_weight(model, 0),
                                cornu_array(kernel, CORNU_F32, IN, CLASSES)));
    cornu_model_free(model);
    cornu_dataset_free(data);
}

/* Weights as a third component of a data set and by class, batched or not, have the same effect. */
static void data_sets_have_weights(void **state)
{
    (void)state;
    const CornuArray none = { .data = NULL }, classes = of("class_weight");
    CornuArray x = of("x"), y = golden_array(&golden, "class_weight", "y");
    float      weights[ROWS], kernels[4][IN * CLASSES];
    for (int i = 0; i < ROWS; i++) {
        const int64_t label = (int64_t)cornu_array_get(y, i);
        weights[i] = label < 4 ? (float)cornu_array_get(classes, label) : 1.0f;
    }
    const CornuArray all[] = { x, y, cornu_array(weights, CORNU_F32, ROWS) };
    fit_data(cornu_dataset_batch(cornu_dataset_from_arrays(all, 3), BATCH, false), none,
             kernels[0]);
    fit_data(cornu_dataset_batch(cornu_dataset_from_arrays(all, 2), BATCH, false), classes,
             kernels[1]);
    assert_memory_equal(kernels[0], kernels[1], sizeof kernels[0]);
    fit_data(cornu_dataset_from_arrays(all, 3), none, kernels[2]);
    fit_data(cornu_dataset_from_arrays(all, 2), classes, kernels[3]);
    assert_memory_equal(kernels[2], kernels[3], sizeof kernels[2]);
    assert_true(memcmp(kernels[0], kernels[2], sizeof kernels[0]) != 0);   /* batches of 32 */
}

/* Two outputs: one array for both, one for each, and both of them as data set components. */
static void outputs_have_weights(void **state)
{
    (void)state;
    double     values[3][7];
    float      turned[ROWS];
    CornuArray x = of("x"), y = golden_array(&golden, "class_weight", "y"), w = of("weights");
    for (int i = 0; i < ROWS; i++) turned[i] = (float)cornu_array_get(w, ROWS - 1 - i);
    const CornuArray second = cornu_array(turned, CORNU_F32, ROWS);
    const CornuArray both[] = { x, y, y, w, second };
    CornuSymbol     *in = cornu_input(.shape = { IN });
    CornuModel      *model = cornu_model(.inputs = { in }, .outputs = {
        cornu_call(cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .name = "a"), in),
        cornu_call(cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .name = "b"), in) });
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .output_metrics = { { CORNU_ACCURACY } },
                            .output_weighted_metrics = { { CORNU_ACCURACY }, { CORNU_ACCURACY } }));
    static const char *const names[] = { "loss", "a_loss", "b_loss", "a_accuracy",
                                         "a_weighted_accuracy", "b_accuracy" };
    assert_int_equal(cornu_model_metric_count(model), 6);
    for (int i = 0; i < 6; i++) assert_string_equal(cornu_model_metric_name(model, i), names[i]);
    expect_ok(cornu_evaluate(model, .x = x, .ys = { y, y }, .sample_weight = w,
                             .results = values[0], .verbose = CORNU_SILENT));
    expect_ok(cornu_evaluate(model, .x = x, .ys = { y, y }, .sample_weights = { w, second },
                             .results = values[1], .verbose = CORNU_SILENT));
    CornuDataset *data = cornu_dataset_from_arrays(both, 5);
    expect_ok(cornu_evaluate(model, data, .results = values[2], .verbose = CORNU_SILENT));
    assert_memory_equal(values[1], values[2], 6 * sizeof(double));
    assert_float_equal(values[0][1], values[1][1], 0.0);
    assert_true(values[0][2] != values[1][2]);
    cornu_dataset_free(data);

    /* By name, an output that is not named weighs 1. */
    const CornuArray once = cornu_array(turned, CORNU_F32, ROWS);
    double           some[7];
    expect_ok(cornu_evaluate(model, .x = x, .ys = { y, y }, .results = some,
                             .sample_weights_by_name = { { "a", w } }, .verbose = CORNU_SILENT));
    for (int i = 0; i < ROWS; i++) turned[i] = 1.0f;
    expect_ok(cornu_evaluate(model, .x = x, .ys = { y, y }, .sample_weights = { w, once },
                             .results = values[2], .verbose = CORNU_SILENT));
    assert_memory_equal(some, values[2], 6 * sizeof(double));
    expect_error(cornu_evaluate(model, .x = x, .ys = { y, y }, .verbose = CORNU_SILENT,
                                .sample_weights_by_name = { { "c", w } }),
                 CORNU_ERR_ARGUMENT, "has no output \"c\", expected one of a, b");
    /* By position none is left out. */
    for (int i = 0; i < 3; i++) {
        CornuEvaluateConfig gap = { .model = model, .x = x, .ys = { y, y },
                                    .verbose = CORNU_SILENT };
        gap.sample_weights[i] = w;
        expect_error(cornu_evaluate_from(&gap), CORNU_ERR_ARGUMENT,
                     "1 array is given for sample_weight, the model takes 2");
    }
    assert_null(cornu_fit(model, .x = x, .ys = { y, y }, .class_weight = of("class_weight"),
                          .verbose = CORNU_SILENT));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "the model has 2 outputs, expected one; "
                 ".sample_weights_by_name takes the weights of samples for any of them");
    cornu_model_free(model);
}

/* Weights of single steps: 0 and 1 have the effect of a mask. */
static void steps_have_weights(void **state)
{
    (void)state;
    float       x[2 * 3 * 2], y[2 * 3 * 2] = { 0 }, w[2 * 3] = { 1, 0, 2, 0, 0, 1 };
    double      values[2], loss = 0.0;
    CornuModel *model = cornu_sequential();
    for (int i = 0; i < 12; i++) x[i] = 0.25f * (float)i;
    for (int i = 0; i < 6; i++)
        loss += w[i] * (x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1]) / 2.0;
    cornu_model_add(model, cornu_activation(CORNU_LINEAR));
    expect_ok(cornu_compile(model, .loss = cornu_loss("mse"),
                            .weighted_metrics = { cornu_metric("mse") }));
    expect_ok(cornu_test_on_batch(model, cornu_array(x, CORNU_F32, 2, 3, 2),
                                  cornu_array(y, CORNU_F32, 2, 3, 2), values,
                                  cornu_array(w, CORNU_F32, 2, 3)));
    assert_float_equal(values[0], loss / 6.0, 1e-6);   /* divided by their number */
    assert_float_equal(values[1], loss / 4.0, 1e-6);   /* divided by the sum of weights */
    cornu_model_free(model);
}

/* ---- Mistakes ---- */

static void expect_fit_error(const CornuFitConfig *config, const char *part)
{
    CornuFitConfig quiet = *config;
    quiet.verbose = CORNU_SILENT;
    assert_null(cornu_fit_from(&quiet));
    const CornuStatus status = cornu_error_take();
    expect_error(status, status, part);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    CornuArray  x = of("x"), y = golden_array(&golden, "class_weight", "y"), w = of("weights");
    CornuArray  classes = of("class_weight"), few = w, wide = of("kernel");
    CornuModel *model = build(NULL, CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, false);
    double      values[4];
    few.type.shape.extent[0] = 7;
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .y = y, .sample_weight = w,
                                        .class_weight = classes },
                     "fit: both sample weights and .class_weight are given");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .y = y, .class_weight = wide },
                     "fit: .class_weight is (6, 5), expected (classes)");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .y = y,
                                        .validation_data.sample_weight = w },
                     "fit's validation: sample_weight is given without x");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .y = y,
                                        .validation_data = { .y = y, .sample_weight = w } },
                     "fit's validation: y is given without x");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .y = y, .validation_split = 0.5,
                                        .validation_data = { .x = x, .y = y } },
                     "fit: both .validation_data and .validation_split are given, expected one");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .xs = { x }, .y = y },
                     "fit: both .x and .xs are given, expected one");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .ys = { y },
                                        .ys_by_name = { { "dense", y } } },
                     "fit: both .ys and .ys_by_name are given, expected one");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .y = y, .sample_weight = w,
                                        .sample_weights_by_name = { { "dense", w } } },
                     "both .sample_weight and .sample_weights_by_name are given, expected one");
    expect_error(cornu_predict(model, .x = x, .y = y, .verbose = CORNU_SILENT),
                 CORNU_ERR_ARGUMENT, "predict: y is given, expected x alone");
    expect_error(cornu_predict(model, .x = x, .results = values, .verbose = CORNU_SILENT),
                 CORNU_ERR_ARGUMENT, "predict: .results is given, expected .to alone");
    expect_fit_error(&(CornuFitConfig){ .model = model, .x = x, .y = y, .sample_weight = few },
                     "7");
    CornuDataset *data = cornu_dataset_from_arrays((CornuArray[]){ x, y }, 2);
    expect_fit_error(&(CornuFitConfig){ .model = model, .data = data, .sample_weight = w },
                     "weights are a further component of the data set");
    cornu_dataset_free(data);
    data = cornu_dataset_from_arrays((CornuArray[]){ x, y, w, w }, 4);
    expect_fit_error(&(CornuFitConfig){ .model = model, .data = data },
                     "has 4 components, expected 2 or 3: x and y, and sample weights");
    cornu_dataset_free(data);
    expect_error(cornu_train_on_batch(model, x, y, values, w, classes), CORNU_ERR_ARGUMENT,
                 "both .sample_weight and .class_weight are given");
    expect_error(cornu_train_on_batch(model, x, y, .sample_weight = few), CORNU_ERR_SHAPE,
                 "sample_weight is (7,), expected the same number of rows");
    /* An older error that stops a call says that it is one. */
    assert_null(cornu_dense(0));
    expect_error(cornu_evaluate(model, .x = x, .y = y, .verbose = CORNU_SILENT),
                 CORNU_ERR_ARGUMENT, "units is 0, expected at least 1 (still pending: ");
    cornu_error_take();
    cornu_model_free(model);
}

static float x_bias[2][3];

static void fit_data_of(CornuModel *model, CornuDataset *data, CornuArray class_weight)
{
    CornuHistory *history = cornu_fit(model, data, .class_weight = class_weight, .no_shuffle = true,
                                      .verbose = CORNU_SILENT);
    expect_ok(history ? CORNU_OK : cornu_error_take());
    cornu_history_free(history);
}

/* Class numbers (N, T): each has the weight of its class. Keras 3.15 takes the place of the
 * largest, 1, 10, 1 for the three rows; by hand the sum of weight times loss is that of sample
 * weights. */
static void steps_have_class_weights(void **state)
{
    (void)state;
    int32_t     labels[3][2] = { { 2, 0 }, { 0, 2 }, { 2, 2 } };
    float       classes[] = { 1, 10, 100 }, weights[3][2], x[3][2][3];
    CornuArray  xs = cornu_array(x, CORNU_F32, 3, 2, 3), ys = cornu_array(labels, CORNU_I32, 3, 2);
    CornuArray  by_class = cornu_array(classes, CORNU_F32, 3);
    CornuArray  each = cornu_array(weights, CORNU_F32, 3, 2);
    double      loss[2][2];
    for (int i = 0; i < 18; i++) (&x[0][0][0])[i] = (float)(i * i % 7) / 7.0f;
    for (int i = 0; i < 6; i++) (&weights[0][0])[i] = classes[(&labels[0][0])[i]];
    for (int batches = 0; batches < 3; batches++) {
        for (int k = 0; k < 2; k++) {
            cornu_set_random_seed(3);
            CornuModel *model = cornu_sequential(.input_shape = { 2, 3 });
            CornuDataset *data = NULL;
            cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
            expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                    .optimizer = cornu_sgd(.learning_rate = 0.5)));
            const CornuArray none = { .data = NULL };
            if (batches == 0) {
                expect_ok(cornu_train_on_batch(model, xs, ys, loss[k], k ? each : none,
                                               k ? none : by_class));
            } else {
                const CornuArray all[] = { xs, ys, each };
                data = cornu_dataset_from_arrays(all, k ? 3 : 2);
                if (batches == 2) data = cornu_dataset_batch(data, 3, false);
                fit_data_of(model, data, k ? none : by_class);
            }
            expect_ok(cornu_weight_read(cornu_model_weight(model, 1),
                                        cornu_array(x_bias[k], CORNU_F32, 3)));
            cornu_dataset_free(data);
            cornu_model_free(model);
        }
        assert_memory_equal(x_bias[0], x_bias[1], sizeof x_bias[0]);
    }
    assert_true(loss[0][0] == loss[1][0]);
}

static void class_numbers_need_their_loss(void **state)
{
    (void)state;
    int32_t     labels[3][2] = { { 2, 0 }, { 0, 2 }, { 2, 2 } };
    float       x[3][2] = { { 1, 2 } }, classes[] = { 1, 10, 100 };
    CornuModel *model = cornu_sequential(.input_shape = { 2 });
    cornu_model_add(model, cornu_dense(2));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_error(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, 3, 2),
                                      cornu_array(labels, CORNU_I32, 3, 2),
                                      .class_weight = cornu_array(classes, CORNU_F32, 3)),
                 CORNU_ERR_VALUE, "a label of 2 integers has a 2, expected one of 2 classes, as 0s "
                 "and a 1");
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_matches_keras),
        cmocka_unit_test(data_sets_have_weights),
        cmocka_unit_test(outputs_have_weights),
        cmocka_unit_test(steps_have_weights),
        cmocka_unit_test(steps_have_class_weights),
        cmocka_unit_test(class_numbers_need_their_loss),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
