/* Layers of one input against real Keras (tests/golden/pieces, norms and convs), on each device:
 * outputs, gradients, moving statistics; and invalid arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

/* ---- Against Keras ---- */

enum { MOST = 12 };

/* The results: the output, gradients of sum(y d_y), and assigned weights. */
static void run_case(Golden *golden, const char *name, const json_t *settings, CornuDevice *device)
{
    CornuArray  x = golden_array(golden, name, "x"), d_y = golden_array(golden, name, "d_y");
    CornuModel *model = golden_layer(settings, x.type);
    CornuLayer *layer = cornu_model_layer(model, 0);
    char        what[256];
    for (int i = 0; i < layer->weight_count; i++)
        expect_ok(cornu_weight_write(
            layer->weights[i],
            golden_array(golden, name, strrchr(layer->weights[i]->path, '/') + 1)));
    expect_ok(cornu_compile(model, .device = device));

    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *zero = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 0.0);
    CornuCall    call = { .graph = graph, .seed = zero, .iteration = zero, .position = zero,
                          .training = json_is_true(json_object_get(settings, "training")) };
    call.count = cornu_op_constant(graph, cornu_scalar(CORNU_I64), (double)x.type.shape.extent[0]);
    CornuTensor *in = cornu_graph_input(graph, x.type), *wanted[MOST] = { in };
    CornuTensor *weight_of_y = cornu_graph_input(graph, d_y.type);
    CornuArray   mask = golden_array(golden, name, "mask");   /* (B, T), of bytes */
    if (mask.data) {
        mask.type.dtype = CORNU_BOOL;
        call.mask = cornu_graph_input(graph, mask.type);
        expect_ok(cornu_graph_feed(call.mask, mask));
    }
    CornuTensor *y = cornu_layer_call(layer, &call, in);
    for (int i = 0; i < layer->weight_count; i++)
        wanted[i + 1] = cornu_layer_read(layer, &call, i);
    CornuTensor *fetches[MOST] = { y };
    expect_ok(cornu_gradients(cornu_op_sum(cornu_op_multiply(y, weight_of_y)), wanted,
                              layer->weight_count + 1, fetches + 1));
    expect_ok(cornu_graph_feed(in, x));
    expect_ok(cornu_graph_feed(weight_of_y, d_y));

    CornuArray out[MOST];
    const int  count = layer->weight_count + 2;
    for (int i = 0; i < count; i++) {
        CornuType type = cornu_tensor_type(fetches[i]);
        out[i] = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    }
    expect_ok(cornu_run(graph, fetches, count, out));
    snprintf(what, sizeof what, "%s/y", name);
    expect_near(what, out[0].data, golden_array(golden, name, "y"), 1e-5);
    snprintf(what, sizeof what, "%s/d_x", name);
    expect_near(what, out[1].data, golden_array(golden, name, "d_x"), 2e-5);
    for (int i = 0; i < layer->weight_count; i++) {
        const CornuWeight *weight = layer->weights[i];
        const char        *plain = strrchr(weight->path, '/') + 1;
        char               of[64];
        snprintf(of, sizeof of, weight->non_trainable ? "after_%s" : "d_%s", plain);
        CornuArray want = golden_array(golden, name, of);
        if (!want.data) continue;
        if (weight->non_trainable)
            expect_ok(cornu_weight_read(weight, out[i + 2]));
        snprintf(what, sizeof what, "%s/%s", name, of);
        expect_near(what, out[i + 2].data, want, 2e-5);
    }
    for (int i = 0; i < count; i++) free(out[i].data);
    cornu_graph_free(graph);
    cornu_model_free(model);
}

static void matches_keras(void **state)
{
    static const char *const devices[] = { "reference", "cpu", "tpu" };
    char        path[128];
    const char *name;
    json_t     *settings;
    snprintf(path, sizeof path, "tests/golden/pieces/%s.safetensors", (const char *)*state);
    Golden golden = golden_open(path);
    expect_ok(cornu_set_dtype_policy("float32"));
    for (int d = 0; d < 3; d++) {
        CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
        assert_non_null(device);
        json_object_foreach(golden.cases, name, settings)
            run_case(&golden, name, settings, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* ---- Refusals: the layer and both sides are named ---- */

static void refuses(CornuLayer *layer, CornuStatus status, const char *part)
{
    assert_null(layer);
    expect_error(cornu_error_take(), status, part);
}

static void constructors_refuse(void **state)
{
    (void)state;
    refuses(cornu_dense(), CORNU_ERR_ARGUMENT, "dense: .units is 0, expected at least 1");
    refuses(cornu_dense(3, .activation = 99), CORNU_ERR_ARGUMENT, ".activation is 99");
    refuses(cornu_conv2d(8), CORNU_ERR_ARGUMENT, "conv2d: .kernel_size is required");
    refuses(cornu_conv2d(8, 3, .kernel_size = { 3 }), CORNU_ERR_ARGUMENT,
            "both .kernel and .kernel_size");
    refuses(cornu_conv2d(8, 3, .groups = 3, .name = "c"), CORNU_ERR_ARGUMENT,
            "c: .groups is 3, expected a divisor of the 8 filters");
    refuses(cornu_conv2d(8, 3, .padding = CORNU_CAUSAL), CORNU_ERR_ARGUMENT, ".padding is 2");
    refuses(cornu_max_pooling2d(.padding = CORNU_CAUSAL), CORNU_ERR_ARGUMENT, ".padding is 2");
    refuses(cornu_conv2d(8, 3, -1), CORNU_ERR_ARGUMENT, ".strides is -1");
    refuses(cornu_average_pooling2d(), CORNU_ERR_ARGUMENT, ".pool_size is required");
    refuses(cornu_max_pooling2d(2, .pool_size = { 2 }), CORNU_ERR_ARGUMENT, "both .pool");
    refuses(cornu_dropout(1.5), CORNU_ERR_ARGUMENT, "dropout: .rate is 1.5, expected 0 to 1");
    refuses(cornu_reshape(), CORNU_ERR_ARGUMENT, ".target_shape has no extents");
    refuses(cornu_batch_normalization(.momentum = 2), CORNU_ERR_ARGUMENT, ".momentum is 2");
    refuses(cornu_rescaling(), CORNU_ERR_ARGUMENT, ".scale is required");
    refuses(cornu_rescaling(2.0, .scales = cornu_numbers(1.0)), CORNU_ERR_ARGUMENT,
            "both .scale and .scales");
    refuses(cornu_normalization(.means = cornu_numbers(1.0)), CORNU_ERR_ARGUMENT,
            ".means and .variances are not both given");
    refuses(cornu_dropout(0.5, .noise_shape = { -3 }), CORNU_ERR_ARGUMENT, ".noise_shape has -3");
}

/* Calls need not be checked one by one: the model keeps its first failure until it is used. */
static void impossible_shapes_are_named(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 2, 2, 3 });
    expect_ok(cornu_model_add(model, cornu_max_pooling2d(2)));
    expect_error(cornu_model_add(model, cornu_max_pooling2d(2)), CORNU_ERR_SHAPE,
                 "max_pooling2d_1: the input (None, 1, 1, 3) is smaller than the pool (2, 2)");
    assert_int_equal(cornu_model_add(model, cornu_flatten()), CORNU_ERR_SHAPE);
    expect_error(cornu_compile(model, .optimizer = cornu_sgd(), .loss = cornu_loss("mse")),
                 CORNU_ERR_SHAPE, "max_pooling2d_1: the input (None, 1, 1, 3)");
    assert_false(cornu_error_pending());
    cornu_model_free(model);

    model = cornu_sequential(.input_shape = { 5 });
    expect_error(cornu_model_add(model, cornu_conv2d(2, 3)), CORNU_ERR_SHAPE,
                 "conv2d: the input is (None, 5), expected (B, H, W, C)");
    cornu_model_free(model);
}

/* An error inside nested calls stays pending until it is taken. */
static void pending_errors_reach_compile(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, cornu_dense(-1));
    cornu_model_add(model, cornu_dense(2));
    expect_error(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR), CORNU_ERR_ARGUMENT,
                 "dense: .units is -1");
    assert_true(cornu_error_pending());
    cornu_error_take();
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        { "dense", matches_keras, NULL, NULL, "layers" },
        { "conv2d", matches_keras, NULL, NULL, "conv2d" },
        { "pooling", matches_keras, NULL, NULL, "pooling" },
        { "batch_normalization", matches_keras, NULL, NULL, "batch_normalization" },
        { "activations", matches_keras, NULL, NULL, "activations" },
        { "normalizations", matches_keras, NULL, NULL, "../norms/layers" },
        { "batches", matches_keras, NULL, NULL, "../norms/batch" },
        { "more_activations", matches_keras, NULL, NULL, "../norms/activations" },
        { "convolutions", matches_keras, NULL, NULL, "../convs/convolutions" },
        { "spatial", matches_keras, NULL, NULL, "../convs/spatial" },
        { "volumes", matches_keras, NULL, NULL, "../convs/volumes" },
        { "adaptive", matches_keras, NULL, NULL, "../convs/adaptive" },
        { "channels_first", matches_keras, NULL, NULL, "../convs/channels_first" },
        { "augmentation", matches_keras, NULL, NULL, "../convs/augmentation" },
        { "numbers", matches_keras, NULL, NULL, "../preprocessing/numbers" },
        { "images", matches_keras, NULL, NULL, "../preprocessing/images" },
        { "categories", matches_keras, NULL, NULL, "../preprocessing/categories" },
        cmocka_unit_test(constructors_refuse),
        cmocka_unit_test(impossible_shapes_are_named),
        cmocka_unit_test(pending_errors_reach_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
