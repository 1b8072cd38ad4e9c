/* Zeros written in a call are told from omitted arguments. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/config/keywords_internal.h"
#include "../golden.h"

static void the_text_of_a_call_is_read(void **state)
{
    static const struct { const char *text, *name; int place; bool written; } cases[] = {
        { ".learning_rate = 0.0", "learning_rate", 0, true },
        { "  .  learning_rate=x", "learning_rate", 0, true },
        { ".beta_1 = 2, .learning_rate = f(a, b)", "learning_rate", 0, true },
        { ".learning_rate_power = 0", "learning_rate", 0, false },
        { ".schedule = cornu_cosine_decay(.learning_rate = 1)", "learning_rate", 0, false },
        { ".name = \"a, .learning_rate = 0\"", "learning_rate", 0, false },
        { ".name = \"\\\", .learning_rate\", .x = ','", "learning_rate", 0, false },
        { "0.0", "learning_rate", 0, true }, { "0.0, 0.9", "rho", 1, true },
        { "0.1", "rho", 1, false }, { "", "learning_rate", 0, false },
        { NULL, "learning_rate", 0, false }, { "0.0", "verbose", -1, false },
        { "(P){ 1, 2 }, x[1, 2], 3", "rho", 2, true },
        { "(P){ 1, 2 }, x[1, 2], 3", "rho", 3, false },
        { ".a = 1, 2, 3", "rho", 1, false }, { "model, .epochs = 0", "epochs", -1, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cornu__is_written(cases[i].text, cases[i].name, cases[i].place) != cases[i].written)
            fail_msg("%s in '%s'", cases[i].name, cases[i].text ? cases[i].text : "NULL");
}

/* ---- Optimizers ---- */

enum { ROWS = 8 };

static float x_data[ROWS * 3], y_data[ROWS];

static CornuArray x(void) { return cornu_array(x_data, CORNU_F32, ROWS, 3); }
static CornuArray y(void) { return cornu_array(y_data, CORNU_F32, ROWS); }

static CornuModel *made(CornuOptimizer *optimizer)
{
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model, .optimizer = optimizer, .loss = CORNU_MEAN_SQUARED_ERROR));
    return model;
}

/* The largest change of a weight in one step. Takes the optimizer. */
static double moved_by(CornuOptimizer *optimizer)
{
    CornuModel *model = made(optimizer);
    float       before[3], after[3];
    double      most = 0.0;
    CornuWeight *kernel = cornu_model_weight(model, 0);
    expect_ok(cornu_weight_read(kernel, cornu_array(before, CORNU_F32, 3, 1)));
    expect_ok(cornu_train_on_batch(model, x(), y()));
    expect_ok(cornu_weight_read(kernel, cornu_array(after, CORNU_F32, 3, 1)));
    for (int i = 0; i < 3; i++) most = fmax(most, fabs((double)after[i] - (double)before[i]));
    cornu_model_free(model);
    return most;
}

static void a_written_learning_rate_of_0_trains_nothing(void **state)
{
    static const double sweep[] = { 0.0, 0.01 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        CornuOptimizer *const made_of[] = {
            cornu_sgd(.learning_rate = sweep[i]), cornu_rmsprop(.learning_rate = sweep[i]),
            cornu_adam(.learning_rate = sweep[i]), cornu_adamw(.learning_rate = sweep[i]),
            cornu_adagrad(.learning_rate = sweep[i]), cornu_adadelta(.learning_rate = sweep[i]),
            cornu_adamax(.learning_rate = sweep[i]), cornu_nadam(.learning_rate = sweep[i]),
            cornu_lion(.learning_rate = sweep[i]), cornu_sgd(sweep[i]), cornu_adam(sweep[i], 0.5),
        };
        for (size_t k = 0; k < sizeof made_of / sizeof *made_of; k++) {
            const double moved = moved_by(made_of[k]);
            if ((moved > 0.0) != (sweep[i] > 0.0))
                fail_msg("optimizer %zu at rate %g moves weights by %g", k, sweep[i], moved);
        }
    }
    assert_true(moved_by(cornu_adam(.beta_1 = 0.8)) > 0.0);
    assert_true(moved_by(cornu_adam()) > 0.0);
    assert_true(moved_by(cornu_adam_from(&(CornuAdamConfig){ .learning_rate = 0.0 })) > 0.0);
    assert_true(moved_by(cornu_sgd(.learning_rate = 0.0, .schedule = cornu_exponential_decay(
                                                             0.1, 10.0, 0.5))) > 0.0);
}

static void hear(void *context, CornuLogLevel level, const char *message)
{
    if (level == CORNU_LOG_WARNING) snprintf(context, 200, "%s", message);
}

/* A caller that passes a 0 on, relying on the default, gets a message. */
static void a_rate_of_0_is_told(void **state)
{
    char told[200] = "";
    (void)state;
    cornu_set_log(CORNU_LOG_WARNING, hear, told);
    cornu_optimizer_free(cornu_adam(.learning_rate = 0.001));
    cornu_optimizer_free(cornu_adam());
    assert_string_equal(told, "");
    cornu_optimizer_free(cornu_adam(.learning_rate = 0.0));
    cornu_set_log(CORNU_LOG_WARNING, NULL, NULL);
    assert_string_equal(told, "adam: .learning_rate is 0, so no weight changes; left out "
                        "it has its default");
}

/* Adam with beta_1 = 0 is bias-corrected RMSprop, which differs from Adam's default. */
static void other_zeros_count_too(void **state)
{
    CornuOptimizer *pairs[][2] = {
        { cornu_adam(.beta_1 = 0.0), cornu_adam(.beta_1 = (double)CORNU_ZERO) },
        { cornu_rmsprop(.rho = 0.0), cornu_rmsprop(.rho = (double)CORNU_ZERO) },
        { cornu_adagrad(.initial_accumulator_value = 0.0),
          cornu_adagrad(.initial_accumulator_value = (double)CORNU_ZERO) },
    };
    CornuOptimizer *usual[] = { cornu_adam(), cornu_rmsprop(), cornu_adagrad() };
    (void)state;
    for (int i = 0; i < 3; i++) {
        float       weights[3][3];
        CornuModel *models[] = { made(pairs[i][0]), made(pairs[i][1]), made(usual[i]) };
        for (int m = 0; m < 3; m++) {
            for (int step = 0; step < 3; step++)
                expect_ok(cornu_train_on_batch(models[m], x(), y()));
            expect_ok(cornu_weight_read(cornu_model_weight(models[m], 0),
                                        cornu_array(weights[m], CORNU_F32, 3, 1)));
            cornu_model_free(models[m]);
        }
        assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
        assert_memory_not_equal(weights[0], weights[2], sizeof weights[0]);
    }
    assert_null(cornu_lion(.beta_1 = 0.0));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "lion: .beta_1 is 0");
}

/* ---- fit ---- */

static int epochs_of(CornuHistory *history)
{
    if (!history) fail_msg("%s", cornu_error_message());
    const int epochs = cornu_history_epochs(history);
    cornu_history_free(history);
    return epochs;
}

static void no_epochs_are_none(void **state)
{
    CornuModel   *model = made(cornu_sgd());
    const int64_t none = 0;
    (void)state;
    assert_int_equal(epochs_of(cornu_fit(model, .x = x(), .y = y(), .epochs = 0,
                                         .verbose = CORNU_SILENT)), 0);
    assert_int_equal(epochs_of(cornu_fit(model, .x = x(), .y = y(), .epochs = none,
                                         .verbose = CORNU_SILENT)), 0);
    assert_int_equal(epochs_of(cornu_fit(model, .x = x(), .y = y(), .verbose = CORNU_SILENT)), 1);
    const CornuFitConfig config = { .model = model, .x = x(), .y = y(), .verbose = CORNU_SILENT };
    assert_int_equal(epochs_of(cornu_fit_from(&config)), 1);
    cornu_model_free(model);
}

/* What a call prints on stdout, which is not a terminal here. */
static size_t printed(CornuStatus (*call)(CornuModel *model), CornuModel *model, char *text,
                      size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int kept = dup(1);
    dup2(fileno(file), 1);
    const CornuStatus status = call(model);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    expect_ok(status);
    rewind(file);
    const size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
    return length;
}

#define EVALUATES(name, ...)                                                       \
    static CornuStatus name(CornuModel *model)                                     \
    {                                                                              \
        return cornu_evaluate(model, .x = x(), .y = y(), __VA_ARGS__);             \
    }
static const int zero;
EVALUATES(with_0, .verbose = 0)
EVALUATES(with_a_0, .verbose = zero)
EVALUATES(with_silent, .verbose = CORNU_SILENT)
EVALUATES(with_1, .verbose = 1)
EVALUATES(with_bar, .verbose = CORNU_BAR)
EVALUATES(with_2, .verbose = 2)
EVALUATES(with_lines, .verbose = CORNU_LINES)
EVALUATES(with_auto, .verbose = CORNU_AUTO)
EVALUATES(without, .batch_size = 4)

static void verbose_has_keras_numbers(void **state)
{
    CornuModel *model = made(cornu_sgd());
    char        text[4096];
    (void)state;
    assert_int_equal(printed(with_0, model, text, sizeof text), 0);
    assert_int_equal(printed(with_a_0, model, text, sizeof text), 0);
    assert_int_equal(printed(with_silent, model, text, sizeof text), 0);
    CornuStatus (*const bars[])(CornuModel *) = { with_1, with_bar };
    CornuStatus (*const lines[])(CornuModel *) = { with_2, with_lines, with_auto, without };
    for (int i = 0; i < 2; i++) {
        assert_true(printed(bars[i], model, text, sizeof text) > 0);
        assert_non_null(strstr(text, "=="));
    }
    for (int i = 0; i < 4; i++) {
        assert_true(printed(lines[i], model, text, sizeof text) > 0);
        assert_null(strstr(text, "=="));
    }
    expect_error(cornu_evaluate(model, .x = x(), .y = y(), .verbose = 9), CORNU_ERR_ARGUMENT,
                 ".verbose is 9, expected CORNU_AUTO");
    cornu_model_free(model);
}

int main(void)
{
    for (int i = 0; i < ROWS * 3; i++) x_data[i] = sinf((float)i);
    for (int i = 0; i < ROWS; i++) y_data[i] = cosf((float)i);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_of_a_call_is_read),
        cmocka_unit_test(a_written_learning_rate_of_0_trains_nothing),
        cmocka_unit_test(a_rate_of_0_is_told),
        cmocka_unit_test(other_zeros_count_too),
        cmocka_unit_test(no_epochs_are_none),
        cmocka_unit_test(verbose_has_keras_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
