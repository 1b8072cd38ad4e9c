/*
 * Sums and maxima of rows that run as part of elementwise groups, with what is made of them and
 * read along the rows: that they do, which do not, that the bits are those of kernels, and what the
 * gradient of a layer normalization stores and reads.
 *
 * tests/run: all instruction sets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../agreement.h"
#include "../../planned.h"

static const CornuMultiplier f32 = { .bf16 = false };

static CornuValue scaled(CornuProgram *p, CornuValue x, double by)
{
    const CornuType type = cornu_program_type(p, x);
    return op2(p, CORNU_OP_MULTIPLY, x, broadcast(p, constant(p, type.dtype, by), type.shape));
}

/* (…, 1), of the last axis. */
static CornuValue of_rows(CornuProgram *p, CornuOpId id, CornuValue x)
{
    const CornuShape      shape = cornu_program_type(p, x).shape;
    const CornuAttributes last = {
        .reduce = { .axes = INT64_C(1) << (shape.rank - 1), .keep = 1 },
    };
    return op(p, id, &last, &x, 1);
}

static CornuValue mean_of_rows(CornuProgram *p, CornuValue x)
{
    const CornuShape shape = cornu_program_type(p, x).shape;
    return scaled(p, of_rows(p, CORNU_OP_REDUCE_SUM, x),
                  1.0 / (double)shape.extent[shape.rank - 1]);
}

/* x op what there is of each row of it. */
static CornuValue along(CornuProgram *p, CornuOpId id, CornuValue x, CornuValue of_row)
{
    return op2(p, id, x, broadcast(p, of_row, cornu_program_type(p, x).shape));
}

/* (x - mean) inverse, and the inverse of each row. */
static CornuValue normalized(CornuProgram *p, CornuValue x, CornuValue *inverse)
{
    const CornuValue centred = along(p, CORNU_OP_SUBTRACT, x, mean_of_rows(p, x));
    const CornuValue squares = op2(p, CORNU_OP_MULTIPLY, centred, centred);
    const CornuType  type = cornu_program_type(p, squares);
    const CornuValue variance = mean_of_rows(p, squares);
    const CornuShape rows = cornu_program_type(p, variance).shape;
    const CornuValue epsilon = broadcast(p, constant(p, type.dtype, 0.125), rows);
    *inverse = op1(p, CORNU_OP_RSQRT, op2(p, CORNU_OP_ADD, variance, epsilon));
    return along(p, CORNU_OP_MULTIPLY, centred, *inverse);
}

/* A layer normalization, also of the inverse of each row, which is shifted by an input by row. */
static CornuProgram *normalization(CornuDtype dtype, int64_t rows, int64_t row)
{
    CornuProgram    *p = cornu_program_create();
    const CornuType  type = cornu_type(dtype, 2, rows, row);
    CornuValue       inverse, x = input(p, type), gamma = input(p, cornu_type(dtype, row));
    const CornuValue shift = input(p, cornu_type(dtype, rows, 1));   /* the same for either half */
    CornuValue       y = normalized(p, x, &inverse);
    y = op2(p, CORNU_OP_MULTIPLY, y, broadcast(p, gamma, type.shape));
    const CornuShape by_row = cornu_program_type(p, inverse).shape;
    inverse = op2(p, CORNU_OP_SUBTRACT, inverse, broadcast(p, shift, by_row));
    output(p, y, -1);
    output(p, inverse, -1);
    return p;
}

/* exp(x - max) / sum, of numbers that an elementwise op makes. */
static CornuProgram *softmax(CornuDtype dtype, int64_t rows, int64_t row)
{
    CornuProgram    *p = cornu_program_create();
    const CornuValue x = scaled(p, input(p, cornu_type(dtype, rows, row)), 0.75);
    const CornuValue most = of_rows(p, CORNU_OP_REDUCE_MAX, x);
    const CornuValue e = op1(p, CORNU_OP_EXP, along(p, CORNU_OP_SUBTRACT, x, most));
    output(p, along(p, CORNU_OP_DIVIDE, e, of_rows(p, CORNU_OP_REDUCE_SUM, e)), -1);
    return p;
}

/* Sums of rows of squares, which nothing reads along the rows. */
static CornuProgram *norms(CornuDtype dtype, int64_t rows, int64_t row)
{
    CornuProgram    *p = cornu_program_create();
    const CornuValue x = input(p, cornu_type(dtype, rows, row));
    output(p, of_rows(p, CORNU_OP_REDUCE_SUM, op2(p, CORNU_OP_MULTIPLY, x, x)), -1);
    return p;
}

/* What is made by row beside an update that reads a scalar as it is. */
static CornuProgram *update(CornuDtype dtype, int64_t rows, int64_t row)
{
    static const CornuAttributes momentum = { .momentum = { .momentum = 0.9 } };
    CornuProgram    *p = cornu_program_create();
    const CornuValue x = convert(p, input(p, cornu_type(dtype, rows, row)), CORNU_F32);
    const CornuValue rate = input(p, cornu_scalar(CORNU_F32));
    const CornuValue a = convert(p, input(p, cornu_type(dtype, rows, 1)), CORNU_F32);
    const CornuValue moved = op(p, CORNU_OP_MOMENTUM_UPDATE, &momentum,
                                (CornuValue[]){ x, x, x, rate }, 4);
    output(p, along(p, CORNU_OP_SUBTRACT, moved, op2(p, CORNU_OP_MULTIPLY, a, a)), -1);
    return p;
}

typedef CornuProgram *Record(CornuDtype dtype, int64_t rows, int64_t row);

static Record *const     records[] = { normalization, softmax, norms, update };
static const char *const names[] = { "normalization", "softmax", "norms", "update" };
enum { RECORDS = sizeof records / sizeof *records };

/* Of as many elements as a block, fewer, and such that blocks or the last one end within a vector
 * register. */
static const int64_t rows_of[] = { 16, 17, 100, 256, 341, 768, 1000, 1024 };
enum { ROW_COUNT = sizeof rows_of / sizeof *rows_of };

static void test_they_are_part_of_groups(void **state)
{
    (void)state;
    for (int i = 0; i < RECORDS; i++)
        for (int k = 0; k < ROW_COUNT; k++) {
            Planned *made = planned(records[i](CORNU_F32, 37, rows_of[k]), 1, 2, f32);
            assert_int_equal(made->plan.step_count, 1);
            assert_int_equal(count_steps(made, CORNU_STEP_GROUP), 1);
            release_planned(made);
        }
}

/* Short rows, and rows longer than a block; sums that only kernels read; sums of columns. */
static void test_which_are_not(void **state)
{
    (void)state;
    for (int64_t row = 15; row <= 1025; row += 1010)
        for (int i = 0; i < RECORDS; i++) {
            Planned *made = planned(records[i](CORNU_F32, 37, row), 1, 2, f32);
            assert_true(made->plan.step_count >= 2);
            release_planned(made);
        }
    for (int64_t axis = 0; axis < 2; axis++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_F32, 64, 64));
        if (axis == 0) x = scaled(p, x, 2.0);
        output(p, reduce(p, CORNU_OP_REDUCE_SUM, x, INT64_C(1) << axis), -1);
        Planned *made = planned(p, 1, 2, f32);
        assert_int_equal(count_steps(made, CORNU_STEP_KERNEL), 1);
        release_planned(made);
    }
}

/* Of one thread and two, on the reference device, and with kernels in their place. */
static void test_numbers(void **state)
{
    (void)state;
    static const CornuDtype dtypes[] = { CORNU_F32, CORNU_BF16 };
    for (int i = 0; i < RECORDS * ROW_COUNT * 2; i++) {
        const CornuDtype dtype = dtypes[i % 2];
        const int        which = i / 2 % RECORDS;
        CornuProgram    *p = records[which](dtype, 37, rows_of[i / 2 / RECORDS]);
        check(p, dtype == CORNU_F32 ? 1e-5 : 0.03, names[which]);
        check_without(p, "-row_sums", names[which]);
        cornu_program_free(p);
    }
}

/* ---- A layer normalization and its gradient ---- */

enum { ROWS = 48, COLUMNS = 64 };

static CornuValue product(CornuProgram *p, CornuValue x)
{
    const CornuAttributes dtype = { .matmul = { .dtype = CORNU_F32 } };
    const CornuValue      w = input(p, cornu_type(CORNU_F32, COLUMNS, COLUMNS));
    return op(p, CORNU_OP_MATMUL, &dtype, (CornuValue[]){ x, w }, 2);
}

/* d_x = inverse (d - mean d - y mean(d y)), and d y, whose sum over the rows is a scale's gradient;
 * of x and d that products make. */
static CornuProgram *with_gradient(void)
{
    CornuProgram    *p = cornu_program_create();
    CornuValue       inverse, x = product(p, input(p, cornu_type(CORNU_F32, ROWS, COLUMNS)));
    const CornuValue y = normalized(p, x, &inverse);
    const CornuValue d = product(p, scaled(p, y, 0.5));
    const CornuValue d_y = op2(p, CORNU_OP_MULTIPLY, d, y);
    CornuValue       d_x = along(p, CORNU_OP_SUBTRACT, d, mean_of_rows(p, d));
    d_x = op2(p, CORNU_OP_SUBTRACT, d_x, along(p, CORNU_OP_MULTIPLY, y, mean_of_rows(p, d_y)));
    output(p, product(p, along(p, CORNU_OP_MULTIPLY, d_x, inverse)), -1);
    output(p, reduce(p, CORNU_OP_REDUCE_SUM, d_y, 1), -1);
    return p;
}

/* Values as large as x that steps other than products read and write. */
static int64_t maps_moved(const Planned *made)
{
    int64_t maps = 0;
    for (int i = 0; i < made->plan.step_count; i++) {
        const CornuPlanStep *step = &made->plan.steps[i];
        for (int k = 0; k < step->in_count + step->out_count; k++)
            maps += step->kernel != &cornu__host_matmul &&
                    cornu_type_count(step->types[k]) == ROWS * COLUMNS;
    }
    return maps;
}

/* One group reads x and writes y; one reads x and d and writes d_x and d y, whose sum is the last
 * step's. Sums of rows are read again, not made again. */
static void test_a_gradient_reads_its_operands_once(void **state)
{
    (void)state;
    Planned *made = planned(with_gradient(), 1, 2, f32);
    assert_int_equal(count_steps(made, CORNU_STEP_GROUP), 2);
    assert_int_equal(maps_moved(made), 7);
    release_planned(made);
    setenv("CORNU_PASSES", "-row_sums", 1);
    made = planned(with_gradient(), 1, 2, f32);
    unsetenv("CORNU_PASSES");
    assert_int_equal(maps_moved(made), 16);
    release_planned(made);
    CornuProgram *p = with_gradient();
    check(p, 1e-4, "a normalization and its gradient");
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_are_part_of_groups),
        cmocka_unit_test(test_which_are_not),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_a_gradient_reads_its_operands_once),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
