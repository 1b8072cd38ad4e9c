/* Programs: recording, refusing, printing, hashing, comparing, copying, aliases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/ops/rules.h"

/* softmax(x w + b), with w updated in place; `rows` is the batch. */
static CornuProgram *dense(int64_t rows, const char *scope)
{
    CornuProgram   *p = cornu_program_create();
    CornuValue      x, w, product, y, scaled, factor, factors;
    CornuAttributes constant = { .constant = { CORNU_F32, 0.5 } };
    CornuAttributes shape = { .shape = { 2, { 3, 4 } } };
    assert_non_null(p);
    assert_int_equal(cornu_program_input(p, cornu_type(CORNU_F32, rows, 3), &x), CORNU_OK);
    assert_int_equal(cornu_program_input(p, cornu_type(CORNU_F32, 3, 4), &w), CORNU_OK);
    assert_int_equal(cornu_program_scope(p, scope), CORNU_OK);
    cornu_program_record(p, CORNU_OP_MATMUL, NULL, (CornuValue[]){ x, w }, 2, &product);
    cornu_program_record(p, CORNU_OP_SOFTMAX, NULL, &product, 1, &y);
    assert_int_equal(cornu_program_scope(p, NULL), CORNU_OK);
    cornu_program_record(p, CORNU_OP_CONSTANT, &constant, NULL, 0, &factor);
    cornu_program_record(p, CORNU_OP_BROADCAST, &shape, &factor, 1, &factors);
    cornu_program_record(p, CORNU_OP_MULTIPLY, NULL, (CornuValue[]){ w, factors }, 2, &scaled);
    assert_int_equal(cornu_program_output(p, y, -1), CORNU_OK);
    assert_int_equal(cornu_program_output(p, scaled, 1), CORNU_OK);
    return p;
}

static char *printed(const CornuProgram *program)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *to = open_memstream(&text, &size);
    assert_non_null(to);
    cornu_program_print(program, to);
    fclose(to);
    return text;
}

static void prints_one_line_each(void **state)
{
    (void)state;
    CornuProgram *p = dense(2, "dense_2");
    char         *text = printed(p);
    assert_string_equal(text, "%0 = input 0 : f32 (2, 3)\n"
                              "%1 = input 1 : f32 (3, 4)\n"
                              "%2 = matmul(%0, %1) : f32 (2, 4)    dense_2\n"
                              "%3 = softmax(%2) : f32 (2, 4)    dense_2\n"
                              "%4 = constant() value=0.5 : f32 ()\n"
                              "%5 = broadcast(%4) rank=2 extents=[3, 4] : f32 (3, 4)\n"
                              "%6 = multiply(%1, %5) : f32 (3, 4)\n"
                              "output 0 = %3\n"
                              "output 1 = %6 into input 1\n");
    free(text);
    assert_int_equal(cornu_program_flops(p), 2 * 2 * 3 * 4 + 5 * 8 + 12);
    cornu_program_free(p);
}

static void prints_several_results(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuAttributes window = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    CornuValue      x, out[2];
    cornu_program_input(p, cornu_type(CORNU_F32, 1, 4, 4, 3), &x);
    assert_int_equal(cornu_program_record(p, CORNU_OP_MAX_POOL2D, &window, &x, 1, out), CORNU_OK);
    char *text = printed(p);
    assert_non_null(strstr(text, "%1, %2 = max_pool2d(%0) size=[2, 2] strides=[2, 2] : "
                                 "f32 (1, 2, 2, 3), u8 (1, 2, 2, 3)\n"));
    free(text);
    cornu_program_free(p);
}

static void a_refusal_says_who_and_why(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    a, b, out;
    cornu_program_input(p, cornu_type(CORNU_F32, 32, 100), &a);
    cornu_program_input(p, cornu_type(CORNU_F32, 128, 10), &b);
    cornu_program_scope(p, "dense_2");
    char *before = printed(p);

    assert_int_equal(cornu_program_record(p, CORNU_OP_MATMUL, NULL, (CornuValue[]){ a, b }, 2,
                                          &out), CORNU_ERR_SHAPE);
    assert_int_equal(out, CORNU_NO_VALUE);
    assert_string_equal(cornu_error_message(), "dense_2: matmul: a is f32 (32, 100), b is "
                        "f32 (128, 10): the inner extents are 100 and 128, expected the same");
    assert_int_equal(cornu_program_record(p, CORNU_OP_MATMUL, NULL, (CornuValue[]){ a, 7 }, 2,
                                          &out), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(),
                        "dense_2: matmul: operand 1 is value 7, expected 0 to 1");
    assert_int_equal(cornu_program_record(p, CORNU_OP_MATMUL, NULL, &a, 1, &out),
                     CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(), "dense_2: matmul: 1 operands, expected 2");
    assert_int_equal(cornu_program_record(p, CORNU_OP_COUNT, NULL, &a, 1, &out),
                     CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_program_input(p, cornu_type(CORNU_F32, -1), &out), CORNU_ERR_SHAPE);

    CornuAttributes window = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    CornuValue      map, pooled[2];
    char           *after = printed(p);
    assert_string_equal(before, after);
    cornu_program_input(p, cornu_type(CORNU_F32, 8, 1, 1, 3), &map);
    cornu_program_scope(p, "max_pooling2d_3");
    cornu_program_record(p, CORNU_OP_MAX_POOL2D, &window, &map, 1, pooled);
    assert_string_equal(cornu_error_message(), "max_pooling2d_3: max_pool2d: x is "
                        "f32 (8, 1, 1, 3): a window of (2, 2) does not fit");
    free(before);
    free(after);
    cornu_program_free(p);
}

static void outputs_into_inputs_must_fit(void **state)
{
    (void)state;
    CornuProgram *p = dense(2, "");
    CornuValue    y = p->outputs[0].value, w = p->inputs[1];
    assert_int_equal(cornu_program_output(p, w, 1), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(), "outputs 1 and 2 are both written into input 1");
    assert_int_equal(cornu_program_output(p, y, 0), CORNU_ERR_SHAPE);
    assert_string_equal(cornu_error_message(),
                        "output 2 is f32 (2, 4), input 0, which it is written into, is f32 (2, 3)");
    assert_int_equal(cornu_program_output(p, y, 2), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_program_output(p, y, -2), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_program_output(p, 99, -1), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_program_output(p, CORNU_NO_VALUE, -1), CORNU_ERR_ARGUMENT);
    assert_int_equal(p->output_count, 2);
    cornu_program_free(p);
}

static void equal_programs_hash_alike(void **state)
{
    (void)state;
    CornuProgram *a = dense(2, "dense"), *b = dense(2, "other"), *c = dense(3, "dense");
    assert_true(cornu_program_equal(a, b));
    assert_true(cornu_program_hash(a) == cornu_program_hash(b));
    assert_false(cornu_program_equal(a, c));
    assert_true(cornu_program_hash(a) != cornu_program_hash(c));

    /* Everything that is recorded counts. */
    CornuAttributes attributes = b->ops[2].attributes;
    b->ops[2].attributes.constant.value = 0.25;
    assert_false(cornu_program_equal(a, b));
    assert_true(cornu_program_hash(a) != cornu_program_hash(b));
    b->ops[2].attributes = attributes;
    b->operands[b->ops[4].in_first] = 5;
    assert_false(cornu_program_equal(a, b));
    assert_true(cornu_program_hash(a) != cornu_program_hash(b));
    b->operands[b->ops[4].in_first] = 1;
    b->outputs[1].alias = -1;
    assert_false(cornu_program_equal(a, b));
    assert_true(cornu_program_hash(a) != cornu_program_hash(b));
    b->outputs[1].alias = 1;
    b->values[b->inputs[0]].varies = true;   /* each shard is fed its own */
    assert_false(cornu_program_equal(a, b));
    assert_true(cornu_program_hash(a) != cornu_program_hash(b));
    b->values[b->inputs[0]].varies = false;
    assert_true(cornu_program_equal(a, b));
    assert_true(cornu_program_hash(a) == cornu_program_hash(b));
    cornu_program_free(a);
    cornu_program_free(b);
    cornu_program_free(c);
}

static void a_copy_stands_alone(void **state)
{
    (void)state;
    CornuProgram *p = dense(2, "dense_2"), *copy = cornu_program_copy(p);
    char         *before = printed(p);
    assert_true(cornu_program_equal(p, copy));
    cornu_program_free(p);
    char *after = printed(copy);
    assert_string_equal(before, after);
    CornuValue out;
    assert_int_equal(cornu_program_record(copy, CORNU_OP_TANH, NULL, &copy->inputs[0], 1, &out),
                     CORNU_OK);
    free(before);
    free(after);
    cornu_program_free(copy);

    CornuProgram *empty = cornu_program_create(), *other = cornu_program_copy(empty);
    assert_true(cornu_program_equal(empty, other));
    cornu_program_free(empty);
    cornu_program_free(other);
    cornu_program_free(NULL);
}

/* More operands than fit beside the call. */
static void a_concat_may_be_long(void **state)
{
    (void)state;
    enum { MANY = 50 };
    CornuProgram *p = cornu_program_create();
    CornuValue    in[MANY], out;
    for (int i = 0; i < MANY; i++)
        cornu_program_input(p, cornu_type(CORNU_F32, 2, i), &in[i]);
    CornuAttributes axis = { .axis = { 1 } };
    assert_int_equal(cornu_program_record(p, CORNU_OP_CONCAT, &axis, in, MANY, &out), CORNU_OK);
    assert_true(cornu_type_equal(cornu_program_type(p, out),
                                 cornu_type(CORNU_F32, 2, MANY * (MANY - 1) / 2)));
    assert_int_equal(cornu_program_flops(p), 0);
    cornu_program_free(p);
}

static CornuStatus half_type(const CornuOpCall *call, CornuType *out)
{
    out[0] = cornu_type(CORNU_F32, call->in[0].shape.extent[0] / 2);
    return CORNU_OK;
}

static int64_t seven_flops(const CornuOpCall *call) { return (void)call, 7; }

/* What an op means is looked up in the program, by its copies too, and nowhere else. */
static void ops_mean_what_their_program_says(void **state)
{
    (void)state;
    const CornuOpRules  half = { half_type, seven_flops, CORNU_PRIMITIVE, NULL };
    const CornuOpRules *rules[CORNU_OP_COUNT];
    CornuValue          x, y, z;
    memcpy(rules, cornu__op_table, sizeof rules);
    rules[CORNU_OP_RELU] = &half;
    CornuProgram *p = cornu__program_create(rules), *usual = cornu_program_create();
    assert_int_equal(cornu_program_input(p, cornu_type(CORNU_F32, 8), &x), CORNU_OK);
    assert_int_equal(cornu_program_record(p, CORNU_OP_RELU, NULL, &x, 1, &y), CORNU_OK);
    assert_true(cornu_type_equal(cornu_program_type(p, y), cornu_type(CORNU_F32, 4)));
    CornuProgram *copy = cornu_program_copy(p);
    assert_int_equal(cornu_program_record(copy, CORNU_OP_RELU, NULL, &y, 1, &z), CORNU_OK);
    assert_true(cornu_type_equal(cornu_program_type(copy, z), cornu_type(CORNU_F32, 2)));
    assert_int_equal(cornu_program_flops(copy), 14);

    assert_int_equal(cornu_program_input(usual, cornu_type(CORNU_F32, 8), &x), CORNU_OK);
    assert_int_equal(cornu_program_record(usual, CORNU_OP_RELU, NULL, &x, 1, &y), CORNU_OK);
    assert_true(cornu_type_equal(cornu_program_type(usual, y), cornu_type(CORNU_F32, 8)));
    cornu_program_free(copy);
    cornu_program_free(p);
    cornu_program_free(usual);
}

/* So do the bodies of the scans that ops decompose into. */
static void bodies_have_the_rules_of_their_program(void **state)
{
    (void)state;
    const CornuOpRules *rules[CORNU_OP_COUNT];
    memcpy(rules, cornu__op_table, sizeof rules);
    CornuProgram   *p = cornu__program_create(rules);
    const CornuType types[] = { cornu_type(CORNU_F32, 1, 2, 6), cornu_type(CORNU_F32, 2, 6),
                                cornu_type(CORNU_F32, 1, 2), cornu_type(CORNU_F32, 6) };
    CornuAttributes attributes = { .recurrence = { 0 } };
    CornuValue      in[4], out[2];
    int             scans = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(cornu_program_input(p, types[i], &in[i]), CORNU_OK);
    const CornuOpCall call = { CORNU_OP_GRU, &attributes, 4, types };
    assert_int_equal(rules[CORNU_OP_GRU]->decompose(p, &call, in, out), CORNU_OK);
    for (int i = 0; i < p->op_count; i++) {
        if (p->ops[i].id != CORNU_OP_SCAN) continue;
        assert_ptr_equal(p->ops[i].attributes.scan.body->rules, rules);
        scans++;
    }
    assert_int_equal(scans, 1);
    cornu_program_free(p);
}

/* A sum over shards in groups of 2, of which the program has a list of its own. */
static CornuProgram *sum_in_groups(int shards, int *groups)
{
    CornuProgram   *p = cornu_program_create();
    CornuAttributes attributes = { .shards = { .size = groups ? 2 : shards } };
    CornuValue      x, y;
    if (groups) attributes.shards.groups = (CornuInts){ shards, groups };
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_F32, 3), &x), CORNU_OK);
    assert_int_equal(cornu_program_record(p, CORNU_OP_ALL_REDUCE, &attributes, &x, 1, &y),
                     CORNU_OK);
    return p;
}

static void lists_are_owned_printed_and_compared(void **state)
{
    (void)state;
    int           listed[] = { 0, 1, 2, 3 };
    CornuProgram *of[4];
    of[0] = sum_in_groups(4, NULL);
    of[1] = sum_in_groups(4, listed);
    of[3] = sum_in_groups(4, (int[]){ 0, 1, 2, 3 });
    listed[1] = 2, listed[2] = 1;
    of[2] = sum_in_groups(4, listed);
    listed[0] = listed[3] = 77;   /* the caller's */
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            const bool equal = a == b || (a % 2 == 1 && b % 2 == 1);
            assert_int_equal(cornu_program_equal(of[a], of[b]), equal);
            assert_int_equal(cornu_program_hash(of[a]) == cornu_program_hash(of[b]), equal);
            assert_int_equal(cornu__attributes_equal(CORNU_OP_ALL_REDUCE, &of[a]->ops[0].attributes,
                                                     &of[b]->ops[0].attributes), equal);
        }
    CornuProgram *copy = cornu_program_copy(of[2]);
    cornu_program_free(of[2]);
    char *text = printed(copy);
    assert_string_equal(text, "%0 = input 0 : f32 (3,) per shard\n"
                              "%1 = all_reduce(%0) size=2 groups=[0, 2, 1, 3] : f32 (3,)\n");
    free(text);
    for (int i = 0; i < 4; i++) cornu_program_free(i == 2 ? copy : of[i]);
}

static void a_list_of_all_shards_is_printed_whole(void **state)
{
    (void)state;
    int listed[CORNU_MAX_SHARDS];
    for (int i = 0; i < CORNU_MAX_SHARDS; i++) listed[i] = i;
    CornuProgram *p = sum_in_groups(CORNU_MAX_SHARDS, listed);
    char         *text = printed(p);
    assert_non_null(strstr(text, " 1022, 1023] : f32 (3,)\n"));
    free(text);
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_one_line_each),
        cmocka_unit_test(prints_several_results),
        cmocka_unit_test(a_refusal_says_who_and_why),
        cmocka_unit_test(outputs_into_inputs_must_fit),
        cmocka_unit_test(equal_programs_hash_alike),
        cmocka_unit_test(a_copy_stands_alone),
        cmocka_unit_test(lists_are_owned_printed_and_compared),
        cmocka_unit_test(a_list_of_all_shards_is_printed_whole),
        cmocka_unit_test(a_concat_may_be_long),
        cmocka_unit_test(ops_mean_what_their_program_says),
        cmocka_unit_test(bodies_have_the_rules_of_their_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
