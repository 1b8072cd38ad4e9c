/* Losses, metrics and initializers against real Keras (tests/golden/pieces). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../device/status_internal.h"
#include "../../nn/layer_internal.h"
#include "golden.h"

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
    /* Keras' binary numbers at the clip are f32's: 1 - 1e-7 is 1 - 2^-23 there. */
    const bool clipped = strstr(name, "binary_extreme") != NULL;
    const bool in_double = !strcmp(cornu_device_name(device), "reference");
    const double near = clipped && in_double ? 2e-2 : 2e-5;
    char what[128];
    snprintf(what, sizeof what, "%s on %s", name, cornu_device_name(device));
    expect_near(what, out[0].data, each, near);
    expect_near(what, out[1].data, golden_array(golden, name, "value"), near);
    if (!(strstr(name, "extreme") && in_double))   /* whether p is at the clip differs, too */
        expect_near(what, out[2].data, golden_array(golden, name, "d_x"), near);
    for (int i = 0; i < 3; i++) free(out[i].data);
    cornu_graph_free(graph);
    cornu_loss_free(loss);
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

/* Rows [first, first + count) as an array of their own; no copy. */
static CornuArray rows(CornuArray array, int64_t first, int64_t count)
{
    CornuType type = array.type;
    size_t    row = cornu_type_bytes(type) / (size_t)type.shape.extent[0];
    type.shape.extent[0] = count;
    return cornu_array_from((char *)array.data + (size_t)first * row, type);
}

/* Keras' classes by the names that we know them by. */
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
    expect_ok(cornu_test_on_batch(model, rows(x, 8, 4), rows(target, 8, 4), values));
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

/* ---- Initializers ---- */

enum { DRAWS = 60000 };

/* Bounds and spread as Keras computes them: initializers.json, "RULE.SHAPE". */
static void draws_have_keras_spread(void **state)
{
    (void)state;
    json_t *root = json_load_file("tests/golden/pieces/initializers.json", 0, NULL);
    assert_non_null(root);
    json_t *cases = json_object_get(root, "cases") ? json_object_get(root, "cases") : root;
    const char *name;
    json_t     *about;
    int         checked = 0;
    json_object_foreach(cases, name, about) {
        char rule[64];
        snprintf(rule, sizeof rule, "%.*s", (int)strcspn(name, "."), name);
        CornuInitializer initializer;
        json_t *extents = json_object_get(about, "shape");
        if (!json_is_array(extents) || cornu_initializer_find(rule, &initializer)) continue;
        CornuShape shape = { .rank = (int)json_array_size(extents) };
        for (int i = 0; i < shape.rank; i++)
            shape.extent[i] = json_integer_value(json_array_get(extents, (size_t)i));
        const int64_t count = cornu_shape_count(shape);
        float        *values = malloc((size_t)count * sizeof *values);
        double        square = 0.0, largest = 0.0;
        expect_ok(cornu_initialize(initializer, shape, 7, 3, values));
        for (int64_t i = 0; i < count; i++) {
            square += (double)values[i] * values[i];
            largest = fmax(largest, fabs(values[i]));
        }
        const double deviation = sqrt(square / (double)count);
        json_t *limit = json_object_get(about, "limit");
        json_t *cut = json_object_get(about, "stddev_before_truncation");
        json_t *spread = json_object_get(about, "stddev");
        const double slack = 4.0 / sqrt(2.0 * (double)count);   /* four deviations of its own */
        if (limit) {
            const double l = json_number_value(limit);
            if (largest > l * (1 + 1e-6) || fabs(deviation / (l / sqrt(3.0)) - 1) > slack)
                fail_msg("%s: greatest %g, deviation %g, limit %g", name, largest, deviation, l);
            checked++;
        } else if (spread || cut) {
            const bool   whole = initializer == CORNU_RANDOM_NORMAL;   /* not cut at 2 s */
            const double s = spread ? json_number_value(spread)
                                    : json_number_value(cut) * (whole ? 1.0 : 0.87962566103423978);
            if (!whole && largest > 2.0 * json_number_value(cut) * (1 + 1e-6))
                fail_msg("%s: greatest %g", name, largest);
            if (fabs(deviation / s - 1.0) > slack)
                fail_msg("%s: deviation %g, expected %g", name, deviation, s);
            checked++;
        }
        free(values);
    }
    assert_true(checked > 5);
    json_decref(root);
}

static void orthogonal_is_orthogonal(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = { { 7, 4 }, { 4, 7 }, { 6, 6 } };
    for (int s = 0; s < 3; s++) {
        const int64_t m = sizes[s][0], n = sizes[s][1], less = m < n ? m : n;
        float         q[64];
        expect_ok(cornu_initialize(CORNU_ORTHOGONAL, cornu_shape(m, n), 1, 2, q));
        for (int64_t i = 0; i < less; i++)
            for (int64_t j = 0; j < less; j++) {
                double dot = 0.0;
                for (int64_t k = 0; k < (m < n ? n : m); k++)
                    dot += m < n ? (double)q[i * n + k] * q[j * n + k]
                                 : (double)q[k * n + i] * q[k * n + j];
                assert_float_equal(dot, i == j ? 1.0 : 0.0, 1e-6);
            }
    }
    float one;
    expect_error(cornu_initialize(CORNU_ORTHOGONAL, cornu_shape(1), 1, 2, &one), CORNU_ERR_SHAPE,
                 "expected 2 axes or more");
}

/* Mean 0, and each element the same whatever else is drawn. */
static void draws_are_addressed(void **state)
{
    (void)state;
    float *values = malloc(DRAWS * sizeof *values), few[5];
    double sum = 0.0;
    expect_ok(cornu_initialize(CORNU_RANDOM_NORMAL, cornu_shape(DRAWS), 1, 0, values));
    for (int i = 0; i < DRAWS; i++) sum += values[i];
    assert_float_equal(sum / DRAWS, 0.0, 0.05 * 4 / sqrt(DRAWS));
    expect_ok(cornu_initialize(CORNU_RANDOM_NORMAL, cornu_shape(5), 1, 0, few));
    assert_memory_equal(few, values, sizeof few);
    expect_ok(cornu_initialize(CORNU_RANDOM_NORMAL, cornu_shape(5), 1, 1, few));
    assert_true(few[0] != values[0]);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_match_keras),
        cmocka_unit_test(metrics_match_keras),
        cmocka_unit_test(names_are_refused_with_the_nearest),
        cmocka_unit_test(draws_have_keras_spread),
        cmocka_unit_test(orthogonal_is_orthogonal),
        cmocka_unit_test(draws_are_addressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
