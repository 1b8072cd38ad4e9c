#include "estimator_internal.h"

#include "../config/keywords_internal.h"

/* A field that Cornu does not have: whether it was given, and why it is refused. */
typedef struct {
    const char *name;
    bool        given;
    const char *why;
} Refused;

static CornuStatus refuse(const char *who, const Refused *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].given)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .%s is not supported: %s", who,
                               fields[i].name, fields[i].why);
    return CORNU_OK;
}

/* A whole number that a field may have. A written 0 is not the default. */
typedef struct {
    const char *name;
    int         place;    /* as a positional argument; -1: none */
    int64_t     value, least, most;
} Whole;

static CornuStatus check_whole(const char *who, const char *written, const Whole *fields,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Whole *field = &fields[i];
        const bool   usual = field->value == 0 &&
                           !cornu__is_written(written, field->name, field->place);
        if (usual || (field->value >= field->least && field->value <= field->most)) continue;
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected %lld to %lld", who,
                           field->name, (long long)field->value, (long long)field->least,
                           (long long)field->most);
    }
    return CORNU_OK;
}

#define COUNT(array) (sizeof (array) / sizeof *(array))

/* ---- TPUConfig ---- */

CornuStatus cornu__tpu_config_check(const CornuTPUConfig *config)
{
    static const char who[] = "tpu_config";
    const Whole numbers[] = {
        { "iterations_per_loop", 0, config->iterations_per_loop, 1, INT32_MAX },
        { "num_shards", 1, config->num_shards, 1, CORNU_MAX_SHARDS },
    };
    const CornuInputPipelineConfig input = config->per_host_input_for_training;
    const CornuInputPipelineConfig of_eval = config->eval_training_input_configuration;
    const Refused others[] = {
        { "num_cores_per_replica", config->num_cores_per_replica != 0 &&
          config->num_cores_per_replica != 1, "a replica is one core; expected 1" },
        { "per_host_input_for_training", input != CORNU_INPUT_PER_HOST_V1 &&
          input != CORNU_INPUT_PER_HOST_V2,
          "input_fn is called once and its batches are split over the shards; expected "
          "CORNU_INPUT_PER_HOST_V1 or CORNU_INPUT_PER_HOST_V2" },
        { "tpu_job_name", config->tpu_job_name != NULL, "there are no jobs" },
        { "initial_infeed_sleep_secs", config->initial_infeed_sleep_secs != 0,
          "no infeed times out while a step is compiled" },
        { "input_partition_dims", config->input_partition_dims[0] != 0,
          "a batch is split by rows alone" },
        { "eval_training_input_configuration", of_eval != CORNU_INPUT_SLICED &&
          of_eval != CORNU_INPUT_PER_HOST_V1,
          "expected CORNU_INPUT_PER_HOST_V1 or CORNU_INPUT_SLICED" },
        { "experimental_host_call_every_n_steps",
          config->experimental_host_call_every_n_steps != 0 &&
          config->experimental_host_call_every_n_steps != 1,
          "a host_call is called after each loop of iterations_per_loop steps" },
    };
    CORNU__TRY(check_whole(who, config->written, numbers, COUNT(numbers)));
    return refuse(who, others, COUNT(others));
}

CornuTPUConfig cornu_tpu_config_from(const CornuTPUConfig *config)
{
    if (!cornu_error_pending() && cornu__tpu_config_check(config)) cornu__null();
    return *config;
}

/* ---- RunConfig ---- */

static CornuStatus check_saving(const CornuRunConfig *config)
{
    if (config->save_checkpoints_steps > 0 && config->save_checkpoints_secs > 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "run_config: both .save_checkpoints_steps and "
                           ".save_checkpoints_secs are given, expected one");
    if (config->master && config->cluster)
        return cornu__fail(CORNU_ERR_ARGUMENT, "run_config: both .master and .cluster are given, "
                           "expected one");
    if (config->model_dir && !*config->model_dir)
        return cornu__fail(CORNU_ERR_ARGUMENT, "run_config: .model_dir is empty, expected a "
                           "folder");
    return CORNU_OK;
}

CornuStatus cornu__run_config_check(const CornuRunConfig *config)
{
    static const char who[] = "run_config";
    const int64_t steps = config->save_checkpoints_steps;
    const int64_t seconds = config->save_checkpoints_secs;
    const Whole   numbers[] = {
        { "save_summary_steps", -1, config->save_summary_steps, 1, INT64_MAX },
        { "log_step_count_steps", -1, config->log_step_count_steps, 1, INT64_MAX },
        { "tf_random_seed", -1, config->tf_random_seed, 0, INT64_MAX },
        { "keep_checkpoint_max", -1, config->keep_checkpoint_max, CORNU_NONE, INT32_MAX },
        { "intra_op_parallelism_threads", -1,
          config->session_config.intra_op_parallelism_threads, 0, INT32_MAX },
        { "save_checkpoints_steps", -1, steps == CORNU_NONE ? 1 : steps, 1, INT64_MAX },
        { "save_checkpoints_secs", -1, seconds == CORNU_NONE ? 1 : seconds, 1, INT64_MAX },
    };
    const Refused others[] = {
        { "keep_checkpoint_every_n_hours", config->keep_checkpoint_every_n_hours != 0 &&
          config->keep_checkpoint_every_n_hours != 10000,
          "the newest .keep_checkpoint_max are kept; expected 10000" },
        { "train_distribute", config->train_distribute != NULL,
          "a batch is split over .num_shards of .tpu_config" },
        { "eval_distribute", config->eval_distribute != NULL,
          "a batch is split over .num_shards of .tpu_config" },
        { "experimental_distribute", config->experimental_distribute != NULL,
          "a batch is split over .num_shards of .tpu_config" },
        { "device_fn", config->device_fn != NULL, "all ops of a step are on one device" },
        { "protocol", config->protocol != NULL, "there are no servers" },
        { "experimental_max_worker_delay_secs", config->experimental_max_worker_delay_secs != 0,
          "workers are not waited for" },
        { "session_creation_timeout_secs", config->session_creation_timeout_secs != 0,
          "workers are not waited for" },
    };
    CORNU__TRY(cornu__tpu_config_check(&config->tpu_config));
    CORNU__TRY(check_whole(who, config->written, numbers, COUNT(numbers)));
    CORNU__TRY(refuse(who, others, COUNT(others)));
    return check_saving(config);
}

CornuRunConfig cornu_run_config_from(const CornuRunConfig *config)
{
    if (!cornu_error_pending() && cornu__run_config_check(config)) cornu__null();
    return *config;
}

CornuRunConfig cornu__run_config_resolve(const CornuRunConfig *config)
{
    CornuRunConfig to = *config;
    const bool     by_steps = to.save_checkpoints_steps > 0;
    const bool     none = to.save_checkpoints_steps == CORNU_NONE ||
                      to.save_checkpoints_secs == CORNU_NONE;
    const bool     all = cornu__is_written(to.written, "keep_checkpoint_max", -1);
    to.tpu_config.iterations_per_loop = cornu__integer(to.tpu_config.iterations_per_loop, 2);
    to.save_summary_steps = cornu__integer(to.save_summary_steps, 100);
    to.log_step_count_steps = cornu__integer(to.log_step_count_steps, 100);
    to.keep_checkpoint_max = to.keep_checkpoint_max == 0 ? (all ? CORNU_NONE : 5)
                                                         : to.keep_checkpoint_max;
    if (!by_steps && to.save_checkpoints_secs <= 0) to.save_checkpoints_secs = none ? 0 : 600;
    if (by_steps) to.save_checkpoints_secs = 0;
    else to.save_checkpoints_steps = 0;
    if (!to.session_config.given) to.session_config.allow_soft_placement = true;
    to.written = to.tpu_config.written = to.model_dir = to.master = to.evaluation_master = NULL;
    to.cluster = NULL;
    return to;
}
