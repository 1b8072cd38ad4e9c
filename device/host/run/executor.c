#include "executor_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../system/clock_internal.h"
#include "../../memory_internal.h"
#include "../../processes/processes_internal.h"
#include "../compile/passes.h"
#include "exchange.h"
#include "loop.h"
#include "step.h"

/* ---- Compiling ---- */

/* Of one op on all shards, or once where they share its result. */
static int64_t op_flops(const CornuProgram *program, int op, int shards)
{
    CornuType             types[CORNU_MAX_INPUTS];
    const CornuProgramOp *at = &program->ops[op];
    if (at->in_count > CORNU_MAX_INPUTS) return 0;   /* a concat, which only moves */
    CornuOpCall call = cornu_program_call(program, at, types);
    return cornu_op_flops(&call) * (program->values[at->out_first].varies ? shards : 1);
}

static void count_work(CornuStatistics *statistics, const CornuProgram *recorded,
                       const CornuPlan *plan)
{
    const int shards = cornu__plan_own(plan).count;
    for (int i = 0; i < recorded->op_count; i++)
        statistics->flops += op_flops(recorded, i, shards);
    statistics->ops = recorded->op_count;
    statistics->bytes_planned = (int64_t)cornu__plan_bytes(plan, plan->arena) +
                                (int64_t)cornu__plan_sum_bytes(plan);
    cornu__plan_count(plan, statistics);
}

/* Whether everything that the step reads or writes is in place already. */
static bool moves_nothing(const CornuPlan *plan, const CornuPlanStep *step)
{
    int64_t bytes = 0;
    for (int k = 0; k < step->in_count + step->out_count; k++)
        bytes += cornu__plan_bytes_moved(plan, step, k);
    return bytes == 0;
}

/* The step that gathers what a wait step waits for; itself for others. */
static const CornuPlanStep *gather_of(const CornuPlan *plan, const CornuPlanStep *step)
{
    for (int i = 0; i < plan->step_count && step->kind == CORNU_STEP_WAIT; i++)
        if (plan->steps[i].kind == CORNU_STEP_KERNEL && plan->steps[i].input == step->input)
            return &plan->steps[i];
    return step;
}

/* Of a kernel, and of what it exchanges, its own op's, whatever is joined with it. */
static const char *scope_of(const CornuPlan *plan, const CornuPlanStep *step)
{
    step = gather_of(plan, step);
    const bool  own = step->kind == CORNU_STEP_PACK || step->kind == CORNU_STEP_KERNEL ||
                      step->kind == CORNU_STEP_SEND;
    const char *scope = own ? plan->program->ops[step->op].scope : "";
    return *scope ? scope : NULL;
}

CornuStatus cornu__executable_describe(Executable *executable)
{
    CornuExecutable *base = &executable->base;
    const CornuPlan *plan = executable->plan;
    CORNU__TRY(cornu__describe_begin(base, plan->program, plan->step_count));
    for (int i = 0; i < plan->step_count; i++) {
        const CornuPlanStep *step = &plan->steps[i];
        const bool       moves = !moves_nothing(plan, step);
        const CornuType *in = step->types;
        CornuType        unpacked[CORNU_MAX_INPUTS];
        if (step->packed >= 0) {   /* described as the program's operand, not as panels */
            const CornuProgramOp *op = &plan->program->ops[step->op];
            const CornuValue     *operands = cornu_program_operands(plan->program, op);
            for (int k = 0; k < step->in_count; k++) unpacked[k] = in[k];
            unpacked[step->packed] = plan->types[operands[step->kernel->packs]];
            in = unpacked;
        }
        CORNU__TRY(cornu__describe_step(base, &(CornuExecutableStep){
            .kind = cornu__plan_kind_name(plan, step), .ops = step->ops,
            .scope = scope_of(plan, step), .kernel = step->kernel ? step->kernel->name : NULL,
            .op_count = step->op_count, .in = in,
            .in_count = !moves ? 0 : cornu__plan_ends_sum(plan, step) ? 1 : step->in_count,
            .out = step->types + step->in_count, .out_count = moves ? step->out_count : 0,
            .per_shard = step->varies && cornu__plan_shards(plan) > 1 }));
        if (step->summed) {   /* one run is that of all shards */
            base->steps[i].flops *= cornu__plan_own(plan).count;
            base->steps[i].bytes_read *= cornu__plan_own(plan).count;
        }
    }
    return CORNU_OK;
}

/* A value of the arena by the op that makes it: "matmul in dense_1". */
static CornuHeld held(const CornuPlan *plan, CornuValue value)
{
    CornuHeld held = { .name = "a copy", .type = plan->types[value],
                       .use = CORNU_USE_ACTIVATIONS,
                       .bytes = (int64_t)cornu_type_bytes(plan->types[value]) };
    if (value >= plan->program->value_count) return held;
    const CornuProgramOp *op = &plan->program->ops[plan->program->values[value].op];
    snprintf(held.name, sizeof held.name, "%s%s%.40s", cornu_program_op_name(op),
             *op->scope ? " in " : "", op->scope);
    return held;
}

CornuExecutable *cornu__host_compile(const CornuHost *host, const CornuProgram *program)
{
    Executable *executable = cornu__allocate(1, sizeof *executable);
    if (!executable) return NULL;
    CornuPlan *plan = executable->plan = cornu__allocate(1, sizeof *plan);
    if (!plan || cornu__plan_build(plan, host, program) != CORNU_OK ||
        cornu__executable_describe(executable) != CORNU_OK) {
        cornu__describe_free(&executable->base);
        cornu__host_executable_free(&executable->base);
        return NULL;
    }
    count_work(&executable->base.statistics, program, plan);
    executable->base.bytes = (int64_t)cornu__plan_bytes_of_shard(plan->arena);
    for (int i = 0; i < plan->largest_count; i++)
        executable->base.largest[i] = held(plan, plan->largest[i]);
    return &executable->base;
}

int cornu__host_declined(const CornuExecutable *executable, int step, CornuDeclined *to)
{
    const CornuPlan *plan = ((const Executable *)executable)->plan;
    return cornu__plan_declined(plan, &plan->steps[step], to);
}

CornuExecutable *cornu__host_twin(CornuExecutable *base)
{
    Executable *twin = cornu__allocate(1, sizeof *twin);
    if (!twin) return NULL;
    twin->plan = ((Executable *)base)->plan;
    twin->regions.fixed = ((Executable *)base)->regions.fixed;
    twin->is_twin = true;
    return &twin->base;
}

/* Steps i and k have the same collective. */
static bool is_shared(const Executable *executable, int i, int k)
{
    return i != k && executable->collectives[k] == executable->collectives[i];
}

/* The step that starts what the kernel step i exchanges, and the one that waits for it. */
static void find_steps(const Executable *executable, int i, int *begin, int *end)
{
    const CornuPlan *plan = executable->plan;
    *begin = *end = i;
    for (int k = 0; k < plan->step_count; k++) {
        if (!is_shared(executable, i, k)) continue;
        *(plan->steps[k].kind == CORNU_STEP_SEND ? begin : end) = k;
    }
}

static CornuStatus allocate_exchanges(Executable *executable)
{
    const CornuPlan *plan = executable->plan;
    CornuExecutable *base = &executable->base;
    base->exchanges = cornu__allocate(2 * (size_t)plan->step_count, sizeof *base->exchanges);
    if (!base->exchanges) return CORNU_ERR_MEMORY;
    for (int i = 0, begin, end; i < plan->step_count; i++) {
        if (plan->steps[i].kind != CORNU_STEP_KERNEL || !executable->collectives[i]) continue;
        find_steps(executable, i, &begin, &end);
        cornu__collective_report(executable->collectives[i], begin, end,
                                 base->exchanges + base->exchange_count);
        base->exchange_count += cornu__collective_exchanges(executable->collectives[i]);
    }
    return CORNU_OK;
}

void cornu__host_exchanges(CornuExecutable *base)
{
    Executable *executable = (Executable *)base;
    for (int i = 0; i < executable->plan->step_count; i++)
        if (executable->collectives[i]) cornu__gather_note(executable->collectives[i]);
}

/* Memory for collectives that are not under way at the same time. */
typedef struct {
    size_t bytes, offset;
    int    end;             /* the step that ends the last of them */
} Block;

/* A block that is free at the step: the largest one, or a new one. */
static Block *free_block(Block *blocks, int *count, int step)
{
    Block *best = NULL;
    for (int i = 0; i < *count; i++)
        if (blocks[i].end < step && (!best || blocks[i].bytes > best->bytes)) best = &blocks[i];
    return best ? best : &blocks[(*count)++];
}

/* The last step of the collective whose first one is step i; -1: it is not its first. */
static int last_step_of(const Executable *executable, int i)
{
    int last = i;
    for (int k = 0; k < executable->plan->step_count; k++) {
        if (!is_shared(executable, i, k)) continue;
        if (k < i) return -1;
        last = k;
    }
    return last;
}

/* Gives collectives their memory; block_of: by step. */
static CornuStatus divide_memory(Executable *executable, Block *blocks, int *block_of)
{
    const int steps = executable->plan->step_count;
    size_t    bytes = 0;
    int       count = 0;
    for (int i = 0; i < steps; i++) {
        const CornuCollective *c = executable->collectives[i];
        const int              last = c && cornu__collective_bytes(c) ? last_step_of(executable, i)
                                                                      : -1;
        block_of[i] = -1;
        if (last < 0) continue;
        Block *block = free_block(blocks, &count, i);
        block->end = last;
        if (cornu__collective_bytes(c) > block->bytes) block->bytes = cornu__collective_bytes(c);
        block_of[i] = (int)(block - blocks);
    }
    for (int i = 0; i < count; bytes += blocks[i++].bytes) blocks[i].offset = bytes;
    executable->exchanged = cornu__allocate_aligned(bytes);
    for (int i = 0; i < steps && executable->exchanged; i++)
        if (block_of[i] >= 0)
            cornu__collective_use(executable->collectives[i],
                                  executable->exchanged + blocks[block_of[i]].offset);
    return executable->exchanged ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus share_memory(Executable *executable)
{
    const size_t steps = (size_t)executable->plan->step_count;
    Block       *blocks = cornu__allocate(steps, sizeof *blocks);
    int         *block_of = cornu__allocate(steps, sizeof *block_of);
    const CornuStatus status = blocks && block_of ? divide_memory(executable, blocks, block_of)
                                                  : CORNU_ERR_MEMORY;
    cornu__release(blocks);
    cornu__release(block_of);
    return status;
}

/* One for each kernel step that meets other processes; its send step, or the wait step for what it
 * gathers, has the same. */
static CornuStatus allocate_collectives(Executable *executable)
{
    const CornuPlan *plan = executable->plan;
    for (int i = 0; i < plan->step_count; i++) {
        const CornuPlanStep *step = &plan->steps[i];
        if (step->kind != CORNU_STEP_KERNEL || !cornu__plan_exchanges(plan, step)) continue;
        CornuCollective *collective = cornu__collective_create(plan, step);
        if (!(executable->collectives[i] = collective)) return CORNU_ERR_MEMORY;
        for (int k = 0; k < plan->step_count; k++)
            if (cornu__plan_begins(plan, &plan->steps[k], step) ||
                (plan->steps[k].kind == CORNU_STEP_WAIT && plan->steps[k].input == step->input))
                executable->collectives[k] = collective;
    }
    if (cornu_process_count(plan->host->processes) == 1) return CORNU_OK;
    CORNU__TRY(share_memory(executable));
    return allocate_exchanges(executable);
}

static void free_collectives(Executable *executable)
{
    const CornuPlan *plan = executable->plan;
    for (int i = 0; executable->collectives && i < plan->step_count; i++)
        if (plan->steps[i].kind == CORNU_STEP_KERNEL)
            cornu__collective_free(executable->collectives[i]);
    cornu__release(executable->collectives);
    cornu__release(executable->exchanged);
    cornu__release(executable->base.exchanges);
}

/* One for each loop step. */
static CornuStatus allocate_loops(Executable *executable)
{
    const CornuPlan *plan = executable->plan;
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == CORNU_STEP_LOOP &&
            !(executable->loops[i] = cornu__loop_create(plan, &plan->steps[i])))
            return CORNU_ERR_MEMORY;
    return CORNU_OK;
}

CornuStatus cornu__host_allocate(CornuExecutable *base)
{
    return cornu__executable_allocate((Executable *)base);
}

CornuStatus cornu__executable_allocate(Executable *executable)
{
    CornuPlan   *plan = executable->plan;
    const size_t shards = (size_t)cornu__plan_own(plan).count;
    const size_t workers = (size_t)cornu__plan_workers(plan);
    CornuRegions *regions = &executable->regions;
    regions->arena = cornu__allocate_aligned(cornu__plan_bytes(plan, plan->arena));
    regions->packed = cornu__allocate_aligned(cornu__plan_bytes(plan, plan->packed));
    regions->sums = cornu__allocate_aligned(cornu__plan_sum_bytes(plan));
    if (!executable->is_twin)
        regions->fixed = cornu__allocate_aligned(cornu__plan_bytes(plan, plan->fixed));
    executable->scratch = cornu__allocate_aligned(plan->scratch_bytes * workers);
    executable->failures = cornu__allocate(shards, sizeof *executable->failures);
    executable->addresses = cornu__allocate((size_t)plan->operand_count * shards,
                                            sizeof *executable->addresses);
    executable->inputs = cornu__allocate((size_t)plan->program->input_count,
                                         sizeof *executable->inputs);
    executable->outputs = cornu__allocate((size_t)plan->program->output_count,
                                          sizeof *executable->outputs);
    executable->spans = cornu__allocate((size_t)cornu__threads_count(plan->host->threads),
                                        sizeof *executable->spans);
    executable->collectives = cornu__allocate((size_t)plan->step_count,
                                              sizeof *executable->collectives);
    executable->loops = cornu__allocate((size_t)plan->step_count, sizeof *executable->loops);
    const bool complete = regions->arena && regions->packed && regions->sums && regions->fixed &&
           executable->scratch && executable->failures && executable->addresses &&
           executable->inputs && executable->outputs && executable->spans &&
           executable->collectives && executable->loops;
    if (!complete) return CORNU_ERR_MEMORY;
    CORNU__TRY(allocate_collectives(executable));
    return allocate_loops(executable);
}

void cornu__host_executable_free(CornuExecutable *base)
{
    Executable *executable = (Executable *)base;
    CornuPlan  *plan = executable->is_twin ? NULL : executable->plan;
    cornu__executable_release(executable);
    if (plan) cornu__plan_free(plan);
    cornu__release(plan);
    cornu__release(executable);
}

void cornu__executable_release(Executable *executable)
{
    free_collectives(executable);
    for (int i = 0; executable->loops && i < executable->plan->step_count; i++)
        cornu__loop_free(executable->loops[i]);
    cornu__release(executable->loops);
    cornu__release(executable->regions.arena);
    cornu__release(executable->regions.packed);
    cornu__release(executable->regions.sums);
    if (!executable->is_twin) cornu__release(executable->regions.fixed);
    cornu__release(executable->scratch);
    cornu__release(executable->addresses);
    cornu__release(executable->inputs);
    cornu__release(executable->outputs);
    cornu__release(executable->failures);
    cornu__release(executable->spans);
}

/* ---- Running ---- */

static void find_addresses(Executable *executable, CornuBuffer *const *inputs,
                           CornuBuffer *const *outputs)
{
    const CornuPlan    *plan = executable->plan;
    const CornuProgram *program = plan->program;
    for (int i = 0; i < program->input_count; i++)
        executable->inputs[i] = cornu__host_data(inputs[i]);
    for (int i = 0; i < program->output_count; i++)
        executable->outputs[i] = outputs && outputs[i] ? cornu__host_data(outputs[i]) : NULL;
    for (int shard = 0; shard < cornu__plan_own(plan).count; shard++)
        cornu__plan_addresses(plan, shard, executable->inputs, executable->outputs,
                              &executable->regions,
                              executable->addresses + (size_t)shard * plan->operand_count);
}

static void *const *addresses_on(const Executable *executable, int shard)
{
    return executable->addresses + (size_t)shard * executable->plan->operand_count;
}

/* The events of a step on a shard, one for each thread. */
static CornuStepEvent *events_of(const Executable *executable, int step, int shard)
{
    const int threads = cornu__threads_count(executable->plan->host->threads);
    const int shards = cornu__plan_own(executable->plan).count;
    return executable->base.events + (step * shards + shard) * threads;
}

/* A step that meets other processes. */
static CornuStatus exchange(Executable *executable, int i, void *const *addresses)
{
    const CornuPlan     *plan = executable->plan;
    const CornuPlanStep *step = &plan->steps[i];
    CornuCollective     *collective = executable->collectives[i];
    if (step->kind == CORNU_STEP_WAIT) return cornu__gather_end(collective);
    if (step->kind == CORNU_STEP_SEND) return cornu__collective_begin(collective, addresses);
    if (step->input >= 0) {
        cornu__gather_leave(collective, addresses, executable->buffers[step->input]);
        return CORNU_OK;
    }
    return cornu__plan_ends_sum(plan, step) ? cornu__collective_end(collective, addresses)
                                           : cornu__collective_run(collective, addresses);
}

static CornuStatus run_step(Executable *executable, int i, int shard, char *scratch)
{
    void *const *addresses = addresses_on(executable, shard);
    return executable->collectives[i]
         ? exchange(executable, i, addresses)
         : cornu__plan_run_step(executable->plan, &executable->plan->steps[i], addresses, shard,
                                scratch);
}

/* Runs a step of a shard's segment on one thread, all its pieces included. */
static CornuStatus run_alone(Executable *executable, int i, int shard, int thread, char *scratch)
{
    if (!executable->base.events) return run_step(executable, i, shard, scratch);
    CornuStepEvent *event = &events_of(executable, i, shard)[thread];
    event->begin_s = cornu__seconds();
    const CornuStatus status = run_step(executable, i, shard, scratch);
    event->end_s = cornu__seconds();
    return status;
}

/* Whether the step is over before other threads have come to help: it takes a few microseconds, at
 * the rates in a first-level cache. */
static bool is_short(const Executable *executable, int i)
{
    enum { FLOPS_PER_NS = 64, BYTES_PER_NS = 32, SHORT_NS = 3000 };
    const CornuExecutableStep *step = &executable->base.steps[i];
    return step->flops / FLOPS_PER_NS + (step->bytes_read + step->bytes_written) / BYTES_PER_NS <
           SHORT_NS;
}

typedef struct { Executable *executable; int step, shard; CornuStatus status; } ShortStep;

static void run_short(void *context, int64_t block, int thread)
{
    ShortStep *s = context;
    (void)block;
    s->status = run_alone(s->executable, s->step, s->shard, thread, s->executable->scratch);
}

/* Runs a step whose pieces all threads may take. */
static CornuStatus run_together(Executable *executable, int i, int shard)
{
    CornuThreads *threads = executable->plan->host->threads;
    const int     count = cornu__threads_count(threads);
    if (count > 1 && is_short(executable, i) && !executable->base.events) {
        ShortStep s = { executable, i, shard, CORNU_OK };
        cornu__threads_run(threads, 1, run_short, &s);
        return s.status;
    }
    if (!executable->base.events)
        return run_alone(executable, i, shard, 0, executable->scratch);
    memset(executable->spans, 0, (size_t)count * sizeof *executable->spans);
    cornu__threads_watch(threads, executable->spans);
    const CornuStatus status = run_alone(executable, i, shard, 0, executable->scratch);
    cornu__threads_watch(threads, NULL);
    CornuStepEvent *events = events_of(executable, i, shard);
    for (int t = 1; t < count; t++) {
        events[t].begin_s = executable->spans[t].begin_s;
        events[t].end_s = executable->spans[t].end_s;
    }
    return status;
}

/* ---- Segments: steps that every shard runs, start to end ---- */

typedef struct {
    Executable *executable;
    int         first, end;   /* steps */
    bool        per_thread;   /* a thread takes a shard from start to end */
} Segment;

/* Moves addresses in the memory of workers to this worker's part. Other shards may be reading the
 * other addresses. */
static void move_to_worker(const Segment *segment, int64_t shard, int worker)
{
    Executable      *executable = segment->executable;
    const CornuPlan *plan = executable->plan;
    void           **addresses = executable->addresses + shard * plan->operand_count;
    for (int i = segment->first; i < segment->end && worker > 0; i++) {
        const CornuPlanStep *step = &plan->steps[i];
        for (int k = step->in_first; k < step->out_first + step->out_count; k++) {
            const size_t stride = plan->places[plan->operands[k]].worker_stride;
            if (stride > 0) addresses[k] = (char *)addresses[k] + (size_t)worker * stride;
        }
    }
}

static void run_segment_on(const Segment *segment, int64_t shard, int thread)
{
    Executable    *executable = segment->executable;
    const size_t   each = executable->plan->scratch_bytes;
    char          *scratch = executable->scratch + (size_t)thread * each;
    CornuStatus    status = CORNU_OK;
    move_to_worker(segment, shard, thread);
    for (int i = segment->first; i < segment->end && status == CORNU_OK; i++)
        if (!executable->plan->steps[i].fixed)
            status = segment->per_thread
                   ? run_alone(executable, i, (int)shard, thread, scratch)
                   : run_together(executable, i, (int)shard);
    cornu__failure_keep(&executable->failures[shard], status);
}

/* The shards of a block, in order: their sums are added up on the way. */
static void run_block(void *context, int64_t block, int thread)
{
    const Segment *segment = context;
    const int64_t  each = cornu__plan_block(segment->executable->plan), first = block * each;
    const int64_t  shards = cornu__plan_own(segment->executable->plan).count;
    for (int64_t shard = first; shard < shards && shard < first + each; shard++)
        run_segment_on(segment, shard, thread);
}

/* A loop within which shards meet. */
static CornuStatus run_loop(Executable *executable, int i)
{
    CornuStepEvent *event = executable->base.events ? events_of(executable, i, 0) : NULL;
    if (event) event->begin_s = cornu__seconds();
    const CornuStatus status = cornu__loop_run(executable->loops[i], executable->addresses);
    if (event) event->end_s = cornu__seconds();
    return status;
}

/* With at least as many shards as threads, a thread takes a shard from start to end, and the
 * kernels that it calls run on it alone; with fewer, all threads work on one shard after the other.
 * The bits are the same, as the blocks of kernels do not depend on threads. */
static CornuStatus run_segment(Executable *executable, int first, int end)
{
    CornuThreads *threads = executable->plan->host->threads;
    const int     shards = cornu__plan_own(executable->plan).count;
    Segment       segment = { executable, first, end, cornu__plan_workers(executable->plan) > 1 };
    if (segment.per_thread)
        cornu__threads_run(threads, cornu__plan_blocks(executable->plan), run_block, &segment);
    else
        for (int shard = 0; shard < shards; shard++) run_segment_on(&segment, shard, 0);
    for (int shard = 0; shard < shards; shard++)
        if (executable->failures[shard].status != CORNU_OK)
            return cornu__failure_tell_shard(&executable->failures[shard],
                                             cornu__plan_own(executable->plan).first + shard);
    return CORNU_OK;
}

CornuStatus cornu__executable_steps(Executable *executable)
{
    const CornuPlan *plan = executable->plan;
    const bool       sharded = cornu__plan_shards(plan) > 1;
    for (int i = 0, end; i < plan->step_count; i = end) {
        end = i + 1;
        if (plan->steps[i].fixed) continue;
        if (sharded && plan->steps[i].varies) {
            while (end < plan->step_count && plan->steps[end].varies && !plan->steps[end].waits)
                end++;
            CORNU__TRY(run_segment(executable, i, end));
        } else if (executable->loops[i]) {
            CORNU__TRY(run_loop(executable, i));
        } else {
            CORNU__TRY(run_together(executable, i, 0));
        }
    }
    return CORNU_OK;
}

CornuStatus cornu__host_fix(CornuExecutable *base, CornuBuffer *const *inputs)
{
    find_addresses((Executable *)base, inputs, NULL);
    return cornu__executable_fix((Executable *)base);
}

CornuStatus cornu__executable_fix(Executable *executable)
{
    const CornuPlan *plan = executable->plan;
    for (int i = 0; i < plan->step_count; i++) {
        const int shards = plan->steps[i].varies ? cornu__plan_own(plan).count : 1;
        for (int shard = 0; shard < shards && plan->steps[i].fixed; shard++)
            CORNU__TRY(run_together(executable, i, shard));
    }
    return CORNU_OK;
}

/* Whether a wait step ends the gather, before the first step that reads the input. */
static bool waits_for(const Executable *executable, const CornuCollective *gather, int input)
{
    const CornuPlan *plan = executable->plan;
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == CORNU_STEP_WAIT && plan->steps[i].input == input &&
            executable->collectives[i] == gather)
            return true;
    return false;
}

/* Waits for what other programs gather into the inputs, and begins what the run before has left. */
static CornuStatus begin_gathers(const Executable *executable)
{
    const CornuPlan *plan = executable->plan;
    if (cornu_process_count(plan->host->processes) == 1) return CORNU_OK;
    for (int i = 0; i < plan->program->input_count; i++) {
        CornuCollective *gather = cornu__host_gather_of(executable->buffers[i]);
        if (gather && !waits_for(executable, gather, i)) CORNU__TRY(cornu__gather_end(gather));
    }
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == CORNU_STEP_KERNEL && plan->steps[i].input >= 0)
            CORNU__TRY(cornu__gather_begin(executable->collectives[i]));
    return CORNU_OK;
}

/* A failure of this process alone ends the others' wait for it. */
CornuStatus cornu__host_run(CornuExecutable *base, CornuBuffer *const *inputs,
                            CornuBuffer *const *outputs)
{
    Executable *executable = (Executable *)base;
    executable->buffers = inputs;
    find_addresses(executable, inputs, outputs);
    CornuStatus status = begin_gathers(executable);
    if (!status) status = cornu__executable_steps(executable);
    return status ? cornu__processes_fail(executable->plan->host->processes, status) : CORNU_OK;
}
