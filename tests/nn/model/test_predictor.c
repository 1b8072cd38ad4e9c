/* Predictors: many callers of one model get the bits of one; what a predictor refuses. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "../golden.h"

enum { ROWS = 6000, FEATURES = 12, CLASSES = 5, CALLERS = 8, MOST = 40 };

static float x_data[ROWS * FEATURES], wanted[ROWS * CLASSES], got[ROWS * CLASSES];

static CornuArray rows_of(float *data, int64_t first, int64_t count, int64_t width)
{
    return cornu_array(data + first * width, CORNU_F32, count, width);
}

static CornuModel *make_model(void)
{
    CornuModel *model = cornu_sequential(.name = "shared", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(33, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    if (cornu_error_pending()) fail_msg("%s", cornu_error_message());
    return model;
}

static CornuModel *compiled_on(CornuDevice *device)
{
    CornuModel *model = make_model();
    expect_ok(cornu_compile(model, .device = device, .loss = CORNU_MEAN_SQUARED_ERROR));
    return model;
}

static CornuPredictor *expect_predictor(CornuPredictor *predictor)
{
    if (!predictor) fail_msg("%s", cornu_error_message());
    return predictor;
}

static void predict_alone(CornuModel *model, int64_t rows, int64_t batch)
{
    expect_ok(cornu_predict(model, .x = rows_of(x_data, 0, rows, FEATURES), .batch_size = batch,
                            .to = rows_of(wanted, 0, rows, CLASSES), .verbose = CORNU_SILENT));
}

static CornuStatus predict_rows(CornuPredictor *predictor, int64_t first, int64_t count)
{
    const CornuArray x = rows_of(x_data, first, count, FEATURES);
    const CornuArray y = rows_of(got, first, count, CLASSES);
    return cornu_predictor_predict(predictor, &x, &y);
}

static void expect_rows(int64_t rows)
{
    assert_memory_equal(got, wanted, (size_t)rows * CLASSES * sizeof *got);
    memset(got, 0, sizeof got);
}

/* ---- Many callers ---- */

/* Each takes every CALLERS-th batch of 32, of the same rows as one caller's. */
typedef struct {
    CornuPredictor *predictor;
    int             number;
    CornuStatus     status;
} Thread;

static void *predict_share(void *context)
{
    enum { BATCH = 32 };
    Thread *thread = context;
    for (int64_t i = thread->number; i * BATCH < ROWS && !thread->status; i += CALLERS) {
        const int64_t left = ROWS - i * BATCH;
        thread->status = predict_rows(thread->predictor, i * BATCH, left < BATCH ? left : BATCH);
    }
    return NULL;
}

static void run_callers(CornuPredictor *predictor, void *(*body)(void *))
{
    pthread_t handles[CALLERS];
    Thread    threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        threads[i] = (Thread){ predictor, i, CORNU_OK };
        assert_int_equal(pthread_create(&handles[i], NULL, body, &threads[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_join(handles[i], NULL), 0);
    for (int i = 0; i < CALLERS; i++) assert_int_equal(threads[i].status, CORNU_OK);
}

static void callers_get_the_bits_of_one(void **state)
{
    (void)state;
    static const struct { const char *device; int threads, shards; } cases[] = {
        { "cpu", 1, 1 }, { "cpu", 3, 1 }, { "cpu", 2, 4 }, { "tpu", 2, 0 }, { "tpu", 1, 1 },
        { "reference", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuDevice *device = cornu_device_open(cases[i].device, .shards = cases[i].shards,
                                                .threads = cases[i].threads);
        CornuModel     *model = compiled_on(device);
        CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
        predict_alone(model, ROWS, 0);
        cornu_model_free(model);   /* nothing of it is used any more */
        cornu_device_close(device);
        run_callers(predictor, predict_share);
        expect_rows(ROWS);
        cornu_predictor_free(predictor);
    }
}

static void any_number_of_rows(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu", "tpu", "reference" };
    for (int i = 0; i < 3; i++) {
        CornuDevice    *device = cornu_device_open(devices[i]);
        CornuModel     *model = compiled_on(device);
        CornuPredictor *predictor = expect_predictor(cornu_predictor(model, .max_batch_size = 16));
        assert_int_equal(cornu_predictor_max_batch_size(predictor), 16);
        for (int rows = 1; rows <= MOST; rows++) {
            predict_alone(model, rows, 16);
            expect_ok(predict_rows(predictor, 0, rows));
            expect_rows(rows);
        }
        cornu_predictor_free(predictor);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

int main(void)
{
    for (int i = 0; i < ROWS * FEATURES; i++) x_data[i] = (float)((i * 7919) % 1013) / 506.0f - 1.0f;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_get_the_bits_of_one),
        cmocka_unit_test(any_number_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
