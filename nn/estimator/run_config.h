/*
 * RunConfig and TPUConfig: where an estimator (estimator.h) trains, and when it saves and reports.
 *
 *     cornu_run_config(.model_dir = "out", .save_checkpoints_steps = 1000,
 *                      .session_config = cornu_session_config(.allow_soft_placement = true),
 *                      .tpu_config = cornu_tpu_config(50, 8))
 *
 * Fields have TensorFlow 1.15's names, defaults and meanings, with the differences said at the
 * field. Zero is the default. What Cornu cannot do is refused by name, with the reason; a wrong
 * field leaves an error pending, so that cornu_tpu_estimator fails. Both are plain structs, whose
 * strings are copied by cornu_tpu_estimator.
 *
 * Sources: tensorflow_estimator/python/estimator/run_config.py; .../estimator/tpu/tpu_config.py;
 * tensorflow/core/protobuf/config.proto, ConfigProto.
 */
#ifndef CORNU_NN_RUN_CONFIG_H
#define CORNU_NN_RUN_CONFIG_H

#include "../config/keywords.h"
#include "../model/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's InputPipelineConfig. */
typedef enum {
    CORNU_INPUT_PER_HOST_V1,      /* also TensorFlow's True: input_fn is called once */
    CORNU_INPUT_PER_SHARD_V1,     /* also False */
    CORNU_INPUT_PER_HOST_V2, CORNU_INPUT_BROADCAST, CORNU_INPUT_SLICED
} CornuInputPipelineConfig;

typedef struct {
    char        unset;
    const char *written;                 /* the call, see keywords.h */
    int64_t     iterations_per_loop;     /* steps from one return to the host to the next; default
                                            2. Hooks are called, checkpoints written and values
                                            logged after a loop. Without effect on a cpu */
    int         num_shards;              /* replicas that share a batch; default the device's. On a
                                            cpu there is one */
    int         num_cores_per_replica;   /* 1; more is refused: a replica is one core */
    CornuInputPipelineConfig per_host_input_for_training; /* V1 and V2 are the same on one host;
                                            the others are refused */
    const char *tpu_job_name;            /* refused: there are no jobs */
    int64_t     initial_infeed_sleep_secs; /* refused: no infeed times out */
    int64_t     input_partition_dims[CORNU_MAX_RANK]; /* refused: a batch is split by rows */
    CornuInputPipelineConfig eval_training_input_configuration; /* PER_HOST_V1 or SLICED, which are
                                            the same on one host */
    int64_t     experimental_host_call_every_n_steps; /* default 1: of the loops' last steps; see
                                            .host_call of the spec. More is refused */
} CornuTPUConfig;

/* TensorFlow's TPUConfig. A pending error for an argument that is refused. */
CornuTPUConfig cornu_tpu_config_from(const CornuTPUConfig *config);
#define cornu_tpu_config(...) \
    cornu_tpu_config_from(&(CornuTPUConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* TensorFlow's ConfigProto. */
typedef struct {
    bool given;                          /* set by cornu_session_config */
    char unset;
    bool allow_soft_placement;           /* else a step with ops that the device has no kernel for,
                                            which run by their reference, is refused; without a
                                            session_config it is allowed */
    bool log_device_placement;           /* logs where each kernel of the step runs (log.h, info) */
    int  intra_op_parallelism_threads;   /* threads; default as device.h */
} CornuSessionConfig;

#define cornu_session_config(...) \
    ((CornuSessionConfig){ .given = true, .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    const char *written;                 /* the call, see keywords.h */
    CornuTPUConfig tpu_config;
    const char *evaluation_master;       /* the device that evaluates and predicts, as .master;
                                            default the one that trains. It need not be in the same
                                            process: another one may evaluate in model_dir
                                            while this one trains there */
    const char *master;                  /* the device that trains with use_tpu: "tpu:v3-8",
                                            "pjrt:tpu" (device.h); default what cornu_tpu_resolve
                                            finds. Addresses are refused by the device */
    const CornuTpuTarget *cluster;       /* in place of .master: what cornu_tpu_resolve found */
    const char *model_dir;               /* checkpoints and events; made if absent. Default the
                                            estimator's */
    int64_t     tf_random_seed;          /* of initial weights, dropout and shuffling; default that
                                            of cornu_set_random_seed */
    int64_t     save_summary_steps;      /* steps between values in the event file; default 100 */
    int64_t     save_checkpoints_steps;  /* at most one of the two; CORNU_NONE: none are written */
    int64_t     save_checkpoints_secs;   /* unless the other is given. Default 600 seconds */
    CornuSessionConfig session_config;
    int64_t     keep_checkpoint_max;     /* default 5; an explicit 0, or CORNU_NONE: all */
    int64_t     keep_checkpoint_every_n_hours; /* 10000, the default; fewer are refused */
    int64_t     log_step_count_steps;    /* steps between logged losses and speeds; default 100 */
    const void *train_distribute, *eval_distribute, *experimental_distribute; /* refused: shards */
    const void *device_fn;               /* refused: a step has one device */
    const char *protocol;                /* refused: there are no servers */
    int64_t     experimental_max_worker_delay_secs, session_creation_timeout_secs; /* refused:
                                            workers are not waited for */
} CornuRunConfig;

/* TensorFlow's tpu.RunConfig, likewise. */
CornuRunConfig cornu_run_config_from(const CornuRunConfig *config);
#define cornu_run_config(...) \
    cornu_run_config_from(&(CornuRunConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
