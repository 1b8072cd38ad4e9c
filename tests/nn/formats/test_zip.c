/* Zip archives, byte by byte against the specification's layout, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include <cornu/cornu.h>

#include "../../../device/memory_internal.h"
#include "../../../nn/formats/zip_internal.h"
#include "../../datasets/files.h"

static const CornuZipMember members[] = {
    { "a.txt", "The quick brown fox", 19 }, { "empty", "", 0 }, { "folder/b.bin", "\0\1\2\377", 4 },
};
enum { MEMBERS = sizeof members / sizeof *members, LOCAL = 30, ENTRY = 46, END = 22 };

static unsigned char bytes[1000];

static size_t write_archive(const char *path)
{
    assert_int_equal(cornu__zip_write(path, members, MEMBERS), CORNU_OK);
    return files_read(path, bytes, sizeof bytes);
}

static unsigned long number(size_t at, int size)
{
    unsigned long value = 0;
    for (int i = size - 1; i >= 0; i--) value = value << 8 | bytes[at + (size_t)i];
    return value;
}

/* What a local header and an entry of the directory both say, from their version on. */
static void expect_description(size_t at, const CornuZipMember *member)
{
    const unsigned long sum = crc32(crc32(0, NULL, 0), member->bytes, (uInt)member->size);
    assert_int_equal(number(at, 2), 20);                        /* version to extract: 2.0 */
    assert_int_equal(number(at + 2, 2), 1 << 11);               /* names are UTF-8 */
    assert_int_equal(number(at + 4, 2), 0);                     /* stored */
    assert_int_equal(number(at + 6, 2), 0);                     /* midnight */
    assert_int_equal(number(at + 8, 2), 1 << 5 | 1);            /* 1 January 1980 */
    assert_int_equal(number(at + 10, 4), sum);
    assert_int_equal(number(at + 14, 4), member->size);
    assert_int_equal(number(at + 18, 4), member->size);
    assert_int_equal(number(at + 22, 2), strlen(member->name));
    assert_int_equal(number(at + 24, 2), 0);                    /* no extra field */
}

static void the_layout_is_that_of_the_specification(void **state)
{
    (void)state;
    const size_t size = write_archive(files_path(folder, "a.zip"));
    size_t       at = 0, places[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        const size_t name = strlen(members[i].name);
        places[i] = at;
        assert_int_equal(number(at, 4), 0x04034b50);
        expect_description(at + 4, &members[i]);
        assert_memory_equal(bytes + at + LOCAL, members[i].name, name);
        assert_memory_equal(bytes + at + LOCAL + name, members[i].bytes, members[i].size);
        at += LOCAL + name + members[i].size;
    }
    const size_t directory = at;
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(number(at, 4), 0x02014b50);
        expect_description(at + 6, &members[i]);
        for (size_t k = 32; k < 42; k++) assert_int_equal(bytes[at + k], 0);
        assert_int_equal(number(at + 42, 4), places[i]);
        assert_memory_equal(bytes + at + ENTRY, members[i].name, strlen(members[i].name));
        at += ENTRY + strlen(members[i].name);
    }
    assert_int_equal(number(at, 4), 0x06054b50);
    assert_int_equal(number(at + 4, 4), 0);
    assert_int_equal(number(at + 8, 2), MEMBERS);
    assert_int_equal(number(at + 10, 2), MEMBERS);
    assert_int_equal(number(at + 12, 4), at - directory);
    assert_int_equal(number(at + 16, 4), directory);
    assert_int_equal(number(at + 20, 2), 0);                    /* no comment */
    assert_int_equal(size, at + END);
}

static void expect_members(const char *path)
{
    CornuZip *zip = cornu__zip_open(path);
    if (!zip) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu__zip_count(zip), MEMBERS);
    for (int i = 0; i < MEMBERS; i++) {
        unsigned char *got;
        size_t         size;
        assert_string_equal(cornu__zip_name(zip, i), members[i].name);
        assert_int_equal(cornu__zip_find(zip, members[i].name), i);
        assert_int_equal(cornu__zip_read(zip, i, &got, &size), CORNU_OK);
        assert_int_equal(size, members[i].size);
        assert_memory_equal(got, members[i].bytes, size);
        assert_int_equal(got[size], 0);
        cornu__release(got);
    }
    assert_int_equal(cornu__zip_find(zip, "b.bin"), -1);
    cornu__zip_close(zip);
}

/* The end is found behind a comment, by the comment's length; one that looks like an end itself
 * has another length. */
static void a_comment_may_follow(void **state)
{
    (void)state;
    static const char comment[] = "PK\5\6 is what an end begins with, as this comment does.";
    const char       *path = files_path(folder, "a.zip");
    const size_t      size = write_archive(path), length = sizeof comment - 1;
    expect_members(path);
    memcpy(bytes + size, comment, length);
    bytes[size - 2] = (unsigned char)length;
    files_write(path, bytes, size + length);
    expect_members(path);
    for (int wrong = -1; wrong <= 1; wrong += 2) {
        bytes[size - 2] = (unsigned char)((int)length + wrong);
        files_write(path, bytes, size + length);
        assert_null(cornu__zip_open(path));
        assert_non_null(strstr(cornu_error_message(), "its end is missing"));
        cornu_error_take();
    }
}

/* Each bit of each member. */
static void flipped_bits_are_noticed(void **state)
{
    (void)state;
    const char  *path = files_path(folder, "a.zip");
    const size_t size = write_archive(path);
    int          flipped = 0;
    for (int i = 0, at = 0; i < MEMBERS; i++) {
        const size_t first = (size_t)at + LOCAL + strlen(members[i].name);
        for (size_t bit = 0; bit < 8 * members[i].size; bit++, flipped++) {
            unsigned char *got;
            size_t         length;
            bytes[first + bit / 8] ^= (unsigned char)(1 << bit % 8);
            files_write(path, bytes, size);
            CornuZip *zip = cornu__zip_open(path);
            assert_non_null(zip);
            for (int k = 0; k < MEMBERS; k++)
                if (k == i) {
                    assert_int_equal(cornu__zip_read(zip, k, &got, &length), CORNU_ERR_FORMAT);
                    assert_non_null(strstr(cornu_error_message(), "the checksum differs"));
                    cornu_error_take();
                } else {
                    assert_int_equal(cornu__zip_read(zip, k, &got, &length), CORNU_OK);
                    cornu__release(got);
                }
            cornu__zip_close(zip);
            bytes[first + bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        at = (int)(first + members[i].size);
    }
    assert_int_equal(flipped, 8 * (19 + 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_that_of_the_specification),
        cmocka_unit_test(a_comment_may_follow),
        cmocka_unit_test(flipped_bits_are_noticed),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
