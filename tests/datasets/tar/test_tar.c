/* Tar archives of samples, as Python's tarfile and webdataset write them
 * (tests/golden/make_tars.py), and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/tar/tar.h"
#include "../../expect.h"
#include "../files.h"
#include "../records/elements.h"

#define GOLDEN "tests/golden/tars/"
enum { SAMPLES = 5 };

static const CornuFeature every_kind[] = {
    { "jpg;PNG;jpeg", CORNU_FEATURE_IMAGE, .shape = { 3, { 4, 5, 3 } } },
    { "cls", .dtype = CORNU_I32 },
    { "npy", .shape = { 2, { 2, 3 } } },
    { "txt", CORNU_FEATURE_BYTES, .shape = { 1, { 16 } }, .count = true },
    { "json:box.w", .dtype = CORNU_F64 },
    { "json:box.tags", CORNU_FEATURE_VAR, .dtype = CORNU_I64, .shape = { 1, { 3 } },
      .padding = -1, .count = true },
    { "json:name", CORNU_FEATURE_BYTES, .shape = { 1, { 2 } } },
    { .name = NULL },
};

static void expect_sample(const CornuBatch *sample, int i)
{
    char           text[24] = "text ";
    const uint8_t *pixels = sample->arrays[0].data;
    const float   *npy = sample->arrays[2].data;
    const int64_t *tags = sample->arrays[6].data;
    for (int k = 0; k < 60; k++) assert_int_equal(pixels[k], (40 * i + 7 * k) % 256);
    assert_int_equal(*(const int32_t *)sample->arrays[1].data, 3 * i - 2);
    for (int k = 0; k < 6; k++) assert_true(npy[k] == (float)i + (float)k / 4);
    for (int k = 0; k < i; k++) strcat(text, "\xC3\xA9");
    assert_int_equal(*(const int32_t *)sample->arrays[4].data, 5 + 2 * i);
    assert_memory_equal(sample->arrays[3].data, text, 16);
    assert_true(*(const double *)sample->arrays[5].data == i / 2.0);
    assert_true(tags[0] == i && tags[1] == i + 1 && tags[2] == -1);
    assert_int_equal(*(const int32_t *)sample->arrays[7].data, 2);
    assert_memory_equal(sample->arrays[8].data, ((char[]){ 'n', (char)('0' + i) }), 2);
}

static void every_format(void **state)
{
    (void)state;
    static const char *const names[] = { "ustar", "ustar_prefix", "gnu", "pax", "written" };
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        char path[80];
        snprintf(path, sizeof path, GOLDEN "%s.tar", names[f]);
        CornuDataset *dataset = cornu_tar_dataset(path, every_kind);
        if (!dataset) fail_msg("%s", cornu_error_message());
        assert_int_equal(cornu_dataset_count(dataset), SAMPLES);
        CornuIterator *iterator = elements_begin(dataset);
        for (int i = 0; i < 2 * SAMPLES; i++)
            expect_sample(elements_at(iterator, i * 3 % SAMPLES), i * 3 % SAMPLES);
        assert_null(elements_at(iterator, SAMPLES));
        cornu_iterator_free(iterator);
    }
}

static void several_archives(void **state)
{
    (void)state;
    CornuDataset *dataset = cornu_tar_dataset(GOLDEN "ustar*.tar", every_kind);
    assert_int_equal(cornu_dataset_count(dataset), 2 * SAMPLES);
    CornuIterator *iterator = elements_begin(dataset);
    for (int i = 0; i < 2 * SAMPLES; i++) expect_sample(elements_at(iterator, i), i % SAMPLES);
    cornu_iterator_free(iterator);
}

/* Braces are numbers or words, in their order. */
static void braces(void **state)
{
    (void)state;
    static const char *const names[] = { "t-07", "t-08", "t-09", "t-10", "t-a{b" };
    static const struct { const char *pattern; int count; } cases[] = {
        { "t-{07..10}", 4 }, { "t-{10..08}", 3 }, { "t-{09,07}", 2 },
        { "{t,t}-{0{7,8},10}", 0 }, { "t-0{7..9}", 3 }, { "t-{0,1}*", 4 },
        { "t-a{b", 1 }, { "t-{07..11}", 0 }, { "t-{7..9}", 0 },
    };
    static unsigned char bytes[40960];
    const size_t size_of_one = files_read(GOLDEN "ustar.tar", bytes, sizeof bytes);
    for (int i = 0; i < 5; i++) files_write(files_path(folder, names[i]), bytes, size_of_one);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuDataset *dataset = cornu_tar_dataset(files_path(folder, cases[i].pattern), every_kind);
        if (!cases[i].count) {
            assert_null(dataset);
            expect_error(cornu_error_take(), CORNU_ERR_FILE, "cannot be read");
            continue;
        }
        if (!dataset) fail_msg("%s", cornu_error_message());
        assert_int_equal(cornu_dataset_count(dataset), cases[i].count * SAMPLES);
        cornu_dataset_free(dataset);
    }
    /* The order is that of the braces. */
    files_write(files_path(folder, "t-08"), "", 0);
    assert_null(cornu_tar_dataset(files_path(folder, "t-{10..08}"), every_kind));
    expect_error(cornu_error_take(), CORNU_ERR_FORMAT, "t-08: has 0 bytes");
}

/* Samples without a file of a row. */
static void what_a_sample_lacks(void **state)
{
    (void)state;
    static const int32_t      minus = -9;
    static const CornuFeature required[] = { { "cls", .dtype = CORNU_I32 },
                                             { "seg", CORNU_FEATURE_RAW, .shape = { 1, { 2 } } },
                                             { .name = NULL } };
    static const CornuFeature with_default[] = {
        { "seg", .dtype = CORNU_I32, .default_value = &minus }, { .name = NULL } };
    CornuIterator *iterator = elements_begin(cornu_tar_dataset(GOLDEN "ustar.tar", required));
    elements_expect_failure(iterator, 2, CORNU_ERR_FORMAT, "ustar.tar: sample 2 at byte ");
    elements_expect_failure(iterator, 2, CORNU_ERR_FORMAT, "\"seg\": is missing, and has no");
    cornu_iterator_free(iterator);
    iterator = elements_begin(cornu_tar_dataset(GOLDEN "ustar.tar", with_default));
    assert_int_equal(*(const int32_t *)elements_at(iterator, 2)->arrays[0].data, -9);
    cornu_iterator_free(iterator);
}

/* Files that are not what the table says. */
static void other_contents(void **state)
{
    (void)state;
    static const struct { CornuFeature feature; CornuStatus status; const char *text; } cases[] = {
        { { "txt", .dtype = CORNU_I32 }, CORNU_ERR_FORMAT,
          "value 0 is \"text\", expected a number" },
        { { "cls", CORNU_FEATURE_IMAGE, .shape = { 3, { 4, 5, 3 } } }, CORNU_ERR_FORMAT,
          "not a readable image" },
        { { "png", CORNU_FEATURE_IMAGE, .shape = { 3, { 4, 4, 3 } } }, CORNU_ERR_FORMAT,
          "is an image of 4 x 5 pixels, expected 4 x 4; .resize" },
        { { "npy", .dtype = CORNU_F64, .shape = { 2, { 2, 3 } } }, CORNU_ERR_FORMAT,
          "is f32 (2, 3), expected f64 (2, 3)" },
        { { "npy", .shape = { 2, { 3, 2 } } }, CORNU_ERR_FORMAT, "expected f32 (3, 2)" },
        { { "npy", CORNU_FEATURE_VAR, .shape = { 2, { 1, 3 } } }, CORNU_ERR_FORMAT,
          "has 6 values, expected at most 3; .truncate" },
        { { "json:box.h", .dtype = CORNU_F32 }, CORNU_ERR_FORMAT, "has no field \"h\"" },
        { { "json:name", .dtype = CORNU_F32 }, CORNU_ERR_FORMAT, "value 0 is no number" },
        { { "json:box.tags", .dtype = CORNU_I32 }, CORNU_ERR_FORMAT, "has 2 values, expected 1" },
        { { "json:box.w", .dtype = CORNU_I32 }, CORNU_ERR_FORMAT, "expected a whole number" },
        { { "json:box", CORNU_FEATURE_BYTES, .shape = { 1, { 4 } } }, CORNU_ERR_FORMAT,
          "is not a string" },
        { { "cls", .dtype = CORNU_U8 }, CORNU_ERR_VALUE, "" },
        { { "txt", CORNU_FEATURE_BYTES, .shape = { 1, { 4 } } }, CORNU_ERR_FORMAT,
          "expected at most 4; .truncate" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const CornuFeature table[] = { cases[i].feature, { .name = NULL } };
        CornuIterator *iterator = elements_begin(cornu_tar_dataset(GOLDEN "ustar.tar", table));
        elements_expect_failure(iterator, cases[i].status == CORNU_ERR_VALUE ? 0 : 1,
                                cases[i].status, cases[i].text);
        cornu_iterator_free(iterator);
    }
}

/* ---- Damage ---- */

static unsigned char tar[16384];
static size_t        size;

static void put_sum(unsigned char *header)
{
    int sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

/* A member with its content, 512 bytes at most. */
static unsigned char *put_member(const char *name, char type, const char *content, size_t length)
{
    unsigned char *header = tar + size;
    memset(header, 0, 1024);
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 124, 12, "%011o", (unsigned)length);
    memcpy(header + 257, "ustar\00000", 8);
    header[156] = (unsigned char)type;
    put_sum(header);
    memcpy(header + 512, content, length);
    size += length ? 1024 : 512;
    return header;
}

static void begin_tar(void)
{
    size = 0;
    put_member("a.cls", '0', "7", 1);
}

static void expect_refused(CornuStatus status, const char *text)
{
    static const CornuFeature cls[] = { { "cls", .dtype = CORNU_I32 }, { .name = NULL } };
    files_write(files_path(folder, "a.tar"), tar, size);
    assert_null(cornu_tar_dataset(files_path(folder, "a.tar"), cls));
    expect_error(cornu_error_take(), status, text);
    if (!strstr(cornu_error_message(), "a.tar: ")) fail_msg("%s", cornu_error_message());
}

static void damaged_archives(void **state)
{
    (void)state;
    unsigned char *header;
    begin_tar();
    size += 100;
    tar[1024 + 1] = 'x';
    expect_refused(CORNU_ERR_FORMAT, "a.tar: member 1 at byte 1024: 100 bytes are left, a header "
                   "has 512");
    begin_tar();
    put_member("b.cls", '0', "8", 1)[3] ^= 1;
    expect_refused(CORNU_ERR_FORMAT, "member 1 at byte 1024: wrong checksum of the header");
    begin_tar();
    tar[0] ^= 1;
    expect_refused(CORNU_ERR_FORMAT, "member 0 at byte 0: wrong checksum of the header: not a tar");
    begin_tar();
    header = put_member("b.cls", '0', "8", 1);
    memcpy(header + 124, "-0000000001", 11);
    put_sum(header);
    expect_refused(CORNU_ERR_FORMAT, "member 1 at byte 1024: its size is not a number, or "
                   "negative");
    memset(header + 124, 0xFF, 12);   /* -1 in base 256 */
    put_sum(header);
    expect_refused(CORNU_ERR_FORMAT, "its size is not a number, or negative");
    memcpy(header + 124, "\x80\0\0\0\x10\0\0\0\0\0\0\0", 12);
    put_sum(header);
    expect_refused(CORNU_ERR_FORMAT, "member 1 at byte 1024: has 1152921504606846976 bytes, the "
                   "file has 512 more");
    memcpy(header + 124, "77777777777", 12);
    put_sum(header);
    expect_refused(CORNU_ERR_FORMAT, "has 8589934591 bytes, the file has 512 more");
    begin_tar();
    put_member("b.cls", 'S', "8", 1);
    expect_refused(CORNU_ERR_UNSUPPORTED, "a sparse file");
    begin_tar();
    put_member("a.cls", '0', "8", 1);
    expect_refused(CORNU_ERR_FORMAT, "sample \"a\" has two files of \"cls\"");
    begin_tar();
    header = put_member("././@LongLink", 'L', "", 0);
    memcpy(header + 124, "00004000000", 12);
    put_sum(header);
    expect_refused(CORNU_ERR_FORMAT, "has 1048576 bytes, the file has 0 more");
    for (int i = 0; i < 3; i++) {
        static const char *const records[] = { "30 path=b.cls\n", "path=b.cls\n",
                                               "13 size=10x\n\n" };
        begin_tar();
        put_member("pax", 'x', records[i], strlen(records[i]));
        put_member("b.cls", '0', "8", 1);
        expect_refused(CORNU_ERR_FORMAT, "an extended header");
    }
    begin_tar();
    put_member("pax", 'x', "22 GNU.sparse.major=1\n", 22);
    put_member("b.cls", '0', "8", 1);
    expect_refused(CORNU_ERR_UNSUPPORTED, "a sparse file");
    size = 0;
    expect_refused(CORNU_ERR_FORMAT, "has 0 bytes, not a tar archive");
    memset(tar, 0, size = 1024);
    expect_refused(CORNU_ERR_DATA, "no samples in 1 files");
    memcpy(tar, "\x1F\x8B\x08", 3);
    expect_refused(CORNU_ERR_UNSUPPORTED, "is compressed by gzip");
    begin_tar();
    put_member("pax", 'x', "", 0);
    expect_refused(CORNU_ERR_FORMAT, "0 bytes are left, a header has 512");
}

/* A name beyond the limit, in one block after the other. */
static void names_too_long(void **state)
{
    (void)state;
    enum { LENGTH = 5000 };
    begin_tar();
    unsigned char *header = put_member("././@LongLink", 'L', "", 0);
    snprintf((char *)header + 124, 12, "%011o", LENGTH);
    put_sum(header);
    memset(tar + size, 'n', LENGTH);
    size += 5120;
    put_member("b.cls", '0', "8", 1);
    expect_refused(CORNU_ERR_FORMAT, "member 1 at byte 1024: a name of 5000 bytes, expected fewer "
                   "than 4096");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format), cmocka_unit_test(several_archives),
        cmocka_unit_test(braces), cmocka_unit_test(what_a_sample_lacks),
        cmocka_unit_test(other_contents),
        cmocka_unit_test(damaged_archives), cmocka_unit_test(names_too_long),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
