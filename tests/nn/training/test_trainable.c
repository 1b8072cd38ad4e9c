/* When a model reads which weights are trainable: as Keras 3.15 on TensorFlow, where the first step
 * after compile does. Which weights move after what was tried there, with the same two layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/optimizers/optimizer_internal.h"
#include "tiny.h"

enum { WEIGHTS = 4, MOST = 8 };

static char logged[4096];

static void remember(void *context, CornuLogLevel level, const char *message)
{
    (void)context;
    if (level == CORNU_LOG_WARNING)
        strncat(logged, message, sizeof logged - strlen(logged) - 1);
}

static int open_all(void **state)
{
    cornu_set_log(CORNU_LOG_WARNING, remember, NULL);
    return open_device(state);
}

static int close_all(void **state)
{
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    return close_device(state);
}

/* Two layers, four weights. */
static CornuModel *two_layers(void)
{
    cornu_set_random_seed(1);
    CornuModel *model = cornu_sequential(.name = "two", .input_shape = { 3 });
    expect_ok(cornu_model_add(model, cornu_dense(4, .name = "a")));
    expect_ok(cornu_model_add(model, cornu_dense(2, .name = "b", .activation = CORNU_SOFTMAX)));
    return model;
}

static void compile_with(CornuModel *model, CornuDevice *device, CornuOptimizer *optimizer)
{
    expect_ok(cornu_compile(model, .optimizer = optimizer, .device = device,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
}

static CornuModel *compiled(CornuDevice *device)
{
    CornuModel *model = two_layers();
    compile_with(model, device, cornu_adam(.learning_rate = 0.1));
    return model;
}

static void set_trainable(CornuModel *model, const char *layer, bool trainable)
{
    cornu_layer_set_trainable(cornu_model_find_layer(model, layer), trainable);
}

static void read_all(const CornuModel *model, float values[WEIGHTS][3 * 4])
{
    assert_int_equal(cornu_model_weight_count(model), WEIGHTS);
    memset(values, 0, sizeof(float[WEIGHTS][3 * 4]));
    for (int i = 0; i < WEIGHTS; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(values[i], weight->type)));
    }
}

/* Trains on the first rows; which[i]: whether weight i has to have moved. */
static void fit_moves(CornuModel *model, int64_t rows, const char *which)
{
    float before[WEIGHTS][3 * 4], after[WEIGHTS][3 * 4];
    read_all(model, before);
    CornuHistory *history = cornu_fit(model, .x = rows_x(0, rows), .y = rows_y(0, rows),
                                      .verbose = CORNU_SILENT);
    expect_ok(history ? CORNU_OK : cornu_error_take());
    cornu_history_free(history);
    read_all(model, after);
    for (int i = 0; i < WEIGHTS; i++)
        assert_int_equal(memcmp(before[i], after[i], sizeof before[i]) != 0, which[i] == '1');
}

static void frozen_before_the_first_step(void **state)
{
    CornuModel *model = compiled(*state);
    logged[0] = '\0';
    set_trainable(model, "a", false);
    fit_moves(model, ROWS, "0011");
    assert_int_equal(cornu_model_optimizer_variable_count(model), 2 + 2 * 2);
    fit_moves(model, 3, "0011");   /* a batch of another size */
    assert_string_equal(logged, "");
    cornu_model_free(model);
}

/* Where fit has read it before: a callback of the beginning, a single step. */
static CornuStatus freeze(CornuCallback *self, CornuModel *model, const CornuLogs *logs)
{
    (void)self, (void)logs;
    set_trainable(model, "a", false);
    return CORNU_OK;
}

static void frozen_by_a_callback(void **state)
{
    for (int i = 0; i < 2; i++) {
        CornuModel *model = compiled(*state);
        float       before[WEIGHTS][3 * 4], after[WEIGHTS][3 * 4];
        read_all(model, before);
        if (i == 0) {
            CornuHistory *history = cornu_fit(
                model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS), .verbose = CORNU_SILENT,
                .callbacks = { cornu_lambda_callback(.train_begin = freeze) });
            expect_ok(history ? CORNU_OK : cornu_error_take());
            cornu_history_free(history);
        } else {
            set_trainable(model, "a", false);
            expect_ok(cornu_train_on_batch(model, rows_x(0, ROWS), rows_y(0, ROWS)));
        }
        read_all(model, after);
        assert_memory_equal(before[0], after[0], sizeof before[0]);
        assert_memory_equal(before[1], after[1], sizeof before[1]);
        assert_memory_not_equal(before[2], after[2], sizeof before[2]);
        cornu_model_free(model);
    }
}

static void thawed_before_the_first_step(void **state)
{
    CornuModel *model = two_layers();
    set_trainable(model, "a", false);
    compile_with(model, *state, cornu_adam(.learning_rate = 0.1));
    set_trainable(model, "a", true);
    fit_moves(model, ROWS, "1111");
    cornu_model_free(model);
}

static void evaluate(CornuModel *model)
{
    expect_ok(cornu_evaluate(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                             .verbose = CORNU_SILENT));
}

/* A step that tests is none that trains. */
static void frozen_after_evaluate(void **state)
{
    CornuModel *model = compiled(*state);
    evaluate(model);
    set_trainable(model, "a", false);
    fit_moves(model, ROWS, "0011");
    evaluate(model);
    cornu_model_free(model);
}

/* What changes after the first step counts once the model is compiled again, and is logged once. */
static void changed_after_the_first_step(void **state)
{
    CornuModel *model = compiled(*state);
    logged[0] = '\0';
    fit_moves(model, ROWS, "1111");
    assert_string_equal(logged, "");
    set_trainable(model, "a", false);
    fit_moves(model, ROWS, "1111");
    fit_moves(model, 3, "1111");
    assert_string_equal(logged, "two: other weights are trainable than when its first training "
                                "step was made; cornu_compile makes that count");
    compile_with(model, *state, cornu_adam(.learning_rate = 0.1));
    fit_moves(model, ROWS, "0011");
    set_trainable(model, "a", true);
    fit_moves(model, ROWS, "0011");
    cornu_model_free(model);
}

static void nothing_to_train_is_logged(void **state)
{
    CornuModel *model = compiled(*state);
    logged[0] = '\0';
    set_trainable(model, "a", false);
    set_trainable(model, "b", false);
    fit_moves(model, ROWS, "0000");
    assert_string_equal(logged, "two: no weight is trainable");
    cornu_model_free(model);
}

/* What was set or loaded into the optimizer stays: the rate, and slots of the other weights. */
static void the_optimizer_goes_on(void **state)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/cornu_trainable_%d.safetensors", (int)getpid());
    CornuModel *first = compiled(*state);
    set_trainable(first, "a", false);
    fit_moves(first, ROWS, "0011");
    expect_ok(cornu_model_save(first, path));

    /* The same in another order: the file's variables are those of what is trainable. */
    CornuModel *second = compiled(*state);
    set_trainable(second, "a", false);
    expect_ok(cornu_model_load_weights(second, path));
    unlink(path);
    expect_ok(cornu_optimizer_set_learning_rate(cornu_model_optimizer(second), 0.25));
    set_trainable(second, "a", true);
    assert_int_equal(cornu_model_optimizer_variable_count(second), 2 + 2 * 2);
    float  slots[2][2][MOST], iterations[2];
    CornuModel *const both[] = { first, second };
    for (int m = 0; m < 2; m++) {
        double iteration;
        if (m == 1) expect_ok(cornu_model_save(second, path));   /* lists the variables anew */
        const int count = cornu_model_optimizer_variable_count(both[m]);
        for (int i = 0; i < 2; i++) {   /* the velocities of b */
            CornuVariable *slot = cornu_model_optimizer_variable(both[m], count - 2 + i);
            memset(slots[m][i], 0, sizeof slots[m][i]);
            expect_ok(cornu_variable_read(slot, cornu_array_from(slots[m][i],
                                                                 cornu_variable_type(slot))));
        }
        expect_ok(cornu_variable_get(
            cornu_optimizer_iteration(cornu_model_optimizer(both[m])), &iteration));
        iterations[m] = (float)iteration;
    }
    unlink(path);
    assert_int_equal(cornu_model_optimizer_variable_count(second), 2 + 2 * WEIGHTS);
    assert_memory_equal(slots[0], slots[1], sizeof slots[0]);
    assert_true(iterations[0] == 1.0f && iterations[1] == 1.0f);
    double rate;
    expect_ok(cornu_optimizer_learning_rate(cornu_model_optimizer(second), &rate));
    assert_true(rate == 0.25);
    fit_moves(second, ROWS, "1111");
    cornu_model_free(first);
    cornu_model_free(second);
}

static void of_several_optimizers(void **state)
{
    CornuModel *model = two_layers();
    compile_with(model, *state, cornu_multi_optimizer(
        .default_optimizer = cornu_adam(.learning_rate = 0.1),
        .optimizer_map = { { "a/.*", cornu_adam(.learning_rate = 0.2) } }));
    CornuOptimizer *of_a = cornu__optimizer_inner(cornu_model_optimizer(model), 0);
    expect_ok(cornu_optimizer_set_learning_rate(of_a, 0.5));
    set_trainable(model, "b", false);
    fit_moves(model, ROWS, "1100");
    double rate;
    expect_ok(cornu_optimizer_learning_rate(of_a, &rate));
    assert_true(rate == 0.5);
    expect_ok(cornu_optimizer_learning_rate(
        cornu__optimizer_inner(cornu_model_optimizer(model), 1), &rate));
    assert_true(rate == (double)0.1f);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_before_the_first_step),
        cmocka_unit_test(frozen_by_a_callback),
        cmocka_unit_test(thawed_before_the_first_step),
        cmocka_unit_test(frozen_after_evaluate),
        cmocka_unit_test(changed_after_the_first_step),
        cmocka_unit_test(nothing_to_train_is_logged),
        cmocka_unit_test(the_optimizer_goes_on),
        cmocka_unit_test(of_several_optimizers),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
