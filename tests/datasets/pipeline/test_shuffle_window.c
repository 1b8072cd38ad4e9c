/* Shuffling within a window: which orders, the same on every way to an element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/status_internal.h"
#include "numbered.h"

static CornuStatus yield(void *count, CornuSample sample, const CornuArray *to, bool *end)
{
    *end = sample.index == *(const int *)count;
    for (int j = 0; j < NUMBERED_WIDTH && !*end; j++)
        ((uint8_t *)to[0].data)[j] = (uint8_t)(10 * sample.index + j);
    if (!*end) *(int32_t *)to[1].data = (int32_t)sample.index;
    return CORNU_OK;
}

/* The rows of numbered_rows, in order and of a number that is not known. */
static CornuDataset *yielded(const int *count)
{
    const CornuType types[] = { cornu_type(CORNU_U8, NUMBERED_WIDTH), cornu_scalar(CORNU_I32) };
    return cornu_dataset_generator(yield, types, 2, .context = (void *)(uintptr_t)count);
}

static void test_orders(void **state)
{
    static const int rows = NUMBERED_ROWS;
    static const int64_t sizes[] = { 1, 2, 5, 22, 23, 100 };
    (void)state;
    for (int k = 0; k < 6; k++) {
        int32_t known[NUMBERED_ROWS + 1], unknown[NUMBERED_ROWS + 1], again[NUMBERED_ROWS + 1];
        bool    seen[NUMBERED_ROWS] = { false };
        assert_int_equal(numbered_labels(cornu_dataset_shuffle_window(numbered_rows(), sizes[k], 7),
                                         3, known, rows + 1), rows);
        assert_int_equal(numbered_labels(cornu_dataset_shuffle_window(yielded(&rows), sizes[k], 7),
                                         3, unknown, rows + 1), rows);
        CornuDataset *parallel = cornu_dataset_shuffle_window(yielded(&rows), sizes[k], 7);
        parallel = cornu_dataset_parallel(cornu_dataset_batch(parallel, 4, false), 3);
        assert_int_equal(numbered_labels(parallel, 3, again, rows + 1), rows);
        for (int i = 0; i < rows; i++) {
            assert_int_equal(known[i], unknown[i]);
            assert_int_equal(known[i], again[i]);
            assert_true(known[i] < i + sizes[k] && !seen[known[i]]);   /* of the window */
            seen[known[i]] = true;
        }
        if (sizes[k] == 1) continue;
        assert_int_equal(numbered_labels(cornu_dataset_shuffle_window(numbered_rows(), sizes[k], 7),
                                         4, again, rows + 1), rows);
        assert_memory_not_equal(known, again, sizeof(int32_t) * NUMBERED_ROWS);
        assert_int_equal(numbered_labels(cornu_dataset_shuffle_window(numbered_rows(), sizes[k], 8),
                                         3, again, rows + 1), rows);
        assert_memory_not_equal(known, again, sizeof(int32_t) * NUMBERED_ROWS);
    }
}

/* Each of six elements is first about as often as any other. */
static void test_the_whole_is_uniform(void **state)
{
    enum { ELEMENTS = 6, EPOCHS = 6000 };
    static const int rows = ELEMENTS;
    int              first[ELEMENTS] = { 0 };
    (void)state;
    CornuDataset     *dataset = cornu_dataset_shuffle_window(yielded(&rows), ELEMENTS, 1);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        assert_int_equal(cornu_iterator_rewind(iterator, epoch), CORNU_OK);
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        first[*(int32_t *)batch->arrays[1].data]++;
    }
    for (int i = 0; i < ELEMENTS; i++)   /* five standard deviations */
        assert_in_range(first[i], 1000 - 145, 1000 + 145);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void test_any_element_at_any_time(void **state)
{
    static const int rows = NUMBERED_ROWS;
    int32_t          order[NUMBERED_ROWS + 1];
    (void)state;
    CornuDataset *dataset = cornu_dataset_shuffle_window(yielded(&rows), 6, 2);
    numbered_labels(cornu_dataset_retain(dataset), 1, order, rows + 1);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    for (int i = 0; i < 200; i++) {
        const int64_t at = i * 7 % NUMBERED_ROWS;
        assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ 1, at }), CORNU_OK);
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        assert_int_equal(*(int32_t *)batch->arrays[1].data, order[at]);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_null(cornu_dataset_shuffle_window(numbered_rows(), 0, 0));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_null(cornu_dataset_shuffle_window(NULL, 5, 0));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_the_whole_is_uniform),
        cmocka_unit_test(test_any_element_at_any_time),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
