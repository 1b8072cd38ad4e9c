/* Class folders of images: files and their order, pixels and labels, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/images/image_folder.h"
#include "../../../datasets/pipeline/dataset_internal.h"
#include "../../allocations.h"
#include "../files.h"
#include "../../expect.h"
#include "../../skip.h"

enum { CATS = 4, DOGS = 6, ALL = CATS + DOGS };

/* An image of one colour: red is its number, blue its class. */
static void draw(const char *path, uint8_t number, uint8_t class)
{
    uint8_t pixels[4][3];
    for (int i = 0; i < 4; i++) memcpy(pixels[i], (uint8_t[]){ number, 0, class }, 3);
    files_write_png(files_path(folder, path), 2, 2, 3, pixels[0]);
}

/* pets: cats 0 to 3 and dogs 4 to 9, created out of order. */
static int begin(void **state)
{
    files_begin(state);
    static const char *const paths[ALL] = { "pets/cat/B.png",   "pets/cat/a.PNG",
                                            "pets/cat/c.png",   "pets/cat/more/a.png",
                                            "pets/dog/10.png",  "pets/dog/9.png",
                                            "pets/dog/x/a.png", "pets/dog/x/b.png",
                                            "pets/dog/x-1/a.png", "pets/dog/y/a.png" };
    for (int i = ALL - 1; i >= 0; i--) draw(paths[i], (uint8_t)i, i >= CATS);
    files_write(files_path(folder, "pets/dog/notes.txt"), "hello", 5);
    files_write(files_path(folder, "pets/above.png"), "hello", 5);
    files_write(files_path(folder, "pets/.hidden/a.png"), "hello", 5);
    return 0;
}

static const char *pets(void) { return files_path(folder, "pets"); }

/* Reads the numbers of an epoch, checks the classes and frees the data set; returns the count. */
static int numbers_of(CornuDataset *dataset, int numbers[ALL])
{
    if (!dataset) fail_msg("%s", cornu_error_message());
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    int               count = 0;
    assert_non_null(iterator);
    cornu_dataset_free(dataset);
    while (cornu_iterator_next(iterator, &batch) == CORNU_OK && batch) {
        const uint8_t *pixels = batch->arrays[0].data;
        assert_true(count < ALL);
        numbers[count++] = pixels[0];
        assert_int_equal(*(const int32_t *)batch->arrays[1].data, pixels[2]);
        assert_int_equal(pixels[2], pixels[0] >= CATS);
    }
    cornu_iterator_free(iterator);
    return count;
}

static void test_files_and_classes_are_sorted(void **state)
{
    (void)state;
    int           count, numbers[ALL];
    CornuDataset *dataset = cornu_image_folder(pets(), .no_shuffle = true, .image_size = { 2 });
    if (!dataset) fail_msg("%s", cornu_error_message());
    const char *const *names = cornu_image_folder_class_names(dataset, &count);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "cat");
    assert_string_equal(names[1], "dog");
    assert_int_equal(cornu_dataset_count(dataset), ALL);
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 0), cornu_type(CORNU_U8, 2, 2, 3)));
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 1), cornu_scalar(CORNU_I32)));
    assert_non_null(strstr(cornu_image_folder_path(dataset, 8), "pets/dog/x-1/a.png"));
    assert_null(cornu_image_folder_path(dataset, ALL));
    assert_int_equal(numbers_of(cornu_dataset_cache(dataset), numbers), ALL);
    for (int i = 0; i < ALL; i++) assert_int_equal(numbers[i], i);
}

static void test_classes_by_name(void **state)
{
    (void)state;
    int           count;
    CornuDataset *dataset = cornu_image_folder(
        pets(), .class_names = (const char *const[]){ "dog", "cat", NULL }, .no_shuffle = true);
    if (!dataset) fail_msg("%s", cornu_error_message());
    assert_string_equal(cornu_image_folder_class_names(dataset, &count)[0], "dog");
    assert_non_null(strstr(cornu_image_folder_path(dataset, 0), "/dog/"));
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 0),
                                 cornu_type(CORNU_U8, 256, 256, 3)));
    cornu_dataset_free(dataset);
}

/* Training and validation together have all files, each once; another seed gives another split. */
static void test_subsets_divide_the_files(void **state)
{
    (void)state;
    int numbers[ALL], other[ALL], seen[ALL] = { 0 }, different = 0;
    int train = numbers_of(cornu_image_folder(pets(), .validation_split = 0.35, .seed = 3,
                                              .subset = CORNU_SUBSET_TRAINING), numbers);
    assert_int_equal(train, 7);
    for (int i = 0; i < train; i++) seen[numbers[i]]++;
    int held_out = numbers_of(cornu_image_folder(pets(), .validation_split = 0.35, .seed = 3,
                                                 .subset = CORNU_SUBSET_VALIDATION), numbers);
    assert_int_equal(held_out, 3);
    for (int i = 0; i < held_out; i++) seen[numbers[i]]++;
    for (int i = 0; i < ALL; i++) assert_int_equal(seen[i], 1);

    assert_int_equal(numbers_of(cornu_image_folder(pets(), .seed = 3), numbers), ALL);
    assert_int_equal(numbers_of(cornu_image_folder(pets(), .seed = 4), other), ALL);
    for (int i = 0; i < ALL; i++) different += numbers[i] != other[i];
    assert_true(different > 0);
}

static void test_label_modes_and_grey(void **state)
{
    (void)state;
    CornuDataset *dataset = cornu_image_folder(pets(), .label_mode = CORNU_LABELS_CATEGORICAL,
                                               .color_mode = CORNU_COLOR_GRAYSCALE,
                                               .image_size = { 3, 5 }, .no_shuffle = true);
    dataset = cornu_dataset_skip(dataset, 9);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    assert_non_null(iterator);
    cornu_dataset_free(dataset);
    assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
    assert_true(cornu_type_equal(batch->arrays[0].type, cornu_type(CORNU_U8, 3, 5, 1)));
    assert_int_equal(((uint8_t *)batch->arrays[0].data)[14], (77 * 9 + 29 * 1 + 128) >> 8);
    assert_memory_equal(batch->arrays[1].data, ((float[]){ 0.0f, 1.0f }), 8);
    cornu_iterator_free(iterator);
    dataset = cornu_image_folder(pets(), .label_mode = CORNU_LABELS_BINARY);
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 1), cornu_type(CORNU_F32, 1)));
    cornu_dataset_free(dataset);
}

/* Files of each format; with .full_depth the numbers of 16 bits, resized without rounding. */
static void test_formats_and_depths(void **state)
{
    (void)state;
    static const uint8_t deep[] = "P5 2 1 65535\n\x10\x01\x20\x04", bmp[] = "P5 2 1 255\n\x07\x09";
    files_write(files_path(folder, "deep/one/a.pgm"), deep, sizeof deep - 1);
    files_write(files_path(folder, "deep/one/b.BMP"), bmp, sizeof bmp - 1);   /* by its content */
    for (int full = 0; full <= 1; full++) {
        CornuDataset *dataset = cornu_image_folder(files_path(folder, "deep"), .no_shuffle = true,
                                                   .color_mode = CORNU_COLOR_GRAYSCALE,
                                                   .image_size = { 1, 4 }, .full_depth = full);
        if (!dataset) fail_msg("%s", cornu_error_message());
        CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
        const CornuBatch *batch;
        assert_int_equal(cornu_dataset_count(dataset), 2);
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        const void *x = batch->arrays[0].data;
        if (full) assert_memory_equal(x, ((float[]){ 4097, 5121.75, 7171.25, 8196 }), 16);
        else assert_memory_equal(x, ((uint8_t[]){ 16, 20, 28, 32 }), 4);
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        x = batch->arrays[0].data;
        if (full) assert_memory_equal(x, ((float[]){ 7, 7.5, 8.5, 9 }), 16);
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
    }
}

static void test_links_are_followed_if_asked(void **state)
{
    (void)state;
    draw("linked/one/a.png", 0, 0);
    assert_int_equal(symlink("../../pets/cat", files_path(folder, "linked/one/cats")), 0);
    CornuDataset *dataset = cornu_image_folder(files_path(folder, "linked"));
    assert_int_equal(cornu_dataset_count(dataset), 1);
    cornu_dataset_free(dataset);
    dataset = cornu_image_folder(files_path(folder, "linked"), .follow_links = true);
    assert_int_equal(cornu_dataset_count(dataset), 1 + CATS);
    cornu_dataset_free(dataset);
    assert_int_equal(symlink("..", files_path(folder, "linked/one/round")), 0);
    assert_null(cornu_image_folder(files_path(folder, "linked"), .follow_links = true));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DATA);
    assert_non_null(strstr(cornu_error_message(), "loop"));
}

/* ---- Refusals ---- */

static void test_bad_settings(void **state)
{
    (void)state;
    expect_failure(cornu_image_folder(.seed = 1), CORNU_ERR_ARGUMENT, ".directory is not given");
    expect_failure(cornu_image_folder(pets(), .image_size = { 16385 }), CORNU_ERR_ARGUMENT,
                   ".image_size is {16385, 0}");
    expect_failure(cornu_image_folder(pets(), .validation_split = 1.0), CORNU_ERR_ARGUMENT,
                   ".validation_split is 1");
    expect_failure(cornu_image_folder(pets(), .validation_split = 0.5), CORNU_ERR_ARGUMENT,
                   ".subset is not given");
    expect_failure(cornu_image_folder(pets(), .subset = CORNU_SUBSET_TRAINING), CORNU_ERR_ARGUMENT,
                   "expected both or neither");
    expect_failure(cornu_image_folder(pets(), .validation_split = 0.01,
                                      .subset = CORNU_SUBSET_VALIDATION), CORNU_ERR_DATA,
                   "none of the 10 images");
    expect_failure(cornu_image_folder(pets(), .color_mode = (CornuColorMode)7), CORNU_ERR_ARGUMENT,
                   ".color_mode 7");
    expect_failure(cornu_image_folder(pets(), .class_names = (const char *const[]){ "cow", NULL }),
                   CORNU_ERR_DATA, "no folder \"cow\"");
    expect_failure(cornu_image_folder(pets(), .class_names =
                                      (const char *const[]){ "cat", "cat", NULL }),
                   CORNU_ERR_ARGUMENT, "\"cat\" twice");
    expect_failure(cornu_image_folder(pets(), .label_mode = CORNU_LABELS_BINARY, .class_names =
                                      (const char *const[]){ "cat", NULL }),
                   CORNU_ERR_DATA, "1 classes, expected 2");
}

static void test_folders_without_images(void **state)
{
    (void)state;
    expect_failure(cornu_image_folder(files_path(folder, "nowhere")), CORNU_ERR_FILE, "nowhere");
    expect_failure(cornu_image_folder(files_path(folder, "pets/cat/more")), CORNU_ERR_DATA,
                   "no folders");
    files_write(files_path(folder, "texts/one/a.txt"), "a", 1);
    expect_failure(cornu_image_folder(files_path(folder, "texts")), CORNU_ERR_DATA, "no images");
    files_write(files_path(folder, "maps/one/a.BMP"), "a", 1);
    expect_failure(cornu_image_folder(files_path(folder, "maps")), CORNU_ERR_FORMAT, "a.BMP");
}

/* Files that are not images are reported at once; a truncated one when it is read. */
static void test_unreadable_images_are_named(void **state)
{
    (void)state;
    uint8_t file[4096];
    draw("broken/one/good.png", 0, 0);
    files_write(files_path(folder, "broken/one/text.png"), "hello", 5);
    files_write(files_path(folder, "broken/one/empty.jpg"), "", 0);
    expect_failure(cornu_image_folder(files_path(folder, "broken")), CORNU_ERR_FORMAT,
                   "2 of 3 images cannot be read");
    assert_non_null(strstr(cornu_error_message(), "text.png"));
    assert_non_null(strstr(cornu_error_message(), "empty.jpg"));

    const size_t size = files_read(files_path(folder, "broken/one/good.png"), file, sizeof file);
    assert_true(size > 40);
    files_write(files_path(folder, "short/one/short.png"), file, 40);
    CornuDataset     *dataset = cornu_image_folder(files_path(folder, "short"));
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_ERR_FORMAT);
    assert_non_null(strstr(cornu_error_message(), "short.png"));
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

enum { SHARED = 23, BATCH = 8, BATCHES = 3 };

/* Reads an epoch, a byte of each image. The status of the first batch that fails. */
static CornuStatus read_share(CornuDataset *dataset, CornuShare share, uint8_t numbers[SHARED])
{
    CornuIterator *iterator = cornu__iterator_begin_share(dataset, 1, share);
    CornuStatus    status = CORNU_OK;
    assert_non_null(iterator);
    for (int64_t i = 0; i < BATCHES && !status; i++) {
        const CornuBatch *batch;
        status = cornu_iterator_next(iterator, &batch);
        for (int64_t b = 0; !status && b < batch->valid; b++)
            numbers[i * BATCH + b] = ((const uint8_t *)batch->arrays[0].data)[b * 12];
    }
    cornu_iterator_free(iterator);
    return status;
}

/* One of four processes reads its part of every batch after all other images are gone. */
static void test_a_share_opens_its_files_alone(void **state)
{
    (void)state;
    static const CornuShare share = { BATCH, 2, 2 };
    uint8_t                 all[SHARED], own[SHARED] = { 0 };
    int                     kept = 0;
    for (int i = 0; i < SHARED; i++) {
        char name[40];
        snprintf(name, sizeof name, "shared/%s/%02d.png", i % 2 ? "odd" : "even", i);
        draw(name, (uint8_t)i, i % 2 != 0);
    }
    CornuDataset *dataset = cornu_image_folder(files_path(folder, "shared"), .image_size = { 2 });
    dataset = cornu_dataset_batch(cornu_dataset_shuffle(dataset, 3), BATCH, false);
    dataset = cornu_dataset_prefetch(dataset, 2);
    expect_ok(read_share(dataset, (CornuShare){ 0 }, all));
    for (int i = 0; i < SHARED; i++) {
        const int64_t row = i % BATCH;
        const bool    is_own = row == 2 || row == 3;   /* also of the 7 valid ones */
        kept += is_own;
        const int64_t origin = cornu__dataset_origin(dataset, (CornuSample){ 1, i / BATCH }, row);
        if (!is_own) assert_int_equal(remove(cornu_image_folder_path(dataset, origin)), 0);
    }
    assert_int_equal(kept, 6);
    expect_ok(read_share(dataset, share, own));
    for (int i = 0; i < SHARED; i++)
        if (i % BATCH == 2 || i % BATCH == 3) assert_int_equal(own[i], all[i]);
    expect_error(read_share(dataset, (CornuShare){ BATCH, 4, 2 }, own), CORNU_ERR_FILE, ".png");
    cornu_dataset_free(dataset);
}

static void test_without_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDataset *dataset = NULL;
    for (int64_t allowed = 0; !dataset; allowed++) {
        allocations_fail_after(allowed);
        dataset = cornu_image_folder(pets());
        allocations_fail_after(NEVER);
        if (!dataset) assert_int_not_equal(cornu_error_take(), CORNU_OK);
        assert_true(allowed < 1000);
    }
    cornu_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_and_classes_are_sorted),
        cmocka_unit_test(test_classes_by_name),
        cmocka_unit_test(test_subsets_divide_the_files),
        cmocka_unit_test(test_label_modes_and_grey),
        cmocka_unit_test(test_formats_and_depths),
        cmocka_unit_test(test_links_are_followed_if_asked),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_folders_without_images),
        cmocka_unit_test(test_unreadable_images_are_named),
        cmocka_unit_test(test_a_share_opens_its_files_alone),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, begin, files_end);
}
