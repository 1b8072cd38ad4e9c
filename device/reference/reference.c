/*
 * The reference device: every element of every dtype is a double, and each op runs by its reference
 * kernel, in program order. Arrays are converted when they are copied in and out.
 */
#include <stdio.h>
#include <string.h>

#include "../system/clock_internal.h"
#include "../device_internal.h"
#include "../memory_internal.h"
#include "../processes/divide_internal.h"
#include "../ops/rules.h"

typedef struct {
    CornuBuffer base;
    double     *elements;
} Buffer;

/* Where each value of the program is stored: values that are never live together share memory. */
typedef struct {
    CornuExecutable base;
    double        **value;       /* by number of the value */
    double        **owned;       /* the allocations        */
    int             owned_count;
    const double  **in;          /* operands of the op that runs */
    CornuType      *in_type;
} Executable;

/* ---- Device and memory ---- */

static CornuDevice *reference_open(const CornuDeviceConfig *config)
{
    if (cornu__expect_one_process(config)) return NULL;
    CornuDevice *device = cornu__allocate(1, sizeof *device);   /* one thread: need not be fast */
    if (!device) return NULL;
    device->threads = 1;
    snprintf(device->description, sizeof device->description,
             "reference: every element in double, one op at a time");
    return device;
}

static void reference_close(CornuDevice *device) { cornu__release(device); }

static CornuBuffer *reference_buffer_create(CornuDevice *device, CornuType type, bool per_shard,
                                            bool empty)
{
    (void)empty;   /* its devices are of one process */
    (void)per_shard;
    (void)device;
    Buffer *buffer = cornu__allocate(1, sizeof *buffer);
    if (!buffer) return NULL;
    buffer->elements = cornu__allocate((size_t)cornu_type_count(type), sizeof(double));
    if (buffer->elements) return &buffer->base;
    cornu__release(buffer);
    return NULL;
}

static void reference_buffer_free(CornuBuffer *base)
{
    Buffer *buffer = (Buffer *)base;
    cornu__release(buffer->elements);
    cornu__release(buffer);
}

static double *elements_of(const CornuBuffer *buffer)
{
    return ((const Buffer *)buffer)->elements;
}

static CornuStatus reference_buffer_write(CornuBuffer *buffer, int64_t first, CornuArray from)
{
    cornu__widen(from, elements_of(buffer) + first);
    return CORNU_OK;
}

static CornuStatus reference_buffer_read(const CornuBuffer *buffer, int64_t first, CornuArray to)
{
    cornu__narrow(elements_of(buffer) + first, to);
    return CORNU_OK;
}

/* ---- Programs ---- */

static int64_t count_of(const CornuProgram *program, CornuValue value)
{
    return cornu_type_count(cornu_program_type(program, value));
}

/* last[v]: the last op that reads value v, the op that makes it if none does, op_count for an
 * output. Inputs are copied before the first op. */
static void last_uses(const CornuProgram *program, int *last)
{
    for (int v = 0; v < program->value_count; v++) last[v] = program->values[v].op;
    for (int i = 0; i < program->op_count; i++)
        for (int j = 0; j < program->ops[i].in_count; j++)
            last[cornu_program_operands(program, &program->ops[i])[j]] = i;
    for (int i = 0; i < program->output_count; i++)
        last[program->outputs[i].value] = program->op_count;
}

/* Gives the value the smallest free array that is large enough, or a new one. */
static CornuStatus place_value(Executable *executable, int64_t *space, bool *taken, int64_t count,
                               int *slot)
{
    int best = -1;
    for (int i = 0; i < executable->owned_count; i++)
        if (!taken[i] && space[i] >= count && (best < 0 || space[i] < space[best])) best = i;
    if (best < 0) {
        best = executable->owned_count;
        executable->owned[best] = cornu__allocate((size_t)count, sizeof(double));
        if (!executable->owned[best]) return CORNU_ERR_MEMORY;
        executable->owned_count++;
        executable->base.statistics.bytes_planned += count * (int64_t)sizeof(double);
        space[best] = count;
    }
    taken[best] = true;
    *slot = best;
    return CORNU_OK;
}

typedef struct { int64_t *space; bool *taken; int *last, *slot; } Plan;

static CornuStatus place_values(Executable *executable, const CornuProgram *program, Plan *plan)
{
    last_uses(program, plan->last);
    for (int i = -1; i < program->op_count; i++) { /* -1: the inputs */
        for (int v = 0; v < program->value_count; v++) {
            if (program->values[v].op != i) continue;
            CORNU__TRY(place_value(executable, plan->space, plan->taken, count_of(program, v),
                                   &plan->slot[v]));
            executable->value[v] = executable->owned[plan->slot[v]];
        }
        for (int v = 0; v < program->value_count; v++)
            if (program->values[v].op <= i && plan->last[v] == i)
                plan->taken[plan->slot[v]] = false;
    }
    return CORNU_OK;
}

static void reference_executable_free(CornuExecutable *base)
{
    Executable *executable = (Executable *)base;
    for (int i = 0; i < executable->owned_count; i++) cornu__release(executable->owned[i]);
    cornu__release(executable->owned);
    cornu__release(executable->value);
    cornu__release(executable->in);
    cornu__release(executable->in_type);
    cornu__release(executable);
}

static CornuStatus plan_into(Executable *executable, const CornuProgram *program)
{
    size_t values = (size_t)program->value_count, operands = (size_t)cornu__most_operands(program);
    executable->value = cornu__allocate(values, sizeof *executable->value);
    executable->owned = cornu__allocate(values, sizeof *executable->owned);
    executable->in = cornu__allocate(operands, sizeof *executable->in);
    executable->in_type = cornu__allocate(operands, sizeof *executable->in_type);
    Plan plan = {
        .space = cornu__allocate(values, sizeof *plan.space),
        .taken = cornu__allocate(values, sizeof *plan.taken),
        .last = cornu__allocate(values, sizeof *plan.last),
        .slot = cornu__allocate(values, sizeof *plan.slot),
    };
    CornuStatus status = CORNU_ERR_MEMORY;
    if (executable->value && executable->owned && executable->in && executable->in_type &&
        plan.space && plan.taken && plan.last && plan.slot)
        status = place_values(executable, program, &plan);
    cornu__release(plan.slot);
    cornu__release(plan.last);
    cornu__release(plan.taken);
    cornu__release(plan.space);
    return status;
}

static void count_work(CornuStatistics *statistics, const CornuProgram *program)
{
    int64_t elements = 0;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        for (int j = 0; j < op->in_count; j++)
            elements += count_of(program, cornu_program_operands(program, op)[j]);
        for (int j = 0; j < op->out_count; j++)
            elements += count_of(program, op->out_first + j);
    }
    for (int i = 0; i < program->input_count; i++)
        elements += 2 * count_of(program, program->inputs[i]);
    for (int i = 0; i < program->output_count; i++)
        elements += 2 * count_of(program, program->outputs[i].value);
    statistics->flops = cornu_program_flops(program);
    statistics->ops = program->op_count;
    statistics->copies = program->input_count + program->output_count;
    statistics->kernels = program->op_count + statistics->copies;
    statistics->fallbacks = program->op_count;
    for (int i = 0; i < program->op_count; i++)
        statistics->fell_back[program->ops[i].id] = cornu_program_op_name(&program->ops[i]);
    statistics->bytes_moved = elements * (int64_t)sizeof(double);
}

/* A step per op. */
static CornuStatus describe_steps(CornuExecutable *base, const CornuProgram *program)
{
    CORNU__TRY(cornu__describe_begin(base, program, program->op_count));
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        CornuType             out[CORNU_MAX_OUTPUTS];
        Executable           *executable = (Executable *)base;
        cornu_program_call(program, op, executable->in_type);
        for (int k = 0; k < op->out_count; k++)
            out[k] = cornu_program_type(program, op->out_first + k);
        CORNU__TRY(cornu__describe_step(base, &(CornuExecutableStep){
            .kind = "reference", .ops = &i, .op_count = 1, .in = executable->in_type,
            .in_count = op->in_count, .out = out, .out_count = op->out_count }));
    }
    return CORNU_OK;
}

static CornuExecutable *reference_compile(CornuDevice *device, const CornuProgram *program)
{
    (void)device;
    Executable *executable = cornu__allocate(1, sizeof *executable);
    if (!executable) return NULL;
    executable->base.program = (CornuProgram *)program;
    count_work(&executable->base.statistics, program);
    if (plan_into(executable, program) == CORNU_OK &&
        describe_steps(&executable->base, program) == CORNU_OK) {
        executable->base.bytes = executable->base.statistics.bytes_planned;
        return &executable->base;
    }
    cornu__describe_free(&executable->base);
    reference_executable_free(&executable->base);
    return NULL;
}

static CornuExecutable *reference_twin(CornuExecutable *base)
{
    Executable *twin = cornu__allocate(1, sizeof *twin);
    if (!twin || plan_into(twin, base->program) == CORNU_OK) return twin ? &twin->base : NULL;
    reference_executable_free(&twin->base);
    return NULL;
}

static CornuStatus run_measured(Executable *executable, int i)
{
    CornuStepEvent       *event = executable->base.events;
    const CornuProgramOp *op = &executable->base.program->ops[i];
    if (event) event[i].begin_s = cornu__seconds();
    const CornuStatus status = cornu__reference_program_op(executable->base.program, op,
                                                           executable->value, executable->in,
                                                           executable->in_type);
    if (event) event[i].end_s = cornu__seconds();
    return status;
}

static CornuStatus reference_run(CornuExecutable *base, CornuBuffer *const *inputs,
                                 CornuBuffer *const *outputs)
{
    Executable         *executable = (Executable *)base;
    const CornuProgram *program = base->program;
    for (int i = 0; i < program->input_count; i++) {
        CornuValue v = program->inputs[i];
        memcpy(executable->value[v], elements_of(inputs[i]),
               (size_t)count_of(program, v) * sizeof(double));
    }
    for (int i = 0; i < program->op_count; i++) CORNU__TRY(run_measured(executable, i));
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        CornuBuffer *to = output->alias < 0 ? outputs[i] : inputs[output->alias];
        memcpy(elements_of(to), executable->value[output->value],
               (size_t)count_of(program, output->value) * sizeof(double));
    }
    return CORNU_OK;
}

static CornuStatus reference_place(const CornuDevice *device, const CornuProgram *program,
                                   const CornuProgramOp *op, CornuPlacement *out)
{
    (void)device, (void)program;
    snprintf(out->how, sizeof out->how, "reference kernel %s", cornu_program_op_name(op));
    snprintf(out->why, sizeof out->why, "as every op on this device");
    return CORNU_OK;
}

const CornuDeviceClass cornu__reference_device = {
    .name = "reference",
    .is_reference = true,
    .open = reference_open,
    .close = reference_close,
    .buffer_create = reference_buffer_create,
    .buffer_free = reference_buffer_free,
    .buffer_write = reference_buffer_write,
    .buffer_read = reference_buffer_read,
    .compile = reference_compile,
    .twin = reference_twin,
    .run = reference_run,
    .place = reference_place,
    .executable_free = reference_executable_free,
};
