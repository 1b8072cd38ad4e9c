/* The callers of a predictor: waiting for a device that runs one at a time, one maker of steps at a
 * time, the steps that each keeps. */
#include "../../../nn/prediction/predictor.c" /* NOLINT(bugprone-suspicious-include): its statics */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "../golden.h"

enum { FEATURES = 2, MOST = 1024, THREADS = 4 };

/* ---- A layer that notices recordings at the same time ---- */

typedef struct {
    char        unset;
    const char *name;
} SlowConfig;

typedef struct {
    CornuLayer base;
    SlowConfig config;
} Slow;

static atomic_int recording, most_recording;

static void nap(void) { nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL); }

static CornuTensor *slow_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    const int now = atomic_fetch_add(&recording, 1) + 1;
    if (now > atomic_load(&most_recording)) atomic_store(&most_recording, now);
    nap();
    CornuTensor *y = cornu_op_scale(x, 2.0);
    atomic_fetch_sub(&recording, 1);
    return y;
}

static CornuLayer *slow_from(const void *config);
static const CornuField slow_fields[] = { { 0 } };
static const CornuLayerClass slow_class = {
    .class_name = "Slow", .size = sizeof(Slow), .call = slow_call,
    .keras = &(const CornuKerasClass){ .fields = slow_fields, .config_size = sizeof(SlowConfig),
                                       .config_offset = offsetof(Slow, config), .from = slow_from },
};

static CornuLayer *slow_from(const void *config)
{
    return cornu_layer_create(&slow_class, ((const SlowConfig *)config)->name, NULL);
}

static CornuPredictor *predictor_of(CornuLayer *layer)
{
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    expect_ok(cornu_model_add(model, layer));
    CornuPredictor *predictor = cornu_predictor(model, .max_batch_size = MOST, .threads = 1);
    expect_ok(predictor ? CORNU_OK : cornu_error_take());
    cornu_model_free(model);
    return predictor;
}

/* ---- Calls ---- */

typedef struct {
    CornuPredictor *predictor;
    int64_t         rows;
    CornuStatus     status;
    atomic_bool     ended;
} Call;

static void *predict_rows(void *context)
{
    Call         *call = context;
    static float  x[MOST * FEATURES];
    float        *y = malloc(sizeof(float) * (size_t)(call->rows * FEATURES));
    const CornuArray in = cornu_array(x, CORNU_F32, call->rows, FEATURES);
    const CornuArray to = cornu_array(y, CORNU_F32, call->rows, FEATURES);
    call->status = cornu_predictor_predict(call->predictor, &in, &to);
    free(y);
    atomic_store(&call->ended, true);
    return NULL;
}

/* Whether the call ends, within half a minute. */
static bool ends(const Call *call)
{
    for (int i = 0; i < 1500 && !atomic_load(&call->ended); i++) nap();
    return atomic_load(&call->ended);
}

/* As on pjrt: who waits for the device is woken when it is given back. */
static void a_waiting_caller_is_woken(void **state)
{
    (void)state;
    CornuPredictor *predictor = predictor_of(cornu_dense(FEATURES));
    predictor->alone = true;
    Caller   *first = take(predictor);
    Call      call = { .predictor = predictor, .rows = 1 };
    pthread_t thread;
    assert_non_null(first);
    assert_int_equal(pthread_create(&thread, NULL, predict_rows, &call), 0);
    for (int i = 0; i < 5; i++) nap();   /* until it waits */
    assert_false(atomic_load(&call.ended));
    give_back(predictor, first);
    if (!ends(&call)) fail_msg("the caller waits for a device that is free");
    pthread_join(thread, NULL);
    expect_ok(call.status);
    assert_int_equal(predictor->callers, 1);
    cornu_predictor_free(predictor);
}

/* Each of four threads needs a step of a size of its own. */
static void one_step_is_made_at_a_time(void **state)
{
    (void)state;
    CornuPredictor *predictor = predictor_of(slow_from(&(SlowConfig){ 0 }));
    pthread_t       threads[THREADS];
    Call            calls[THREADS];
    atomic_store(&most_recording, 0);
    for (int i = 0; i < THREADS; i++) {
        calls[i] = (Call){ .predictor = predictor, .rows = INT64_C(1) << i };
        assert_int_equal(pthread_create(&threads[i], NULL, predict_rows, &calls[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) expect_ok(calls[i].status);
    assert_int_equal(atomic_load(&most_recording), 1);
    assert_in_range(predictor->callers, 1, THREADS);
    cornu_predictor_free(predictor);
}

static int64_t rows_of(const CornuStep *step) { return step->x_types[0].shape.extent[0]; }

/* Steps are of powers of two. Of eleven sizes a caller keeps the eight that were used last, in that
 * order. */
static void the_oldest_steps_are_evicted(void **state)
{
    (void)state;
    CornuPredictor *predictor = predictor_of(cornu_dense(FEATURES));
    Call            call = { .predictor = predictor };
    int64_t         made = 0;
    for (int i = 0; i < 8; i++) {
        call.rows = INT64_C(1) << i;
        predict_rows(&call);
        expect_ok(call.status);
    }
    call.rows = 1, predict_rows(&call);      /* used again, so that 2 is the oldest */
    expect_ok(call.status);
    for (int i = 8; i <= 10; i++) {
        call.rows = INT64_C(1) << i;
        predict_rows(&call);
        expect_ok(call.status);
    }
    static const int64_t wanted[] = { 1024, 512, 256, 1, 128, 64, 32, 16 };
    assert_int_equal(predictor->callers, 1);
    for (const CornuStep *step = predictor->idle->steps; step; step = step->next, made++) {
        assert_in_range(made, 0, KEPT_STEPS - 1);
        assert_int_equal(rows_of(step), wanted[made]);
    }
    assert_int_equal(made, KEPT_STEPS);
    cornu_predictor_free(predictor);
}

static int know_slow(void **state)
{
    (void)state;
    return cornu_register_layer(&slow_class, "test") ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_caller_is_woken),
        cmocka_unit_test(one_step_is_made_at_a_time),
        cmocka_unit_test(the_oldest_steps_are_evicted),
    };
    return cmocka_run_group_tests(tests, know_slow, NULL);
}
