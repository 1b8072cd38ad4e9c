/*
 * What elementwise ops are computed twice rather than stored: that groups store less, that the bits
 * are the same, and what is left alone.
 *
 * tests/run: all instruction sets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../agreement.h"
#include "../../planned.h"

enum { ROWS = 40, COLUMNS = 48 };

static const CornuAttributes f32_product = { .matmul = { .dtype = CORNU_F32 } };

static CornuValue product(CornuProgram *p, CornuValue x)
{
    const CornuValue w = input(p, cornu_type(CORNU_F32, COLUMNS, COLUMNS));
    return op(p, CORNU_OP_MATMUL, &f32_product, (CornuValue[]){ x, w }, 2);
}

static CornuValue scaled(CornuProgram *p, CornuValue x, double by)
{
    const CornuValue factor = constant(p, CORNU_F32, by);
    return op2(p, CORNU_OP_MULTIPLY, x, broadcast(p, factor, cornu_program_type(p, x).shape));
}

typedef enum { GELU, SQUARES, READ_BY_KERNEL, RANDOM, LONG, OVERWRITTEN, CASES } Case;

static const struct {
    const char *what;
    int         stored, without;   /* by groups */
} cases[CASES] = {
    { "gelu and its slope", 2, 5 },
    { "one value of one", 2, 3 },
    { "a value that a kernel reads", 3, 3 },
    { "random numbers", 3, 3 },
    { "exponentials of exponentials", 3, 3 },
    { "of a variable that is overwritten", 4, 4 },
};

/* gelu(x) for one product, and of another one d times the slope of gelu at x. */
static void record_gelu(CornuProgram *p, CornuValue x)
{
    const CornuType  type = cornu_program_type(p, x);
    const CornuValue one = broadcast(p, constant(p, CORNU_F32, 1.0), type.shape);
    const CornuValue u = scaled(p, x, 0.7), half = scaled(p, x, 0.5);
    const CornuValue twice = op2(p, CORNU_OP_ADD, op1(p, CORNU_OP_ERF, u), one);
    const CornuValue d = product(p, product(p, op2(p, CORNU_OP_MULTIPLY, half, twice)));
    const CornuValue square = op1(p, CORNU_OP_NEGATIVE, op2(p, CORNU_OP_MULTIPLY, u, u));
    const CornuValue bell = scaled(p, op1(p, CORNU_OP_EXP, square), 0.8);
    const CornuValue left = op2(p, CORNU_OP_MULTIPLY, d, scaled(p, twice, 0.5));
    const CornuValue right = op2(p, CORNU_OP_MULTIPLY, op2(p, CORNU_OP_MULTIPLY, d, half), bell);
    output(p, op2(p, CORNU_OP_ADD, left, right), -1);
}

/* Two values of x: a product reads one, and the sum of that product and the other is the output. */
static CornuProgram *record_case(Case which)
{
    static const CornuAttributes random = { .random = { 2, { ROWS, COLUMNS }, 3 } };
    CornuProgram *p = cornu_program_create();
    CornuValue    variable = input(p, cornu_type(CORNU_F32, ROWS, COLUMNS));
    /* The product with two readers stays in memory as it is. */
    const CornuValue x = which == OVERWRITTEN ? variable : product(p, variable);
    if (which == GELU) {
        record_gelu(p, x);
        return p;
    }
    CornuValue first = scaled(p, x, 0.5), second = op2(p, CORNU_OP_MULTIPLY, first, first);
    if (which == LONG) second = op1(p, CORNU_OP_EXP, op1(p, CORNU_OP_ERF, second));
    if (which == RANDOM) {
        CornuValue place[3];   /* seed, iteration, position */
        for (int i = 0; i < 3; i++) place[i] = input(p, (CornuType){ .dtype = CORNU_I64 });
        const CornuValue numbers = op(p, CORNU_OP_RANDOM_UNIFORM, &random, place, 3);
        second = op2(p, CORNU_OP_MULTIPLY, second, numbers);
    }
    const CornuValue both = op2(p, CORNU_OP_ADD, first, second);
    const CornuValue later = product(p, op1(p, CORNU_OP_NEGATIVE, both));
    CornuValue       sum = op2(p, CORNU_OP_MULTIPLY, later, second);
    if (which == READ_BY_KERNEL) sum = op2(p, CORNU_OP_MULTIPLY, sum, product(p, second));
    output(p, sum, -1);
    if (which == OVERWRITTEN) output(p, scaled(p, first, 0.1), 0);
    return p;
}

/* Values that groups write to memory. */
static int count_stored(Case which)
{
    const CornuMultiplier f32 = { .bf16 = false };
    Planned              *made = planned(record_case(which), 1, 2, f32);
    int                   count = 0;
    for (int i = 0; i < made->plan.step_count; i++)
        if (made->plan.steps[i].kind == CORNU_STEP_GROUP) count += made->plan.steps[i].out_count;
    release_planned(made);
    return count;
}

static void test_what_is_stored(void **state)
{
    (void)state;
    for (Case i = 0; i < CASES; i++) {
        const int stored = count_stored(i);
        setenv("CORNU_PASSES", "-recompute", 1);
        const int without = count_stored(i);
        unsetenv("CORNU_PASSES");
        if (stored != cases[i].stored || without != cases[i].without)
            fail_msg("%s: %d values stored, %d without the pass; expected %d and %d", cases[i].what,
                     stored, without, cases[i].stored, cases[i].without);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    for (Case i = 0; i < CASES; i++) {
        CornuProgram *p = record_case(i);
        if (i != OVERWRITTEN) check(p, 1e-5, cases[i].what);
        check_without(p, "-recompute", cases[i].what);
        cornu_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_stored),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
