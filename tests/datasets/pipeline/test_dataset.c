/* Data sets of arrays, the cache, and what constructors refuse. */
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

static void expect_failure(CornuDataset *dataset, CornuStatus status, const char *text)
{
    assert_null(dataset);
    assert_int_equal(cornu_error_take(), status);
    if (!strstr(cornu_error_message(), text))
        fail_msg("\"%s\" does not contain \"%s\"", cornu_error_message(), text);
}

static void test_arrays_deliver_their_rows(void **state)
{
    (void)state;
    CornuDataset *dataset = numbers();
    assert_int_equal(cornu_dataset_count(dataset), ROWS);
    assert_int_equal(cornu_dataset_components(dataset), 2);
    assert_int_equal(cornu_dataset_batch_size(dataset), 0);
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 0), cornu_type(CORNU_U8, WIDTH)));
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 1), cornu_scalar(CORNU_I32)));
    int32_t labels[ROWS + 1];
    assert_int_equal(labels_of(dataset, 0, labels, ROWS + 1), ROWS);
    for (int i = 0; i < ROWS; i++) assert_int_equal(labels[i], i);
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

static void test_cache_runs_earlier_stages_once(void **state)
{
    (void)state;
    int           calls = 0;
    CornuType     type = cornu_scalar(CORNU_F32);
    CornuDataset *cached = cornu_dataset_cache(
        cornu_dataset_map(numbers(), add, &calls, &type, 1));
    assert_int_equal(calls, ROWS);
    CornuIterator    *iterator = cornu_iterator_begin(cached, 9);
    const CornuBatch *batch;
    for (int i = 0; i < ROWS; i++) {
        cornu_iterator_next(iterator, &batch);
        assert_true(*(float *)batch->arrays[0].data == (float)(i + 1000 * i));
    }
    assert_int_equal(calls, ROWS);
    cornu_iterator_free(iterator);
    cornu_dataset_free(cached);
}

static void test_mistakes_are_refused(void **state)
{
    (void)state;
    expect_failure(cornu_dataset_batch(numbers(), 0, false), CORNU_ERR_ARGUMENT, "size is 0");
    expect_failure(cornu_dataset_batch(cornu_dataset_batch(numbers(), 4, false), 2, false),
                   CORNU_ERR_ARGUMENT, "batches of 4");
    expect_failure(cornu_dataset_batch(numbers(), INT64_MAX, false), CORNU_ERR_SHAPE, "batch");
    expect_failure(cornu_dataset_take(numbers(), -1), CORNU_ERR_ARGUMENT, "take: count is -1");
    expect_failure(cornu_dataset_skip(numbers(), -1), CORNU_ERR_ARGUMENT, "skip: count is -1");
    expect_failure(cornu_dataset_repeat(numbers(), 0), CORNU_ERR_ARGUMENT, "0 times");
    expect_failure(cornu_dataset_prefetch(numbers(), 0), CORNU_ERR_ARGUMENT, "depth is 0");
    expect_failure(cornu_dataset_map(numbers(), NULL, NULL, NULL, 0), CORNU_ERR_ARGUMENT, "NULL");
    expect_failure(cornu_dataset_cache(cornu_dataset_repeat(numbers(), CORNU_NONE)),
                   CORNU_ERR_ARGUMENT, "endlessly");
    expect_failure(cornu_dataset_cache(cornu_dataset_batch(numbers(), 2, false)),
                   CORNU_ERR_ARGUMENT, "cache before batch");
    expect_failure(cornu_dataset_shuffle(cornu_dataset_repeat(numbers(), CORNU_NONE), 0),
                   CORNU_ERR_ARGUMENT, "before repeat");
    expect_failure(cornu_dataset_shuffle(NULL, 0), CORNU_ERR_ARGUMENT, "shuffle");
    /* The first mistake of a chain is reported. */
    expect_failure(cornu_dataset_prefetch(cornu_dataset_batch(cornu_dataset_take(numbers(), -5),
                                                              0, false), 0),
                   CORNU_ERR_ARGUMENT, "take: count is -5");
    CornuDataset *dataset = numbers();
    assert_null(cornu_iterator_begin(dataset, -1));
    cornu_error_take();
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ 0, ROWS + 1 }),
                     CORNU_ERR_ARGUMENT);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void test_a_pending_error_frees_what_is_given(void **state)
{
    (void)state;
    CornuDataset *dataset = numbers();
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
