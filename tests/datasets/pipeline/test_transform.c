/* The elements that each transformation delivers, and their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"

enum { ROWS = 23, WIDTH = 3 };

/* x: u8 (ROWS, WIDTH) with 10 i + j, y: i32 (ROWS,) with i. */
static CornuDataset *numbers(void)
{
    static uint8_t x[ROWS][WIDTH];
    static int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        y[i] = i;
        for (int j = 0; j < WIDTH; j++) x[i][j] = (uint8_t)(10 * i + j);
    }
    CornuArray arrays[] = { cornu_array(x, CORNU_U8, ROWS, WIDTH),
                            cornu_array(y, CORNU_I32, ROWS) };
    CornuDataset *dataset = cornu_dataset_from_arrays(arrays, 2);
    memset(x, 0, sizeof x); /* they must have been copied */
    return dataset;
}

/* Reads the labels of an epoch and checks that x belongs to y and that padding is zero. Frees the
 * data set; returns the number of labels. */
static int labels_of(CornuDataset *dataset, int64_t epoch, int32_t *labels, int limit)
{
    assert_non_null(dataset);
    CornuIterator *iterator = cornu_iterator_begin(dataset, epoch);
    assert_non_null(iterator);
    int64_t size = cornu_dataset_batch_size(dataset) ? cornu_dataset_batch_size(dataset) : 1;
    cornu_dataset_free(dataset); /* the iterator holds a reference */
    const CornuBatch *batch;
    int               count = 0;
    for (int64_t index = 0; count < limit; index++) {
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        if (!batch) break;
        assert_int_equal(batch->count, 2);
        assert_int_equal(batch->sample.epoch, epoch);
        assert_int_equal(batch->sample.index, index);
        const uint8_t *x = batch->arrays[0].data;
        const int32_t *y = batch->arrays[1].data;
        for (int64_t b = 0; b < size; b++)
            for (int j = 0; j < WIDTH; j++)
                assert_int_equal(x[b * WIDTH + j], b < batch->valid ? (uint8_t)(10 * y[b] + j) : 0);
        for (int64_t b = 0; b < batch->valid && count < limit; b++) labels[count++] = y[b];
    }
    cornu_iterator_free(iterator);
    return count;
}

static void test_shuffle_is_a_seeded_permutation(void **state)
{
    (void)state;
    int32_t first[ROWS], again[ROWS], other[ROWS];
    bool    seen[ROWS] = { false };
    assert_int_equal(labels_of(cornu_dataset_shuffle(numbers(), 7), 3, first, ROWS), ROWS);
    for (int i = 0; i < ROWS; i++) {
        assert_false(seen[first[i]]);
        seen[first[i]] = true;
    }
    labels_of(cornu_dataset_prefetch(cornu_dataset_shuffle(numbers(), 7), 2), 3, again, ROWS);
    assert_memory_equal(first, again, sizeof first);
    labels_of(cornu_dataset_shuffle(numbers(), 7), 4, other, ROWS);
    assert_memory_not_equal(first, other, sizeof first);
    labels_of(cornu_dataset_shuffle(numbers(), 8), 3, other, ROWS);
    assert_memory_not_equal(first, other, sizeof first);
}

/* All 24 orders of four elements are equally likely: chi square of 24,000 draws with 23 degrees of
 * freedom is below 49.7 with probability 0.999. */
static void test_shuffle_is_uniform(void **state)
{
    (void)state;
    uint8_t       rows[4] = { 0, 1, 2, 3 };
    CornuDataset *dataset = cornu_dataset_shuffle(
        cornu_dataset_from_arrays((CornuArray[]){ cornu_array(rows, CORNU_U8, 4) }, 1), 1);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    int               times[256] = { 0 };
    for (int64_t epoch = 0; epoch < 24000; epoch++) {
        int order = 0;
        assert_int_equal(cornu_iterator_rewind(iterator, epoch), CORNU_OK);
        while (cornu_iterator_next(iterator, &batch) == CORNU_OK && batch)
            order = 4 * order + *(uint8_t *)batch->arrays[0].data;
        times[order]++;
    }
    double chi_square = 0;
    int    orders = 0;
    for (int i = 0; i < 256; i++) {
        if (!times[i]) continue;
        orders++;
        chi_square += (times[i] - 1000.0) * (times[i] - 1000.0) / 1000.0;
    }
    assert_int_equal(orders, 24);
    assert_true(chi_square < 49.7);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void test_batch_pads_or_drops_the_remainder(void **state)
{
    (void)state;
    CornuDataset *dataset = cornu_dataset_batch(numbers(), 5, false);
    assert_int_equal(cornu_dataset_count(dataset), 5);
    assert_int_equal(cornu_dataset_batch_size(dataset), 5);
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 0), cornu_type(CORNU_U8, WIDTH)));
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    int64_t           valid[] = { 5, 5, 5, 5, 3 };
    for (int i = 0; i < 5; i++) {
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        assert_int_equal(batch->valid, valid[i]);
        assert_true(cornu_type_equal(batch->arrays[0].type, cornu_type(CORNU_U8, 5, WIDTH)));
        assert_true(cornu_type_equal(batch->arrays[1].type, cornu_type(CORNU_I32, 5)));
        assert_int_equal((uintptr_t)batch->arrays[0].data % 64, 0);
        assert_int_equal((uintptr_t)batch->arrays[1].data % 64, 0);
    }
    for (int i = 0; i < 2; i++) { /* the end stays the end */
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        assert_null(batch);
    }
    cornu_iterator_free(iterator);
    int32_t labels[ROWS];
    assert_int_equal(labels_of(dataset, 0, labels, ROWS), ROWS);
    assert_int_equal(labels_of(cornu_dataset_batch(numbers(), 5, true), 0, labels, ROWS), 20);
    assert_int_equal(labels_of(cornu_dataset_batch(numbers(), 50, false), 0, labels, ROWS), ROWS);
    assert_int_equal(labels_of(cornu_dataset_batch(numbers(), 50, true), 0, labels, ROWS), 0);
}

static void test_take_skip_and_repeat_rename_indices(void **state)
{
    (void)state;
    int32_t labels[4 * ROWS] = { 0 };
    assert_int_equal(labels_of(cornu_dataset_take(numbers(), 4), 0, labels, ROWS), 4);
    assert_int_equal(labels[3], 3);
    assert_int_equal(labels_of(cornu_dataset_take(numbers(), 400), 0, labels, ROWS), ROWS);
    assert_int_equal(labels_of(cornu_dataset_skip(numbers(), 20), 0, labels, ROWS), 3);
    assert_int_equal(labels[0], 20);
    assert_int_equal(labels_of(cornu_dataset_skip(numbers(), 400), 0, labels, ROWS), 0);
    /* Batches, the last one partial. */
    CornuDataset *batches = cornu_dataset_skip(cornu_dataset_batch(numbers(), 5, false), 4);
    assert_int_equal(labels_of(batches, 0, labels, ROWS), 3);

    assert_int_equal(labels_of(cornu_dataset_repeat(numbers(), 2), 0, labels, 99), 2 * ROWS);
    assert_int_equal(labels[ROWS], 0);
    /* Each pass is an epoch of the source: epoch 1 of two passes is epochs 2 and 3. */
    int32_t        pass[2 * ROWS];
    labels_of(cornu_dataset_shuffle(numbers(), 1), 2, pass, ROWS);
    labels_of(cornu_dataset_shuffle(numbers(), 1), 3, pass + ROWS, ROWS);
    labels_of(cornu_dataset_repeat(cornu_dataset_shuffle(numbers(), 1), 2), 1, labels, 99);
    assert_memory_equal(labels, pass, sizeof pass);
    CornuDataset *endless = cornu_dataset_repeat(cornu_dataset_shuffle(numbers(), 1), CORNU_NONE);
    assert_int_equal(cornu_dataset_count(endless), CORNU_NONE);
    endless = cornu_dataset_batch(endless, 4, false);
    assert_int_equal(cornu_dataset_count(endless), CORNU_NONE);
    assert_int_equal(labels_of(endless, 2, labels, 2 * ROWS), 2 * ROWS);
    assert_memory_equal(labels, pass, sizeof pass);
}

/* y + 100 epoch + 1000 index, as f32, from both components. */
static CornuStatus add(void *context, CornuSample sample, const CornuArray *in,
                       const CornuArray *out)
{
    ++*(int *)context;
    assert_true(cornu_type_equal(in[0].type, cornu_type(CORNU_U8, WIDTH)));
    *(float *)out[0].data = (float)(*(const int32_t *)in[1].data + 100 * sample.epoch +
                                    1000 * sample.index);
    return CORNU_OK;
}

static void test_map_makes_new_components(void **state)
{
    (void)state;
    int           calls = 0;
    CornuType     type = cornu_scalar(CORNU_F32);
    CornuDataset *mapped = cornu_dataset_map(numbers(), add, &calls, &type, 1);
    assert_int_equal(cornu_dataset_components(mapped), 1);
    assert_true(cornu_type_equal(cornu_dataset_type(mapped, 0), type));
    mapped = cornu_dataset_batch(cornu_dataset_skip(mapped, 20), 2, false);
    CornuIterator    *iterator = cornu_iterator_begin(mapped, 5);
    const CornuBatch *batch;
    cornu_iterator_next(iterator, &batch);
    const float *y = batch->arrays[0].data;
    assert_true(y[0] == 20520 && y[1] == 21521);
    cornu_iterator_next(iterator, &batch);
    assert_int_equal(batch->valid, 1);
    y = batch->arrays[0].data;
    assert_true(y[0] == 22522 && y[1] == 0);
    assert_int_equal(calls, 3);
    cornu_iterator_free(iterator);
    cornu_dataset_free(mapped);
}

/* A map after batch negates the labels of whole batches. */
static CornuStatus negate(void *context, CornuSample sample, const CornuArray *in,
                          const CornuArray *out)
{
    (void)context, (void)sample;
    memcpy(out[0].data, in[0].data, cornu_type_bytes(in[0].type));
    for (int64_t b = 0; b < in[1].type.shape.extent[0]; b++)
        ((int32_t *)out[1].data)[b] = -((int32_t *)in[1].data)[b];
    return CORNU_OK;
}

static void test_map_after_batch_sees_batches(void **state)
{
    (void)state;
    CornuDataset *mapped =
        cornu_dataset_map(cornu_dataset_batch(numbers(), 4, false), negate, NULL, NULL, 0);
    assert_int_equal(cornu_dataset_batch_size(mapped), 4);
    CornuIterator *iterator = cornu_iterator_begin(mapped, 0);
    assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ 0, 5 }), CORNU_OK);
    const CornuBatch *batch;
    cornu_iterator_next(iterator, &batch);
    assert_int_equal(batch->valid, 3);
    assert_int_equal(((int32_t *)batch->arrays[1].data)[2], -22);
    cornu_iterator_free(iterator);
    cornu_dataset_free(mapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffle_is_a_seeded_permutation),
        cmocka_unit_test(test_shuffle_is_uniform),
        cmocka_unit_test(test_batch_pads_or_drops_the_remainder),
        cmocka_unit_test(test_take_skip_and_repeat_rename_indices),
        cmocka_unit_test(test_map_makes_new_components),
        cmocka_unit_test(test_map_after_batch_sees_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
