#include "plan.h"

#include "../../../integer_internal.h"
#include "../../../memory_internal.h"
#include "../../../program_internal.h"

/* ---- Reading a plan ---- */

int cornu__plan_shards(const CornuPlan *plan)
{
    return plan->host->shards > 1 ? plan->host->shards : 1;
}

CornuRange cornu__plan_own(const CornuPlan *plan)
{
    const CornuRange own = plan->host->own;
    return own.count > 0 ? own : (CornuRange){ 0, cornu__plan_shards(plan) };
}

bool cornu__plan_exchanges(const CornuPlan *plan, const CornuPlanStep *step)
{
    return cornu_process_count(plan->host->processes) > 1 && cornu__plan_crosses(plan, step);
}

/* Sums have one operand: a second one is what the send step makes. */
bool cornu__plan_ends_sum(const CornuPlan *plan, const CornuPlanStep *step)
{
    return step->kind == CORNU_STEP_KERNEL && step->in_count == 2 &&
           cornu__plan_exchanges(plan, step);
}

int cornu__plan_workers(const CornuPlan *plan)
{
    const int threads = cornu__threads_count(plan->host->threads);
    const int own = cornu__plan_own(plan).count;
    return cornu__plan_shards(plan) > 1 && own >= threads ? threads : 1;
}

/* Enough blocks to keep the threads busy to the end, and few enough that their sums stay few: at
 * least four a thread and the eight that one pass adds up, less than twice as many. Processes add
 * up what they own of the tree when they exchange it. */
int cornu__plan_block(const CornuPlan *plan)
{
    if (cornu_process_count(plan->host->processes) > 1) return 1;
    const int least = (int)larger(4 * cornu__threads_count(plan->host->threads), CORNU_SUM_ROWS);
    int       block = 1;
    while (cornu__plan_shards(plan) >= 2 * block * least) block *= 2;
    return block;
}

int cornu__plan_blocks(const CornuPlan *plan)
{
    const int block = cornu__plan_block(plan);
    return (cornu__plan_own(plan).count + block - 1) / block;
}

size_t cornu__plan_sum_bytes(const CornuPlan *plan)
{
    return (size_t)cornu__plan_blocks(plan) * plan->sums.block +
           (size_t)cornu__plan_workers(plan) * plan->sums.worker;
}

size_t cornu__place_offset(const CornuPlace *place, int shard)
{
    const int number = place->block > 1 ? shard / place->block : shard;
    return place->offset + (size_t)number * place->stride;
}

size_t cornu__plan_bytes(const CornuPlan *plan, CornuSpace space)
{
    return space.shared + (size_t)cornu__plan_own(plan).count * space.shard +
           (size_t)cornu__plan_workers(plan) * space.worker;
}

size_t cornu__plan_bytes_of_shard(CornuSpace space)
{
    return space.shared + space.shard + space.worker;
}

size_t cornu__plan_stride(const CornuPlan *plan, CornuValue value)
{
    return plan->varies[value] ? cornu_type_bytes(plan->types[value]) : 0;
}

bool cornu__plan_crosses(const CornuPlan *plan, const CornuPlanStep *step)
{
    return step->summed || step->kind == CORNU_STEP_LOOP ||
           (step->op >= 0 && cornu__crosses(plan->program->ops[step->op].id));
}

const char *cornu__plan_kind_name(const CornuPlan *plan, const CornuPlanStep *step)
{
    static const char *const names[] = { "kernel", "pack", "reference", "group", "copy", "scan",
                                         "loop", "sum", "send", "wait" };
    return step->kind == CORNU_STEP_KERNEL && cornu__plan_crosses(plan, step) ? "collective"
                                                                              : names[step->kind];
}

CornuOpCall cornu__plan_call(const CornuPlan *plan, const CornuPlanStep *step,
                             CornuType types[CORNU_CALL_TYPES], const CornuType **out_type)
{
    const CornuProgramOp *op = &plan->program->ops[step->op];
    if (step->packed < 0 && step->op_count <= 1 && step->kind != CORNU_STEP_PACK) {
        *out_type = step->types + step->in_count;
        return (CornuOpCall){ op->id, &op->attributes, op->in_count, step->types };
    }
    types[CORNU_MAX_INPUTS] = plan->types[op->out_first];
    *out_type = &types[CORNU_MAX_INPUTS];
    return cornu_program_call(plan->program, op, types);
}

const CornuOpCall *cornu__plan_pool(const CornuPlan *plan, const CornuPlanStep *step,
                                    CornuType types[CORNU_CALL_TYPES], CornuOpCall *call)
{
    if (step->pool < 0) return NULL;
    *call = cornu_program_call(plan->program, &plan->program->ops[step->pool], types);
    return call;
}

void cornu__plan_addresses(const CornuPlan *plan, int shard, void *const *inputs,
                           void *const *outputs, const CornuRegions *regions,
                           void **addresses)
{
    for (int i = 0; i < plan->operand_count; i++) {
        const CornuPlace *place = &plan->places[plan->operands[i]];
        char *start = place->region == CORNU_INPUT  ? inputs[place->number]
                    : place->region == CORNU_OUTPUT ? outputs[place->number]
                    : place->region == CORNU_PACKED ? regions->packed
                    : place->region == CORNU_SUMS   ? regions->sums
                    : place->region == CORNU_FIXED  ? regions->fixed
                                                    : regions->arena;
        addresses[i] = start + cornu__place_offset(place, shard);
    }
}

/* ---- Making one ---- */

CornuStatus cornu__plan_values(CornuPlan *plan)
{
    const int count = plan->program->value_count;
    CORNU__TRY(
        cornu__reserve(&plan->types, &plan->value_space, 0, count, sizeof *plan->types));
    CORNU__TRY(cornu__reserve(&plan->places, &plan->place_space, 0, count,
                              sizeof *plan->places));
    CORNU__TRY(cornu__reserve(&plan->varies, &plan->varies_space, 0, count,
                              sizeof *plan->varies));
    if (!(plan->joined = cornu__allocate((size_t)count, sizeof *plan->joined)))
        return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        plan->joined[i].whole = CORNU_NO_VALUE;
        plan->types[i] = cornu_program_type(plan->program, i);
        plan->places[i] = (CornuPlace){ .region = CORNU_NOWHERE };
        plan->varies[i] = plan->program->values[i].varies != 0;
    }
    plan->value_count = count;
    return cornu__plan_find_starts(plan);
}

CornuStatus cornu__plan_value(CornuPlan *plan, CornuType type, bool varies, CornuPlace place,
                              CornuValue *value)
{
    CORNU__TRY(cornu__reserve(&plan->varies, &plan->varies_space, plan->value_count, 1,
                              sizeof *plan->varies));
    CORNU__TRY(cornu__reserve(&plan->types, &plan->value_space, plan->value_count, 1,
                              sizeof *plan->types));
    CORNU__TRY(cornu__reserve(&plan->places, &plan->place_space, plan->value_count, 1,
                              sizeof *plan->places));
    plan->types[plan->value_count] = type;
    plan->varies[plan->value_count] = varies;
    plan->places[plan->value_count] = place;
    *value = plan->value_count++;
    return CORNU_OK;
}

CornuPlanStep *cornu__plan_step(CornuPlan *plan, CornuStepKind kind, const CornuValue *in,
                            int in_count, const CornuValue *out, int out_count)
{
    if (cornu__reserve(&plan->steps, &plan->step_space, plan->step_count, 1,
                       sizeof *plan->steps) != CORNU_OK ||
        cornu__reserve(&plan->operands, &plan->operand_space, plan->operand_count,
                       in_count + out_count, sizeof *plan->operands) != CORNU_OK)
        return NULL;
    CornuPlanStep *step = &plan->steps[plan->step_count];
    *step = (CornuPlanStep){
        .kind = kind,
        .op = -1,
        .pool = -1, .packed = -1, .input = -1,
        .in_first = plan->operand_count,
        .in_count = in_count,
        .out_first = plan->operand_count + in_count,
        .out_count = out_count,
        .epilogue = { .activation = CORNU_OP_COUNT },
    };
    step->types = cornu__allocate((size_t)(in_count + out_count), sizeof *step->types);
    if (!step->types) return NULL;
    CornuValue *operands = plan->operands + plan->operand_count;
    for (int i = 0; i < in_count; i++) operands[i] = in[i];
    for (int i = 0; i < out_count; i++) operands[in_count + i] = out[i];
    for (int i = 0; i < in_count + out_count; i++)
        step->types[i] = plan->types[operands[i]];
    for (int i = 0; i < out_count; i++) step->varies = step->varies || plan->varies[out[i]];
    plan->operand_count += in_count + out_count;
    plan->step_count++;
    return step;
}

static void free_scan(CornuScanPlan *scan)
{
    if (!scan) return;
    cornu__plan_free(&scan->plan);
    cornu__release(scan);
}

void cornu__plan_free(CornuPlan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        cornu__group_free(plan->steps[i].group);
        free_scan(plan->steps[i].scan);
        cornu__release(plan->steps[i].ops);
        cornu__release(plan->steps[i].types);
    }
    cornu__release(plan->steps);
    cornu__release(plan->operands);
    cornu__release(plan->types);
    cornu__release(plan->places);
    cornu__release(plan->is_fixed);
    cornu__release(plan->varies);
    cornu__release(plan->joined);
    cornu__release(plan->starts);
    cornu_program_free(plan->program);
}
