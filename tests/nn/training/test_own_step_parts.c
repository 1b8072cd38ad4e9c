/* What an own step is made of: losses and metrics of compile, logs, an optimizer applied twice,
 * optimizers of some layers; and mistakes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "../../skip.h"
#include "own_steps.h"

/* ---- compute_loss and metrics: as without an own step ---- */

static CornuStatus usual_step(CornuOwnStep *self, CornuStepCall *step)
{
    CornuTensor *y = cornu_step_call(step, cornu_as_layer(step->model), step->x[0]);
    CornuTensor *loss = cornu_step_compute_loss(step, &y);
    if (step->training) cornu_step_minimize(step, NULL, loss);
    cornu_step_log(step, "loss", loss, NULL);
    return self->logs[0] ? cornu_step_compute_metrics(step, &y) : cornu_error_take();
}

static CornuModel *classifier(CornuDevice *device, CornuOwnStep *own)
{
    cornu_set_random_seed(1);
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(6, .activation = CORNU_RELU,
                                       .kernel_regularizer = cornu_l2(0.01),
                                       .activity_regularizer = cornu_l1(0.01)));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .step = own, .optimizer = cornu_adam(),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }));
    return model;
}

static void the_usual_step_as_an_own_one(void **state)
{
    static CornuOwnStep own = { .train = usual_step, .test = usual_step, .logs = { "loss" } };
    static const int32_t labels[N] = { 0, 1, 1, 0, 1, 0, 0, 1, 1, 1 };
    float                weights[N];
    for (int i = 0; i < N; i++) weights[i] = 0.5f + (float)i;
    CornuModel   *models[2] = { classifier(*state, NULL), classifier(*state, &own) };
    CornuHistory *histories[2];
    for (int i = 0; i < 2; i++) {
        const CornuArray y = cornu_array((void *)(uintptr_t)labels, CORNU_I32, N);
        histories[i] = cornu_fit(models[i], .x = rows(0, N), .y = y, .batch_size = BATCH,
                                 .sample_weight = cornu_array(weights, CORNU_F32, N),
                                 .epochs = EPOCHS, .validation_data = { .x = rows(0, N), .y = y },
                                 .verbose = CORNU_SILENT);
        if (!histories[i]) fail_msg("%s", cornu_error_message());
    }
    expect_same_weights(models[0], models[1]);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        static const char *const same[] = { "accuracy", "val_accuracy" };
        static const char *const near[] = { "loss", "val_loss" };
        for (int k = 0; k < 2; k++) {
            assert_true(cornu_history_get(histories[0], same[k], epoch) ==
                        cornu_history_get(histories[1], same[k], epoch));
            assert_true(fabs(cornu_history_get(histories[0], near[k], epoch) -
                             cornu_history_get(histories[1], near[k], epoch)) < 1e-6);
        }
    }
    for (int i = 0; i < 2; i++) {
        cornu_history_free(histories[i]);
        cornu_model_free(models[i]);
    }
}

/* ---- One optimizer twice ---- */

static CornuStatus twice(CornuOwnStep *self, CornuStepCall *step)
{
    (void)self;
    for (int i = 0; i < 2; i++) {
        CornuTensor *y = cornu_step_call(step, cornu_as_layer(step->model), step->x[0]);
        CornuTensor *loss = cornu_step_mean(step, cornu_op_square(y));
        cornu_step_minimize(step, NULL, loss);
        cornu_step_log_last(step, "loss", loss);
    }
    return CORNU_OK;
}

static CornuStatus once(CornuOwnStep *self, CornuStepCall *step)
{
    (void)self;
    CornuTensor *y = cornu_step_call(step, cornu_as_layer(step->model), step->x[0]);
    CornuTensor *loss = cornu_step_mean(step, cornu_op_square(y));
    cornu_step_minimize(step, NULL, loss);
    return cornu_step_log_last(step, "loss", loss);
}

static void an_optimizer_applied_twice(void **state)
{
    static CornuOwnStep steps[2] = {
        { .train = twice, .logs = { "loss" }, .own_data = true, .xs = 1 },
        { .train = once, .logs = { "loss" }, .own_data = true, .xs = 1 } };
    CornuModel *models[2];
    double      losses[2];
    for (int i = 0; i < 2; i++) {
        cornu_set_random_seed(2);
        models[i] = make_mlp(FEATURES, 2, "mlp");
        expect_ok(cornu_compile(models[i], .device = *state, .step = &steps[i],
                                .optimizer = cornu_adam(.learning_rate = 0.05, .use_ema = true)));
    }
    for (int k = 0; k < 3; k++) {
        expect_ok(cornu_train_on_batch(models[0], .x = rows(0, N), .values = &losses[0]));
        for (int i = 0; i < 2; i++)
            expect_ok(cornu_train_on_batch(models[1], .x = rows(0, N), .values = &losses[1]));
        assert_true(losses[0] == losses[1]);
    }
    expect_same_weights(models[0], models[1]);
    double iteration;
    expect_ok(cornu_variable_get(cornu_optimizer_iteration(cornu_model_optimizer(models[0])),
                                 &iteration));
    assert_true(iteration == 6.0);
    for (int i = 0; i < 2; i++) cornu_model_free(models[i]);
}

/* ---- Metrics and predictions of its own ---- */

typedef struct {
    CornuOwnStep own;
    CornuMetric *accuracy;
} WithMetric;

static CornuStatus with_metric(CornuOwnStep *self, CornuStepCall *step)
{
    WithMetric  *with = (WithMetric *)self;
    CornuTensor *y = cornu_step_call(step, cornu_as_layer(step->model), step->x[0]);
    cornu_step_log(step, "hidden", cornu_step_mean(step, y), NULL);
    cornu_step_hide_log(step, "hidden");
    return cornu_step_log_metric(step, "right", with->accuracy, step->y[0], y, NULL);
}

static CornuStatus doubled(CornuOwnStep *self, CornuStepCall *step, CornuTensor **y)
{
    (void)self;
    y[0] = cornu_op_scale(cornu_step_call(step, cornu_as_layer(step->model), step->x[0]), 2.0);
    return CORNU_OK;
}

static void own_metrics_and_predictions(void **state)
{
    static const int32_t labels[N] = { 0, 1, 1, 0, 1, 0, 0, 1, 1, 1 };
    WithMetric with = { .own = { .test = with_metric, .predict = doubled,
                                 .logs = { "right", "hidden" } },
                        .accuracy = CORNU_ACCURACY };
    CornuModel *plain = classifier(*state, NULL), *model = classifier(*state, &with.own);
    double      results[4], expected[2];
    const CornuArray y = cornu_array((void *)(uintptr_t)labels, CORNU_I32, N);
    expect_ok(cornu_evaluate(plain, .x = rows(0, N), .y = y, .batch_size = BATCH,
                             .results = expected, .verbose = CORNU_SILENT));
    for (int i = 0; i < 2; i++)   /* the second batch size is another step with the same metric */
        expect_ok(cornu_evaluate(model, .x = rows(0, N), .y = y, .batch_size = BATCH + i,
                                 .results = results, .verbose = CORNU_SILENT));
    assert_string_equal(cornu_model_metric_name(model, 2), "right");
    assert_true(results[2] == expected[1]);
    assert_true(cornu_model_metric_shown(model, 2, false));
    assert_false(cornu_model_metric_shown(model, 2, true));
    assert_false(cornu_model_metric_shown(model, 0, false));
    assert_string_equal(cornu_model_metric_name(model, 3), "hidden");
    assert_false(cornu_model_metric_shown(model, 3, false));
    float once[N * 2], more[N * 2];
    expect_ok(cornu_predict(plain, .x = rows(0, N), .to = cornu_array(once, CORNU_F32, N, 2),
                            .verbose = CORNU_SILENT));
    expect_ok(cornu_predict(model, .x = rows(0, N), .to = cornu_array(more, CORNU_F32, N, 2),
                            .verbose = CORNU_SILENT));
    for (int i = 0; i < N * 2; i++) assert_true(more[i] == 2.0f * once[i]);
    cornu_model_free(plain);
    cornu_model_free(model);
}

/* ---- Mistakes ---- */

static CornuStatus logs_another(CornuOwnStep *self, CornuStepCall *step)
{
    (void)self;
    return cornu_step_log(step, "other", step->x[0], NULL);
}

static CornuStatus logs_two_kinds(CornuOwnStep *self, CornuStepCall *step)
{
    (void)self;
    CornuTensor *mean = cornu_step_mean(step, step->x[0]);
    cornu_step_log(step, "loss", mean, NULL);
    return cornu_step_log_last(step, "loss", mean);
}

static CornuStatus loses_rows(CornuOwnStep *self, CornuStepCall *step)
{
    (void)self;
    cornu_step_log(step, "loss", cornu_step_mean(step, cornu_op_sum(step->x[0])), NULL);
    return CORNU_OK;
}

static CornuStatus wants_labels(CornuOwnStep *self, CornuStepCall *step)
{
    (void)self;
    CornuTensor *y = cornu_step_call(step, cornu_as_layer(step->model), step->x[0]);
    return cornu_step_minimize(step, NULL, cornu_step_compute_loss(step, &y));
}

static void mistakes_are_told(void **state)
{
    static const struct {
        CornuStatus (*train)(CornuOwnStep *self, CornuStepCall *step);
        CornuStatus  status;
        const char  *part;
    } cases[] = {
        { logs_another, CORNU_ERR_ARGUMENT, "logs \"other\", which is not among the .logs" },
        { logs_two_kinds, CORNU_ERR_ARGUMENT, "logs \"loss\", which is another mean already" },
        { loses_rows, CORNU_ERR_SHAPE, "expected a value or more for each of 4 rows" },
        { wants_labels, CORNU_ERR_ARGUMENT, "are for 1 outputs, the batch has 0 labels" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuOwnStep own = { .train = cases[i].train, .logs = { "loss" }, .own_data = true,
                             .xs = 1 };
        CornuModel  *model = make_mlp(FEATURES, 2, "mlp");
        expect_ok(cornu_compile(model, .device = *state, .step = &own));
        CornuHistory *history = cornu_fit(model, .x = rows(0, N), .batch_size = BATCH,
                                          .verbose = CORNU_SILENT);
        expect_failure(history, cases[i].status, cases[i].part);
        expect_error(cornu_train_on_batch(model, .x = rows(0, BATCH)), cases[i].status,
                     cases[i].part);
        cornu_model_free(model);
    }
    CornuModel *model = make_mlp(FEATURES, 2, "mlp"), *stranger = make_mlp(FEATURES, 2, "stranger");
    expect_error(cornu_compile(model, .optimizers = { { cornu_adam(),
                                                        { cornu_as_layer(stranger) } } }),
                 CORNU_ERR_ARGUMENT, "stranger, is not a layer of the model");
    expect_error(cornu_compile(model, .optimizers = { { cornu_adam(), { NULL } } }),
                 CORNU_ERR_ARGUMENT, ".optimizers[0], adam, has no layers");
    expect_error(cornu_compile(model, .optimizers = {
                     { cornu_adam(), { cornu_model_layer(model, 0) } },
                     { cornu_sgd(), { cornu_model_layer(model, 0) } } }),
                 CORNU_ERR_ARGUMENT, "two of .optimizers train dense");
    expect_error(cornu_compile(model, .optimizer = cornu_adam(), .optimizers = {
                     { cornu_adam(), { cornu_model_layer(model, 0) } } }),
                 CORNU_ERR_ARGUMENT, "both .optimizer and .optimizers");
    CornuOwnStep none = { .train = once, .own_data = true };
    expect_error(cornu_compile(model, .step = &none), CORNU_ERR_ARGUMENT, "the step's .xs are 0");
    cornu_model_free(model);
    cornu_model_free(stranger);
}

/* An optimizer for each of two layers, without an own step; the third layer is not trained. */
static void optimizers_of_layers(void **state)
{
    static const int32_t labels[N] = { 0, 1, 1, 0, 1, 0, 0, 1, 1, 1 };
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    for (int i = 0; i < 3; i++) cornu_model_add(model, cornu_dense(i < 2 ? 4 : 2));
    expect_ok(cornu_compile(model, .device = *state,
                            .optimizers = { { cornu_sgd(.learning_rate = 0.1),
                                              { cornu_model_layer(model, 0) } },
                                            { cornu_adam(.learning_rate = 0.0),
                                              { cornu_model_layer(model, 2) } } },
                            .loss = cornu_sparse_categorical_crossentropy(.from_logits = true)));
    float before[3][16], after[3][16];
    expect_ok(cornu_model_build(model, cornu_shape(FEATURES)));
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 3; i++) {
            const CornuWeight *kernel = cornu_model_weight(model, 2 * i);
            expect_ok(cornu_weight_read(kernel, cornu_array_from(pass ? after[i] : before[i],
                                                                 kernel->type)));
        }
        if (pass == 0)
            cornu_history_free(cornu_fit(
                model, .x = rows(0, N), .verbose = CORNU_SILENT,
                .y = cornu_array((void *)(uintptr_t)labels, CORNU_I32, N)));
    }
    assert_memory_not_equal(before[0], after[0], 12 * sizeof(float));
    assert_memory_equal(before[1], after[1], 16 * sizeof(float));
    assert_memory_equal(before[2], after[2], 8 * sizeof(float));
    double rate;
    expect_ok(cornu_optimizer_learning_rate(cornu_model_optimizer_at(model, 0), &rate));
    assert_true(rate == (double)0.1f);
    expect_failure(cornu_model_optimizer_at(model, 2), CORNU_ERR_ARGUMENT, "no optimizer 2");
    cornu_model_free(model);
}

/* ---- Memory ---- */

static CornuStatus of_two_layers(CornuOwnStep *self, CornuStepCall *step)
{
    (void)self;
    CornuTensor *y = cornu_step_call(step, cornu_as_layer(step->model), step->x[0]);
    CornuTensor *noise = cornu_step_normal(step, cornu_tensor_shape(step->y[0]));
    CornuTensor *error = cornu_op_square(cornu_op_subtract(y, cornu_op_add(step->y[0], noise)));
    CornuTensor *loss = cornu_op_add(cornu_step_mean(step, error), cornu_step_added_loss(step));
    for (int i = 0; i < 2 && step->training; i++)
        cornu_step_minimize(step, cornu_model_optimizer_at(step->model, i), loss);
    cornu_step_log(step, "error", error, NULL);
    return cornu_step_log(step, "loss", loss, NULL);
}

static CornuHistory *fit_tight(CornuModel *model)
{
    return cornu_fit(model, .x = rows(0, N), .y = rows(0, N), .batch_size = BATCH, .epochs = 2,
                     .validation_split = 0.3, .verbose = CORNU_SILENT);
}

static bool build_and_train(CornuDevice *device, CornuStatus *status)
{
    static CornuOwnStep own = { .train = of_two_layers, .test = of_two_layers,
                                .logs = { "error", "loss" } };
    CornuModel *model = cornu_sequential(.name = "tight", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(4, .kernel_regularizer = cornu_l2(0.1)));
    cornu_model_add(model, cornu_dense(FEATURES));
    CornuLayer *first = model ? cornu_model_layer(model, 0) : NULL;
    CornuLayer *second = first ? cornu_model_layer(model, 1) : NULL;
    *status = cornu_error_pending() ? cornu_error_status()
            : cornu_compile(model, .device = device, .step = &own, .optimizers = {
                  { cornu_adam(), { first } }, { cornu_sgd(.momentum = 0.5), { second } } });
    const bool    compiled = *status == CORNU_OK;
    CornuHistory *history = compiled ? fit_tight(model) : NULL;
    const bool    trained = history != NULL;
    if (compiled && !trained) {
        *status = cornu_error_status();
        allocations_fail_after(NEVER);
        cornu_error_take();
        history = fit_tight(model);   /* the model is undamaged */
        if (!history) fail_msg("after a failure: %s", cornu_error_message());
    }
    cornu_history_free(history);
    cornu_model_free(model);
    return trained;
}

static void memory_may_run_out_anywhere(void **state)
{
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int64_t allowed = 0;; allowed++) {
        CornuStatus status;
        allocations_fail_after(allowed);
        const bool trained = build_and_train(*state, &status);
        allocations_fail_after(NEVER);
        cornu_error_take();
        if (trained) break;
        if (status != CORNU_ERR_MEMORY && status != CORNU_ERR_DEVICE)
            fail_msg("after %lld allocations: %s: %s", (long long)allowed,
                     cornu_status_name(status), cornu_error_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_step_as_an_own_one),
        cmocka_unit_test(an_optimizer_applied_twice),
        cmocka_unit_test(own_metrics_and_predictions),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(optimizers_of_layers),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
