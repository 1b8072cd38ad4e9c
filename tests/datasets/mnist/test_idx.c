/* idx files: valid ones of every kind, and every kind of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "../../../datasets/mnist/idx.h"
#include "../../allocations.h"
#include "../files.h"
#include "../../skip.h"

static void expect_failure(const char *path, CornuStatus status, const char *text)
{
    CornuArray array = { .data = folder };
    assert_int_equal(cornu_idx_load(path, &array), status);
    assert_ptr_equal(array.data, folder);
    if (!strstr(cornu_error_message(), path) || !strstr(cornu_error_message(), text))
        fail_msg("\"%s\" does not name %s and \"%s\"", cornu_error_message(), path, text);
    assert_false(cornu_error_pending());
}

/* A u8 file (3, 2) with elements 0 to 5, followed by extra bytes. */
static const unsigned char six[] = { 0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 1, 2, 3, 4, 5, 9, 9 };
enum { SIX = 18, HEADER = 12 };

static void expect_six(const char *path)
{
    CornuArray array;
    assert_int_equal(cornu_idx_load(path, &array), CORNU_OK);
    assert_true(cornu_type_equal(array.type, cornu_type(CORNU_U8, 3, 2)));
    assert_memory_equal(array.data, six + HEADER, 6);
    free(array.data);
}

static void test_plain_and_compressed(void **state)
{
    (void)state;
    files_write(files_path(folder, "plain"), six, SIX);
    expect_six(files_path(folder, "plain"));
    files_write_gz(files_path(folder, "six.gz"), six, SIX);
    expect_six(files_path(folder, "six.gz"));
}

static void test_members_one_after_another(void **state)
{
    (void)state;
    unsigned char both[256];
    files_write_gz(files_path(folder, "a.gz"), six, 7);
    files_write_gz(files_path(folder, "b.gz"), six + 7, SIX - 7);
    size_t size = files_read(files_path(folder, "a.gz"), both, sizeof both);
    size += files_read(files_path(folder, "b.gz"), both + size, sizeof both - size);
    files_write(files_path(folder, "both.gz"), both, size);
    expect_six(files_path(folder, "both.gz"));
}

static void test_element_types(void **state)
{
    (void)state;
    static const unsigned char i32[] = { 0, 0, 0x0C, 1, 0,    0,    0,    2,
                                         0, 0, 1,    2, 0xFF, 0xFF, 0xFF, 0xFE };
    static const unsigned char f32[] = { 0, 0, 0x0D, 1, 0, 0, 0, 1, 0xC0, 0x20, 0, 0 };
    static const unsigned char f64[] = { 0, 0, 0x0E, 1, 0, 0, 0, 1, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0 };
    CornuArray array;
    files_write(files_path(folder, "i32"), i32, sizeof i32);
    assert_int_equal(cornu_idx_load(files_path(folder, "i32"), &array), CORNU_OK);
    assert_true(cornu_type_equal(array.type, cornu_type(CORNU_I32, 2)));
    assert_true(cornu_array_get(array, 0) == 258 && cornu_array_get(array, 1) == -2);
    free(array.data);
    files_write(files_path(folder, "f32"), f32, sizeof f32);
    assert_int_equal(cornu_idx_load(files_path(folder, "f32"), &array), CORNU_OK);
    assert_true(array.type.dtype == CORNU_F32 && cornu_array_get(array, 0) == -2.5);
    free(array.data);
    files_write(files_path(folder, "f64"), f64, sizeof f64);
    assert_int_equal(cornu_idx_load(files_path(folder, "f64"), &array), CORNU_OK);
    assert_true(array.type.dtype == CORNU_F64 && cornu_array_get(array, 0) == 1.5);
    free(array.data);
}

static void test_an_empty_array(void **state)
{
    (void)state;
    static const unsigned char none[] = { 0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 28 };
    CornuArray array;
    files_write(files_path(folder, "none"), none, sizeof none);
    assert_int_equal(cornu_idx_load(files_path(folder, "none"), &array), CORNU_OK);
    assert_true(cornu_type_equal(array.type, cornu_type(CORNU_U8, 0, 28)));
    free(array.data);
}

static void test_a_large_array_arrives_whole(void **state)
{
    (void)state;
    enum { ROWS = 5000, COLUMNS = 700 };
    unsigned char *bytes = malloc(ROWS * COLUMNS + HEADER);
    size_t         header = files_idx_header(bytes, 2, (int64_t[]){ ROWS, COLUMNS });
    uint32_t       x = 1;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        x = x * 1664525 + 1013904223;
        bytes[header + i] = (unsigned char)(x >> 24);
    }
    files_write_gz(files_path(folder, "large.gz"), bytes, header + ROWS * COLUMNS);
    CornuArray array;
    assert_int_equal(cornu_idx_load(files_path(folder, "large.gz"), &array), CORNU_OK);
    assert_memory_equal(array.data, bytes + header, ROWS * COLUMNS);
    free(array.data);
    free(bytes);
}

static void test_no_such_file(void **state)
{
    (void)state;
    expect_failure(files_path(folder, "absent"), CORNU_ERR_FILE, "No such file");
    expect_failure(folder, CORNU_ERR_FILE, "is a folder, expected a file");
    const char *pipe = files_path(folder, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect_failure(pipe, CORNU_ERR_FILE, "is a pipe, expected a file");
}

/* Truncated at every length, plain and compressed. */
static void test_truncated_files(void **state)
{
    (void)state;
    unsigned char gz[256];
    files_write_gz(files_path(folder, "whole.gz"), six, SIX);
    size_t size = files_read(files_path(folder, "whole.gz"), gz, sizeof gz);
    for (size_t length = 0; length < SIX; length++) {
        files_write(files_path(folder, "short"), six, length);
        expect_failure(files_path(folder, "short"), CORNU_ERR_FORMAT, "");
    }
    assert_string_equal(strrchr(cornu_error_message(), ':'),
                        ": ends after 5 bytes of elements, u8 (3, 2) needs 6");
    for (size_t length = 0; length < size; length++) {
        files_write(files_path(folder, "short.gz"), gz, length);
        expect_failure(files_path(folder, "short.gz"), CORNU_ERR_FORMAT, "");
    }
    assert_non_null(strstr(cornu_error_message(), "truncated after"));
}

/* Every byte changed: an error, never a crash; the checksum catches the rest. Bytes 4 to 9 of a
 * gzip header are only the time and system of its creation. */
static void test_damaged_files(void **state)
{
    (void)state;
    unsigned char gz[256];
    files_write_gz(files_path(folder, "whole.gz"), six, SIX);
    size_t size = files_read(files_path(folder, "whole.gz"), gz, sizeof gz);
    for (size_t i = 0; i < size; i++) {
        if (i >= 4 && i < 10) continue;
        gz[i] ^= 0xFF;
        files_write(files_path(folder, "damaged.gz"), gz, size);
        expect_failure(files_path(folder, "damaged.gz"), CORNU_ERR_FORMAT, "");
        gz[i] ^= 0xFF;
    }
}

static void test_bytes_that_follow(void **state)
{
    (void)state;
    unsigned char gz[256];
    files_write(files_path(folder, "long"), six, SIX + 1);
    expect_failure(files_path(folder, "long"), CORNU_ERR_FORMAT, "continues after the 6 bytes");
    files_write_gz(files_path(folder, "long.gz"), six, SIX + 1);
    expect_failure(files_path(folder, "long.gz"), CORNU_ERR_FORMAT, "continues after the 6 bytes");
    files_write_gz(files_path(folder, "whole.gz"), six, SIX);
    size_t size = files_read(files_path(folder, "whole.gz"), gz, sizeof gz);
    memset(gz + size, 'x', 3);
    files_write(files_path(folder, "tail.gz"), gz, size + 3);
    expect_failure(files_path(folder, "tail.gz"), CORNU_ERR_FORMAT, "follow the compressed data");
}

static void test_wrong_headers(void **state)
{
    (void)state;
    static const struct { unsigned char byte[4]; const char *text; } cases[] = {
        { { 1, 0, 8, 2 }, "begins with 01 00 08 02" }, { { 0, 1, 8, 2 }, "00 01 08 02" },
        { { 0, 0, 8, 0 }, "rank of 1 to 8" },          { { 0, 0, 8, 9 }, "rank of 1 to 8" },
        { { 0, 0, 9, 2 }, "type 0x09, expected 0x08" },  { { 0, 0, 0, 2 }, "type 0x00" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char bytes[SIX];
        memcpy(bytes, six, SIX);
        memcpy(bytes, cases[i].byte, 4);
        files_write(files_path(folder, "wrong"), bytes, SIX);
        expect_failure(files_path(folder, "wrong"), CORNU_ERR_FORMAT, cases[i].text);
    }
    files_write(files_path(folder, "empty"), "", 0);
    expect_failure(files_path(folder, "empty"), CORNU_ERR_FORMAT, "0 bytes");
}

/* A header that claims 4 TiB, or overflows, allocates next to nothing. */
static void test_a_hostile_header(void **state)
{
    (void)state;
    unsigned char bytes[64] = { 0 };
    size_t header = files_idx_header(bytes, 2, (int64_t[]){ INT64_C(1) << 21, INT64_C(1) << 21 });
    files_write(files_path(folder, "hostile"), bytes, header + 8);
    expect_failure(files_path(folder, "hostile"), CORNU_ERR_FORMAT, "ends after 8 bytes");
    int64_t most[] = { 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF };
    header = files_idx_header(bytes, 3, most);
    files_write(files_path(folder, "hostile"), bytes, header + 8);
    expect_failure(files_path(folder, "hostile"), CORNU_ERR_SHAPE, "more elements than can be");
}

static void test_each_allocation_may_fail(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    const char *path = files_path(folder, "memory.gz");
    files_write_gz(path, six, SIX);
    CornuArray  array;
    CornuStatus status = CORNU_ERR_MEMORY;
    int         failures = -1;
    for (int64_t n = 0; status != CORNU_OK; n++, failures++) {
        allocations_fail_after(n);
        status = cornu_idx_load(path, &array);
        allocations_fail_after(NEVER);
        /* If fopen's allocation fails the file cannot be opened. */
        if (status != CORNU_OK) assert_true(status == CORNU_ERR_MEMORY || status == CORNU_ERR_FILE);
    }
    assert_true(failures >= 2);
    free(array.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_and_compressed),
        cmocka_unit_test(test_members_one_after_another),
        cmocka_unit_test(test_element_types),
        cmocka_unit_test(test_an_empty_array),
        cmocka_unit_test(test_a_large_array_arrives_whole),
        cmocka_unit_test(test_no_such_file),
        cmocka_unit_test(test_truncated_files),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_bytes_that_follow),
        cmocka_unit_test(test_wrong_headers),
        cmocka_unit_test(test_a_hostile_header),
        cmocka_unit_test(test_each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
