/* Iterators for some of a device's shards: they fetch these shards' rows and no others, and all
 * else is as for all shards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/dataset_internal.h"
#include "../../../device/device_internal.h"
#include "../../expect.h"

enum { SHARDS = 8, MOST = 100, WIDTH = 3, EPOCHS = 2 };

/* How often each element of the source was fetched. */
static atomic_int fetched[MOST];

static void forget(void)
{
    for (int i = 0; i < MOST; i++) atomic_store(&fetched[i], 0);
}

/* (epoch, 1000 + index, -index) and the index. */
static CornuStatus record(void *context, CornuSample sample, const CornuArray *in,
                          const CornuArray *out)
{
    (void)context;
    const int64_t index = *(const int64_t *)in[0].data;
    const float   x[WIDTH] = { (float)sample.epoch, (float)(1000 + index), (float)-index };
    assert_in_range(index, 0, MOST - 1);
    atomic_fetch_add(&fetched[index], 1);
    memcpy(out[0].data, x, sizeof x);
    *(int32_t *)out[1].data = (int32_t)index;
    return CORNU_OK;
}

/* Elements of random access that are counted as they are fetched. */
static CornuDataset *counted(int64_t rows)
{
    const CornuType types[] = { cornu_type(CORNU_F32, WIDTH), cornu_scalar(CORNU_I32) };
    return cornu_dataset_map(cornu_dataset_range(0, rows, 1), record, NULL, types, 2);
}

static CornuStatus yield(void *last, CornuSample sample, const CornuArray *to, bool *end)
{
    *end = sample.index == *(const int64_t *)last;
    *(int64_t *)to[0].data = sample.index;
    return CORNU_OK;
}

/* Elements that come one after the other, also counted. */
static CornuDataset *sequential(int64_t *rows)
{
    const CornuType number = cornu_scalar(CORNU_I64);
    const CornuType types[] = { cornu_type(CORNU_F32, WIDTH), cornu_scalar(CORNU_I32) };
    return cornu_dataset_map(cornu_dataset_generator(yield, &number, 1, .context = rows), record,
                             NULL, types, 2);
}

/* Whether an own shard reads row b: by the definition of what a step feeds. */
static bool is_read(CornuShare share, int64_t batch, int64_t valid, int64_t b)
{
    const int64_t        rows = (batch + share.shards - 1) / share.shards;
    const CornuShardRows split = cornu__shard_rows(share.shards, rows, valid);
    for (int s = share.first; s < share.first + share.count; s++)
        for (int64_t place = 0; place < rows; place++)
            if (cornu__shard_row(&split, s, place) == b) return true;
    return false;
}

/* Which rows a pipeline fetches: those of the own shards, or all. */
typedef enum { OWN, ALL } Fetches;

/* Compares two epochs with those of all shards: own rows must be equal, rows from `valid` on zero,
 * and each element fetched as often as own rows hold it. A label is the element's number in the
 * source. */
static void expect_share(const char *name, CornuDataset *dataset, CornuShare share, Fetches fetches)
{
    CornuIterator *whole = cornu_iterator_begin(dataset, 0);
    const int64_t  size = cornu_dataset_batch_size(dataset);
    assert_non_null(whole);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        enum { BATCHES = 32 };
        static float   x[BATCHES][MOST * WIDTH];
        static int32_t y[BATCHES][MOST];
        int64_t        valid[BATCHES], batches = 0;
        int            wanted[MOST] = { 0 };
        const CornuBatch *batch;
        expect_ok(cornu_iterator_rewind(whole, epoch));
        for (; cornu_iterator_next(whole, &batch) == CORNU_OK && batch; batches++) {
            assert_true(batches < BATCHES);
            memcpy(x[batches], batch->arrays[0].data, cornu_type_bytes(batch->arrays[0].type));
            memcpy(y[batches], batch->arrays[1].data, cornu_type_bytes(batch->arrays[1].type));
            valid[batches] = batch->valid;
            for (int64_t b = 0; b < batch->valid; b++)
                wanted[y[batches][b]] += fetches == ALL || is_read(share, size, batch->valid, b);
        }
        forget();
        CornuIterator *own = cornu__iterator_begin_share(dataset, epoch, share);
        assert_non_null(own);
        for (int64_t i = 0; i < batches; i++) {
            expect_ok(cornu_iterator_next(own, &batch));
            assert_non_null(batch);
            assert_int_equal(batch->sample.epoch, epoch);
            assert_int_equal(batch->sample.index, i);
            assert_int_equal(batch->valid, valid[i]);
            assert_int_equal(batch->arrays[0].type.shape.extent[0], size);
            const float   *own_x = batch->arrays[0].data;
            const int32_t *own_y = batch->arrays[1].data;
            for (int64_t b = 0; b < size; b++) {
                if (b < valid[i] && fetches == OWN && !is_read(share, size, valid[i], b)) continue;
                if (own_y[b] != y[i][b] ||
                    memcmp(own_x + b * WIDTH, x[i] + b * WIDTH, WIDTH * sizeof(float)))
                    fail_msg("%s: shards %d to %d of %d: row %d of batch %d is other", name,
                             share.first, share.first + share.count, share.shards, (int)b, (int)i);
            }
        }
        expect_ok(cornu_iterator_next(own, &batch));
        assert_null(batch);
        cornu_iterator_free(own);
        for (int i = 0; i < MOST; i++)
            if (atomic_load(&fetched[i]) != wanted[i])
                fail_msg("%s: shards %d to %d of %d: element %d is fetched %d times, expected %d",
                         name, share.first, share.first + share.count, share.shards, i,
                         atomic_load(&fetched[i]), wanted[i]);
    }
    cornu_iterator_free(whole);
    cornu_dataset_free(dataset);
}

/* Shares of every size and place: of eight shards, and of three. */
static const CornuShare shares[] = {
    { SHARDS, 0, 1 }, { SHARDS, 1, 1 }, { SHARDS, 7, 1 }, { SHARDS, 0, 3 }, { SHARDS, 3, 3 },
    { SHARDS, 6, 2 }, { SHARDS, 2, 5 }, { SHARDS, 1, 7 }, { SHARDS, 0, 8 }, { 3, 0, 1 },
    { 3, 1, 2 },      { 1, 0, 1 },
};
enum { SHARES = sizeof shares / sizeof *shares };

/* Even and uneven splits; last batches that are full, ragged, and with fewer rows than shards. */
static void own_rows_alone_are_fetched(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 8, 11, 16, 19, 40 };
    static const int64_t extra[] = { 0, 1, 3, 7, 9 };
    for (int s = 0; s < SHARES; s++)
        for (int i = 0; i < 5; i++)
            for (int k = 0; k < 5; k++) {
                const int64_t rows = 2 * sizes[i] + extra[k] % sizes[i];
                expect_share("batch", cornu_dataset_batch(counted(rows), sizes[i], false),
                             shares[s], OWN);
            }
}

static CornuStatus copy(void *context, CornuSample sample, const CornuArray *in,
                        const CornuArray *out)
{
    (void)context, (void)sample;
    for (int c = 0; c < 2; c++) memcpy(out[c].data, in[c].data, cornu_type_bytes(in[c].type));
    return CORNU_OK;
}

/* A pipeline over counted elements. */
typedef struct {
    const char   *name;
    CornuDataset *(*make)(void);
    Fetches       fetches;
} Pipeline;

static CornuDataset *shuffled(void)
{
    return cornu_dataset_batch(cornu_dataset_shuffle(counted(43), 5), 16, false);
}
static CornuDataset *whole_batches(void) { return cornu_dataset_batch(counted(43), 16, true); }
static CornuDataset *batches_shuffled(void)
{
    return cornu_dataset_shuffle(cornu_dataset_batch(counted(43), 16, false), 6);
}
static CornuDataset *map_before(void)
{
    return cornu_dataset_batch(cornu_dataset_map(counted(43), copy, NULL, NULL, 0), 16, false);
}
static CornuDataset *moved_before(void)
{
    CornuDataset *dataset = cornu_dataset_take(cornu_dataset_skip(counted(60), 7), 30);
    return cornu_dataset_batch(cornu_dataset_repeat(dataset, 2), 16, false);
}
static CornuDataset *endless(void)
{
    CornuDataset *dataset = cornu_dataset_repeat(cornu_dataset_shuffle(counted(43), 5), CORNU_NONE);
    return cornu_dataset_take(cornu_dataset_batch(dataset, 16, false), 5);
}
static CornuDataset *moved_after(void)
{
    CornuDataset *dataset = cornu_dataset_skip(shuffled(), 1);
    return cornu_dataset_repeat(cornu_dataset_take(dataset, 2), 3);
}
static CornuDataset *prefetched(void) { return cornu_dataset_prefetch(shuffled(), 2); }
static CornuDataset *prefetched_before(void)
{
    return cornu_dataset_batch(cornu_dataset_prefetch(counted(43), 3), 16, false);
}
static CornuDataset *map_after(void)
{
    return cornu_dataset_prefetch(cornu_dataset_map(shuffled(), copy, NULL, NULL, 0), 2);
}
static CornuDataset *map_of_rows(void)
{
    CornuDataset *dataset = cornu_dataset_map(shuffled(), copy, NULL, NULL, 0);
    dataset->by_row = true;
    return cornu_dataset_prefetch(dataset, 2);
}

static void the_share_reaches_the_batches(void **state)
{
    (void)state;
    static const Pipeline pipelines[] = {
        { "shuffle, batch", shuffled, OWN },
        { "batch without remainder", whole_batches, OWN },
        { "batch, shuffle", batches_shuffled, OWN },
        { "map, batch", map_before, OWN },
        { "skip, take, repeat, batch", moved_before, OWN },
        { "repeat, batch, take", endless, OWN },
        { "batch, skip, take, repeat", moved_after, OWN },
        { "batch, prefetch", prefetched, OWN },
        { "prefetch, batch", prefetched_before, OWN },
        { "batch, map of rows", map_of_rows, OWN },
        { "batch, map", map_after, ALL },   /* it may use any row */
    };
    for (size_t p = 0; p < sizeof pipelines / sizeof *pipelines; p++)
        for (int s = 0; s < SHARES; s++)
            expect_share(pipelines[p].name, pipelines[p].make(), shares[s], pipelines[p].fetches);
}

static void elements_in_order_are_all_read(void **state)
{
    (void)state;
    int64_t rows = 43;
    for (int s = 0; s < SHARES; s++)
        expect_share("generator", cornu_dataset_batch(sequential(&rows), 16, false), shares[s],
                     ALL);
}

/* A cache holds all elements; reading a share of it computes none. */
static void a_cache_is_whole(void **state)
{
    (void)state;
    const CornuShare  share = { SHARDS, 3, 2 };
    const CornuBatch *batch;
    forget();
    CornuDataset *dataset = cornu_dataset_cache(counted(43));
    for (int i = 0; i < MOST; i++) assert_int_equal(atomic_exchange(&fetched[i], 0), i < 43);
    dataset = cornu_dataset_batch(dataset, 16, false);
    CornuIterator *iterator = cornu__iterator_begin_share(dataset, 0, share);
    for (int64_t i = 0; i < 3; i++) {
        expect_ok(cornu_iterator_next(iterator, &batch));
        for (int64_t b = 0; b < batch->valid; b++)
            if (is_read(share, 16, batch->valid, b))
                assert_int_equal(((const int32_t *)batch->arrays[1].data)[b], 16 * i + b);
    }
    for (int i = 0; i < MOST; i++) assert_int_equal(atomic_load(&fetched[i]), 0);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

/* A resumed iterator gives what one that read on gives. */
static void an_iterator_can_seek(void **state)
{
    (void)state;
    const CornuShare share = { SHARDS, 3, 3 };
    CornuDataset    *dataset = prefetched();
    CornuIterator   *whole = cornu_iterator_begin(dataset, 0);
    CornuIterator   *own = cornu__iterator_begin_share(dataset, 0, share);
    for (int64_t i = 0; i < 200; i++) {
        const CornuSample at = { i / 3, i * 2 % 3 };
        const CornuBatch *a, *b;
        expect_ok(cornu_iterator_seek(whole, at));
        expect_ok(cornu_iterator_seek(own, at));
        expect_ok(cornu_iterator_next(whole, &a));
        expect_ok(cornu_iterator_next(own, &b));
        assert_int_equal(b->valid, a->valid);
        for (int64_t r = 0; r < a->valid; r++)
            if (is_read(share, 16, a->valid, r))
                assert_int_equal(((const int32_t *)b->arrays[1].data)[r],
                                 ((const int32_t *)a->arrays[1].data)[r]);
    }
    cornu_iterator_free(whole);
    cornu_iterator_free(own);
    cornu_dataset_free(dataset);
}

/* From the next element on, whatever was made ahead. */
static void the_share_can_change(void **state)
{
    (void)state;
    const CornuShare  share = { SHARDS, 7, 1 }, all = { 0 };
    CornuDataset     *dataset = cornu_dataset_prefetch(
        cornu_dataset_batch(counted(96), 16, false), 2);
    CornuIterator    *iterator = cornu__iterator_begin_share(dataset, 0, share);
    for (int64_t i = 0; i < 6; i++) {
        const CornuBatch *batch;
        const CornuShare  was = cornu__iterator_set_share(iterator, i % 2 ? all : share);
        assert_int_equal(was.count, i % 2 || i == 0 ? 1 : 0);
        expect_ok(cornu_iterator_next(iterator, &batch));
        assert_int_equal(batch->sample.index, i);
        const int32_t *y = batch->arrays[1].data;
        for (int64_t b = i % 2 ? 0 : 14; b < 16; b++) assert_int_equal(y[b], 16 * i + b);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

/* The public way: of a device, the shards that this process owns. */
static void a_device_has_its_share(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu", .shards = SHARDS);
    assert_non_null(device);
    for (int own = 1; own <= SHARDS; own += SHARDS - 1) {
        const CornuBatch *batch;
        device->own = (CornuRange){ own == 1 ? 5 : 0, own };
        CornuDataset  *dataset = cornu_dataset_batch(counted(16), 16, false);
        CornuIterator *iterator = cornu_iterator_begin_for(dataset, 0, device);
        forget();
        expect_ok(cornu_iterator_next(iterator, &batch));
        for (int i = 0; i < 16; i++)
            assert_int_equal(atomic_load(&fetched[i]), own == SHARDS || i / 2 == 5);
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
    }
    cornu_device_close(device);
}

/* Each element at most once, as that of epoch 0; in the first epoch the own rows alone. */
static void a_cache_on_demand_is_filled_by_own_rows(void **state)
{
    (void)state;
    const CornuShare share = { .shards = SHARDS, .first = 2, .count = 3 };
    const int        rows = 43, batch_rows = 16;
    forget();
    CornuDataset *dataset = cornu_dataset_prefetch(cornu_dataset_batch(cornu_dataset_shuffle(
        cornu__dataset_cache_on_demand(counted(rows)), 5), batch_rows, false), 2);
    CornuIterator *iterator = cornu__iterator_begin_share(dataset, 0, share);
    assert_non_null(iterator);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        const CornuBatch *batch = NULL;
        int               own = 0, cached = 0;
        expect_ok(cornu_iterator_rewind(iterator, epoch));
        for (;;) {
            expect_ok(cornu_iterator_next(iterator, &batch));
            if (!batch) break;
            for (int64_t b = 0; b < batch_rows; b++) {
                if (!is_read(share, batch_rows, batch->valid, b)) continue;
                const float  *x = (const float *)batch->arrays[0].data + b * WIDTH;
                const int32_t index = ((const int32_t *)batch->arrays[1].data)[b];
                assert_true(x[0] == 0.0f && x[1] == (float)(1000 + index) && x[2] == (float)-index);
                own++;
            }
        }
        for (int i = 0; i < rows; i++) {
            assert_in_range(atomic_load(&fetched[i]), 0, 1);
            cached += atomic_load(&fetched[i]);
        }
        if (epoch == 0) assert_int_equal(cached, own);
        assert_true(cached < rows);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_rows_alone_are_fetched),
        cmocka_unit_test(the_share_reaches_the_batches),
        cmocka_unit_test(elements_in_order_are_all_read),
        cmocka_unit_test(a_cache_is_whole),
        cmocka_unit_test(a_cache_on_demand_is_filled_by_own_rows),
        cmocka_unit_test(an_iterator_can_seek),
        cmocka_unit_test(the_share_can_change),
        cmocka_unit_test(a_device_has_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
