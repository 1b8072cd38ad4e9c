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
#include "../../skip.h"

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

/* Each shard computes a row at least. */
static void fewer_rows_than_shards(void **state)
{
    (void)state;
    CornuDevice    *device = cornu_device_open("tpu", .shards = 8);
    CornuModel     *model = compiled_on(device);
    CornuPredictor *predictor = expect_predictor(cornu_predictor(model, .max_batch_size = 3));
    assert_int_equal(cornu_predictor_max_batch_size(predictor), 8);
    predict_alone(model, 21, 8);
    expect_ok(predict_rows(predictor, 0, 21));
    expect_rows(21);
    cornu_predictor_free(predictor);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* ---- Models of many kinds ---- */

/* Predicts by the model, then by callers at once, and compares. */
typedef struct {
    CornuPredictor   *predictor;
    const CornuArray *x, *to;
    CornuStatus       status;
} Call;

static void *predict_once(void *context)
{
    Call *call = context;
    for (int i = 0; i < 5 && !call->status; i++)
        call->status = cornu_predictor_predict(call->predictor, call->x, call->to);
    return NULL;
}

enum { SOME = 4, ELEMENTS = 400 };

static void compare_callers(CornuModel *model, const CornuArray *x, const CornuArray *to)
{
    const int       outputs = cornu_model_output_count(model);
    CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
    CornuArray      own[SOME][2];
    Call            calls[SOME];
    pthread_t       threads[SOME];
    static float    data[SOME][2][ELEMENTS];
    memset(data, 0, sizeof data);
    expect_ok(cornu_predict_on_batch_many(model, x, to));
    for (int i = 0; i < SOME; i++) {
        for (int k = 0; k < outputs; k++) own[i][k] = cornu_array_from(data[i][k], to[k].type);
        calls[i] = (Call){ predictor, x, own[i], CORNU_OK };
        assert_int_equal(pthread_create(&threads[i], NULL, predict_once, &calls[i]), 0);
    }
    for (int i = 0; i < SOME; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < SOME; i++) {
        assert_int_equal(calls[i].status, CORNU_OK);
        for (int k = 0; k < outputs; k++)
            assert_memory_equal(own[i][k].data, to[k].data, cornu_type_bytes(to[k].type));
    }
    cornu_predictor_free(predictor);
}

static void several_inputs_and_outputs(void **state)
{
    (void)state;
    enum { N = 4 };
    float        a[N * 3], b[N * 2], y[N * 3], z[N];
    CornuText    text;
    for (int i = 0; i < N * 3; i++) a[i] = (float)i / 5.0f - 1.0f;
    for (int i = 0; i < N * 2; i++) b[i] = 1.0f - (float)i / 3.0f;
    CornuSymbol *left = cornu_input(.shape = { 3 }, .name = "left");
    CornuSymbol *right = cornu_input(.shape = { 2 }, .name = "right");
    CornuSymbol *both = cornu_call(cornu_concatenate(), left, right);
    CornuSymbol *first = cornu_call(cornu_dense(3, .activation = CORNU_TANH, .name = "scores"),
                                    both);
    CornuSymbol *second = cornu_call(cornu_dense(1, .name = "price"), both);
    CornuModel  *model = cornu_model(.inputs = { left, right }, .outputs = { first, second });
    expect_ok(cornu_compile(model));
    compare_callers(model, (CornuArray[]){ cornu_array(a, CORNU_F32, N, 3),
                                           cornu_array(b, CORNU_F32, N, 2) },
                    (CornuArray[]){ cornu_array(y, CORNU_F32, N, 3),
                                    cornu_array(z, CORNU_F32, N, 1) });

    CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
    cornu_model_free(model);
    assert_int_equal(cornu_predictor_input_count(predictor), 2);
    assert_int_equal(cornu_predictor_output_count(predictor), 2);
    assert_string_equal(cornu_predictor_input_name(predictor, 1), "right");
    assert_string_equal(cornu_predictor_output_name(predictor, 1), "price");
    assert_null(cornu_predictor_input_name(predictor, 2));
    assert_null(cornu_predictor_output_name(predictor, -1));
    const CornuType in = cornu_predictor_input_type(predictor, 1);
    assert_string_equal(cornu_type_print(&text, in), "f32 (None, 2)");
    const CornuType out = cornu_predictor_output_type(predictor, 0);
    assert_string_equal(cornu_type_print(&text, out), "f32 (None, 3)");
    const CornuArray x[] = { cornu_array(a, CORNU_F32, N, 3), cornu_array(b, CORNU_F32, N - 1, 2) };
    const CornuArray to[] = { cornu_array(y, CORNU_F32, N, 3), cornu_array(z, CORNU_F32, N, 1) };
    expect_error(cornu_predictor_predict(predictor, x, to), CORNU_ERR_SHAPE,
                 "input right has 3 rows, expected as the first: 4");
    cornu_predictor_free(predictor);
}

static void strings(void **state)
{
    (void)state;
    const char *words[] = { "b", "a", "nobody", "a", "b" };
    float       y[5];
    CornuModel *model = cornu_sequential(.input_dtype = CORNU_STRING);
    cornu_model_add(model, cornu_string_lookup(.vocabulary = cornu_texts("a", "b"),
                                               .output_mode = CORNU_ONE_HOT_OUTPUT));
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model));
    compare_callers(model, &(CornuArray){ cornu_type(CORNU_STRING, 5), words },
                    &(CornuArray){ cornu_type(CORNU_F32, 5, 1), y });
    cornu_model_free(model);
}

/* Ten lengths, more than a caller keeps. */
static void open_extents(void **state)
{
    (void)state;
    static float x[2 * 10 * 3], y[2 * 10 * 4], own[2 * 10 * 4];
    for (int i = 0; i < 2 * 10 * 3; i++) x[i] = (float)(i % 13) / 6.0f - 1.0f;
    CornuModel *model = cornu_sequential(.input_shape = { CORNU_NONE, 3 });
    cornu_model_add(model, cornu_lstm(4, .return_sequences = true));
    expect_ok(cornu_compile(model));
    CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
    for (int turn = 0; turn < 2; turn++)
        for (int t = 1; t <= 10; t++) {
            const CornuArray in = cornu_array(x, CORNU_F32, 2, t, 3);
            const CornuArray to = cornu_array(own, CORNU_F32, 2, t, 4);
            expect_ok(cornu_predict_on_batch(model, in, cornu_array(y, CORNU_F32, 2, t, 4)));
            expect_ok(cornu_predictor_predict(predictor, &in, &to));
            assert_memory_equal(y, own, (size_t)t * 2 * 4 * sizeof *y);
        }
    cornu_predictor_free(predictor);
    cornu_model_free(model);
}

/* Of more rows than are computed at once, too. */
static void types_of_open_extents(void **state)
{
    (void)state;
    static float x[40 * 9 * 3];
    CornuModel  *model = cornu_sequential(.input_shape = { CORNU_NONE, 3 });
    cornu_model_add(model, cornu_conv1d(4, 3));
    CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
    CornuType       type;
    for (int rows = 1; rows <= 40; rows += 13) {
        const CornuArray in = cornu_array(x, CORNU_F32, rows, 9, 3);
        expect_ok(cornu_predictor_output_types(predictor, &in, &type));
        assert_true(cornu_type_equal(type, cornu_type(CORNU_F32, rows, 7, 4)));
    }
    const CornuArray narrow = cornu_array(x, CORNU_F32, 1, 9, 2);
    expect_error(cornu_predictor_output_types(predictor, &narrow, &type), CORNU_ERR_SHAPE, "3");
    expect_error(cornu_predictor_output_types(predictor, &narrow, NULL), CORNU_ERR_ARGUMENT,
                 "NULL");
    cornu_predictor_free(predictor);
    cornu_model_free(model);
}

/* Bytes are converted and scaled; a model of a fixed batch size computes as many rows. */
static void bytes_in_batches_of_six(void **state)
{
    (void)state;
    static uint8_t pixels[13 * 4];
    static float   y[13 * 2], own[13 * 2];
    for (int i = 0; i < 13 * 4; i++) pixels[i] = (uint8_t)(i * 37);
    CornuModel *model = cornu_sequential(.input_shape = { 4 }, .batch_size = 6,
                                         .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_dense(2));
    expect_ok(cornu_compile(model));
    CornuPredictor  *predictor = expect_predictor(cornu_predictor(model, .threads = 1));
    const CornuArray x = cornu_array(pixels, CORNU_U8, 13, 4);
    const CornuArray to = cornu_array(own, CORNU_F32, 13, 2);
    assert_int_equal(cornu_predictor_max_batch_size(predictor), 6);
    expect_ok(cornu_predict(model, .x = x, .to = cornu_array(y, CORNU_F32, 13, 2), .batch_size = 6,
                            .verbose = CORNU_SILENT));
    expect_ok(cornu_predictor_predict(predictor, &x, &to));
    assert_memory_equal(y, own, sizeof y);
    cornu_predictor_free(predictor);
    cornu_model_free(model);
}

/* ---- What else happens ---- */

static void training_changes_nothing(void **state)
{
    (void)state;
    CornuModel     *model = compiled_on(NULL);
    CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
    predict_alone(model, MOST, 0);
    expect_ok(cornu_train_on_batch(model, rows_of(x_data, 0, MOST, FEATURES),
                                   rows_of(wanted, MOST, MOST, CLASSES)));
    expect_ok(predict_rows(predictor, 0, MOST));
    expect_rows(MOST);
    cornu_predictor_free(predictor);
    predictor = expect_predictor(cornu_predictor(model));   /* has what was learned */
    predict_alone(model, MOST, 0);
    expect_ok(predict_rows(predictor, 0, MOST));
    expect_rows(MOST);
    cornu_predictor_free(predictor);
    cornu_model_free(model);
}

static void needs_no_compiling(void **state)
{
    (void)state;
    CornuModel     *model = make_model();
    CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
    predict_alone(model, MOST, 0);   /* nor does the model itself */
    assert_false(cornu_model_compiled(model));
    expect_ok(predict_rows(predictor, 0, MOST));
    expect_rows(MOST);
    cornu_predictor_free(predictor);

    /* Everything else does. Compiled after all, it is as one that has not predicted. */
    const CornuArray x = rows_of(x_data, 0, MOST, FEATURES), y = rows_of(got, 0, MOST, CLASSES);
    expect_failure(cornu_fit(model, .x = x, .y = y), CORNU_ERR_ARGUMENT, "shared: not compiled");
    expect_error(cornu_train_on_batch(model, x, y), CORNU_ERR_ARGUMENT, "shared: not compiled");
    expect_error(cornu_evaluate(model, .x = x, .y = y), CORNU_ERR_ARGUMENT, "shared: not compiled");
    expect_error(cornu_model_add(model, cornu_dense(1)), CORNU_ERR_ARGUMENT, "after predicting");
    cornu_model_free(model);
    CornuModel *models[2] = { make_model(), make_model() };
    predict_alone(models[0], MOST, 0);
    for (int i = 0; i < 2; i++) {
        expect_ok(cornu_compile(models[i], .loss = CORNU_MEAN_SQUARED_ERROR));
        expect_ok(cornu_train_on_batch(models[i], x, rows_of(wanted, MOST, MOST, CLASSES)));
        predict_alone(models[i], MOST, 0);
        if (i == 0) memcpy(got, wanted, sizeof got);
    }
    expect_rows(MOST);
    for (int i = 0; i < 2; i++) cornu_model_free(models[i]);
}

/* After the first calls of a size. */
static void allocates_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuModel     *model = compiled_on(NULL);
    CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
    const int       sizes[] = { 1, 5, 32, 40 };
    for (int i = 0; i < 4; i++) expect_ok(predict_rows(predictor, 0, sizes[i]));
    const int64_t before = allocations();
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 4; i++) expect_ok(predict_rows(predictor, 0, sizes[i]));
    assert_int_equal(allocations(), before);
    cornu_predictor_free(predictor);
    cornu_model_free(model);
}

static void memory_may_end(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuModel   *model = compiled_on(NULL);
    int64_t       failures = 0;
    bool          done = false;
    predict_alone(model, MOST, 0);
    for (int64_t i = 0; !done; i += 1 + i / 20) {
        allocations_fail_once(i);
        CornuPredictor *predictor = cornu_predictor(model, .threads = 1);
        CornuStatus     status = predictor ? predict_rows(predictor, 0, MOST) : cornu_error_take();
        done = !status && atomic_load(&allocations_allowed) > 0;
        allocations_fail_after(NEVER);
        if (status) assert_int_equal(status, CORNU_ERR_MEMORY);
        failures += status != CORNU_OK;
        if (predictor && status) expect_ok(predict_rows(predictor, 0, MOST));   /* once there is */
        if (predictor) expect_rows(MOST);
        cornu_predictor_free(predictor);
    }
    assert_true(failures > 20);
    cornu_model_free(model);
}

static void refusals(void **state)
{
    (void)state;
    float       y[MOST * CLASSES];
    CornuModel *model = make_model(), *unbuilt = cornu_sequential(.name = "unbuilt");
    CornuModel *keeps = cornu_sequential(.name = "keeps", .input_shape = { 4, 3 }, .batch_size = 2);
    cornu_model_add(unbuilt, cornu_dense(2));
    cornu_model_add(keeps, cornu_lstm(2, .stateful = true));
    expect_failure(cornu_predictor(NULL), CORNU_ERR_ARGUMENT, "model");
    expect_failure(cornu_predictor(unbuilt), CORNU_ERR_ARGUMENT, "unbuilt is not built");
    expect_failure(cornu_predictor(keeps), CORNU_ERR_UNSUPPORTED, "lstm of keeps is stateful");
    expect_failure(cornu_predictor(model, .max_batch_size = -1), CORNU_ERR_ARGUMENT,
                   ".max_batch_size is negative");
    expect_failure(cornu_predictor(model, .threads = -1), CORNU_ERR_ARGUMENT, ".threads is neg");

    CornuPredictor  *predictor = expect_predictor(cornu_predictor(model));
    const CornuArray x = rows_of(x_data, 0, 2, FEATURES), to = rows_of(y, 0, 2, CLASSES);
    const CornuArray none = rows_of(x_data, 0, 0, FEATURES), narrow = rows_of(x_data, 0, 2, 7);
    const CornuArray short_to = rows_of(y, 0, 1, CLASSES), no_data = { to.type, NULL };
    const CornuArray doubles = cornu_array(y, CORNU_F64, 2, CLASSES);
    expect_error(cornu_predictor_predict(predictor, &none, &to), CORNU_ERR_SHAPE,
                 "input input_layer has 0 rows, expected at least 1");
    expect_error(cornu_predictor_predict(predictor, &narrow, &to), CORNU_ERR_SHAPE,
                 "x is (2, 7), the model's input (None, 12)");
    expect_error(cornu_predictor_predict(predictor, &x, &short_to), CORNU_ERR_SHAPE,
                 "is f32 (1, 5), expected f32 (2, 5)");
    expect_error(cornu_predictor_predict(predictor, &x, &doubles), CORNU_ERR_DTYPE,
                 "is f64 (2, 5), expected f32 (2, 5)");
    expect_error(cornu_predictor_predict(predictor, &x, &no_data), CORNU_ERR_ARGUMENT,
                 "has no data");
    expect_error(cornu_predictor_predict(predictor, &(CornuArray){ x.type, NULL }, &to),
                 CORNU_ERR_ARGUMENT, "has no data");
    expect_error(cornu_predictor_predict(NULL, &x, &to), CORNU_ERR_ARGUMENT, "NULL");
    expect_ok(cornu_predictor_predict(predictor, &x, &to));
    cornu_predictor_free(predictor);
    cornu_predictor_free(NULL);
    cornu_model_free(keeps);
    cornu_model_free(unbuilt);
    cornu_model_free(model);
}

/* The same bits, whatever is computed beside it: servers gather rows as they come. */
static void a_row_has_its_bits_among_any(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu", "tpu", "reference" };
    for (int i = 0; i < 3; i++) {
        CornuDevice    *device = cornu_device_open(devices[i], .shards = 1);
        CornuModel     *model = compiled_on(device);
        CornuPredictor *predictor = expect_predictor(cornu_predictor(model));
        predict_alone(model, MOST, MOST);
        for (int rows = 1; rows < MOST; rows += 1 + rows / 8) {
            memset(got, 0, sizeof got);
            for (int first = 0; first < MOST; first += rows)
                expect_ok(predict_rows(predictor, first,
                                       MOST - first < rows ? MOST - first : rows));
            expect_rows(MOST);
        }
        cornu_predictor_free(predictor);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

int main(void)
{
    for (int i = 0; i < ROWS * FEATURES; i++)
        x_data[i] = (float)((i * 7919) % 1013) / 506.0f - 1.0f;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_get_the_bits_of_one),
        cmocka_unit_test(any_number_of_rows),
        cmocka_unit_test(fewer_rows_than_shards),
        cmocka_unit_test(a_row_has_its_bits_among_any),
        cmocka_unit_test(several_inputs_and_outputs),
        cmocka_unit_test(strings),
        cmocka_unit_test(open_extents),
        cmocka_unit_test(types_of_open_extents),
        cmocka_unit_test(bytes_in_batches_of_six),
        cmocka_unit_test(training_changes_nothing),
        cmocka_unit_test(needs_no_compiling),
        cmocka_unit_test(allocates_nothing),
        cmocka_unit_test(memory_may_end),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
