/*
 * Strategies: where models compiled in their scope train.
 *
 * A TPU strategy is as in notebooks for Keras on TPUs: the device found, the number of shards that
 * a batch is split into, and the number of steps per execution.
 *
 *     CornuTpuTarget tpu;
 *     cornu_tpu_resolve(&tpu);                                      what is there? see resolver.h
 *     CornuStrategy *strategy = cornu_tpu_strategy(&tpu, .num_shards = 8);
 *     CORNU_SCOPE(strategy) {
 *         cornu_compile(model, .optimizer = cornu_adam(), …);       compiled for the TPU
 *     }
 *     cornu_keras_to_tpu_model(other, strategy);                    compiled before, moved there
 *
 * A multi-worker strategy is Keras' MultiWorkerMirroredStrategy: each of several processes runs
 * this program, owns some of the shards, and sums gradients with the others (processes.h). The
 * weights that come out have the same bits however many processes there are, for the same number of
 * shards.
 *
 *     CornuStrategy *workers = cornu_multi_worker_strategy(.num_shards = 8);
 *     CORNU_SCOPE(workers) cornu_compile(model, …);
 *
 * Sources: tensorflow/contrib/tpu/python/tpu/keras_support.py; tf.distribute.TPUStrategy,
 * tf.distribute.MultiWorkerMirroredStrategy.
 */
#ifndef CORNU_NN_STRATEGY_H
#define CORNU_NN_STRATEGY_H

#include "../../device/mesh/layout_map.h"
#include "../../device/mesh/timetable.h"
#include "../../device/tpu/resolver.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuStrategy CornuStrategy;

typedef struct {
    char                  unset;
    const CornuTpuTarget *target;              /* default: what cornu_tpu_resolve finds   */
    int                   num_shards;          /* 1 to 1024; default the profile's        */
    int                   threads;             /* of the emulation; default as device.h   */
    CornuPrecision        precision;           /* of products of f32; default as device.h */
    int64_t               iterations_per_loop; /* steps_per_execution of models compiled
                                                  in scope or converted; default 1        */
    CornuProcesses       *processes;           /* that share the shards; default this alone;
                                                  close them after the strategy           */
} CornuTpuStrategyConfig;

/* Opens the device. NULL with a pending error if the resolver or the device refuses. */
CornuStrategy *cornu_tpu_strategy_from(const CornuTpuStrategyConfig *config);
#define cornu_tpu_strategy(...) \
    cornu_tpu_strategy_from(&(CornuTpuStrategyConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char                  unset;
    const char           *device;              /* default "cpu"; or "tpu", "tpu:v3-8"        */
    int                   num_shards;          /* 1 to 1024, at least one a process; default
                                                  one a process on cpu, the profile's on tpu */
    int                   threads;             /* of this process; default as device.h       */
    CornuPrecision        precision;           /* as device.h                                */
    int64_t               iterations_per_loop; /* as above                                   */
    CornuProcessesConfig  processes;           /* how they find each other; by default as
                                                  the launcher says, or TF_CONFIG            */
} CornuMultiWorkerStrategyConfig;

/* Meets the other processes and opens the device. NULL with a pending error, as
 * cornu_processes_open and cornu_device_open. Started alone it is a group of one. */
CornuStrategy *cornu_multi_worker_strategy_from(const CornuMultiWorkerStrategyConfig *config);
#define cornu_multi_worker_strategy(...) \
    cornu_multi_worker_strategy_from(&(CornuMultiWorkerStrategyConfig){ .unset = 0, __VA_ARGS__ })

/*
 * A mesh of shards, as Keras' DeviceMesh: an array with named axes.
 *
 *     cornu_device_mesh(.shape = { 2, 4 }, .axis_names = { "batch", "model" })
 */
typedef struct {
    char        unset;
    int         shape[CORNU_MESH_AXES];        /* required: shards along each axis, 1 or more   */
    const char *axis_names[CORNU_MESH_AXES];   /* default "batch", "model" for the first two    */
} CornuDeviceMeshConfig;

/* Without axes, with a pending error, if an axis has no shards or no name. */
CornuMesh cornu_device_mesh_from(const CornuDeviceMeshConfig *config);
#define cornu_device_mesh(...) \
    cornu_device_mesh_from(&(CornuDeviceMeshConfig){ .unset = 0, __VA_ARGS__ })

/* Shards that share the rows of a batch; a mesh of them may cut the model as well. */
typedef struct {
    char                  unset;
    int                   num_shards;          /* 1 to 1024; default the mesh's, else one a process
                                                  on cpu, the profile's on tpu            */
    CornuMesh             mesh;                /* default one axis, "batch", of num_shards */
    const CornuLayoutRow *layout_map;          /* what the mesh cuts, up to a row without a
                                                  pattern; default none                   */
    const char           *batch_dim_name;      /* default "batch", else the mesh's first axis */
    const char           *device;              /* default "cpu"; or "tpu", "tpu:v3-8"     */
    int                   threads;             /* of this process; default as device.h    */
    CornuPrecision        precision;           /* as device.h                             */
    int64_t               iterations_per_loop; /* as above                                */
    CornuProcesses       *processes;           /* as above                                */
    int64_t               shard_memory;        /* as device.h                             */
} CornuParallelConfig;

/*
 * Keras' DataParallel: each shard has the whole model and a part of the rows, and gradients are
 * summed over all. A mesh has one axis; there is no layout map.
 *
 * Source: keras.distribution.
 *
 * Opens the device. NULL with a pending error, as cornu_device_open, and if num_shards is not the
 * mesh's.
 */
CornuStrategy *cornu_data_parallel_from(const CornuParallelConfig *config);
#define cornu_data_parallel(...) \
    cornu_data_parallel_from(&(CornuParallelConfig){ .unset = 0, __VA_ARGS__ })

/*
 * Keras' ModelParallel: the mesh cuts variables by a layout map (device/mesh/layout_map.h), and the
 * rows of a batch along one of its axes. Models are written, saved and loaded as without; the
 * shards exchange what their layouts need. A pattern for which a compiled model has no weight is an
 * error of cornu_compile.
 *
 *     CornuStrategy *parallel = cornu_model_parallel(
 *         .mesh = cornu_device_mesh(.shape = { 2, 4 }), .layout_map = (CornuLayoutRow[]){
 *             { "dense/kernel", { NULL, "model" } }, { "dense_1/kernel", { "model" } }, { 0 } });
 *     CORNU_SCOPE(parallel) cornu_compile(model, …);
 *
 * Source: keras.distribution.
 *
 * Opens the device, and fails, as cornu_data_parallel; .mesh and .layout_map are required.
 */
CornuStrategy *cornu_model_parallel_from(const CornuParallelConfig *config);
#define cornu_model_parallel(...) \
    cornu_model_parallel_from(&(CornuParallelConfig){ .unset = 0, __VA_ARGS__ })

/*
 * Fully sharded data parallelism (FSDP; stage 3 of ZeRO): as data parallelism, with the same bits,
 * but each shard keeps only its part of the weights, of their gradients and of the optimizer's
 * slots. A layer's weights are gathered from all shards before it is computed, forward and again
 * backward, and dropped after; gradients are summed and scattered.
 *
 * Of each weight the first axis that the number of shards divides is cut. Biases and other weights
 * of one axis stay whole, as do those with fewer than CORNU_SHARDED_ELEMENTS elements or without
 * such an axis (device/mesh/layout_map.h), and embeddings with .sparse_gradient.
 *
 *     CornuStrategy *sharded = cornu_fully_sharded(.num_shards = 8);
 *     CORNU_SCOPE(sharded) cornu_compile(model, …);
 *
 * With a mesh of more axes, weights are cut along the one of the batch, and by the layout map along
 * the others.
 *
 * Sources: Rajbhandari et al., ZeRO, arXiv 1910.02054; Zhao et al., PyTorch FSDP, arXiv 2304.11277.
 *
 * Opens the device, and fails, as cornu_data_parallel.
 */
CornuStrategy *cornu_fully_sharded_from(const CornuParallelConfig *config);
#define cornu_fully_sharded(...) \
    cornu_fully_sharded_from(&(CornuParallelConfig){ .unset = 0, __VA_ARGS__ })

/*
 * A pipeline: layers are dealt to stages, the rows of a batch to microbatches, and the stages train
 * on different microbatches at a time (device/mesh/timetable.h). Gradients are added over a batch
 * and applied once, so that training is that on whole batches but for the grouping of sums; only
 * BatchNormalization and SpectralNormalization go on by a microbatch at a time. The bits of the
 * weights do not depend on the stages, the schedule and the processes, as long as the microbatches
 * are the same; .stages = 1 is plain gradient accumulation. Evaluation and predictions are as
 * without. pipeline_parallel.h shows what a model became.
 *
 *     CornuStrategy *pipeline = cornu_pipeline_parallel(.stages = 4, .microbatches = 8,
 *                                                       .schedule = CORNU_1F1B);
 *     CORNU_SCOPE(pipeline) cornu_compile(model, …);
 *
 * With several shards each microbatch is shared by them. With a mesh those along its batch axis
 * do, and layouts cut the weights of each stage along the others, as cornu_model_parallel does
 * without a pipeline. All shards have all stages. For one number of shards, one mesh and one layout
 * map the bits do not depend on the rest.
 *
 *     cornu_pipeline_parallel(.stages = 2, .microbatches = 8, .layout_map = …,
 *                             .mesh = cornu_device_mesh(.shape = { 2, 2 }))
 *
 * The stages take turns on the device of one process, or are dealt to several in contiguous blocks:
 * each has the weights, gradients and slots of its own stages, from the first step on, and feeds
 * all rows. With several shards the processes are as many groups as there are stages, or fewer:
 * each group has a block of stages, and each process of it some of the shards of these; 8 processes
 * are 4 groups of 2 for 4 stages of 2 or more shards. Fitting, evaluating, predicting, reading
 * weights and saving are then for all processes at once, with the same results on each; a graph of
 * the program's own cannot read what other processes have (CORNU_ERR_UNSUPPORTED). Where a
 * microbatch cannot stand for a part of the batch, the first training step is refused: losses with
 * masks, with CORNU_MEAN_WITH_SAMPLE_WEIGHT or over the whole batch, stateful layers,
 * .sparse_gradient.
 */
typedef struct {
    char                  unset;
    int                   stages;              /* 1 to 32; required                       */
    int                   microbatches;        /* 1 to 1024, and no more than a batch has rows;
                                                  required                                */
    CornuPipelineSchedule schedule;            /* default CORNU_GPIPE                     */
    const char           *cut_at[CORNU_MAX_STAGES - 1];   /* the layers that begin a stage after the
                                                  first, one for each; default: stages of equal
                                                  modelled time                           */
    const char           *device;              /* default "cpu"                           */
    int                   threads;             /* of this process; default as device.h    */
    CornuPrecision        precision;           /* as device.h                             */
    int64_t               iterations_per_loop; /* as above                                */
    CornuProcesses       *processes;           /* that share the stages; default this alone; close
                                                  them after the strategy                 */
    int                   num_shards;          /* of each stage, which share its microbatches;
                                                  default the mesh's, else 1              */
    CornuMesh             mesh;                /* of these shards; default none, nothing is cut */
    const CornuLayoutRow *layout_map;          /* how the mesh cuts variables; default not at all */
    bool                  fully_sharded;       /* it also cuts large weights along its batch axis,
                                                  as cornu_fully_sharded          */
    const char           *batch_dim_name;      /* default "batch", else the mesh's first axis */
    int64_t               shard_memory;        /* as device.h                             */
} CornuPipelineParallelConfig;

/* Opens the device. NULL with a pending error, as cornu_device_open, and CORNU_ERR_ARGUMENT for
 * processes that stages and shards cannot be dealt to. */
CornuStrategy *cornu_pipeline_parallel_from(const CornuPipelineParallelConfig *config);
#define cornu_pipeline_parallel(...) \
    cornu_pipeline_parallel_from(&(CornuPipelineParallelConfig){ .unset = 0, __VA_ARGS__ })

/* Closes the device, and leaves the processes that the strategy has met; free the models on it, or
 * move them away, before. */
void cornu_strategy_free(CornuStrategy *strategy);

CornuDevice    *cornu_strategy_device(const CornuStrategy *strategy);      /* which it owns */
CornuProcesses *cornu_strategy_processes(const CornuStrategy *strategy);   /* NULL: none */
/* The steps per call from the host that it was made with, at least 1. */
int64_t         cornu_strategy_iterations_per_loop(const CornuStrategy *strategy);

/* ---- Scope ---- */

/*
 * Python's `with strategy.scope():`. In the following block, cornu_compile without .device
 * compiles for the strategy's device. The innermost of nested scopes applies; scopes are per
 * thread. The block runs once. Its end, break and continue leave the scope; return and goto out of
 * it do not, so call cornu_scope_leave before them. With NULL the block runs with a pending error,
 * so that nothing succeeds.
 */
#define CORNU_SCOPE(strategy)                                                          \
    for (bool cornu_inside = cornu_scope_enter(strategy); cornu_inside;                \
         cornu_inside = cornu_scope_leave())                                           \
        for (; cornu_inside; cornu_inside = false)

/* Returns true, for the macro. At most 8 nested scopes; more is a pending error. */
bool cornu_scope_enter(CornuStrategy *strategy);
/* Returns false, for the macro. */
bool cornu_scope_leave(void);

/* Keras' keras.distribution.set_distribution: the strategy of this thread outside of all scopes;
 * NULL: none, as at first. */
void           cornu_set_distribution(CornuStrategy *strategy);

/* The innermost strategy of this thread; outside of all that of cornu_set_distribution, or NULL. */
CornuStrategy *cornu_strategy_in_scope(void);

/* ---- Conversion ---- */

/*
 * Moves a compiled model to the strategy's device (cornu_model_move), with the strategy's
 * iterations_per_loop, and returns it; on failure NULL with a pending error, and the model stays
 * where it was. It is the same model, freed once by its owner. TensorFlow's function made a second
 * model whose weights had to be copied back; here weights are read and saved from any device, and
 * cornu_model_move(model, NULL) moves the model back.
 */
CornuModel *cornu_keras_to_tpu_model(CornuModel *model, CornuStrategy *strategy);

#ifdef __cplusplus
}
#endif
#endif
