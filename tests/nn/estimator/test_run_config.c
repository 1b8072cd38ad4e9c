/* RunConfig and TPUConfig: defaults, and that a wrong field is named; likewise of the estimator,
 * the spec and the data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/estimator/estimator_internal.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "two_tasks.h"

/* ---- Configs ---- */

typedef struct {
    CornuRunConfig config;
    CornuStatus    status;
    const char    *says;
} Wrong;

#define RUN(...) { .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ }
#define TPU(...) RUN(.tpu_config = RUN(__VA_ARGS__))

static void a_wrong_field_is_named(void **state)
{
    const int64_t none = 0;
    const Wrong   wrong[] = {
        { TPU(-1), CORNU_ERR_ARGUMENT, "tpu_config: .iterations_per_loop is -1, expected 1 to" },
        { TPU(none), CORNU_ERR_ARGUMENT, ".iterations_per_loop is 0" },
        { TPU(2, .num_shards = 1025), CORNU_ERR_ARGUMENT,
          ".num_shards is 1025, expected 1 to 1024" },
        { TPU(.num_cores_per_replica = 2), CORNU_ERR_UNSUPPORTED,
          "tpu_config: .num_cores_per_replica is not supported: a replica is one core" },
        { TPU(.per_host_input_for_training = CORNU_INPUT_BROADCAST), CORNU_ERR_UNSUPPORTED,
          ".per_host_input_for_training" },
        { TPU(.tpu_job_name = "worker"), CORNU_ERR_UNSUPPORTED, ".tpu_job_name" },
        { TPU(.initial_infeed_sleep_secs = 1), CORNU_ERR_UNSUPPORTED,
          ".initial_infeed_sleep_secs" },
        { TPU(.input_partition_dims = { 1, 2 }), CORNU_ERR_UNSUPPORTED, ".input_partition_dims" },
        { TPU(.eval_training_input_configuration = CORNU_INPUT_PER_HOST_V2), CORNU_ERR_UNSUPPORTED,
          ".eval_training_input_configuration" },
        { TPU(.experimental_host_call_every_n_steps = 2), CORNU_ERR_UNSUPPORTED,
          ".experimental_host_call_every_n_steps" },
        { RUN(.save_checkpoints_steps = 5, .save_checkpoints_secs = 5), CORNU_ERR_ARGUMENT,
          "both .save_checkpoints_steps and .save_checkpoints_secs" },
        { RUN(.save_checkpoints_steps = none), CORNU_ERR_ARGUMENT,
          "run_config: .save_checkpoints_steps is 0, expected 1" },
        { RUN(.save_checkpoints_secs = -5), CORNU_ERR_ARGUMENT, ".save_checkpoints_secs is -5" },
        { RUN(.save_summary_steps = -1), CORNU_ERR_ARGUMENT, ".save_summary_steps is -1" },
        { RUN(.log_step_count_steps = -1), CORNU_ERR_ARGUMENT, ".log_step_count_steps is -1" },
        { RUN(.tf_random_seed = -1), CORNU_ERR_ARGUMENT, ".tf_random_seed is -1" },
        { RUN(.keep_checkpoint_max = -2), CORNU_ERR_ARGUMENT, ".keep_checkpoint_max is -2" },
        { RUN(.session_config = { .intra_op_parallelism_threads = -1 }), CORNU_ERR_ARGUMENT,
          ".intra_op_parallelism_threads is -1" },
        { RUN(.keep_checkpoint_every_n_hours = 1), CORNU_ERR_UNSUPPORTED,
          ".keep_checkpoint_every_n_hours" },
        { RUN(.train_distribute = ""), CORNU_ERR_UNSUPPORTED, ".train_distribute" },
        { RUN(.eval_distribute = ""), CORNU_ERR_UNSUPPORTED, ".eval_distribute" },
        { RUN(.experimental_distribute = ""), CORNU_ERR_UNSUPPORTED, ".experimental_distribute" },
        { RUN(.device_fn = ""), CORNU_ERR_UNSUPPORTED, ".device_fn" },
        { RUN(.protocol = "grpc"), CORNU_ERR_UNSUPPORTED, ".protocol" },
        { RUN(.experimental_max_worker_delay_secs = 1), CORNU_ERR_UNSUPPORTED,
          ".experimental_max_worker_delay_secs" },
        { RUN(.session_creation_timeout_secs = 1), CORNU_ERR_UNSUPPORTED,
          ".session_creation_timeout_secs" },
        { RUN(.master = "tpu", .cluster = &(CornuTpuTarget){ .cores = 8 }), CORNU_ERR_ARGUMENT,
          "both .master and .cluster" },
        { RUN(.model_dir = ""), CORNU_ERR_ARGUMENT, ".model_dir is empty" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cornu_run_config_from(&wrong[i].config);
        expect_failure(NULL, wrong[i].status, wrong[i].says);
        expect_failure(cornu_tpu_estimator(two_tasks_model, .config = wrong[i].config),
                       wrong[i].status, wrong[i].says);
    }
    expect_failure(cornu_tpu_estimator(
        two_tasks_model, .config = cornu_run_config(.tpu_config = cornu_tpu_config(-3))),
        CORNU_ERR_ARGUMENT, "tpu_config: .iterations_per_loop is -3");
}

static void defaults_are_tensorflows(void **state)
{
    (void)state;
    const CornuRunConfig none = cornu__run_config_resolve(&(CornuRunConfig){ .unset = 0 });
    assert_int_equal(none.tpu_config.iterations_per_loop, 2);
    assert_int_equal(none.tpu_config.num_shards, 0);
    assert_int_equal(none.save_checkpoints_secs, 600);
    assert_int_equal(none.save_checkpoints_steps, 0);
    assert_int_equal(none.save_summary_steps, 100);
    assert_int_equal(none.log_step_count_steps, 100);
    assert_int_equal(none.keep_checkpoint_max, 5);
    assert_true(none.session_config.allow_soft_placement);
    assert_false(none.session_config.log_device_placement);
    const struct { CornuRunConfig config; int64_t steps, seconds, keep; bool soft; } cases[] = {
        { RUN(.save_checkpoints_steps = 7), 7, 0, 5, true },
        { RUN(.save_checkpoints_secs = 7), 0, 7, 5, true },
        { RUN(.save_checkpoints_steps = CORNU_NONE), 0, 0, 5, true },
        { RUN(.save_checkpoints_secs = CORNU_NONE), 0, 0, 5, true },
        { RUN(.save_checkpoints_secs = CORNU_NONE, .save_checkpoints_steps = 3), 3, 0, 5, true },
        { RUN(.save_checkpoints_secs = 3, .save_checkpoints_steps = CORNU_NONE), 0, 3, 5, true },
        { RUN(.keep_checkpoint_max = 0), 0, 600, CORNU_NONE, true },
        { RUN(.keep_checkpoint_max = CORNU_NONE), 0, 600, CORNU_NONE, true },
        { RUN(.session_config = cornu_session_config(.log_device_placement = true)), 0, 600, 5,
          false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const CornuRunConfig got = cornu__run_config_resolve(&cases[i].config);
        assert_int_equal(got.save_checkpoints_steps, cases[i].steps);
        assert_int_equal(got.save_checkpoints_secs, cases[i].seconds);
        assert_int_equal(got.keep_checkpoint_max, cases[i].keep);
        assert_int_equal(got.session_config.allow_soft_placement, cases[i].soft);
    }
}

/* ---- The estimator ---- */

static void a_wrong_estimator_is_refused(void **state)
{
    const char *out = files_path(folder, "out");
    (void)state;
    expect_failure(cornu_tpu_estimator(.model_dir = out), CORNU_ERR_ARGUMENT,
                   ".model_fn is required");
    expect_failure(cornu_tpu_estimator(two_tasks_model, .model_dir = out,
                                       .config = { .model_dir = "other" }),
                   CORNU_ERR_ARGUMENT, "and other in .config");
    expect_failure(cornu_tpu_estimator(two_tasks_model, out, .use_tpu = true,
                                       .train_batch_size = 10,
                                       .config = { .tpu_config = { .num_shards = 4 } }),
                   CORNU_ERR_ARGUMENT, ".train_batch_size is 10, expected a multiple of the 4");
    expect_failure(cornu_tpu_estimator(two_tasks_model, out, .eval_batch_size = -1),
                   CORNU_ERR_ARGUMENT, ".eval_batch_size is -1");
    CornuTPUEstimator *e = cornu_tpu_estimator(two_tasks_model, out);
    expect_error(cornu_estimator_train(e, two_tasks_train, .steps = 1), CORNU_ERR_ARGUMENT,
                 "train: .train_batch_size of the estimator is required");
    expect_error(cornu_estimator_evaluate(e, two_tasks_test), CORNU_ERR_ARGUMENT,
                 "evaluate: .eval_batch_size of the estimator is required");
    expect_failure(cornu_estimator_predict(e, two_tasks_test), CORNU_ERR_ARGUMENT,
                   "predict: .predict_batch_size of the estimator is required");
    expect_error(cornu_estimator_train(e, two_tasks_train), CORNU_ERR_ARGUMENT,
                 ".steps is 0 and .max_steps 0, expected one of them");
    expect_error(cornu_estimator_train(e, two_tasks_train, .steps = 1, .max_steps = 1),
                 CORNU_ERR_ARGUMENT, "expected one of them");
    expect_error(cornu_estimator_evaluate(e, two_tasks_test, .name = "a/b"), CORNU_ERR_ARGUMENT,
                 ".name is \"a/b\"");
    expect_error(cornu_estimator_export(e, "x.txt", two_tasks_test), CORNU_ERR_ARGUMENT,
                 "the name has no known suffix");
    cornu_tpu_estimator_free(e);
    expect_error(cornu_estimator_train(NULL, two_tasks_train, .steps = 1), CORNU_ERR_ARGUMENT,
                 ".estimator is required");
}

/* Of the device that would need it: the reference runs every op by its reference kernel. */
static void soft_placement_may_be_refused(void **state)
{
    static const TwoTasks own = { .shuffle = 3 };
    (void)state;
    CornuTPUEstimator *e = cornu_tpu_estimator(
        two_tasks_model, .params = &own, .use_tpu = true, .train_batch_size = TASK_BATCH,
        .config = cornu_run_config(.model_dir = files_path(folder, "out"), .master = "reference",
                                   .session_config = cornu_session_config()));
    expect_error(cornu_estimator_train(e, two_tasks_train, .steps = 1), CORNU_ERR_UNSUPPORTED,
                 "the device reference has no kernel for ");
    cornu_tpu_estimator_free(e);
}

/* ---- Specs and data ---- */

static int which;

enum { NO_SPEC, OTHER_MODE, OTHER_LABELS, TWO_LOSSES, TWO_LABELS, NO_OPTIMIZER, NO_LOSS, NO_LABELS,
       LABELS_AS_INPUT, PENDING, MODELS };

static CornuTPUEstimatorSpec *wrong_model(CornuSymbol *const *features, CornuSymbol *const *labels,
                                          CornuModeKeys mode, const CornuEstimatorParams *params)
{
    CornuSymbol *y = cornu_call(cornu_dense(1), features[0]);
    (void)params;
    switch (which) {
    case OTHER_MODE:
        return cornu_tpu_estimator_spec(CORNU_MODE_PREDICT, .predictions = { { "y", y } });
    case OTHER_LABELS:
        return cornu_tpu_estimator_spec(mode, .train_op = cornu_sgd(),
                                        .loss = { { cornu_loss("mse"), y, y } });
    case TWO_LOSSES:
        return cornu_tpu_estimator_spec(mode, .train_op = cornu_sgd(),
                                        .loss = { { cornu_loss("mse"), labels[1], y },
                                                  { cornu_loss("mae"), labels[1], y } });
    case TWO_LABELS:
        return cornu_tpu_estimator_spec(mode, .train_op = cornu_sgd(),
                                        .loss = { { cornu_loss("mse"), labels[1], y },
                                                  { cornu_loss("mae"), labels[0], y } });
    case NO_OPTIMIZER:
        return cornu_tpu_estimator_spec(mode, .loss = { { cornu_loss("mse"), labels[1], y } });
    case NO_LOSS:
        return cornu_tpu_estimator_spec(mode, .train_op = cornu_sgd());
    case NO_LABELS:
        return cornu_tpu_estimator_spec(mode, .train_op = cornu_sgd(),
                                        .loss = { { cornu_loss("mse"), NULL, y } });
    case LABELS_AS_INPUT:
        y = cornu_call(cornu_add(), y, labels[1]);
        return cornu_tpu_estimator_spec(mode, .train_op = cornu_sgd(),
                                        .loss = { { cornu_loss("mse"), labels[1], y } });
    case PENDING:
        return cornu_tpu_estimator_spec(mode, .train_op = cornu_sgd(.learning_rate = -1.0),
                                        .loss = { { cornu_loss("mse"), labels[1], y } });
    default:
        return NULL;
    }
}

static void a_wrong_model_fn_is_refused(void **state)
{
    static const char *const says[MODELS] = {
        [NO_SPEC] = "train: model_fn returned no spec",
        [OTHER_MODE] = "the spec of model_fn has another mode",
        [OTHER_LABELS] = ".labels of .loss[0] is not one of the labels",
        [TWO_LOSSES] = "two losses are of dense[0][0]",
        [TWO_LABELS] = "dense[0][0] is compared with two of the labels",
        [NO_OPTIMIZER] = ".train_op is required with CORNU_MODE_TRAIN",
        [NO_LOSS] = ".loss is required with CORNU_MODE_TRAIN",
        [NO_LABELS] = ".loss[0] has no labels, expected a loss and the labels and predictions",
        [LABELS_AS_INPUT] = "also depends on the input labels_1, which is not among .inputs",
        [PENDING] = "sgd: .learning_rate is -1",
    };
    static const TwoTasks own = { .shuffle = 3 };
    (void)state;
    CornuTPUEstimator *e = cornu_tpu_estimator(wrong_model, files_path(folder, "out"),
                                               .params = &own, .train_batch_size = TASK_BATCH);
    for (which = 0; which < MODELS; which++) {
        const CornuStatus status = cornu_estimator_train(e, two_tasks_train, .steps = 1);
        assert_int_not_equal(status, CORNU_OK);
        if (!strstr(cornu_error_message(), says[which]))
            fail_msg("%d: \"%s\" is not in \"%s\"", which, says[which], cornu_error_message());
        assert_false(cornu_error_pending());
    }
    cornu_tpu_estimator_free(e);
}

static CornuDataset *unbatched(const CornuEstimatorParams *params)
{
    CornuArray arrays[] = { two_tasks_array(0), two_tasks_array(1) };
    (void)params;
    return cornu_dataset_from_arrays(arrays, 2);
}

static CornuDataset *no_data(const CornuEstimatorParams *params)
{
    (void)params;
    return NULL;
}

static void wrong_data_are_refused(void **state)
{
    static const TwoTasks own = { .shuffle = 3, .batch_size = 4 };
    (void)state;
    CornuTPUEstimator *e = two_tasks_estimator(files_path(folder, "out"), &own, false, 1);
    expect_error(cornu_estimator_train(e, unbatched, .steps = 1), CORNU_ERR_ARGUMENT,
                 "the data of input_fn are not batched; expected batches of params->batch_size, 8");
    expect_error(cornu_estimator_train(e, two_tasks_train, .steps = 1), CORNU_ERR_SHAPE,
                 "the batches of input_fn have 4 rows, expected params->batch_size, 8");
    expect_error(cornu_estimator_train(e, two_tasks_features, .steps = 1), CORNU_ERR_ARGUMENT,
                 "has 1 components, expected 1 features and then labels");
    expect_error(cornu_estimator_train(e, no_data, .steps = 1), CORNU_ERR_DATA,
                 "input_fn returned no data");
    expect_error(cornu_estimator_train(e, NULL, .steps = 1), CORNU_ERR_ARGUMENT,
                 ".input_fn is required");
    cornu_tpu_estimator_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_field_is_named),
        cmocka_unit_test(defaults_are_tensorflows),
        cmocka_unit_test_setup_teardown(a_wrong_estimator_is_refused, files_begin, files_end),
        cmocka_unit_test_setup_teardown(soft_placement_may_be_refused, files_begin, files_end),
        cmocka_unit_test_setup_teardown(a_wrong_model_fn_is_refused, files_begin, files_end),
        cmocka_unit_test_setup_teardown(wrong_data_are_refused, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
