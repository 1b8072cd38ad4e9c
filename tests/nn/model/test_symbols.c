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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_outlive_a_failed_model),
        cmocka_unit_test(test_references_are_counted),
        cmocka_unit_test(test_weights_leave_the_device_of_another_model),
        cmocka_unit_test(test_names_and_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
