/* Parquet files by Arrow's GLib library, where it is, beside what pyarrow reads of them; without
 * it, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "../../../datasets/arrow/parquet.h"
#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/tables/table.h"
#include "../../expect.h"
#include "../../skip.h"
#include "../files.h"
#include "../records/elements.h"

#define GOLDEN "tests/golden/parquet/"

enum { ROWS = 40 };

static bool has_library(void) { return dlopen("libparquet-glib.so", RTLD_NOW) != NULL; }
#define NEED_LIBRARY()                                  \
    do {                                                \
        if (!has_library()) SKIP_FOR(SKIP_PARQUET);     \
    } while (0)

static const char *const plain[] = { "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                                     "uint64", "float16", "float32", "float64", "bool", "date",
                                     "time", "triple", "category", NULL };

static void expect_columns(CornuDataset *dataset, const char *const *names)
{
    CornuIterator    *iterator = elements_begin(dataset);
    const CornuBatch *element;
    for (int64_t row = 0; row < ROWS; row++) {
        element = elements_at(iterator, row);
        assert_non_null(element);
        for (int c = 0; names[c]; c++)
            elements_expect_row(element, c, GOLDEN "rows.npz", names[c], row);
    }
    assert_null(elements_at(iterator, ROWS));
    cornu_iterator_free(iterator);
}

static void columns(void **state)
{
    (void)state;
    NEED_LIBRARY();
    CornuDataset *dataset = cornu_parquet_dataset(GOLDEN "rows-*.parquet", .columns = plain);
    if (!dataset) fail_msg("%s", cornu_error_message());
    for (int c = 0; plain[c]; c++) assert_string_equal(cornu_arrow_column(dataset, c), plain[c]);
    assert_int_equal(cornu_dataset_count(dataset), CORNU_UNKNOWN);
    expect_columns(dataset, plain);
}

/* Columns after, within and before those of several leaves. */
static void features(void **state)
{
    (void)state;
    NEED_LIBRARY();
    static const CornuFeature rows[] = {
        { "place.deep.y", .dtype = CORNU_I64 },
        { "list", CORNU_FEATURE_VAR, .dtype = CORNU_I64, .shape = { 1, { 6 } }, .padding = -1 },
        { "raw", CORNU_FEATURE_RAW, .dtype = CORNU_F32, .shape = { 1, { 3 } } },
        { "int8", .dtype = CORNU_F64 },
        { .name = NULL },
    };
    static const char *const names[] = { "place.deep.y", "list", "raw", "int8", NULL };
    static const char *const files[] = { GOLDEN "rows-0.parquet", GOLDEN "rows-1.parquet", NULL };
    CornuDataset *dataset = cornu_parquet_dataset(.files = files, .features = rows);
    if (!dataset) fail_msg("%s", cornu_error_message());
    expect_columns(dataset, names);
}

static void damage(void **state)
{
    (void)state;
    NEED_LIBRARY();
    static const char *const other[] = { "int8", "other", NULL };
    static const char *const one[] = { "float64", NULL };
    char bytes[40000];
    assert_null(cornu_parquet_dataset(GOLDEN "rows-0.parquet", .columns = other));
    expect_error(cornu_error_take(), CORNU_ERR_DATA, "there is no column \"other\", but int8, "
                 "int16");
    assert_null(cornu_parquet_dataset("tests/golden/arrays/x.npy"));
    expect_error(cornu_error_take(), CORNU_ERR_FORMAT, "tests/golden/arrays/x.npy: ");
    CornuDataset *dataset = cornu_parquet_dataset(GOLDEN "damaged.parquet", .columns = one);
    if (!dataset) fail_msg("%s", cornu_error_message());
    CornuIterator *iterator = elements_begin(dataset);
    assert_non_null(elements_at(iterator, 0));
    cornu_iterator_free(iterator);
    const size_t size = files_read(GOLDEN "rows-0.parquet", bytes, sizeof bytes);
    for (size_t cut = 0; cut < size; cut += 997) {
        files_write(files_path(folder, "cut.parquet"), bytes, cut);
        assert_null(cornu_parquet_dataset(files_path(folder, "cut.parquet")));
        expect_error(cornu_error_take(), CORNU_ERR_FORMAT, "cut.parquet: ");
    }
}

/* ---- Tables ---- */

/* Numbers, nulls, strings and a dictionary of them, which are the same strings: empty ones are
 * missing. The strings of each row are those of the data set. */
static void tables(void **state)
{
    (void)state;
    NEED_LIBRARY();
    static const char *const    names[] = { "float64", "holes", "text", "category", NULL };
    static const CornuFeature   rows[] = {
        { "float64", .dtype = CORNU_F32 },
        { "text", CORNU_FEATURE_BYTES, .dtype = CORNU_U8, .shape = { 1, { 8 } } },
        { .name = NULL },
    };
    CornuTable *table = cornu_parquet_table(GOLDEN "rows-*.parquet", .columns = names,
                                            .missing = CORNU_MISSING_KEPT);
    if (!table) fail_msg("%s", cornu_error_message());
    CornuArray values;
    int        count;
    assert_int_equal(cornu_table_rows(table), ROWS);
    expect_ok(cornu_table_take(table, &values, .columns = names));
    const char *const *words = cornu_table_categories(table, 2, &count);
    const float       *x = values.data;
    assert_non_null(words);
    CornuDataset *dataset = cornu_parquet_dataset(GOLDEN "rows-*.parquet", .features = rows);
    if (!dataset) fail_msg("%s", cornu_error_message());
    CornuIterator *iterator = elements_begin(dataset);
    int            holes = 0, empty = 0;
    for (int64_t row = 0; row < ROWS; row++, x += 4) {
        const CornuBatch *element = elements_at(iterator, row);
        const char       *text = element->arrays[1].data;
        assert_true(x[0] == *(const float *)element->arrays[0].data);
        holes += x[1] != x[1];
        empty += !*text;
        if (*text) assert_string_equal(words[(int)x[2]], text);
        else assert_true(x[2] == -1.0f);
        assert_true(x[3] == x[2]);
    }
    assert_true(holes > 0 && empty > 0);
    cornu_iterator_free(iterator);
    free(values.data);

    /* The same words in other data, of which a column is left out and one has others. */
    static const char *const text[] = { "text", "int8", NULL };
    char       *schema = cornu_table_schema(table, names + 2);
    CornuTable *like = cornu_table_schema_parse(schema);
    CornuTable *again = cornu_parquet_table(GOLDEN "rows-1.parquet", .like = like,
                                            .missing = CORNU_MISSING_DROPPED);
    if (!again) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_table_columns(again), 2);
    assert_true(cornu_table_rows(again) > 0 && cornu_table_dropped(again) > 0);
    cornu_table_free(again), cornu_table_free(like), cornu_table_free(table), free(schema);
    expect_unloaded(cornu_parquet_table(GOLDEN "rows-0.parquet", .columns = text),
                    CORNU_ERR_VALUE, "rows-0.parquet: row 1, column text: the value is missing");
    expect_unloaded(cornu_parquet_table(GOLDEN "rows-0.parquet"), CORNU_ERR_UNSUPPORTED,
                    "rows-0.parquet: column triple is of Arrow's format \"+w:3\", expected numbers "
                    "or strings");
    expect_unloaded(cornu_parquet_table("tests/golden/arrays/x.npy"), CORNU_ERR_FORMAT,
                    "tests/golden/arrays/x.npy: ");
}

/* ---- What needs no library ---- */

static void refused(void **state)
{
    (void)state;
    static const char *const files[] = { GOLDEN "rows-0.parquet", NULL };
    assert_null(cornu_parquet_dataset(GOLDEN "none-*.parquet"));
    expect_error(cornu_error_take(), CORNU_ERR_DATA, "none-*.parquet");
    assert_null(cornu_parquet_dataset(.file = NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "parquet");
    assert_null(cornu_parquet_dataset(GOLDEN "rows-0.parquet", .files = files));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "parquet");
    expect_unloaded(cornu_table_load(GOLDEN "rows-0.parquet"), CORNU_ERR_FORMAT, GOLDEN
                    "rows-0.parquet: a Parquet file, expected CSV; cornu_parquet_table reads it");
    expect_unloaded(cornu_parquet_table(GOLDEN "none.parquet"), CORNU_ERR_FILE, "none.parquet");
    if (has_library()) return;
    expect_unloaded(cornu_parquet_table(GOLDEN "rows-0.parquet"), CORNU_ERR_UNSUPPORTED,
                    "Parquet files need Arrow's GLib library");
    assert_null(cornu_parquet_dataset(GOLDEN "rows-0.parquet"));
    expect_error(cornu_error_take(), CORNU_ERR_UNSUPPORTED, GOLDEN "rows-0.parquet: Parquet files "
                 "need Arrow's GLib library, which cannot be loaded (libparquet-glib.so: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns),
        cmocka_unit_test(features),
        cmocka_unit_test(damage),
        cmocka_unit_test(tables),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
