/* TFRecord files: what TensorFlow wrote is read as it reads it, in its order, and written as it
 * writes it. tests/golden/make_tfrecords.py made the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/records/tfrecord.h"
#include "../../expect.h"
#include "../files.h"
#include "elements.h"

#define GOLDEN "tests/golden/tfrecords/"
enum { IDS = 27 };

static const CornuFeature id[] = { { "id", .dtype = CORNU_I32 }, { .name = NULL } };

static int id_of(const CornuBatch *element) { return *(const int32_t *)element->arrays[0].data; }

static void files_in_turn(void **state)
{
    (void)state;
    static const struct { int cycle, block; } orders[] = { { 1, 1 }, { 3, 1 }, { 3, 2 },
                                                           { 4, 3 }, { 7, 1 }, { 20, 2 } };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        char path[100];
        snprintf(path, sizeof path, GOLDEN "order_%d_%d.txt", orders[i].cycle, orders[i].block);
        FILE          *file = fopen(path, "r");
        CornuDataset  *dataset = cornu_tfrecord_dataset(GOLDEN "part-*.tfrecord", id,
                                                        .cycle_length = orders[i].cycle,
                                                        .block_length = orders[i].block);
        CornuIterator *iterator = elements_begin(dataset);
        for (int k = 0, wanted; k < IDS; k++) {
            assert_int_equal(fscanf(file, "%d", &wanted), 1);
            assert_int_equal(id_of(elements_at(iterator, k)), wanted);
        }
        assert_null(elements_at(iterator, IDS));
        assert_int_equal(id_of(elements_at(iterator, 0)), 0);
        cornu_iterator_free(iterator);
        fclose(file);
    }
}

/* Compressed copies of the files give the same order. */
static void compressed_files_in_turn(void **state)
{
    (void)state;
    char bytes[400], name[40];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, GOLDEN "part-%d.tfrecord", i);
        const size_t size = files_read(name, bytes, sizeof bytes);
        snprintf(name, sizeof name, "part-%d.gz", i);
        files_write_gz(files_path(folder, name), bytes, size);
    }
    CornuDataset *plain = cornu_tfrecord_dataset(GOLDEN "part-*.tfrecord", id, .cycle_length = 3,
                                                 .block_length = 2);
    CornuDataset *gz = cornu_tfrecord_dataset(files_path(folder, "part-*.gz"), id,
                                              .cycle_length = 3, .block_length = 2);
    CornuIterator *one = elements_begin(plain), *other = elements_begin(gz);
    for (int k = 0; k < IDS; k++)
        assert_int_equal(id_of(elements_at(other, k)), id_of(elements_at(one, k)));
    assert_null(elements_at(other, IDS));
    assert_int_equal(id_of(elements_at(other, 5)), id_of(elements_at(one, 5)));   /* again */
    cornu_iterator_free(one);
    cornu_iterator_free(other);
}

static void features_of_every_kind(void **state)
{
    (void)state;
    static const int64_t      minus_one = -1;
    static const CornuFeature features[] = {
        { "label", .dtype = CORNU_I32 },
        { "pair", .shape = { 1, { 2 } } },
        { "big", .dtype = CORNU_I64 },
        { "words", CORNU_FEATURE_VAR, CORNU_I64, { 1, { 6 } }, .padding = -7, .count = true },
        { "points", CORNU_FEATURE_VAR, CORNU_F64, .shape = { 2, { 4, 2 } } },
        { "raw", CORNU_FEATURE_RAW, CORNU_F32, .shape = { 2, { 2, 3 } } },
        { "raw_i2", CORNU_FEATURE_RAW, CORNU_I32, .shape = { 1, { 4 } } },
        { "text", CORNU_FEATURE_BYTES, .shape = { 1, { 8 } }, .count = true },
        { "image", CORNU_FEATURE_IMAGE, .shape = { 3, { 6, 5, 3 } } },
        { "sometimes", .dtype = CORNU_I64, .default_value = &minus_one },
        { .name = NULL },
    };
    static const char *const names[] = { "label", "pair", "big", "words", "words_count", "points",
                                         "raw", "raw_i2", "text", "text_count", "image",
                                         "sometimes" };
    static const char *const files[] = { GOLDEN "features.tfrecord", GOLDEN "features.tfrecord.gz",
                                         GOLDEN "features.tfrecord.zz" };
    for (int f = 0; f < 3; f++) {
        CornuDataset *dataset = cornu_tfrecord_dataset(files[f], features);
        assert_int_equal(cornu_dataset_components(dataset), 12);
        assert_int_equal(cornu_dataset_count(dataset), f ? CORNU_UNKNOWN : 12);
        CornuIterator *iterator = elements_begin(dataset);
        for (int64_t i = 0; i < 12; i++) {
            const int64_t index = f ? i : i * 5 % 12;   /* in any order */
            for (int c = 0; c < 12; c++)
                elements_expect_row(elements_at(iterator, index), c, GOLDEN "features.npz",
                                    names[c], index);
        }
        assert_null(elements_at(iterator, 12));
        cornu_iterator_free(iterator);
    }
}

static void sequences_of_features(void **state)
{
    (void)state;
    static const CornuFeature features[] = {
        { "label", .dtype = CORNU_I32 },
        { "steps", .shape = { 2, { 6, 2 } }, .sequence = true, .count = true },
        { .name = NULL },
    };
    CornuIterator *iterator = elements_begin(cornu_tfrecord_dataset(GOLDEN "sequences.tfrecord",
                                                                    features));
    for (int64_t i = 0; i < 6; i++) {
        const CornuBatch *element = elements_at(iterator, i);
        elements_expect_row(element, 0, GOLDEN "sequences.npz", "label", i);
        elements_expect_row(element, 1, GOLDEN "sequences.npz", "steps", i);
        elements_expect_row(element, 2, GOLDEN "sequences.npz", "lengths", i);
    }
    cornu_iterator_free(iterator);
}

static void shuffled_in_several_threads(void **state)
{
    (void)state;
    enum { SIZE = 4 };
    int seen[2][IDS];
    for (int threads = 1; threads <= 4; threads += 3) {
        CornuDataset *dataset = cornu_tfrecord_dataset(GOLDEN "part-*.tfrecord", id,
                                                       .cycle_length = 3);
        dataset = cornu_dataset_batch(cornu_dataset_shuffle(dataset, 3), SIZE, false);
        CornuIterator    *iterator = elements_begin(cornu_dataset_parallel(dataset, threads));
        const CornuBatch *batch;
        int               count = 0;
        while (cornu_iterator_next(iterator, &batch) == CORNU_OK && batch)
            for (int64_t b = 0; b < batch->valid; b++)
                seen[threads / 4][count++] = ((const int32_t *)batch->arrays[0].data)[b];
        assert_int_equal(count, IDS);
        cornu_iterator_free(iterator);
    }
    int found = 0;
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
    for (int i = 0; i < IDS; i++) found |= 1 << seen[0][i];
    assert_int_equal(found, (1 << IDS) - 1);
}

static void records_as_bytes(void **state)
{
    (void)state;
    CornuIterator *iterator = elements_begin(
        cornu_tfrecord_dataset(GOLDEN "part-0.tfrecord", .record_length = 20));
    const CornuBatch *element = elements_at(iterator, 2);
    static const char wanted[20] = "\x0A\x0D\x0A\x0B\x0A\x02id\x12\x05\x1A\x03\x0A\x01\x02";
    assert_int_equal(*(const int32_t *)element->arrays[1].data, 15);
    assert_memory_equal(element->arrays[0].data, wanted, sizeof wanted);
    cornu_iterator_free(iterator);
    iterator = elements_begin(cornu_tfrecord_dataset(GOLDEN "part-0.tfrecord",
                                                     .record_length = 14));
    elements_expect_failure(iterator, 0, CORNU_ERR_FORMAT, "part-0.tfrecord: record 0 at byte 0: "
                            "has 15 bytes, expected at most 14");
    cornu_iterator_free(iterator);
}

/* ---- Writing ---- */

static void written_as_tensorflow_writes(void **state)
{
    (void)state;
    char          ours[200], theirs[200];
    const char   *path = files_path(folder, "ours.tfrecord");
    CornuTfrecordWriter *writer = cornu_tfrecord_writer_open(path);
    for (int64_t i = 0; i < 3; i++)
        cornu_tfrecord_writer_example(writer, (CornuExampleFeature[]){
            { "id", .values = cornu_array(&i, CORNU_I64, 1) } }, 1);
    expect_ok(cornu_tfrecord_writer_close(writer));
    const size_t size = files_read(path, ours, sizeof ours);
    assert_int_equal(files_read(GOLDEN "part-0.tfrecord", theirs, sizeof theirs), size);
    assert_memory_equal(ours, theirs, size);
}

static void written_and_read_again(void **state)
{
    (void)state;
    static const CornuFeature features[] = {
        { "ids", CORNU_FEATURE_VAR, CORNU_I64, { 1, { 3 } }, .count = true },
        { "x", .shape = { 1, { 2 } } },
        { "bytes", CORNU_FEATURE_BYTES, .shape = { 1, { 70000 } }, .count = true },
        { .name = NULL },
    };
    static unsigned char bytes[70000];
    for (int i = 0; i < 70000; i++) bytes[i] = (unsigned char)((unsigned)i * (unsigned)i >> 3);
    for (int gz = 0; gz < 2; gz++) {
        const char *path = files_path(folder, gz ? "many.gz" : "many.tfrecord");
        CornuTfrecordWriter *writer = cornu_tfrecord_writer_open(path);
        for (int64_t i = 0; i < 20; i++) {
            int64_t ids[] = { -i, INT64_MIN, i };
            double  x[] = { (double)i / 4, -1e30 };
            cornu_tfrecord_writer_example(writer, (CornuExampleFeature[]){
                { "ids", .values = cornu_array(ids, CORNU_I64, i % 4) },
                { "x", .values = cornu_array(x, CORNU_F64, 2) },
                { "bytes", .bytes = bytes, .size = (size_t)(i * 3500) } }, 3);
        }
        expect_ok(cornu_tfrecord_writer_close(writer));
        CornuIterator *iterator = elements_begin(cornu_tfrecord_dataset(path, features));
        for (int64_t i = 0; i < 20; i++) {
            const CornuBatch *element = elements_at(iterator, i);
            const int64_t    *ids = element->arrays[0].data;
            const float      *x = element->arrays[2].data;
            assert_int_equal(*(const int32_t *)element->arrays[1].data, i % 4);
            assert_true(ids[0] == (i % 4 > 0 ? -i : 0) && ids[1] == (i % 4 > 1 ? INT64_MIN : 0));
            assert_true(x[0] == (float)i / 4 && x[1] == -1e30f);
            assert_int_equal(*(const int32_t *)element->arrays[4].data, i * 3500);
            assert_memory_equal(element->arrays[3].data, bytes, (size_t)(i * 3500));
        }
        assert_null(elements_at(iterator, 20));
        cornu_iterator_free(iterator);
    }
}

static void writers_report_at_the_end(void **state)
{
    (void)state;
    const char *path = files_path(folder, "none.tfrecord");
    uint16_t    half[] = { 0 };
    CornuTfrecordWriter *writer = cornu_tfrecord_writer_open(path);
    cornu_tfrecord_writer_example(writer, (CornuExampleFeature[]){
        { "x", .values = cornu_array(half, CORNU_F16, 1) } }, 1);
    cornu_tfrecord_writer_write(writer, "a", 1);
    expect_error(cornu_tfrecord_writer_close(writer), CORNU_ERR_DTYPE, "feature \"x\" is f16");
    assert_int_equal(files_count(path), 0);
    assert_null(fopen(path, "r"));
    assert_null(cornu_tfrecord_writer_open("absent/folder/a.tfrecord"));
    expect_error(cornu_error_take(), CORNU_ERR_FILE, "absent/folder/a.tfrecord");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_in_turn), cmocka_unit_test(compressed_files_in_turn),
        cmocka_unit_test(features_of_every_kind), cmocka_unit_test(sequences_of_features),
        cmocka_unit_test(shuffled_in_several_threads), cmocka_unit_test(records_as_bytes),
        cmocka_unit_test(written_as_tensorflow_writes), cmocka_unit_test(written_and_read_again),
        cmocka_unit_test(writers_report_at_the_end),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
