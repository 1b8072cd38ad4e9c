/* An estimator without memory: each function fails with a status, leaks nothing, and the next one
 * goes on from what is in the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "two_tasks.h"
#include "../../skip.h"

enum { STRIDE = 7, MOST = 200000 };   /* from every seventh allocation on all fail */

typedef CornuStatus Task(CornuTPUEstimator *estimator);

static CornuStatus train(CornuTPUEstimator *e)
{
    return cornu_estimator_train(e, two_tasks_train, .max_steps = 3);
}

static CornuStatus evaluate(CornuTPUEstimator *e)
{
    return cornu_estimator_evaluate(e, two_tasks_test, .steps = 2);
}

static CornuStatus predict(CornuTPUEstimator *e)
{
    const CornuPrediction *one = NULL;
    CornuPredictions      *all = cornu_estimator_predict(e, two_tasks_features);
    const CornuStatus      status = all ? cornu_predictions_next(all, &one) : cornu_error_take();
    cornu_predictions_free(all);
    return status;
}

static CornuStatus export(CornuTPUEstimator *e)
{
    return cornu_estimator_export(e, files_path(folder, "model.safetensors"), two_tasks_features);
}

/* Of the estimator, its devices included, so that nothing is left of an earlier try. */
static CornuStatus try(Task *task, int64_t allowed)
{
    static const TwoTasks own = { .shuffle = 3 };
    const int64_t held = allocations_held();
    allocations_fail_after(allowed);
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    const CornuStatus  status = e ? task(e) : cornu_error_take();
    allocations_fail_after(NEVER);
    cornu_tpu_estimator_free(e);
    if (cornu_error_pending())
        fail_msg("allocation %lld: still pending: %s", (long long)allowed, cornu_error_message());
    if (allowed < MOST && allocations_held() > held)
        fail_msg("allocation %lld: %lld are left", (long long)allowed,
                 (long long)(allocations_held() - held));
    return status;
}

static void no_memory(void **state)
{
    static Task *const tasks[] = { train, evaluate, predict, export };
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        int64_t made = 0, failures = 0;
        for (int once = 0; once < 2; once++) {   /* what is made once is kept */
            made = allocations();
            expect_ok(try(tasks[i], MOST));
            made = allocations() - made;
            if (tasks[i] == train) assert_int_equal(system("rm -rf \"$CORNU_TEST_OUT\""), 0);
        }
        assert_in_range(made, 1, MOST);
        for (int64_t n = 0; n < made; n += STRIDE) {
            if (tasks[i] == train) assert_int_equal(system("rm -rf \"$CORNU_TEST_OUT\""), 0);
            failures += try(tasks[i], n) == CORNU_ERR_MEMORY;
        }
        assert_true(failures > made / STRIDE / 2);
        expect_ok(try(tasks[i], MOST));
    }
}

static int begin(void **state)
{
    return files_begin(state) || setenv("CORNU_TEST_OUT", files_path(folder, "out"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_memory, begin, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
