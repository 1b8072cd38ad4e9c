/*
 * Steps that need to run only once: they read nothing but inputs that are the same in every run
 * (cornu_program_fix_input) and each other's results, as packing of weights does. Their results
 * stay in a region of their own, which all runs share; of slices of weights, in one of each shard.
 */
#include "../../../memory_internal.h"
#include "plan.h"

static bool reads_fixed(const CornuPlan *plan, const CornuPlanStep *step)
{
    bool fixed = true;
    for (int k = 0; k < step->in_count; k++)
        fixed &= plan->is_fixed[
            cornu__plan_part(plan, plan->operands[step->in_first + k]).whole];
    return fixed;
}

/* Whether no other step writes a part of the memory, and no buffer has it. */
static bool has_own_memory(const CornuPlan *plan, CornuValue value)
{
    const CornuRegion region = plan->places[value].region;
    return cornu__plan_part(plan, value).whole == value &&
           (region == CORNU_NOWHERE || region == CORNU_PACKED);
}

static bool is_fixed(const CornuPlan *plan, const CornuPlanStep *step)
{
    const bool kind = step->kind == CORNU_STEP_KERNEL || step->kind == CORNU_STEP_PACK ||
                      step->kind == CORNU_STEP_GROUP;
    bool       fixed = kind && !cornu__plan_crosses(plan, step) && reads_fixed(plan, step);
    for (int k = 0; fixed && k < step->out_count; k++)
        fixed = has_own_memory(plan, plan->operands[step->out_first + k]);
    return fixed;
}

CornuStatus cornu__plan_find_fixed(CornuPlan *plan)
{
    const CornuProgram *program = plan->program;
    bool                any = false;
    plan->is_fixed = cornu__allocate((size_t)plan->value_count, sizeof *plan->is_fixed);
    if (!plan->is_fixed) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->input_count; i++)
        any |= plan->is_fixed[program->inputs[i]] = program->values[program->inputs[i]].fixed;
    for (int i = 0; i < plan->step_count && any; i++) {
        CornuPlanStep *step = &plan->steps[i];
        step->fixed = is_fixed(plan, step);
        for (int k = 0; k < step->out_count && step->fixed; k++)
            plan->is_fixed[plan->operands[step->out_first + k]] = true;
    }
    return CORNU_OK;
}
