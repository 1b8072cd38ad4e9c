/* Numbers in text: the same bits as the C library, on easy and on hard ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/tables/number_internal.h"
#include "../../../device/text/print.h"

static uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Reads the text with a comma after it, in memory that ends there. */
static void expect_as_library(const char *text)
{
    char        place[400], *after;
    const char *end;
    double      number = 0.0;
    const int   length = snprintf(place, sizeof place, "%s,", text);
    const double expected = cornu__parse_number(text, &after);
    assert_true(length < (int)sizeof place && !*after);
    char *exact = malloc((size_t)length);
    memcpy(exact, place, (size_t)length);
    if (!cornu__scan_number(exact, exact + length, &end, &number)) fail_msg("%s: none", text);
    if (end != exact + length - 1) fail_msg("%s: ends after %d", text, (int)(end - exact));
    if (bits_of(number) != bits_of(expected))
        fail_msg("%s: %.17g, expected %.17g", text, number, expected);
    free(exact);
}

static uint64_t next(uint64_t *state)   /* Knuth's MMIX generator, and its upper half below */
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state ^ *state >> 29;
}

static void test_random_doubles(void **state)
{
    static const int digits[] = { 3, 6, 9, 15, 16, 17, 18, 19, 20, 25 };
    char     text[400];
    uint64_t random = 1;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next(&random);
        double   number;
        if (i % 2) bits = (bits & ~(UINT64_C(0x7FF) << 52)) | (960 + bits % 128) << 52;
        memcpy(&number, &bits, sizeof bits);
        if (number - number != 0.0) continue;   /* infinite, or none */
        snprintf(text, sizeof text, i % 3 ? "%.*g" : "%.*e", digits[i % 10], number);
        expect_as_library(text);
    }
}

/* Whole numbers of 16 to 19 digits times powers of ten: many are nearly in the middle between two
 * doubles. */
static void test_whole_numbers_with_exponents(void **state)
{
    char     text[64];
    uint64_t random = 7;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const uint64_t w = next(&random) >> (1 + i % 14);
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)w, i % 131 - 65);
        expect_as_library(text);
    }
}

/* Doubles and what lies in the middle between two, exactly and by a digit more or less. */
static void test_ties(void **state)
{
    static const char *const texts[] = {
        "9007199254740993", "9007199254740992.9999999999", "9007199254740993.00000001",
        "9007199254740995e0", "9007199254740993e1", "4503599627370496.5", "4503599627370497.5",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        "1.0000000000000003330669073875469621270895004272460937500",
        "18014398509481990", "36028797018963972e4", "7205759403792794e-4", "9007199254740993e-3",
        "123456789012345678", "1234567890123456789", "12345678901234567890", "9999999999999999999",
        "18446744073709551615", "18446744073709551616", "5e-324", "2.2250738585072014e-308",
        "2.2250738585072011e-308", "1.7976931348623157e308", "1e23", "8.5e22", "1e22", "1e-22",
        "0.000000000000000000000000000000000000000000000000123",
        "00000000000000000000000000000012.5", "0", "-0", "0.0", "-0e5", "0e999999", "1e-999999",
        ".5", "5.", "+5", "-.5e-3", "1E5", "1e+05", "12345678.12345678", "1234567812345678",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) expect_as_library(texts[i]);
}

static void test_where_a_number_ends(void **state)
{
    static const struct { const char *text; int length; } cases[] = {
        { "", 0 }, { ",", 0 }, { "-", 0 }, { ".", 0 }, { "+.", 0 }, { "e5", 0 }, { ".e5", 0 },
        { "nan", 0 }, { "inf", 0 }, { "-inf", 0 }, { "1e400", 0 }, { "--1", 0 }, { " 1", 0 },
        { "0x10", 1 }, { "1e", 1 }, { "1e+", 1 }, { "1.5.2", 3 }, { "1_000", 1 },
        { "12345678x", 8 },
        { "1-2", 1 }, { "1e5e5", 3 }, { "7\n", 1 }, { "7 ", 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text, *end = text;
        double      number;
        const bool  is_number = cornu__scan_number(text, text + strlen(text) + 1, &end, &number);
        if (is_number != (cases[i].length > 0) || end != text + cases[i].length)
            fail_msg("\"%s\": %d characters, expected %d", text, (int)(end - text),
                     cases[i].length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_doubles),
        cmocka_unit_test(test_whole_numbers_with_exponents),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_where_a_number_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
