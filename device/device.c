#include "device_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/clock_internal.h"
#include "debug_internal.h"
#include "log_internal.h"
#include "memory_internal.h"
#include "text/nearest.h"

/* ---- Devices ---- */

const char *cornu_device_known(int i)
{
    return i >= 0 && i < CORNU_DEVICE_COUNT ? cornu__device_classes[i]->name : NULL;
}

static void *fail_unknown(const char *name)
{
    char        list[256];
    const char *known[CORNU_DEVICE_COUNT];
    for (int i = 0; i < CORNU_DEVICE_COUNT; i++) known[i] = cornu__device_classes[i]->name;
    if (!strcmp(name, "edgetpu"))
        return cornu__fail_null(CORNU_ERR_DEVICE, "device \"edgetpu\" computes models of 8 bits, "
                                "which cornu_quantize makes of trained ones, and nothing else; "
                                "expected %s", cornu_nearest_first(list, sizeof list, "cpu", known,
                                                                   CORNU_DEVICE_COUNT));
    return cornu__fail_null(CORNU_ERR_DEVICE, "device \"%s\" is unknown, expected %s", name,
                            cornu_nearest_first(list, sizeof list, name, known,
                                                CORNU_DEVICE_COUNT));
}

static bool is_called(const CornuDeviceClass *class, const char *name)
{
    const size_t length = strlen(class->name);
    return strncmp(name, class->name, length) == 0 &&
           (!name[length] || (class->has_profiles && name[length] == ':'));
}

static CornuDevice *open_device(const CornuDeviceConfig *config)
{
    if (!config->name)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "a device needs a name, such as \"%s\"",
                                cornu__device_classes[0]->name);
    if (config->threads < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                "device \"%s\": %d threads, expected at least 1", config->name,
                                config->threads);
    if (config->shard_memory < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                "device \"%s\": .shard_memory is %lld, expected a number of bytes",
                                config->name, (long long)config->shard_memory);
    for (int i = 0; i < CORNU_DEVICE_COUNT; i++) {
        const CornuDeviceClass *class = cornu__device_classes[i];
        if (!is_called(class, config->name)) continue;
        const int most = class->most_shards > 1 ? class->most_shards : 1;
        if (config->shards < 0 || config->shards > most)
            return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                    "device \"%s\": %d shards, expected 1%s%.0d", config->name,
                                    config->shards, most > 1 ? " to " : "", most > 1 ? most : 0);
        if (!cornu_precision_name(config->precision))
            return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                    "device \"%s\": precision %d, expected highest, high or "
                                    "default", config->name, (int)config->precision);
        if (config->precision && !class->has_precisions)
            return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                    "device \"%s\": precision %s, expected highest, as it "
                                    "multiplies f32 itself", config->name,
                                    cornu_precision_name(config->precision));
        CornuDevice *device = class->open(config);
        if (!device) return cornu__null();
        device->class = class;
        device->opened = cornu__copy_text(config->name);
        device->precision = config->precision;
        if (config->shard_memory) device->memory.capacity = config->shard_memory;
        device->processes = config->processes;
        device->groups = config->groups;
        if (device->shards == 0) device->shards = 1;
        if (device->own.count == 0) device->own.count = device->shards;
        atomic_init(&device->owners, 1);
        atomic_init(&device->closed, false);
        if (device->opened) return device;
        class->close(device);
        return cornu__null();
    }
    return fail_unknown(config->name);
}

CornuDevice *cornu_device_open_from(const CornuDeviceConfig *config)
{
    if (cornu__refused()) return NULL;
    CornuDevice *device = cornu__log_open() ? cornu__null() : open_device(config);
    if (!device)
        cornu__log(CORNU_LOG_ERROR, "a device cannot be opened: %s", cornu_error_message());
    else   /* layers are traced on reference devices: not worth an info line */
        cornu__log(device->class->is_reference ? CORNU_LOG_DEBUG : CORNU_LOG_INFO,
                   "opened %s | %s, %d shard%s", device->description,
                   device->profile ? "emulated" : "native", device->shards,
                   device->shards == 1 ? "" : "s");
    return device;
}

static void remove_executable(CornuDevice *device, CornuExecutable **link)
{
    CornuExecutable *executable = *link;
    CornuProgram    *program = executable->program;
    *link = executable->next;
    cornu__memory_count(device, CORNU_USE_ACTIVATIONS, -executable->bytes);
    cornu__describe_free(executable);
    device->class->executable_free(executable);
    cornu_program_free(program);
}

CornuDevice *cornu__device_retain(CornuDevice *device)
{
    if (device) atomic_fetch_add(&device->owners, 1);
    return device;
}

void cornu__device_release(CornuDevice *device)
{
    if (!device || atomic_fetch_sub(&device->owners, 1) > 1) return;
    while (device->executables) remove_executable(device, &device->executables);
    cornu__release(device->opened);
    if (device->layouts) device->free_layouts(device->layouts);
    device->class->close(device);
}

void cornu__device_keep(CornuDevice **kept, CornuDevice *device)
{
    CornuDevice *before = *kept;
    *kept = cornu__device_retain(device);
    cornu__device_release(before);
}

void cornu_device_close(CornuDevice *device)
{
    if (device && !atomic_exchange(&device->closed, true)) cornu__device_release(device);
}

const char *cornu_device_name(const CornuDevice *device)
{
    CORNU__NEED_OR(device, NULL);
    return device->class->name;
}

CornuDevice *cornu_device_open_like(const CornuDevice *device, int threads)
{
    CORNU__NEED_TO_MAKE(device);
    CornuDevice *like = cornu_device_open(
        device->opened, .threads = threads ? threads : device->threads, .shards = device->shards,
        .precision = device->precision, .processes = device->processes,
        .groups = device->groups, .shard_memory = device->memory.capacity);
    if (!like) return NULL;
    like->mesh = device->mesh;
    like->data = device->data;
    like->partition = device->partition;
    return like;
}

void cornu__device_plan(CornuDevice *device)
{
    device->plans = true;
    device->memory.capacity = 0;
}

int cornu_device_threads(const CornuDevice *device)
{
    CORNU__NEED_OR(device, 0);
    return device->threads;
}

int cornu_device_shards(const CornuDevice *device)
{
    CORNU__NEED_OR(device, 0);
    return device->mesh.axes ? cornu_mesh_size(&device->mesh, device->data) : device->shards;
}

const CornuMesh *cornu_device_mesh(const CornuDevice *device)
{
    CORNU__NEED_OR(device, NULL);
    return &device->mesh;
}

void cornu_device_own_shards(const CornuDevice *device, int *first, int *count)
{
    *first = *count = 0;
    CORNU__NEED_OR(device, );
    *first = device->groups ? 0 : device->own.first;
    *count = device->groups ? cornu_device_shards(device) : device->own.count;
    if (device->mesh.axes == 0 || device->groups) return;
    int low = device->shards, high = 0;
    for (int s = device->own.first; s < device->own.first + device->own.count; s++) {
        const int index = cornu_mesh_index(&device->mesh, device->data, s);
        if (index < low) low = index;
        if (index > high) high = index;
    }
    *first = low;
    *count = high - low + 1;
}

CornuProcesses *cornu_device_processes(const CornuDevice *device)
{
    CORNU__NEED_OR(device, NULL);
    return device->processes;
}

CornuPrecision cornu_device_precision(const CornuDevice *device) { return device->precision; }
const char *cornu_device_description(const CornuDevice *device)
{
    CORNU__NEED_OR(device, NULL);
    return device->description;
}
const char *cornu_device_profile(const CornuDevice *device) { return device->profile; }
const char *cornu_device_policy(const CornuDevice *device)
{
    CORNU__NEED_OR(device, NULL);
    return device->policy ? device->policy : "float32";
}

/* ---- Memory ---- */

/* The oldest unused executable. */
static CornuExecutable **find_unused(CornuDevice *device)
{
    CornuExecutable **unused = NULL;
    for (CornuExecutable **link = &device->executables; *link; link = &(*link)->next)
        if ((*link)->users == 0) unused = link;
    return unused;
}

CornuStatus cornu__memory_evict(CornuDevice *device, const char *what, int64_t bytes,
                                const CornuHeld parts[CORNU_LARGEST])
{
    while (!cornu__memory_fits(device, bytes)) {
        CornuExecutable **unused = find_unused(device);
        if (!unused) return cornu__memory_fail(device, what, bytes, parts);
        cornu__log(CORNU_LOG_INFO, "%s: evicting an unused program of %lld bytes for %s",
                   device->class->name, (long long)(*unused)->bytes, what);
        remove_executable(device, unused);
    }
    return CORNU_OK;
}

/* ---- Programs ---- */

static CornuStatus enter(CornuDevice *device, const char *function)
{
    return cornu__guard_enter(&device->guard, device->class->name, function, "");
}

static CornuExecutable *compiled_before(CornuDevice *device, const CornuProgram *program,
                                        uint64_t hash)
{
    for (CornuExecutable *at = device->executables; at; at = at->next)
        if (at->hash == hash && cornu_program_equal(at->program, program)) return at;
    return NULL;
}

/* Some collectives are recorded for a number of shards, which must be the device's. */
static CornuStatus check_collectives(const CornuDevice *device, const CornuProgram *program)
{
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        if (op->id == CORNU_OP_SCAN)
            CORNU__TRY(check_collectives(device, op->attributes.scan.body));
        if (!cornu__is_collective(op->id)) continue;
        CornuType   in;
        CornuOpCall call = cornu_program_call(program, op, &in);
        CORNU__TRY(cornu__collective_fits(&call, device->shards));
    }
    return CORNU_OK;
}

static CornuStatus allocate(CornuDevice *device, CornuExecutable *executable)
{
    CORNU__TRY(cornu__memory_evict(device, "a program", executable->bytes, executable->largest));
    return device->class->allocate && !device->plans ? device->class->allocate(executable)
                                                     : CORNU_OK;
}

/* Logs what was compiled, and which ops will be slow. */
static void log_compiled(const CornuExecutable *executable, double seconds)
{
    const CornuStatistics *counts = &executable->statistics;
    const char            *name = executable->device->class->name;
    char                   slow[200] = "";
    cornu__log(CORNU_LOG_INFO, "%s: compiled a program of %d ops in %.1f ms: %d ops after the "
               "passes, %lld kernels, %lld bytes planned", name, executable->program->op_count,
               1e3 * seconds, executable->compiled->op_count, (long long)counts->kernels,
               (long long)counts->bytes_planned);
    if (counts->fallbacks == 0 || executable->device->class->is_reference) return;
    for (int id = 0; id < CORNU_OP_COUNT; id++) {
        const size_t used = strlen(slow);
        if (counts->fell_back[id])
            snprintf(slow + used, sizeof slow - used, " %s", counts->fell_back[id]);
    }
    cornu__log(CORNU_LOG_WARNING, "%s: %lld ops without a kernel run on the slow reference:%s",
               name, (long long)counts->fallbacks, slow);
}

/* Counts one more user, for whom the device stays. */
static CornuExecutable *use(CornuExecutable *executable)
{
    executable->users++;
    cornu__device_retain(executable->device);
    return executable;
}

static CornuExecutable *compile(CornuDevice *device, const CornuProgram *program)
{
    const double     begin = cornu__seconds();
    uint64_t         hash = cornu_program_hash(program);
    CornuExecutable *found = compiled_before(device, program, hash);
    if (found) return use(found);
    if (check_collectives(device, program) || cornu__check_passes()) return cornu__null();

    if (cornu__dumps("program")) cornu_program_print(program, stderr);
    CornuProgram *copy = cornu_program_copy(program);
    if (!copy) return NULL;
    for (int i = 0; i < copy->op_count; i++) copy->ops[i].origin = i;
    CornuExecutable *executable = device->class->compile(device, copy);
    if (!executable || allocate(device, executable) != CORNU_OK) {
        if (executable) {
            cornu__describe_free(executable);
            device->class->executable_free(executable);
        }
        cornu_program_free(copy);
        return cornu__null();
    }
    cornu__memory_count(device, CORNU_USE_ACTIVATIONS, executable->bytes);
    executable->device = device;
    executable->program = copy;
    executable->hash = hash;
    executable->users = 0;
    executable->next = device->executables;
    device->executables = executable;
    log_compiled(executable, cornu__seconds() - begin);
    return use(executable);
}

CornuExecutable *cornu_device_compile(CornuDevice *device, const CornuProgram *program)
{
    CORNU__NEED_TO_MAKE(device);
    CORNU__NEED_TO_MAKE(program);
    if (cornu__refused()) return NULL;
    if (enter(device, "cornu_device_compile"))
        return cornu__null();
    CornuExecutable *executable = compile(device, program);
    cornu__guard_leave(&device->guard);
    return executable;
}

/* "input 2: " in front of the message; formatted only on failure. */
static CornuStatus fail_place(CornuStatus status, const char *what, int i)
{
    char place[32];
    snprintf(place, sizeof place, "%s %d", what, i);
    return cornu__fail_prefix(status, place);
}

static CornuStatus check_buffer(const CornuExecutable *executable, const CornuBuffer *buffer,
                                CornuValue value)
{
    if (!buffer) return cornu__fail(CORNU_ERR_ARGUMENT, "NULL, expected a buffer");
    if (buffer->away)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is of a pipeline's stage that other "
                           "processes run, expected what this one has", buffer->held.name);
    if (buffer->device != executable->device)
        return cornu__fail(CORNU_ERR_DEVICE,
                           "the buffer belongs to another device (%s), expected the "
                           "executable's (%s)", cornu_device_name(buffer->device),
                           cornu_device_name(executable->device));
    return cornu__check_stored(cornu_program_buffer_type(executable->program, value,
                                                        executable->device->shards),
                              buffer->type, "the buffer");
}

static CornuStatus check_inputs(const CornuExecutable *executable, CornuBuffer *const *inputs)
{
    const CornuProgram *program = executable->program;
    for (int i = 0; i < program->input_count; i++) {
        CornuStatus status = check_buffer(executable, inputs[i], program->inputs[i]);
        if (!status && inputs[i]->empty) status = cornu__buffer_keep(inputs[i], true);
        if (status != CORNU_OK) return fail_place(status, "input", i);
    }
    return CORNU_OK;
}

static CornuStatus check_runs(const CornuDevice *device)
{
    return !device->plans ? CORNU_OK
                          : cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: opened to plan steps, not to "
                                        "run them", device->class->name);
}

static CornuExecutable *make_twin(CornuDevice *device, CornuExecutable *original)
{
    CornuExecutable *twin = device->class->twin(original);
    if (!twin) return cornu__null();
    *twin = *original;
    twin->users = 0;
    twin->original = original;
    twin->events = NULL;
    twin->next = NULL;
    twin->exchanges = NULL;
    twin->exchange_count = 0;
    if (allocate(device, twin) != CORNU_OK) {
        device->class->executable_free(twin);
        return cornu__null();
    }
    cornu__memory_count(device, CORNU_USE_ACTIVATIONS, twin->bytes);
    use(original);
    return use(twin);
}

static CornuStatus fix(CornuExecutable *executable, CornuBuffer *const *inputs)
{
    const CornuDeviceClass *class = executable->device->class;
    if (executable->is_fixed || !class->fix) return CORNU_OK;
    CORNU__TRY(check_runs(executable->device));
    CORNU__TRY(check_inputs(executable, inputs));
    CORNU__TRY(class->fix(executable, inputs));
    executable->is_fixed = true;
    return CORNU_OK;
}

bool cornu_device_runs_twins(const CornuDevice *device) { return device->class->twin != NULL; }

CornuExecutable *cornu_executable_twin(CornuExecutable *executable, CornuBuffer *const *inputs)
{
    CORNU__NEED_TO_MAKE(executable);
    CORNU__NEED_TO_MAKE(inputs);
    CornuDevice *device = executable->device;
    if (cornu__refused()) return NULL;
    if (!device->class->twin)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: runs one program at a time, expected a "
                                "device that runs several", device->class->name);
    if (enter(device, "cornu_executable_twin"))
        return cornu__null();
    CornuExecutable *original = executable->original ? executable->original : executable;
    CornuExecutable *twin = fix(original, inputs) ? cornu__null() : make_twin(device, original);
    cornu__guard_leave(&device->guard);
    return twin;
}

static void free_twin(CornuExecutable *twin)
{
    cornu__memory_count(twin->device, CORNU_USE_ACTIVATIONS, -twin->bytes);
    twin->device->class->executable_free(twin);
}

/* Unused programs that stay cached. */
enum { KEPT_UNUSED = 8 };

/* Without users: a twin ends, other programs stay until there are too many. */
static void retire(CornuDevice *device, CornuExecutable *executable)
{
    CornuExecutable *original = executable->original;
    int              unused = 0;
    if (original) {
        free_twin(executable);
        cornu_executable_release(original);
        return;
    }
    for (const CornuExecutable *at = device->executables; at; at = at->next)
        unused += at->users == 0;
    CornuExecutable **oldest = unused > KEPT_UNUSED ? find_unused(device) : NULL;
    if (oldest) remove_executable(device, oldest);
}

void cornu_executable_release(CornuExecutable *executable)
{
    if (!executable) return;
    CornuDevice *device = executable->device;
    if (--executable->users == 0) retire(device, executable);
    cornu__device_release(device);
}

static CornuStatus run_executable(CornuExecutable *executable, CornuBuffer *const *inputs,
                                  CornuBuffer *const *outputs)
{
    const CornuProgram *program = executable->program;
    CORNU__TRY(check_runs(executable->device));
    CORNU__TRY(check_inputs(executable, inputs));
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        CornuStatus               status = CORNU_OK;
        if (output->alias < 0) status = check_buffer(executable, outputs[i], output->value);
        else if (outputs[i])
            status = cornu__fail(CORNU_ERR_ARGUMENT,
                                 "expected NULL, for it is written into input %d", output->alias);
        if (status != CORNU_OK) return fail_place(status, "output", i);
    }
    cornu_executable_record(executable, executable->events);   /* clears those of the last run */
    const bool   logs = cornu__logs(CORNU_LOG_DEBUG);
    const double begin = logs ? cornu__seconds() : 0.0;
    CornuStatus  status = executable->device->class->run(executable, inputs, outputs);
    if (logs)
        cornu__log(CORNU_LOG_DEBUG, "%s: ran a program of %d ops in %.3f ms",
                   executable->device->class->name, program->op_count,
                   1e3 * (cornu__seconds() - begin));
    return status;
}

CornuStatus cornu_executable_run(CornuExecutable *executable, CornuBuffer *const *inputs,
                                 CornuBuffer *const *outputs)
{
    CORNU__NEED(executable);
    CornuDevice *device = executable->device;
    if (executable->original) return run_executable(executable, inputs, outputs);
    CORNU__TRY(enter(device, "cornu_executable_run"));
    CornuStatus status = fix(executable, inputs);
    if (!status) status = run_executable(executable, inputs, outputs);
    cornu__guard_leave(&device->guard);
    return status;
}

void cornu_executable_collect(CornuExecutable *executable, int64_t runs)
{
    CORNU__NEED_OR(executable, );
    if (executable->device->class->collect) executable->device->class->collect(executable, runs);
}

CornuStatus cornu_device_wait(CornuDevice *device)
{
    CORNU__NEED(device);
    CORNU__TRY(enter(device, "cornu_device_wait"));
    const CornuStatus status = cornu__device_end_runs(device);
    cornu__guard_leave(&device->guard);
    return status;
}

const CornuStatistics *cornu_executable_statistics(const CornuExecutable *executable)
{
    return &executable->statistics;
}

CornuCompiledFigures cornu_executable_figures(const CornuExecutable *executable)
{
    CornuCompiledFigures figures = { .has_memory = false };
    if (executable && executable->device->class->figures)
        executable->device->class->figures(executable, &figures);
    return figures;
}
