/* The better direction for each metric and loss of Keras; the smallest and the largest change that
 * counts; arguments that callbacks refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <cornu/cornu.h>

#include "../../../device/memory_internal.h"
#include "../../../nn/callbacks/monitor_internal.h"
#include "../golden.h"

static CornuMonitorMode mode_of(const char *name)
{
    CornuMonitor monitor = { .who = "a test" };
    assert_int_equal(cornu__monitor_open(&monitor, name), CORNU_OK);
    assert_int_equal(cornu__monitor_find_mode(&monitor, NULL), CORNU_OK);
    cornu__release(monitor.name);
    return monitor.mode;
}

/* Keras' monitor_callback.py asks the metric for its _direction; a loss decreases. Keras' loss
 * cosine_similarity is -cos, but in logs the name is the metric's. */
static void directions_are_keras(void **state)
{
    (void)state;
    static const char *const rising[] = {
        "accuracy", "acc", "binary_accuracy", "sparse_top_k_categorical_accuracy", "auc",
        "precision", "recall", "f1_score", "fbeta_score", "r2_score", "mean_io_u", "binary_io_u",
        "cosine_similarity", "pearson_correlation", "sensitivity_at_specificity",
        "specificity_at_sensitivity", "precision_at_recall", "recall_at_precision",
    };
    static const char *const falling[] = {
        "loss", "mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "mse",
        "mae", "mape", "msle", "mean_squared_logarithmic_error", "kl_divergence", "poisson",
        "binary_crossentropy", "sparse_categorical_crossentropy", "hinge", "squared_hinge",
        "categorical_hinge", "log_cosh", "logcosh",
    };
    char name[80] = "val_";
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        if (mode_of(rising[i]) != CORNU_MODE_MAX) fail_msg("%s does not rise", rising[i]);
        snprintf(name + 4, sizeof name - 4, "%s", rising[i]);
        assert_int_equal(mode_of(name), CORNU_MODE_MAX);
    }
    for (size_t i = 0; i < sizeof falling / sizeof *falling; i++) {
        if (mode_of(falling[i]) != CORNU_MODE_MIN) fail_msg("%s does not fall", falling[i]);
        snprintf(name + 4, sizeof name - 4, "%s", falling[i]);
        assert_int_equal(mode_of(name), CORNU_MODE_MIN);
    }
}

static void improvements_are_more_than_min_delta(void **state)
{
    (void)state;
    CornuMonitor monitor = { .mode = CORNU_MODE_MIN, .min_delta = 0.25 };
    assert_true(cornu__monitor_improves(&monitor, 0.5, 1.0));
    assert_false(cornu__monitor_improves(&monitor, 0.75, 1.0));
    assert_false(cornu__monitor_improves(&monitor, 1.5, 1.0));
    monitor.mode = CORNU_MODE_MAX;
    assert_true(cornu__monitor_improves(&monitor, 1.5, 1.0));
    assert_false(cornu__monitor_improves(&monitor, 1.25, 1.0));
    assert_false(cornu__monitor_improves(&monitor, 0.5, 1.0));
}

static void constructors_refuse(void **state)
{
    (void)state;
#define REFUSE(call, part)                                         \
    do {                                                           \
        assert_null(call);                                         \
        expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, part); \
    } while (0)
    REFUSE(cornu_early_stopping(.patience = -1), ".patience is -1");
    REFUSE(cornu_early_stopping(.start_from_epoch = -2), ".start_from_epoch -2");
    REFUSE(cornu_early_stopping(.min_delta = -0.5), "early stopping: .min_delta is -0.5");
    REFUSE(cornu_early_stopping(.min_delta = NAN), ".min_delta is");
    REFUSE(cornu_early_stopping(.mode = (CornuMonitorMode)3), ".mode is 3");
    REFUSE(cornu_reduce_lr_on_plateau(.factor = 1.0), ".factor is 1, expected");
    REFUSE(cornu_reduce_lr_on_plateau(.factor = NAN), ".factor is");
    REFUSE(cornu_reduce_lr_on_plateau(.cooldown = -1), ".cooldown -1");
    REFUSE(cornu_reduce_lr_on_plateau(.min_lr = -1.0), ".min_lr is -1");
    REFUSE(cornu_learning_rate_scheduler(), "the schedule is required");
    REFUSE(cornu_csv_logger(), "the filename is required");
    REFUSE(cornu_csv_logger("a", .separator = ""), ".separator is \"\"");
    REFUSE(cornu_csv_logger("a", .separator = ", "), ".separator is \", \"");
#undef REFUSE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directions_are_keras),
        cmocka_unit_test(improvements_are_more_than_min_delta),
        cmocka_unit_test(constructors_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
