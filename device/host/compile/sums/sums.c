/*
 * sums: what many shards add to a sum over all of them is added up as they are done.
 *
 * An all_reduce reads its operand of every shard, so that each shard's is in memory until all are
 * done: with a thousand shards, a thousand times the gradients. A sum step, the last thing that
 * each shard does with the value, adds it to the sum of its block of shards instead
 * (kernels/collective.h), and the all_reduce adds up those of the blocks. As blocks are subtrees of
 * the tree of an all_reduce, the bits are the same.
 */
#include "../../../memory_internal.h"
#include "../../../program_internal.h"
#include "../../kernels/collective.h"
#include "../passes.h"

static bool is_counted(const CornuPlan *plan, const CornuPlanStep *step)
{
    return step->kind == CORNU_STEP_KERNEL &&
           plan->program->ops[step->op].id == CORNU_OP_ALL_REDUCE &&
           plan->program->ops[step->op].attributes.shards.groups.count == 0 &&
           plan->varies[plan->operands[step->in_first]];
}

/* Bytes to the next value of its kind in the region, which begins at a multiple of 64. */
static size_t take(size_t *bytes, size_t more)
{
    const size_t at = *bytes;
    *bytes += cornu__aligned(more);
    return at;
}

/* The sum step for step i; offsets are within a block's and a worker's part of the region. */
static CornuStatus add_step(CornuPlan *plan, int i)
{
    const int        block = cornu__plan_block(plan), others = cornu__block_sums(block) - 1;
    const CornuValue x = plan->operands[plan->steps[i].in_first];
    const CornuType  type = plan->types[x];
    const size_t     bytes = cornu_type_bytes(type);
    CornuValue       made[2];
    CORNU__TRY(cornu__plan_value(
        plan, type, true, (CornuPlace){ .region = CORNU_SUMS, .block = block,
                                        .offset = take(&plan->sums.block, bytes) }, &made[0]));
    if (others > 0)
        CORNU__TRY(cornu__plan_value(
            plan, cornu_type(type.dtype, others * cornu_type_count(type)), true,
            (CornuPlace){ .region = CORNU_SUMS,
                          .offset = take(&plan->sums.worker, (size_t)others * bytes) }, &made[1]));
    CornuPlanStep *sum = cornu__plan_step(plan, CORNU_STEP_SUM, &x, 1, made, others > 0 ? 2 : 1);
    if (!sum) return CORNU_ERR_MEMORY;
    CornuPlanStep *all = &plan->steps[i];
    sum->position = all->position;
    sum->block = all->block = block;
    plan->operands[all->in_first] = made[0];
    return CORNU_OK;
}

/* Once the sizes of the parts are known. */
static void place(CornuPlan *plan, const CornuPlanStep *sum)
{
    plan->places[plan->operands[sum->out_first]].stride = plan->sums.block;
    if (sum->out_count == 1) return;
    CornuPlace *others = &plan->places[plan->operands[sum->out_first + 1]];
    others->offset += (size_t)cornu__plan_blocks(plan) * plan->sums.block;
    others->worker_stride = plan->sums.worker;
}

CornuStatus cornu__plan_sums(CornuPlan *plan)
{
    if (cornu__plan_block(plan) == 1 || !cornu__pass_runs(CORNU_PASS_SHARE)) return CORNU_OK;
    const int count = plan->step_count;
    for (int i = 0; i < count; i++)
        if (is_counted(plan, &plan->steps[i])) CORNU__TRY(add_step(plan, i));
    for (int i = count; i < plan->step_count; i++) place(plan, &plan->steps[i]);
    return CORNU_OK;
}

const CornuPlanStep *cornu__plan_sum_of(const CornuPlan *plan, const CornuPlanStep *step)
{
    if (step->block <= 1 || step->kind != CORNU_STEP_KERNEL) return NULL;
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == CORNU_STEP_SUM &&
            plan->operands[plan->steps[i].out_first] == plan->operands[step->in_first])
            return &plan->steps[i];
    return NULL;
}
