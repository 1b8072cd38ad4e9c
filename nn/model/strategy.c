#include "strategy.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"
#include "model_internal.h"
#include "pipeline_plan_internal.h"

struct CornuStrategy {
    CornuDevice    *device;
    CornuProcesses *processes;   /* met by the strategy; NULL: none */
    int64_t         iterations_per_loop;
    CornuPipelinePlan plan;      /* of models compiled in its scope; no stages: none */
};

static CornuStrategy *create_strategy(const char *what, int64_t iterations_per_loop)
{
    if (cornu__refused()) return NULL;
    if (iterations_per_loop < 0 || iterations_per_loop > INT32_MAX)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .iterations_per_loop is %lld, expected 1 "
                                "to %d", what, (long long)iterations_per_loop, INT32_MAX);
    CornuStrategy *strategy = cornu__allocate(1, sizeof *strategy);
    if (!strategy) return cornu__null();
    strategy->iterations_per_loop = iterations_per_loop ? iterations_per_loop : 1;
    return strategy;
}

static CornuStrategy *with_device(CornuStrategy *strategy, CornuDevice *device)
{
    strategy->device = device;
    if (device) return strategy;
    cornu_strategy_free(strategy);
    return NULL;
}

static CornuDevice *open_device(const CornuTpuStrategyConfig *config)
{
    CornuTpuTarget found;
    if (!config->target && cornu_tpu_resolve(&found)) return cornu__null();
    return cornu_device_open(config->target ? config->target->device : found.device,
                             .shards = config->num_shards, .threads = config->threads,
                             .precision = config->precision, .processes = config->processes);
}

CornuStrategy *cornu_tpu_strategy_from(const CornuTpuStrategyConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    CornuStrategy *strategy = create_strategy("tpu_strategy", config->iterations_per_loop);
    return strategy ? with_device(strategy, open_device(config)) : NULL;
}

CornuStrategy *cornu_multi_worker_strategy_from(const CornuMultiWorkerStrategyConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    CornuStrategy *strategy = create_strategy("multi_worker_strategy", config->iterations_per_loop);
    const char    *device = config->device ? config->device : "cpu";
    int            shards = config->num_shards;
    if (!strategy) return NULL;
    strategy->processes = cornu_processes_open_from(&config->processes);
    if (!strategy->processes) return with_device(strategy, NULL);
    if (shards == 0 && strcmp(device, "cpu") == 0)
        shards = cornu_process_count(strategy->processes);
    return with_device(strategy, cornu_device_open(
        device, .shards = shards, .threads = config->threads, .precision = config->precision,
        .processes = strategy->processes));
}

CornuMesh cornu_device_mesh_from(const CornuDeviceMeshConfig *config)
{
    static const char *const usual[CORNU_MESH_AXES] = { "batch", "model" };
    CornuMesh                mesh = { .axes = 0 };
    CORNU__NEED_OR(config, mesh);
    while (mesh.axes < CORNU_MESH_AXES && config->shape[mesh.axes]) {
        const int   i = mesh.axes++;
        const char *name = config->axis_names[i] ? config->axis_names[i] : usual[i];
        mesh.extent[i] = config->shape[i];
        if (name && strlen(name) < CORNU_MESH_NAME) strcpy(mesh.name[i], name);
    }
    if (mesh.axes == 0)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "device_mesh: .shape is required, the number of "
                         "shards along each axis");
    else if (cornu__fail_prefix(cornu_mesh_check(&mesh), "device_mesh"))
        cornu__null();
    return cornu_error_pending() ? (CornuMesh){ .axes = 0 } : mesh;
}

/* Gives the strategy's device its mesh; NULL for NULL, and if it cannot have it: then it is freed.
 * batch: the axis of the batch, NULL for the usual one. */
static CornuStrategy *with_mesh(CornuStrategy *strategy, const CornuMesh *mesh, const char *batch,
                                const CornuLayoutRow *layout_map, bool fully_sharded)
{
    if (!strategy) return NULL;
    if (!batch && cornu_mesh_axis(mesh, "batch") >= 0) batch = "batch";
    CornuStatus status = cornu_device_set_mesh(strategy->device, mesh, batch, layout_map);
    if (!status && fully_sharded) status = cornu_device_shard_fully(strategy->device);
    if (!status) return strategy;
    cornu_strategy_free(strategy);
    return cornu__null();
}

static CornuStrategy *open_parallel(const CornuParallelConfig *config, const char *name,
                                    bool fully_sharded)
{
    if (cornu__fail_prefix(cornu_mesh_check(&config->mesh), name)) return cornu__null();
    const char *device = config->device ? config->device : "cpu";
    const int   size = config->mesh.axes ? cornu_mesh_size(&config->mesh, ~0u) : 0;
    CornuMesh   mesh = config->mesh;
    int         shards = config->num_shards ? config->num_shards : size;
    if (size && shards != size)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .num_shards is %d, but the .mesh has %d",
                                name, shards, size);
    if (shards == 0 && strcmp(device, "cpu") == 0) shards = cornu_process_count(config->processes);
    CornuStrategy *strategy = create_strategy(name, config->iterations_per_loop);
    if (!strategy) return NULL;
    strategy = with_device(strategy, cornu_device_open(
        device, .shards = shards, .threads = config->threads, .precision = config->precision,
        .processes = config->processes, .shard_memory = config->shard_memory));
    if (!size && !fully_sharded) return strategy;   /* the shards share the rows by themselves */
    if (strategy && !size)
        mesh = (CornuMesh){ 1, { cornu_device_shards(strategy->device) }, { "batch" } };
    return with_mesh(strategy, &mesh, config->batch_dim_name, config->layout_map, fully_sharded);
}

CornuStrategy *cornu_data_parallel_from(const CornuParallelConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    if (config->layout_map || config->mesh.axes > 1)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "data_parallel: %s, which cornu_model_parallel "
                                "takes", config->layout_map ? "a .layout_map is given"
                                                            : "the .mesh has several axes");
    return open_parallel(config, "data_parallel", false);
}

CornuStrategy *cornu_model_parallel_from(const CornuParallelConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    if (!config->mesh.axes || !config->layout_map)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "model_parallel: %s is required",
                                config->mesh.axes ? ".layout_map" : ".mesh");
    return open_parallel(config, "model_parallel", false);
}

CornuStrategy *cornu_fully_sharded_from(const CornuParallelConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    return open_parallel(config, "fully_sharded", true);
}

CornuStatus cornu__plan_stages(const CornuPipelineParallelConfig *config, CornuPipelinePlan *plan)
{
    CornuTimetable timetable;
    CORNU__TRY(cornu_timetable_make(&timetable, config->stages, config->microbatches,
                                    config->schedule));
    cornu_timetable_free(&timetable);
    *plan = (CornuPipelinePlan){ .stages = config->stages, .microbatches = config->microbatches,
                                 .schedule = config->schedule };
    while (plan->cuts < CORNU_MAX_STAGES - 1 && config->cut_at[plan->cuts]) {
        const char *name = config->cut_at[plan->cuts];
        if (strlen(name) >= sizeof plan->cut_at[0])
            return cornu__fail(CORNU_ERR_ARGUMENT, ".cut_at[%d] has %zu characters, expected at "
                               "most %zu", plan->cuts, strlen(name), sizeof plan->cut_at[0] - 1);
        strcpy(plan->cut_at[plan->cuts++], name);
    }
    if (plan->cuts && plan->cuts != plan->stages - 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".cut_at names %d layers, expected %d: those that "
                           "begin the stages after the first of %d", plan->cuts, plan->stages - 1,
                           plan->stages);
    return CORNU_OK;
}

/* The groups of processes that stages are dealt to, those of a group sharing the shards: as many
 * groups as can be. */
static CornuStatus choose_groups(const CornuPipelineParallelConfig *config, int shards, int *groups)
{
    const int processes = cornu_process_count(config->processes), stages = config->stages;
    *groups = processes < stages ? processes : stages;
    while (*groups > 0 && (processes % *groups || processes / *groups > shards)) (*groups)--;
    if (*groups > 0) return CORNU_OK;
    if (shards == 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d processes for %d stages, expected at least one "
                           "stage for each", processes, stages);
    return cornu__fail(CORNU_ERR_ARGUMENT, "%d processes for %d stages of %d shards, expected the "
                       "product of a number of groups up to %d, of which each has some stages, and "
                       "of processes of a group up to %d, of which each has some shards", processes,
                       stages, shards, stages, shards);
}

static CornuStrategy *with_stages(CornuStrategy *strategy,
                                  const CornuPipelineParallelConfig *config)
{
    const int size = config->mesh.axes ? cornu_mesh_size(&config->mesh, ~0u) : 0;
    const int shards = config->num_shards ? config->num_shards : size ? size : 1;
    int       groups = 0;
    CornuStatus status = cornu__plan_stages(config, &strategy->plan);
    if (!status && size && shards != size)
        status = cornu__fail(CORNU_ERR_ARGUMENT, ".num_shards is %d, but the .mesh has %d", shards,
                             size);
    if (!status && !config->mesh.axes && (config->layout_map || config->fully_sharded))
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s is for a .mesh of the shards of a stage, "
                             "expected one", config->layout_map ? ".layout_map"
                                                                : ".fully_sharded");
    if (!status) status = choose_groups(config, shards, &groups);
    if (cornu__fail_prefix(status, "pipeline_parallel")) {
        cornu_strategy_free(strategy);
        return cornu__null();
    }
    return with_device(strategy, cornu_device_open(
        config->device ? config->device : "cpu", .shards = shards, .threads = config->threads,
        .precision = config->precision, .processes = config->processes, .groups = groups,
        .shard_memory = config->shard_memory));
}

CornuStrategy *cornu_pipeline_parallel_from(const CornuPipelineParallelConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    if (config->mesh.axes && cornu__fail_prefix(cornu_mesh_check(&config->mesh),
                                                "pipeline_parallel"))
        return cornu__null();
    CornuStrategy *strategy = create_strategy("pipeline_parallel", config->iterations_per_loop);
    if (strategy) strategy = with_stages(strategy, config);
    if (!config->mesh.axes) return strategy;
    return with_mesh(strategy, &config->mesh, config->batch_dim_name, config->layout_map,
                     config->fully_sharded);
}

const CornuPipelinePlan *cornu__strategy_plan(const CornuStrategy *strategy)
{
    return strategy && strategy->plan.stages ? &strategy->plan : NULL;
}

void cornu_strategy_free(CornuStrategy *strategy)
{
    if (!strategy) return;
    cornu_device_close(strategy->device);
    cornu_processes_close(strategy->processes);
    cornu__release(strategy);
}

CornuDevice *cornu_strategy_device(const CornuStrategy *strategy)
{
    CORNU__NEED_OR(strategy, NULL);
    return strategy->device;
}

CornuProcesses *cornu_strategy_processes(const CornuStrategy *strategy)
{
    CORNU__NEED_OR(strategy, NULL);
    return cornu_device_processes(strategy->device);
}

int64_t cornu_strategy_iterations_per_loop(const CornuStrategy *strategy)
{
    CORNU__NEED_OR(strategy, 0);
    return strategy->iterations_per_loop;
}

/* ---- Scope ---- */

enum { DEEPEST = 8 };

static _Thread_local CornuStrategy *scopes[DEEPEST];
static _Thread_local int            depth;   /* including scopes beyond the limit */
static _Thread_local CornuStrategy *distribution;

void cornu_set_distribution(CornuStrategy *strategy) { distribution = strategy; }

bool cornu_scope_enter(CornuStrategy *strategy)
{
    if (!strategy)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "CORNU_SCOPE: the strategy is NULL");
    if (depth >= DEEPEST)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "CORNU_SCOPE: %d scopes in each other, expected %d "
                         "at most; return and goto do not leave a scope", depth + 1, DEEPEST);
    else
        scopes[depth] = strategy;
    depth++;
    return true;
}

bool cornu_scope_leave(void)
{
    if (depth > 0) depth--;
    return false;
}

CornuStrategy *cornu_strategy_in_scope(void)
{
    if (depth == 0) return distribution;
    return depth <= DEEPEST ? scopes[depth - 1] : NULL;
}
