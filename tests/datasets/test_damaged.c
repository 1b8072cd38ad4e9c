/*
 * Good files of each kind, damaged in many ways: cut off at any place, and with numbers of their
 * headers set to huge ones. Each is refused with a message that names the file and, where the kind
 * can tell, the place, or is read, if what was changed is not a number that matters; in little
 * memory. Parquet files and Arrow's streams are in tests/python/test_arrow.py and arrow/.
 *
 * tests/run: quick
 */
#define _DEFAULT_SOURCE    /* getrusage */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "../../datasets/arrays/npy.h"
#include "../../datasets/pipeline/iterator.h"
#include "../../datasets/records/tfrecord.h"
#include "../../datasets/sound/sound.h"
#include "../../datasets/tables/table.h"
#include "../../datasets/tar/tar.h"
#include "../../device/memory.h"
#include "../quick.h"
#include "../skip.h"
#include "files.h"

/* ---- Reading all of a file ---- */

static CornuStatus read_image(const char *path)
{
    CornuArray        image = { .data = NULL };
    const CornuStatus status = cornu_image_load(path, 0, &image);
    if (!status) free(image.data);
    return status;
}

static CornuStatus read_sound(const char *path)
{
    CornuArray        sound = { .data = NULL };
    int64_t           rate;
    const CornuStatus status = cornu_sound_load(path, 0, &sound, &rate);
    if (!status) free(sound.data);
    return status;
}

static CornuStatus read_table(const char *path)
{
    CornuTable *table = cornu_table_load(path, .missing = CORNU_MISSING_KEPT);
    if (!table) return cornu_error_status();
    cornu_table_free(table);
    return CORNU_OK;
}

static CornuStatus read_rows(CornuDataset *dataset)
{
    const CornuBatch *element = NULL;
    if (!dataset) return cornu_error_take();
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    CornuStatus    status = iterator ? cornu_iterator_next(iterator, &element) : cornu_error_take();
    while (!status && element) status = cornu_iterator_next(iterator, &element);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    return status;
}

static CornuStatus read_npy(const char *path) { return read_rows(cornu_npy_dataset(path)); }

static CornuStatus read_npz(const char *path)
{
    char name[FILES_PATH + 20];
    snprintf(name, sizeof name, "%s:f4_little_c", path);
    return read_rows(cornu_npy_dataset(name));
}

static CornuStatus read_tfrecord(const char *path)
{
    const CornuFeature features[] = {
        { "label", .dtype = CORNU_I64 },
        { "image", CORNU_FEATURE_IMAGE, .shape = { 3, { 6, 5, 3 } } },
        { .name = NULL },
    };
    return read_rows(cornu_tfrecord_dataset(path, features));
}

static CornuStatus read_tar(const char *path)
{
    const CornuFeature features[] = {
        { "jpg;png", CORNU_FEATURE_IMAGE, .shape = { 3, { 8, 10, 3 } }, .resize = true },
        { "cls", .dtype = CORNU_I32 },
        { "npy", .dtype = CORNU_F32, .shape = { 2, { 2, 3 } } },
        { .name = NULL },
    };
    return read_rows(cornu_tar_dataset(path, features));
}

/* ---- Kinds ---- */

typedef struct {
    const char  *good;
    CornuStatus (*read)(const char *path);
    bool         by_cut;     /* every file that is cut off is refused */
    bool         by_place;   /* messages say where a file is cut off */
    bool         may_claim;  /* what is compressed may claim any size, which the limit refuses */
} Kind;

static const Kind kinds[] = {
    { "tfrecords/features.tfrecord", read_tfrecord, false, true, false },   /* or between records */
    { "tfrecords/features.tfrecord.gz", read_tfrecord, true, true, false },
    { "arrays/x.npy", read_npy, true, true, false },
    { "arrays/stored.npz", read_npz, true, false, false },
    { "arrays/deflated.npz", read_npz, true, false, false },
    { "tars/pax.tar", read_tar, false, true, false },
    { "tables/quoted.csv", read_table, false, true, false },
    { "sounds/i16.wav", read_sound, true, true, false },
    { "sounds/mono.flac", read_sound, true, false, true },
    { "image_files/rgb.bmp", read_image, false, true, false },   /* its last byte is padding */
    { "image_files/palette.gif", read_image, false, true, false },   /* or says that it ends */
    { "image_files/deep.png", read_image, true, true, false },
    { "image_files/grey.pgm", read_image, true, true, false },
    { "image_files/rgb.ppm", read_image, true, true, false },
    { "image_files/ct.dcm", read_image, true, true, false },
    { "jpegs/bands_420.jpg", read_image, true, false, false },
};
enum { KINDS = sizeof kinds / sizeof *kinds, MOST = 1 << 20, LIMIT = 64 << 20 };

static bool says_where(const char *message)
{
    static const char *const words[] = { "byte", "record", "line", "row", "sample", "pixel" };
    if (strstr(message, "not a")) return true;   /* its first bytes are of no kind, or of another */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *word = strstr(message, words[i]);
        if (word && strpbrk(message, "0123456789")) return true;
    }
    return false;
}

/* Reads a damaged file; whether it is refused. */
static bool is_refused(const Kind *kind, const unsigned char *bytes, size_t size, const char *how,
                       bool is_cut)
{
    const char       *name = strrchr(kind->good, '/') + 1;
    const char       *path = files_path(folder, name);
    files_write(path, bytes, size);
    const CornuStatus status = kind->read(path);
    const char       *message = status ? cornu_error_message() : "";
    const char       *after = strstr(message, name);
    if (cornu_error_pending()) fail_msg("%s, %s: an error is pending", name, how);
    if (!status) return false;
    if (!after || (status == CORNU_ERR_MEMORY && !kind->may_claim))
        fail_msg("%s, %s: \"%s\" (%s)", name, how, message, cornu_status_text(status));
    if (is_cut && kind->by_place && !says_where(after + strlen(name)))
        fail_msg("%s, %s: \"%s\" does not say where", name, how, message);
    return true;
}

static int cut(const Kind *kind, const unsigned char *bytes, size_t size)
{
    const int places = quick(16, 100);   /* what has no bytes may be an empty set */
    int       refused = 0;
    for (int i = 1; i <= places; i++) {
        char         how[60];
        const size_t left = i == places ? size - 1 : size * (size_t)i / (size_t)places;
        snprintf(how, sizeof how, "cut after %zu of %zu bytes", left, size);
        const bool is = is_refused(kind, bytes, left, how, true);
        if (kind->by_cut && !is) fail_msg("%s, %s: is read", kind->good, how);
        refused += is;
    }
    return refused;
}

/* Numbers of 1, 2 and 4 bytes, of either byte order. */
static int spoil(const Kind *kind, unsigned char *bytes, size_t size)
{
    static const unsigned char huge[][4] = { { 255, 255, 255, 255 }, { 127, 255, 255, 255 },
                                             { 255, 255, 255, 127 }, { 255 } };
    const size_t width[] = { 4, 4, 4, 1 }, step = (size_t)quick(4, 1);
    int          refused = 0;
    for (size_t at = 0; at < 400 && at + 4 <= size; at += at < 64 ? 1 : step)
        for (size_t h = 0; h < sizeof width / sizeof *width; h++) {
            unsigned char before[4];
            char          how[60];
            memcpy(before, bytes + at, 4);
            memcpy(bytes + at, huge[h], width[h]);
            snprintf(how, sizeof how, "byte %zu set to huge number %zu", at, h);
            refused += is_refused(kind, bytes, size, how, false);
            memcpy(bytes + at, before, 4);
        }
    return refused;
}

static long peak_kb(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

static void damaged_files(void **state)
{
    (void)state;
    static unsigned char bytes[MOST];
    const long           before = peak_kb();
    cornu_set_memory_limit(LIMIT);
    for (int i = 0; i < KINDS; i++) {
        char path[FILES_PATH];
        snprintf(path, sizeof path, "tests/golden/%s", kinds[i].good);
        const size_t size = files_read(path, bytes, MOST);
        if (is_refused(&kinds[i], bytes, size, "whole", false)) {
            if (strstr(cornu_error_message(), "libsndfile")) continue;
            fail_msg("%s", cornu_error_message());
        }
        const int refused = cut(&kinds[i], bytes, size), others = spoil(&kinds[i], bytes, size);
        print_message("%s: %d cut off and %d others are refused\n", kinds[i].good, refused, others);
        assert_true(refused >= 10 && others >= 10);
    }
    cornu_set_memory_limit(0);
#if !defined(__SANITIZE_ADDRESS__)   /* which keeps what was freed */
    assert_true(peak_kb() - before < 200 << 10);
#else
    (void)before;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(damaged_files) };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
