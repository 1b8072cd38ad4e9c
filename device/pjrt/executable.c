/* Programs on the pjrt device: compiled by the plugin from StableHLO, run on all shards at once. */
#include <stdio.h>
#include <string.h>

#include "../clock_internal.h"
#include "../debug_internal.h"
#include "../memory_internal.h"
#include "cache.h"
#include "figures.h"
#include "options.h"

typedef struct {
    CornuExecutable base;
    CornuModule     module;
    PjrtExecutable *compiled;
    PjrtLoaded     *loaded;                    /* NULL if it was compiled ahead of time */
    size_t          in_count, out_count;       /* of the module; one result more for checks */
    PjrtBuffer    **in, **out;                 /* those of shard 0, of shard 1, ... */
    PjrtBuffer    **in_of[CORNU_MAX_SHARDS], **out_of[CORNU_MAX_SHARDS];
    PjrtEvent      *done[CORNU_MAX_SHARDS];
    int64_t        *found;                     /* the checks of a shard, fetched */
} Executable;

/* ---- Compiling ---- */

static CornuStatus compile_ahead(Executable *executable, const CornuPjrtDevice *device,
                                 const PjrtProgram *program, const CornuPjrtOptions *options)
{
    PjrtCompile call = PJRT_ARGUMENTS(PjrtCompile, .topology = device->topology,
        .program = program, .options = options->bytes, .options_size = options->size);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_COMPILE, &call));
    executable->compiled = call.executable;
    return CORNU_OK;
}

static CornuStatus compile_to_run(Executable *executable, const CornuPjrtDevice *device,
                                  const PjrtProgram *program, const CornuPjrtOptions *options)
{
    PjrtClientCompile call = PJRT_ARGUMENTS(PjrtClientCompile, .client = device->client,
        .program = program, .options = options->bytes, .options_size = options->size);
    CornuPjrtCache    cache;
    CornuStatus       status = CORNU_OK;
    cornu__pjrt_cache_open(&cache, device, program, options);
    executable->loaded = cornu__pjrt_cache_load(&cache);
    if (!executable->loaded) {
        status = cornu__pjrt_call(device->plugin, PJRT_CLIENT_COMPILE, &call);
        executable->loaded = call.loaded;
        if (status == CORNU_OK) cornu__pjrt_cache_store(&cache, call.loaded);
    }
    cornu__pjrt_cache_close(&cache);
    if (status) return status;
    PjrtLoadedGetExecutable get = PJRT_ARGUMENTS(PjrtLoadedGetExecutable,
                                                 .loaded = executable->loaded);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_LOADED_GET_EXECUTABLE, &get));
    executable->compiled = get.executable;
    return CORNU_OK;
}

static CornuStatus compile(Executable *executable, CornuPjrtDevice *device)
{
    static const char  format[] = "mlir";
    const CornuModule *module = &executable->module;
    CornuPjrtOptions   options;
    cornu__pjrt_options(&options, device);
    const PjrtProgram program = PJRT_ARGUMENTS(PjrtProgram, .code = module->text,
        .code_size = module->size, .format = format, .format_size = sizeof format - 1);
    return device->topology ? compile_ahead(executable, device, &program, &options)
                            : compile_to_run(executable, device, &program, &options);
}

void cornu__pjrt_figures(const CornuExecutable *base, CornuCompiledFigures *figures)
{
    cornu__pjrt_read_figures(cornu__pjrt_of(base->device)->plugin,
                             ((const Executable *)base)->compiled, figures);
}

/* One step: the plugin's executable, of which XLA alone knows the parts. */
static CornuStatus describe(Executable *executable, const CornuProgram *program, int shards)
{
    CornuStatistics *statistics = &executable->base.statistics;
    CornuType       *types = cornu__allocate(executable->in_count + executable->out_count,
                                             sizeof *types);
    int             *ops = cornu__allocate((size_t)program->op_count, sizeof *ops);
    CornuStatus      status = types && ops ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status) status = cornu__describe_begin(&executable->base, program, 1);
    for (int i = 0; !status && i < program->input_count; i++)
        types[i] = cornu_program_type(program, program->inputs[i]);
    for (int i = 0; !status && i < program->output_count; i++)
        types[program->input_count + i] = cornu_program_type(program, program->outputs[i].value);
    for (int i = 0; !status && i < program->op_count; i++) ops[i] = i;
    if (!status)
        status = cornu__describe_step(&executable->base, &(CornuExecutableStep){
            .name = "xla", .kind = "kernel", .scope = "", .ops = ops,
            .op_count = program->op_count, .in = types, .in_count = program->input_count,
            .out = types + program->input_count, .out_count = program->output_count,
            .per_shard = shards > 1 });
    statistics->flops = cornu_program_flops(program) * shards;
    statistics->ops = program->op_count;
    statistics->kernels = 1;
    statistics->bytes_planned = executable->base.bytes * shards;
    if (!status)
        statistics->bytes_moved = executable->base.steps->bytes_read +
                                  executable->base.steps->bytes_written;
    cornu__release(ops);
    cornu__release(types);
    return status;
}

static CornuStatus allocate(Executable *executable, const CornuProgram *program, int shards)
{
    const size_t checks = (size_t)executable->module.check_count;
    executable->in_count = (size_t)program->input_count;
    executable->out_count = (size_t)program->output_count + (checks > 0);
    executable->in = cornu__allocate(executable->in_count * (size_t)shards,
                                     sizeof *executable->in);
    executable->out = cornu__allocate(executable->out_count * (size_t)shards,
                                      sizeof *executable->out);
    executable->found = cornu__allocate(2 * checks, sizeof *executable->found);
    if (!executable->in || !executable->out || !executable->found) return CORNU_ERR_MEMORY;
    for (int i = 0; i < shards; i++) {
        executable->in_of[i] = executable->in + (size_t)i * executable->in_count;
        executable->out_of[i] = executable->out + (size_t)i * executable->out_count;
    }
    return CORNU_OK;
}

CornuExecutable *cornu__pjrt_compile(CornuDevice *base, const CornuProgram *program)
{
    CornuPjrtDevice *device = cornu__pjrt_of(base);
    Executable      *executable = cornu__allocate(1, sizeof *executable);
    if (!executable) return NULL;
    executable->base.device = base;
    CornuStatus status = cornu__module_emit(&executable->module, program, device->target);
    if (!status && cornu__dumps("stablehlo")) fputs(executable->module.text, stderr);
    if (!status) status = allocate(executable, program, base->shards);
    if (!status) status = compile(executable, device);
    if (!status) {
        CornuCompiledFigures figures = { .has_memory = false };
        cornu__pjrt_read_memory(device->plugin, executable->compiled, &figures);
        executable->base.bytes = figures.temporary_bytes;
        status = describe(executable, program, base->shards);
    }
    if (!status) return &executable->base;
    cornu__describe_free(&executable->base);
    cornu__pjrt_executable_free(&executable->base);
    return NULL;
}

void cornu__pjrt_executable_free(CornuExecutable *base)
{
    Executable      *executable = (Executable *)base;
    CornuPjrtDevice *device = cornu__pjrt_of(base->device);
    PjrtLoadedDestroy destroy = PJRT_ARGUMENTS(PjrtLoadedDestroy, .loaded = executable->loaded);
    PjrtExecutableDestroy destroy_compiled = PJRT_ARGUMENTS(PjrtExecutableDestroy,
                                                            .executable = executable->compiled);
    if (executable->compiled)
        cornu__pjrt_call(device->plugin, PJRT_EXECUTABLE_DESTROY, &destroy_compiled);
    if (executable->loaded) cornu__pjrt_call(device->plugin, PJRT_LOADED_DESTROY, &destroy);
    cornu__module_free(&executable->module);
    cornu__release(executable->in);
    cornu__release(executable->out);
    cornu__release(executable->found);
    cornu__release(executable);
}

/* ---- Running ---- */

/* What the checks of a shard found: the first row of the first op with bad data. */
static CornuStatus check(Executable *executable, int shard, int shards)
{
    const CornuModule *module = &executable->module;
    for (int i = 0; i < module->check_count; i++) {
        const CornuCheck *check = &module->checks[i];
        const int64_t     row = executable->found[2 * i], number = executable->found[2 * i + 1];
        CornuFailure      failure;
        if (row >= check->rows) continue;
        if (check->is_scalar)
            return cornu__fail(CORNU_ERR_VALUE, "%s: %s is %lld, expected 0 to %lld",
                               cornu_op_name(check->id), check->what, (long long)number,
                               (long long)check->limit - 1);
        const CornuStatus status = cornu__fail_prefix(
            cornu__fail_value((CornuFault){ row, check->rows, 0 },
                              "%s %lld in row %lld, expected 0 to %lld", check->what,
                              (long long)number, (long long)row, (long long)check->limit - 1),
            cornu_op_name(check->id));
        if (shards == 1) return status;
        cornu__failure_keep(&failure, status);
        return cornu__failure_tell_shard(&failure, shard);
    }
    return CORNU_OK;
}

/* Waits for all shards, whatever fails. */
static CornuStatus await_shards(Executable *executable)
{
    const CornuPjrtDevice *device = cornu__pjrt_of(executable->base.device);
    CornuStatus            status = CORNU_OK;
    for (int i = 0; i < device->base.shards; i++) {
        const CornuStatus own = cornu__pjrt_await(device->plugin, executable->done[i]);
        if (!status) status = own;
    }
    return status;
}

/* Fetches what the checks found, on every shard, and destroys it. */
static CornuStatus check_shards(Executable *executable, CornuStatus status)
{
    const CornuPjrtDevice *device = cornu__pjrt_of(executable->base.device);
    const int              shards = device->base.shards;
    const CornuType        type = cornu_type(CORNU_I64, executable->module.check_count, 2);
    for (int i = 0; i < shards && executable->module.check_count; i++) {
        PjrtBuffer *checks = executable->out_of[i][executable->out_count - 1];
        if (!status) status = cornu__pjrt_fetch(device, checks, type, executable->found);
        if (!status) status = check(executable, i, shards);
        cornu__pjrt_destroy(device, checks);
    }
    return status;
}

static CornuStatus upload(Executable *executable, CornuBuffer *const *inputs)
{
    const CornuProgram *program = executable->base.program;
    const int           shards = executable->base.device->shards;
    for (int i = 0; i < program->input_count; i++) {
        CornuPjrtBuffer         *buffer = (CornuPjrtBuffer *)inputs[i];
        const CornuProgramValue *value = &program->values[program->inputs[i]];
        CORNU__TRY(cornu__pjrt_upload(buffer, value->type, value->varies));
        for (int shard = 0; shard < shards; shard++)
            executable->in_of[shard][i] = buffer->on[shard];
    }
    return CORNU_OK;
}

static void take_results(Executable *executable, CornuBuffer *const *inputs,
                         CornuBuffer *const *outputs)
{
    const CornuProgram *program = executable->base.program;
    const int           shards = executable->base.device->shards;
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        CornuBuffer *to = output->alias < 0 ? outputs[i] : inputs[output->alias];
        PjrtBuffer  *on[CORNU_MAX_SHARDS];
        for (int shard = 0; shard < shards; shard++) on[shard] = executable->out_of[shard][i];
        cornu__pjrt_take_over((CornuPjrtBuffer *)to, on, program->values[output->value].varies);
    }
}

CornuStatus cornu__pjrt_run(CornuExecutable *base, CornuBuffer *const *inputs,
                            CornuBuffer *const *outputs)
{
    Executable        *executable = (Executable *)base;
    CornuPjrtDevice   *device = cornu__pjrt_of(base->device);
    const double       begin = cornu__seconds();
    PjrtExecuteOptions options = PJRT_ARGUMENTS(PjrtExecuteOptions, .kept = NULL);
    PjrtLoadedExecute  call = PJRT_ARGUMENTS(PjrtLoadedExecute, .loaded = executable->loaded,
        .options = &options, .arguments = (PjrtBuffer *const *const *)executable->in_of,
        .device_count = (size_t)device->base.shards, .argument_count = executable->in_count,
        .outputs = executable->out_of, .done = executable->done);
    if (!executable->loaded)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "pjrt: compiled ahead of time for %s: nothing to "
                           "run it on (the device was opened with a topology)", device->kind);
    CORNU__TRY(upload(executable, inputs));
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_LOADED_EXECUTE, &call));
    take_results(executable, inputs, outputs);
    const CornuStatus status = check_shards(executable, await_shards(executable));
    for (int i = 0; base->events && i < device->base.shards; i++) {
        CornuStepEvent *event = &base->events[i * device->base.threads];
        event->begin_s = begin;
        event->end_s = cornu__seconds();
    }
    return status;
}
