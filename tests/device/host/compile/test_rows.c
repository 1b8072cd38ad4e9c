/* Lookups and replacements of rows that run as part of elementwise groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../agreement.h"

/* 0, step, 2 step, ... of i32 (count), at most `last`. */
static CornuValue ascending(CornuProgram *p, int64_t count, double step, double last)
{
    const CornuShape shape = cornu_shape(count);
    CornuAttributes  iota = { .iota = { .dtype = CORNU_I32, .rank = 1, .extents = { count } } };
    CornuValue       i = op0(p, CORNU_OP_IOTA, &iota);
    i = op2(p, CORNU_OP_MULTIPLY, i, broadcast(p, constant(p, CORNU_I32, step), shape));
    return op2(p, CORNU_OP_MINIMUM, i, broadcast(p, constant(p, CORNU_I32, last), shape));
}

static CornuValue look_up(CornuProgram *p, CornuValue table, CornuValue indices)
{
    const CornuAttributes padded = { .gather = { .padded = CORNU_PADDED_ABOVE } };
    return op(p, CORNU_OP_GATHER, &padded, (CornuValue[]){ table, indices }, 2);
}

static CornuValue replace(CornuProgram *p, CornuValue table, CornuValue indices, CornuValue rows)
{
    return op(p, CORNU_OP_SCATTER_ROWS, NULL, (CornuValue[]){ table, indices, rows }, 3);
}

/* m' = m / 2 + g, w' = w - m', of the rows that the indices name. */
static void momentum(CornuProgram *p, CornuValue w, CornuValue m, CornuValue g, CornuValue indices)
{
    const CornuType type = cornu_program_type(p, g);
    CornuValue half = broadcast(p, constant(p, type.dtype, 0.5), type.shape);
    CornuValue m_rows = look_up(p, m, indices), w_rows = look_up(p, w, indices);
    m_rows = op2(p, CORNU_OP_ADD, op2(p, CORNU_OP_MULTIPLY, m_rows, half), g);
    w_rows = op2(p, CORNU_OP_SUBTRACT, w_rows, m_rows);
    output(p, replace(p, m, indices, m_rows), 1);
    output(p, replace(p, w, indices, w_rows), 0);
}

/* Tables (rows, columns), of which `lookups` are updated, the last ones of no row. */
static CornuProgram *update(CornuDtype dtype, int64_t rows, int64_t columns, int64_t lookups)
{
    CornuProgram   *p = cornu_program_create();
    const CornuType table = cornu_type(dtype, rows, columns);
    CornuValue      w = input(p, table), m = input(p, table);
    CornuValue      g = input(p, cornu_type(dtype, lookups, columns));
    momentum(p, w, m, g, ascending(p, lookups, 2.0, (double)rows));
    return p;
}

/* The indices are one step, the update another, which moves the rows of w and m in and out and g,
 * and the indices twice. */
static void test_an_update_of_rows_is_one_pass_in_place(void **state)
{
    (void)state;
    CornuProgram *p = update(CORNU_F32, 500, 70, 200);
    check(p, 1e-6, "an update of rows");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->kernels, 2);
    assert_int_equal(statistics(&made)->copies, 0);
    assert_int_equal(statistics(&made)->bytes_moved, 5 * 200 * 70 * 4 + 2 * 200 * 4);
    release(&made);
    cornu_program_free(p);
}

/* Rows of one element, rows longer than a block, ragged ends, several pieces of work, and dtypes
 * that are converted on the way. */
static void test_rows_of_every_size(void **state)
{
    (void)state;
    static const struct { CornuDtype dtype; int64_t rows, columns, lookups; } cases[] = {
        { CORNU_F32, 90, 1, 37 },      { CORNU_F32, 9, 3000, 4 },   { CORNU_F32, 3000, 17, 1400 },
        { CORNU_F32, 20000, 16, 9999 }, { CORNU_BF16, 300, 33, 200 }, { CORNU_F64, 60, 5, 29 },
        { CORNU_F32, 5, 4, 0 },         { CORNU_F32, 1, 1, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuProgram *p = update(cases[i].dtype, cases[i].rows, cases[i].columns,
                                 cases[i].lookups);
        char          what[64];
        snprintf(what, sizeof what, "rows of %lld", (long long)cases[i].columns);
        check(p, cases[i].dtype == CORNU_BF16 ? 0x1p-7 : 1e-6, what);
        cornu_program_free(p);
    }
}

/* Each row becomes that of another: none may be replaced before all have been read. */
static void test_other_rows_are_read_first(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    w = input(p, cornu_type(CORNU_F32, 100, 64));
    CornuValue    all = ascending(p, 100, 1.0, 100.0);
    CornuValue    last = broadcast(p, constant(p, CORNU_I32, 99.0), cornu_shape(100));
    CornuValue    turned = op2(p, CORNU_OP_SUBTRACT, last, all);
    CornuValue    rows = op1(p, CORNU_OP_NEGATIVE, look_up(p, w, turned));
    output(p, replace(p, w, all, rows), 0);
    check(p, 0.0, "rows turned round");
    cornu_program_free(p);
}

/* The indices are those of rows of the same table, which is read a second time besides. */
static void test_a_table_is_read_besides_its_rows(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    w = input(p, cornu_type(CORNU_F32, 40, 8));
    CornuValue    all = ascending(p, 40, 1.0, 40.0);
    CornuValue    rows = op2(p, CORNU_OP_ADD, look_up(p, w, all), w);
    output(p, replace(p, w, all, rows), 0);
    output(p, op1(p, CORNU_OP_NEGATIVE, w), -1);
    check(p, 0.0, "a table besides its rows");
    cornu_program_free(p);
}

/* In descending order one thread replaces them; of a table that is not written in place the other
 * rows are brought along. */
static void test_rows_in_any_order(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    w = input(p, cornu_type(CORNU_F32, 3000, 24));
    CornuValue    all = ascending(p, 3000, 1.0, 3000.0);
    CornuValue    last = broadcast(p, constant(p, CORNU_I32, 2999.0), cornu_shape(3000));
    CornuValue    turned = op2(p, CORNU_OP_SUBTRACT, last, all);
    CornuValue    rows = op1(p, CORNU_OP_NEGATIVE, look_up(p, w, turned));
    CornuValue    few = ascending(p, 100, 7.0, 3000.0);
    CornuValue    some = op1(p, CORNU_OP_NEGATIVE, look_up(p, w, few));
    output(p, replace(p, w, few, some), -1);
    output(p, replace(p, w, turned, rows), 0);
    check(p, 0.0, "rows in any order");
    cornu_program_free(p);
}

/* The table has as many elements as the rows: what reads it then reads the table all the same. */
static void test_a_table_of_as_many_rows_is_read(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    w = input(p, cornu_type(CORNU_F32, 8, 5));
    CornuValue    even = ascending(p, 8, 2.0, 8.0);
    CornuValue    rows = op1(p, CORNU_OP_NEGATIVE, look_up(p, w, even));
    CornuValue    table = replace(p, w, even, rows);
    output(p, table, 0);
    output(p, op2(p, CORNU_OP_MULTIPLY, table, table), -1);
    check(p, 1e-6, "a table of as many rows");
    cornu_program_free(p);
}

/* Of an index outside the table the message names op, row and range; nothing is written. */
static void test_an_index_outside_is_named(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    w = input(p, cornu_type(CORNU_F32, 20, 3));
    CornuValue indices = ascending(p, 12, 2.0, 21.0);
    output(p, replace(p, w, indices, op1(p, CORNU_OP_NEGATIVE, look_up(p, w, indices))), 0);
    Compiled made = compile(cpu[1], p);
    set_inputs(&made, 1);
    int64_t count;
    double *before = get_input(&made, 0, &count);
    assert_int_equal(cornu_executable_run(made.executable, made.inputs, made.outputs),
                     CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "gather: index 21 in row 11, expected 0 to 19"));
    double *after = get_input(&made, 0, &count);
    assert_memory_equal(before, after, (size_t)count * sizeof *before);
    free(before);
    free(after);
    release(&made);
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_update_of_rows_is_one_pass_in_place),
        cmocka_unit_test(test_rows_of_every_size),
        cmocka_unit_test(test_other_rows_are_read_first),
        cmocka_unit_test(test_a_table_is_read_besides_its_rows),
        cmocka_unit_test(test_rows_in_any_order),
        cmocka_unit_test(test_a_table_of_as_many_rows_is_read),
        cmocka_unit_test(test_an_index_outside_is_named),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
