/* Status codes and pending errors; element types, shapes, bf16 and f16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "../../device/type.h"

/* ---- Status ---- */

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(cornu_status_name(CORNU_ERR_SHAPE), "ERR_SHAPE");
    assert_string_equal(cornu_status_text(CORNU_OK), "success");
    assert_string_equal(cornu_status_name((CornuStatus)99), "UNKNOWN");
    assert_string_equal(cornu_status_text((CornuStatus)-1), "unknown status");
}

static void the_first_pending_error_stays(void **state)
{
    (void)state;
    assert_int_equal(cornu__fail(CORNU_ERR_FILE, "a %s", "file"), CORNU_ERR_FILE);
    assert_false(cornu_error_pending());
    assert_null(cornu__fail_null(CORNU_ERR_VALUE, "beta_1 is %g", 2.0));
    assert_true(cornu_error_pending());
    assert_int_equal(cornu__fail(CORNU_ERR_SHAPE, "later"), CORNU_ERR_VALUE);
    cornu__fail_prefix(CORNU_ERR_VALUE, "later");
    assert_null(cornu__fail_null(CORNU_ERR_SHAPE, "later"));
    assert_string_equal(cornu_error_message(), "beta_1 is 2");
    assert_int_equal(cornu_error_take(), CORNU_ERR_VALUE);
    assert_int_equal(cornu_error_take(), CORNU_OK);
    assert_string_equal(cornu_error_message(), "beta_1 is 2");
    assert_int_equal(cornu_error_set(CORNU_ERR_VALUE, "row %d", 7), CORNU_ERR_VALUE);
    assert_string_equal(cornu_error_message(), "row 7");
    assert_false(cornu_error_pending());
}

/* A constructor that fails for an older error says so, until the error is taken. */
static void a_refusal_says_what_is_pending(void **state)
{
    (void)state;
    assert_false(cornu__refused());
    assert_null(cornu__fail_null(CORNU_ERR_VALUE, "beta_1 is %g", 2.0));
    assert_true(cornu__refused());
    assert_true(cornu__refused());
    assert_string_equal(cornu_error_message(), "beta_1 is 2 (still pending: constructors fail "
                        "until cornu_error_take() is called)");
    assert_int_equal(cornu_error_take(), CORNU_ERR_VALUE);
    assert_string_equal(cornu_error_message(), "beta_1 is 2");
    assert_false(cornu__refused());
    assert_int_equal(cornu__refused_status(), CORNU_OK);
    assert_null(cornu__fail_null(CORNU_ERR_SHAPE, "beta_2 is %g", 3.0));
    assert_int_equal(cornu__refused_status(), CORNU_ERR_SHAPE);
    assert_string_equal(cornu_error_message(), "beta_2 is 3 (still pending: constructors fail "
                        "until cornu_error_take() is called)");
    cornu_error_take();
}

static void loading_leaves_nothing_pending(void **state)
{
    int loaded = 0;
    (void)state;
    cornu__fail_null(CORNU_ERR_FILE, "no such file");
    assert_null(cornu__loaded(NULL));
    assert_false(cornu_error_pending());
    assert_int_equal(cornu_error_status(), CORNU_ERR_FILE);
    /* A function given the NULL reports the file; given any other NULL, that it is NULL. */
    assert_int_equal(cornu__fail_absent("the model"), CORNU_ERR_FILE);
    assert_int_equal(cornu__fail_absent("the model"), CORNU_ERR_FILE);
    assert_string_equal(cornu_error_message(), "no such file");
    assert_ptr_equal(cornu__loaded(&loaded), &loaded);
    assert_int_equal(cornu__fail_absent("the model"), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(), "the model is NULL");
}

static void a_prefix_names_the_place(void **state)
{
    (void)state;
    CornuStatus status = cornu__fail(CORNU_ERR_SHAPE, "a is short");
    assert_int_equal(cornu__fail_prefix(status, "matmul"), CORNU_ERR_SHAPE);
    assert_int_equal(cornu__fail_prefix(status, "dense_2"), CORNU_ERR_SHAPE);
    assert_string_equal(cornu_error_message(), "dense_2: matmul: a is short");
    assert_int_equal(cornu__fail_prefix(CORNU_OK, "never"), CORNU_OK);
}

/* ---- Types ---- */

static void types_print_as_python_does(void **state)
{
    (void)state;
    CornuText text;
    assert_string_equal(cornu_type_print(&text, cornu_type(CORNU_F32, 128, 10)), "f32 (128, 10)");
    assert_string_equal(cornu_type_print(&text, cornu_scalar(CORNU_I64)), "i64 ()");
    assert_string_equal(cornu_shape_print(&text, cornu_shape(CORNU_NONE, 3)), "(None, 3)");
    assert_string_equal(cornu_shape_print(&text, cornu_shape(7)), "(7,)");
    int64_t large = INT64_MAX;
    assert_string_equal(
        cornu_shape_print(&text, cornu_shape(large, large, large, large, large, large)),
        "(9223372036854775807, 9223372036854775807, 9223372036854775807, 9223372036854775807, "
        "9223372036854775807, 9223372036854775807)");
}

static void counts_that_overflow_are_refused(void **state)
{
    (void)state;
    const int64_t half = INT64_C(1) << 31;
    assert_int_equal(cornu_type_check(cornu_type(CORNU_U8, half, half)), CORNU_OK);
    assert_int_equal(cornu_type_check(cornu_type(CORNU_U8, half, half, 2)), CORNU_ERR_SHAPE);
    assert_int_equal(cornu_type_check(cornu_type(CORNU_F32, half, half)), CORNU_ERR_SHAPE);
    assert_int_equal(cornu_type_check(cornu_type(CORNU_F32, INT64_MAX, 0, INT64_MAX)), CORNU_OK);
    assert_int_equal(cornu_type_check(cornu_type(CORNU_F32, 2, -1)), CORNU_ERR_SHAPE);
    assert_int_equal(cornu_type_check(cornu_scalar((CornuDtype)-1)), CORNU_ERR_DTYPE);
    assert_int_equal(cornu_type_check(cornu_scalar(CORNU_DTYPE_COUNT)), CORNU_ERR_DTYPE);
    CornuType type = cornu_scalar(CORNU_F32);
    type.shape.rank = CORNU_MAX_RANK + 1;
    assert_int_equal(cornu_type_check(type), CORNU_ERR_SHAPE);
}

static void arrays_round_and_saturate(void **state)
{
    (void)state;
    static const struct { CornuDtype dtype; double in, out; } rows[] = {
        { CORNU_F64, 1.0 / 3.0, 1.0 / 3.0 },
        { CORNU_I64, 1e300, 9223372036854775807.0 },
        { CORNU_I64, -1e300, -9223372036854775808.0 },
        { CORNU_I32, 2.5, 2.0 },
        { CORNU_I32, 3.5, 4.0 },
        { CORNU_I64, -1.5, -2.0 },
        { CORNU_I64, -2.5, -2.0 },
        { CORNU_I32, -3e9, -2147483648.0 },
        { CORNU_U32, 5e9, 4294967295.0 },
        { CORNU_U32, -1.0, 0.0 },
        { CORNU_U8, 255.6, 255.0 },
        { CORNU_U8, NAN, 0.0 },
        { CORNU_BOOL, -0.25, 1.0 },
        { CORNU_BOOL, 0.0, 0.0 },
        { CORNU_BF16, 1.00390625, 1.0 },       /* halfway: to even */
        { CORNU_BF16, 1.01171875, 1.015625 },
        { CORNU_F16, 65519.0, 65504.0 },
        { CORNU_F16, 65520.0, INFINITY },
        { CORNU_F16, 0x1p-25, 0.0 },
        { CORNU_F16, 0x1.8p-25, 0x1p-24 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t    memory = 0;
        CornuArray array = { cornu_scalar(rows[i].dtype), &memory };
        cornu_array_set(array, 0, rows[i].in);
        if (cornu_array_get(array, 0) != rows[i].out)
            fail_msg("%g as %s is %g, expected %g", rows[i].in, cornu_dtype_name(rows[i].dtype),
                     cornu_array_get(array, 0), rows[i].out);
    }
}

/* ---- bf16 and f16: every one of them survives a trip through f32 ---- */

static void every_bf16_comes_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        float    wide = cornu_bf16_to_float((uint16_t)bits);
        uint16_t back = cornu_bf16_from_float(wide);
        if (isnan(wide)) assert_true(isnan(cornu_bf16_to_float(back)));
        else assert_int_equal(back, bits);
    }
}

static void every_f16_comes_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        float    wide = cornu_f16_to_float((uint16_t)bits);
        uint16_t back = cornu_f16_from_float(wide);
        if (isnan(wide)) assert_true(isnan(cornu_f16_to_float(back)));
        else assert_int_equal(back, bits);
    }
}

/* Rounding is right when, between two neighbours, everything below the middle goes down, the
 * middle goes to the even one, and everything above goes up. */
static void check_rounding(uint16_t from_float(float), float to_float(uint16_t), uint32_t infinity)
{
    for (uint32_t bits = 0; bits + 1 < infinity; bits++) {
        float    low = to_float((uint16_t)bits), high = to_float((uint16_t)(bits + 1));
        float    middle = low + (high - low) / 2;
        uint32_t even = bits + (bits & 1);
        assert_int_equal(from_float(nextafterf(middle, low)), bits);
        assert_int_equal(from_float(middle), even);
        assert_int_equal(from_float(nextafterf(middle, high)), bits + 1);
        assert_int_equal(from_float(-middle), even | 0x8000);
    }
}

static void halves_round_to_even(void **state)
{
    (void)state;
    check_rounding(cornu_bf16_from_float, cornu_bf16_to_float, 0x7f80);
    check_rounding(cornu_f16_from_float, cornu_f16_to_float, 0x7c00);
    assert_int_equal(cornu_bf16_from_float(0x1.fffffep127f), 0x7f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(the_first_pending_error_stays),
        cmocka_unit_test(a_refusal_says_what_is_pending),
        cmocka_unit_test(loading_leaves_nothing_pending),
        cmocka_unit_test(a_prefix_names_the_place),
        cmocka_unit_test(types_print_as_python_does),
        cmocka_unit_test(counts_that_overflow_are_refused),
        cmocka_unit_test(arrays_round_and_saturate),
        cmocka_unit_test(every_bf16_comes_back),
        cmocka_unit_test(every_f16_comes_back),
        cmocka_unit_test(halves_round_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
