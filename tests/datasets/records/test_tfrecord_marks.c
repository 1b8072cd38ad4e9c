/* Compressed files are entered in their middle, where they were read before: with the same records,
 * and without reading what is before. */
#define _XOPEN_SOURCE 700    /* futimens, setenv */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "../../../datasets/records/tfrecord.h"
#include "../../../datasets/records/tfrecord_internal.h"
#include "../../expect.h"
#include "../files.h"
#include "elements.h"

enum { FILES = 3, RECORDS = 3000, EVERY = 20000, LONGEST = 60 };

static char path[FILES][FILES_PATH];

static int64_t records_of(int file) { return RECORDS - 700 * file; }

/* Numbers that do not compress, and how many of a file's. */
static size_t make_record(int file, int64_t number, unsigned char bytes[LONGEST])
{
    uint32_t     word = (uint32_t)(number * 2654435761u + (unsigned)file);
    const size_t size = 12 + number % 40;
    memcpy(bytes, &number, 8);
    memcpy(bytes + 8, &file, 4);
    for (size_t i = 12; i < size; i++)
        bytes[i] = (unsigned char)((word = word * 1664525 + 1) >> 24);
    return size;
}

static void write_gz(int file)
{
    snprintf(path[file], FILES_PATH, "%s", files_path(folder, (const char *[]){ "0.gz", "1.gz",
                                                                                "2.gz" }[file]));
    CornuTfrecordWriter *writer = cornu_tfrecord_writer_open(path[file]);
    for (int64_t i = 0; i < records_of(file); i++) {
        unsigned char bytes[LONGEST];
        cornu_tfrecord_writer_write(writer, bytes, make_record(file, i, bytes));
    }
    expect_ok(cornu_tfrecord_writer_close(writer));
}

static unsigned char plain[1 << 20], packed[1 << 20];

/* The second file as two members of gzip, the third as one stream of zlib. */
static void pack_otherwise(void)
{
    for (int file = 1; file < FILES; file++) {
        gzFile    from = gzopen(path[file], "rb");
        const int size = gzread(from, plain, sizeof plain);
        gzclose(from);
        assert_true(size > 50000);
        if (file == 1) {
            gzFile to = gzopen(path[file], "wb");
            assert_int_equal(gzwrite(to, plain, 50001), 50001);
            gzclose(to);
            to = gzopen(path[file], "ab");
            assert_int_equal(gzwrite(to, plain + 50001, (unsigned)size - 50001), size - 50001);
            gzclose(to);
        } else {
            uLongf used = sizeof packed;
            assert_int_equal(compress(packed, &used, plain, (uLong)size), Z_OK);
            files_write(path[file], packed, used);
        }
    }
}

static int begin(void **state)
{
    if (files_begin(state)) return 1;
    setenv("CORNU_CACHE", files_path(folder, "cache"), 1);
    cornu__tfrecord_every = EVERY;
    for (int file = 0; file < FILES; file++) write_gz(file);
    pack_otherwise();
    return 0;
}

static CornuIterator *open_files(int64_t cycle)
{
    const char *const all[] = { path[0], path[1], path[2], NULL };
    return elements_begin(cornu_tfrecord_dataset(.files = all, .record_length = LONGEST,
                                                 .cycle_length = cycle, .block_length = 7));
}

/* The record that element `index` is, taken in turn. */
static void expected(int64_t cycle, int64_t index, int *file, int64_t *record)
{
    CornuInterleave order;
    int64_t         used[FILES] = { 0 };
    expect_ok(cornu__interleave_begin(&order, FILES, cycle, 7));
    for (int64_t i = -1; i < index;) {
        *file = cornu__interleave_file(&order);
        assert_true(*file >= 0);
        if (used[*file] == records_of(*file)) {
            cornu__interleave_ended(&order);
            continue;
        }
        *record = used[*file]++;
        cornu__interleave_taken(&order);
        i++;
    }
    cornu__interleave_free(&order);
}

static void expect_element(CornuIterator *iterator, int64_t cycle, int64_t index)
{
    unsigned char     bytes[LONGEST] = { 0 };
    int               file = 0;
    int64_t           record = 0;
    const CornuBatch *element = elements_at(iterator, index);
    assert_non_null(element);
    expected(cycle, index, &file, &record);
    const size_t size = make_record(file, record, bytes);
    assert_int_equal(*(const int32_t *)element->arrays[1].data, size);
    assert_memory_equal(element->arrays[0].data, bytes, size);
}

static void forget(void)
{
    char command[FILES_PATH + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", getenv("CORNU_CACHE"));
    assert_int_equal(system(command), 0);
}

static void the_same_records(void **state)
{
    (void)state;
    static const int64_t places[] = { 0, 1, 2999, 3000, 17, 2500, 4100, 5299, 5300, 6899, 6000,
                                      40 };
    for (int64_t cycle = 1; cycle <= 3; cycle++) {
        forget();
        for (int64_t stop = 1000; stop <= 7000; stop += 2000) {
            CornuIterator *first = open_files(cycle);
            for (int64_t i = 0; i < stop && i < 6900; i += 97) expect_element(first, cycle, i);
            if (stop > 6900) assert_null(elements_at(first, 6900));
            cornu_iterator_free(first);
            for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                CornuIterator *again = open_files(cycle);
                expect_element(again, cycle, places[i]);
                if (places[i] < 6898) expect_element(again, cycle, places[i] + 2);
                cornu_iterator_free(again);
            }
        }
    }
}

/* Changes the first bytes of a file that looks the same from outside. */
static void spoil_start(const char *name)
{
    struct stat about;
    const int   file = open(name, O_RDWR);
    assert_int_equal(fstat(file, &about), 0);
    assert_int_equal(pwrite(file, "damaged", 7, 30), 7);
    assert_int_equal(futimens(file, (struct timespec[]){ about.st_atim, about.st_mtim }), 0);
    close(file);
}

static void what_is_before_is_not_read(void **state)
{
    (void)state;
    forget();
    CornuIterator *iterator = open_files(1);
    elements_at(iterator, 6899);
    cornu_iterator_free(iterator);
    for (int file = 0; file < FILES; file++) spoil_start(path[file]);
    static const int64_t places[] = { 2800, 5100, 6600 };
    for (int i = 0; i < 3; i++) {
        iterator = open_files(1);
        expect_element(iterator, 1, places[i]);
        cornu_iterator_free(iterator);
    }
    iterator = open_files(1);
    elements_expect_failure(iterator, 10, CORNU_ERR_FORMAT, "0.gz: record ");
    cornu_iterator_free(iterator);
    /* A file that was changed has no marks. */
    assert_int_equal(utimensat(AT_FDCWD, path[0], NULL, 0), 0);
    iterator = open_files(1);
    elements_expect_failure(iterator, 2800, CORNU_ERR_FORMAT, "0.gz: record ");
    cornu_iterator_free(iterator);
}

/* ---- Marks that are wrong ---- */

/* Puts numbers at the beginning of each mark; `sealed`: with the checksum of them. */
static void spoil_marks(const int64_t *numbers, size_t count, bool sealed)
{
    static unsigned char entry[1 << 16];
    char                 command[FILES_PATH + 60], name[FILES_PATH];
    snprintf(command, sizeof command, "find '%s' -name '0000000?'", getenv("CORNU_CACHE"));
    FILE *list = popen(command, "r");
    int   found = 0;
    for (; fgets(name, sizeof name, list); found++) {
        name[strcspn(name, "\n")] = '\0';
        const int    file = open(name, O_RDWR);
        const size_t size = (size_t)pread(file, entry, sizeof entry, 0);
        memcpy(entry, numbers, count * sizeof *numbers);
        const uint32_t sum = (uint32_t)crc32(0, entry, (uInt)size - 12);
        for (int i = 0; sealed && i < 4; i++)
            entry[size - 4 + (size_t)i] = (unsigned char)(sum >> 8 * i);
        assert_int_equal(pwrite(file, entry, size, 0), size);
        close(file);
    }
    pclose(list);
    assert_true(found > FILES);
}

/* Damaged marks are none; those that somebody sealed name places that there are, or are none. */
static void wrong_marks(void **state)
{
    (void)state;
    enum { LAST = 6899 };
    /* Of an entry: record, place, is_end, at, place, bits and byte, size. */
    static const struct { int64_t numbers[7]; size_t count; bool sealed; } cases[] = {
        { { 100000 }, 1, false }, { { 5, 0, 1 }, 3, false }, { { 0 }, 7, false },
        { { -5 }, 1, true }, { { 1, INT64_MIN }, 2, true }, { { 1, 1, 0, -1 }, 4, true },
        { { 1, 1, 0, INT64_MAX }, 4, true }, { { 1, 1, 0, 1, 1, 9 }, 6, true },
        { { 1, 1, 0, 1, 1, 0, INT64_MAX }, 7, true }, { { 1, 1, 0, 1, 1, 0, 1 << 20 }, 7, true },
    };
    for (int file = 0; file < FILES; file++) write_gz(file);
    pack_otherwise();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        forget();
        CornuIterator *iterator = open_files(1);
        assert_null(elements_at(iterator, LAST + 1));
        cornu_iterator_free(iterator);
        spoil_marks(cases[i].numbers, cases[i].count, cases[i].sealed);
        for (int64_t place = 2800; place <= LAST; place += 1366) {
            iterator = open_files(1);
            expect_element(iterator, 1, place);
            cornu_iterator_free(iterator);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_same_records),
                                        cmocka_unit_test(what_is_before_is_not_read),
                                        cmocka_unit_test(wrong_marks) };
    return cmocka_run_group_tests(tests, begin, files_end);
}
