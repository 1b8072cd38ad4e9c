/* Losses and metrics by name, compared with real Keras (tests/golden/pieces). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/status_internal.h"
#include "../../../nn/layers/layer_internal.h"
#include "../golden.h"

static const char *const devices[] = { "reference", "cpu" };

/* ---- Losses ---- */

static CornuLoss *loss_of(const json_t *settings)
{
    const char *name = json_string_value(json_object_get(settings, "loss"));
    const bool from_logits = json_is_true(json_object_get(settings, "from_logits"));
    const CornuCrossentropyConfig config = {
        .from_logits = from_logits,
        .label_smoothing = json_number_value(json_object_get(settings, "label_smoothing")),
    };
    if (!strcmp(name, "BinaryCrossentropy")) return cornu_binary_crossentropy_from(&config);
    if (!strcmp(name, "CategoricalCrossentropy"))
        return cornu_categorical_crossentropy_from(&config);
    if (!strcmp(name, "SparseCategoricalCrossentropy"))
        return cornu_sparse_categorical_crossentropy(.from_logits = from_logits);
    assert_string_equal(name, "MeanSquaredError");
    return cornu_mean_squared_error();
}

static void run_loss(Golden *golden, const char *name, const json_t *settings, CornuDevice *device)
{
    CornuArray target = golden_array(golden, name, "target"), x = golden_array(golden, name, "x");
    CornuArray each = golden_array(golden, name, "each");
    CornuLoss *loss = loss_of(settings);
    assert_non_null(loss);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_input(graph, x.type);
    CornuTensor *labels = cornu_graph_input(graph, target.type);
    CornuTensor *values = loss->call(loss, labels, in), *d_x;
    const bool   sum = !strcmp(json_string_value(json_object_get(settings, "reduction")), "sum");
    CornuTensor *value = sum ? cornu_op_sum(values) : cornu_op_mean(values);
    expect_ok(cornu_gradients(value, &in, 1, &d_x));
    expect_ok(cornu_graph_feed(in, x));
    expect_ok(cornu_graph_feed(labels, target));

    CornuTensor *fetches[] = { values, value, d_x };
    CornuArray   out[3];
    for (int i = 0; i < 3; i++) {
        CornuType type = cornu_tensor_type(fetches[i]);
        out[i] = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    }
    expect_ok(cornu_run(graph, fetches, 3, out));
    /* Keras clips in f32, where 1 - 1e-7 is 1 - 2^-23. */
    const bool clipped = strstr(name, "binary_extreme") != NULL;
    const bool in_double = !strcmp(cornu_device_name(device), "reference");
    const double near = clipped && in_double ? 2e-2 : 2e-5;
    char what[128];
    snprintf(what, sizeof what, "%s on %s", name, cornu_device_name(device));
    expect_near(what, out[0].data, each, near);
    expect_near(what, out[1].data, golden_array(golden, name, "value"), near);
    if (!(strstr(name, "extreme") && in_double))   /* p may be clipped in one only, too */
        expect_near(what, out[2].data, golden_array(golden, name, "d_x"), near);
    for (int i = 0; i < 3; i++) free(out[i].data);
    cornu_graph_free(graph);
    cornu_loss_free(loss);
}

/* The values of the loss for each row; frees the loss. */
static void row_values(CornuLoss *loss, CornuArray labels, CornuArray predictions, float *values)
{
    CornuDevice *device = cornu_device_open("cpu");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_input(graph, predictions.type);
    CornuTensor *target = cornu_graph_input(graph, labels.type);
    CornuTensor *each = loss->call(loss, target, in), *d;
    expect_ok(cornu_gradients(cornu_op_sum(each), &in, 1, &d));
    expect_ok(cornu_graph_feed(in, predictions));
    expect_ok(cornu_graph_feed(target, labels));
    float      gradients[16];
    CornuArray to[2] = { cornu_array_from(values, cornu_tensor_type(each)),
                         cornu_array_from(gradients, predictions.type) };
    expect_ok(cornu_run(graph, (CornuTensor *[]){ each, d }, 2, to));
    for (int64_t i = 0; i < cornu_type_count(predictions.type); i++)
        assert_true(isfinite(gradients[i]));
    cornu_graph_free(graph);
    cornu_loss_free(loss);
    cornu_device_close(device);
}

/* u8 labels have no class -1: none is ignored, not even 0 or 255. */
static void ignored_classes_of_bytes(void **state)
{
    (void)state;
    uint8_t in[] = { 0, 1, 255 };
    for (int64_t ignored = -1; ignored <= 1; ignored++) {
        CornuLoss   *loss = cornu_sparse_categorical_crossentropy(
            .ignore_class = ignored ? ignored : CORNU_ZERO);
        CornuDevice *device = cornu_device_open("cpu");
        CornuGraph  *graph = cornu_graph_create(device);
        CornuTensor *labels = cornu_graph_input(graph, cornu_type(CORNU_U8, 3));
        CornuTensor *p = cornu_op_constant(graph, cornu_type(CORNU_F32, 3, 2), 0.5);
        CornuTensor *counts = loss->mask(loss, labels, p);
        bool         out[3];
        expect_ok(cornu_graph_feed(labels, cornu_array(in, CORNU_U8, 3)));
        expect_ok(cornu_run(graph, &counts, 1, (CornuArray[]){ cornu_array(out, CORNU_BOOL, 3) }));
        for (int i = 0; i < 3; i++) assert_int_equal(out[i], in[i] != ignored);
        cornu_graph_free(graph);
        cornu_loss_free(loss);
        cornu_device_close(device);
    }
}

/* The cosine with a vector of zeros is 0, with a finite gradient. */
static void zeros_have_no_direction(void **state)
{
    (void)state;
    float labels[] = { 0, 0, 3, 4, 3, 4 }, p[] = { 1, 2, 0, 0, 6, 8 }, values[3];
    row_values(cornu_cosine_similarity(), cornu_array(labels, CORNU_F32, 3, 2),
               cornu_array(p, CORNU_F32, 3, 2), values);
    for (int i = 0; i < 3; i++) assert_float_equal(values[i], i == 2 ? -1 : 0, 1e-6);
}

static void losses_match_keras(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/pieces/losses.safetensors");
    const char *name;
    json_t     *settings;
    for (int d = 0; d < 2; d++) {
        CornuDevice *device = cornu_device_open(devices[d]);
        json_object_foreach(golden.cases, name, settings)
            run_loss(&golden, name, settings, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* ---- Metrics: through a model that passes its input on ---- */

/* Rows [first, first + count) as an array that shares the memory. */
static CornuArray rows(CornuArray array, int64_t first, int64_t count)
{
    CornuType type = array.type;
    size_t    row = cornu_type_bytes(type) / (size_t)type.shape.extent[0];
    type.shape.extent[0] = count;
    return cornu_array_from((char *)array.data + (size_t)first * row, type);
}

/* Our name of Keras' class. */
static const char *metric_name(const char *name, const json_t *settings)
{
    static const char *const names[][2] = {
        { "BinaryAccuracy", "binary_accuracy" },
        { "CategoricalAccuracy", "categorical_accuracy" },
        { "SparseCategoricalAccuracy", "sparse_categorical_accuracy" },
        { "MeanSquaredError", "mse" },
        { "BinaryCrossentropy", "binary_crossentropy" },
        { "CategoricalCrossentropy", "categorical_crossentropy" },
        { "SparseCategoricalCrossentropy", "sparse_categorical_crossentropy" },
    };
    if (!strncmp(name, "accuracy", 8)) return "accuracy";
    if (json_object_get(settings, "threshold")) return NULL;
    const char *kind = json_string_value(json_object_get(settings, "metric"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(kind, names[i][0])) return names[i][1];
    return NULL;
}

static void run_metric(Golden *golden, const char *name, const char *metric, CornuDevice *device)
{
    CornuArray target = golden_array(golden, name, "target"), x = golden_array(golden, name, "x");
    CornuArray result = golden_array(golden, name, "result");
    CornuModel *model = cornu_sequential();
    cornu_model_add(model, cornu_activation(CORNU_LINEAR));
    const bool sparse = cornu_dtype_is_float(target.type.dtype) == false &&
                        cornu_type_count(target.type) != cornu_type_count(x.type);
    const char *loss = sparse ? "sparse_categorical_crossentropy" : "mse";
    expect_ok(cornu_compile(model, .device = device, .metrics = { cornu_metric(metric) },
                            .loss = cornu_loss(loss)));
    double values[2];
    char   what[128];
    expect_ok(cornu_test_on_batch(model, rows(x, 0, 8), rows(target, 0, 8), values));
    snprintf(what, sizeof what, "%s on %s", name, cornu_device_name(device));
    expect_near(what, &(float){ (float)values[1] }, rows(result, 0, 1), 2e-6);
    expect_ok(cornu_evaluate(model, .x = rows(x, 0, 12), .y = rows(target, 0, 12),
                             .batch_size = 8, .verbose = 0, .results = values));
    expect_near(what, &(float){ (float)values[1] }, rows(result, 1, 1), 2e-6);
    cornu_model_free(model);
}

static void metrics_match_keras(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/pieces/metrics.safetensors");
    const char *name;
    json_t     *settings;
    int         run = 0;
    for (int d = 0; d < 2; d++) {
        CornuDevice *device = cornu_device_open(devices[d]);
        json_object_foreach(golden.cases, name, settings) {
            const char *metric = metric_name(name, settings);
            if (metric) run_metric(&golden, name, metric, device), run++;
        }
        cornu_device_close(device);
    }
    assert_true(run >= 20);
    golden_close(&golden);
}

static void names_are_refused_with_the_nearest(void **state)
{
    (void)state;
    assert_null(cornu_loss("mean_sqared_error"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "\"mean_squared_error\" meant?");
    assert_null(cornu_metric("acuracy"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "is \"accuracy\" meant?");
    assert_null(cornu_binary_crossentropy(.label_smoothing = 2));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".label_smoothing is 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_match_keras),
        cmocka_unit_test(ignored_classes_of_bytes),
        cmocka_unit_test(zeros_have_no_direction),
        cmocka_unit_test(metrics_match_keras),
        cmocka_unit_test(names_are_refused_with_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
