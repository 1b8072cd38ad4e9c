/* Quantizing the weights of models, beside Keras' model.quantize (tests/golden/models/quantized),
 * and what is refused. Predictions and training of such models are in saving/test_models.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/saving/files_internal.h"
#include "../../allocations.h"
#include "../golden.h"
#include "../../skip.h"

#define GOLDEN "tests/golden/models/quantized.safetensors"

enum { MOST = CORNU_MAX_MODEL_TENSORS };

static const char *path_at(const json_t *about, const char *list, int i)
{
    return json_string_value(json_array_get(json_object_get(about, list), (size_t)i));
}

/* The model before, with its weights. */
static CornuModel *float_model(Golden *golden, const char *name)
{
    const json_t *about = json_object_get(golden->cases, name);
    CornuModel   *model = cornu__model_from_config(json_object_get(about, "float"), NULL);
    if (!model) fail_msg("%s", cornu_error_message());
    CornuArray values[MOST];
    const int  count = golden_arrays(golden, name, "f", values, MOST);
    for (int i = 0; i < count; i++)
        expect_ok(cornu_weight_write(cornu_model_find_weight(model, path_at(about, "float_paths",
                                                                            i)), values[i]));
    return model;
}

/* Whole numbers must be the same, scales but for roundings. */
static void expect_weights(Golden *golden, const char *name, CornuModel *model)
{
    const json_t *about = json_object_get(golden->cases, name);
    CornuArray    want[MOST];
    const int     count = golden_arrays(golden, name, "w", want, MOST);
    assert_int_equal(cornu_model_weight_count(model), count);
    for (int i = 0; i < count; i++) {
        const CornuWeight *weight = cornu_model_find_weight(model, path_at(about, "paths", i));
        if (!weight) fail_msg("%s: no weight %s", name, path_at(about, "paths", i));
        const CornuArray got = cornu_array_from(malloc(cornu_type_bytes(want[i].type)),
                                                want[i].type);
        expect_ok(cornu_weight_read(weight, got));
        expect_near(weight->path, got.data, want[i],
                    weight->stored == CORNU_STORED_I8 ? 0.0 : 1e-6);
        free(got.data);
    }
}

static void expect_predictions(Golden *golden, const char *name, CornuModel *model,
                               CornuDevice *device)
{
    CornuArray x[MOST], want;
    golden_arrays(golden, name, "x", x, MOST);
    want = golden_array(golden, name, "y0");
    float *got = malloc(cornu_type_bytes(want.type));
    expect_ok(cornu_compile(model, .device = device));
    expect_ok(cornu_predict_on_batch_many(model, x, &(CornuArray){ want.type, got }));
    expect_near(name, got, want, 1e-5);
    free(got);
}

static void weights_become_keras(void **state)
{
    (void)state;
    Golden       golden = golden_open(GOLDEN);
    CornuDevice *device = expect_device("cpu");
    const char  *name;
    json_t      *about;
    int          cases = 0;
    json_object_foreach(golden.cases, name, about) {
        const char *mode = json_string_value(json_object_get(about, "mode"));
        if (!mode) continue;
        CornuModel *model = float_model(&golden, name);
        expect_ok(cornu_model_quantize_weights(model, mode));
        expect_weights(&golden, name, model);
        expect_predictions(&golden, name, model, device);
        cornu_model_free(model);
        cases++;
    }
    assert_true(cases >= 12);
    cornu_device_close(device);
    golden_close(&golden);
}

static CornuModel *small(CornuLayer *layer)
{
    CornuModel *model = cornu_sequential(.name = "small", .input_shape = { 4, 3 });
    cornu_model_add(model, layer);
    expect_ok(cornu_error_take());
    return model;
}

static void mistakes_are_named(void **state)
{
    (void)state;
    CornuModel *model = small(cornu_dense(2, .name = "d"));
    CornuLayer *layer = cornu_model_layer(model, 0);
    expect_error(cornu_model_quantize_weights(model, "int7"), CORNU_ERR_ARGUMENT, "\"int7\"");
    expect_error(cornu_model_quantize_weights(model, "int4/0"), CORNU_ERR_ARGUMENT, "at least 1");
    expect_ok(cornu_model_quantize_weights(model, "int8"));
    expect_error(cornu_model_quantize_weights(model, "int8"), CORNU_ERR_ARGUMENT,
                 "d: the layer is quantized already, by the policy int8_from_float32");
    expect_error(cornu_layer_quantize_weights(layer, "int8"), CORNU_ERR_ARGUMENT, "already");
    cornu_model_free(model);

    model = small(cornu_flatten());
    expect_error(cornu_layer_quantize_weights(cornu_model_layer(model, 0), "int8"),
                 CORNU_ERR_ARGUMENT, "expected a Dense, EinsumDense, Embedding");
    cornu_model_free(model);

    model = small(cornu_dense(2, .name = "d"));
    expect_ok(cornu_compile(model));
    expect_error(cornu_model_quantize_weights(model, "int8"), CORNU_ERR_ARGUMENT, "is compiled");
    cornu_model_free(model);

    assert_null(cornu_flatten(.dtype = "int8_from_float32"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "class Flatten have no form");
    assert_null(cornu_embedding(5, 2, .dtype = "float8_from_float32"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "expected a Dense or EinsumDense");
    assert_null(cornu_dense(2, .dtype = "int8_from_float16"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "is not known");
    assert_null(cornu_sequential(.policy = "int8_from_float32"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "not for whole models");
}

/* Keras' default blocks are 128 long. */
static void blocks_have_a_default(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 130 });
    cornu_model_add(model, cornu_dense(3, .name = "d"));
    expect_ok(cornu_model_quantize_weights(model, "int4"));
    const CornuWeight *scale = cornu_model_find_weight(model, "d/kernel_scale");
    assert_int_equal(scale->type.shape.extent[0], 2);
    assert_int_equal(cornu_model_find_weight(model, "d/kernel")->type.shape.extent[1], 2);
    cornu_model_free(model);
}

/* A failure leaves the floats. */
static void out_of_memory(void **state)
{
    (void)state;
    const float kernel[6] = { 1, 2, 3, 4, 5, 6 };
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int i = 0;; i++) {
        CornuModel  *model = small(cornu_dense(2, .name = "d"));
        CornuWeight *weight = cornu_model_weight(model, 0);
        float        back[6];
        expect_ok(cornu_weight_write(weight, cornu_array((float *)kernel, CORNU_F32, 3, 2)));
        allocations_fail_once(i);
        const CornuStatus status = cornu_layer_quantize_weights(cornu_model_layer(model, 0),
                                                                "int4/2");
        allocations_fail_after(NEVER);
        cornu_error_take();
        if (status) {
            assert_int_equal(status, CORNU_ERR_MEMORY);
            assert_int_equal(cornu_model_layer(model, 0)->weight_count, 2);
            expect_ok(cornu_weight_read(cornu_model_layer(model, 0)->weights[0],
                                        cornu_array(back, CORNU_F32, 3, 2)));
            assert_memory_equal(back, kernel, sizeof back);
        }
        cornu_model_free(model);
        if (!status) break;
        assert_true(i < 100);
    }
}

/* The step of a custom gradient, and a tensor that it is the gradient of. */
static CornuTensor *thrice(void *context, CornuTensor *d_y)
{
    return cornu_op_scale(d_y, *(double *)context);
}

static void gradients_of_ones_own(void **state)
{
    (void)state;
    CornuDevice *device = expect_device("cpu");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2)), *d_x;
    double       factor = 3.0;
    CornuTensor *twice = cornu_op_scale(x, 2.0);
    CornuTensor *y = cornu_op_with_gradient(cornu_op_floor(x), twice, thrice, &factor);
    expect_ok(cornu_gradients(cornu_op_sum(y), &x, 1, &d_x));
    float      got[2], in[2] = { 1.5f, -0.5f }, floors[2];
    CornuArray to[] = { cornu_array(got, CORNU_F32, 2), cornu_array(floors, CORNU_F32, 2) };
    expect_ok(cornu_graph_feed(x, cornu_array(in, CORNU_F32, 2)));
    expect_ok(cornu_run(graph, (CornuTensor *[]){ d_x, y }, 2, to));
    assert_float_equal(got[0], 6.0f, 0.0f);
    assert_float_equal(floors[1], -1.0f, 0.0f);
    assert_null(cornu_op_with_gradient(x, x, NULL, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "an input");
    assert_null(cornu_op_with_gradient(twice, y, NULL, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "recorded before");
    assert_null(cornu_op_with_gradient(cornu_op_sum(x), twice, NULL, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "expected the same");
    cornu_graph_free(graph);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_become_keras),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(blocks_have_a_default),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(gradients_of_ones_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
