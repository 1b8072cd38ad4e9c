/* The verifier reports each way in which a plan can be wrong; and programs give the same results
 * whichever passes are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../agreement.h"
#include "../../planned.h"

/* A sum over shards, elementwise work before and after it, and a variable of which each shard
 * updates its slice, in place. */
static CornuProgram *steps_of_all_kinds(int shards)
{
    CornuProgram    *p = cornu_program_create();
    CornuAttributes  all = { .shards = { .size = shards } };
    CornuValue       x, w = input(p, cornu_type(CORNU_F32, 64));
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_F32, 32, 64), &x), CORNU_OK);
    CornuValue y = op1(p, CORNU_OP_TANH, op2(p, CORNU_OP_MULTIPLY, x,
                                             broadcast(p, w, cornu_shape(32, 64))));
    CornuValue sums = reduce(p, CORNU_OP_REDUCE_SUM, y, 1);
    CornuValue of_all = op(p, CORNU_OP_ALL_REDUCE, &all, &sums, 1);
    CornuValue left = op2(p, CORNU_OP_SUBTRACT, y, broadcast(p, of_all, cornu_shape(32, 64)));
    CornuValue d_w = reduce(p, CORNU_OP_REDUCE_SUM, op2(p, CORNU_OP_MULTIPLY, left, x), 1);
    CornuValue slice = op2(p, CORNU_OP_SUBTRACT, op(p, CORNU_OP_SHARD_SLICE, &all, &w, 1),
                           op(p, CORNU_OP_REDUCE_SCATTER, &all, &d_w, 1));
    output(p, op(p, CORNU_OP_ALL_GATHER, &all, &slice, 1), 0);
    output(p, reduce(p, CORNU_OP_REDUCE_MAX, left, 2), -1);
    return p;
}

static const CornuMultiplier f32 = { .bf16 = false };

static Planned *steps_planned(int shards, int threads)
{
    return planned(steps_of_all_kinds(shards), shards, threads, f32);
}

/* The verifier reports an error that contains these words. */
static void expect_objection(Planned *made, const char *words)
{
    assert_int_equal(cornu__plan_verify(&made->plan), CORNU_ERR_UNSUPPORTED);
    if (!strstr(cornu_error_message(), words))
        fail_msg("\"%s\" is not in: %s", words, cornu_error_message());
    cornu_error_take();
    release_planned(made);
}

static CornuPlanStep *step_of(Planned *made, CornuStepKind kind, int number)
{
    for (int i = 0; i < made->plan.step_count; i++)
        if (made->plan.steps[i].kind == kind && number-- == 0) return &made->plan.steps[i];
    fail_msg("no such step");
    return NULL;
}

static CornuPlace *place_of_in(Planned *made, const CornuPlanStep *step, int k)
{
    return &made->plan.places[made->plan.operands[step->in_first + k]];
}

static void test_a_value_without_memory(void **state)
{
    (void)state;
    Planned *made = steps_planned(1, 1);
    place_of_in(made, step_of(made, CORNU_STEP_KERNEL, 0), 0)->region = CORNU_NOWHERE;
    expect_objection(made, "has no memory");
}

static void test_steps_in_the_wrong_order(void **state)
{
    (void)state;
    Planned  *made = steps_planned(1, 1);
    CornuPlanStep first = made->plan.steps[0];
    made->plan.steps[0] = made->plan.steps[1];
    made->plan.steps[1] = first;
    expect_objection(made, "is read before it is written");
}

static void test_an_output_that_nobody_writes(void **state)
{
    (void)state;
    Planned *made = steps_planned(1, 1);
    made->plan.steps[made->plan.step_count - 1].out_count = 0;
    expect_objection(made, "is read");
}

/* The result of the group after the first sum takes the memory of a value that a later step reads.
 * */
static void test_a_value_that_is_overwritten(void **state)
{
    (void)state;
    Planned         *made = steps_planned(1, 1);
    const CornuPlanStep *group = step_of(made, CORNU_STEP_GROUP, 0);
    const CornuPlanStep *sum = step_of(made, CORNU_STEP_KERNEL, 0);
    *place_of_in(made, sum, 1) = made->plan.places[made->plan.operands[group->out_first]];
    expect_objection(made, "over an operand of its own step");
}

static void test_a_step_that_reads_another_operand(void **state)
{
    (void)state;
    Planned         *made = steps_planned(1, 1);
    const CornuPlanStep *sum = step_of(made, CORNU_STEP_KERNEL, 0);
    made->plan.operands[sum->in_first] = made->plan.program->inputs[1];
    expect_objection(made, "is an operand of the op but not of the step");
}

static void test_another_extent(void **state)
{
    (void)state;
    Planned *made = steps_planned(1, 1);
    step_of(made, CORNU_STEP_KERNEL, 0)->types[0].shape.extent[0]++;
    expect_objection(made, "is not of the type");
}

static void test_beyond_the_end(void **state)
{
    (void)state;
    Planned *made = steps_planned(1, 1);
    made->plan.arena.shared -= 64;
    expect_objection(made, "beyond the end of its memory");
}

/* Each wait is dropped in turn: on values that other shards have not made yet, or still read. */
static void test_a_wait_that_is_missing(void **state)
{
    (void)state;
    int waits = 0;
    for (int threads = 1; threads <= 4; threads += 3)
        for (int i = 0; i < 12; i++) {
            Planned *made = steps_planned(4, threads);
            if (i >= made->plan.step_count || !made->plan.steps[i].waits) {
                release_planned(made);
                continue;
            }
            made->plan.steps[i].waits = false;
            waits++;
            expect_objection(made, "");
        }
    assert_true(waits >= 2);
}

/* Shards write at once where only one may write at a time. */
static void test_shards_that_share_memory(void **state)
{
    (void)state;
    Planned *made = steps_planned(4, 1);
    for (int i = 0; i < made->plan.step_count; i++) {
        const CornuPlanStep *step = &made->plan.steps[i];
        CornuPlace      *place = &made->plan.places[made->plan.operands[step->out_first]];
        if (step->varies && place->stride > 0 && place->region == CORNU_ARENA) place->stride = 0;
    }
    expect_objection(made, "another shard may be");
}

/* What many shards add up block by block: blocks that write one sum, sums beyond their memory, a
 * sum of another value, and one that is missing. */
static void test_sums_of_blocks(void **state)
{
    (void)state;
    static const char *const words[] = { "", "beyond the end of its memory",
                                         "is read where another value has been written",
                                         "is read before it is written", "another shard may be" };
    for (int fault = 0; fault < 5; fault++) {
        Planned       *made = steps_planned(64, 2);
        CornuPlanStep *sum = step_of(made, CORNU_STEP_SUM, 0);
        CornuPlace    *first = &made->plan.places[made->plan.operands[sum->out_first]];
        assert_int_equal(first->region, CORNU_SUMS);
        assert_int_equal(first->block, 8);
        if (fault == 0) first->block = 4;
        if (fault == 1) made->plan.sums.worker -= 64;
        if (fault == 2)
            made->plan.operands[sum->in_first] = made->plan.operands[
                step_of(made, CORNU_STEP_SUM, 1)->in_first];
        if (fault == 3) sum->out_count = 0;
        if (fault == 4) first->stride = 0;
        expect_objection(made, words[fault]);
    }
}

/* A value that shards read of each other, and that a sum reads packed, is written once: the pack
 * finds it in place. */
static void test_what_is_packed_in_place_stays(void **state)
{
    (void)state;
    enum { SHARDS = 8 };
    static const int      neighbours[SHARDS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const CornuAttributes pairs = { .shards = { 2, { SHARDS, neighbours } } };
    const CornuAttributes all = { .shards = { .size = SHARDS } };
    CornuProgram         *p = cornu_program_create();
    CornuValue            x, scale = input(p, cornu_scalar(CORNU_F32));
    assert_int_equal(cornu_program_shard_input(p, cornu_scalar(CORNU_F32), &x), CORNU_OK);
    x = op2(p, CORNU_OP_MULTIPLY, x, scale);
    CornuValue       seen = reshape(p, x, cornu_shape(1));
    CornuValue       both = op(p, CORNU_OP_ALL_GATHER, &pairs, &seen, 1);
    const CornuValue of_both = reduce(p, CORNU_OP_REDUCE_SUM, both, 1);
    const CornuValue sum = op(p, CORNU_OP_ALL_REDUCE, &all, &of_both, 1);
    output(p, op2(p, CORNU_OP_ADD, sum, op(p, CORNU_OP_ALL_REDUCE, &all, &x, 1)), -1);
    for (int threads = 1; threads <= 3; threads++)
        release_planned(planned(cornu_program_copy(p), SHARDS, threads, f32));
    cornu_program_free(p);
}

/* ---- Passes left out ---- */

static void test_results_without_a_pass(void **state)
{
    (void)state;
    static const char *const passes[] = {
#define X(id, name) "-" #name,
        CORNU_PASSES(X)
#undef X
    };
    for (int i = 0; i < CORNU_PASS_COUNT; i++) {
        setenv("CORNU_PASSES", passes[i], 1);
        open_devices(NULL);
        CornuProgram *p = steps_of_all_kinds(1);
        check(p, 1e-5, passes[i]);
        cornu_program_free(p);
        close_devices(NULL);
    }
    unsetenv("CORNU_PASSES");
}

static void test_a_pass_that_is_left_out_shows(void **state)
{
    (void)state;
    CornuProgram *p = steps_of_all_kinds(1);
    int64_t       kernels[2];
    for (int without = 0; without < 2; without++) {
        if (without) setenv("CORNU_PASSES", "-delay,-group", 1);
        CornuDevice *device = cornu_device_open("cpu");
        Compiled     made = compile(device, p);
        kernels[without] = statistics(&made)->kernels;
        release(&made);
        cornu_device_close(device);
    }
    unsetenv("CORNU_PASSES");
    assert_true(kernels[1] > kernels[0]);
    cornu_program_free(p);
}

static void test_a_pass_that_is_none(void **state)
{
    (void)state;
    CornuProgram *p = steps_of_all_kinds(1);
    CornuDevice  *device = cornu_device_open("cpu");
    setenv("CORNU_PASSES", "-group,-grope", 1);
    assert_null(cornu_device_compile(device, p));
    assert_non_null(strstr(cornu_error_message(), "\"-grope\", expected passes to leave out"));
    cornu_error_take();
    unsetenv("CORNU_PASSES");
    cornu_device_close(device);
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_value_without_memory),
        cmocka_unit_test(test_steps_in_the_wrong_order),
        cmocka_unit_test(test_an_output_that_nobody_writes),
        cmocka_unit_test(test_a_value_that_is_overwritten),
        cmocka_unit_test(test_a_step_that_reads_another_operand),
        cmocka_unit_test(test_another_extent),
        cmocka_unit_test(test_beyond_the_end),
        cmocka_unit_test(test_a_wait_that_is_missing),
        cmocka_unit_test(test_shards_that_share_memory),
        cmocka_unit_test(test_what_is_packed_in_place_stays),
        cmocka_unit_test(test_sums_of_blocks),
        cmocka_unit_test(test_results_without_a_pass),
        cmocka_unit_test(test_a_pass_that_is_left_out_shows),
        cmocka_unit_test(test_a_pass_that_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
