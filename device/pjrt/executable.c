/* Executables of the pjrt device: what the class does with them. */
#include "../system/clock_internal.h"
#include "../memory_internal.h"
#include "executable.h"
#include "figures.h"
#include "profile.h"

/* ---- Compiling ---- */

void cornu__pjrt_figures(const CornuExecutable *base, CornuCompiledFigures *figures)
{
    cornu__pjrt_read_figures(cornu__pjrt_of(base->device)->plugin,
                             ((const CornuPjrtExecutable *)base)->once.compiled, figures);
}

/* One step: the plugin's executable, of which XLA alone knows the parts. */
static CornuStatus describe_step(CornuPjrtExecutable *executable, const CornuProgram *program,
                                 int shards)
{
    CornuStatistics *statistics = &executable->base.statistics;
    CornuType       *types = cornu__allocate(
        executable->once.in_count + executable->once.out_count, sizeof *types);
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

CornuExecutable *cornu__pjrt_compile(CornuDevice *base, const CornuProgram *program)
{
    CornuPjrtDevice     *device = cornu__pjrt_of(base);
    CornuPjrtExecutable *executable = cornu__allocate(1, sizeof *executable);
    if (!executable) return NULL;
    executable->base.device = base;
    CornuStatus status = cornu__pjrt_compile_module(&executable->once, device, program, NULL);
    if (!status) {
        CornuCompiledFigures figures = { .has_memory = false };
        cornu__pjrt_read_memory(device->plugin, executable->once.compiled, &figures);
        executable->base.bytes = figures.temporary_bytes;
        status = describe_step(executable, program, base->shards);
    }
    if (!status) return &executable->base;
    cornu__describe_free(&executable->base);
    cornu__pjrt_executable_free(&executable->base);
    return NULL;
}

void cornu__pjrt_executable_free(CornuExecutable *base)
{
    CornuPjrtExecutable *executable = (CornuPjrtExecutable *)base;
    CornuPjrtDevice     *device = cornu__pjrt_of(base->device);
    const CornuModule   *running = device->flight.module;
    if (device->collecting == executable || running == &executable->once.module ||
        running == &executable->loop.compiled.module) {
        CornuFailure before;
        cornu__error_keep(&before);
        cornu__pjrt_wait(base->device);
        cornu__error_restore(&before);
    }
    cornu__pjrt_loop_free(&executable->loop, device);
    cornu__pjrt_compiled_free(&executable->once, device);
    cornu__release(executable);
}

/* ---- Running ---- */

/* Whether the host reads nothing of it at once. The replicas of a processor are threads of one
 * pool, in which two runs could wait for each other. */
static bool runs_ahead(const CornuExecutable *executable)
{
    const CornuPjrtDevice *device = cornu__pjrt_of(executable->device);
    const CornuProgram    *program = executable->program;
    if (device->is_cpu && device->base.shards > 1) return false;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].alias < 0) return false;
    return true;
}

/* device_s: by shard, what the profiler measured; NULL: it did not. The device's clock is another
 * one, so all its times end when the host saw the last shard end. */
static void record_times(CornuExecutable *base, double begin, double end, const double *device_s)
{
    for (int i = 0; i < base->device->shards; i++) {
        CornuStepEvent *event = &base->events[i * base->device->threads];
        event->clock = device_s ? CORNU_CLOCK_DEVICE : CORNU_CLOCK_WALL;
        event->begin_s = device_s ? end - device_s[i] : begin;
        event->end_s = end;
    }
}

static CornuStatus run_timed(CornuPjrtExecutable *executable, CornuBuffer *const *inputs,
                             CornuBuffer *const *outputs)
{
    CornuPjrtDevice *device = cornu__pjrt_of(executable->base.device);
    const int        shards = device->base.shards;
    double           seconds[CORNU_PJRT_REPLICAS];
    CornuPjrtProfile profile;
    CORNU__TRY(cornu__pjrt_settle(device));   /* its time is not this run's */
    bool profiles = !device->profiling_fails && cornu__pjrt_profile_start(&profile, device->plugin);
    const double begin = cornu__seconds();
    CornuStatus  status = cornu__pjrt_launch(executable, &executable->once, inputs, outputs, -1);
    if (!status) status = cornu__pjrt_settle(device);
    const double end = cornu__seconds();
    if (profiles) profiles = cornu__pjrt_profile_stop(&profile, shards, end - begin, seconds);
    if (!profiles && !status) device->profiling_fails = true;
    record_times(&executable->base, begin, end, profiles ? seconds : NULL);
    return status;
}

CornuStatus cornu__pjrt_run(CornuExecutable *base, CornuBuffer *const *inputs,
                            CornuBuffer *const *outputs)
{
    CornuPjrtExecutable *executable = (CornuPjrtExecutable *)base;
    CornuPjrtDevice     *device = cornu__pjrt_of(base->device);
    if (!executable->once.loaded)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "pjrt: compiled ahead of time for %s: nothing to "
                           "run it on (the device was opened with a topology)", device->kind);
    if (!cornu__pjrt_continues(executable, inputs)) CORNU__TRY(cornu__pjrt_flush(base->device));
    device->runs++;
    if (cornu__pjrt_collects(executable)) return cornu__pjrt_collect_run(executable, inputs);
    if (base->events) return run_timed(executable, inputs, outputs);
    CORNU__TRY(cornu__pjrt_launch(executable, &executable->once, inputs, outputs, -1));
    return runs_ahead(base) ? CORNU_OK : cornu__pjrt_settle(device);
}
