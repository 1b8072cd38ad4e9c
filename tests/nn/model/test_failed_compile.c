/* A compile that fails leaves the model as it was, and without memory its weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../../../nn/cornu.h"

enum { ROWS = 8, FEATURES = 12, UNITS = 30, STEPS = 4 };

static float x[ROWS * FEATURES], y[ROWS * UNITS];

static CornuModel *mlp(void)
{
    cornu_set_random_seed(5);
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(64, .name = "up", .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dense(UNITS, .name = "down"));
    return model;
}

static CornuStatus compile_on(CornuModel *model, CornuDevice *device)
{
    return cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01), .device = device,
                         .loss = CORNU_MEAN_SQUARED_ERROR, .metrics = { cornu_metric("mae") });
}

static CornuStatus step(CornuModel *model, double values[2])
{
    return cornu_train_on_batch(model, .values = values,
                                .x = cornu_array(x, CORNU_F32, ROWS, FEATURES),
                                .y = cornu_array(y, CORNU_F32, ROWS, UNITS));
}

static void predict(CornuModel *model, float to[ROWS * UNITS])
{
    assert_int_equal(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, ROWS, FEATURES),
                                            cornu_array(to, CORNU_F32, ROWS, UNITS)), CORNU_OK);
}

static CornuDevice *meshed(const CornuLayoutRow *rows)
{
    const CornuMesh mesh = cornu_device_mesh(.shape = { 2, 4 });
    CornuDevice    *device = cornu_device_open("cpu", .shards = 8, .threads = 1);
    assert_int_equal(cornu_device_set_mesh(device, &mesh, NULL, rows), CORNU_OK);
    return device;
}

/* The second layer does not divide; a name is wrong, after rows that fit; an axis too many. */
static const CornuLayoutRow wrong[][3] = {
    { { "up/kernel", { NULL, "model" } }, { "down/kernel", { NULL, "model" } } },
    { { "up/kernel", { NULL, "model" } }, { "dawn/kernel", { "model" } } },
    { { "up/kernel", { NULL, "model" } }, { "down/bias", { NULL, "model" } } },
    { { "up/kernel", { NULL, "model" } }, { "dawn/output", { NULL, "model" } } },
};
static const char *const messages[] = {
    "down/kernel: axis 1 of f32 (64, 30) does not divide into the 4 slices of its layout",
    "mlp: the layout map's \"dawn/kernel\" is for none of its 4 weights, whose names are as "
    "up/kernel",
    "down/bias is f32 (30,), but its layout is of 2 axes",
    "mlp: the layout map's \"dawn/output\" is for none of its layers' outputs, whose names are as "
    "up/output",
};
enum { WRONG = sizeof wrong / sizeof *wrong };

static void fail_to_compile(CornuModel *model, int which)
{
    CornuDevice *device = meshed(wrong[which]);
    assert_int_not_equal(compile_on(model, device), CORNU_OK);
    assert_string_equal(cornu_error_message(), messages[which]);
    cornu_error_take();
    cornu_device_close(device);
}

/* It trains on with its optimizer's slots, to the bits of one that nothing happened to. */
static void compiled_as_before(void **state)
{
    (void)state;
    CornuModel *model = mlp(), *other = mlp();
    double      values[2], expected[2];
    assert_int_equal(compile_on(model, NULL), CORNU_OK);
    assert_int_equal(compile_on(other, NULL), CORNU_OK);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(step(model, values), CORNU_OK);
        assert_int_equal(step(other, expected), CORNU_OK);
        assert_memory_equal(values, expected, sizeof values);
        fail_to_compile(model, i % WRONG);
    }
    cornu_model_free(model);
    cornu_model_free(other);
}

/* Of one that was never compiled the next call says so; it predicts, and can be compiled. */
static void uncompiled_as_before(void **state)
{
    (void)state;
    static const CornuLayoutRow right[] = { { "up/kernel", { NULL, "model" } }, { 0 } };
    static float before[ROWS * UNITS], after[ROWS * UNITS];
    CornuModel  *model = mlp();
    CornuDevice *device = meshed(right);
    double       values[2];
    predict(model, before);
    for (int i = 0; i < WRONG; i++) {
        fail_to_compile(model, i);
        assert_int_equal(step(model, values), CORNU_ERR_ARGUMENT);
        assert_non_null(strstr(cornu_error_message(), "not compiled; cornu_compile comes first"));
        cornu_error_take();
        predict(model, after);
        assert_memory_equal(before, after, sizeof before);
    }
    assert_int_equal(compile_on(model, device), CORNU_OK);
    assert_int_equal(step(model, values), CORNU_OK);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* Weights are moved one by one until a shard's memory is full, which the next step says again; it
 * is compiled elsewhere with all of them. test_memory.c has where there is memory later. */
static void without_memory(void **state)
{
    (void)state;
    static float before[ROWS * UNITS], after[ROWS * UNITS];
    CornuModel  *model = mlp();
    CornuDevice *small = cornu_device_open("cpu", .shards = 2, .shard_memory = 6000);
    double       values[2], expected[2];
    assert_int_equal(compile_on(model, NULL), CORNU_OK);
    assert_int_equal(step(model, values), CORNU_OK);
    predict(model, before);
    assert_int_equal(compile_on(model, small), CORNU_ERR_MEMORY);
    cornu_error_take();
    assert_int_equal(step(model, values), CORNU_ERR_MEMORY);
    cornu_error_take();
    assert_int_equal(compile_on(model, NULL), CORNU_OK);
    predict(model, after);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(step(model, values), CORNU_OK);
    assert_int_equal(step(model, expected), CORNU_OK);
    assert_true(expected[0] < values[0]);
    cornu_model_free(model);
    cornu_device_close(small);
}

/* Another model is compiled with one of its layers, elsewhere. */
static void with_a_shared_layer(void **state)
{
    (void)state;
    CornuDevice *here = cornu_device_open("cpu"), *there = cornu_device_open("cpu");
    CornuSymbol *in = cornu_input(.shape = { FEATURES });
    CornuLayer  *shared = cornu_dense(UNITS, .name = "shared");
    CornuModel  *first = cornu_model(.inputs = { in },
                                     .outputs = { cornu_call(shared, in) });
    CornuModel  *second = cornu_model(
        .inputs = { in },
        .outputs = { cornu_call(cornu_dense(UNITS, .name = "own"), cornu_call(shared, in)) });
    double       values[2], expected[2];
    assert_int_equal(compile_on(first, here), CORNU_OK);
    assert_int_equal(compile_on(second, here), CORNU_OK);
    assert_int_equal(step(second, values), CORNU_OK);
    assert_int_equal(compile_on(second, there), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "shared: is on the device of another model"));
    cornu_error_take();
    assert_int_equal(step(second, expected), CORNU_OK);
    assert_true(expected[0] < values[0]);
    cornu_model_free(first);
    cornu_model_free(second);
    cornu_device_close(here);
    cornu_device_close(there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_as_before), cmocka_unit_test(uncompiled_as_before),
        cmocka_unit_test(without_memory), cmocka_unit_test(with_a_shared_layer),
    };
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < ROWS * UNITS; i++) y[i] = (float)(i * 53 % 97) / 48.0f - 1.0f;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
