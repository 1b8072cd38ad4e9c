/*
 * Runs on the pjrt device: all shards at once, one run ahead of the host. A run is started before
 * the one before it is waited for; its failure, of the plugin or of bad data, is that of the next
 * run, of reading a buffer, or of waiting.
 */
#include "executable.h"

/* ---- What checks found ---- */

typedef struct {
    const CornuCheck *check;
    int64_t           step, row, number;   /* step: of the run's */
    int               shard;
} Found;

static CornuStatus report(const Found *found, int64_t runs_ago, int shards)
{
    const CornuCheck *check = found->check;
    const CornuFault  fault = { .index = found->row, .runs_ago = runs_ago,
                                .count = check->is_scalar ? 0 : check->rows };
    CornuFailure      failure;
    const CornuStatus status = check->is_scalar
        ? cornu__fail_value(fault, "%s is %lld, expected 0 to %lld", check->what,
                            (long long)found->number, (long long)check->limit - 1)
        : cornu__fail_element(fault, check->what, found->number, check->limit - 1);
    cornu__fail_prefix(status, cornu_op_name(check->id));
    if (shards == 1 || check->is_scalar) return status;
    cornu__failure_keep(&failure, status);
    return cornu__failure_tell_shard(&failure, found->shard);
}

/* The first step with bad data; of that the first shard, of that the first op, and its first
 * row. */
static CornuStatus check_data(const CornuPjrtDevice *device, const CornuPjrtFlight *flight)
{
    const CornuModule *module = flight->module;
    Found              first = { .check = NULL };
    const int64_t     *found = flight->found;
    for (int shard = 0; shard < device->base.shards; shard++)
        for (int i = 0; i < module->check_count; i++, found += 2) {
            const CornuCheck *check = &module->checks[i];
            const int64_t     step = found[0] / check->rows;
            if (step < module->steps && (!first.check || step < first.step))
                first = (Found){ check, step, found[0] % check->rows, found[1], shard };
        }
    if (!first.check) return CORNU_OK;
    return report(&first, device->runs - 1 - (flight->first_run + first.step),
                  device->base.shards);
}

/* ---- Waiting ---- */

CornuStatus cornu__pjrt_settle(CornuPjrtDevice *device)
{
    const CornuPjrtFlight flight = device->flight;
    CornuStatus           status = CORNU_OK;
    if (!flight.module) return CORNU_OK;
    device->flight = (CornuPjrtFlight){ .module = NULL };
    for (int i = 0; i < device->base.shards; i++) {   /* all, whatever fails */
        const CornuStatus done = cornu__pjrt_await(device->plugin, flight.done[i]);
        if (!status) status = done;
        const CornuStatus fetched = cornu__pjrt_await(device->plugin, flight.fetched[i]);
        if (!status) status = fetched;
        cornu__pjrt_destroy(device, flight.checks[i]);
    }
    if (!status) status = flight.failure;
    return status ? status : check_data(device, &flight);
}

/* ---- Starting ---- */

static CornuStatus upload_staged(const CornuPjrtExecutable *executable,
                                 const CornuPjrtCompiled *compiled, int i, int64_t first)
{
    const CornuProgram *program = executable->base.program;
    CornuPjrtDevice    *device = cornu__pjrt_of(executable->base.device);
    const bool          varies = program->values[program->inputs[i]].varies;
    const CornuType     one = cornu_program_type(program, program->inputs[i]);
    const CornuType     type = compiled == &executable->once
                             ? one : cornu__hlo_stacked(one, 0, compiled->module.steps);
    for (int shard = 0; shard < device->base.shards; shard++) {
        const int64_t run = (varies ? shard * executable->loop.most : 0) + first;
        CORNU__TRY(cornu__pjrt_to_device(device, type, executable->loop.staged[i] +
                                         (size_t)run * cornu_type_bytes(one), shard,
                                         &compiled->in_of[shard][i]));
    }
    return CORNU_OK;
}

static CornuStatus upload(const CornuPjrtExecutable *executable, const CornuPjrtCompiled *compiled,
                          CornuBuffer *const *inputs, int64_t first)
{
    const CornuProgram *program = executable->base.program;
    for (int i = 0; i < program->input_count; i++) {
        CornuPjrtBuffer         *buffer = (CornuPjrtBuffer *)inputs[i];
        const CornuProgramValue *value = &program->values[program->inputs[i]];
        if (first >= 0 && executable->loop.staged[i]) {
            CORNU__TRY(upload_staged(executable, compiled, i, first));
            continue;
        }
        CORNU__TRY(cornu__pjrt_upload(buffer, value->type, value->varies));
        for (int shard = 0; shard < executable->base.device->shards; shard++)
            compiled->in_of[shard][i] = buffer->on[shard];
    }
    return CORNU_OK;
}

/* Those that were uploaded for this run alone. */
static void destroy_staged(const CornuPjrtExecutable *executable,
                           const CornuPjrtCompiled *compiled)
{
    const CornuPjrtDevice *device = cornu__pjrt_of(executable->base.device);
    for (int i = 0; i < executable->base.program->input_count; i++)
        for (int shard = 0; executable->loop.staged[i] && shard < device->base.shards; shard++) {
            cornu__pjrt_destroy(device, compiled->in_of[shard][i]);
            compiled->in_of[shard][i] = NULL;
        }
}

static void take_results(const CornuPjrtExecutable *executable, const CornuPjrtCompiled *compiled,
                         CornuBuffer *const *inputs, CornuBuffer *const *outputs)
{
    const CornuProgram *program = executable->base.program;
    const int           shards = executable->base.device->shards;
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        CornuBuffer *to = output->alias < 0 ? outputs[i] : inputs[output->alias];
        PjrtBuffer  *on[CORNU_PJRT_REPLICAS];
        for (int shard = 0; shard < shards; shard++) on[shard] = compiled->out_of[shard][i];
        cornu__pjrt_take_over((CornuPjrtBuffer *)to, on, program->values[output->value].varies);
    }
}

/* Starts to fetch what the checks find. */
static void fetch_checks(CornuPjrtDevice *device, CornuPjrtCompiled *compiled,
                         CornuPjrtFlight *flight)
{
    const int64_t count = compiled->module.check_count;
    compiled->turn = !compiled->turn;
    flight->found = compiled->found[compiled->turn];
    for (int i = 0; i < device->base.shards && count; i++) {
        flight->checks[i] = compiled->out_of[i][compiled->out_count - 1];
        const CornuStatus status = cornu__pjrt_start_fetch(
            device, flight->checks[i], cornu_type(CORNU_I64, count, 2),
            compiled->found[compiled->turn] + 2 * count * i, &flight->fetched[i]);
        if (!flight->failure) flight->failure = status;
    }
}

CornuStatus cornu__pjrt_launch(CornuPjrtExecutable *executable, CornuPjrtCompiled *compiled,
                               CornuBuffer *const *inputs, CornuBuffer *const *outputs,
                               int64_t first)
{
    CornuPjrtDevice   *device = cornu__pjrt_of(executable->base.device);
    CornuPjrtFlight    flight = { .module = &compiled->module, .first_run = device->runs - 1 };
    PjrtExecuteOptions options = PJRT_ARGUMENTS(PjrtExecuteOptions, .kept = NULL);
    PjrtLoadedExecute  call = PJRT_ARGUMENTS(PjrtLoadedExecute, .loaded = compiled->loaded,
        .options = &options, .arguments = (PjrtBuffer *const *const *)compiled->in_of,
        .device_count = (size_t)device->base.shards, .argument_count = compiled->in_count,
        .outputs = compiled->out_of, .done = flight.done);
    if (first >= 0) flight.first_run = device->runs - executable->loop.collected + first;
    CornuStatus status = upload(executable, compiled, inputs, first);
    if (!status) status = cornu__pjrt_call(device->plugin, PJRT_LOADED_EXECUTE, &call);
    if (first >= 0) destroy_staged(executable, compiled);
    if (!status) {
        take_results(executable, compiled, inputs, outputs);
        fetch_checks(device, compiled, &flight);
    }
    CornuFailure failure;
    cornu__failure_keep(&failure, status);
    const CornuStatus before = cornu__pjrt_settle(device);
    if (!status) device->flight = flight;
    return before ? before : cornu__failure_tell(&failure);
}
