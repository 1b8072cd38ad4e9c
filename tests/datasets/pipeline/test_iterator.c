/* Iterators with a prefetch thread: the same elements, errors in their place, seeking at any time,
 * no allocations. */
#define _DEFAULT_SOURCE    /* usleep */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../device/status_internal.h"
#include "../../allocations.h"
#include "../../skip.h"

enum { ROWS = 1000 };

static CornuDataset *numbers(void)
{
    int32_t *rows = malloc(ROWS * sizeof *rows);
    for (int i = 0; i < ROWS; i++) rows[i] = i;
    return cornu_dataset_own_arrays((CornuArray[]){ cornu_array(rows, CORNU_I32, ROWS) }, 1);
}

/* A checksum of an epoch that depends on the order. */
static uint64_t digest(CornuIterator *iterator)
{
    const CornuBatch *batch;
    uint64_t          sum = 0;
    for (;;) {
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        if (!batch) return sum;
        const int32_t *rows = batch->arrays[0].data;
        for (int64_t b = 0; b < batch->arrays[0].type.shape.extent[0]; b++)
            sum = sum * 1000003 + (uint64_t)rows[b];
        sum += (uint64_t)batch->valid;
    }
}

static CornuDataset *pipeline(int depth)
{
    CornuDataset *dataset =
        cornu_dataset_batch(cornu_dataset_shuffle(numbers(), 42), 128, false);
    return depth ? cornu_dataset_prefetch(dataset, depth) : dataset;
}

static void test_prefetch_changes_nothing(void **state)
{
    (void)state;
    CornuDataset  *plain = pipeline(0), *ahead = pipeline(2);
    CornuIterator *one = cornu_iterator_begin(plain, 0), *two = cornu_iterator_begin(ahead, 0);
    uint64_t       previous = 0;
    for (int64_t epoch = 0; epoch < 50; epoch++) {
        assert_int_equal(cornu_iterator_rewind(one, epoch), CORNU_OK);
        assert_int_equal(cornu_iterator_rewind(two, epoch), CORNU_OK);
        uint64_t sum = digest(one);
        assert_true(sum == digest(two));
        assert_true(sum != previous);
        previous = sum;
    }
    cornu_iterator_free(one);
    cornu_iterator_free(two);
    cornu_dataset_free(plain);
    cornu_dataset_free(ahead);
}

/* ---- Several threads ---- */

static atomic_int at_once, most_at_once;

/* Takes the longer the earlier it is, so that threads overtake each other. */
static CornuStatus slowly(void *context, CornuSample sample, const CornuArray *in,
                          const CornuArray *out)
{
    (void)context;
    const int now = atomic_fetch_add(&at_once, 1) + 1;
    if (now > atomic_load(&most_at_once)) atomic_store(&most_at_once, now);
    usleep((useconds_t)(sample.index * 7919 % 5) * 300);
    *(int32_t *)out[0].data = *(int32_t *)in[0].data + 5 * (int32_t)sample.epoch;
    atomic_fetch_sub(&at_once, 1);
    return CORNU_OK;
}

static CornuDataset *slow_numbers(int threads)
{
    CornuDataset *dataset = cornu_dataset_shuffle(cornu_dataset_take(numbers(), 100), 3);
    dataset = cornu_dataset_map(dataset, slowly, NULL, NULL, 0);
    dataset = cornu_dataset_batch(dataset, 7, false);
    return threads ? cornu_dataset_parallel(dataset, threads) : dataset;
}

static void test_threads_change_nothing(void **state)
{
    static const int counts[] = { 1, 2, 3, 8 };
    (void)state;
    for (int k = 0; k < 4; k++) {
        CornuDataset  *plain = slow_numbers(0), *parallel = slow_numbers(counts[k]);
        CornuIterator *one = cornu_iterator_begin(plain, 0);
        CornuIterator *many = cornu_iterator_begin(parallel, 0);
        atomic_store(&most_at_once, 0);
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            assert_int_equal(cornu_iterator_rewind(one, epoch), CORNU_OK);
            assert_int_equal(cornu_iterator_rewind(many, epoch), CORNU_OK);
            const uint64_t wanted = digest(one);
            assert_true(digest(many) == wanted);
        }
        assert_true(atomic_load(&most_at_once) > 1 || counts[k] == 1);
        cornu_iterator_free(one);
        cornu_iterator_free(many);
        cornu_dataset_free(plain);
        cornu_dataset_free(parallel);
    }
}

static void test_threads_are_moved_at_any_time(void **state)
{
    (void)state;
    CornuDataset     *dataset = cornu_dataset_map(numbers(), slowly, NULL, NULL, 0);
    dataset = cornu_dataset_parallel(dataset, 3);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    for (int i = 0; i < 300; i++) {
        const int64_t from = i * 37 % ROWS;
        assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ i, from }), CORNU_OK);
        for (int64_t k = from; k < from + i % 7 && k < ROWS; k++) {
            assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
            assert_int_equal(*(int32_t *)batch->arrays[0].data, k + 5 * i);
            assert_int_equal(batch->sample.index, k);
        }
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

/* Elements 20 and 23 fail, the first of them later: it is the one that is reported, after all that
 * come before it. */
static CornuStatus fails_twice(void *context, CornuSample sample, const CornuArray *in,
                               const CornuArray *out)
{
    (void)context;
    if (sample.index == 20) usleep(20000);
    if (sample.index == 20 || sample.index == 23)
        return cornu__fail(CORNU_ERR_VALUE, "element %d is bad", (int)sample.index);
    if (sample.index == 18) usleep(30000);
    *(int32_t *)out[0].data = *(int32_t *)in[0].data;
    return CORNU_OK;
}

static void test_the_first_failure_is_told(void **state)
{
    (void)state;
    CornuDataset     *dataset = cornu_dataset_map(numbers(), fails_twice, NULL, NULL, 0);
    dataset = cornu_dataset_parallel(dataset, 8);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
            assert_int_equal(*(int32_t *)batch->arrays[0].data, i);
        }
        for (int again = 0; again < 2; again++) {
            assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_ERR_VALUE);
            assert_null(batch);
            assert_non_null(strstr(cornu_error_message(), "element 20 is bad"));
        }
        assert_int_equal(cornu_iterator_rewind(iterator, 0), CORNU_OK);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    assert_null(cornu_dataset_parallel(numbers(), 0));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_null(cornu_dataset_parallel(numbers(), 65));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

/* Seeks while the thread is working: no element of the old position may be delivered. */
static void test_moves_at_any_time(void **state)
{
    (void)state;
    CornuDataset     *dataset = cornu_dataset_prefetch(numbers(), 3);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    for (int i = 0; i < 2000; i++) {
        int64_t from = i * 37 % ROWS;
        assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ i, from }), CORNU_OK);
        for (int64_t k = from; k < from + i % 5 && k < ROWS; k++) {
            assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
            assert_int_equal(*(int32_t *)batch->arrays[0].data, k);
            assert_int_equal(batch->sample.epoch, i);
        }
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

/* The thread, working ahead, must not overwrite the delivered element. */
static void test_a_delivered_batch_stays(void **state)
{
    (void)state;
    CornuDataset     *dataset = cornu_dataset_batch(numbers(), 10, false);
    dataset = cornu_dataset_prefetch(dataset, 1);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    for (int64_t i = 0; i < ROWS / 10; i++) {
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        for (int wait = 0; wait < 20; wait++)
            for (int64_t b = 0; b < 10; b++)
                assert_int_equal(((volatile int32_t *)batch->arrays[0].data)[b], 10 * i + b);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static CornuStatus fails_at_700(void *context, CornuSample sample, const CornuArray *in,
                                const CornuArray *out)
{
    (void)context, (void)out;
    if (sample.index == 700 && sample.epoch == 1)
        return cornu__fail(CORNU_ERR_VALUE, "row %d is not wanted", *(int32_t *)in[0].data);
    return CORNU_OK;
}

static void test_errors_come_out_in_their_place(void **state)
{
    (void)state;
    for (int depth = 0; depth < 3; depth++) {
        CornuDataset *dataset = cornu_dataset_map(numbers(), fails_at_700, NULL, NULL, 0);
        dataset = cornu_dataset_batch(dataset, 100, false);
        if (depth) dataset = cornu_dataset_prefetch(dataset, depth);
        CornuIterator    *iterator = cornu_iterator_begin(dataset, 1);
        const CornuBatch *batch;
        for (int i = 0; i < 7; i++) {
            assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
            assert_non_null(batch);
        }
        for (int again = 0; again < 2; again++) {
            cornu__fail(CORNU_ERR_FILE, "something else");
            assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_ERR_VALUE);
            assert_null(batch);
            assert_string_equal(cornu_error_message(),
                                "map: element 700 of epoch 1: row 700 is not wanted");
            assert_false(cornu_error_pending());
        }
        assert_int_equal(cornu_iterator_rewind(iterator, 2), CORNU_OK);
        digest(iterator);
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
    }
}

static void test_epochs_allocate_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDataset  *dataset = pipeline(2);
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    digest(iterator);
    int64_t before = allocations();
    for (int64_t epoch = 1; epoch < 20; epoch++) {
        cornu_iterator_rewind(iterator, epoch);
        digest(iterator);
    }
    assert_int_equal(allocations(), before);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

/* A slow map and a fast one, by several threads, too. */
static CornuStatus wait_a_while(void *context, CornuSample sample, const CornuArray *in,
                                const CornuArray *out)
{
    (void)sample;
    if (context) usleep(2000);
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    return CORNU_OK;
}

static void test_stages_are_timed(void **state)
{
    bool waits = true;
    (void)state;
    for (int threads = 0; threads <= 2; threads++) {
        CornuDataset *dataset = cornu_dataset_range(0, 64, 1);
        dataset = cornu_dataset_map(dataset, wait_a_while, &waits, NULL, 0);
        dataset = cornu_dataset_map(dataset, wait_a_while, NULL, NULL, 0);
        dataset = cornu_dataset_batch(dataset, 4, false);
        if (threads) dataset = cornu_dataset_parallel(dataset, threads);
        CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
        const CornuBatch *batch = NULL;
        CornuStageTime    times[5] = { { NULL, 0.0 } };
        assert_non_null(iterator);
        if (!threads) assert_int_equal(cornu_iterator_stage_times(iterator, times, 5), 0);
        do assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        while (batch);
        assert_int_equal(cornu_iterator_stage_times(iterator, times, 3), threads ? 5 : 4);
        assert_string_equal(times[0].name, "range");
        assert_string_equal(times[1].name, "map");
        assert_true(times[1].seconds > 0.0075);      /* 4 rows of 2 ms */
        assert_true(times[2].seconds < times[1].seconds && times[0].seconds < times[1].seconds);
        assert_null(times[3].name);
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefetch_changes_nothing),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_threads_are_moved_at_any_time),
        cmocka_unit_test(test_the_first_failure_is_told),
        cmocka_unit_test(test_moves_at_any_time),
        cmocka_unit_test(test_a_delivered_batch_stays),
        cmocka_unit_test(test_errors_come_out_in_their_place),
        cmocka_unit_test(test_epochs_allocate_nothing),
        cmocka_unit_test(test_stages_are_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
