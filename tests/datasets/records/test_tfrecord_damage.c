/* Damaged TFRecord files and records: each is refused by file, record and byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/records/tfrecord.h"
#include "../../../device/hash/crc32c_internal.h"
#include "../../../device/memory.h"
#include "../../expect.h"
#include "../files.h"
#include "elements.h"

static const CornuFeature features[] = {
    { "x", .dtype = CORNU_I32, .shape = { 1, { 2 } } },
    { .name = NULL },
};

/* A file that is being made. */
static unsigned char file[4096];
static size_t        size;

static void put(const void *bytes, size_t count)
{
    memcpy(file + size, bytes, count);
    size += count;
}

static void put_number(uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) file[size++] = (unsigned char)(value >> 8 * i);
}

/* A header with the right checksum. */
static void put_head(uint64_t length)
{
    put_number(length, 8);
    put_number(cornu__crc32c_masked(file + size - 8, 8), 4);
}

static void put_record(const void *bytes, size_t count)
{
    put_head(count);
    put(bytes, count);
    put_number(cornu__crc32c_masked(bytes, count), 4);
}

/* x = { 3, 4 } */
#define GOOD "\x0A\x0D\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x0A\x02\x03\x04"
enum { GOOD_SIZE = 15, RECORD = GOOD_SIZE + 16 };

static void begin_file(void)
{
    size = 0;
    put_record(GOOD, GOOD_SIZE);
}

static const char *write_file(bool compressed)
{
    const char *path = files_path(folder, compressed ? "a.gz" : "a.tfrecord");
    if (compressed) files_write_gz(path, file, size);
    else files_write(path, file, size);
    return path;
}

/* A plain file is refused when it is opened, a compressed one at the element. */
static void expect_refused(const char *where, const char *text)
{
    char all[300];
    snprintf(all, sizeof all, "a.tfrecord: %s: %s", where, text);
    assert_null(cornu_tfrecord_dataset(write_file(false), features));
    expect_error(cornu_error_take(), CORNU_ERR_FORMAT, all);
    snprintf(all, sizeof all, "a.gz: %s: %s", where, text);
    CornuIterator *iterator = elements_begin(cornu_tfrecord_dataset(write_file(true), features));
    elements_expect_failure(iterator, 1, CORNU_ERR_FORMAT, all);
    elements_at(iterator, 0);
    elements_expect_failure(iterator, 1, CORNU_ERR_FORMAT, all);
    cornu_iterator_free(iterator);
}

static void damaged_headers(void **state)
{
    (void)state;
    static const uint64_t lengths[] = { GOOD_SIZE + 1, UINT64_C(1) << 60, UINT64_MAX,
                                        UINT64_C(1) << 63, INT64_MAX };
    for (size_t left = 1; left < 12; left++) {
        char text[80];
        begin_file();
        put(GOOD, left);
        snprintf(text, sizeof text, "%zu bytes are left, a record has at least 16", left);
        expect_refused("record 1 at byte 31", text);
    }
    begin_file();
    put_record(GOOD, GOOD_SIZE);
    file[RECORD + 9] ^= 1;
    expect_refused("record 1 at byte 31", "wrong checksum of the length");
    file[RECORD + 9] ^= 1;
    file[RECORD] ^= 4;
    expect_refused("record 1 at byte 31", "wrong checksum of the length");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        begin_file();
        put_head(lengths[i]);
        put(GOOD "    ", GOOD_SIZE + 4);
        expect_refused("record 1 at byte 31", "its length is ");
    }
    size--;
    expect_refused("record 1 at byte 31", "its length is ");
}

static void no_tfrecord_files(void **state)
{
    (void)state;
    static const char *const texts[] = { "\x89PNG\r\n\x1A\n....................",
                                         "{\"a\": 1, \"b\": 2, \"c\": 3}",
                                         "....................................." };
    for (int i = 0; i < 3; i++) {
        files_write(files_path(folder, "other"), texts[i], 23);
        assert_null(cornu_tfrecord_dataset(files_path(folder, "other"), features));
        expect_error(cornu_error_take(), CORNU_ERR_FORMAT, "other: record 0 at byte 0: wrong "
                     "checksum of the length: not a TFRecord file");
    }
    assert_null(cornu_tfrecord_dataset("absent.tfrecord", features));
    expect_error(cornu_error_take(), CORNU_ERR_FILE, "absent.tfrecord: cannot be read");
    assert_null(cornu_tfrecord_dataset("absent-*", features));
    expect_error(cornu_error_take(), CORNU_ERR_DATA, "absent-*: no file matches");
    files_write(files_path(folder, "empty"), "", 0);
    CornuDataset *empty = cornu_tfrecord_dataset(files_path(folder, "empty"), features);
    assert_int_equal(cornu_dataset_count(empty), 0);
    cornu_dataset_free(empty);
}

static void a_wrong_checksum(void **state)
{
    (void)state;
    for (int compressed = 0; compressed < 2; compressed++)
        for (int at = 12; at < RECORD; at++) {
            begin_file();
            put_record(GOOD, GOOD_SIZE);
            file[RECORD + at] ^= 0x10;
            CornuIterator *iterator = elements_begin(cornu_tfrecord_dataset(write_file(compressed),
                                                                            features));
            elements_expect_failure(iterator, 1, CORNU_ERR_FORMAT, compressed
                ? "a.gz: record 1 at byte 31: wrong checksum of its 15 bytes"
                : "a.tfrecord: record 1 at byte 31: wrong checksum of its 15 bytes");
            cornu_iterator_free(iterator);
        }
}

/* Records that have their checksum, and are no Example, or not this one. */
static void other_messages(void **state)
{
    (void)state;
    static const struct { const char *bytes; size_t size; CornuStatus status; const char *text; }
    cases[] = {
        { "", 0, CORNU_ERR_FORMAT, "feature \"x\": is missing, and has no default value" },
        { "\x0A\x0D\x0A\x0B\x0A\x01y\x12\x06\x1A\x04\x0A\x02\x03\x04", 15, CORNU_ERR_FORMAT,
          "feature \"x\": is missing" },
        { "\x0A\x05\x0A\x03\x0A\x01x", 7, CORNU_ERR_FORMAT, "feature \"x\": is missing" },
        { "\x0A\x07\x0A\x05\x0A\x01x\x12\x00", 9, CORNU_ERR_FORMAT, "feature \"x\": is missing" },
        { "\x0A\x0C\x0A\x0A\x0A\x01x\x12\x05\x1A\x03\x0A\x01\x03", 14, CORNU_ERR_FORMAT,
          "feature \"x\": has 1 values, expected 2" },
        { "\x0A\x0E\x0A\x0C\x0A\x01x\x12\x07\x1A\x05\x0A\x03\x03\x04\x05", 16, CORNU_ERR_FORMAT,
          "feature \"x\": has 3 values, expected 2" },
        { "\x0A\x13\x0A\x11\x0A\x01x\x12\x0C\x12\x0A\x0A\x08\0\0\0\0\0\0\0\0", 21, CORNU_ERR_FORMAT,
          "feature \"x\": is float_list, expected int64_list for i32" },
        { "\x0A\x0D\x0A\x0B\x0A\x01x\x12\x06\x0A\x04\x0A\x02\x03\x04", 15, CORNU_ERR_FORMAT,
          "feature \"x\": is bytes_list, expected int64_list for i32" },
        { "\x0A\x11\x0A\x0F\x0A\x01x\x12\x0A\x1A\x08\x0A\x06\x03\x80\x80\x80\x80\x10", 19,
          CORNU_ERR_VALUE, "feature \"x\": value 1 is 4294967296, which i32 does not hold" },
        { "\x0A\x0D\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x0D\x02\x03\x04", 15, CORNU_ERR_FORMAT,
          "is not a tf.train.Example" },                            /* fixed32 that runs over */
        { "\x0A\x0D\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x0A\x02\x03\x84", 15, CORNU_ERR_FORMAT,
          "a list of numbers is damaged" },                         /* a number that does not end */
        { "\x0A\x0D\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x0A\x05\x03\x04", 15, CORNU_ERR_FORMAT,
          "a list of numbers is damaged" },                         /* a length that runs over */
        { "\x0A\x0D\x0A\x0B\x0A\x01x\x10\x06\x1A\x04\x0A\x02\x03\x04", 15, CORNU_ERR_FORMAT,
          "an entry of a map is damaged" },                         /* a feature that is a number */
        { "\x0A\x0D\x08\x0B\x0A\x01x\x12\x06\x1A\x04\x0A\x02\x03\x04", 15, CORNU_ERR_FORMAT,
          "a map of features is damaged" },
        { "\x08\x0D\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x0A\x02\x03\x04", 15, CORNU_ERR_FORMAT,
          "the message is damaged" },
        { "\x0B\x0A\x01x\x0C", 5, CORNU_ERR_FORMAT, "the message is damaged" },   /* a group */
        { "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01 ", 12, CORNU_ERR_FORMAT,
          "the message is damaged" },
        { "\x0A\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01 ", 14, CORNU_ERR_FORMAT,
          "the message is damaged" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_file();
        put_record(cases[i].bytes, cases[i].size);
        CornuIterator *iterator = elements_begin(cornu_tfrecord_dataset(write_file(false),
                                                                        features));
        elements_expect_failure(iterator, 1, cases[i].status, cases[i].text);
        assert_non_null(strstr(cornu_error_message(), "a.tfrecord: record 1 at byte 31: "));
        assert_int_equal(((const int32_t *)elements_at(iterator, 0)->arrays[0].data)[1], 4);
        cornu_iterator_free(iterator);
    }
}

/* What is not packed, comes in pieces, or twice, is read as protobuf says. */
static void unusual_messages(void **state)
{
    (void)state;
    static const struct { const char *bytes; size_t size; } cases[] = {
        { "\x0A\x0D\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x08\x03\x08\x04", 15 },
        { "\x0A\x0F\x0A\x0D\x0A\x01x\x12\x08\x1A\x06\x0A\x01\x03\x0A\x01\x04", 17 },
        { "\x0A\x0E\x0A\x0C\x0A\x01x\x12\x07\x1A\x05\x0A\x01\x03\x08\x04", 16 },
        { "\x0A\x0D\x0A\x0B\x12\x06\x1A\x04\x0A\x02\x03\x04\x0A\x01x", 15 },
        { "\x0A\x1A\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x0A\x02\x01\x02"
          "\x0A\x0B\x0A\x01x\x12\x06\x1A\x04\x0A\x02\x03\x04", 28 },
        { "\x0A\x0F\x0A\x0D\x0A\x01x\x12\x06\x1A\x04\x0A\x02\x03\x04\x18\x07\x38\x09", 19 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size = 0;
        put_record(cases[i].bytes, cases[i].size);
        CornuIterator *iterator = elements_begin(cornu_tfrecord_dataset(write_file(false),
                                                                        features));
        const int32_t *x = elements_at(iterator, 0)->arrays[0].data;
        assert_true(x[0] == 3 && x[1] == 4);
        cornu_iterator_free(iterator);
    }
}

static void damaged_compression(void **state)
{
    (void)state;
    unsigned char gz[512];
    begin_file();
    for (int i = 0; i < 30; i++) put_record(GOOD, GOOD_SIZE);
    const size_t whole = files_read(write_file(true), gz, sizeof gz);
    for (size_t cut = 1; cut < 12; cut++) {
        files_write(files_path(folder, "a.gz"), gz, whole - cut);
        CornuIterator *iterator = elements_begin(
            cornu_tfrecord_dataset(files_path(folder, "a.gz"), features));
        elements_expect_failure(iterator, 40, CORNU_ERR_FORMAT, "truncated after");
        cornu_iterator_free(iterator);
    }
    gz[whole - 6] ^= 1;   /* the checksum of gzip */
    files_write(files_path(folder, "a.gz"), gz, whole);
    CornuIterator *iterator = elements_begin(
        cornu_tfrecord_dataset(files_path(folder, "a.gz"), features));
    elements_expect_failure(iterator, 40, CORNU_ERR_FORMAT, "the compressed data are damaged");
    cornu_iterator_free(iterator);
}

/* A length that the file does not have takes no more memory than the file. */
static void memory_is_that_of_the_file(void **state)
{
    (void)state;
    size = 0;
    put_head(UINT64_C(1) << 40);
    put(GOOD, GOOD_SIZE);
    CornuIterator *iterator = elements_begin(cornu_tfrecord_dataset(write_file(true), features));
    cornu_set_memory_limit(2 << 20);
    elements_expect_failure(iterator, 0, CORNU_ERR_FORMAT, "its length is 1099511627776 bytes, the "
                            "file has 15 more");
    cornu_set_memory_limit(0);
    cornu_iterator_free(iterator);
}

static void tables_that_are_refused(void **state)
{
    (void)state;
    static const struct { CornuFeature feature; CornuStatus status; const char *text; } cases[] = {
        { { "a", (CornuFeatureKind)9, .dtype = CORNU_I32 }, CORNU_ERR_ARGUMENT, ".kind 9" },
        { { "a", CORNU_FEATURE_VAR, .dtype = CORNU_I64 }, CORNU_ERR_SHAPE, "cornu_shape(64)" },
        { { "a", .count = true }, CORNU_ERR_ARGUMENT, ".count is given, but nothing is padded" },
        { { "a", .truncate = true }, CORNU_ERR_ARGUMENT, ".truncate is given" },
        { { "a", .resize = true }, CORNU_ERR_ARGUMENT, ".resize is for images" },
        { { "a", .dtype = CORNU_F16 }, CORNU_ERR_DTYPE, ".dtype f16" },
        { { "a", .dtype = CORNU_STRING }, CORNU_ERR_DTYPE, ".dtype string" },
        { { "a", CORNU_FEATURE_IMAGE, .shape = { 2, { 4, 4 } } }, CORNU_ERR_SHAPE, "an image of" },
        { { "a", CORNU_FEATURE_BYTES, .shape = { 2, { 4, 4 } } }, CORNU_ERR_SHAPE, "a string of" },
        { { "a", CORNU_FEATURE_VAR, .shape = { 1, { 4 } }, .sequence = true }, CORNU_ERR_ARGUMENT,
          ".sequence with VAR" },
        { { "a", .shape = { 1, { -4 } } }, CORNU_ERR_SHAPE, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const CornuFeature table[] = { cases[i].feature, { .name = NULL } };
        assert_null(cornu_tfrecord_dataset("a", table));
        expect_error(cornu_error_take(), cases[i].status, cases[i].text);
    }
    assert_null(cornu_tfrecord_dataset("a"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "expected 1 to");
    assert_null(cornu_tfrecord_dataset(.features = features));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "expected .file or .files");
    const CornuFeature twice[] = { { .name = "a" }, { .name = "a" }, { .name = NULL } };
    assert_null(cornu_tfrecord_dataset("a", twice));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "two features are called \"a\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_headers), cmocka_unit_test(no_tfrecord_files),
        cmocka_unit_test(a_wrong_checksum), cmocka_unit_test(other_messages),
        cmocka_unit_test(unusual_messages), cmocka_unit_test(damaged_compression),
        cmocka_unit_test(memory_is_that_of_the_file), cmocka_unit_test(tables_that_are_refused),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
