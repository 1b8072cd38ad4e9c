/* Augmented images: exact pixels, distributions, the same bits regardless of threads and positions,
 * refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/images/augment.h"
#include "../../../datasets/pipeline/iterator.h"
#include "../../../device/status_internal.h"
#include "../../allocations.h"
#include "../../skip.h"

enum { ROWS = 400, H = 6, W = 5, C = 2, SHIFT = 2 };

typedef uint16_t Image[H][W][C];

/* x: u16 declared as bf16 (ROWS, H, W, C), all pixels of an image different and not zero; y: i32
 * (ROWS,) with the row's number. */
static uint16_t pixel(int i, int h, int w, int c)
{
    return (uint16_t)(1 + c + C * (w + W * h) + 100 * i);
}

static CornuDataset *images(void)
{
    static Image   x[ROWS];
    static int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        y[i] = i;
        for (int h = 0; h < H; h++)
            for (int w = 0; w < W; w++)
                for (int c = 0; c < C; c++) x[i][h][w][c] = pixel(i, h, w, c);
    }
    return cornu_dataset_from_arrays((CornuArray[]){ cornu_array(x, CORNU_BF16, ROWS, H, W, C),
                                                     cornu_array(y, CORNU_I32, ROWS) }, 2);
}

/* Infers the change to an image from its pixels and checks all of them. */
typedef struct { int down, right, flip; } Change;

static int64_t wrong_pixels(int i, const Image image, Change change)
{
    int64_t wrong = 0;
    for (int h = 0; h < H; h++)
        for (int w = 0; w < W; w++)
            for (int c = 0; c < C; c++) {
                const int  from_h = h - change.down, shifted = w - change.right;
                const int  from_w = change.flip ? W - 1 - shifted : shifted;
                const bool inside = from_h >= 0 && from_h < H && shifted >= 0 && shifted < W;
                wrong += image[h][w][c] != (inside ? pixel(i, from_h, from_w, c) : 0);
            }
    return wrong;
}

static Change change_of(int i, const Image image)
{
    Change found = { 0 };
    int    ways = 0;
    for (int down = -SHIFT; down <= SHIFT; down++)
        for (int right = -SHIFT; right <= SHIFT; right++)
            for (int flip = 0; flip < 2; flip++) {
                const Change change = { down, right, flip };
                if (wrong_pixels(i, image, change)) continue;
                found = change;
                ways++;
            }
    assert_int_equal(ways, 1);
    return found;
}

/* Reads an epoch of a data set element by element and frees it. */
static void read_epoch(CornuDataset *dataset, int64_t epoch, Image *x, int32_t *y)
{
    assert_non_null(dataset);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, epoch);
    const CornuBatch *batch;
    int               count = 0;
    cornu_dataset_free(dataset);
    for (;;) {
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        if (!batch) break;
        memcpy(x + count, batch->arrays[0].data, (size_t)batch->valid * sizeof *x);
        memcpy(y + count, batch->arrays[1].data, (size_t)batch->valid * sizeof *y);
        count += (int)batch->valid;
    }
    assert_int_equal(count, ROWS);
    cornu_iterator_free(iterator);
}

static Image   x[ROWS], again[ROWS];
static int32_t y[ROWS], labels[ROWS];

/* Chi square of `count` draws of `kinds` equally likely outcomes. */
static double chi_square(const int *times, int kinds, int count)
{
    const double expected = (double)count / kinds;
    double       sum = 0.0;
    for (int k = 0; k < kinds; k++)
        sum += (times[k] - expected) * (times[k] - expected) / expected;
    return sum;
}

/* All pixels are correct, and all shifts and flips equally frequent: chi square with 49 degrees of
 * freedom is below 85.4 with probability 0.999. Labels do not change. */
static void shifts_and_flips_are_uniform(void **state)
{
    (void)state;
    enum { EPOCHS = 10, EACH = 2 * SHIFT + 1 };
    int times[EACH * EACH * 2] = { 0 };
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        read_epoch(cornu_dataset_augment(images(), .shift = SHIFT, .flip = true, .seed = 3), epoch,
                   x, y);
        for (int i = 0; i < ROWS; i++) {
            const Change change = change_of(i, (const uint16_t(*)[W][C])x[i]);
            assert_int_equal(y[i], i);
            times[((change.down + SHIFT) * EACH + change.right + SHIFT) * 2 + change.flip]++;
        }
    }
    assert_true(chi_square(times, EACH * EACH * 2, EPOCHS * ROWS) < 85.4);
}

static void each_works_alone(void **state)
{
    (void)state;
    int flipped = 0, moved = 0;
    read_epoch(cornu_dataset_augment(images(), .shift = 1, .seed = 3), 0, x, y);
    for (int i = 0; i < ROWS; i++) {
        const Change change = change_of(i, (const uint16_t(*)[W][C])x[i]);
        assert_false(change.flip);
        assert_in_range(change.down + 1, 0, 2);
        assert_in_range(change.right + 1, 0, 2);
        moved += change.down || change.right;
    }
    assert_in_range(moved, ROWS * 8 / 10, ROWS * 97 / 100);   /* 8 / 9 */
    read_epoch(cornu_dataset_augment(images(), .flip = true, .seed = 3), 0, x, y);
    for (int i = 0; i < ROWS; i++) {
        const Change change = change_of(i, (const uint16_t(*)[W][C])x[i]);
        assert_int_equal(change.down, 0);
        assert_int_equal(change.right, 0);
        flipped += change.flip;
    }
    assert_in_range(flipped, ROWS * 4 / 10, ROWS * 6 / 10);
    read_epoch(cornu_dataset_augment(images()), 0, again, y);
    read_epoch(images(), 0, x, y);
    assert_memory_equal(x, again, sizeof x);
}

/* The same seed flips the same images, so a second flip undoes the first. */
static void flipping_twice_changes_nothing(void **state)
{
    (void)state;
    CornuDataset *once = cornu_dataset_augment(images(), .flip = true, .seed = 5);
    read_epoch(cornu_dataset_retain(once), 2, again, y);
    read_epoch(images(), 2, x, y);
    assert_memory_not_equal(x, again, sizeof x);
    read_epoch(cornu_dataset_augment(once, .flip = true, .seed = 5), 2, again, y);
    assert_memory_equal(x, again, sizeof x);
}

static CornuDataset *augmented(uint64_t seed)
{
    return cornu_dataset_augment(images(), .shift = SHIFT, .flip = true, .seed = seed);
}

/* The result depends only on seed, epoch and index, not on the thread, batches or the previous
 * position of the iterator. */
static void the_same_seed_gives_the_same_bits(void **state)
{
    (void)state;
    read_epoch(augmented(1), 4, x, y);
    read_epoch(cornu_dataset_prefetch(cornu_dataset_batch(augmented(1), 32, false), 3), 4, again,
               labels);
    assert_memory_equal(x, again, sizeof x);
    read_epoch(augmented(2), 4, again, labels);
    assert_memory_not_equal(x, again, sizeof x);
    read_epoch(augmented(1), 5, again, labels);
    assert_memory_not_equal(x, again, sizeof x);

    CornuDataset     *dataset = augmented(1);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    cornu_dataset_free(dataset);
    for (int i = ROWS - 1; i >= 0; i -= 37) {
        assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ 4, i }), CORNU_OK);
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        assert_memory_equal(batch->arrays[0].data, x[i], sizeof x[i]);
    }
    cornu_iterator_free(iterator);
}

/* Before a shuffle the random numbers depend on the image, after it on the position. */
static void it_works_on_either_side_of_a_shuffle(void **state)
{
    (void)state;
    read_epoch(augmented(1), 3, x, y);
    read_epoch(cornu_dataset_shuffle(augmented(1), 8), 3, again, labels);
    for (int i = 0; i < ROWS; i++) assert_memory_equal(again[i], x[labels[i]], sizeof *x);
    read_epoch(cornu_dataset_augment(cornu_dataset_shuffle(images(), 8), .shift = SHIFT,
                                     .flip = true, .seed = 1), 3, again, labels);
    for (int i = 0; i < ROWS; i++) {
        const Change by_index = change_of(i, (const uint16_t(*)[W][C])x[i]);
        assert_int_equal(wrong_pixels(labels[i], (const uint16_t(*)[W][C])again[i], by_index), 0);
    }
}

static void grey_bytes_need_no_channels(void **state)
{
    (void)state;
    uint8_t image[3][3] = { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } };
    uint8_t mirrored[3][3] = { { 3, 2, 1 }, { 6, 5, 4 }, { 9, 8, 7 } };
    CornuDataset *dataset = cornu_dataset_augment(
        cornu_dataset_from_arrays((CornuArray[]){ cornu_array(image, CORNU_U8, 1, 3, 3) }, 1),
        .flip = true);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    int               flipped = 0;
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        assert_int_equal(cornu_iterator_rewind(iterator, epoch), CORNU_OK);
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        const bool as_it_was = !memcmp(batch->arrays[0].data, image, sizeof image);
        assert_true(as_it_was || !memcmp(batch->arrays[0].data, mirrored, sizeof image));
        flipped += !as_it_was;
    }
    assert_in_range(flipped, 3, 17);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void expect_refusal(CornuDataset *dataset, CornuStatus status, const char *text)
{
    assert_null(dataset);
    assert_int_equal(cornu_error_take(), status);
    if (!strstr(cornu_error_message(), text))
        fail_msg("\"%s\" does not contain \"%s\"", cornu_error_message(), text);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    uint8_t rows[24] = { 0 };
    expect_refusal(cornu_dataset_augment(images(), .shift = W), CORNU_ERR_SHAPE,
                   "augment: shift is 5, expected less than the extents of the image, (6, 5, 2)");
    expect_refusal(cornu_dataset_augment(images(), .shift = -1), CORNU_ERR_ARGUMENT,
                   "shift is -1, expected 0 or more");
    expect_refusal(cornu_dataset_augment(cornu_dataset_batch(images(), 4, false), .shift = 1),
                   CORNU_ERR_ARGUMENT, "augment before batch");
    expect_refusal(cornu_dataset_augment(cornu_dataset_repeat(images(), CORNU_NONE), .shift = 1),
                   CORNU_ERR_ARGUMENT, "augment before repeat");
    expect_refusal(cornu_dataset_augment(cornu_dataset_from_arrays(
                       (CornuArray[]){ cornu_array(rows, CORNU_U8, 4, 6) }, 1), .flip = true),
                   CORNU_ERR_SHAPE, "elements are u8 (6,), expected images (H, W) or (H, W, C)");
    expect_refusal(cornu_dataset_augment(cornu_dataset_from_arrays(
                       (CornuArray[]){ cornu_array(rows, CORNU_U8, 2, 3, 2, 2, 1) }, 1)),
                   CORNU_ERR_SHAPE, "expected images");
    expect_refusal(cornu_dataset_augment(NULL, .shift = 1), CORNU_ERR_ARGUMENT,
                   "augment: the data set is NULL");
}

/* Epochs allocate nothing; failed allocations give an error and do not leak. */
static void memory_is_allocated_once(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDataset *source = images();
    for (int64_t allowed = 0;; allowed++) {
        allocations_fail_after(allowed);
        CornuDataset  *dataset = cornu_dataset_augment(cornu_dataset_retain(source), .shift = 1);
        CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
        allocations_fail_after(NEVER);
        cornu_dataset_free(dataset);
        if (!iterator) {
            assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
            continue;
        }
        const CornuBatch *batch;
        const int64_t     before = allocations();
        while (!cornu_iterator_next(iterator, &batch) && batch) continue;
        assert_int_equal(allocations(), before);
        cornu_iterator_free(iterator);
        break;
    }
    cornu_dataset_free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_and_flips_are_uniform),
        cmocka_unit_test(each_works_alone),
        cmocka_unit_test(flipping_twice_changes_nothing),
        cmocka_unit_test(the_same_seed_gives_the_same_bits),
        cmocka_unit_test(it_works_on_either_side_of_a_shuffle),
        cmocka_unit_test(grey_bytes_need_no_channels),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(memory_is_allocated_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
