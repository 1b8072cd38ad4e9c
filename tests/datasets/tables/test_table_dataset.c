/* Rows of tables as data sets, in memory and on disk: pandas' values, any order, damaged files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/tables/table_dataset.h"
#include "../../../datasets/tables/table_internal.h"
#include "../../expect.h"
#include "../files.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define GOLDEN "tests/golden/tables/"

static CornuTable *must(CornuTable *table)
{
    if (!table) fail_msg("%s", cornu_error_message());
    return table;
}

/* ---- pandas ---- */

/* The categories of a column as the golden file writes them. */
static void expect_column(const CornuTable *table, int column, const char *line)
{
    char               text[200] = "";
    int                count;
    const char *const *words = cornu_table_categories(table, column, &count);
    strcat(text, cornu_table_column_name(table, column));
    for (int i = 0; i < count; i++) strcat(strcat(text, " "), words[i]);
    /* Blanks and line ends of the words are underscores there, those between words are not. */
    for (size_t i = 0; text[i]; i++)
        if (text[i] != line[i] && !(strchr(" \n", text[i]) && strchr("_ ", line[i])))
            fail_msg("column %d: \"%s\", pandas has \"%s\"", column, text, line);
}

static void expect_golden(const char *name, bool on_disk)
{
    char path[80], line[300];
    int  rows, columns;
    snprintf(path, sizeof path, GOLDEN "%s.txt", name);
    FILE *golden = fopen(path, "r");
    assert_non_null(golden);
    assert_non_null(fgets(line, sizeof line, golden));
    assert_int_equal(sscanf(line, "%d %d", &rows, &columns), 2);
    snprintf(path, sizeof path, GOLDEN "%s.csv", name);
    CornuTable *table = must(cornu_table_load(path, .on_disk = on_disk,
                                              .delimiter = name[0] == 's' && name[1] == 'e' ? ';'
                                                                                            : ',',
                                              .missing = CORNU_MISSING_KEPT));
    assert_true(cornu_table_rows(table) == rows && cornu_table_columns(table) == columns);
    for (int c = 0; c < columns; c++) {
        assert_non_null(fgets(line, sizeof line, golden));
        expect_column(table, c, line);
    }
    CornuTableRows read;
    expect_ok(cornu__table_rows_open(&read, table));
    for (int row = 0; row < rows; row++) {
        expect_ok(cornu__table_row(&read, row));
        for (int c = 0; c < columns; c++) {
            char   word[40];
            assert_int_equal(fscanf(golden, "%39s", word), 1);
            const double value = strtod(word, NULL), got = read.value[c];
            if (!(got == value || (isnan(got) && isnan(value))))
                fail_msg("%s, row %d, column %d: %.17g, pandas has %s", name, row, c, got, word);
        }
    }
    cornu__table_rows_close(&read);
    cornu_table_free(table);
    fclose(golden);
}

static void test_values_agree_with_pandas(void **state)
{
    (void)state;
    static const char *const names[] = { "mixed", "crlf", "quoted", "semicolon", "spellings" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int on_disk = 0; on_disk <= 1; on_disk++) expect_golden(names[i], on_disk);
}

/* ---- Any order ---- */

enum { ROWS = 20000 };

/* A file of several chunks: numbers, words in quotes with line ends, a missing value in each 7th
 * row. */
static const char *write_rows(const char *name)
{
    const char *path = files_path(folder, name);
    FILE       *file = fopen(path, "wb");
    fputs("number,word,gap\n", file);
    for (int i = 0; i < ROWS; i++) {
        fprintf(file, "%d,\"a, \"\"%d\"\"%s\",", i, i % 5, i % 3 ? "" : "\r\nb\n");
        if (i % 7) fprintf(file, "%d", i / 2);
        fputs(i % 11 ? "\n" : "\n\n \n", file);
    }
    fclose(file);
    return path;
}

/* All columns as f32 and the first one alone as i32. */
static CornuDataset *rows_of(CornuTable *table)
{
    return cornu_table_dataset(table, (CornuTableTakeConfig[]){
        { .dtype = CORNU_F32 }, { .columns = LIST("number"), .dtype = CORNU_I32 } }, 2);
}

static void test_rows_in_any_order(void **state)
{
    (void)state;
    const char *path = write_rows("rows.csv");
    for (CornuMissing missing = CORNU_MISSING_DROPPED; missing <= CORNU_MISSING_KEPT; missing++) {
        CornuTable *memory = must(cornu_table_load(path, .missing = missing));
        CornuTable *disk = must(cornu_table_load(path, .missing = missing, .on_disk = true));
        const int64_t rows = cornu_table_rows(memory);
        assert_int_equal(cornu_table_rows(disk), rows);
        assert_int_equal(cornu_table_dropped(disk), cornu_table_dropped(memory));
        for (int64_t row = 0; row < rows; row += 997)
            assert_int_equal(cornu_table_line(disk, row), cornu_table_line(memory, row));
        CornuDataset *sets[2] = { rows_of(memory), rows_of(disk) };
        CornuIterator *in_order[2], *shuffled[2];
        cornu_table_free(memory);
        cornu_table_free(disk);
        for (int i = 0; i < 2; i++) {
            assert_non_null(sets[i]);
            in_order[i] = cornu_iterator_begin(sets[i], 0);
            sets[i] = cornu_dataset_parallel(cornu_dataset_shuffle(sets[i], 1), 2);
            shuffled[i] = cornu_iterator_begin(sets[i], 0);
        }
        for (int64_t row = 0; row < rows; row++) {
            const CornuBatch *a, *b;
            for (int k = 0; k < 2; k++) {
                expect_ok(cornu_iterator_next(k ? shuffled[0] : in_order[0], &a));
                expect_ok(cornu_iterator_next(k ? shuffled[1] : in_order[1], &b));
                for (int c = 0; c < 2; c++)
                    if (memcmp(a->arrays[c].data, b->arrays[c].data, c ? 4 : 12))
                        fail_msg("row %lld, component %d", (long long)row, c);
            }
            if (row % 5000 == 0)
                assert_true(*(float *)b->arrays[0].data == *(int32_t *)b->arrays[1].data);
        }
        for (int i = 0; i < 2; i++) {
            cornu_iterator_free(in_order[i]);
            cornu_iterator_free(shuffled[i]);
            cornu_dataset_free(sets[i]);
        }
    }
}

/* More rows than places are remembered of: every 32nd then. Lines end in CR. */
static void test_many_rows(void **state)
{
    (void)state;
    enum { MANY = 16 * (1 << 19) + 1000 };
    const char *path = files_path(folder, "many.csv");
    FILE       *file = fopen(path, "wb");
    fputs("a\r", file);
    for (int i = 0; i < MANY; i++) {
        char text[3] = { (char)('0' + i % 7), '\r' };
        fputs(text, file);
    }
    fclose(file);
    CornuTable    *table = must(cornu_table_load(path, .on_disk = true));
    CornuTableRows rows;
    assert_int_equal(cornu_table_rows(table), MANY);
    assert_int_equal(table->interval, 32);
    expect_ok(cornu__table_rows_open(&rows, table));
    for (int64_t i = 0; i < 2000; i++) {
        const int64_t row = i * 7919 * 997 % MANY;
        expect_ok(cornu__table_row(&rows, i < 1000 ? row : MANY - 2000 + i));
        assert_true(rows.value[0] == (double)((i < 1000 ? row : MANY - 2000 + i) % 7));
    }
    cornu__table_rows_close(&rows);
    cornu_table_free(table);
    remove(path);
}

/* Columns of a table on disk as arrays, of which some are not read; with a schema. */
static void test_taking_from_disk(void **state)
{
    (void)state;
    const char *path = write_rows("taken.csv");
    CornuTable *table = must(cornu_table_load(path, .on_disk = true,
                                              .columns = LIST("number", "word")));
    CornuArray  x, y;
    assert_int_equal(cornu_table_columns(table), 2);
    expect_ok(cornu_table_take(table, &x, .columns = LIST("number"), .dtype = CORNU_I32));
    expect_ok(cornu_table_take(table, &y, .columns = LIST("word"), .one_hot = true));
    assert_true(cornu_type_equal(y.type, cornu_type(CORNU_F32, ROWS, 10)));
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(((int32_t *)x.data)[i], i);
        assert_true(((float *)y.data)[10 * i + 2 * (i % 5) + !(i % 3)] == 1.0f);
    }
    char *schema = cornu_table_schema(table, NULL);
    CornuTable *like = must(cornu_table_schema_parse(schema));
    CornuTable *again = must(cornu_table_load(path, .on_disk = true, .like = like));
    CornuDataset *dataset = cornu_table_dataset(
        again, (CornuTableTakeConfig[]){ { .columns = LIST("word"), .dtype = CORNU_I32 } }, 1);
    const CornuBatch *batch;
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    expect_ok(cornu_iterator_next(iterator, &batch));
    assert_int_equal(*(const int32_t *)batch->arrays[0].data, 1);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    cornu_table_free(again);
    cornu_table_free(like);
    cornu_table_free(table);
    free(schema);
    free(x.data);
    free(y.data);
}

/* ---- Refusals ---- */

static void test_damaged_files_are_refused(void **state)
{
    (void)state;
    static const struct { const char *text, *message; CornuStatus status; } bad[] = {
        { "", "is empty",
          CORNU_ERR_FORMAT },
        { "a,b\n", "no rows",
          CORNU_ERR_DATA },
        { "a,b\n1,2\n3\n", "line 3: 1 field, expected 2",
          CORNU_ERR_FORMAT },
        { "a,b\n1,2\n3,4,5\n", "line 3: 3 fields, expected 2",
          CORNU_ERR_FORMAT },
        { "a,b\n1,2\n\"3,4\n5,6\n", "line 3: a quote is not closed",
          CORNU_ERR_FORMAT },
        { "a,b\n1,2\n\"3\"x,4\n", "line 3: text after a closing quote",
          CORNU_ERR_FORMAT },
        { "a,b\n1,2\n3,4\"\n", "line 3: a quote within a field",
          CORNU_ERR_FORMAT },
        { "a,b\n1,2\n3,\n", "line 3, column b: the value is missing",
          CORNU_ERR_VALUE },
        { "a,b\n1,2\n3,x\n", "line 3, column b: \"x\" is not a number, but \"2\" on line 2 is",
          CORNU_ERR_VALUE },
        { "a,b\n1,2\n3,4\n5,", "line 4, column b: the value is missing",
          CORNU_ERR_VALUE },
        { "a,b\n1,2\n3,1e999\n", "line 3, column b: \"1e999\" is not a number",
          CORNU_ERR_VALUE },
        { "a,a\n1,2\n", "column a: is listed twice",
          CORNU_ERR_FORMAT },
    };
    const char *path = files_path(folder, "bad.csv");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        files_write(path, bad[i].text, strlen(bad[i].text));
        expect_unloaded(cornu_table_load(path, .on_disk = true), bad[i].status,
                        bad[i].message);
        assert_non_null(strstr(cornu_error_message(), path));
    }
    files_write(path, "a\n1\n2\0\n", 7);
    expect_unloaded(cornu_table_load(path, .on_disk = true), CORNU_ERR_FORMAT,
                    "contains NUL bytes, at byte 5");
}

static void test_a_file_that_changes(void **state)
{
    (void)state;
    const char *path = files_path(folder, "changes.csv");
    files_write(path, "a\n1\n2\n3\n", 8);
    CornuTable   *table = must(cornu_table_load(path, .on_disk = true));
    CornuDataset *dataset = cornu_table_dataset(table, (CornuTableTakeConfig[]){ { 0 } }, 1);
    files_write(path, "a\n1\n", 4);
    expect_failure(cornu_iterator_begin(dataset, 0), CORNU_ERR_FILE, "has changed since");
    cornu_dataset_free(dataset);
    cornu_table_free(table);
}

static void test_bad_components(void **state)
{
    (void)state;
    CornuTable *table = must(cornu_table_parse("a\n1\n", 4, "t.csv", &(CornuTableConfig){ 0 }));
    const CornuTableTakeConfig bad = { .columns = LIST("c") }, bf16 = { .dtype = CORNU_BF16 };
    expect_failure(cornu_table_dataset(table, &bad, 1), CORNU_ERR_ARGUMENT, "no column \"c\"");
    expect_failure(cornu_table_dataset(table, &bf16, 1), CORNU_ERR_DTYPE, "component 0 is bf16");
    expect_failure(cornu_table_dataset(table, &bad, 0), CORNU_ERR_ARGUMENT, "0 components");
    expect_failure(cornu_table_dataset(NULL, &bad, 1), CORNU_ERR_ARGUMENT, "table");
    cornu_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_agree_with_pandas),
        cmocka_unit_test(test_rows_in_any_order),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_taking_from_disk),
        cmocka_unit_test(test_damaged_files_are_refused),
        cmocka_unit_test(test_a_file_that_changes),
        cmocka_unit_test(test_bad_components),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
