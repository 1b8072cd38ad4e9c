/* CSV tables: parsing, categories, missing values, refusals. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/tables/table.h"
#include "../../allocations.h"
#include "../../comma.h"
#include "../files.h"
#include "../../skip.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define PARSE(text, ...) \
    cornu_table_parse(text, strlen(text), "t.csv", &(CornuTableConfig){ .unset = 0, __VA_ARGS__ })

static CornuTable *parse(const char *text)
{
    return cornu_table_parse(text, strlen(text), "t.csv", &(CornuTableConfig){ 0 });
}

static CornuTable *must(CornuTable *table)
{
    if (!table) fail_msg("%s", cornu_error_message());
    return table;
}

static void expect_f32(CornuArray array, int64_t rows, int64_t columns, const float *values)
{
    assert_true(cornu_type_equal(array.type, cornu_type(CORNU_F32, rows, columns)));
    for (int64_t i = 0; i < rows * columns; i++)
        assert_float_equal(((float *)array.data)[i], values[i], 0.0f);
    free(array.data);
}

/* All of RFC 4180: quoted delimiters, line ends and quotes, CR LF, a missing last line end; also a
 * byte-order mark, empty lines, blanks. */
static void test_fields_of_every_kind(void **state)
{
    (void)state;
    CornuArray  x;
    int         count;
    CornuTable *table = must(parse("\xEF\xBB\xBF" "\"size, cm\",name , weight\r\n"
                                   "1.5,\"a \"\"b\"\"\r\nc\",-2e1\r\n"
                                   "\r\n"
                                   " .25 , plain text ,\"+7\""));
    assert_int_equal(cornu_table_rows(table), 2);
    assert_int_equal(cornu_table_columns(table), 3);
    assert_string_equal(cornu_table_column_name(table, 0), "size, cm");
    assert_int_equal(cornu_table_find(table, "weight"), 2);
    const char *const *names = cornu_table_categories(table, 1, &count);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "a \"b\"\r\nc");
    assert_string_equal(names[1], "plain text");
    assert_null(cornu_table_categories(table, 0, &count));
    assert_int_equal(cornu_table_take(table, &x), CORNU_OK);
    expect_f32(x, 2, 3, (float[]){ 1.5f, 0.0f, -20.0f, 0.25f, 1.0f, 7.0f });
    cornu_table_free(table);

    table = must(PARSE("a;b\n1;2\n", .delimiter = ';'));
    assert_int_equal(cornu_table_take(table, &x), CORNU_OK);
    expect_f32(x, 1, 2, (float[]){ 1.0f, 2.0f });
    cornu_table_free(table);
}

/* CR alone, as on old Macs, an empty line and a quoted one among them. */
static void test_lines_that_end_in_cr(void **state)
{
    (void)state;
    CornuArray  x;
    int         count;
    CornuTable *table = must(parse("size,name\r1.5,\"a\rb\"\r\r2,\"c\" \r-3 ,plain text \r"));
    assert_int_equal(cornu_table_rows(table), 3);
    assert_int_equal(cornu_table_line(table, 2), 6);
    const char *const *names = cornu_table_categories(table, 1, &count);
    assert_int_equal(count, 3);
    assert_string_equal(names[0], "a\rb");
    assert_string_equal(names[2], "plain text");
    assert_int_equal(cornu_table_take(table, &x), CORNU_OK);
    expect_f32(x, 3, 2, (float[]){ 1.5f, 0.0f, 2.0f, 1.0f, -3.0f, 2.0f });
    cornu_table_free(table);
}

static const char animals[] = "kind,legs,age\ndog,4,3\ncat,4,5\nhen,2,1\ncat,4,2\n";

static void test_columns_by_name(void **state)
{
    (void)state;
    CornuArray  x, y;
    CornuTable *table = must(parse(animals));
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("age", "legs")), CORNU_OK);
    expect_f32(x, 4, 2, (float[]){ 3, 4, 5, 4, 1, 2, 2, 4 });
    assert_int_equal(cornu_table_take(table, &x, .except = LIST("legs"), .one_hot = true),
                     CORNU_OK);
    expect_f32(x, 4, 4, (float[]){ 0, 1, 0, 3, 1, 0, 0, 5, 0, 0, 1, 1, 1, 0, 0, 2 });
    assert_int_equal(cornu_table_take(table, &y, .columns = LIST("kind"), .dtype = CORNU_I32),
                     CORNU_OK);
    assert_true(cornu_type_equal(y.type, cornu_type(CORNU_I32, 4, 1)));
    assert_memory_equal(y.data, ((int32_t[]){ 1, 0, 2, 0 }), 16);
    free(y.data);
    cornu_table_free(table);
}

static void test_categories_that_look_like_numbers(void **state)
{
    (void)state;
    int         count;
    CornuTable *table = must(PARSE("zip,n\n10115,1\n080,2\nA-1,3\n", .categories = LIST("zip")));
    assert_string_equal(cornu_table_categories(table, 0, &count)[0], "080");
    assert_int_equal(count, 3);
    cornu_table_free(table);
}

static void test_rows_with_missing_values_are_left_out_if_asked(void **state)
{
    (void)state;
    static const char text[] = "a,b\n1,x\n,y\n3,NA\n4,?\n5,\"z\"\n";
    CornuArray        x;
    CornuTable       *table = must(PARSE(text, .missing = CORNU_MISSING_DROPPED));
    assert_int_equal(cornu_table_rows(table), 3);
    assert_int_equal(cornu_table_dropped(table), 2);
    cornu_table_free(table);
    table = must(PARSE(text, .missing = CORNU_MISSING_DROPPED, .missing_values = LIST("?", "x")));
    assert_int_equal(cornu_table_dropped(table), 3);
    assert_int_equal(cornu_table_take(table, &x), CORNU_OK);
    expect_f32(x, 2, 2, (float[]){ 3.0f, 0.0f, 5.0f, 1.0f });   /* NA is a word here */
    cornu_table_free(table);
}

/* Words that are missing are -1 before the first word, too, and no category of one-hot columns. */
static void test_missing_words_that_are_kept(void **state)
{
    (void)state;
    CornuArray  x;
    CornuTable *table = must(PARSE("a,b\n,1\nNA,2\nx,\n,4\nw,5\n", .missing = CORNU_MISSING_KEPT));
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("a")), CORNU_OK);
    expect_f32(x, 5, 1, (float[]){ -1.0f, -1.0f, 1.0f, -1.0f, 0.0f });
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("a"), .one_hot = true), CORNU_OK);
    expect_f32(x, 5, 2, (float[]){ 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 1.0f, 0.0f });
    cornu_table_free(table);
}

/* New data get the indices of the old, even if categories are absent and columns reordered. */
static void test_new_data_like_the_old(void **state)
{
    (void)state;
    CornuArray  x;
    CornuTable *old = must(parse(animals));
    CornuTable *table = must(PARSE("note,age,kind\nfat,9,hen\n,8,dog\n", .like = old));
    assert_int_equal(cornu_table_columns(table), 2);
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("kind", "age")), CORNU_OK);
    expect_f32(x, 2, 2, (float[]){ 2.0f, 9.0f, 1.0f, 8.0f });
    cornu_table_free(table);
    assert_null(PARSE("kind\ncow\n", .like = old));
    assert_int_equal(cornu_error_status(), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(),
                           "line 2, column kind: \"cow\" is not among the 3"));
    assert_null(PARSE("age\nold\n", .like = old));
    assert_int_equal(cornu_error_status(), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "line 2, column age: \"old\" is not a number"));
    cornu_table_free(old);
}

static void test_unknown_words_are_kept_if_asked(void **state)
{
    (void)state;
    CornuArray  x;
    const char *first;
    CornuTable *old = must(parse(animals));
    CornuTable *table = must(PARSE("age,kind\n9,cow\n8,dog\n,cat\n7,emu\n", .like = old,
                                   .unknown = CORNU_UNKNOWN_KEPT,
                                   .missing = CORNU_MISSING_DROPPED));
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("kind")), CORNU_OK);
    expect_f32(x, 3, 1, (float[]){ -1, 1, -1 });
    assert_int_equal(cornu_table_take(table, &x, .one_hot = true), CORNU_OK);
    expect_f32(x, 3, 4, (float[]){ 9, 0, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0 });
    assert_int_equal(cornu_table_unknown(table, 1, &first), 2);
    assert_string_equal(first, "cow");
    assert_int_equal(cornu_table_unknown(table, 0, &first), 0);
    assert_null(first);
    const int64_t lines[] = { 2, 3, 5, 0 };
    for (int row = 0; row < 4; row++)
        assert_int_equal(cornu_table_line(table, row), lines[row]);
    cornu_table_free(table);
    cornu_table_free(old);
}

/* ---- Schemas ---- */

static void test_a_schema_reads_new_data_as_the_table_did(void **state)
{
    (void)state;
    static const char text[] = "a,\"b, \"\"c\"\"\",\" d\",e\n"
                               "1,\"x,y\",\"two\nlines\",one\n2,\" z\",\"\"\"q\",one\n";
    CornuArray  x, y;
    CornuTable *table = must(parse(text));
    char       *schema = cornu_table_schema(table, NULL);
    assert_string_equal(schema, "a\n\"b, \"\"c\"\"\",\" z\",\"x,y\"\n"
                                "\" d\",\"\"\"q\",\"two\nlines\"\ne,one\n");
    CornuTable *like = must(cornu_table_schema_parse(schema));
    assert_int_equal(cornu_table_rows(like), 0);
    CornuTable *again = must(PARSE(text, .like = like));
    assert_int_equal(cornu_table_take(table, &x, .one_hot = true), CORNU_OK);
    assert_int_equal(cornu_table_take(again, &y, .one_hot = true), CORNU_OK);
    assert_true(cornu_type_equal(x.type, y.type));
    assert_memory_equal(x.data, y.data, cornu_type_bytes(x.type));
    free(x.data), free(y.data), free(schema);
    cornu_table_free(again);
    cornu_table_free(like);

    schema = cornu_table_schema(table, LIST("e", "a"));
    assert_string_equal(schema, "e,one\na\n");
    free(schema);
    assert_null(cornu_table_schema(table, LIST("f")));
    cornu_table_free(table);
}

static void test_bad_schemas(void **state)
{
    (void)state;
    static const struct { const char *schema, *message; } bad[] = {
        { "", "has no columns" }, { "a\n,b\n", "line 2: column \"\" is without a name" },
        { "a\na,b\n", "line 2: column \"a\" is there twice" },
        { "a,c,b\n", "line 1: categories are not sorted" },
        { "a,b,b\n", "line 1: categories are not sorted" }, { "\"a", "a quote is not closed" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(cornu_table_schema_parse(bad[i].schema));
        assert_int_equal(cornu_error_status(), CORNU_ERR_FORMAT);
        if (!strstr(cornu_error_message(), bad[i].message))
            fail_msg("\"%s\" does not contain \"%s\"", cornu_error_message(), bad[i].message);
    }
    assert_null(cornu_table_schema_parse(NULL));
    assert_int_equal(cornu_error_status(), CORNU_ERR_ARGUMENT);
}

static void test_files(void **state)
{
    (void)state;
    const char *path = files_path(folder, "t.csv");
    const size_t rows = 20000, size = 4 + rows * 4;   /* longer than a block of the file */
    char        *text = malloc(size + 1);
    memcpy(text, "a,b\n", 4);
    for (size_t i = 0; i < rows; i++) memcpy(text + 4 + 4 * i, i % 2 ? "1,x\n" : "2,y\n", 4);
    files_write(path, text, size);
    free(text);
    CornuTable *table = must(cornu_table_load(path));
    assert_int_equal(cornu_table_rows(table), rows);
    cornu_table_free(table);
    assert_null(cornu_table_load(files_path(folder, "none.csv")));
    assert_int_equal(cornu_error_status(), CORNU_ERR_FILE);
    assert_null(cornu_table_load(folder));
    assert_int_equal(cornu_error_status(), CORNU_ERR_FILE);
    assert_null(cornu_table_load(.delimiter = ','));
    assert_int_equal(cornu_error_status(), CORNU_ERR_ARGUMENT);
}

/* The decimal separator is a point, regardless of the locale. */
static void test_locales_do_not_matter(void **state)
{
    (void)state;
    CornuArray x;
    if (!comma_begin(folder)) SKIP_FOR(SKIP_LOCALE);
    CornuTable *table = must(parse("a\n1.5\n"));
    assert_int_equal(cornu_table_take(table, &x), CORNU_OK);
    expect_f32(x, 1, 1, (float[]){ 1.5f });
    assert_string_equal(localeconv()->decimal_point, ",");
    cornu_table_free(table);
    setlocale(LC_NUMERIC, "C");
}

/* As DataFrame.to_csv writes its index, which read_csv calls so. */
static void test_a_column_without_a_name(void **state)
{
    (void)state;
    CornuTable *table = parse(",a,\n0,1,x\n1,2,y\n");
    assert_non_null(table);
    assert_string_equal(cornu_table_column_name(table, 0), "Unnamed: 0");
    assert_string_equal(cornu_table_column_name(table, 1), "a");
    assert_string_equal(cornu_table_column_name(table, 2), "Unnamed: 2");
    cornu_table_free(table);
}

/* ---- Refusals ---- */

static void test_bad_tables(void **state)
{
    (void)state;
    static const struct { const char *text, *message; CornuStatus status; } bad[] = {
        { "", "is empty", CORNU_ERR_FORMAT },
        { "\n\n", "is empty", CORNU_ERR_FORMAT },
        { "a,b\n", "no rows", CORNU_ERR_DATA },
        { "a,,c,\n1,2,3,\n", "column Unnamed: 3: the value is missing", CORNU_ERR_VALUE },
        { "a,b,a\n1,2,3\n", "column a: is listed twice", CORNU_ERR_FORMAT },
        { "a,b\n1,2\n3\n", "line 3: 1 field, expected 2", CORNU_ERR_FORMAT },
        { "a,b\n\"x\ny\",2\n1,2,3\n", "line 4: 3 fields, expected 2", CORNU_ERR_FORMAT },
        { "a,b\n1,\"2\n3,4\n", "line 2: a quote is not closed", CORNU_ERR_FORMAT },
        { "a,b\n1,\"2\"3\n", "line 2: text after a closing quote", CORNU_ERR_FORMAT },
        { "a,b\n1,2\"\n", "line 2: a quote within a field", CORNU_ERR_FORMAT },
        { "a,b\n1,2\n3,\n", "line 3, column b: the value is missing", CORNU_ERR_VALUE },
        { "a,b\n1,NaN\n", "line 2, column b: the value is missing", CORNU_ERR_VALUE },
        { "a,b\n1,2\n3,?\n", "line 3, column b: \"?\" is not a number, but \"2\" on line 2 is;",
          CORNU_ERR_VALUE },
        { "a,b\n1,x\n3,4\n", "line 3, column b: \"4\" is a number, but \"x\" on line 2 is not;",
          CORNU_ERR_VALUE },
        { "a\n1\n0x10\n", "\"0x10\" is not a number", CORNU_ERR_VALUE },
        { "a\n1\n1e999\n", "\"1e999\" is not a number", CORNU_ERR_VALUE },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(parse(bad[i].text));
        assert_int_equal(cornu_error_status(), bad[i].status);
        if (!strstr(cornu_error_message(), bad[i].message) ||
            !strstr(cornu_error_message(), "t.csv"))
            fail_msg("\"%s\" does not contain \"%s\"", cornu_error_message(), bad[i].message);
    }
    static const struct { const char *bytes, *message; CornuStatus status; } not_text[] = {
        { "a\n1\0\n", "contains NUL bytes, at byte 3", CORNU_ERR_FORMAT },
        { "\x1f\x8b\x08\0\0", "is compressed by gzip", CORNU_ERR_UNSUPPORTED },
        { "\xff\xfe" "a\0,", "is UTF-16, expected UTF-8", CORNU_ERR_UNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof not_text / sizeof *not_text; i++) {
        assert_null(cornu_table_parse(not_text[i].bytes, 5, "t.csv", &(CornuTableConfig){ 0 }));
        assert_int_equal(cornu_error_status(), not_text[i].status);
        assert_non_null(strstr(cornu_error_message(), not_text[i].message));
    }
    assert_null(PARSE("a\n1\n", .delimiter = '"'));
    assert_int_equal(cornu_error_status(), CORNU_ERR_ARGUMENT);
    assert_null(PARSE("weight\n1\n", .categories = LIST("wieght")));
    assert_int_equal(cornu_error_status(), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "did you mean \"weight\""));
}

static void test_columns_that_cannot_be_taken(void **state)
{
    (void)state;
    CornuArray  x = { .data = folder };
    CornuTable *table = must(parse("a,b\n1.5,1e300\n"));
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("c")), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_table_take(table, &x, .except = LIST("c")), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_table_take(table, &x, .except = LIST("a", "b")), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("b")), CORNU_ERR_VALUE);
    assert_int_equal(cornu_table_take(table, &x, .columns = LIST("a"), .dtype = CORNU_I32),
                     CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "column a, row 1 is 1.5, which i32"));
    assert_int_equal(cornu_table_take(table, &x, .dtype = CORNU_U8), CORNU_ERR_DTYPE);
    assert_int_equal(cornu_table_take(table), CORNU_ERR_ARGUMENT);
    assert_ptr_equal(x.data, folder);
    cornu_table_free(table);
}

static void test_without_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuTable *table = NULL;
    CornuArray  x = { .data = NULL };
    for (int64_t allowed = 0; !table; allowed++) {
        allocations_fail_after(allowed);
        table = parse(animals);
        allocations_fail_after(NEVER);
        if (!table) assert_int_equal(cornu_error_status(), CORNU_ERR_MEMORY);
    }
    char       *schema = NULL;
    CornuTable *like = NULL;
    for (int64_t allowed = 0; !schema; allowed++) {
        allocations_fail_after(allowed);
        schema = cornu_table_schema(table, NULL);
        allocations_fail_after(NEVER);
    }
    for (int64_t allowed = 0; !like; allowed++) {
        allocations_fail_after(allowed);
        like = cornu_table_schema_parse(schema);
        allocations_fail_after(NEVER);
        if (!like) assert_int_equal(cornu_error_status(), CORNU_ERR_MEMORY);
    }
    cornu_table_free(like);
    free(schema);
    for (int64_t allowed = 0; !x.data; allowed++) {
        allocations_fail_after(allowed);
        const CornuStatus status = cornu_table_take(table, &x);
        allocations_fail_after(NEVER);
        assert_int_equal(status, x.data ? CORNU_OK : CORNU_ERR_MEMORY);
    }
    free(x.data);
    cornu_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_of_every_kind),
        cmocka_unit_test(test_lines_that_end_in_cr),
        cmocka_unit_test(test_columns_by_name),
        cmocka_unit_test(test_categories_that_look_like_numbers),
        cmocka_unit_test(test_rows_with_missing_values_are_left_out_if_asked),
        cmocka_unit_test(test_missing_words_that_are_kept),
        cmocka_unit_test(test_new_data_like_the_old),
        cmocka_unit_test(test_unknown_words_are_kept_if_asked),
        cmocka_unit_test(test_a_schema_reads_new_data_as_the_table_did),
        cmocka_unit_test(test_bad_schemas),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_locales_do_not_matter),
        cmocka_unit_test(test_a_column_without_a_name),
        cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_columns_that_cannot_be_taken),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
