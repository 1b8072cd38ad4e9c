/* Keras' files that are damaged, truncated or made to harm: they are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "golden_files.h"
#include "../../skip.h"

static void test_hostile_files(void **state)
{
    static const struct { const char *name; CornuStatus status; const char *message; } hostile[] = {
        { "soft", CORNU_ERR_UNSUPPORTED, "\"layers/conv2d/vars/0\" is a soft or external link" },
        { "external_link", CORNU_ERR_UNSUPPORTED, "is a soft or external link" },
        { "external_data", CORNU_ERR_UNSUPPORTED, "keeps its data in another file" },
        { "virtual", CORNU_ERR_UNSUPPORTED, "keeps its data in another file" },
        { "huge", CORNU_ERR_FORMAT, "declares 4398046511104 bytes, but only 0 are stored" },
        { "texts", CORNU_ERR_UNSUPPORTED, "does not hold numbers" },
        { "missing", CORNU_ERR_SHAPE, "has 1 weights, the model's layer conv2d has 2" },
        { "group", CORNU_ERR_FORMAT, "is not an array" },
        { "shape", CORNU_ERR_SHAPE, "conv2d/kernel: \"layers/conv2d/vars/0\" is (3, 3) in the file,"
                                    " expected (3, 3, 2, 4)" },
    };
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load(golden("images", ".keras")));
    expect_ok(cornu_model_save_weights(model, here("a", ".npz")));
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char name[60];
        snprintf(name, sizeof name, "hostile_%s", hostile[i].name);
        const char *path = golden(name, ".weights.h5");
        const CornuStatus status = cornu_model_load_weights(model, path);
        expect_error(status, hostile[i].status, hostile[i].message);
        assert_true(!strncmp(cornu_error_message(), path, strlen(path)));
    }
    expect_error(cornu_model_load_weights(model, golden("sequence", ".weights.h5")),
                 CORNU_ERR_SHAPE, "weights");
    expect_error(cornu_model_load_weights(model, golden("sequence", ".h5")), CORNU_ERR_SHAPE,
                 "\"model_weights/embedding\" has 1 weights, the model's conv2d has 2");
    expect_ok(cornu_model_save_weights(model, here("b", ".npz")));   /* nothing was changed */
    expect_equal_files(here("a", ".npz"), here("b", ".npz"));
    cornu_model_free(model);
}

static size_t read_golden(const char *name, const char *suffix, unsigned char *bytes, size_t room)
{
    const size_t size = files_read(golden(name, suffix), bytes, room);
    assert_true(size > 0 && size < room);
    return size;
}

/* Members of an archive that overlap are refused: a few bytes could be any number of arrays. */
static void test_overlapping_members(void **state)
{
    (void)state;
    assert_null(cornu_npz_open("tests/fuzz/seeds/zip/overlap"));
    expect_error(cornu_error_status(), CORNU_ERR_FORMAT, "member \"b\": overlaps others");
}

/* The bytes of a file with the weights of the golden model "images", and a path for writing one. */
static size_t read_weights_file(CornuModel *model, const char *suffix, const char **path,
                                unsigned char *bytes, size_t room)
{
    *path = here("a", suffix);
    if (strcmp(suffix, ".npz")) return read_golden("images", suffix, bytes, room);
    expect_ok(cornu_model_save_weights(model, *path));   /* the golden one has data */
    return files_read(*path, bytes, room);
}

/* Truncated files are refused. */
static void test_truncated_files(void **state)
{
    static const char *const suffixes[] = { ".keras", ".weights.h5", ".h5", ".npz" };
    static unsigned char bytes[400000];
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    for (int s = 0; s < 4; s++) {
        const char  *path;
        CornuModel  *model = expect_model(cornu_model_load(golden("images", ".keras")));
        const size_t size = read_weights_file(model, suffixes[s], &path, bytes, sizeof bytes);
        for (size_t cut = 0; cut < size; cut += cut < 200 ? 40 : 1024) {
            files_write(path, bytes, cut);
            assert_int_not_equal(cornu_model_load_weights(model, path), CORNU_OK);
            assert_true(strlen(cornu_error_message()) > strlen(path));
        }
        cornu_model_free(model);
    }
}

/* All weights of a model in one array; returns the number of values. */
static int64_t read_all_weights(const CornuModel *model, float *to, int64_t space)
{
    int64_t count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        assert_true(count + cornu_type_count(weight->type) <= space);
        expect_ok(cornu_weight_read(weight, cornu_array_from(to + count, weight->type)));
        count += cornu_type_count(weight->type);
    }
    return count;
}

/* A file with a flipped bit is refused, or the bit is not read at all. HDF5 files have no
 * checksums: there it may be a bit of a weight, but then of that weight alone. */
static void test_damaged_files(void **state)
{
    static const char *const suffixes[] = { ".keras", ".weights.h5", ".h5", ".npz" };
    static unsigned char bytes[400000];
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    uint32_t random = 1;
    for (int s = 0; s < 4; s++) {
        const char  *path;
        CornuModel  *model = expect_model(cornu_model_load(golden("images", ".keras")));
        const size_t size = read_weights_file(model, suffixes[s], &path, bytes, sizeof bytes);
        static float right[100000], got[100000];
        const bool   checked = !strcmp(suffixes[s], ".keras") || !strcmp(suffixes[s], ".npz");
        files_write(path, bytes, size);
        expect_ok(cornu_model_load_weights(model, path));
        const int64_t count = read_all_weights(model, right, 100000);
        int           refused = 0;
        for (int i = 0; i < 300; i++) {
            random = random * 1664525 + 1013904223;
            const size_t        at = size > 0 ? (random >> 8) % size : 0;
            const unsigned char old = bytes[at];
            bytes[at] ^= (unsigned char)(1 << (random >> 29));
            files_write(path, bytes, size);
            const bool loaded = cornu_model_load_weights(model, path) == CORNU_OK;
            bytes[at] = old;
            refused += !loaded;
            if (!loaded) continue;
            int others = 0;
            read_all_weights(model, got, count);
            for (int64_t k = 0; k < count; k++) others += memcmp(&got[k], &right[k], 4) != 0;
            if (others > (checked ? 0 : 1))
                fail_msg("%s with another byte %zu: %d of %lld weights are others", suffixes[s], at,
                         others, (long long)count);
        }
        /* Most bytes of the two with checksums are under these. */
        assert_true(refused > (checked ? 225 : 0));
        cornu_model_free(model);
    }
}

static size_t put(unsigned char *to, size_t at, uint64_t number, int size)
{
    for (int i = 0; i < size; i++) to[at++] = (unsigned char)(number >> 8 * i);
    return at;
}

/* `size` blanks, deflated; returns the number of bytes. */
static size_t deflate_blanks(size_t size, unsigned char *to, size_t room)
{
    static unsigned char blanks[1 << 20];
    z_stream             stream = { .next_out = to, .avail_out = (uInt)room };
    memset(blanks, ' ', sizeof blanks);
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    for (size_t left = size; left > 0; left -= sizeof blanks) {
        stream.next_in = blanks;
        stream.avail_in = sizeof blanks;
        assert_int_not_equal(deflate(&stream, left > sizeof blanks ? Z_NO_FLUSH : Z_FINISH),
                             Z_STREAM_ERROR);
    }
    deflateEnd(&stream);
    return stream.total_out;
}

/* An archive whose members are so many blanks, deflated. */
static void write_blanks(const char *path, const char *const *names, int count, size_t size)
{
    enum { LOCAL = 30, MOST = 4 };
    static unsigned char file[2 << 20];
    const int            widths[] = { 2, 2, 2, 2, 2, 4, 4, 4, 2, 2 };
    const uint32_t       sum = 0;   /* of what is refused before it is read */
    uint64_t             fields[MOST][10];
    size_t               at = 0, places[MOST];
    for (int m = 0; m < count; m++) {
        const size_t length = strlen(names[m]);
        const size_t stored = deflate_blanks(size, file + at + LOCAL + length,
                                             sizeof file - at - LOCAL - length - 400);
        const uint64_t all[] = { 20, 0, 8, 0, 0x21, sum, stored, size, length, 0 };
        memcpy(fields[m], all, sizeof all);
        places[m] = at;
        at = put(file, at, 0x04034b50, 4);
        for (int i = 0; i < 10; i++) at = put(file, at, all[i], widths[i]);
        memcpy(file + at, names[m], length);
        at += length + stored;
    }
    const size_t directory = at;
    for (int m = 0; m < count; m++) {
        at = put(file, put(file, at, 0x02014b50, 4), 20, 2);
        for (int i = 0; i < 10; i++) at = put(file, at, fields[m][i], widths[i]);
        at = put(file, put(file, put(file, at, 0, 8), 0, 2), places[m], 4);
        memcpy(file + at, names[m], strlen(names[m]));
        at += strlen(names[m]);
    }
    const size_t listed = at - directory;
    at = put(file, put(file, at, 0x06054b50, 4), 0, 4);
    at = put(file, put(file, at, (uint64_t)count, 2), (uint64_t)count, 2);
    at = put(file, put(file, put(file, at, listed, 4), directory, 4), 0, 2);
    files_write(path, file, at);
}

/* An archive of a few hundred kilobytes whose config.json has more than the limit of JSON: it is
 * refused before it is inflated, with both numbers. */
static void test_inflated_config(void **state)
{
    (void)state;
    write_blanks(here("big", ".keras"), (const char *const[]){ "config.json" }, 1,
                 (size_t)129 << 20);
    expect_unloaded(cornu_model_load(here("big", ".keras")), CORNU_ERR_FORMAT,
                    "member \"config.json\": has 135266304 bytes, expected at most 134217728");
}

/* All arrays of a .npz file are read: together they are bounded as one is. */
static void test_inflated_arrays(void **state)
{
    (void)state;
    write_blanks(here("big", ".npz"), (const char *const[]){ "a.npy", "b.npy", "c.npy" }, 3,
                 (size_t)4 << 20);
    cornu_set_memory_limit((size_t)10 << 20);
    const CornuNpz *npz = cornu_npz_open(here("big", ".npz"));
    cornu_set_memory_limit(0);
    expect_unloaded(npz, CORNU_ERR_MEMORY, "its arrays have 12582912 bytes, the limit is 10485760");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inflated_config),
        cmocka_unit_test(test_inflated_arrays),
        cmocka_unit_test(test_hostile_files),
        cmocka_unit_test(test_overlapping_members),
        cmocka_unit_test(test_truncated_files),
        cmocka_unit_test(test_damaged_files),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
