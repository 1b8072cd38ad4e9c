/* TPUEstimator: training goes on from model_dir with the same bits; evaluation and prediction give
 * what the exported model gives; what model_dir holds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../../expect.h"
#include "../callbacks/stopper.h"
#include "two_tasks.h"

enum { STEPS = 14, MAX_FILE = 1 << 15 };

static const char *path(const char *name) { return files_path(files_path(folder, "out"), name); }

static size_t checkpoint(int64_t step, unsigned char bytes[MAX_FILE])
{
    char name[60];
    snprintf(name, sizeof name, "model.ckpt-%lld.safetensors", (long long)step);
    return files_read(path(name), bytes, MAX_FILE);
}

static void expect_state(const char *text)
{
    char         got[1000];
    const size_t size = files_read(path("checkpoint"), got, sizeof got - 1);
    got[size] = '\0';
    assert_string_equal(got, text);
}

static void remove_out(void)
{
    char command[FILES_PATH + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", files_path(folder, "out"));
    assert_int_equal(system(command), 0);
}

/* ---- Going on ---- */

typedef struct {
    const char *name;
    bool        use_tpu;
    int         shards;
    TwoTasks    own;
} Case;

/* One run; true if it ended. It is killed after so many loops, or not if 0. */
static bool run(const Case *c, int64_t loops)
{
    Stopper            stopper = stop_after(loops, NULL);
    CornuTPUEstimator *estimator = two_tasks_estimator(files_path(folder, "out"), &c->own,
                                                       c->use_tpu, c->shards);
    const CornuStatus  status = cornu_estimator_train(estimator, two_tasks_train,
                                                      .max_steps = STEPS,
                                                      .hooks = { &stopper.base });
    if (status && status != CORNU_ERR_INTERRUPTED) expect_ok(status);
    cornu_tpu_estimator_free(estimator);
    return !status;
}

static void killing_changes_no_bit(void **state)
{
    static unsigned char whole[MAX_FILE], again[MAX_FILE];
    const Case *c = *state;
    assert_true(run(c, 0));
    const size_t size = checkpoint(STEPS, whole);
    for (int64_t loops = 1; loops <= 3; loops++) {
        remove_out();
        for (int runs = 0; !run(c, runs < 2 ? loops : 2 * loops + 3); runs++)
            if (runs > 40) fail_msg("killed after %lld loops it never ends", (long long)loops);
        if (checkpoint(STEPS, again) != size || memcmp(whole, again, size))
            fail_msg("killed after %lld loops: the last checkpoint is another", (long long)loops);
    }
}

static void a_train_does_what_is_left(void **state)
{
    static unsigned char bytes[MAX_FILE], again[MAX_FILE];
    static const TwoTasks own = { .shuffle = 3 };
    (void)state;
    two_tasks_run(files_path(folder, "out"), 6);
    const size_t size = checkpoint(6, bytes);
    remove_out();
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    assert_null(cornu_estimator_latest_checkpoint(e));
    expect_ok(cornu_estimator_train(e, two_tasks_train, .steps = 2));
    expect_ok(cornu_estimator_train(e, two_tasks_train, .steps = 2));
    assert_string_equal(cornu_estimator_latest_checkpoint(e),
                        path("model.ckpt-4.safetensors"));
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 6));
    assert_int_equal(checkpoint(6, again), size);
    assert_memory_equal(bytes, again, size);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 5));   /* there already */
    assert_string_equal(cornu_estimator_latest_checkpoint(e), path("model.ckpt-6.safetensors"));
    cornu_tpu_estimator_free(e);
}

/* One pass has six whole batches; the next training begins another pass. */
static void training_ends_with_the_data(void **state)
{
    static const TwoTasks own = { .shuffle = 3, .finite = true };
    (void)state;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 100));
    assert_string_equal(cornu_estimator_latest_checkpoint(e), path("model.ckpt-6.safetensors"));
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 100));
    assert_string_equal(cornu_estimator_latest_checkpoint(e), path("model.ckpt-12.safetensors"));
    cornu_tpu_estimator_free(e);
}

/* ---- Settings that change ---- */

static char logged[4000];

static void keep_log(void *context, CornuLogLevel level, const char *message)
{
    (void)context, (void)level;
    const size_t at = strlen(logged);
    snprintf(logged + at, sizeof logged - at, "%s\n", message);
}

static double weight_sum(const char *name)
{
    CornuSafetensors *file = cornu_safetensors_open(path(name));
    const CornuNamedArray *kernel = cornu_safetensors_find(file, "sequential/dense/kernel");
    double sum = 0.0;
    for (int64_t i = 0; i < cornu_type_count(kernel->array.type); i++)
        sum += cornu_array_get(kernel->array, i);
    cornu_safetensors_close(file);
    return sum;
}

/* A rate of next to nothing leaves the weights, but for the momentum, where they are. */
static void another_rate_applies(void **state)
{
    TwoTasks own = { .shuffle = 3, .adam = true };
    (void)state;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 4));
    own.learning_rate = 1e-12;
    logged[0] = '\0';
    cornu_set_log(CORNU_LOG_INFO, keep_log, NULL);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 6));
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    const double before = weight_sum("model.ckpt-4.safetensors");
    assert_true(fabs(weight_sum("model.ckpt-6.safetensors") - before) < 1e-6);
    assert_non_null(strstr(logged, "learning_rate was 0.05 and is 1e-12"));
    assert_non_null(strstr(logged, "Restoring parameters from"));
    cornu_tpu_estimator_free(e);
}

static void other_data_begin_at_their_beginning(void **state)
{
    TwoTasks own = { .shuffle = 0, .finite = true };
    (void)state;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 4));
    own.finite = false;
    logged[0] = '\0';
    cornu_set_log(CORNU_LOG_WARNING, keep_log, NULL);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 5));
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    assert_non_null(strstr(logged, "with other data, from their first batch on"));
    cornu_tpu_estimator_free(e);
}

/* ---- model_dir ---- */

static void the_newest_checkpoints_are_kept(void **state)
{
    (void)state;
    two_tasks_run(files_path(folder, "out"), 12);
    expect_state("model_checkpoint_path: \"model.ckpt-12\"\n"
                 "all_model_checkpoint_paths: \"model.ckpt-4\"\n"
                 "all_model_checkpoint_paths: \"model.ckpt-6\"\n"
                 "all_model_checkpoint_paths: \"model.ckpt-8\"\n"
                 "all_model_checkpoint_paths: \"model.ckpt-10\"\n"
                 "all_model_checkpoint_paths: \"model.ckpt-12\"\n");
    assert_int_equal(files_count(files_path(folder, "out")), 5 + 1 + 1);   /* and events */
    assert_int_equal(access(path("model.ckpt-2.safetensors"), F_OK), -1);
}

static void a_damaged_checkpoint_is_passed_over(void **state)
{
    static unsigned char whole[MAX_FILE], again[MAX_FILE];
    (void)state;
    two_tasks_run(files_path(folder, "out"), 13);
    const size_t size = checkpoint(13, whole);
    remove_out();
    two_tasks_run(files_path(folder, "out"), 12);
    const size_t bytes = checkpoint(12, again);
    again[bytes / 2] ^= 1;
    files_write(path("model.ckpt-12.safetensors"), again, bytes);
    two_tasks_run(files_path(folder, "out"), 13);      /* from 10 on */
    assert_int_equal(checkpoint(13, again), size);
    assert_memory_equal(whole, again, size);
    files_write(path("checkpoint"), "model_checkpoint_path: \"../x\"\n", 31);
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"),
                                               &(TwoTasks){ .shuffle = 3 }, false, 1);
    expect_error(cornu_estimator_train(e, two_tasks_train, .steps = 1), CORNU_ERR_FORMAT,
                 "line 1 is \"model_checkpoint_path: \"../x\"\"");
    cornu_tpu_estimator_free(e);
}

static CornuStatus train_inside(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    static const TwoTasks own = { .shuffle = 3 };
    (void)base, (void)model, (void)logs;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    expect_error(cornu_estimator_train(e, two_tasks_train, .max_steps = 4), CORNU_ERR_FILE,
                 "another process trains here");
    cornu_tpu_estimator_free(e);
    return CORNU_OK;
}

static void one_training_has_the_folder(void **state)
{
    static const TwoTasks own = { .shuffle = 3 };
    CornuCallback hook = { .train_begin = train_inside };
    (void)state;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 2, .hooks = { &hook }));
    cornu_tpu_estimator_free(e);
}

static int64_t last_batch;

static CornuStatus keep_batch(CornuCallback *base, CornuModel *model, int64_t batch,
                              const CornuLogs *logs)
{
    (void)base, (void)model, (void)logs;
    last_batch = batch;
    return CORNU_OK;
}

/* Hooks are called after loops of three steps on the TPU; batches are global steps. */
static void losses_are_logged_in_tensorflows_words(void **state)
{
    static const TwoTasks own = { .shuffle = 3 };
    CornuCallback hook = { .train_batch_end = keep_batch };
    (void)state;
    logged[0] = '\0';
    cornu_set_log(CORNU_LOG_INFO, keep_log, NULL);
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, true, 2);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 3));
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 9, .hooks = { &hook }));
    expect_ok(cornu_estimator_evaluate(e, two_tasks_test, .steps = 2, .name = "all"));
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    assert_int_equal(last_batch, 8);
    static const char *const lines[] = {
        "Saving checkpoints for 0 into ", "Saving checkpoints for 3 into ", "Restoring parameters",
        ", step = 6\n", "global_step/sec: ", "examples/sec: ", "Saving checkpoints for 6 into ",
        ", step = 9\n", "Saving checkpoints for 9 into ", "Loss for final step: ",
        "Saving dict for global step 9: loss = ", "accuracy = ", "mae = ", "global_step = 9",
    };
    const char *at = logged;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *found = strstr(at, lines[i]);
        if (!found) fail_msg("no \"%s\" in the rest of the log:\n%s", lines[i], at);
        at = found;
    }
    assert_int_equal(files_count(path("eval_all")), 1);
    cornu_tpu_estimator_free(e);
}

/* ---- Evaluation, prediction, export ---- */

/* The exported model's outputs on the host, by hand. */
static void expect_results(const CornuEvaluation *got, const float *probabilities,
                           const float *sums)
{
    const int32_t *classes = two_tasks_array(1).data;
    const float   *wanted = two_tasks_array(2).data;
    double loss = 0.0, squares = 0.0, right = 0.0, error = 0.0;
    for (int i = 0; i < TASK_ROWS; i++) {
        loss -= log((double)probabilities[2 * i + classes[i]]);
        right += (probabilities[2 * i + 1] > probabilities[2 * i]) == classes[i];
        squares += pow((double)sums[i] - (double)wanted[i], 2.0);
        error += fabs((double)sums[i] - (double)wanted[i]);
    }
    const double rows = TASK_ROWS;
    assert_true(fabs(cornu_evaluation_get(got, "loss") - (loss + 0.5 * squares) / rows) < 1e-5);
    assert_true(fabs(cornu_evaluation_get(got, "accuracy") - right / rows) < 1e-9);
    assert_true(fabs(cornu_evaluation_get(got, "mae") - error / rows) < 1e-6);
    assert_int_equal(got->count, 3);
    assert_true(isnan(cornu_evaluation_get(got, "auc")));
}

static void expect_predictions(CornuTPUEstimator *e, const float *probabilities, const float *sums)
{
    const CornuPrediction *one;
    CornuPredictions      *all = cornu_estimator_predict(e, two_tasks_features);
    for (int i = 0; i < TASK_ROWS; i++) {
        expect_ok(cornu_predictions_next(all, &one));
        assert_non_null(one);
        const CornuArray p = cornu_prediction_get(one, "probabilities");
        assert_int_equal(p.type.shape.rank, 1);
        assert_true(fabsf(((const float *)p.data)[1] - probabilities[2 * i + 1]) < 1e-6f);
        assert_true(fabsf(*(const float *)cornu_prediction_get(one, "sum").data - sums[i]) < 1e-5f);
        assert_null(cornu_prediction_get(one, "classes").data);
    }
    expect_ok(cornu_predictions_next(all, &one));
    assert_null(one);
    cornu_predictions_free(all);
    all = cornu_estimator_predict(e, two_tasks_features, .no_yield_single_examples = true);
    for (int64_t rows = TASK_ROWS; rows > 0; rows -= TASK_BATCH) {
        expect_ok(cornu_predictions_next(all, &one));
        assert_int_equal(cornu_prediction_get(one, "sum").type.shape.extent[0],
                         rows < TASK_BATCH ? rows : TASK_BATCH);
    }
    cornu_predictions_free(all);
}

static void an_exported_model_gives_the_same(void **state)
{
    static const char *const files[] = { "model.safetensors", "model.keras", "model.onnx" };
    static float p[TASK_ROWS * 2], sums[TASK_ROWS];
    CornuEvaluation results, swapped;
    TwoTasks        own = { .shuffle = 3 };
    (void)state;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = STEPS));
    cornu_model_free(cornu_sequential());   /* the models of model_fn keep their names */
    expect_ok(cornu_estimator_evaluate(e, two_tasks_test, .results = &results));
    assert_int_equal(results.global_step, STEPS);
    for (int i = 0; i < 3; i++) {
        const char *to = files_path(files_path(folder, "new"), files[i]);
        expect_ok(cornu_estimator_export(e, .path = to, .input_fn = two_tasks_features));
        CornuModel *model = cornu_model_load(to);
        if (!model) fail_msg("%s", cornu_error_message());
        expect_ok(cornu_compile(model, .optimizer = cornu_sgd()));
        expect_ok(cornu_predict(model, .x = two_tasks_array(0), .verbose = CORNU_SILENT,
                                .tos = { cornu_array(p, CORNU_F32, TASK_ROWS, 2),
                                         cornu_array(sums, CORNU_F32, TASK_ROWS, 1) }));
        expect_results(&results, p, sums);
        cornu_model_free(model);
    }
    expect_predictions(e, p, sums);
    own.swapped = true;   /* losses in another order than their labels */
    expect_ok(cornu_estimator_evaluate(e, two_tasks_test, .results = &swapped));
    expect_results(&swapped, p, sums);
    expect_ok(cornu_estimator_evaluate(e, two_tasks_test, .results = &swapped,
                                       .checkpoint_path = path("model.ckpt-12")));
    assert_int_equal(swapped.global_step, 12);
    assert_true(cornu_evaluation_get(&swapped, "loss") != cornu_evaluation_get(&results, "loss"));
    cornu_tpu_estimator_free(e);
}

/* Shards, bf16: close to the cpu's; and what another device evaluates. */
static void the_tpu_evaluates_too(void **state)
{
    static const TwoTasks own = { .shuffle = 3 };
    CornuEvaluation of_tpu, of_cpu;
    (void)state;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, true, 4);
    expect_ok(cornu_estimator_evaluate(e, two_tasks_test, .results = &of_tpu));
    assert_int_equal(of_tpu.global_step, 0);             /* initial weights */
    expect_ok(cornu_estimator_train(e, two_tasks_train, .max_steps = 30));
    const double before = cornu_evaluation_get(&of_tpu, "loss");
    expect_ok(cornu_estimator_evaluate(e, two_tasks_test, .results = &of_tpu));
    assert_true(cornu_evaluation_get(&of_tpu, "loss") < before);
    cornu_tpu_estimator_free(e);
    e = cornu_tpu_estimator(
        two_tasks_model, .params = &own, .use_tpu = true, .eval_batch_size = TASK_BATCH,
        .config = cornu_run_config(.model_dir = files_path(folder, "out"),
                                   .evaluation_master = "reference"));
    expect_ok(cornu_estimator_evaluate(e, two_tasks_test, .results = &of_cpu));
    const double a = cornu_evaluation_get(&of_tpu, "loss");
    const double b = cornu_evaluation_get(&of_cpu, "loss");
    assert_true(a != b && fabs(a - b) < 0.02);
    cornu_tpu_estimator_free(e);
}

int main(void)
{
    static const Case cases[] = {
        { "on a cpu", false, 1, { .shuffle = 3 } },
        { "on a cpu by Adam, labels in another order", false, 1,
          { .adam = true, .swapped = true } },
        { "on a tpu of 4 shards", true, 4, { .shuffle = 4 } },
    };
    enum { CASES = sizeof cases / sizeof *cases };
    static char names[CASES][80];
    struct CMUnitTest tests[CASES + 10];
    for (int i = 0; i < CASES; i++) {
        snprintf(names[i], sizeof names[i], "killing_changes_no_bit %s", cases[i].name);
        tests[i] = (struct CMUnitTest){ names[i], killing_changes_no_bit, files_begin, files_end,
                                        (void *)(uintptr_t)&cases[i] };
    }
    const struct CMUnitTest more[] = {
        cmocka_unit_test_setup_teardown(a_train_does_what_is_left, files_begin, files_end),
        cmocka_unit_test_setup_teardown(training_ends_with_the_data, files_begin, files_end),
        cmocka_unit_test_setup_teardown(another_rate_applies, files_begin, files_end),
        cmocka_unit_test_setup_teardown(other_data_begin_at_their_beginning, files_begin,
                                        files_end),
        cmocka_unit_test_setup_teardown(the_newest_checkpoints_are_kept, files_begin, files_end),
        cmocka_unit_test_setup_teardown(a_damaged_checkpoint_is_passed_over, files_begin,
                                        files_end),
        cmocka_unit_test_setup_teardown(one_training_has_the_folder, files_begin, files_end),
        cmocka_unit_test_setup_teardown(losses_are_logged_in_tensorflows_words, files_begin,
                                        files_end),
        cmocka_unit_test_setup_teardown(an_exported_model_gives_the_same, files_begin, files_end),
        cmocka_unit_test_setup_teardown(the_tpu_evaluates_too, files_begin, files_end),
    };
    memcpy(tests + CASES, more, sizeof more);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
