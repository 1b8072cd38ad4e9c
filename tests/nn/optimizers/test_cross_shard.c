/* Reduction of gradients over shards: clipped, then summed in slices, in groups. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../expect.h"

enum { SHARDS = 8, MOST = 100, A = 5, B = 21 };   /* elements of the two weights */

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static void refuses(CornuStatus status, CornuStatus expected, const char *part)
{
    assert_int_equal(status, expected);
    if (!strstr(cornu_error_message(), part)) fail_msg("%s", cornu_error_message());
}

/* The gradient on shard s of element k of weight i. */
static float gradient(int s, int i, int k) { return (float)((s * 7 + i * 3 + k * 5) % 11 - 5) / 4; }

static int count_of(int i) { return i ? B : A; }

/* One step from weights of 0 with each shard's gradients. */
static void step(CornuDevice *device, CornuOptimizer *optimizer, float *a, float *b)
{
    CornuGraph    *graph = made(cornu_graph_create(device));
    CornuVariable *w[2];
    CornuTensor   *g[2];
    for (int i = 0; i < 2; i++) {
        float      values[MOST * B], *to = values;
        const int  count = count_of(i), shards = cornu_device_shards(device);
        w[i] = made(cornu_variable_create(device, cornu_type(CORNU_F32, count), i ? "b" : "a"));
        g[i] = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, count));
        for (int s = 0; s < shards; s++)
            for (int k = 0; k < count; k++) *to++ = gradient(s, i, k);
        expect_ok(cornu_graph_feed(g[i], cornu_array(values, CORNU_F32, shards, count)));
    }
    expect_ok(cornu_optimizer_build(optimizer, w, 2));
    expect_ok(cornu_optimizer_apply(optimizer, graph, g));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_variable_read(w[0], cornu_array(a, CORNU_F32, A)));
    expect_ok(cornu_variable_read(w[1], cornu_array(b, CORNU_F32, B)));
    cornu_graph_free(graph);
    for (int i = 0; i < 2; i++) cornu_variable_free(w[i]);
    cornu_optimizer_free(optimizer);
}

/* The gradient that is applied, and its norm. */
static double summed(int shards, int i, int k)
{
    double sum = 0;
    for (int s = 0; s < shards; s++) sum += gradient(s, i, k);
    return sum;
}

static double norm(int shards, int i)
{
    double sum = 0;
    for (int k = 0; k < count_of(i); k++) sum += pow(summed(shards, i, k), 2);
    return sqrt(sum);
}

/* The factor by which clipping scales the gradient of weight i; none for clipvalue. */
typedef double Factor(int shards, int i);

static double whole(int shards, int i) { return (void)shards, (void)i, 1.0; }
static double each(int shards, int i) { return fmin(1.0, 2.0 / norm(shards, i)); }
static double all(int shards, int i)
{
    (void)i;
    return fmin(1.0, 2.0 / hypot(norm(shards, 0), norm(shards, 1)));
}

static void expect_clipped(int shards, Factor *factor, double most, const float *a, const float *b)
{
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < count_of(i); k++) {
            const double g = summed(shards, i, k) * factor(shards, i);
            const float  got = i ? b[k] : a[k];
            if (!(fabs(got + fmax(-most, fmin(most, g))) <= 1.25e-6 * shards))
                fail_msg("%d shards: weight %d[%d] is %g, not %g", shards, i, k, got, -g);
        }
}

/* As Keras clips after its strategies have aggregated: keras/src/optimizers/base_optimizer.py,
 * _backend_apply_gradients; tf_keras' Optimizer.apply_gradients, which aggregates first. */
static void gradients_are_clipped_once_they_have_met(void **state)
{
    (void)state;
    static const int numbers[] = { SHARDS, 3, 12, 35, MOST };   /* the weights divide into none */
    float            a[A], b[B];
    for (int i = 0; i < 15; i++) {
        const int    shards = numbers[i / 3];
        CornuDevice *device = made(cornu_device_open("cpu", .shards = shards,
                                                     .threads = 1 + i % 3));
        step(device, cornu_sgd(.learning_rate = 1), a, b);
        expect_clipped(shards, whole, INFINITY, a, b);
        step(device, cornu_sgd(.learning_rate = 1, .clipvalue = 0.5), a, b);
        expect_clipped(shards, whole, 0.5, a, b);
        step(device, cornu_sgd(.learning_rate = 1, .clipnorm = 2), a, b);
        expect_clipped(shards, each, INFINITY, a, b);
        step(device, cornu_sgd(.learning_rate = 1, .global_clipnorm = 2), a, b);
        expect_clipped(shards, all, INFINITY, a, b);
        cornu_device_close(device);
    }
}

/* Each group sums for itself; of 100 shards the first group, whose weights are read, has every
 * fourth. */
static void groups_of_many_shards_sum_their_own(void **state)
{
    (void)state;
    float                 a[A], b[B];
    CornuDevice          *device = made(cornu_device_open("cpu", .shards = MOST, .threads = 2));
    CornuCrossShardConfig config = { .optimizer = cornu_sgd(.learning_rate = 1), .group_size = 25 };
    for (int i = 0; i < MOST; i++) config.group_assignment[i] = i / 25 + i % 25 * 4;
    step(device, made(cornu_cross_shard_optimizer_from(&config)), a, b);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < count_of(i); k++) {
            double sum = 0;
            for (int s = 0; s < MOST; s += 4) sum += gradient(s, i, k);
            assert_float_equal(i ? b[k] : a[k], -sum, 0);   /* quarters: exact */
        }
    cornu_device_close(device);
}

/* A gradient equal on all shards is complete: it is applied once. */
static void common_gradients_are_whole(void **state)
{
    (void)state;
    CornuDevice    *device = made(cornu_device_open("cpu", .shards = SHARDS));
    CornuGraph     *graph = made(cornu_graph_create(device));
    CornuVariable  *w = made(cornu_variable_create(device, cornu_type(CORNU_F32, A), "w"));
    CornuOptimizer *optimizer = cornu_sgd(.learning_rate = 1, .momentum = 0.5);
    CornuTensor    *g = cornu_op_constant(graph, cornu_type(CORNU_F32, A), 3);
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_optimizer_apply(optimizer, graph, &g));
    for (int i = 0; i < 2; i++) expect_ok(cornu_run(graph, NULL, 0, NULL));
    float got[A];
    expect_ok(cornu_variable_read(w, cornu_array(got, CORNU_F32, A)));
    for (int k = 0; k < A; k++) assert_float_equal(got[k], -3 - 4.5, 1e-6);
    expect_ok(cornu_variable_read(cornu_optimizer_variable(optimizer, 2),
                                  cornu_array(got, CORNU_F32, A)));
    for (int k = 0; k < A; k++) assert_float_equal(got[k], -4.5, 1e-6);
    cornu_graph_free(graph);
    cornu_variable_free(w);
    cornu_optimizer_free(optimizer);
    cornu_device_close(device);
}

/* ---- Models ---- */

enum { ROWS = 44, BATCH = 16, IN = 6, OUT = 3, WEIGHTS = IN * 7 + 7 + 7 * OUT + OUT };

typedef struct {
    float weights[WEIGHTS], slots[2 * WEIGHTS];
} Learned;

/* Runs three steps, the last of 12 rows, and reads the weights, and the slots if any. */
static void learn(int shards, CornuOptimizer *optimizer, Learned *learned)
{
    static float x[ROWS * IN], y[ROWS * OUT];
    for (int i = 0; i < ROWS * IN; i++) x[i] = (float)sin(0.9 * i);
    for (int i = 0; i < ROWS * OUT; i++) y[i] = (float)cos(1.7 * i);
    cornu_set_random_seed(3);
    CornuDevice *device = made(cornu_device_open("cpu", .shards = shards, .threads = 2));
    CornuModel  *model = made(cornu_sequential(.input_shape = { IN }));
    cornu_model_add(model, cornu_dense(7, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dense(OUT));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .optimizer = optimizer,
                            .device = device));
    CornuHistory *history = made(cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, ROWS, IN), .y = cornu_array(y, CORNU_F32, ROWS, OUT),
        .batch_size = BATCH, .no_shuffle = true, .verbose = CORNU_SILENT));
    /* On one shard the update reads the loss scale after its update: that number is copied. */
    assert_int_equal(cornu_model_statistics(model)->copies, shards == 1 && optimizer->scales_loss);
    float *to = learned->weights;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(to, weight->type)));
        to += cornu_type_count(weight->type);
    }
    to = learned->slots;
    for (int i = 2; i < cornu_optimizer_variable_count(cornu_model_optimizer(model)); i++) {
        CornuVariable *slot = cornu_optimizer_variable(cornu_model_optimizer(model), i);
        expect_ok(cornu_variable_read(slot, cornu_array_from(to, cornu_variable_type(slot))));
        to += cornu_type_count(cornu_variable_type(slot));
    }
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void expect_near(const float *got, const float *want, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * fmaxf(1, fabsf(want[i]))))
            fail_msg("%d: %g, expected %g", i, got[i], want[i]);
}

/* Every optimizer keeps its slots in slices; together they equal those of one shard. */
static void slices_are_the_slots_of_one_shard(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        Learned one = { { 0 }, { 0 } }, many = one;
        for (int shards = 1; shards <= 8; shards *= 8) {
            CornuOptimizer *optimizer =
                kind == 0   ? cornu_adam(.learning_rate = 0.01, .weight_decay = 0.1)
                : kind == 1 ? cornu_sgd(.learning_rate = 0.1, .momentum = 0.9, .nesterov = true)
                : kind == 2 ? cornu_rmsprop(.learning_rate = 0.01, .momentum = 0.5)
                : cornu_loss_scale_optimizer(cornu_sgd(.learning_rate = 0.1, .momentum = 0.9));
            learn(shards, optimizer, shards == 1 ? &one : &many);
        }
        expect_near(many.weights, one.weights, WEIGHTS);
        expect_near(many.slots, one.slots, kind == 3 ? WEIGHTS : 2 * WEIGHTS);
    }
}

static void reductions(void **state)
{
    (void)state;
    static Learned plain, mean, sum, eight;
    learn(8, cornu_sgd(.learning_rate = 0.01), &plain);
    learn(8, cornu_cross_shard_optimizer(cornu_sgd(.learning_rate = 0.01)), &mean);
    assert_memory_equal(&mean, &plain, sizeof mean);
    learn(8, cornu_cross_shard_optimizer(cornu_sgd(.learning_rate = 0.01), CORNU_SUM), &sum);
    learn(8, cornu_sgd(.learning_rate = 0.08), &eight);
    expect_near(sum.weights, eight.weights, WEIGHTS);
    /* A single shard has nothing to reduce. */
    learn(1, cornu_cross_shard_optimizer(cornu_sgd(.learning_rate = 0.01), CORNU_SUM,
                                         .group_size = 4), &sum);
    expect_near(sum.weights, plain.weights, WEIGHTS);
    /* Clipping applies to the larger gradients of the sum. */
    learn(8, cornu_cross_shard_optimizer(cornu_sgd(.learning_rate = 0.01, .clipvalue = 0.01),
                                         CORNU_SUM), &sum);
    learn(8, cornu_sgd(.learning_rate = 0.08, .clipvalue = 0.01 / 8), &eight);
    expect_near(sum.weights, eight.weights, WEIGHTS);
}

/* Two groups of two shards see only their own rows: each learns like a device with just those. */
static void groups_learn_apart(void **state)
{
    (void)state;
    enum { N = 4, STEPS = 4 };   /* after 3 steps half the rate had the same result */
    CornuDevice    *device = made(cornu_device_open("cpu", .shards = N, .threads = 2));
    CornuVariable  *w = made(cornu_variable_create(device, cornu_type(CORNU_F32, 2), "w"));
    CornuOptimizer *optimizer = cornu_cross_shard_optimizer(
        cornu_sgd(.learning_rate = 0.5, .momentum = 0.5), .group_size = 2,
        .group_assignment = { 0, 3, 1, 2 });
    const float start[2] = { 1, -1 };
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_variable_write(w, cornu_array((void *)(uintptr_t)start, CORNU_F32, 2)));
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, 2));
    CornuTensor *v = cornu_read(graph, w), *d;
    /* A quarter of the sum of (w - x)^2 over each of four rows: the mean over the batch. */
    CornuTensor *rows = cornu_op_sum(cornu_op_square(cornu_op_subtract(v, x)));
    CornuTensor *loss = cornu_optimizer_scale_loss(optimizer, cornu_op_scale(rows, 1.0 / N));
    expect_ok(cornu_gradients(made(loss), &v, 1, &d));
    expect_ok(cornu_optimizer_apply(optimizer, graph, &d));
    float of_x[N][2] = { { 1, 2 }, { 30, 40 }, { 50, 60 }, { 3, 4 } }, seen[N][2];
    expect_ok(cornu_graph_feed(x, cornu_array(of_x, CORNU_F32, N, 2)));
    for (int i = 0; i < STEPS; i++) expect_ok(cornu_run(graph, NULL, 0, NULL));
    CornuArray to = cornu_array(seen, CORNU_F32, N, 2);
    expect_ok(cornu_run(graph, &v, 1, &to));   /* before a fifth step */
    for (int group = 0; group < 2; group++)
        for (int k = 0; k < 2; k++) {
            const int first = group ? 1 : 0, second = group ? 2 : 3;
            double    value = start[k], m = 0;
            for (int i = 0; i < STEPS; i++) {
                /* the mean over the group's two rows */
                double g = (value - of_x[first][k]) + (value - of_x[second][k]);
                m = 0.5 * m - 0.5 * g;
                value += m;
            }
            assert_float_equal(seen[first][k], value, 1e-3);
            assert_float_equal(seen[second][k], value, 1e-3);
        }
    /* Reading takes shard 0's value; writing sets all. */
    float got[2];
    expect_ok(cornu_variable_write(w, cornu_array((void *)(uintptr_t)start, CORNU_F32, 2)));
    expect_ok(cornu_variable_read(w, cornu_array(got, CORNU_F32, 2)));
    assert_memory_equal(got, start, sizeof got);
    expect_ok(cornu_run(graph, &v, 1, &to));
    for (int s = 0; s < N; s++) assert_memory_equal(seen[s], start, sizeof start);
    expect_ok(cornu_variable_read(w, cornu_array(got, CORNU_F32, 2)));
    assert_true(got[0] != start[0]);
    expect_ok(cornu_run(graph, &v, 1, &to));
    assert_memory_equal(got, seen[0], sizeof got);
    cornu_graph_free(graph);
    cornu_variable_free(w);
    cornu_optimizer_free(optimizer);
    cornu_device_close(device);
}

static CornuStatus build(CornuDevice *device, CornuOptimizer *optimizer)
{
    CornuVariable *w = made(cornu_variable_create(device, cornu_type(CORNU_F32, 2), "w"));
    CornuStatus    status = cornu_optimizer_build(made(optimizer), &w, 1);
    cornu_optimizer_free(optimizer);
    cornu_variable_free(w);
    return status;
}

static void wrong_groups_are_refused(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("cpu", .shards = 8));
    refuses(build(device, cornu_cross_shard_optimizer(cornu_adam(), .group_size = 3)),
            CORNU_ERR_ARGUMENT, "adam: groups of 3 shards, expected a size that divides the 8");
    refuses(build(device, cornu_cross_shard_optimizer(
                              cornu_adam(), .group_size = 4,
                              .group_assignment = { 0, 2, 4, 6, 1, 3, 5, 9 })),
            CORNU_ERR_ARGUMENT, "adam: shard 9 is in a group, expected 0 to 7");
    refuses(build(device, cornu_cross_shard_optimizer(
                              cornu_adam(), .group_size = 4,
                              .group_assignment = { 0, 2, 4, 6, 1, 3, 5, 6 })),
            CORNU_ERR_ARGUMENT, "adam: shard 6 is in the groups twice");
    assert_null(cornu_cross_shard_optimizer(cornu_adam(), .group_assignment = { 1, 0 }));
    refuses(cornu_error_take(), CORNU_ERR_ARGUMENT, "expected .group_size, too");
    assert_null(cornu_cross_shard_optimizer(cornu_adam(), .group_size = 1025));
    refuses(cornu_error_take(), CORNU_ERR_ARGUMENT, ".group_size is 1025, expected 1 to 1024");
    assert_null(cornu_cross_shard_optimizer(cornu_adam(), (CornuReduction)5));
    refuses(cornu_error_take(), CORNU_ERR_ARGUMENT, ".reduction is 5");
    assert_null(cornu_cross_shard_optimizer(NULL));
    refuses(cornu_error_take(), CORNU_ERR_ARGUMENT, ".optimizer is required");
    assert_null(cornu_cross_shard_optimizer(cornu_adam(.beta_1 = 2)));
    refuses(cornu_error_take(), CORNU_ERR_ARGUMENT, "adam: .beta_1 is 2");
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_clipped_once_they_have_met),
        cmocka_unit_test(groups_of_many_shards_sum_their_own),
        cmocka_unit_test(common_gradients_are_whole),
        cmocka_unit_test(slices_are_the_slots_of_one_shard),
        cmocka_unit_test(reductions),
        cmocka_unit_test(groups_learn_apart),
        cmocka_unit_test(wrong_groups_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
