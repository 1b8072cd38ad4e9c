/* Symbols that a program takes from their thread: how long they, their layers and the weights of
 * these live; and what models say of their inputs and outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../expect.h"

static CornuSymbol *taken(CornuSymbol *symbol)
{
    if (!symbol) fail_msg("%s", cornu_error_message());
    assert_ptr_equal(cornu_symbol_take(symbol), symbol);
    return symbol;
}

static CornuModel *made(CornuModel *model)
{
    if (!model) fail_msg("%s", cornu_error_message());
    return model;
}

static void test_they_outlive_a_failed_model(void **state)
{
    (void)state;
    CornuSymbol *x = taken(cornu_input(.shape = { 4 }));
    CornuSymbol *other = taken(cornu_input(.shape = { 4 }));
    CornuSymbol *y = taken(cornu_call(cornu_dense(3), x));
    expect_failure(cornu_model(.inputs = { other }, .outputs = { y }), CORNU_ERR_ARGUMENT,
                   "depends on the input");
    cornu_clear_session();
    CornuModel *model = made(cornu_model(.inputs = { x }, .outputs = { y }));
    cornu_symbol_free(other);
    cornu_symbol_free(x);
    cornu_model_free(model);
    assert_int_equal(cornu_symbol_type(y).dtype, CORNU_F32);
    assert_int_equal(cornu_symbol_type(y).shape.extent[1], 3);
    cornu_symbol_free(y);
    assert_null(cornu_symbol_take(NULL));
    cornu_symbol_free(NULL);
}

/* Each reference counts, also to another result of the same call. */
static void test_references_are_counted(void **state)
{
    (void)state;
    CornuSymbol *x = taken(cornu_input(.shape = { 5, 2 }));
    CornuSymbol *y = taken(cornu_call(cornu_lstm(3, .return_state = true), x));
    CornuSymbol *h = taken(cornu_call_result(y, 1));
    taken(y);
    cornu_symbol_free(y);
    cornu_symbol_free(y);
    cornu_symbol_free(x);
    assert_int_equal(cornu_symbol_shape(h).extent[1], 3);
    cornu_symbol_free(h);
}

/* A model is compiled on the device of another one. When both are freed, in this order, the weights
 * that a symbol still holds are on the host. */
static void test_weights_leave_the_device_of_another_model(void **state)
{
    (void)state;
    float        x_data[2][4] = { { 1, 2, 3, 4 }, { 0 } }, y_data[2][1] = { { 1 }, { 2 } };
    float        before[2][1], after[2][1];
    CornuArray   data = cornu_array(x_data, CORNU_F32, 2, 4);
    CornuSymbol *x = taken(cornu_input(.shape = { 4 })), *h = taken(cornu_call(cornu_dense(3), x));
    CornuSymbol *y = taken(cornu_call(cornu_dense(1), h));
    CornuModel  *part = made(cornu_model(.inputs = { x }, .outputs = { h }));
    CornuModel  *whole = made(cornu_model(.inputs = { x }, .outputs = { y }));
    expect_ok(cornu_compile(part, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_ok(cornu_compile(whole, .loss = CORNU_MEAN_SQUARED_ERROR,
                            .device = cornu_model_device(part)));
    expect_ok(cornu_train_on_batch(whole, data, cornu_array(y_data, CORNU_F32, 2, 1)));
    expect_ok(cornu_predict_on_batch(whole, data, cornu_array(before, CORNU_F32, 2, 1)));
    cornu_model_free(whole);
    cornu_model_free(part);
    CornuModel *again = made(cornu_model(.inputs = { x }, .outputs = { y }));
    expect_ok(cornu_predict_on_batch(again, data, cornu_array(after, CORNU_F32, 2, 1)));
    assert_memory_equal(before, after, sizeof before);
    cornu_model_free(again);
    cornu_symbol_free(x);
    cornu_symbol_free(h);
    cornu_symbol_free(y);
}

static void test_names_and_types(void **state)
{
    (void)state;
    static float data[3 * 7 * 2];
    CornuType    type;
    CornuSymbol *x = cornu_input(.shape = { CORNU_NONE, 2 }, .name = "text");
    CornuModel  *model = made(cornu_model(
        .inputs = { x }, .outputs = { cornu_call(cornu_conv1d(4, 3, .name = "waves"), x) }));
    CornuModel  *open = cornu_sequential();
    assert_string_equal(cornu_model_input_name(model, 0), "text");
    assert_string_equal(cornu_model_output_name(model, 0), "waves");
    assert_null(cornu_model_input_name(model, 1));
    assert_null(cornu_model_output_name(model, -1));
    assert_null(cornu_model_input_name(open, 0));
    assert_null(cornu_model_output_name(NULL, 0));
    expect_ok(cornu_model_predict_types(model,
                                        &(CornuArray){ cornu_type(CORNU_F32, 3, 7, 2), data },
                                        &type));
    assert_true(cornu_type_equal(type, cornu_type(CORNU_F32, 3, 5, 4)));
    expect_error(cornu_model_predict_types(model,
                                           &(CornuArray){ cornu_type(CORNU_F32, 3, 2, 2), data },
                                           &type), CORNU_ERR_SHAPE, "waves");
    expect_error(cornu_model_predict_types(model, NULL, &type), CORNU_ERR_ARGUMENT, "NULL");
    cornu_model_free(open);
    cornu_model_free(model);
}

#define TENSOR(i) "{\"class_name\": \"__keras_tensor__\", \"config\": " #i "}"

/* multi_head_attention(query, value=value, attention_mask=mask), whose key is the value. */
static void test_calls_from_json(void **state)
{
    (void)state;
    CornuLayer  *layer = cornu_multi_head_attention(.num_heads = 2, .key_dim = 3);
    CornuSymbol *in[] = { cornu_input(.shape = { 4, 6 }), cornu_input(.shape = { 5, 6 }),
                          cornu_input(.shape = { 4, 5 }) };
    CornuSymbol *y = taken(cornu_call_from_json(layer, "{\"args\": [" TENSOR(0) "], \"kwargs\": {"
                                                "\"value\": " TENSOR(1) ", \"training\": false, "
                                                "\"attention_mask\": " TENSOR(2) "}}", in, 3));
    assert_int_equal(cornu_call_results(y), 1);
    assert_int_equal(cornu_call_operands(y), 4);
    assert_ptr_equal(cornu_call_operand(y, 0), in[0]);
    assert_ptr_equal(cornu_call_operand(y, 2), in[1]);
    assert_ptr_equal(cornu_call_operand(y, 3), in[2]);
    assert_int_equal(cornu_call_operands(in[0]), 0);
    expect_failure(cornu_call_operand(y, 4), CORNU_ERR_ARGUMENT, "there is no tensor 4");
    expect_failure(cornu_call_from_json(layer, "{\"args\": [" TENSOR(3) "]}", in, 3),
                   CORNU_ERR_ARGUMENT, "a tensor has the number 3, expected less than 3");
    expect_failure(cornu_call_from_json(layer, "{\"args\": [" TENSOR(0) "], \"kwargs\": {"
                                        "\"scale\": 2}}", in, 3),
                   CORNU_ERR_UNSUPPORTED, "is called with \"scale\"");
    expect_failure(cornu_call_from_json(layer, "[", in, 3), CORNU_ERR_FORMAT, "JSON");
    cornu_symbol_free(y);
    cornu_clear_session();
}

static void test_models_in_models(void **state)
{
    (void)state;
    CornuModel  *inner = made(cornu_sequential(.input_shape = { 4 }, .name = "inner"));
    CornuSymbol *x = cornu_input(.shape = { 4 });
    expect_ok(cornu_model_add(inner, cornu_dense(3)));
    CornuModel *outer = made(cornu_model(.inputs = { x },
                                         .outputs = { cornu_call(cornu_as_layer(inner), x) }));
    assert_ptr_equal(cornu_as_model(cornu_model_layer(outer, 1)), inner);
    assert_null(cornu_as_model(cornu_model_layer(outer, 0)));
    assert_null(cornu_as_model(cornu_model_layer(inner, 0)));
    assert_null(cornu_as_model(NULL));
    cornu_model_free(inner);
    cornu_model_free(outer);
}

/* Keras' Input(()), in both kinds of models. */
static void test_a_value_per_row(void **state)
{
    (void)state;
    float             y[3], x[] = { 1, 2, 3 };
    CornuSymbol      *scalar = cornu_input(.scalar = true);
    CornuModel *const models[] = {
        made(cornu_model(.inputs = { scalar },
                         .outputs = { cornu_operation("add", NULL, scalar, scalar) })),
        made(cornu_sequential(.input_scalar = true)),
    };
    expect_ok(cornu_model_add(models[1], cornu_rescaling(2.0)));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cornu_model_input_shape(models[i]).rank, 1);
        expect_ok(cornu_predict(models[i], .x = cornu_array(x, CORNU_F32, 3),
                                .to = cornu_array(y, CORNU_F32, 3), .verbose = CORNU_SILENT));
        for (int b = 0; b < 3; b++) assert_true(y[b] == 2.0f * x[b]);
        cornu_model_free(models[i]);
    }
    expect_failure(cornu_input(.name = "none"), CORNU_ERR_ARGUMENT, ".shape is required, or "
                   ".scalar");
    expect_failure(cornu_input(.scalar = true, .shape = { 3 }), CORNU_ERR_ARGUMENT,
                   "both .shape and .scalar are given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_from_json),
        cmocka_unit_test(test_a_value_per_row),
        cmocka_unit_test(test_models_in_models),
        cmocka_unit_test(test_they_outlive_a_failed_model),
        cmocka_unit_test(test_references_are_counted),
        cmocka_unit_test(test_weights_leave_the_device_of_another_model),
        cmocka_unit_test(test_names_and_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
