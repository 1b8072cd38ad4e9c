/* What a process reads of a batch, and feeds: the rows of its own shards. */
#define _DEFAULT_SOURCE   /* MAP_ANONYMOUS */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "../../../device/device_internal.h"
#include "../../../nn/saving/settings_internal.h"
#include "../golden.h"

enum { SHARDS = 8, BATCH = 19, ROWS = 2 * BATCH + 5, CLASSES = 3, PAGE = 4096, WIDTH = PAGE / 4 };

/* ---- Reading ---- */

static atomic_int fetched[ROWS];

static CornuStatus record(void *context, CornuSample sample, const CornuArray *in,
                          const CornuArray *out)
{
    const int64_t index = *(const int64_t *)in[0].data;
    (void)context, (void)sample;
    atomic_fetch_add(&fetched[index], 1);
    for (int i = 0; i < 2; i++) ((float *)out[0].data)[i] = (float)(index + i);
    *(int32_t *)out[1].data = (int32_t)(index % CLASSES);
    return CORNU_OK;
}

static CornuDataset *counted(void)
{
    const CornuType types[] = { cornu_type(CORNU_F32, 2), cornu_scalar(CORNU_I32) };
    for (int i = 0; i < ROWS; i++) atomic_store(&fetched[i], 0);
    return cornu_dataset_map(cornu_dataset_range(0, ROWS, 1), record, NULL, types, 2);
}

static CornuModel *classifier(CornuDevice *device, int64_t width)
{
    CornuModel *model = cornu_sequential(.input_shape = { width });
    cornu_set_random_seed(3);
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_sgd(),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    return model;
}

/* A device of which this process owns a part of the shards, to load data for. */
static CornuDevice *part_of_device(int first, int count)
{
    CornuDevice *device = cornu_device_open("cpu", .shards = SHARDS);
    assert_non_null(device);
    device->own = (CornuRange){ first, count };
    return device;
}

/* The rows of a batch that shard `first` to the last of `count` read, or all: bit b. */
static uint32_t rows_read(int64_t valid, int first, int count)
{
    const CornuShardRows split = cornu__shard_rows(SHARDS, (BATCH + SHARDS - 1) / SHARDS, valid);
    uint32_t             rows = 0;
    for (int s = first; s < first + count; s++)
        for (int64_t place = 0; place < split.rows; place++)
            rows |= UINT32_C(1) << cornu__shard_row(&split, s, place);
    return rows;
}

/* Loaders, with class weights or without, of data that come in batches or not. */
static void loaders_fetch_own_rows(void **state)
{
    (void)state;
    static float  weights[CLASSES] = { 1.0f, 2.0f, 3.0f };
    CornuDevice  *device = part_of_device(3, 4);
    CornuDevice  *usual = cornu_device_open("cpu", .shards = SHARDS);
    CornuModel   *model = classifier(usual, 2);
    for (int kind = 0; kind < 4; kind++) {
        const bool        weighed = kind % 2, batched = kind / 2;
        CornuClassWeights classes;
        CornuDataLoader   loader;
        CornuDataset     *dataset = counted();
        const CornuBatch *batch;
        if (batched) dataset = cornu_dataset_batch(dataset, BATCH, false);
        if (weighed)
            dataset = cornu__add_class_weights(
                &classes, model, "test", cornu_array(weights, CORNU_F32, CLASSES), dataset);
        expect_ok(cornu__data_loader_open(&loader, &(CornuDataLoaderConfig){
            .dataset = dataset, .device = device, .batch_size = batched ? 0 : BATCH,
            .min_batch_rows = SHARDS, .who = "test", .batch_name = "b", .steps_name = "s" }));
        expect_ok(cornu__data_loader_begin_epoch(&loader));
        for (int64_t i = 0; i < 3; i++) {
            expect_ok(cornu__data_loader_next(&loader, &batch));
            assert_int_equal(batch->valid, i < 2 ? BATCH : 5);
            const uint32_t rows = rows_read(batch->valid, 3, 4);
            for (int64_t b = 0; b < batch->valid; b++) {
                const int64_t index = i * BATCH + b;
                if (!(rows >> b & 1)) continue;
                assert_int_equal(((const int32_t *)batch->arrays[1].data)[b], index % CLASSES);
                if (weighed)
                    assert_true(((const float *)batch->arrays[2].data)[b] ==
                                weights[index % CLASSES]);
            }
        }
        cornu__data_loader_close(&loader);
        for (int64_t i = 0; i < ROWS; i++)
            assert_int_equal(atomic_load(&fetched[i]),
                             rows_read(i < 2 * BATCH ? BATCH : 5, 3, 4) >> i % BATCH & 1);
    }
    cornu_model_free(model);
    cornu_device_close(usual);
    cornu_device_close(device);
}

/* A backup made by one process must fit several: its checksum is that of whole batches. */
static void settings_do_not_depend_on_the_share(void **state)
{
    (void)state;
    CornuDevice *usual = cornu_device_open("cpu", .shards = SHARDS);
    CornuModel  *model = classifier(usual, 2);
    char        *texts[3];
    for (int i = 0; i < 3; i++) {
        CornuDevice          *device = part_of_device(i, i ? 2 : SHARDS);
        const CornuDataLoader none = { 0 };
        CornuDataLoader       loader;
        expect_ok(cornu__data_loader_open(&loader, &(CornuDataLoaderConfig){
            .dataset = counted(), .device = device, .batch_size = BATCH, .shuffle = true,
            .min_batch_rows = SHARDS, .who = "test", .batch_name = "b", .steps_name = "s" }));
        model->training = &(CornuTraining){ .loader = &loader, .validation = &none };
        texts[i] = cornu__settings_text(model);
        model->training = NULL;
        assert_non_null(texts[i]);
        assert_string_equal(texts[i], texts[0]);
        const CornuShare share = cornu__iterator_set_share(loader.iterator, (CornuShare){ 0 });
        assert_int_equal(share.first, i);   /* training goes on with it */
        assert_int_equal(share.count, i ? 2 : SHARDS);
        cornu__data_loader_close(&loader);
        cornu_device_close(device);
    }
    for (int i = 0; i < 3; i++) free(texts[i]);
    cornu_model_free(model);
    cornu_device_close(usual);
}

/* ---- Feeding ---- */

/* One page for each row of x; and labels as floats, which must be whole numbers. */
static float *pages;
static float  labels[2 * BATCH];

static void fill(int64_t rows)
{
    for (int64_t i = 0; i < rows * WIDTH; i++) pages[i] = (float)((i * 37 + i / 11) % 101) / 50 - 1;
    for (int64_t i = 0; i < rows; i++) labels[i] = (float)(i % CLASSES);
}

/* Feeds a batch in the parts of three processes, one after the other. Reading a row that no own
 * shard has would trap. Predictions must be those of the batch fed at once. */
static void feed_in_parts(CornuModel *model, CornuStepMode mode, int64_t batch, int64_t valid)
{
    static const int first[] = { 0, 3, 4, SHARDS };
    const CornuArray x = cornu_array(pages, CORNU_F32, batch, WIDTH);
    const CornuArray y = cornu_array(labels, CORNU_F32, batch);
    const CornuArrays arrays = { .x = &x, .y = &y };
    float        whole[2 * BATCH][CLASSES], parts[2 * BATCH][CLASSES];
    double       losses[2];
    CornuArray   to = cornu_array(whole, CORNU_F32, batch, CLASSES);
    CornuStep   *step;
    fill(batch);
    expect_ok(cornu__step(model, mode, &arrays, &step));
    assert_int_equal(step->own.shards, SHARDS);
    assert_int_equal(step->own.count, SHARDS);
    expect_ok(cornu_model_reset_metrics(model));
    expect_ok(cornu__step_feed(step, &arrays, valid));
    expect_ok(cornu__step_run(step, &to));
    expect_ok(cornu__metrics_read(model, &losses[0]));
    expect_ok(cornu__step_feed(step, &arrays, 0));   /* other values */
    const CornuShare all = step->own;
    for (int p = 0; p < 3; p++) {
        step->own = (CornuShare){ SHARDS, first[p], first[p + 1] - first[p] };
        const CornuOwnRows own = cornu__own_rows(step->own, valid);
        fill(batch);
        for (int64_t b = 0; b < batch; b++) {
            if ((b >= own.first && b < own.first + own.count) || (b == 0 && own.row_0)) continue;
            labels[b] = NAN;
            assert_int_equal(mprotect(pages + b * WIDTH, PAGE, PROT_NONE), 0);
        }
        expect_ok(cornu__step_feed(step, &arrays, valid));
        assert_int_equal(mprotect(pages, (size_t)batch * PAGE, PROT_READ | PROT_WRITE), 0);
        if (mode == CORNU_STEP_PREDICT || own.count == 0) continue;
        labels[own.first] = NAN;   /* an own row */
        expect_error(cornu__step_feed(step, &arrays, valid), CORNU_ERR_VALUE, "label nan in row");
    }
    step->own = all;
    to.data = parts;
    expect_ok(cornu_model_reset_metrics(model));
    expect_ok(cornu__step_run(step, &to));
    expect_ok(cornu__metrics_read(model, &losses[1]));
    assert_memory_equal(parts, whole, (size_t)valid * sizeof *whole);
    assert_true(losses[0] == losses[1]);
}

static void own_rows_are_fed(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu", .shards = SHARDS);
    CornuModel  *model = classifier(device, WIDTH);
    pages = mmap(NULL, 2 * BATCH * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                 0);
    assert_true(pages != MAP_FAILED);
    for (int mode = CORNU_STEP_TEST_PREDICT; mode <= CORNU_STEP_PREDICT; mode++) {
        static const int64_t valids[] = { 1, 3, 5, 8, 12, 16, 19 };
        for (size_t i = 0; i < sizeof valids / sizeof *valids; i++)
            feed_in_parts(model, (CornuStepMode)mode, BATCH, valids[i]);
        feed_in_parts(model, (CornuStepMode)mode, 16, 16);   /* full shards */
        feed_in_parts(model, (CornuStepMode)mode, 16, 4);
    }
    munmap(pages, 2 * BATCH * PAGE);
    cornu_model_free(model);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaders_fetch_own_rows),
        cmocka_unit_test(settings_do_not_depend_on_the_share),
        cmocka_unit_test(own_rows_are_fed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
