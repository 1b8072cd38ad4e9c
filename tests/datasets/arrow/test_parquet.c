/* Parquet files by Arrow's GLib library, where it is, beside what pyarrow reads of them; without
 * it, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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
                    "rows-0.parquet: a Parquet file, expected CSV; cornu_parquet_dataset reads it");
    if (has_library()) return;
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
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
