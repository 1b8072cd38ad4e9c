/* Gradients of several steps, accumulated: as Keras has it (test_optimizers.c has its numbers), by
 * .accumulate_steps of cornu_compile, and through a backup in the middle. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../nn/cornu.h"

enum { ROWS = 40, BATCH = 8, FEATURES = 6, MOST = 256 };

static float x[ROWS * FEATURES], y[ROWS];

static int make_data(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < ROWS; i++) y[i] = (float)(i * 29 % 53) / 26.0f - 1.0f;
    return 0;
}

static CornuModel *small(CornuOptimizer *optimizer, int64_t steps, CornuStatus *status)
{
    cornu_set_random_seed(5);
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(12, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(1));
    *status = cornu_compile(model, .optimizer = optimizer, .loss = CORNU_MEAN_SQUARED_ERROR,
                            .accumulate_steps = steps);
    return model;
}

static int64_t weights_of(const CornuModel *model, float *to)
{
    int64_t count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        assert_int_equal(cornu_weight_read(w, cornu_array_from(to + count, w->type)), CORNU_OK);
        count += cornu_type_count(w->type);
    }
    assert_true(count <= MOST);
    return count;
}

static void fit(CornuModel *model, CornuCallback *backup, CornuCallback *own, CornuStatus expected)
{
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, ROWS, FEATURES),
        .y = cornu_array(y, CORNU_F32, ROWS, 1), .batch_size = BATCH, .epochs = 2,
        .verbose = CORNU_SILENT, .callbacks = { own, backup });
    assert_int_equal(history ? CORNU_OK : cornu_error_take(), expected);
    cornu_history_free(history);
}

/* Weights change with each third step alone; the argument of compile is the optimizer's. */
static void compile_takes_it(void **state)
{
    (void)state;
    float       before[MOST], after[2][MOST];
    CornuStatus status;
    for (int of_compile = 0; of_compile < 2; of_compile++) {
        CornuModel *model = small(of_compile ? cornu_adam(.learning_rate = 0.01)
                                             : cornu_adam(.learning_rate = 0.01,
                                                          .gradient_accumulation_steps = 3),
                                  of_compile ? 3 : 0, &status);
        assert_int_equal(status, CORNU_OK);
        const int64_t count = weights_of(model, before);
        for (int k = 0; k < 5; k++) {
            assert_int_equal(cornu_train_on_batch(
                model, .x = cornu_array(x + k * BATCH * FEATURES, CORNU_F32, BATCH, FEATURES),
                .y = cornu_array(y + k * BATCH, CORNU_F32, BATCH, 1)), CORNU_OK);
            weights_of(model, after[of_compile]);
            assert_int_equal(memcmp(before, after[of_compile], (size_t)count * sizeof(float)) != 0,
                             k == 2);
            memcpy(before, after[of_compile], sizeof before);
        }
        cornu_model_free(model);
    }
    assert_memory_equal(after[0], after[1], 85 * sizeof(float));
}

static volatile sig_atomic_t stops;

static CornuStatus stop_at_4(CornuCallback *self, CornuModel *model, int64_t batch,
                             const CornuLogs *logs)
{
    (void)self, (void)model, (void)logs;
    if (batch == 3) stops = 1;
    return CORNU_OK;
}

/* Stopped after four steps, of which one is of the second mean, and begun anew. */
static void backups_hold_the_sum(void **state)
{
    (void)state;
    float       weights[2][MOST];
    char        folder[] = "/tmp/cornu-accumulate-XXXXXX", path[64];
    CornuStatus status;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/backup", folder);
    CornuModel *model = small(cornu_nadam(), 3, &status);
    fit(model, NULL, NULL, CORNU_OK);
    weights_of(model, weights[0]);
    cornu_model_free(model);
    for (int again = 0; again < 2; again++) {
        CornuCallback own = { .train_batch_end = again ? NULL : stop_at_4 };
        stops = 0;
        model = small(cornu_nadam(), 3, &status);
        fit(model, cornu_backup_and_restore(path, .stop = &stops), &own,
            again ? CORNU_OK : CORNU_ERR_INTERRUPTED);
        const int64_t count = weights_of(model, weights[1]);
        assert_int_equal(!memcmp(weights[0], weights[1], (size_t)count * sizeof(float)), again);
        cornu_model_free(model);
    }
    rmdir(path);
    rmdir(folder);
}

static void expect_error(CornuOptimizer *optimizer, int64_t steps, CornuStatus expected,
                         const char *text)
{
    CornuStatus status;
    cornu_model_free(small(optimizer, steps, &status));
    assert_int_equal(status, expected);
    assert_string_equal(cornu_error_message(), text);
    cornu_error_take();
}

static void errors(void **state)
{
    (void)state;
    expect_error(cornu_adam(), -2, CORNU_ERR_ARGUMENT,
                 "adam: gradients of -2 steps, expected 1 or more");
    expect_error(cornu_adam(.gradient_accumulation_steps = 4), 2, CORNU_ERR_ARGUMENT,
                 "adam: accumulates the gradients of 4 steps, not of 2; an optimizer for that has "
                 "to be made anew");
    expect_error(cornu_multi_optimizer(cornu_adam()), 2, CORNU_ERR_UNSUPPORTED,
                 "multi_optimizer: its optimizers accumulate gradients, each by its "
                 ".gradient_accumulation_steps");
    CornuStatus status;   /* neither the same number twice nor none is an error */
    cornu_model_free(small(cornu_adam(.gradient_accumulation_steps = 2), 2, &status));
    assert_int_equal(status, CORNU_OK);
    cornu_model_free(small(cornu_adam(), 1, &status));
    assert_int_equal(status, CORNU_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compile_takes_it),
        cmocka_unit_test(backups_hold_the_sum),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
