/* Without memory a report and a profile end the training with CORNU_ERR_MEMORY:
 * each allocation that they make fails in turn.
 * tests/run: in check */
#include "../../allocations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cornu/cornu.h>

#include "../../expect.h"
#include "../../skip.h"

enum { ROWS = 6 };

static char    folder[] = "/tmp/cornu-memory-XXXXXX";
static int64_t nth;   /* the allocation that fails, after the hook that says so */

static CornuStatus fail_later(CornuCallback *self, CornuModel *model, int64_t index,
                              const CornuLogs *logs)
{
    (void)self, (void)model, (void)index, (void)logs;
    allocations_fail_once(nth);
    return CORNU_OK;
}

static CornuStatus train(CornuModel *model, CornuCallback *trigger, CornuCallback *tried)
{
    static float   x[ROWS * 4];
    static uint8_t y[ROWS] = { 0, 1, 0, 1, 1, 0 };
    CornuHistory *history = cornu_fit(model, .x = cornu_array(x, CORNU_F32, ROWS, 4),
                                      .y = cornu_array(y, CORNU_U8, ROWS), .batch_size = 3,
                                      .verbose = CORNU_SILENT, .callbacks = { trigger, tried });
    allocations_fail_after(NEVER);
    cornu_history_free(history);
    return history ? CORNU_OK : cornu_error_take();
}

static CornuModel *network(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    return model;
}

/* Fails one allocation after the other, until a row of them is not made; some that fail are done
 * without, such as a stream's buffer. */
static void fail_each(CornuCallback *(*trigger)(void), CornuCallback *(*tried)(void))
{
    int failed = 0, passed = 0;
    for (nth = 0; passed < 8; nth++) {
        CornuModel       *model = network();
        const CornuStatus status = train(model, trigger(), tried());
        cornu_model_free(model);
        passed = status ? 0 : passed + 1;
        failed += status != CORNU_OK;
        if (status) assert_int_equal(status, CORNU_ERR_MEMORY);
        assert_true(nth < 20000);
    }
    assert_true(failed > 20);
}

static CornuCallback *at_epoch_end(void)
{
    return cornu_lambda_callback(.epoch_end = fail_later);
}

static CornuCallback *at_batch_end(void)
{
    return cornu_lambda_callback(.train_batch_end = fail_later);
}

static CornuCallback *report(void)
{
    static float   x[ROWS * 4];
    static uint8_t y[ROWS];
    char           path[64];
    snprintf(path, sizeof path, "%s/report.html", folder);
    return cornu_report(path, .x = cornu_array(x, CORNU_F32, ROWS, 4),
                        .y = cornu_array(y, CORNU_U8, ROWS));
}

static CornuCallback *profile(void)
{
    return cornu_tensorboard(folder, .no_graph = true, .profile_batch = 2);
}

static void a_report_ends_the_training(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    fail_each(at_epoch_end, report);
}

static void a_profile_ends_the_training(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    fail_each(at_batch_end, profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_ends_the_training),
        cmocka_unit_test(a_profile_ends_the_training),
    };
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char      command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 1 : failed;
}
