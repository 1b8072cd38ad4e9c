/* The table of ops: every rule is there, and attributes are treated field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "../../device/ops/rules.h"

static void every_rule_is_there(void **state)
{
    (void)state;
    for (int id = 0; id < CORNU_OP_COUNT; id++) {
        const CornuOpRules *rules = cornu__op_rules((CornuOpId)id);
        assert_non_null(rules);
        assert_true(rules->type != NULL);
        assert_true(rules->flops != NULL);
        assert_true(rules->decompose != NULL);
        assert_true(rules->reference != NULL);
        int outputs = cornu_op_output_count((CornuOpId)id);
        assert_true(outputs == -1 || (outputs >= 1 && outputs <= CORNU_MAX_OUTPUTS));
        assert_true(cornu_op_input_count((CornuOpId)id) <= CORNU_MAX_INPUTS);
    }
    assert_string_equal(cornu_op_name(CORNU_OP_CONV2D_GRAD_FILTER), "conv2d_grad_filter");
    assert_string_equal(cornu_op_name(CORNU_OP_COUNT), "unknown");
    assert_int_equal(cornu_op_input_count(CORNU_OP_CONCAT), -1);
}

static void names_are_different(void **state)
{
    (void)state;
    for (int a = 0; a < CORNU_OP_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(cornu_op_name((CornuOpId)a), cornu_op_name((CornuOpId)b));
}

static void attributes_print_what_is_not_zero(void **state)
{
    (void)state;
    char            text[256];
    CornuAttributes conv = {
        .conv2d = { .strides = { 2, 2 }, .low = { 0, -1 }, .dtype = CORNU_BF16 },
    };
    int length = cornu__attributes_print(CORNU_OP_CONV2D, &conv, text, sizeof text);
    assert_string_equal(text, "strides=[2, 2] low=[0, -1] dtype=bf16");
    assert_int_equal(length, strlen(text));
    assert_int_equal(cornu__attributes_print(CORNU_OP_CONV2D, &conv, NULL, 0), length);
    char few[10];
    assert_int_equal(cornu__attributes_print(CORNU_OP_CONV2D, &conv, few, sizeof few), length);
    assert_string_equal(few, "strides=[");

    CornuAttributes compare = { .compare = { CORNU_GREATER_EQUAL } };
    cornu__attributes_print(CORNU_OP_COMPARE, &compare, text, sizeof text);
    assert_string_equal(text, "comparison=greater_equal");
    CornuAttributes adam = { .adam = { 0.9, 0.999, 1e-7 } };
    cornu__attributes_print(CORNU_OP_ADAM_UPDATE, &adam, text, sizeof text);
    assert_string_equal(text, "beta_1=0.9 beta_2=0.999 epsilon=1e-07");
}

static bool equal(double a, double b)
{
    CornuAttributes with_a = { .alpha = { a } }, with_b = { .alpha = { b } };
    bool            equal = cornu__attributes_equal(CORNU_OP_ELU, &with_a, &with_b);
    bool            alike = cornu__attributes_hash(CORNU_OP_ELU, &with_a, 1) ==
                 cornu__attributes_hash(CORNU_OP_ELU, &with_b, 1);
    assert_int_equal(equal, alike);
    return equal;
}

static void doubles_compare_by_their_bits(void **state)
{
    (void)state;
    assert_true(equal(0.25, 0.25));
    assert_true(equal((double)NAN, (double)NAN));
    assert_false(equal(0.0, -0.0));
    assert_false(equal(0.25, 0.5));
}

/* Bytes of the union that belong to no field of the op's list must not count. */
static void padding_does_not_count(void **state)
{
    (void)state;
    for (int id = 0; id < CORNU_OP_COUNT; id++) {
        CornuAttributes clean, dirty;
        memset(&clean, 0, sizeof clean);
        memset(&dirty, 0x5a, sizeof dirty);
        switch (id) {
        case CORNU_OP_CONSTANT: /* a hole between dtype and value */
            dirty.constant.dtype = CORNU_F32, dirty.constant.value = 0.0;
            break;
        case CORNU_OP_CONVERT: dirty.convert.dtype = CORNU_F32; break;
        case CORNU_OP_MATMUL:
            dirty.matmul.transpose_a = dirty.matmul.transpose_b = 0;
            dirty.matmul.dtype = CORNU_F32;
            break;
        default: continue;
        }
        assert_true(cornu__attributes_equal((CornuOpId)id, &clean, &dirty));
        assert_true(cornu__attributes_hash((CornuOpId)id, &clean, 7) ==
                    cornu__attributes_hash((CornuOpId)id, &dirty, 7));
    }
}

static void the_order_of_words_matters(void **state)
{
    (void)state;
    uint64_t ab = cornu__hash(cornu__hash(0, 1), 2), ba = cornu__hash(cornu__hash(0, 2), 1);
    assert_true(ab != ba);
    assert_true(cornu__hash(0, 0) != 0);
}

static void flops_are_counted(void **state)
{
    (void)state;
    static const CornuAttributes none;
    CornuType   in[2] = { cornu_type(CORNU_F32, 4, 32, 100), cornu_type(CORNU_F32, 100, 10) };
    CornuOpCall matmul = { CORNU_OP_MATMUL, &none, 2, in };
    assert_int_equal(cornu_op_flops(&matmul), 2 * 4 * 32 * 100 * 10);

    CornuType   image[2] = { cornu_type(CORNU_F32, 8, 28, 28, 3),
                             cornu_type(CORNU_F32, 3, 3, 3, 5) };
    CornuOpCall conv2d = { CORNU_OP_CONV2D, &none, 2, image };
    assert_int_equal(cornu_op_flops(&conv2d), 2 * 8 * 26 * 26 * 3 * 3 * 3 * 5);

    const int64_t most = INT64_MAX;
    assert_int_equal(cornu__flops(3, (const int64_t[]){ most, most, 2 }), most);
    assert_int_equal(cornu__flops(3, (const int64_t[]){ most, most, 0 }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_is_there),
        cmocka_unit_test(names_are_different),
        cmocka_unit_test(attributes_print_what_is_not_zero),
        cmocka_unit_test(doubles_compare_by_their_bits),
        cmocka_unit_test(padding_does_not_count),
        cmocka_unit_test(the_order_of_words_matters),
        cmocka_unit_test(flops_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
