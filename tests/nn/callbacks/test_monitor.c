/* The better direction for each metric and loss of Keras; the smallest and the largest change that
 * counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <cornu/cornu.h>

#include "../../../device/memory_internal.h"
#include "../../../nn/callbacks/monitor_internal.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directions_are_keras),
        cmocka_unit_test(improvements_are_more_than_min_delta),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
