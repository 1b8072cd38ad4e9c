/* cornu_operation: keras.ops on symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../datasets/files.h"
#include "../../expect.h"

static float x_data[3][4] = { { 1, 5, 2, 0 }, { -1, -2, -3, 4 }, { 9, 0, 0, 0 } };

static void expect_outputs(CornuModel *model)
{
    static const float wanted[3] = { 1, 3, 0 };
    float argmax[3], sum[3][4];
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd()));
    expect_ok(cornu_predict(model, .x = cornu_array(x_data, CORNU_F32, 3, 4),
                            .verbose = CORNU_SILENT,
                            .tos = { cornu_array(argmax, CORNU_F32, 3),
                                     cornu_array(sum, CORNU_F32, 3, 4) }));
    assert_memory_equal(argmax, wanted, sizeof wanted);
    for (int i = 0; i < 12; i++) assert_true((&sum[0][0])[i] == 2.0f * (&x_data[0][0])[i]);
    cornu_model_free(model);
}

static void operations_are_layers(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuModel  *model = cornu_model(.inputs = { x },
                                     .outputs = { cornu_operation("argmax", "{\"axis\": -1}", x),
                                                  cornu_operation("add", NULL, x, x) });
    const char  *path = files_path(folder, "model.safetensors");
    expect_ok(cornu_model_save(model, path));
    expect_outputs(model);
    expect_outputs(cornu_model_load(path));
}

/* 1 - x, and x and y side by side, of which each gets its own operand. */
static void numbers_and_lists_are_arguments(void **state)
{
    (void)state;
    float        less[3][4], both[3][8];
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuSymbol *y = cornu_operation("subtract",
                                     "{\"args\": [1.0, null], \"name\": \"less\"}", x);
    CornuSymbol *z = cornu_operation("concatenate",
                                     "{\"args\": [[null, null]], \"axis\": -1}", x, y);
    CornuModel  *model = cornu_model(.inputs = { x }, .outputs = { y, z });
    if (!model) fail_msg("%s", cornu_error_message());
    assert_non_null(cornu_model_find_layer(model, "less"));
    expect_ok(cornu_predict(model, .x = cornu_array(x_data, CORNU_F32, 3, 4),
                            .verbose = CORNU_SILENT,
                            .tos = { cornu_array(less, CORNU_F32, 3, 4),
                                     cornu_array(both, CORNU_F32, 3, 8) }));
    for (int b = 0; b < 3; b++)
        for (int i = 0; i < 4; i++) {
            assert_true(less[b][i] == 1.0f - x_data[b][i]);
            assert_true(both[b][i] == x_data[b][i]);
            assert_true(both[b][4 + i] == 1.0f - x_data[b][i]);
        }
    cornu_model_free(model);
}

/* clip(x, 0.25, x_max=0.75), and where(x > 0.25, x2=-1.0, x1=x), in which symbols have names. */
static void arguments_have_keras_order(void **state)
{
    (void)state;
    float        clipped[3][4], chosen[3][4];
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuSymbol *y = cornu_operation("clip", "{\"args\": [null, 0.25], \"x_max\": 0.75}", x);
    CornuSymbol *larger = cornu_operation("greater", "{\"args\": [null, 0.25]}", x);
    CornuSymbol *z = cornu_operation("where", "{\"args\": [null], \"x1\": 2.5, \"x2\": -1.5}",
                                     larger);
    CornuSymbol *named = cornu_operation(
        "where", "{\"args\": [{\"class_name\": \"__keras_tensor__\", \"config\": 1}], "
        "\"x2\": -1.5, \"x1\": {\"class_name\": \"__keras_tensor__\", \"config\": 0}}", x, larger);
    CornuModel *model = cornu_model(.inputs = { x }, .outputs = { y, named });
    if (!model || !z) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_predict(model, .x = cornu_array(x_data, CORNU_F32, 3, 4),
                            .verbose = CORNU_SILENT,
                            .tos = { cornu_array(clipped, CORNU_F32, 3, 4),
                                     cornu_array(chosen, CORNU_F32, 3, 4) }));
    for (int b = 0; b < 3; b++)
        for (int i = 0; i < 4; i++) {
            const float value = x_data[b][i];
            assert_true(clipped[b][i] == (value < 0.25f ? 0.25f : value > 0.75f ? 0.75f : value));
            assert_true(chosen[b][i] == (value > 0.25f ? value : -1.5f));
        }
    cornu_model_free(model);
    cornu_clear_session();
}

/* x less the mean of its columns: a row depends on the others of its batch, so that batches are cut
 * as Keras cuts them, and none is padded. */
static void rows_of_a_batch_depend_on_each_other(void **state)
{
    (void)state;
    float        y[7][4], wanted[7][4], zero[7][4] = { { 0 } };
    float        data[7][4];
    double       loss, sum = 0.0;
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuSymbol *mean = cornu_operation("mean", "{\"axis\": 0, \"keepdims\": true}", x);
    CornuModel  *model = cornu_model(.inputs = { x },
                                     .outputs = { cornu_operation("subtract", NULL, x, mean) });
    assert_non_null(model);
    for (int i = 0; i < 28; i++) data[i / 4][i % 4] = (float)(i * i % 23);
    for (int first = 0; first < 7; first += 3)   /* batches of 3, 3 and 1 rows */
        for (int i = 0; i < 4; i++) {
            const int end = first + 3 < 7 ? first + 3 : 7;
            float     of_column = 0.0f;
            for (int b = first; b < end; b++) of_column += data[b][i] / (float)(end - first);
            for (int b = first; b < end; b++) wanted[b][i] = data[b][i] - of_column;
        }
    const CornuArray all = cornu_array(data, CORNU_F32, 7, 4);
    expect_ok(cornu_predict(model, .x = all, .to = cornu_array(y, CORNU_F32, 7, 4),
                            .batch_size = 3, .verbose = CORNU_SILENT));
    for (int i = 0; i < 28; i++) {
        assert_float_equal(y[i / 4][i % 4], wanted[i / 4][i % 4], 1e-5);
        sum += (double)wanted[i / 4][i % 4] * (double)wanted[i / 4][i % 4] / 28.0;
    }
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_ok(cornu_evaluate(model, .x = all, .y = cornu_array(zero, CORNU_F32, 7, 4),
                             .batch_size = 3, .results = &loss, .verbose = CORNU_SILENT));
    assert_float_equal(loss, sum, 1e-4);
    CornuDevice *shards = cornu_device_open("cpu", .shards = 3);   /* each has a row of three */
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .device = shards));
    expect_ok(cornu_evaluate(model, .x = all, .y = cornu_array(zero, CORNU_F32, 7, 4),
                             .batch_size = 3, .results = &loss, .verbose = CORNU_SILENT));
    assert_float_equal(loss, sum, 1e-4);
    cornu_model_free(model);
    cornu_device_close(shards);
}

static void wrong_ones_are_refused(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { 4 });
    expect_failure(cornu_operation("argmaxx", NULL, x), CORNU_ERR_ARGUMENT,
                   "no operation \"argmaxx\"; did you mean that of the class Argmax?");
    expect_failure(cornu_operation("argmax", "axis=1", x), CORNU_ERR_ARGUMENT,
                   "the arguments of Argmax are axis=1, expected a JSON object");
    expect_failure(cornu_operation("argmax", "{\"axis\": 2}", x), CORNU_ERR_SHAPE,
                   "argmax: axis is 2, the tensor has 2 axes");
    CornuSymbol *column = cornu_operation("argmax", "{\"axis\": 0}", x);
    expect_failure(cornu_model(.inputs = { x }, .outputs = { column }), CORNU_ERR_SHAPE,
                   "expected the batch as axis 0");
    x = cornu_input(.shape = { 4 });
    expect_failure(cornu_operation("argmax", NULL, NULL), CORNU_ERR_ARGUMENT, "operand 0");
    expect_failure(cornu_operation("add", "{\"args\": [null, null]}", x), CORNU_ERR_ARGUMENT,
                   "2 times null for 1 symbols");
    expect_failure(cornu_operation("add", "{\"args\": 3}", x), CORNU_ERR_ARGUMENT,
                   "0 times null for 1 symbols");
    expect_failure(cornu_operation("clip", "{\"args\": [null, 1]}", x), CORNU_ERR_ARGUMENT,
                   "clip: x_max is required");
    expect_failure(cornu_operation("clip", "{\"args\": [null, 1, 2, 3]}", x), CORNU_ERR_ARGUMENT,
                   "clip: takes 3 arguments, 4 are given by position");
    expect_failure(cornu_operation("clip", "{\"args\": [null, 1, 2], \"x_min\": 0}", x),
                   CORNU_ERR_ARGUMENT, "clip: x_min is given twice");
    expect_failure(cornu_operation("softmax", "{\"axes\": 1}", x), CORNU_ERR_ARGUMENT,
                   "softmax: there is no argument \"axes\"; did you mean axis?");
    expect_failure(cornu_operation("max", "{\"axis\": 1, \"initial\": 3}", x),
                   CORNU_ERR_UNSUPPORTED, "the argument initial, 3, is not available");
    cornu_clear_session();
}

/* Zeros of as many rows as x, beside it; also from the file. */
static void extents_are_arguments(void **state)
{
    (void)state;
    float        both[3][6];
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuSymbol *zeros = cornu_operation(
        "full", "{\"args\": [[{\"class_name\": \"__extent__\", "
                "\"config\": {\"of\": 0, \"axis\": 0}}, 2], 7.0]}", x);
    CornuSymbol *y = cornu_operation("concatenate", "{\"args\": [[null, null]], \"axis\": -1}", x,
                                     zeros);
    CornuModel  *model = cornu_model(.inputs = { x }, .outputs = { y });
    const char  *path = files_path(folder, "extents.safetensors");
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_model_save(model, path));
    cornu_model_free(model);
    model = cornu_model_load(path);
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_predict(model, .x = cornu_array(x_data, CORNU_F32, 3, 4),
                            .verbose = CORNU_SILENT, .to = cornu_array(both, CORNU_F32, 3, 6)));
    for (int b = 0; b < 3; b++) {
        for (int i = 0; i < 4; i++) assert_true(both[b][i] == x_data[b][i]);
        assert_true(both[b][4] == 7.0f && both[b][5] == 7.0f);
    }
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operations_are_layers, files_begin, files_end),
        cmocka_unit_test(numbers_and_lists_are_arguments),
        cmocka_unit_test_setup_teardown(extents_are_arguments, files_begin, files_end),
        cmocka_unit_test(arguments_have_keras_order),
        cmocka_unit_test(rows_of_a_batch_depend_on_each_other),
        cmocka_unit_test(wrong_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
