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
#include <string.h>

#include <cmocka.h>
#include <stdbool.h>

#include <cornu/device/host/isa/transpose.h>

#include "../../isas.h"

enum { APART = 5, UNTOUCHED = 0x77 };

static const int64_t extents[] = { 0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 50, 64, 97 };
enum { EXTENTS = sizeof extents / sizeof *extents };

/* Bytes of one matrix of elements of `size` bytes, all elements different. */
static void check(size_t size, int64_t rows, int64_t columns)
{
    const int64_t x_row = columns + APART, y_row = rows + APART;
    const size_t  x_count = (size_t)(rows * x_row + 1), y_count = (size_t)(columns * y_row + 1);
    char         *x = malloc(x_count * size), *y = malloc(y_count * size);
    char          untouched[sizeof(uint32_t)];
    memset(untouched, UNTOUCHED, sizeof untouched);
    memset(y, UNTOUCHED, y_count * size);
    for (size_t i = 0; i < x_count; i++) {
        const uint32_t word = (uint32_t)i * 0x9e3779b1u;   /* odd: distinct low halves, too */
        memcpy(x + i * size, &word, size);
    }
    const CornuTransposes *transposes = cornu__transposes();
    if (size == sizeof(uint16_t))
        transposes->halves((void *)x, x_row, rows, columns, (void *)y, y_row);
    else transposes->words((void *)x, x_row, rows, columns, (void *)y, y_row);
    for (int64_t k = 0; k < (int64_t)y_count; k++) {
        const int64_t j = k / y_row, i = k % y_row;
        const bool    made = j < columns && i < rows;
        assert_memory_equal(y + (size_t)k * size,
                            made ? x + (size_t)(i * x_row + j) * size : untouched, size);
    }
    free(x), free(y);
}

static void check_all(size_t size)
{
    for (int i = 0; i < EXTENTS; i++)
        for (int j = 0; j < EXTENTS; j++) check(size, extents[i], extents[j]);
}

static void test_halves(void **state)
{
    (void)state;
    check_all(sizeof(uint16_t));
}

static void test_words(void **state)
{
    (void)state;
    check_all(sizeof(uint32_t));
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
