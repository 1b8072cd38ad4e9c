/* NumPy's files as data sets: each dtype, byte order and order as NumPy wrote it, rows read in any
 * order, memory, and damage. tests/golden/make_arrays.py wrote the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/arrays/npy.h"
#include "../../../datasets/pipeline/iterator.h"
#include "../../../device/memory.h"
#include "../../expect.h"
#include "../files.h"

#define GOLDEN "tests/golden/arrays/"

static const struct { const char *name; CornuDtype to; } dtypes[] = {
    { "f4", CORNU_F32 }, { "f8", CORNU_F64 }, { "f2", CORNU_F16 }, { "i8", CORNU_I64 },
    { "i4", CORNU_I32 }, { "i2", CORNU_I32 }, { "i1", CORNU_I32 }, { "u8", CORNU_I64 },
    { "u4", CORNU_U32 }, { "u2", CORNU_I32 }, { "u1", CORNU_U8 },  { "b1", CORNU_BOOL },
};

/* Element k in C's order, as the script has it. */
static double value(const char *dtype, int64_t k)
{
    const double n = (double)(k * 7 % 23);
    return dtype[0] == 'b' ? (double)(k * 7 % 23 % 2) : dtype[0] == 'u' ? n
         : dtype[0] == 'f' ? n - 9 + 0.25 : n - 9;
}

static CornuIterator *begin(CornuDataset *dataset)
{
    if (!dataset) fail_msg("%s", cornu_error_message());
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    cornu_dataset_free(dataset);
    assert_non_null(iterator);
    return iterator;
}

static const CornuBatch *at(CornuIterator *iterator, int64_t index)
{
    const CornuBatch *batch;
    expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, index }));
    expect_ok(cornu_iterator_next(iterator, &batch));
    return batch;
}

/* Rows 0 to 4, then 3, 1, 4, 0, 2. */
static void expect_rows(const char *name, const char *dtype, CornuDtype to)
{
    static const int64_t order[] = { 0, 1, 2, 3, 4, 3, 1, 4, 0, 2 };
    CornuIterator       *iterator = begin(cornu_npy_dataset(name));
    for (int i = 0; i < 10; i++) {
        const CornuBatch *row = at(iterator, order[i]);
        assert_true(cornu_type_equal(row->arrays[0].type, cornu_type(to, 3, 2)));
        for (int64_t k = 0; k < 6; k++)
            if (cornu_array_get(row->arrays[0], k) != value(dtype, order[i] * 6 + k))
                fail_msg("%s: row %d: element %d is %g, expected %g", name, (int)order[i], (int)k,
                         cornu_array_get(row->arrays[0], k), value(dtype, order[i] * 6 + k));
    }
    assert_null(at(iterator, 5));
    cornu_iterator_free(iterator);
}

static void every_dtype_and_order(void **state)
{
    (void)state;
    char name[120];
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (int k = 0; k < 8; k++) {
            snprintf(name, sizeof name, GOLDEN "%s.npz:%s_%s_%s", k & 4 ? "stored" : "deflated",
                     dtypes[i].name, k & 2 ? "little" : "big", k & 1 ? "c" : "f");
            expect_rows(name, dtypes[i].name, dtypes[i].to);
        }
    expect_rows(GOLDEN "x.npy", "f4", CORNU_F32);
}

static void several_files_and_versions(void **state)
{
    (void)state;
    CornuDataset *dataset = cornu_npy_dataset(GOLDEN "x.npy", GOLDEN "vector.npy",
                                              GOLDEN "stored.npz:u2_big_f");
    assert_int_equal(cornu_dataset_components(dataset), 3);
    assert_int_equal(cornu_dataset_count(dataset), 5);
    CornuIterator    *iterator = begin(cornu_dataset_batch(dataset, 5, false));
    const CornuBatch *batch = at(iterator, 0);
    for (int64_t k = 0; k < 30; k++) {
        assert_true(cornu_array_get(batch->arrays[0], k) == value("f4", k));
        assert_true(cornu_array_get(batch->arrays[2], k) == value("u2", k));
    }
    for (int64_t k = 0; k < 5; k++)
        assert_true(cornu_array_get(batch->arrays[1], k) == value("i8", k));
    cornu_iterator_free(iterator);
    for (int v = 2; v <= 3; v++) {
        char name[80];
        snprintf(name, sizeof name, GOLDEN "version_%d.npy", v);
        iterator = begin(cornu_npy_dataset(name));
        assert_true(cornu_array_get(at(iterator, 1)->arrays[0], 1) == value("i4", 3));
        cornu_iterator_free(iterator);
    }
    iterator = begin(cornu_npy_dataset(GOLDEN "one.npz"));
    assert_true(cornu_array_get(at(iterator, 3)->arrays[0], 0) == value("u1", 3));
    cornu_iterator_free(iterator);
}

/* Rows of a column-major array that is longer than what is read at a time, in order and not. */
static void long_column_major_arrays(void **state)
{
    (void)state;
    enum { ROWS = 300000, COLUMNS = 3 };
    char    header[128];
    float  *columns = malloc(sizeof *columns * ROWS * COLUMNS);
    FILE   *file = fopen(files_path(folder, "long.npy"), "wb");
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\1\0\x76\0", 10);
    const int length = sprintf(header + 10, "{'descr': '<f4', 'fortran_order': True, 'shape': (%d, "
                               "%d), }", ROWS, COLUMNS);
    header[10 + length] = ' ';
    header[127] = '\n';
    for (int i = 0; i < ROWS * COLUMNS; i++) columns[i] = (float)i;
    fwrite(header, 1, sizeof header, file);
    fwrite(columns, sizeof *columns, ROWS * COLUMNS, file);
    fclose(file);
    free(columns);
    CornuIterator *iterator = begin(cornu_npy_dataset(files_path(folder, "long.npy")));
    for (int64_t i = 0; i < ROWS; i++) {
        const float *row = at(iterator, i)->arrays[0].data;
        for (int c = 0; c < COLUMNS; c++) assert_true(row[c] == (float)(c * ROWS + i));
    }
    for (int64_t i = 0; i < 1000; i++) {
        const int64_t r = i * 7919 % ROWS;
        assert_true(((const float *)at(iterator, r)->arrays[0].data)[2] == (float)(2 * ROWS + r));
    }
    cornu_iterator_free(iterator);
}

/* The program's memory does not grow with the file: 4 GiB of zeros, which take no space on disk. */
static void files_larger_than_memory(void **state)
{
    (void)state;
    enum { ROWS = 1 << 20, BATCHES = 300, BATCH = 128 };
    char  header[128];
    FILE *file = fopen(files_path(folder, "large.npy"), "wb");
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\1\0\x76\0", 10);
    const int length = sprintf(header + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': "
                               "(%d, 1024), }", ROWS);
    header[10 + length] = ' ';
    fwrite(header, 1, sizeof header, file);
    fclose(file);
    assert_int_equal(truncate(files_path(folder, "large.npy"), 128 + (off_t)ROWS * 4096), 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        CornuDataset *dataset = cornu_npy_dataset(files_path(folder, "large.npy"));
        if (shuffled) dataset = cornu_dataset_shuffle(dataset, 1);
        CornuIterator *iterator = begin(cornu_dataset_batch(dataset, BATCH, false));
        for (int64_t i = 0; i < BATCHES; i++) at(iterator, i);
        cornu_iterator_free(iterator);
    }
    getrusage(RUSAGE_SELF, &after);
    if (after.ru_maxrss - before.ru_maxrss > 64 << 10)
        fail_msg("%ld KB more", after.ru_maxrss - before.ru_maxrss);
}

static void expect_refused(const char *name, CornuStatus status, const char *text)
{
    assert_null(cornu_npy_dataset(name));
    expect_error(cornu_error_take(), status, text);
    if (!strncmp(name, folder, strlen(folder)) && !strstr(cornu_error_message(), name))
        fail_msg("\"%s\" does not name %s", cornu_error_message(), name);
}

static void what_is_no_array_of_numbers(void **state)
{
    (void)state;
    expect_refused(GOLDEN "complex.npy", CORNU_ERR_UNSUPPORTED, "dtype '<c8'");
    expect_refused(GOLDEN "strings.npy", CORNU_ERR_UNSUPPORTED, "dtype '<U2'");
    expect_refused(GOLDEN "objects.npy", CORNU_ERR_UNSUPPORTED,
                   "dtype '|O', objects of Python, which are pickled, expected");
    expect_refused(GOLDEN "structure.npy", CORNU_ERR_UNSUPPORTED, "dtype [('a'");
    expect_refused(GOLDEN "dates.npy", CORNU_ERR_UNSUPPORTED, "dtype '<M8[D]'");
    expect_refused(GOLDEN "scalar.npy", CORNU_ERR_SHAPE, "is a scalar");
    expect_refused(GOLDEN "stored.npz", CORNU_ERR_DATA, "has 48 arrays");
    expect_refused(GOLDEN "stored.npz:z", CORNU_ERR_DATA, "has no array \"z\", it has f4_little_c");
    expect_refused("absent.npy", CORNU_ERR_FILE, "absent.npy: cannot be read");
    expect_refused("tests", CORNU_ERR_FILE, "tests: is a folder");
    assert_null(cornu_npy_dataset(GOLDEN "x.npy", GOLDEN "one.npz"));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "has 4 rows, expected 5");
}

static void inflated_arrays_are_bounded(void **state)
{
    (void)state;
    cornu_set_memory_limit(100000);
    expect_refused(GOLDEN "zeros.npz", CORNU_ERR_MEMORY, "is deflated and has 800128 bytes");
    cornu_set_memory_limit(0);
}

/* A header of so many bytes with this text, before 24 bytes of elements. */
static const char *with_header(const char *text, size_t stated)
{
    unsigned char file[200] = "\x93NUMPY\1\0";
    const size_t  length = strlen(text);
    file[8] = (unsigned char)(stated ? stated & 0xFF : length);
    file[9] = (unsigned char)(stated >> 8);
    memcpy(file + 10, text, length);
    files_write(files_path(folder, "bad.npy"), file, 10 + length + 24);
    return files_path(folder, "bad.npy");
}

static void damaged_files(void **state)
{
    (void)state;
    static const struct { const char *text; size_t stated; CornuStatus status; const char *said; }
    cases[] = {
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }\n", 0, CORNU_ERR_FORMAT,
          "(2, 4) of f4 takes 32 bytes, the file has 24" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }\n", 0, CORNU_ERR_FORMAT,
          "extent \"-2, 3)" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 3), }\n", 0,
          CORNU_ERR_FORMAT, "extent of more than 18 digits" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (115292150460684697, 300), }\n", 0,
          CORNU_ERR_SHAPE, "" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6), }\n", 0,
          CORNU_ERR_UNSUPPORTED, "more than 8 axes" },
        { "{'descr': '<f4', 'fortran_order': Perhaps, 'shape': (6,), }\n", 0, CORNU_ERR_FORMAT,
          "without descr, fortran_order and shape once each" },
        { "{'descr': '<f4', 'shape': (6,), }\n", 0, CORNU_ERR_FORMAT, "once each" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", 0,
          CORNU_ERR_FORMAT, "once each" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", 3000, CORNU_ERR_FORMAT,
          "its header has 3010" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,", 0, CORNU_ERR_FORMAT,
          "" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (6 6), }\n", 0, CORNU_ERR_FORMAT,
          "once each" },
        { "", 1, CORNU_ERR_FORMAT, "once each" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(with_header(cases[i].text, cases[i].stated), cases[i].status, cases[i].said);
    files_write(files_path(folder, "short.npy"), "\x93NUMPY\1", 7);
    expect_refused(files_path(folder, "short.npy"), CORNU_ERR_FORMAT, "ends after 7 bytes");
    files_write(files_path(folder, "magic.npy"), "\x93NUMPZ\1\0\x10\0{'descr'", 18);
    expect_refused(files_path(folder, "magic.npy"), CORNU_ERR_FORMAT, "is not a NumPy array");
    files_write(files_path(folder, "new.npy"), "\x93NUMPY\7\0\x10\0{'descr'", 18);
    expect_refused(files_path(folder, "new.npy"), CORNU_ERR_UNSUPPORTED, "version 7");
    files_write(files_path(folder, "empty.npy"), "", 0);
    expect_refused(files_path(folder, "empty.npy"), CORNU_ERR_FORMAT, "is not a NumPy array");
}

static void files_that_change(void **state)
{
    (void)state;
    const char *path = files_path(folder, "changes.npy");
    char        bytes[400];
    const size_t size = files_read(GOLDEN "x.npy", bytes, sizeof bytes);
    files_write(path, bytes, size);
    CornuIterator    *iterator = begin(cornu_npy_dataset(path));
    const CornuBatch *batch;
    assert_int_equal(truncate(path, (off_t)size - 30), 0);
    expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, 4 }));
    expect_error(cornu_iterator_next(iterator, &batch), CORNU_ERR_FILE,
                 "it was changed while being read");
    cornu_iterator_free(iterator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_order), cmocka_unit_test(several_files_and_versions),
        cmocka_unit_test(long_column_major_arrays), cmocka_unit_test(files_larger_than_memory),
        cmocka_unit_test(what_is_no_array_of_numbers),
        cmocka_unit_test(inflated_arrays_are_bounded), cmocka_unit_test(damaged_files),
        cmocka_unit_test(files_that_change),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
