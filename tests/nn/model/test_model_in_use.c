/* A model, or a device, that one thread is using refuses another thread at once, by name. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../golden.h"

enum { ROWS = 8 };

static float   x_data[ROWS * 3];
static int32_t y_data[ROWS];
static float   to_data[ROWS * 2];
static char    folder[] = "/tmp/cornu-in-use-XXXXXX", path[64];

static CornuArray x_of(int64_t rows) { return cornu_array(x_data, CORNU_F32, rows, 3); }
static CornuArray y_of(int64_t rows) { return cornu_array(y_data, CORNU_I32, rows); }
static CornuArray to_of(int64_t rows) { return cornu_array(to_data, CORNU_F32, rows, 2); }

static CornuModel *make_model(CornuDevice *device)
{
    CornuModel *model = cornu_sequential(.name = "shared", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_sgd(),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    return model;
}

/* ---- Each function, called by a second thread ---- */

typedef CornuStatus Use(CornuModel *model);

static CornuStatus fails(const void *made) { return made ? CORNU_OK : cornu_error_take(); }

static CornuStatus use_fit(CornuModel *m)
{
    CornuHistory *history = cornu_fit(m, .x = x_of(ROWS), .y = y_of(ROWS), .verbose = CORNU_SILENT);
    const CornuStatus status = fails(history);
    cornu_history_free(history);
    return status;
}

static CornuStatus use_evaluate(CornuModel *m)
{
    return cornu_evaluate(m, .x = x_of(ROWS), .y = y_of(ROWS), .verbose = CORNU_SILENT);
}

static CornuStatus use_predict(CornuModel *m)
{
    return cornu_predict(m, .x = x_of(ROWS), .to = to_of(ROWS), .verbose = CORNU_SILENT);
}

static CornuStatus use_train(CornuModel *m) { return cornu_train_on_batch(m, x_of(4), y_of(4)); }
static CornuStatus use_test(CornuModel *m) { return cornu_test_on_batch(m, x_of(4), y_of(4)); }

static CornuStatus use_predict_batch(CornuModel *m)
{
    return cornu_predict_on_batch(m, x_of(4), to_of(4));
}

static CornuStatus use_compile(CornuModel *m)
{
    return cornu_compile(m, .optimizer = cornu_adam(), .loss = CORNU_MEAN_SQUARED_ERROR,
                         .metrics = { CORNU_ACCURACY });
}

static CornuStatus use_add(CornuModel *m) { return cornu_model_add(m, cornu_dense(1)); }
static CornuStatus use_build(CornuModel *m) { return cornu_model_build(m, cornu_shape(3)); }
static CornuStatus use_move(CornuModel *m) { return cornu_model_move(m, NULL); }
static CornuStatus use_save(CornuModel *m) { return cornu_model_save(m, path); }
static CornuStatus use_save_weights(CornuModel *m) { return cornu_model_save_weights(m, path); }
static CornuStatus use_load_weights(CornuModel *m) { return cornu_model_load_weights(m, path); }
static CornuStatus use_load_by_name(CornuModel *m) { return cornu_model_load_by_name(m, path); }
static CornuStatus use_reset_metrics(CornuModel *m) { return cornu_model_reset_metrics(m); }
static CornuStatus use_reset_states(CornuModel *m) { return cornu_model_reset_states(m); }

static CornuStatus use_metric_result(CornuModel *m)
{
    double loss;
    return cornu_model_metric_result(m, 0, &loss, 1);
}

static CornuStatus use_train_step(CornuModel *m)
{
    return fails(cornu_model_train_step(m, x_of(4).type, y_of(4).type));
}

static CornuStatus use_gradients(CornuModel *m)
{
    return cornu_check_gradients(m, x_of(4), y_of(4));
}

static CornuStatus use_predictor(CornuModel *m)
{
    CornuPredictor   *predictor = cornu_predictor(m);
    const CornuStatus status = fails(predictor);
    cornu_predictor_free(predictor);
    return status;
}

static const struct { Use *use; const char *name; } uses[] = {
    { use_fit, "cornu_fit" }, { use_evaluate, "cornu_evaluate" }, { use_predict, "cornu_predict" },
    { use_train, "cornu_train_on_batch" }, { use_test, "cornu_test_on_batch" },
    { use_predict_batch, "cornu_predict_on_batch" }, { use_compile, "cornu_compile" },
    { use_add, "cornu_model_add" }, { use_build, "cornu_model_build" },
    { use_move, "cornu_model_move" }, { use_save, "cornu_model_save" },
    { use_save_weights, "cornu_model_save_weights" },
    { use_load_weights, "cornu_model_load_weights" },
    { use_load_by_name, "cornu_model_load_by_name" },
    { use_reset_metrics, "cornu_model_reset_metrics" },
    { use_reset_states, "cornu_model_reset_states" },
    { use_metric_result, "cornu_model_metric_result" },
    { use_train_step, "cornu_model_train_step" }, { use_gradients, "cornu_check_gradients" },
    { use_predictor, "cornu_predictor" },
};
enum { USES = sizeof uses / sizeof *uses };

/* cmocka asserts only on its own thread: results of the second one are checked later. */
typedef struct {
    CornuModel *model;
    CornuStatus status[USES];
    char        message[USES][256];
} Intruder;

static void *intrude(void *context)
{
    Intruder *intruder = context;
    for (int i = 0; i < USES; i++) {
        intruder->status[i] = uses[i].use(intruder->model);
        snprintf(intruder->message[i], sizeof intruder->message[i], "%s", cornu_error_message());
    }
    return NULL;
}

static void run_beside(void *(*body)(void *), void *context)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- Models ---- */

typedef struct {
    CornuCallback base;
    Intruder     *intruder;
    CornuStatus   within;   /* of a prediction by the thread that trains */
} Visit;

static CornuStatus let_in(CornuCallback *self, CornuModel *model, int64_t index,
                          const CornuLogs *logs)
{
    Visit *visit = (Visit *)self;
    (void)logs;
    if (index > 0) return CORNU_OK;
    visit->within = use_predict(model);
    run_beside(intrude, visit->intruder);
    return CORNU_OK;
}

static void a_second_thread_is_refused(void **state)
{
    CornuModel *model = make_model(*state), *alone = make_model(*state);
    Intruder    intruder = { .model = model };
    Visit       visit = { .base.train_batch_end = let_in, .intruder = &intruder,
                          .within = CORNU_ERR_VALUE };
    expect_ok(cornu_model_save(model, path));
    CornuHistory *seen = cornu_fit(model, .x = x_of(ROWS), .y = y_of(ROWS), .epochs = 2,
                                   .batch_size = 4, .verbose = CORNU_SILENT,
                                   .callbacks = { &visit.base });
    if (!seen) fail_msg("%s", cornu_error_message());
    expect_ok(visit.within);
    for (int i = 0; i < USES; i++) {
        char wanted[200];
        snprintf(wanted, sizeof wanted, "shared: %s is called while another thread is in "
                 "cornu_fit;", uses[i].name);
        if (intruder.status[i] != CORNU_ERR_BUSY || !strstr(intruder.message[i], wanted) ||
            !strstr(intruder.message[i], "; cornu_predictor predicts from several"))
            fail_msg("%s: %s: %s", uses[i].name, cornu_status_name(intruder.status[i]),
                     intruder.message[i]);
    }
    /* Training is not affected. */
    CornuHistory *history = cornu_fit(alone, .x = x_of(ROWS), .y = y_of(ROWS), .epochs = 2,
                                      .batch_size = 4, .verbose = CORNU_SILENT);
    for (int i = 0; i < 2; i++)
        assert_true(cornu_history_get(seen, "loss", i) == cornu_history_get(history, "loss", i));
    cornu_history_free(seen);
    cornu_history_free(history);
    cornu_model_free(alone);
    cornu_model_free(model);
}

typedef struct { CornuModel *model; CornuStatus status; bool heard; } Guest;

static void *predict_beside(void *context)
{
    Guest *guest = context;
    guest->status = use_predict_batch(guest->model);
    return NULL;
}

static void threads_take_turns(void **state)
{
    Guest guest = { .model = make_model(*state) };
    for (int i = 0; i < 3; i++) {
        guest.status = CORNU_ERR_VALUE;
        run_beside(predict_beside, &guest);
        expect_ok(guest.status);
        expect_ok(use_predict(guest.model));
        assert_int_not_equal(cornu_predict_on_batch(guest.model, y_of(4), to_of(4)), CORNU_OK);
    }
    cornu_model_free(guest.model);
}

/* Two threads without synchronization: each call succeeds or is refused, and no row is wrong. */
enum { TRIES = 300 };

typedef struct {
    CornuModel *model;
    float       x[4 * 3], wanted[4 * 2];
    int         refused, wrong;
} Racer;

static void *race(void *context)
{
    Racer *racer = context;
    for (int i = 0; i < TRIES; i++) {
        float             to[4 * 2] = { 0 };
        const CornuStatus status =
            cornu_predict_on_batch(racer->model, cornu_array(racer->x, CORNU_F32, 4, 3),
                                   cornu_array(to, CORNU_F32, 4, 2));
        racer->refused += status == CORNU_ERR_BUSY;
        racer->wrong += status ? status != CORNU_ERR_BUSY
                               : memcmp(to, racer->wanted, sizeof to) != 0;
    }
    return NULL;
}

static void no_row_is_wrong(void **state)
{
    CornuModel *model = make_model(*state);
    Racer       racers[2] = { { .model = model }, { .model = model } };
    pthread_t   threads[2];
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 12; k++) racers[i].x[k] = (float)(k - 5) * (i ? 0.3f : -0.2f);
        expect_ok(cornu_predict_on_batch(model, cornu_array(racers[i].x, CORNU_F32, 4, 3),
                                         cornu_array(racers[i].wanted, CORNU_F32, 4, 2)));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(racers[i].wrong, 0);
    cornu_model_free(model);
}

/* ---- Devices ---- */

/* The device logs during a run, on the running thread. The other thread must not log before it is
 * refused, as logging is serialized. */
static void hear(void *context, CornuLogLevel level, const char *message)
{
    Guest *guest = context;
    (void)level;
    if (!guest->heard && strstr(message, "ran a program")) {
        guest->heard = true;
        run_beside(predict_beside, guest);
    }
}

static void a_device_is_refused_too(void **state)
{
    CornuModel *model = make_model(*state);
    Guest       guest = { .model = make_model(*state) };
    expect_ok(use_predict_batch(guest.model));
    cornu_set_log(CORNU_LOG_DEBUG, hear, &guest);
    const CornuStatus status = use_predict(model);
    cornu_set_log(CORNU_LOG_DEBUG, NULL, NULL);
    expect_ok(status);
    assert_int_equal(guest.status, CORNU_ERR_BUSY);
    expect_ok(use_predict(guest.model));
    cornu_model_free(guest.model);
    cornu_model_free(model);
}

static int set_up(void **state)
{
    for (int i = 0; i < ROWS * 3; i++) x_data[i] = (float)((i * 7) % 11) / 5.0f - 1.0f;
    for (int i = 0; i < ROWS; i++) y_data[i] = i % 2;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    *state = cornu_device_open("cpu", .threads = 2);
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    cornu_device_close(*state);
    return unlink(path) || rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_thread_is_refused),
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(no_row_is_wrong),
        cmocka_unit_test(a_device_is_refused_too),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
