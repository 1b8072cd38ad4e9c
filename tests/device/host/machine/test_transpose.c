/*
 * Matrices turned by every instruction set, against indices: whole registers, parts of them, one
 * row, one column, none; rows apart; nothing beyond the result is written.
 *
 * tests/run: all instruction sets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cornu/device/host/isa/transpose.h>

#include "../../isas.h"

enum { APART = 5, UNTOUCHED = 0x7777 };

static const int64_t extents[] = { 0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 50, 64, 97 };
enum { EXTENTS = sizeof extents / sizeof *extents };

static void check_halves(int64_t rows, int64_t columns)
{
    const int64_t x_row = columns + APART, y_row = rows + APART;
    const int64_t x_count = rows * x_row + 1, y_count = columns * y_row + 1;
    uint16_t     *x = malloc((size_t)x_count * sizeof *x), *y = malloc((size_t)y_count * sizeof *y);
    for (int64_t i = 0; i < x_count; i++) x[i] = (uint16_t)(i & 0x3fff);
    for (int64_t i = 0; i < y_count; i++) y[i] = UNTOUCHED;
    cornu__transposes()->halves(x, x_row, rows, columns, y, y_row);
    for (int64_t k = 0; k < y_count; k++) {
        const int64_t j = k / y_row, i = k % y_row;
        assert_int_equal(y[k], j < columns && i < rows ? x[i * x_row + j] : UNTOUCHED);
    }
    free(x), free(y);
}

static void check_words(int64_t rows, int64_t columns)
{
    const int64_t x_row = columns + APART, y_row = rows + APART;
    const int64_t x_count = rows * x_row + 1, y_count = columns * y_row + 1;
    uint32_t     *x = malloc((size_t)x_count * sizeof *x), *y = malloc((size_t)y_count * sizeof *y);
    for (int64_t i = 0; i < x_count; i++) x[i] = 0x10000u + (uint32_t)i;
    for (int64_t i = 0; i < y_count; i++) y[i] = UNTOUCHED;
    cornu__transposes()->words(x, x_row, rows, columns, y, y_row);
    for (int64_t k = 0; k < y_count; k++) {
        const int64_t j = k / y_row, i = k % y_row;
        assert_int_equal(y[k], j < columns && i < rows ? x[i * x_row + j] : UNTOUCHED);
    }
    free(x), free(y);
}

static void test_halves(void **state)
{
    (void)state;
    for (int i = 0; i < EXTENTS; i++)
        for (int j = 0; j < EXTENTS; j++) check_halves(extents[i], extents[j]);
}

static void test_words(void **state)
{
    (void)state;
    for (int i = 0; i < EXTENTS; i++)
        for (int j = 0; j < EXTENTS; j++) check_words(extents[i], extents[j]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_words),
    };
    int failed = 0;
    for (int isa = 0; isa < CORNU_F32_ISA_COUNT; isa++)
        failed += isa_run_group("", (CornuIsa)isa, tests, sizeof tests / sizeof *tests);
    return failed;
}
