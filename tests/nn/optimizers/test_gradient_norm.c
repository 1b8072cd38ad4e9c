/* The norm of all gradients, checked by hand for a linear model p = x w + b with the loss mean (p -
 * y)^2. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../datasets/files.h"
#include "../golden.h"

enum { IN = 5, OUT = 3, BATCH = 16, ROWS = 2 * BATCH + 12, STEPS = 3 };

static float x[ROWS * IN], y[ROWS * OUT], w[IN * OUT], b[OUT];

static void make_data(void)
{
    for (int i = 0; i < ROWS * IN; i++) x[i] = (float)sin(0.9 * i);
    for (int i = 0; i < ROWS * OUT; i++) y[i] = (float)(2.0 * cos(1.7 * i));
    for (int i = 0; i < IN * OUT; i++) w[i] = (float)sin(2.3 * i + 1.0);
    for (int i = 0; i < OUT; i++) b[i] = 0.25f * (float)(i - 1);
}

/* Squares of the gradients of the mean over rows first, first + 1, … with these weights. */
static double squares(int first, int rows)
{
    double d_w[IN][OUT] = { { 0 } }, d_b[OUT] = { 0 }, sum = 0;
    for (int r = first; r < first + rows; r++)
        for (int k = 0; k < OUT; k++) {
            double error = b[k] - y[r * OUT + k];
            for (int i = 0; i < IN; i++) error += (double)x[r * IN + i] * w[i * OUT + k];
            d_b[k] += 2 * error / (rows * OUT);
            for (int i = 0; i < IN; i++) d_w[i][k] += 2 * error * x[r * IN + i] / (rows * OUT);
        }
    for (int k = 0; k < OUT; k++) {
        sum += d_b[k] * d_b[k];
        for (int i = 0; i < IN; i++) sum += d_w[i][k] * d_w[i][k];
    }
    return sum;
}

/* For three steps that change no weight, the last of 12 rows. */
static double expected_mean(void)
{
    return (sqrt(squares(0, BATCH)) + sqrt(squares(BATCH, BATCH)) +
            sqrt(squares(2 * BATCH, ROWS - 2 * BATCH))) / STEPS;
}

typedef struct {
    const char *device;
    int         shards;
    const char *policy;
    double      tolerance;
} Case;

static CornuModel *linear(const Case *c, CornuDevice *device, CornuOptimizer *optimizer,
                          bool gradient_norm)
{
    CornuModel *model = cornu_sequential(.input_shape = { IN }, .policy = c->policy);
    cornu_model_add(model, cornu_dense(OUT));
    expect_ok(cornu_compile(model, .optimizer = optimizer, .loss = CORNU_MEAN_SQUARED_ERROR,
                            .device = device, .gradient_norm = gradient_norm));
    expect_ok(cornu_weight_write(cornu_model_weight(model, 0), cornu_array(w, CORNU_F32, IN, OUT)));
    expect_ok(cornu_weight_write(cornu_model_weight(model, 1), cornu_array(b, CORNU_F32, OUT)));
    return model;
}

static CornuHistory *fit(CornuModel *model, CornuCallback *callback)
{
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, ROWS, IN), .y = cornu_array(y, CORNU_F32, ROWS, OUT),
        .batch_size = BATCH, .no_shuffle = true, .verbose = CORNU_SILENT,
        .validation_data = { .x = cornu_array(x, CORNU_F32, BATCH, IN),
                             .y = cornu_array(y, CORNU_F32, BATCH, OUT) },
        .callbacks = { callback });
    if (!history) fail_msg("%s", cornu_error_message());
    return history;
}

static CornuDevice *open_device(const Case *c)
{
    CornuDevice *device = cornu_device_open(c->device, .shards = c->shards, .threads = 2);
    if (!device) fail_msg("%s", cornu_error_message());
    return device;
}

/* The norm is taken after unscaling and before clipping. */
static void it_is_that_of_the_gradients(void **state)
{
    static const Case cases[] = {
        { "reference", 1, NULL, 1e-6 },          { "cpu", 1, NULL, 1e-5 },
        { "cpu", 4, NULL, 1e-5 },                { "cpu", 8, "mixed_float16", 5e-3 },
        { "tpu", 1, "float32", 1e-5 },           { "tpu", 8, "float32", 1e-5 },
        { "tpu", 8, "mixed_bfloat16", 2e-2 },
    };
    (void)state;
    make_data();
    const double want = expected_mean();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kind = 0; kind < 4; kind++) {
            const Case     *c = &cases[i];
            CornuDevice    *device = open_device(c);
            CornuOptimizer *optimizer =
                kind == 0   ? cornu_sgd(.learning_rate = CORNU_ZERO)
                : kind == 1 ? cornu_sgd(.learning_rate = CORNU_ZERO, .clipnorm = 0.01)
                : kind == 2 ? cornu_sgd(.learning_rate = CORNU_ZERO, .global_clipnorm = 0.01,
                                        .loss_scale_factor = 8)
                            : cornu_sgd(.learning_rate = CORNU_ZERO,
                                        .gradient_accumulation_steps = 2);
            CornuModel   *model = linear(c, device, optimizer, true);
            CornuHistory *history = fit(model, NULL);
            const double  got = cornu_history_get(history, "gradient_norm", 0);
            if (!(fabs(got - want) <= c->tolerance * want))
                fail_msg("%s, %d shards, %s, optimizer %d: %.9g, expected %.9g", c->device,
                         c->shards, c->policy ? c->policy : "-", kind, got, want);
            cornu_history_free(history);
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

/* Each of two groups has its own gradients, of the mean over its rows: here one half of them each,
 * in order. */
static void groups_are_taken_together(void **state)
{
    (void)state;
    const Case   c = { .device = "cpu", .shards = 4 };
    CornuDevice *device = open_device(&c);
    make_data();
    CornuModel *model = linear(&c, device, cornu_cross_shard_optimizer(
        cornu_sgd(.learning_rate = CORNU_ZERO), .group_size = 2), true);
    double values[2];
    expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, BATCH, IN),
                                   cornu_array(y, CORNU_F32, BATCH, OUT), .values = values));
    const double want = sqrt((squares(0, BATCH / 2) + squares(BATCH / 2, BATCH / 2)) / 2);
    assert_float_equal(values[1], want, 1e-5 * want);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* The scaled loss makes the gradients of the first step infinite, though the loss is finite. */
static void steps_that_are_passed_over_do_not_count(void **state)
{
    (void)state;
    const Case   c = { .device = "cpu", .shards = 1 };
    CornuDevice *device = open_device(&c);
    make_data();
    CornuModel *model = linear(&c, device, cornu_loss_scale_optimizer(
        cornu_sgd(.learning_rate = CORNU_ZERO)), true);
    for (int i = 0; i < BATCH * OUT; i++) y[i] = 1e18f;
    for (int i = 0; i < BATCH * IN; i++) x[i] = 1e18f;
    CornuHistory *history = fit(model, NULL);
    const double  got = cornu_history_get(history, "gradient_norm", 0);
    const double  want = (sqrt(squares(BATCH, BATCH)) +
                          sqrt(squares(2 * BATCH, ROWS - 2 * BATCH))) / (STEPS - 1);
    if (!(fabs(got - want) <= 1e-5 * want)) fail_msg("%.9g, expected %.9g", got, want);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* Logged in training, not in evaluation. */
static void it_is_logged(void **state)
{
    (void)state;
    const Case   c = { .device = "cpu", .shards = 1 };
    CornuDevice *device = open_device(&c);
    make_data();
    for (int on = 0; on < 2; on++) {
        CornuModel   *model = linear(&c, device, cornu_sgd(.learning_rate = CORNU_ZERO), on);
        const char   *path = files_path(folder, "log.csv");
        CornuHistory *history = fit(model, cornu_csv_logger(path));
        char          text[400] = "", want[80];
        snprintf(want, sizeof want, "epoch,%sloss,val_loss\r\n", on ? "gradient_norm," : "");
        files_read(path, text, sizeof text - 1);
        assert_memory_equal(text, want, strlen(want));
        assert_int_equal(cornu_history_key_count(history), 2 + on);
        cornu_history_free(history);

        double results[2] = { -1, -1 };
        assert_int_equal(cornu_model_metric_count(model), 1 + on);
        if (on) assert_string_equal(cornu_model_metric_name(model, 1), "gradient_norm");
        expect_ok(cornu_evaluate(model, .x = cornu_array(x, CORNU_F32, ROWS, IN),
                                 .y = cornu_array(y, CORNU_F32, ROWS, OUT), .results = results,
                                 .verbose = CORNU_SILENT));
        assert_true(results[0] > 0);
        assert_float_equal(results[1], on ? 0 : -1, 0);
        cornu_model_free(model);
    }
    cornu_device_close(device);
}

/* In a custom loop, without a model. */
static void it_needs_an_optimizer_that_is_built(void **state)
{
    (void)state;
    CornuDevice    *device = cornu_device_open("cpu", .threads = 1);
    CornuGraph     *graph = cornu_graph_create(device);
    CornuOptimizer *optimizer = cornu_adam();
    CornuTensor    *g = cornu_op_constant(graph, cornu_type(CORNU_F32, 16), 3);
    assert_null(cornu_optimizer_gradient_norm(optimizer, graph, &g));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "adam: gradient_norm comes after build");
    CornuVariable *v = cornu_variable_create(device, cornu_type(CORNU_F32, 16), "v");
    expect_ok(cornu_optimizer_build(optimizer, &v, 1));
    CornuTensor *norm = cornu_optimizer_gradient_norm(optimizer, graph, &g);
    float        value = 0;
    CornuArray   to = cornu_array_from(&value, cornu_scalar(CORNU_F32));
    expect_ok(cornu_run(graph, &norm, 1, &to));
    assert_float_equal(value, 12, 1e-5);
    cornu_graph_free(graph);
    cornu_variable_free(v);
    cornu_optimizer_free(optimizer);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_that_of_the_gradients),
        cmocka_unit_test(groups_are_taken_together),
        cmocka_unit_test(steps_that_are_passed_over_do_not_count),
        cmocka_unit_test_setup_teardown(it_is_logged, files_begin, files_end),
        cmocka_unit_test(it_needs_an_optimizer_that_is_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
