/* Data sets of arrays, the cache, and what constructors refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../expect.h"
#include "numbered.h"

static void test_arrays_deliver_their_rows(void **state)
{
    (void)state;
    CornuDataset *dataset = numbered_rows();
    assert_int_equal(cornu_dataset_count(dataset), NUMBERED_ROWS);
    assert_int_equal(cornu_dataset_components(dataset), 2);
    assert_int_equal(cornu_dataset_batch_size(dataset), 0);
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 0),
                                 cornu_type(CORNU_U8, NUMBERED_WIDTH)));
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 1), cornu_scalar(CORNU_I32)));
    int32_t labels[NUMBERED_ROWS + 1];
    assert_int_equal(numbered_labels(dataset, 0, labels, NUMBERED_ROWS + 1), NUMBERED_ROWS);
    for (int i = 0; i < NUMBERED_ROWS; i++) assert_int_equal(labels[i], i);
}

static void test_arrays_are_checked(void **state)
{
    (void)state;
    uint8_t    data[6] = { 0 };
    CornuArray arrays[] = { cornu_array(data, CORNU_U8, 6), cornu_array(data, CORNU_U8, 5),
                            cornu_array_from(data, cornu_scalar(CORNU_U8)),
                            cornu_array(NULL, CORNU_U8, 6) };
    expect_failure(cornu_dataset_from_arrays(arrays, 2), CORNU_ERR_SHAPE, "5 rows, expected 6");
    expect_failure(cornu_dataset_from_arrays(arrays + 2, 1), CORNU_ERR_SHAPE, "scalar");
    expect_failure(cornu_dataset_from_arrays(arrays + 3, 1), CORNU_ERR_ARGUMENT, "NULL");
    expect_failure(cornu_dataset_from_arrays(arrays, 0), CORNU_ERR_ARGUMENT, "0 components");
    CornuDataset *empty = cornu_dataset_from_arrays(
        (CornuArray[]){ cornu_array(NULL, CORNU_U8, 0, 4) }, 1);
    assert_non_null(empty);
    assert_int_equal(cornu_dataset_count(empty), 0);
    cornu_dataset_free(empty);
}

static void test_cache_runs_earlier_stages_once(void **state)
{
    (void)state;
    int           calls = 0;
    CornuType     type = cornu_scalar(CORNU_F32);
    CornuDataset *cached = cornu_dataset_cache(
        cornu_dataset_map(numbered_rows(), numbered_add, &calls, &type, 1));
    assert_int_equal(calls, NUMBERED_ROWS);
    CornuIterator    *iterator = cornu_iterator_begin(cached, 9);
    const CornuBatch *batch;
    for (int i = 0; i < NUMBERED_ROWS; i++) {
        cornu_iterator_next(iterator, &batch);
        assert_true(*(float *)batch->arrays[0].data == (float)(i + 1000 * i));
    }
    assert_int_equal(calls, NUMBERED_ROWS);
    cornu_iterator_free(iterator);
    cornu_dataset_free(cached);
}

static void test_mistakes_are_refused(void **state)
{
    (void)state;
    expect_failure(cornu_dataset_batch(numbered_rows(), 0, false), CORNU_ERR_ARGUMENT, "size is 0");
    expect_failure(cornu_dataset_batch(cornu_dataset_batch(numbered_rows(), 4, false), 2, false),
                   CORNU_ERR_ARGUMENT, "batches of 4");
    expect_failure(cornu_dataset_batch(numbered_rows(), INT64_MAX, false),
                   CORNU_ERR_SHAPE, "batch");
    expect_failure(cornu_dataset_take(numbered_rows(), -1), CORNU_ERR_ARGUMENT,
                   "take: count is -1");
    expect_failure(cornu_dataset_skip(numbered_rows(), -1), CORNU_ERR_ARGUMENT,
                   "skip: count is -1");
    expect_failure(cornu_dataset_repeat(numbered_rows(), 0), CORNU_ERR_ARGUMENT, "0 times");
    expect_failure(cornu_dataset_prefetch(numbered_rows(), 0), CORNU_ERR_ARGUMENT, "depth is 0");
    expect_failure(cornu_dataset_map(numbered_rows(), NULL, NULL, NULL, 0),
                   CORNU_ERR_ARGUMENT, "NULL");
    expect_failure(cornu_dataset_cache(cornu_dataset_repeat(numbered_rows(), CORNU_NONE)),
                   CORNU_ERR_ARGUMENT, "endlessly");
    expect_failure(cornu_dataset_cache(cornu_dataset_batch(numbered_rows(), 2, false)),
                   CORNU_ERR_ARGUMENT, "cache before batch");
    expect_failure(cornu_dataset_shuffle(cornu_dataset_repeat(numbered_rows(), CORNU_NONE), 0),
                   CORNU_ERR_ARGUMENT, "before repeat");
    expect_failure(cornu_dataset_shuffle(NULL, 0), CORNU_ERR_ARGUMENT, "shuffle");
    /* The first mistake of a chain is reported. */
    expect_failure(
        cornu_dataset_prefetch(
            cornu_dataset_batch(cornu_dataset_take(numbered_rows(), -5), 0, false), 0),
        CORNU_ERR_ARGUMENT, "take: count is -5");
    CornuDataset *dataset = numbered_rows();
    assert_null(cornu_iterator_begin(dataset, -1));
    cornu_error_take();
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ 0, NUMBERED_ROWS + 1 }),
                     CORNU_ERR_ARGUMENT);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void test_a_pending_error_frees_what_is_given(void **state)
{
    (void)state;
    CornuDataset *dataset = numbered_rows();
    assert_null(cornu_dataset_take(NULL, 1));
    assert_null(cornu_dataset_shuffle(dataset, 1)); /* and frees the data set */
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_deliver_their_rows),
        cmocka_unit_test(test_arrays_are_checked),
        cmocka_unit_test(test_cache_runs_earlier_stages_once),
        cmocka_unit_test(test_mistakes_are_refused),
        cmocka_unit_test(test_a_pending_error_frees_what_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
