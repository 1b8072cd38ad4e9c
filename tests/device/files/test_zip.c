/* Zip archives, byte by byte against the specification's layout, and damaged ones. */
#define _GNU_SOURCE    /* MAP_ANONYMOUS */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../skip.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cornu/cornu.h>

#include "../../../device/memory_internal.h"
#include "../../../device/files/zip_internal.h"
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

/* The fields that a local header and an entry of the directory share, from the version on. */
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

/* The end is found by the length of the comment that follows it; one that looks like an end itself
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
        assert_non_null(strstr(cornu_error_message(), "the end of its directory is missing"));
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

/* ---- ZIP64 ---- */

static size_t put(unsigned char *to, size_t at, int size, uint64_t value)
{
    for (int i = 0; i < size; i++) to[at + (size_t)i] = (unsigned char)(value >> 8 * i);
    return at + (size_t)size;
}

/* Which numbers of the archive below are all ones where they stand, and the real ones in ZIP64. */
enum { SIZES = 1, PLACE = 2, DIRECTORY = 4, ALL = 7 };

/* The archive of `members` with an entry's ZIP64 field after a field of another kind. Returns its
 * size; *end64 is where the directory's ZIP64 end begins. */
static size_t make_zip64(int wide, size_t *end64)
{
    static unsigned char made[1000];
    const uint64_t       ones = 0xffffffff;
    const size_t         extra = 4 + (wide & SIZES ? 16 : 0) + (wide & PLACE ? 8 : 0);
    size_t               at = 0, from = 0;
    write_archive(files_path(folder, "a.zip"));
    for (int i = 0; i < MEMBERS; i++) from += LOCAL + strlen(members[i].name) + members[i].size;
    memcpy(made, bytes, from);
    const size_t directory = at = from;
    for (int i = 0; i < MEMBERS; i++) {
        const size_t   name = strlen(members[i].name);
        const uint64_t place = number(from + 42, 4);
        memcpy(made + at, bytes + from, ENTRY + name);
        if (wide & SIZES) put(made, at + 20, 8, ones << 32 | ones);
        if (wide & PLACE) put(made, at + 42, 4, ones);
        put(made, at + 30, 2, 6 + extra);
        at = put(made, at + ENTRY + name, 4, 0x00027075);      /* 2 bytes of kind 0x7075 */
        at = put(made, at, 2, 0);
        at = put(made, at, 4, 1 | (extra - 4) << 16);
        if (wide & SIZES) at = put(made, put(made, at, 8, members[i].size), 8, members[i].size);
        if (wide & PLACE) at = put(made, at, 8, place);
        from += ENTRY + name;
    }
    const size_t size = *end64 = at, of_directory = size - directory;
    if (wide & DIRECTORY) {
        at = put(made, put(made, at, 4, 0x06064b50), 8, 44);
        at = put(made, put(made, at, 4, 45 | 45 << 16), 8, 0);
        at = put(made, put(made, at, 8, MEMBERS), 8, MEMBERS);
        at = put(made, put(made, at, 8, of_directory), 8, directory);
        at = put(made, put(made, at, 4, 0x07064b50), 4, 0);
        at = put(made, put(made, at, 8, size), 4, 1);
    }
    at = put(made, put(made, at, 4, 0x06054b50), 4, 0);
    at = put(made, at, 4, wide & DIRECTORY ? ones : MEMBERS | MEMBERS << 16);
    at = put(made, at, 4, wide & DIRECTORY ? ones : of_directory);
    at = put(made, put(made, at, 4, wide & DIRECTORY ? ones : directory), 2, 0);
    memcpy(bytes, made, at);
    return at;
}

static void zip64_is_read(void **state)
{
    (void)state;
    const char *path = files_path(folder, "wide.zip");
    size_t      end64;
    for (int wide = 0; wide <= ALL; wide++) {
        const size_t size = make_zip64(wide, &end64);
        files_write(path, bytes, size);
        expect_members(path);
    }
}

static void expect_refusal(size_t size, CornuStatus status, const char *message)
{
    const char *path = files_path(folder, "wide.zip");
    files_write(path, bytes, size);
    assert_null(cornu__zip_open(path));
    assert_int_equal(cornu_error_status(), status);
    if (!strstr(cornu_error_message(), message)) fail_msg("%s", cornu_error_message());
    cornu_error_take();
}

static void damaged_zip64_is_refused(void **state)
{
    (void)state;
    enum { DIRECTORY_AT = 3 * LOCAL + 5 + 5 + 12 + 19 + 4, EXTRA = DIRECTORY_AT + ENTRY + 5 };
    size_t end64, size = make_zip64(ALL, &end64);
    put(bytes, EXTRA + 6, 2, 2);                                /* a field of another kind */
    expect_refusal(size, CORNU_ERR_FORMAT, "\"a.txt\": has no ZIP64 extra field with its size");
    size = make_zip64(ALL, &end64);
    put(bytes, EXTRA + 6 + 2, 2, 16);                           /* shorter by the place */
    expect_refusal(size, CORNU_ERR_FORMAT, "\"a.txt\": has no ZIP64 extra field with its place");
    size = make_zip64(ALL, &end64);
    put(bytes, EXTRA + 6 + 2, 2, 0xffff);                       /* longer than the entry */
    expect_refusal(size, CORNU_ERR_FORMAT, "\"a.txt\": has no ZIP64 extra field with its size");
    size = make_zip64(ALL, &end64);
    put(bytes, EXTRA + 6 + 4, 8, UINT64_MAX);
    put(bytes, EXTRA + 6 + 12, 8, UINT64_MAX);
    expect_refusal(size, CORNU_ERR_FORMAT, "has 18446744073709551615 bytes at byte 35");
    size = make_zip64(ALL, &end64);
    put(bytes, EXTRA + 6 + 20, 8, UINT64_MAX);
    expect_refusal(size, CORNU_ERR_FORMAT, "its header is not at byte 18446744073709551615");
    size = make_zip64(ALL, &end64);
    put(bytes, end64 + 56 + 8, 8, end64 + 1);
    expect_refusal(size, CORNU_ERR_FORMAT, "the ZIP64 end of its directory is not at byte");
    size = make_zip64(ALL, &end64);
    put(bytes, end64 + 56 + 8, 8, UINT64_MAX);
    expect_refusal(size, CORNU_ERR_FORMAT, "is not at byte 18446744073709551615");
    size = make_zip64(ALL, &end64);
    put(bytes, end64 + 24, 8, 2);
    expect_refusal(size, CORNU_ERR_UNSUPPORTED, "is one part of a split archive");
    size = make_zip64(ALL, &end64);
    put(bytes, end64 + 24, 8, UINT64_MAX);
    put(bytes, end64 + 32, 8, UINT64_MAX);
    expect_refusal(size, CORNU_ERR_FORMAT, "its directory has 18446744073709551615 entries");
    size = make_zip64(ALL, &end64);
    put(bytes, end64 + 48, 8, UINT64_MAX);
    expect_refusal(size, CORNU_ERR_FORMAT, "bytes at byte 18446744073709551615");
}

/* 65,535 is written as "see ZIP64". */
static void more_members_than_two_bytes_count(void **state)
{
    enum { MOST = 70000 };
    static char           names[MOST][8];
    static CornuZipMember many[MOST];
    static unsigned char  archive[MOST * 100];
    (void)state;
    const char *path = files_path(folder, "many.zip");
    for (int i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        many[i] = (CornuZipMember){ names[i], names[i], strlen(names[i]) };
    }
    static const int counts[] = { 65534, 65535, MOST };
    for (int c = 0; c < 3; c++) {
        assert_int_equal(cornu__zip_write(path, many, counts[c]), CORNU_OK);
        const size_t         size = files_read(path, archive, sizeof archive);
        const unsigned char *tail = archive + size - END - 20;
        assert_int_equal(memcmp(tail, "PK\6\7", 4) == 0, counts[c] > 65534);
        CornuZip *zip = cornu__zip_open(path);
        if (!zip) fail_msg("%s", cornu_error_message());
        assert_int_equal(cornu__zip_count(zip), counts[c]);
        unsigned char *got;
        size_t         length;
        assert_int_equal(cornu__zip_read(zip, counts[c] - 1, &got, &length), CORNU_OK);
        assert_string_equal((char *)got, names[counts[c] - 1]);
        cornu__release(got);
        cornu__zip_close(zip);
    }
}

/* What comes out of a pipe: its first bytes in `bytes`, its last ones in `last`. */
typedef struct {
    int           end;
    unsigned char last[1000];
    uint64_t      size;
} Piped;

static void *read_pipe(void *context)
{
    static unsigned char block[1 << 20];
    Piped               *piped = context;
    FILE                *file = fdopen(piped->end, "rb");
    for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0; piped->size += got) {
        if (piped->size == 0) memcpy(bytes, block, sizeof bytes);
        const size_t tail = got < sizeof piped->last ? got : sizeof piped->last;
        memmove(piped->last, piped->last + tail, sizeof piped->last - tail);
        memcpy(piped->last + sizeof piped->last - tail, block + got - tail, tail);
    }
    fclose(file);
    return NULL;
}

/* The checksum of 2^32 zeros. */
static unsigned long sum_of_zeros(void)
{
    unsigned long sum = crc32(crc32(0, NULL, 0), (const unsigned char *)"", 1);
    for (int i = 0; i < 32; i++) sum = crc32_combine(sum, sum, (z_off_t)1 << i);
    return sum;
}

/* One member of 4 GiB, and one after it: sizes, places and the directory's start are wide. They go
 * through a pipe, to spare the disk. */
static void four_gib_are_written(void **state)
{
    const uint64_t size = UINT64_C(1) << 32, second = LOCAL + 1 + 20 + size;
    const uint64_t directory = second + LOCAL + 1 + 1, ones = 0xffffffff;
    const size_t   of_directory = ENTRY + 1 + 20 + ENTRY + 1 + 12;
    const char    *path = files_path(folder, "pipe");
    Piped          piped = { 0 };
    pthread_t      reader;
    (void)state;
    void *zeros = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) SKIP_FOR("address space: more of it");
    madvise(zeros, size, MADV_HUGEPAGE);          /* zeros take no memory, and now few faults */
    const CornuZipMember large[] = { { "a", zeros, size }, { "b", "!", 1 } };
    assert_int_equal(mkfifo(path, 0600), 0);
    piped.end = open(path, O_RDONLY | O_NONBLOCK);
    const int writer = open(path, O_WRONLY);      /* the pipe has not ended before it begins */
    assert_true(writer >= 0 && fcntl(piped.end, F_SETFL, 0) == 0);
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, &piped), 0);
    if (cornu__zip_write(path, large, 2)) fail_msg("%s", cornu_error_message());
    close(writer);
    pthread_join(reader, NULL);
    munmap(zeros, size);

    assert_int_equal(number(4, 2), 45);                         /* version to extract: 4.5 */
    assert_int_equal(number(14, 4), sum_of_zeros());
    assert_int_equal(number(18, 8), ones << 32 | ones);
    assert_int_equal(number(28, 2), 20);
    assert_int_equal(number(LOCAL + 1, 4), 1 | 16 << 16);       /* the sizes */
    assert_int_equal(number(LOCAL + 1 + 4, 8), size);
    assert_int_equal(number(LOCAL + 1 + 12, 8), size);

    assert_int_equal(piped.size, directory + of_directory + 56 + 20 + END);
    memcpy(bytes, piped.last, sizeof piped.last);
    size_t at = sizeof piped.last - END - 20 - 56 - of_directory;
    assert_int_equal(number(at - 2 - LOCAL, 4), 0x04034b50);
    assert_int_equal(number(at - 2 - LOCAL + 4, 2), 20);        /* a small member is as ever */
    assert_int_equal(number(at - 2 - LOCAL + 28, 2), 0);

    assert_int_equal(number(at, 4), 0x02014b50);
    assert_int_equal(number(at + 6, 2), 45);
    assert_int_equal(number(at + 16, 4), sum_of_zeros());
    assert_int_equal(number(at + 20, 8), ones << 32 | ones);
    assert_int_equal(number(at + 30, 2), 20);
    assert_int_equal(number(at + 42, 4), 0);
    assert_int_equal(number(at + ENTRY + 1, 4), 1 | 16 << 16);
    assert_int_equal(number(at + ENTRY + 1 + 4, 8), size);
    assert_int_equal(number(at + ENTRY + 1 + 12, 8), size);
    at += ENTRY + 1 + 20;
    assert_int_equal(number(at, 4), 0x02014b50);
    assert_int_equal(number(at + 6, 2), 45);
    assert_int_equal(number(at + 20, 8), UINT64_C(1) << 32 | 1);
    assert_int_equal(number(at + 30, 2), 12);
    assert_int_equal(number(at + 42, 4), ones);
    assert_int_equal(number(at + ENTRY + 1, 4), 1 | 8 << 16);   /* the place */
    assert_int_equal(number(at + ENTRY + 1 + 4, 8), second);
    at += ENTRY + 1 + 12;
    assert_int_equal(number(at, 4), 0x06064b50);
    assert_int_equal(number(at + 4, 8), 44);
    assert_int_equal(number(at + 12, 4), 45 | 45 << 16);
    assert_int_equal(number(at + 16, 8), 0);
    assert_int_equal(number(at + 24, 8), 2);
    assert_int_equal(number(at + 32, 8), 2);
    assert_int_equal(number(at + 40, 8), of_directory);
    assert_int_equal(number(at + 48, 8), directory);
    at += 56;
    assert_int_equal(number(at, 4), 0x07064b50);
    assert_int_equal(number(at + 4, 4), 0);
    assert_int_equal(number(at + 8, 8), directory + of_directory);
    assert_int_equal(number(at + 16, 4), 1);
    at += 20;
    assert_int_equal(number(at, 4), 0x06054b50);
    assert_int_equal(number(at + 4, 4), 0);
    assert_int_equal(number(at + 8, 4), 2 | 2 << 16);
    assert_int_equal(number(at + 12, 4), of_directory);
    assert_int_equal(number(at + 16, 4), ones);
    assert_int_equal(number(at + 20, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_that_of_the_specification),
        cmocka_unit_test(a_comment_may_follow),
        cmocka_unit_test(flipped_bits_are_noticed),
        cmocka_unit_test(zip64_is_read),
        cmocka_unit_test(damaged_zip64_is_refused),
        cmocka_unit_test(more_members_than_two_bytes_count),
        cmocka_unit_test(four_gib_are_written),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
