/*
 * exchanges: with several processes, what they sum is sent as soon as each has made it, and waited
 * for as late as possible, so that bytes travel while processors compute.
 *
 * A large sum over all shards becomes two steps:
 *
 *     send      adds up what own shards have, and begins the exchange
 *     kernel    waits for its end, and finishes the sum
 *
 * A gather that only writes an input of the program, as of weights that were updated in slices, is
 * left to the next run, which begins it first of all; a wait step, before the first step that reads
 * that input, waits for its end. Reading and writing the buffer, and other programs, do both
 * (run/buffer.h).
 *
 * Collectives between processes run once on all own shards. All processes compile the same programs
 * and begin the same exchanges in the same order, which is checked here.
 */
#include <stdlib.h>

#include "../../../lookup_internal.h"
#include "../../../memory_internal.h"
#include "../../../processes/processes_internal.h"
#include "../passes.h"

/* Bytes below which an exchange is over before anything is gained. */
enum { LARGE = 32 << 10 };

static bool is_large(const CornuPlan *plan, const CornuPlanStep *step)
{
    return plan->varies[plan->operands[step->in_first]] &&
           cornu_type_bytes(step->types[0]) >= LARGE &&
           plan->program->ops[step->op].attributes.shards.groups.count == 0;
}

/* ---- Sums ---- */

bool cornu__plan_begins(const CornuPlan *plan, const CornuPlanStep *send,
                        const CornuPlanStep *step)
{
    return send->kind == CORNU_STEP_SEND && cornu__plan_ends_sum(plan, step) &&
           plan->operands[send->out_first] == plan->operands[step->in_first + 1];
}

/* Splits step i. A value without use of its own, `begun`, orders the two. */
static CornuStatus split_sum(CornuPlan *plan, int i)
{
    const CornuPlanStep old = plan->steps[i];
    const CornuValue    x = plan->operands[old.in_first], y = plan->operands[old.out_first];
    CornuValue          begun;
    CORNU__TRY(cornu__plan_value(plan, cornu_type(CORNU_U8, 1), false,
                                 (CornuPlace){ .region = CORNU_NOWHERE }, &begun));
    CornuPlanStep *send = cornu__plan_step(plan, CORNU_STEP_SEND, &x, 1, &begun, 1);
    if (!send) return CORNU_ERR_MEMORY;
    send->op = old.op;
    send->position = old.position;
    const CornuPlanStep *wider = cornu__plan_step(plan, CORNU_STEP_KERNEL,
                                                  (CornuValue[]){ x, begun }, 2, &y, 1);
    if (!wider) return CORNU_ERR_MEMORY;
    CornuPlanStep *all = &plan->steps[i];   /* takes the operands of the step just added */
    cornu__release(all->types);
    all->types = wider->types;
    all->in_first = wider->in_first;
    all->in_count = wider->in_count;
    all->out_first = wider->out_first;
    plan->step_count--;
    return CORNU_OK;
}

/* The step that makes the value's memory; NULL for an input of the program. */
static CornuPlanStep *maker_of(const CornuPlan *plan, CornuValue value)
{
    const CornuValue root = cornu__plan_root(plan, value);
    for (int i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].out_count; k++)
            if (plan->operands[plan->steps[i].out_first + k] == root) return &plan->steps[i];
    return NULL;
}

/* Programs are recorded layer by layer, and then what is done with all gradients. The steps between
 * the gradients and the sum, such as packing them, want to run when the last of them is made. */
static void hurry(CornuPlan *plan, CornuValue value)
{
    CornuPlanStep *step = maker_of(plan, value);
    const bool     packs = step && step->kind == CORNU_STEP_KERNEL &&
                       plan->program->ops[step->op].id == CORNU_OP_PACK;
    int            ready = 0;
    if (!packs && (!step || step->kind != CORNU_STEP_GROUP || !step->varies)) return;
    for (int k = 0; k < step->in_count; k++) {
        const CornuValue in = plan->operands[step->in_first + k];
        hurry(plan, in);
        const CornuPlanStep *maker = maker_of(plan, in);
        if (maker && maker->position > ready) ready = maker->position;
    }
    if (ready < step->position) step->position = ready;
}

/* ---- Gathers ---- */

static bool is_read(const CornuPlan *plan, CornuValue value)
{
    for (int i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].in_count; k++)
            if (cornu__plan_part(plan, plan->operands[plan->steps[i].in_first + k]).whole == value)
                return true;
    return false;
}

/* The input that the value replaces, if that is all that becomes of it; -1 otherwise. */
static int replaced_input(const CornuPlan *plan, CornuValue value)
{
    const CornuProgram *program = plan->program;
    int                 input = -1, outputs = 0;
    for (int i = 0; i < program->output_count; i++) {
        if (cornu__plan_part(plan, program->outputs[i].value).whole != value) continue;
        outputs++;
        input = program->outputs[i].value == value ? program->outputs[i].alias : -1;
    }
    return outputs == 1 && !is_read(plan, value) ? input : -1;
}

/* The position of the first step that reads the input. */
static int first_reader(const CornuPlan *plan, CornuValue value)
{
    int first = plan->program->op_count;
    for (int i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].in_count; k++)
            if (cornu__plan_root(plan, plan->operands[plan->steps[i].in_first + k]) == value &&
                plan->steps[i].position < first)
                first = plan->steps[i].position;
    return first;
}

/* The gather, step i, is left to the next run, which needs it at that position. */
static CornuStatus add_wait(CornuPlan *plan, int i, int input)
{
    const CornuValue value = plan->program->inputs[input];
    const int        position = first_reader(plan, value);
    CornuPlanStep   *wait = cornu__plan_step(plan, CORNU_STEP_WAIT, NULL, 0, &value, 1);
    if (!wait) return CORNU_ERR_MEMORY;
    wait->position = plan->steps[i].position = position;
    wait->input = plan->steps[i].input = input;
    return CORNU_OK;
}

/* ---- The pass ---- */

CornuStatus cornu__plan_exchange(CornuPlan *plan)
{
    const int  count = plan->step_count;
    const bool overlaps = cornu__pass_runs(CORNU_PASS_OVERLAP);
    for (int i = 0; i < count; i++) {
        CornuPlanStep *step = &plan->steps[i];
        if (!cornu__plan_exchanges(plan, step) || step->kind == CORNU_STEP_LOOP) continue;
        step->varies = false;
        if (!overlaps || !is_large(plan, step)) continue;
        if (plan->program->ops[step->op].id != CORNU_OP_ALL_GATHER) {
            hurry(plan, plan->operands[step->in_first]);
            CORNU__TRY(split_sum(plan, i));
            continue;
        }
        const int input = replaced_input(plan, plan->operands[step->out_first]);
        if (input >= 0) CORNU__TRY(add_wait(plan, i, input));
    }
    return CORNU_OK;
}

CornuStatus cornu__plan_check_program(const CornuHost *host, const CornuProgram *program)
{
    char        text[160];
    const char *passes = getenv("CORNU_PASSES");
    if (cornu_process_count(host->processes) == 1) return CORNU_OK;
    snprintf(text, sizeof text, "%016llx, of %d ops, compiled with the passes \"%s\"",
             (unsigned long long)cornu_program_hash(program), program->op_count,
             passes ? passes : "");
    return cornu__processes_agree(host->processes, "the program", text);
}

CornuStatus cornu__plan_check_exchanges(CornuPlan *plan)
{
    CornuProcesses *processes = plan->host->processes;
    uint64_t        hash = 0;
    int             count = 0;
    char            text[64];
    if (cornu_process_count(processes) == 1) return CORNU_OK;
    for (int i = 0; i < plan->step_count; i++) {
        CornuPlanStep *step = &plan->steps[i];
        if (!cornu__plan_exchanges(plan, step) || cornu__plan_ends_sum(plan, step)) continue;
        /* A gather into memory of the program's own is copied from there in this run. */
        const CornuPlace place = plan->places[plan->operands[step->out_first]];
        if (step->input >= 0 && (place.region != CORNU_INPUT || place.number != step->input))
            step->input = -1;
        hash = cornu__hash(hash, (uint64_t)step->op);
        hash = cornu__hash(hash, cornu_type_bytes(step->types[0]));
        count++;
    }
    snprintf(text, sizeof text, "%d, %016llx", count, (unsigned long long)hash);
    return cornu__processes_agree(processes, "the order of a program's exchanges", text);
}
