/* Devices and executables in words: what enumerations are called, what each step of an executable
 * does. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "device_internal.h"
#include "memory_internal.h"

const char *cornu_precision_name(CornuPrecision precision)
{
    static const char *const names[] = { "highest", "high", "default" };
    return (unsigned)precision < sizeof names / sizeof *names ? names[precision] : NULL;
}

const char *cornu_use_name(CornuUse use)
{
    static const char *const names[] = {
#define X(id, name) [CORNU_USE_##id] = name,
        CORNU_USE_MAP(X)
#undef X
    };
    return (unsigned)use < CORNU_USE_COUNT ? names[use] : "unknown";
}

const char *cornu_clock_name(CornuClock clock)
{
    static const char *const names[] = { "wall clock", "device profiler" };
    return (unsigned)clock < sizeof names / sizeof *names ? names[clock] : NULL;
}

CornuStatus cornu__describe_begin(CornuExecutable *executable, const CornuProgram *compiled,
                                  int count)
{
    executable->compiled = compiled;
    executable->steps = cornu__allocate((size_t)count, sizeof *executable->steps);
    return executable->steps ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* After the product of a kernel, an add is its bias. */
static const char *word_of(const CornuProgram *program, const CornuExecutableStep *step, int i)
{
    const CornuProgramOp *op = &program->ops[step->ops[i]];
    const bool            joined = i > 0 && strcmp(step->kind, "kernel") == 0;
    return joined && op->id == CORNU_OP_ADD ? "bias" : cornu_program_op_name(op);
}

enum { LONGEST_NAME = 1024 };   /* room for forty ops of a group; longer names are truncated */

/* "matmul+bias+relu", or the kind of a step without ops. Returns the length. */
static size_t print_name(const CornuProgram *program, const CornuExecutableStep *step,
                         char to[LONGEST_NAME])
{
    size_t used = 0;
    snprintf(to, LONGEST_NAME, "%s", step->kind);
    for (int i = 0; i < step->op_count && used < LONGEST_NAME; i++)
        used += (size_t)snprintf(to + used, LONGEST_NAME - used, "%s%s", i ? "+" : "",
                                 word_of(program, step, i));
    return strlen(to);
}

/* The scope of a step: that of its first op that has one, "" if none has. */
static const char *scope_of(const CornuProgram *program, const CornuExecutableStep *step)
{
    for (int i = 0; i < step->op_count; i++)
        if (*program->ops[step->ops[i]].scope) return program->ops[step->ops[i]].scope;
    return "";
}

static int64_t flops_of(const CornuProgram *program, const CornuExecutableStep *step)
{
    int64_t flops = 0;
    for (int i = 0; i < step->op_count; i++)
        flops += cornu__program_op_flops(program, &program->ops[step->ops[i]]);
    return flops;
}

static int64_t bytes_of(const CornuType *types, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += (int64_t)cornu_type_bytes(types[i]);
    return bytes;
}

/* Each step is one allocation, which begins with the types it reads. */
CornuStatus cornu__describe_step(CornuExecutable *executable, const CornuExecutableStep *step)
{
    const CornuProgram *program = executable->compiled;
    const size_t in = (size_t)step->in_count, out = (size_t)step->out_count;
    const size_t ops = (size_t)step->op_count;
    char         text[LONGEST_NAME];
    const size_t length = step->name ? strlen(step->name) : print_name(program, step, text);
    char *memory = cornu__allocate((in + out) * sizeof(CornuType) + ops * sizeof(int) + length + 1,
                                   1);
    if (!memory) return CORNU_ERR_MEMORY;
    CornuType *types = (CornuType *)(void *)memory;
    int       *numbers = (int *)(void *)(types + in + out);
    char      *name = (char *)(numbers + ops);
    for (size_t i = 0; i < in; i++) types[i] = step->in[i];
    for (size_t i = 0; i < out; i++) types[in + i] = step->out[i];
    for (size_t i = 0; i < ops; i++) numbers[i] = step->ops[i];
    memcpy(name, step->name ? step->name : text, length + 1);

    CornuExecutableStep *described = &executable->steps[executable->step_count++];
    *described = *step;
    described->name = name;
    if (!step->scope) described->scope = scope_of(program, step);
    if (!step->kernel) described->kernel = "";
    described->ops = numbers;
    described->in = types;
    described->out = types + in;
    described->flops = flops_of(program, step);
    described->bytes_read = bytes_of(step->in, step->in_count);
    described->bytes_written = bytes_of(step->out, step->out_count);
    return CORNU_OK;
}

void cornu__describe_free(CornuExecutable *executable)
{
    for (int i = 0; i < executable->step_count; i++)
        cornu__release((void *)(uintptr_t)executable->steps[i].in);
    cornu__release(executable->steps);
}

/* ---- The interface ---- */

const CornuExecutableStep *cornu_executable_steps(const CornuExecutable *executable, int *count)
{
    *count = executable->step_count;
    return executable->steps;
}

int cornu_executable_declined(const CornuExecutable *executable, int step,
                              CornuDeclined to[CORNU_MOST_DECLINED])
{
    if (!executable || step < 0 || step >= executable->step_count ||
        !executable->device->class->declined)
        return 0;
    return executable->device->class->declined(executable, step, to);
}

const CornuExchangeEvent *cornu_executable_exchanges(CornuExecutable *executable, int *count)
{
    const CornuDevice *device = executable->device;
    if (device->class->exchanges && !device->plans) device->class->exchanges(executable);
    *count = executable->exchange_count;
    return executable->exchanges;
}

const CornuProgram *cornu_executable_program(const CornuExecutable *executable)
{
    return executable->compiled;
}

const CornuProgram *cornu_executable_recorded(const CornuExecutable *executable)
{
    return executable->program;
}

CornuDevice *cornu_executable_device(const CornuExecutable *executable)
{
    return executable->device;
}

int cornu_executable_event_count(const CornuExecutable *executable)
{
    return executable->step_count * executable->device->own.count * executable->device->threads;
}

void cornu_executable_record(CornuExecutable *executable, CornuStepEvent *events)
{
    const int shards = executable->device->own.count, threads = executable->device->threads;
    for (int i = 0; events && i < cornu_executable_event_count(executable); i++)
        events[i] = (CornuStepEvent){ .step = i / threads / shards,
                                      .shard = i / threads % shards, .thread = i % threads };
    executable->events = events;
}

void cornu_executable_shares(const CornuExecutable *executable, const CornuStepEvent *events,
                             double *seconds)
{
    const int shards = executable->device->own.count, threads = executable->device->threads;
    const int runners = executable->device->shards > 1 && shards >= threads ? threads : 1;
    for (int i = 0; i < executable->step_count; i++) {
        seconds[i] = 0.0;
        for (int s = 0; s < shards; s++) {
            const CornuStepEvent *event = events + (i * shards + s) * threads;
            int                   t = 0;
            while (t < threads - 1 && event[t].begin_s == 0.0) t++;
            const double took = event[t].end_s - event[t].begin_s;
            if (!executable->device->class->shards_at_once)
                seconds[i] += took / (executable->steps[i].per_shard ? runners : 1);
            else if (took > seconds[i]) seconds[i] = took;
        }
    }
}
