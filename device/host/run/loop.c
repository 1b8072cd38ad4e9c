#include "loop.h"

#include <string.h>

#include "../../memory_internal.h"
#include "scan.h"

struct CornuLoop {
    Executable           body;
    const CornuPlan     *plan;      /* around it */
    const CornuPlanStep *step;
    const CornuScanPlan *scan;
    void *const         *addresses; /* of this run, in the plan around it */
    char                *memory;    /* of the body's carries, slices and outputs */
};

static const CornuProgram *program_of(const CornuLoop *loop) { return loop->scan->plan.program; }

static int own_shards(const CornuLoop *loop) { return cornu__plan_own(loop->plan).count; }

/* Shards that have a value of their own of those of a plan. */
static int parts_of(const CornuLoop *loop, const CornuPlan *plan, CornuValue value)
{
    return plan->varies[value] ? own_shards(loop) : 1;
}

/* ---- Making ---- */

/* Whether input i of the body is in memory of its own; others are where the step's operands are. */
static bool has_memory(const CornuLoop *loop, int i)
{
    return i < loop->scan->attributes.carries + loop->scan->attributes.slices;
}

/* Deals the memory to the body's inputs and outputs, from `at` on; returns how much that takes. */
static size_t deal(CornuLoop *loop, char *at)
{
    const CornuPlan    *plan = &loop->scan->plan;
    const CornuProgram *body = plan->program;
    size_t              bytes = 0;
    for (int i = 0; i < body->input_count + body->output_count; i++) {
        const bool       is_input = i < body->input_count;
        const int        number = is_input ? i : i - body->input_count;
        const CornuValue value = is_input ? body->inputs[number] : body->outputs[number].value;
        if (is_input && !has_memory(loop, i)) continue;
        (is_input ? loop->body.inputs : loop->body.outputs)[number] = at ? at + bytes : NULL;
        bytes += cornu__aligned(cornu_type_bytes(plan->types[value]) *
                                (size_t)parts_of(loop, plan, value));
    }
    return bytes;
}

static CornuStatus allocate(CornuLoop *loop)
{
    CORNU__TRY(cornu__executable_describe(&loop->body));
    CORNU__TRY(cornu__executable_allocate(&loop->body));
    loop->memory = cornu__allocate_aligned(deal(loop, NULL));
    if (!loop->memory) return CORNU_ERR_MEMORY;
    deal(loop, loop->memory);
    return CORNU_OK;
}

CornuLoop *cornu__loop_create(const CornuPlan *plan, const CornuPlanStep *step)
{
    CornuLoop *loop = cornu__allocate(1, sizeof *loop);
    if (!loop) return NULL;
    *loop = (CornuLoop){ .plan = plan, .step = step, .scan = step->scan,
                         .body = { .plan = &step->scan->plan } };
    if (allocate(loop) == CORNU_OK) return loop;
    cornu__loop_free(loop);
    return NULL;
}

void cornu__loop_free(CornuLoop *loop)
{
    if (!loop) return;
    cornu__describe_free(&loop->body.base);
    cornu__executable_release(&loop->body);
    cornu__release(loop->memory);
    cornu__release(loop);
}

/* ---- Where everything is ---- */

/* Operand k of the step, results counted after the operands, on an own shard. */
static char *around(const CornuLoop *loop, int k, int shard)
{
    return loop->addresses[shard * loop->plan->operand_count + loop->step->in_first + k];
}

/* A shard's part of the body's input, or of its output. */
static char *input(const CornuLoop *loop, int i, int shard)
{
    const size_t stride = cornu__plan_stride(&loop->scan->plan, program_of(loop)->inputs[i]);
    return (char *)loop->body.inputs[i] + (size_t)shard * stride;
}

static char *output(const CornuLoop *loop, int i, int shard)
{
    const size_t stride = cornu__plan_stride(&loop->scan->plan, program_of(loop)->outputs[i].value);
    return (char *)loop->body.outputs[i] + (size_t)shard * stride;
}

/* A constant of a shard is where the plan around has it, which the body's plan takes for a part of
 * a buffer of all shards'. */
static void find_addresses(CornuLoop *loop)
{
    const CornuPlan    *plan = &loop->scan->plan;
    const CornuProgram *body = plan->program;
    for (int shard = 0; shard < own_shards(loop); shard++) {
        for (int i = 0; i < body->input_count; i++)
            if (!has_memory(loop, i))
                loop->body.inputs[i] =
                    (void *)((uintptr_t)around(loop, i, shard) -
                             (size_t)shard * cornu__plan_stride(plan, body->inputs[i]));
        cornu__plan_addresses(plan, shard, loop->body.inputs, loop->body.outputs,
                              &loop->body.regions,
                              loop->body.addresses + (size_t)shard * plan->operand_count);
    }
}

/* ---- Running ---- */

/* The carries before the first step. */
static void begin(const CornuLoop *loop)
{
    for (int i = 0; i < loop->scan->attributes.carries; i++) {
        const CornuValue value = program_of(loop)->inputs[i];
        for (int s = 0; s < parts_of(loop, &loop->scan->plan, value); s++)
            memcpy(input(loop, i, s), around(loop, i, s), cornu_type_bytes(loop->step->types[i]));
    }
}

static void take_slices(const CornuLoop *loop, int64_t t)
{
    const CornuScanPlan *scan = loop->scan;
    const int            first = (int)scan->attributes.carries;
    for (int i = first; i < first + scan->attributes.slices; i++)
        for (int s = 0; s < parts_of(loop, &scan->plan, program_of(loop)->inputs[i]); s++)
            cornu__scan_copy(scan, cornu__scan_input_type(scan, i), around(loop, i, s),
                             input(loop, i, s), t, false);
}

/* Carries for the next step, and what the step has made for the others. */
static void keep(const CornuLoop *loop, int64_t t)
{
    const CornuScanPlan *scan = loop->scan;
    const CornuProgram  *body = program_of(loop);
    const int            carries = (int)scan->attributes.carries;
    for (int i = 0; i < carries; i++)
        for (int s = 0; s < parts_of(loop, &scan->plan, body->inputs[i]); s++)
            memcpy(input(loop, i, s), output(loop, i, s), cornu_type_bytes(loop->step->types[i]));
    for (int i = carries; i < body->output_count; i++) {
        const int        k = loop->step->in_count + i;
        const CornuValue made = loop->plan->operands[loop->step->in_first + k];
        for (int s = 0; s < parts_of(loop, loop->plan, made); s++)
            cornu__scan_copy(scan, cornu__scan_output_type(scan, i), around(loop, k, s),
                             output(loop, i, s), t, true);
    }
}

/* The carries after the last step. */
static void end(const CornuLoop *loop)
{
    for (int i = 0; i < loop->scan->attributes.carries; i++) {
        const int        k = loop->step->in_count + i;
        const CornuValue made = loop->plan->operands[loop->step->in_first + k];
        for (int s = 0; s < parts_of(loop, loop->plan, made); s++)
            memcpy(around(loop, k, s), input(loop, i, s), cornu_type_bytes(loop->step->types[i]));
    }
}

CornuStatus cornu__loop_run(CornuLoop *loop, void *const *addresses)
{
    const CornuAttributes_SCAN *scan = &loop->scan->attributes;
    loop->addresses = addresses;
    find_addresses(loop);
    begin(loop);
    CORNU__TRY(cornu__executable_fix(&loop->body));
    for (int64_t k = 0; k < scan->steps; k++) {
        const int64_t t = scan->reverse ? scan->steps - 1 - k : k;
        take_slices(loop, t);
        find_addresses(loop);   /* each run of steps moves some to its workers */
        CORNU__TRY(cornu__executable_steps(&loop->body));
        keep(loop, t);
    }
    end(loop);
    return CORNU_OK;
}
