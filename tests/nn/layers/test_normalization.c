/* Normalization layers, and activations with arguments, beyond what test_layers.c compares with
 * Keras: statistics of data sets, files, mixed precision, masks, invalid use. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../golden.h"
#include "../../skip.h"

/* ---- Statistics of data: the arrays are those that Keras adapted to ---- */

static void check_statistics(Golden *golden, const char *name, const CornuLayer *layer)
{
    static const char *const names[] = { "mean", "variance" };
    float values[64];
    for (int i = 0; i < 2; i++) {
        const CornuWeight *weight = layer->weights[i];
        expect_ok(cornu_weight_read(weight, cornu_array_from(values, weight->type)));
        expect_near(names[i], values, golden_array(golden, name, names[i]), 1e-6);
    }
    assert_int_equal(layer->weight_count, 3);
}

/* From an array or a data set in batches of three rows; before and after building. */
static void check_adapt(Golden *golden, const char *name, const CornuNormalizationConfig *config)
{
    const CornuArray data = golden_array(golden, name, "data");
    CornuShape       input = data.type.shape;
    input.extent[0] = CORNU_NONE;
    for (int k = 0; k < 4; k++) {
        CornuLayer   *layer = cornu_normalization_from(config);
        CornuDataset *set = cornu_dataset_from_arrays(&data, 1);
        if (k & 1) set = cornu_dataset_batch(set, 3, false);
        if (k & 2) expect_ok(cornu_layer_build(layer, input));
        if (k == 0) expect_ok(cornu_adapt(layer, .x = data));
        else expect_ok(cornu_adapt(layer, set));
        if (!(k & 2)) expect_ok(cornu_layer_build(layer, input));
        check_statistics(golden, name, layer);
        cornu_dataset_free(set);
        cornu_layer_free(layer);
    }
}

static void adapts_to_data(void **state)
{
    (void)state;
    Golden golden = golden_open("tests/golden/norms/layers.safetensors");
    check_adapt(&golden, "normalization", &(CornuNormalizationConfig){ 0 });
    check_adapt(&golden, "normalization_axes", &(CornuNormalizationConfig){ .axes = { 1, 3 } });
    check_adapt(&golden, "normalization_one", &(CornuNormalizationConfig){ .axis = CORNU_ZERO });
    golden_close(&golden);
}

/* A compiled model's statistics are replaced too, and integers are accepted. */
static void adapts_compiled_models(void **state)
{
    (void)state;
    static const uint8_t first[] = { 2, 6, 4, 4 };
    static const float   second[] = { 0, 20 };
    float      x[1] = { 8 }, y[1];
    CornuModel *model = cornu_sequential(.input_shape = { 1 });
    CornuLayer *scaler = cornu_normalization();
    expect_ok(cornu_adapt(scaler, .x = cornu_array((void *)first, CORNU_U8, 4, 1)));
    expect_ok(cornu_model_add(model, scaler));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 1, 1),
                                     cornu_array(y, CORNU_F32, 1, 1)));
    assert_float_equal(y[0], 4.0 / sqrt(2.0), 1e-5);
    expect_ok(cornu_adapt(scaler, .x = cornu_array((void *)second, CORNU_F32, 2, 1)));
    expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 1, 1),
                                     cornu_array(y, CORNU_F32, 1, 1)));
    assert_float_equal(y[0], -0.2, 1e-6);
    cornu_model_free(model);
}

/* ---- All layers in one model ---- */

enum { STEPS = 4, CHANNELS = 6, CLASSES = 3, ROWS = 8 };

static CornuModel *make_model(const char *policy)
{
    cornu_set_random_seed(7);
    CornuModel *model = cornu_sequential(.input_shape = { STEPS, CHANNELS }, .policy = policy);
    cornu_model_add(model, cornu_normalization(.mean = CORNU_ZERO, .variance = 4.0));
    cornu_model_add(model, cornu_normalization(.axes = { 1, -1 }, .invert = true));
    cornu_model_add(model, cornu_normalization(CORNU_ZERO));
    cornu_model_add(model, cornu_multi_head_attention(2, 3, .dropout = 0.25, .sliding_window = 3,
                                                      .use_causal_mask = true, .use_gate = true));
    cornu_model_add(model, cornu_layer_normalization(.axes = { -1, 1 }, .epsilon = CORNU_ZERO,
                                                     .gamma_constraint = cornu_non_neg()));
    cornu_model_add(model, cornu_group_normalization(3, .no_scale = true));
    cornu_model_add(model, cornu_rms_normalization(.frozen = true));
    cornu_model_add(model, cornu_relu(6.0, 0.1, .threshold = 0.05));
    cornu_model_add(model, cornu_relu(CORNU_ZERO, 0.5));
    cornu_model_add(model, cornu_leaky_relu(CORNU_ZERO));
    cornu_model_add(model, cornu_dense(CHANNELS, .activation = CORNU_GELU_APPROXIMATE));
    cornu_model_add(model, cornu_prelu(CORNU_HE_NORMAL, .shared_axes = { 1 }));
    cornu_model_add(model, cornu_prelu());
    cornu_model_add(model, cornu_elu(0.5));
    cornu_model_add(model, cornu_unit_normalization(.axes = { 1, 2 }));
    cornu_model_add(model, cornu_softmax(1));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_HARD_SILU));
    if (cornu_error_pending() || !cornu_model_built(model)) fail_msg("%s", cornu_error_message());
    return model;
}

static void predict(CornuModel *model, CornuDevice *device, float y[ROWS][CLASSES])
{
    float x[ROWS * STEPS * CHANNELS];
    for (int i = 0; i < ROWS * STEPS * CHANNELS; i++) x[i] = (float)(i * 29 % 31) / 8.0f - 2.0f;
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .device = device,
                            .optimizer = cornu_sgd(.learning_rate = 0.1)));
    expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, ROWS, STEPS, CHANNELS),
                                     cornu_array(y, CORNU_F32, ROWS, CLASSES)));
    if (y[0][0] == 0.0f) fail_msg("nothing comes out");
    float labels[ROWS][CLASSES] = { { 1, 2, 3 } };
    double loss;
    expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, ROWS, STEPS, CHANNELS),
                                   cornu_array(labels, CORNU_F32, ROWS, CLASSES), &loss));
    assert_true(isfinite(loss));
}

/* The same predictions, and the same bytes when it is saved again. */
static void files_hold_all_arguments(void **state)
{
    static unsigned char a[200000], b[200000];
    float y[2][ROWS][CLASSES];
    char  path[2][FILES_PATH];
    (void)state;
    strcpy(path[0], files_path(folder, "a.safetensors"));
    strcpy(path[1], files_path(folder, "b.safetensors"));
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = make_model("float32");
    expect_ok(cornu_model_save(model, path[0]));
    CornuModel *loaded = cornu_model_load(path[0]);
    if (!loaded) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_model_save(loaded, path[1]));
    const size_t size = files_read(path[0], a, sizeof a);
    assert_int_equal(files_read(path[1], b, sizeof b), size);
    assert_memory_equal(a, b, size);
    assert_non_null(strstr((const char *)a + 8, "\\\"axis\\\":[]"));
    assert_non_null(strstr((const char *)a + 8, "\\\"shared_axes\\\":null"));
    predict(model, device, y[0]);
    predict(loaded, device, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    cornu_model_free(model);
    cornu_model_free(loaded);
    cornu_device_close(device);
    unlink(path[0]);
    unlink(path[1]);
}

/* Predictions with 8 or 11 bits are close to those with 24. */
static void computes_in_mixed_precision(void **state)
{
    static const struct { const char *device, *policy; double near; } on[] = {
        { "tpu", "mixed_bfloat16", 0.03 }, { "cpu", "mixed_bfloat16", 0.03 },
        { "reference", "mixed_float16", 0.03 }, { "tpu", "float32", 1e-4 },
    };
    float want[ROWS][CLASSES], got[ROWS][CLASSES];
    (void)state;
    CornuModel *model = make_model("float32");
    predict(model, NULL, want);
    cornu_model_free(model);
    for (size_t k = 0; k < sizeof on / sizeof *on; k++) {
        CornuDevice *device = cornu_device_open(on[k].device);
        model = make_model(on[k].policy);
        predict(model, device, got);
        for (int i = 0; i < ROWS * CLASSES; i++)
            assert_float_equal((&got[0][0])[i], (&want[0][0])[i], on[k].near);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* ---- Masks ---- */

/* Masked steps get probability 0; a row with all steps masked gives zeros. */
static void softmax_leaves_masked_steps_out(void **state)
{
    (void)state;
    const uint8_t counts[2][3] = { { 1, 0, 1 }, { 0, 0, 0 } };
    const float   x[2][3] = { { 2, 5, 2 }, { 1, 2, 3 } }, want[2][3] = { { 0.5f, 0, 0.5f } };
    float         y[2][3];
    CornuDevice  *device = cornu_device_open("cpu");
    CornuGraph   *graph = cornu_graph_create(device);
    CornuLayer   *layer = cornu_softmax();
    CornuTensor  *in = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3));
    CornuTensor  *mask = cornu_graph_input(graph, cornu_type(CORNU_BOOL, 2, 3));
    expect_ok(cornu_layer_build(layer, cornu_shape(CORNU_NONE, 3)));
    CornuTensor *out = cornu_layer_call(layer, &(CornuCall){ .graph = graph, .mask = mask }, in);
    CornuArray   to = cornu_array(y, CORNU_F32, 2, 3);
    expect_ok(cornu_graph_feed(in, cornu_array((void *)x, CORNU_F32, 2, 3)));
    expect_ok(cornu_graph_feed(mask, cornu_array((void *)counts, CORNU_BOOL, 2, 3)));
    expect_ok(cornu_run(graph, &out, 1, &to));
    for (int i = 0; i < 6; i++) assert_float_equal(y[i / 3][i % 3], want[i / 3][i % 3], 1e-6);
    cornu_graph_free(graph);
    cornu_layer_free(layer);
    cornu_device_close(device);
}

/* ---- Mistakes ---- */

static void refuses(CornuLayer *layer, const char *part)
{
    assert_null(layer);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, part);
}

static void refuses_input(CornuLayer *layer, CornuShape input, CornuStatus status,
                          const char *part)
{
    assert_non_null(layer);
    expect_error(cornu_layer_build(layer, input), status, part);
    cornu_layer_free(layer);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    const CornuShape input = cornu_shape(CORNU_NONE, 4, 6);
    refuses(cornu_layer_normalization(-1, -0.5), "layer_normalization: .epsilon is -0.5");
    refuses(cornu_layer_normalization(1, .axes = { 2 }), "both .axis and .axes are given");
    refuses(cornu_rms_normalization(.epsilon = NAN), "rms_normalization: .epsilon is");
    refuses(cornu_group_normalization(-2), "group_normalization: .groups is -2");
    refuses(cornu_normalization(.mean = 1.0), ".mean is given without .variance");
    refuses(cornu_normalization(.mean = 1.0, .variance = -1.0), "expected finite ones");
    refuses(cornu_relu(-1.0), "re_lu: .max_value is -1, expected 0 or more");
    refuses(cornu_relu(.threshold = -1.0), ".threshold is -1");
    refuses(cornu_leaky_relu(-0.1), "leaky_re_lu: .negative_slope is -0.1");
    refuses(cornu_elu(INFINITY), "elu: .alpha is inf");
    refuses_input(cornu_layer_normalization(3), input, CORNU_ERR_ARGUMENT,
                  "layer_normalization: the input is (None, 4, 6), which has no axis 3");
    refuses_input(cornu_layer_normalization(.axes = { 1, -2 }), input, CORNU_ERR_ARGUMENT,
                  "axis 1 is given twice");
    refuses_input(cornu_unit_normalization(-3), input, CORNU_ERR_ARGUMENT, "no axis -3 after");
    refuses_input(cornu_softmax(CORNU_ZERO), input, CORNU_ERR_ARGUMENT, "no axis 0 after");
    refuses_input(cornu_group_normalization(4), input, CORNU_ERR_SHAPE,
                  "(None, 4, 6) has 6 channels, expected a multiple of the 4 groups");
    refuses_input(cornu_prelu(.shared_axes = { 3 }), input, CORNU_ERR_ARGUMENT,
                  ".shared_axes has 3, which the input (None, 4, 6) lacks");
    refuses_input(cornu_activation(CORNU_GLU), cornu_shape(CORNU_NONE, 3), CORNU_ERR_SHAPE,
                  "glu: x is (1, 3), expected an even extent");
}

static void adapt_refuses(void **state)
{
    (void)state;
    float x[6] = { 0 };
    const CornuArray wide = cornu_array(x, CORNU_F32, 2, 3), none = cornu_array(x, CORNU_F32, 0, 3);
    CornuLayer *layer = cornu_normalization(), *given = cornu_normalization(.mean = 1.0,
                                                                            .variance = 1.0);
    CornuLayer *dense = cornu_dense(2);
    expect_ok(cornu_layer_build(layer, cornu_shape(CORNU_NONE, 2)));
    expect_error(cornu_adapt(layer, .x = wide), CORNU_ERR_SHAPE,
                 "normalization: the statistics of the data are (3,), expected (2,)");
    expect_error(cornu_adapt(layer, .x = none), CORNU_ERR_ARGUMENT, "the data have no rows");
    expect_error(cornu_adapt(layer), CORNU_ERR_ARGUMENT, "neither a data set nor .x");
    expect_error(cornu_adapt(given, .x = wide), CORNU_ERR_ARGUMENT,
                 ".mean and .variance are given, nothing to adapt");
    expect_error(cornu_adapt(dense, .x = wide), CORNU_ERR_ARGUMENT,
                 "dense: is of class Dense, expected Normalization");
    cornu_layer_free(layer);
    cornu_layer_free(given);
    cornu_layer_free(dense);
}

/* Making, adapting and building, which records it, of one layer. */
static CornuStatus make_one(int i)
{
    static const float data[24] = { 1, 2, 3 };
    static const CornuShape input = { 3, { CORNU_NONE, 4, 6 } };
    CornuLayer *layer = i == 0   ? cornu_layer_normalization()
                        : i == 1 ? cornu_group_normalization(2)
                        : i == 2 ? cornu_rms_normalization()
                        : i == 3 ? cornu_unit_normalization()
                        : i == 4 ? cornu_normalization()
                        : i == 5 ? cornu_relu(6.0, 0.1, 0.5)
                        : i == 6 ? cornu_prelu()
                        : i == 7 ? cornu_softmax(1)
                        : i == 8 ? cornu_activation(CORNU_GLU)
                                 : cornu_multi_head_attention(2, 3, .use_causal_mask = true);
    CornuStatus status = cornu_error_take();
    if (!status && i == 4)
        status = cornu_adapt(layer, .x = cornu_array((void *)data, CORNU_F32, 1, 4, 6));
    if (!status) status = cornu_layer_build(layer, input);
    cornu_layer_free(layer);
    return status ? status : cornu_error_take();
}

static void failures_of_memory_are_reported(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int i = 0; i < 10; i++) {
        CornuStatus status = CORNU_ERR_MEMORY;
        int         n = 0;
        for (; status == CORNU_ERR_MEMORY && n < 10000; n++) {
            allocations_fail_after(n);
            status = make_one(i);
            allocations_fail_after(NEVER);
        }
        if (status) fail_msg("layer %d, allocation %d: %s", i, n, cornu_error_message());
        assert_true(n > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapts_to_data),
        cmocka_unit_test(adapts_compiled_models),
        cmocka_unit_test(files_hold_all_arguments),
        cmocka_unit_test(computes_in_mixed_precision),
        cmocka_unit_test(softmax_leaves_masked_steps_out),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(adapt_refuses),
        cmocka_unit_test(failures_of_memory_are_reported),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
