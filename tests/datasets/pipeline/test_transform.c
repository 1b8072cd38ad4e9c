/* The elements that each transformation delivers, and their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/pipeline/padded_batch.h"
#include "../../../datasets/pipeline/sequence.h"
#include "../../expect.h"
#include "numbered.h"

static void test_shuffle_is_a_seeded_permutation(void **state)
{
    (void)state;
    int32_t first[NUMBERED_ROWS], again[NUMBERED_ROWS], other[NUMBERED_ROWS];
    bool    seen[NUMBERED_ROWS] = { false };
    assert_int_equal(numbered_labels(cornu_dataset_shuffle(numbered_rows(), 7), 3, first,
                                     NUMBERED_ROWS),
                     NUMBERED_ROWS);
    for (int i = 0; i < NUMBERED_ROWS; i++) {
        assert_false(seen[first[i]]);
        seen[first[i]] = true;
    }
    numbered_labels(cornu_dataset_prefetch(cornu_dataset_shuffle(numbered_rows(), 7), 2),
                    3, again, NUMBERED_ROWS);
    assert_memory_equal(first, again, sizeof first);
    numbered_labels(cornu_dataset_shuffle(numbered_rows(), 7), 4, other, NUMBERED_ROWS);
    assert_memory_not_equal(first, other, sizeof first);
    numbered_labels(cornu_dataset_shuffle(numbered_rows(), 8), 3, other, NUMBERED_ROWS);
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
    CornuDataset *dataset = cornu_dataset_batch(numbered_rows(), 5, false);
    assert_int_equal(cornu_dataset_count(dataset), 5);
    assert_int_equal(cornu_dataset_batch_size(dataset), 5);
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 0),
                                 cornu_type(CORNU_U8, NUMBERED_WIDTH)));
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    int64_t           valid[] = { 5, 5, 5, 5, 3 };
    for (int i = 0; i < 5; i++) {
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        assert_int_equal(batch->valid, valid[i]);
        assert_true(cornu_type_equal(batch->arrays[0].type,
                                     cornu_type(CORNU_U8, 5, NUMBERED_WIDTH)));
        assert_true(cornu_type_equal(batch->arrays[1].type, cornu_type(CORNU_I32, 5)));
        assert_int_equal((uintptr_t)batch->arrays[0].data % 64, 0);
        assert_int_equal((uintptr_t)batch->arrays[1].data % 64, 0);
    }
    for (int i = 0; i < 2; i++) { /* the end stays the end */
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        assert_null(batch);
    }
    cornu_iterator_free(iterator);
    int32_t labels[NUMBERED_ROWS];
    assert_int_equal(numbered_labels(dataset, 0, labels, NUMBERED_ROWS), NUMBERED_ROWS);
    assert_int_equal(numbered_labels(cornu_dataset_batch(numbered_rows(), 5, true), 0,
                                     labels, NUMBERED_ROWS),
                     20);
    assert_int_equal(numbered_labels(cornu_dataset_batch(numbered_rows(), 50, false), 0,
                                     labels, NUMBERED_ROWS),
                     NUMBERED_ROWS);
    assert_int_equal(numbered_labels(cornu_dataset_batch(numbered_rows(), 50, true), 0,
                                     labels, NUMBERED_ROWS),
                     0);
}

static void test_take_skip_and_repeat_rename_indices(void **state)
{
    (void)state;
    int32_t labels[4 * NUMBERED_ROWS] = { 0 };
    assert_int_equal(
        numbered_labels(cornu_dataset_take(numbered_rows(), 4), 0, labels, NUMBERED_ROWS),
        4);
    assert_int_equal(labels[3], 3);
    assert_int_equal(numbered_labels(cornu_dataset_take(numbered_rows(), 400), 0, labels,
                                     NUMBERED_ROWS),
                     NUMBERED_ROWS);
    assert_int_equal(numbered_labels(cornu_dataset_skip(numbered_rows(), 20), 0, labels,
                                     NUMBERED_ROWS),
                     3);
    assert_int_equal(labels[0], 20);
    assert_int_equal(numbered_labels(cornu_dataset_skip(numbered_rows(), 400), 0, labels,
                                     NUMBERED_ROWS),
                     0);
    /* Batches, the last one partial. */
    CornuDataset *batches = cornu_dataset_skip(cornu_dataset_batch(numbered_rows(), 5, false), 4);
    assert_int_equal(numbered_labels(batches, 0, labels, NUMBERED_ROWS), 3);

    assert_int_equal(
        numbered_labels(cornu_dataset_repeat(numbered_rows(), 2), 0, labels, 99),
        2 * NUMBERED_ROWS);
    assert_int_equal(labels[NUMBERED_ROWS], 0);
    /* Each pass is an epoch of the source: epoch 1 of two passes is epochs 2 and 3. */
    int32_t        pass[2 * NUMBERED_ROWS];
    numbered_labels(cornu_dataset_shuffle(numbered_rows(), 1), 2, pass, NUMBERED_ROWS);
    numbered_labels(cornu_dataset_shuffle(numbered_rows(), 1), 3, pass + NUMBERED_ROWS,
                    NUMBERED_ROWS);
    numbered_labels(cornu_dataset_repeat(cornu_dataset_shuffle(numbered_rows(), 1), 2), 1,
                    labels, 99);
    assert_memory_equal(labels, pass, sizeof pass);
    CornuDataset *endless =
        cornu_dataset_repeat(cornu_dataset_shuffle(numbered_rows(), 1), CORNU_NONE);
    assert_int_equal(cornu_dataset_count(endless), CORNU_NONE);
    endless = cornu_dataset_batch(endless, 4, false);
    assert_int_equal(cornu_dataset_count(endless), CORNU_NONE);
    assert_int_equal(numbered_labels(endless, 2, labels, 2 * NUMBERED_ROWS), 2 * NUMBERED_ROWS);
    assert_memory_equal(labels, pass, sizeof pass);
}

/* Components of 16, 4 and 8 bytes, of which each is where its numbers may be. */
static CornuStatus put_aligned(void *context, CornuSample sample, const CornuArray *in,
                               const CornuArray *out)
{
    (void)sample, (void)in;
    for (int c = 0; c < 3; c++) {
        ++*(int *)context;
        assert_int_equal((uintptr_t)out[c].data % cornu_dtype_size(out[c].type.dtype), 0);
        memset(out[c].data, 0, cornu_type_bytes(out[c].type));   /* the last is a length */
    }
    return CORNU_OK;
}

static void test_elements_are_aligned(void **state)
{
    (void)state;
    static const CornuType types[] = { { CORNU_F32, { 1, { 4 } } }, { CORNU_I32, { 0 } },
                                       { CORNU_I64, { 0 } } };
    for (int kind = 0; kind < 3; kind++) {
        int           calls = 0;
        CornuDataset *rows = cornu_dataset_map(numbered_rows(), put_aligned, &calls, types, 3);
        rows = kind == 0 ? cornu_dataset_window(rows, 3, .shift = 2, .drop_remainder = true)
             : kind == 1 ? cornu_dataset_padded_batch(rows, 5)
                         : cornu_dataset_shuffle_window(rows, 7, 1);
        assert_non_null(rows);
        CornuIterator    *iterator = cornu_iterator_begin(rows, 0);
        const CornuBatch *batch = NULL;
        do expect_ok(cornu_iterator_next(iterator, &batch));
        while (batch);
        assert_true(calls >= 3 * NUMBERED_ROWS);
        cornu_iterator_free(iterator);
        cornu_dataset_free(rows);
    }
}

static void test_map_makes_new_components(void **state)
{
    (void)state;
    int           calls = 0;
    CornuType     type = cornu_scalar(CORNU_F32);
    CornuDataset *mapped = cornu_dataset_map(numbered_rows(), numbered_add, &calls, &type, 1);
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
        cornu_dataset_map(cornu_dataset_batch(numbered_rows(), 4, false), negate, NULL, NULL, 0);
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
        cmocka_unit_test(test_elements_are_aligned),
        cmocka_unit_test(test_map_after_batch_sees_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
