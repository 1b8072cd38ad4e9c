/* Strategies: scopes, conversion, and a compiled model that moves between devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../allocations.h"
#include "../golden.h"
#include "../../skip.h"

enum { ROWS = 64, MOST = 200 };

static uint8_t images[ROWS][28][28], labels[ROWS];

static CornuArray x(void) { return cornu_array(images, CORNU_U8, ROWS, 28, 28); }
static CornuArray y(void) { return cornu_array(labels, CORNU_U8, ROWS); }

static int set_up(void **state)
{
    (void)state;
    unsetenv("CORNU_TPU"), unsetenv("COLAB_TPU_ADDR"), unsetenv("TPU_NAME");
    for (int i = 0; i < ROWS; i++) {
        labels[i] = (uint8_t)(i * 7 % 10);
        for (int k = 0; k < 784; k++)
            images[i][k / 28][k % 28] = (uint8_t)((i * 131 + k * (labels[i] + 3) * 17) % 256);
    }
    return 0;
}

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static CornuModel *network(const char *policy)
{
    CornuModel *model = cornu_sequential(.name = "net", .input_shape = { 28, 28, 1 },
                                         .input_scale = 1.0 / 255.0, .policy = policy);
    cornu_model_add(model, cornu_conv2d(4, 5, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    return made(model);
}

static CornuModel *compiled(const char *policy, CornuDevice *device)
{
    CornuModel *model = network(policy);
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }, .device = device));
    return model;
}

static void train(CornuModel *model, int steps)
{
    for (int i = 0; i < steps; i++) expect_ok(cornu_train_on_batch(model, x(), y(), NULL));
}

/* ---- Every value of a model, for comparing ---- */

typedef struct {
    float   value[20000];
    int64_t count;
} Values;

static void append(Values *values, const CornuVariable *variable)
{
    const CornuType type = cornu_variable_type(variable);
    double          scalar;
    if (type.dtype == CORNU_F32) {
        expect_ok(cornu_variable_read(
            variable, cornu_array_from(values->value + values->count, type)));
    } else {
        expect_ok(cornu_variable_get(variable, &scalar));
        values->value[values->count] = (float)scalar;
    }
    values->count += cornu_type_count(type);
    assert_true(values->count <= 20000);
}

static void read_all(CornuModel *model, Values *values)
{
    values->count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        append(values, cornu_model_weight(model, i)->variable);
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++)
        append(values, cornu_model_optimizer_variable(model, i));
}

static void expect_equal(const Values *a, const Values *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->value, b->value, (size_t)a->count * sizeof *a->value);
}

/* ---- Moving ---- */

/* From one device to another and back: every weight, slot and counter is moved, and training
 * continues as if nothing had happened. */
static void a_moved_model_trains_on_as_if_it_had_stayed(void **state)
{
    (void)state;
    static Values before, after, stayed, moved;
    CornuDevice  *cpu = made(cornu_device_open("cpu"));
    CornuDevice  *other = made(cornu_device_open("cpu", .threads = 3));
    CornuModel   *model = compiled("float32", cpu), *peer = compiled("float32", cpu);
    expect_ok(cornu_optimizer_set_learning_rate(cornu_model_optimizer(peer), 0.005));
    train(model, 3);
    expect_ok(cornu_optimizer_set_learning_rate(cornu_model_optimizer(model), 0.005));
    read_all(model, &before);
    expect_ok(cornu_model_move(model, other));
    assert_ptr_equal(cornu_model_device(model), other);
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++)
        assert_ptr_equal(cornu_variable_device(cornu_model_optimizer_variable(model, i)), other);
    read_all(model, &after);
    expect_equal(&before, &after);
    train(model, 2);
    expect_ok(cornu_model_move(model, NULL));
    train(model, 2);
    read_all(model, &moved);

    expect_ok(cornu_optimizer_set_learning_rate(cornu_model_optimizer(peer), 0.01));
    train(peer, 3);
    expect_ok(cornu_optimizer_set_learning_rate(cornu_model_optimizer(peer), 0.005));
    train(peer, 4);
    read_all(peer, &stayed);
    expect_equal(&moved, &stayed);
    cornu_model_free(model), cornu_model_free(peer);
    cornu_device_close(cpu), cornu_device_close(other);
}

/* The tpu has another default policy, which the model gets there and loses on the way back; its
 * weights stay. */
static void precision_follows_the_device(void **state)
{
    (void)state;
    static Values before, after;
    CornuStrategy *strategy = made(cornu_tpu_strategy());
    CornuModel    *model = compiled(NULL, NULL);
    double         first[2], last[2];
    assert_string_equal(cornu_model_policy(model)->name, "float32");
    expect_ok(cornu_train_on_batch(model, x(), y(), first));
    read_all(model, &before);
    assert_ptr_equal(cornu_keras_to_tpu_model(model, strategy), model);
    assert_string_equal(cornu_model_policy(model)->name, "mixed_bfloat16");
    read_all(model, &after);
    expect_equal(&before, &after);
    train(model, 10);
    assert_int_equal(cornu_model_statistics(model)->fallbacks, 0);
    read_all(model, &before);
    expect_ok(cornu_model_move(model, NULL));
    assert_string_equal(cornu_device_name(cornu_model_device(model)), "cpu");
    assert_string_equal(cornu_model_policy(model)->name, "float32");
    read_all(model, &after);
    expect_equal(&before, &after);
    cornu_strategy_free(strategy);   /* nothing is left there */
    expect_ok(cornu_train_on_batch(model, x(), y(), last));
    assert_true(last[0] < 0.7 * first[0]);
    cornu_model_free(model);
}

/* In float32 a tpu with one shard computes the same as the cpu: conversion in between changes the
 * weights of ten steps only by rounding. */
static void a_converted_model_learns_the_same(void **state)
{
    (void)state;
    static Values  stayed, moved;
    CornuStrategy *strategy = made(cornu_tpu_strategy(.num_shards = 1));
    CornuModel    *model = network("float32"), *peer = network("float32");
    CornuModel    *both[] = { model, peer };
    for (int i = 0; i < 2; i++)
        expect_ok(cornu_compile(both[i], .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .optimizer = cornu_sgd(.learning_rate = 0.05, .momentum = 0.9)));
    train(model, 3);
    assert_non_null(cornu_keras_to_tpu_model(model, strategy));
    train(model, 4);
    expect_ok(cornu_model_move(model, NULL));
    train(model, 3);
    train(peer, 10);
    read_all(model, &moved), read_all(peer, &stayed);
    assert_int_equal(moved.count, stayed.count);
    for (int64_t i = 0; i < moved.count; i++)
        assert_float_equal(moved.value[i], stayed.value[i], 1e-5);
    cornu_model_free(model), cornu_model_free(peer);
    cornu_strategy_free(strategy);
}

/* A schedule's rate, which is not a variable, and the loss scale move too. */
static void settings_move(void **state)
{
    (void)state;
    CornuDevice *other = made(cornu_device_open("reference"));
    CornuModel  *model = network("mixed_float16");
    double       before, after;
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_adam(.schedule = cornu_exponential_decay(
                                                        0.01, 2, 0.5, .staircase = true))));
    train(model, 5);
    const int count = cornu_model_optimizer_variable_count(model);
    expect_ok(cornu_optimizer_learning_rate(cornu_model_optimizer(model), &before));
    expect_ok(cornu_model_move(model, other));
    expect_ok(cornu_optimizer_learning_rate(cornu_model_optimizer(model), &after));
    assert_float_equal(before, 0.0025, 1e-9);
    assert_float_equal(after, before, 1e-9);
    assert_int_equal(cornu_model_optimizer_variable_count(model), count);
    expect_ok(cornu_variable_get(cornu_model_optimizer_variable(model, 3), &after));
    assert_float_equal(after, 32768.0, 0.0);
    train(model, 1);
    cornu_model_free(model);
    cornu_device_close(other);
}

static void moves_that_cannot_be_are_refused(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("cpu"));
    CornuModel  *model = network(NULL);
    assert_int_equal(cornu_model_move(model, device), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(), "net: not compiled; cornu_compile comes first");
    CornuStrategy *strategy = made(cornu_tpu_strategy());
    assert_null(cornu_keras_to_tpu_model(model, strategy));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "net: not compiled");
    assert_null(cornu_keras_to_tpu_model(model, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "the strategy is NULL");
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    cornu_device_close(device);
}

/* Each allocation fails in turn: the model either stays where it was, intact, or has moved; in both
 * cases training continues. */
static void a_move_without_memory_changes_nothing(void **state)
{
    (void)state;
    static Values before, after;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDevice *cpu = made(cornu_device_open("cpu")), *other = made(cornu_device_open("cpu"));
    CornuModel  *model = compiled("float32", cpu);
    CornuStatus  status = CORNU_ERR_MEMORY;
    train(model, 2);
    read_all(model, &before);
    for (int i = 0; i < MOST && status; i++) {
        allocations_fail_after(i);
        status = cornu_model_move(model, other);
        allocations_fail_after(NEVER);
        if (status) assert_int_equal(status, CORNU_ERR_MEMORY);
        read_all(model, &after);
        expect_equal(&before, &after);
        const CornuDevice *where = cornu_model_device(model);
        for (int k = 0; k < cornu_model_weight_count(model); k++)
            assert_ptr_equal(cornu_variable_device(cornu_model_weight(model, k)->variable), where);
        if (status && where == other) expect_ok(cornu_model_move(model, cpu));
    }
    expect_ok(status);
    train(model, 1);
    cornu_model_free(model);
    cornu_device_close(cpu), cornu_device_close(other);
}

/* ---- Strategies and scopes ---- */

static void a_strategy_opens_what_is_found(void **state)
{
    (void)state;
    CornuTpuTarget target;
    setenv("CORNU_TPU", "v4-8", 1);
    expect_ok(cornu_tpu_resolve(&target));
    CornuStrategy *found = made(cornu_tpu_strategy(.num_shards = 2, .threads = 1,
                                                   .precision = CORNU_PRECISION_HIGH));
    unsetenv("CORNU_TPU");
    CornuStrategy *given = made(cornu_tpu_strategy(&target));
    assert_non_null(strstr(cornu_device_description(cornu_strategy_device(found)), "v4-8"));
    assert_int_equal(cornu_device_shards(cornu_strategy_device(found)), 2);
    assert_int_equal(cornu_device_threads(cornu_strategy_device(found)), 1);
    assert_non_null(strstr(cornu_device_description(cornu_strategy_device(found)),
                           "precision high"));
    assert_non_null(strstr(cornu_device_description(cornu_strategy_device(given)), "v4-8"));
    assert_int_equal(cornu_device_shards(cornu_strategy_device(given)), 4);
    assert_null(strstr(cornu_device_description(cornu_strategy_device(given)), "precision"));
    cornu_strategy_free(found), cornu_strategy_free(given);
    cornu_strategy_free(NULL);
}

static void strategies_that_cannot_be_are_refused(void **state)
{
    (void)state;
    assert_null(cornu_tpu_strategy(.num_shards = 1025));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "1025 shards, expected 1 to 1024");
    assert_null(cornu_tpu_strategy(.num_shards = -1));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "-1 shards, expected 1 to 1024");
    assert_null(cornu_tpu_strategy(.precision = (CornuPrecision)3));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "precision 3, expected highest, high or");
    assert_null(cornu_tpu_strategy(.iterations_per_loop = -2));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".iterations_per_loop is -2, expected 1");
    setenv("CORNU_TPU", "10.0.0.2:8470", 1);
    assert_null(cornu_tpu_strategy());
    expect_error(cornu_error_take(), CORNU_ERR_DEVICE, "CORNU_TPU is 10.0.0.2:8470");
    setenv("CORNU_TPU", "v9-8", 1);
    assert_null(cornu_tpu_strategy());
    expect_error(cornu_error_take(), CORNU_ERR_DEVICE, "\"v9-8\" is unknown, expected");
    unsetenv("CORNU_TPU");
}

static void iterations_per_loop_are_steps_per_execution(void **state)
{
    (void)state;
    CornuStrategy *strategy = made(cornu_tpu_strategy(.iterations_per_loop = 7));
    CornuDevice   *cpu = made(cornu_device_open("cpu"));
    CornuModel    *model = compiled(NULL, NULL);
    assert_int_equal(cornu_model_steps_per_execution(model), 1);
    assert_non_null(cornu_keras_to_tpu_model(model, strategy));
    assert_int_equal(cornu_model_steps_per_execution(model), 7);
    CORNU_SCOPE(strategy) {
        expect_ok(cornu_compile(model));
        assert_int_equal(cornu_model_steps_per_execution(model), 7);
        expect_ok(cornu_compile(model, .steps_per_execution = 3));
        assert_int_equal(cornu_model_steps_per_execution(model), 3);
        expect_ok(cornu_compile(model, .device = cpu));
        assert_int_equal(cornu_model_steps_per_execution(model), 1);
    }
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    cornu_device_close(cpu);
}

static CornuDevice *device_of_a_compiled_model(CornuDevice *given)
{
    CornuModel  *model = compiled(NULL, given);
    CornuDevice *device = cornu_model_device(model);
    cornu_model_free(model);
    return device;
}

/* Blocks with continue and break, and nested ones. */
static void compiling_in_a_scope_uses_its_device(void **state)
{
    (void)state;
    CornuStrategy *outer = made(cornu_tpu_strategy()), *inner = made(cornu_tpu_strategy());
    CornuDevice   *on = cornu_strategy_device(outer), *in = cornu_strategy_device(inner);
    CornuDevice   *cpu = made(cornu_device_open("cpu"));
    int            runs = 0;
    CORNU_SCOPE(outer) {
        assert_ptr_equal(device_of_a_compiled_model(NULL), on);
        assert_ptr_equal(device_of_a_compiled_model(cpu), cpu);
        CORNU_SCOPE(inner) {
            runs++;
            assert_ptr_equal(device_of_a_compiled_model(NULL), in);
        }
        assert_ptr_equal(cornu_strategy_in_scope(), outer);
        CORNU_SCOPE(inner) {
            if (runs++ == 1) break;
            fail();
        }
        assert_ptr_equal(cornu_strategy_in_scope(), outer);
        CORNU_SCOPE(inner) if (runs++ == 2) continue;
        assert_ptr_equal(cornu_strategy_in_scope(), outer);
    }
    assert_int_equal(runs, 3);
    assert_null(cornu_strategy_in_scope());
    assert_ptr_not_equal(device_of_a_compiled_model(NULL), on);
    cornu_strategy_free(outer), cornu_strategy_free(inner);
    cornu_device_close(cpu);
}

static void a_scope_without_strategy_lets_nothing_succeed(void **state)
{
    (void)state;
    CornuModel *model = network(NULL);
    int         runs = 0;
    CORNU_SCOPE(cornu_tpu_strategy(.num_shards = -5)) {
        runs++;
        assert_int_equal(cornu_compile(model), CORNU_ERR_ARGUMENT);
    }
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "-5 shards, expected 1 to 1024");
    CORNU_SCOPE(NULL) assert_int_equal(cornu_compile(model), CORNU_ERR_ARGUMENT);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "the strategy is NULL");
    assert_int_equal(runs, 1);
    assert_null(cornu_strategy_in_scope());
    cornu_model_free(model);
}

static void scopes_never_left_are_found_out(void **state)
{
    (void)state;
    CornuStrategy *strategy = made(cornu_tpu_strategy());
    for (int i = 0; i < 8; i++) assert_true(cornu_scope_enter(strategy));
    assert_false(cornu_error_pending());
    cornu_scope_enter(strategy);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "9 scopes in each other");
    for (int i = 0; i < 9; i++) assert_false(cornu_scope_leave());
    assert_null(cornu_strategy_in_scope());
    cornu_scope_leave();   /* one too many */
    CORNU_SCOPE(strategy) assert_ptr_equal(cornu_strategy_in_scope(), strategy);
    cornu_strategy_free(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moved_model_trains_on_as_if_it_had_stayed),
        cmocka_unit_test(precision_follows_the_device),
        cmocka_unit_test(a_converted_model_learns_the_same),
        cmocka_unit_test(settings_move),
        cmocka_unit_test(moves_that_cannot_be_are_refused),
        cmocka_unit_test(a_move_without_memory_changes_nothing),
        cmocka_unit_test(a_strategy_opens_what_is_found),
        cmocka_unit_test(strategies_that_cannot_be_are_refused),
        cmocka_unit_test(iterations_per_loop_are_steps_per_execution),
        cmocka_unit_test(compiling_in_a_scope_uses_its_device),
        cmocka_unit_test(a_scope_without_strategy_lets_nothing_succeed),
        cmocka_unit_test(scopes_never_left_are_found_out),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
