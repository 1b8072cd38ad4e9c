#include "../../../debug_internal.h"
#include "plan.h"

static void print_place(const CornuPlan *plan, CornuValue value, FILE *to)
{
    static const char *const regions[] = { "nowhere", "arena", "packed", "sums", "fixed",
                                            "input", "output" };
    CornuPlace               place = plan->places[value];
    CornuText                text;
    fprintf(to, " %%%d %s %s", (int)value, cornu_type_print(&text, plan->types[value]),
            regions[place.region]);
    if (place.region < CORNU_INPUT && place.region != CORNU_NOWHERE)
        fprintf(to, "+%zu", place.offset);
    else fprintf(to, " %d%s", place.number, place.offset ? " (part)" : "");
}

static const char *const epilogue_names[CORNU_EPILOGUE_OPERANDS] = {
    "bias", "scale", "shift", "add", "slope", "step + multiply",
};

int cornu__plan_declined(const CornuPlan *plan, const CornuPlanStep *step, CornuDeclined *to)
{
    const CornuProgramOp *ops = plan->program->ops;
    if (step->kind != CORNU_STEP_KERNEL && step->kind != CORNU_STEP_REFERENCE) return 0;
    return cornu__declined(plan->host, plan->program, &ops[step->op],
                           step->pool < 0 ? NULL : &ops[step->pool], step->kernel, to);
}

static void print_declined(const CornuPlan *plan, const CornuPlanStep *step, FILE *to)
{
    CornuDeclined declined[CORNU_MOST_DECLINED];
    const int     count = cornu__plan_declined(plan, step, declined);
    for (int i = 0; i < count; i++)
        fprintf(to, "     not %s: %s\n", declined[i].kernel, declined[i].why);
}

void cornu__plan_print(const CornuPlan *plan, FILE *to)
{
    fprintf(to, "plan: %d steps, %zu bytes of values, %zu bytes of scratch memory\n",
            plan->step_count, cornu__plan_bytes_of_shard(plan->arena), plan->scratch_bytes);
    if (cornu__plan_shards(plan) > 1)
        fprintf(to, "%d shards, %d of them here; of the values %zu bytes on each, %zu on the "
                "worker that runs it\n", cornu__plan_shards(plan), cornu__plan_own(plan).count,
                plan->arena.shard, plan->arena.worker);
    for (int i = 0; i < plan->step_count; i++) {
        const CornuPlanStep *step = &plan->steps[i];
        fprintf(to, "%4d%s %s%s", i, step->varies ? " *" : "",
                step->waits ? "waits, " : step->fixed ? "once, " : "",
                cornu__plan_kind_name(plan, step));
        if (step->op >= 0)
            fprintf(to, " %s", cornu_program_op_name(&plan->program->ops[step->op]));
        if (step->pool >= 0)
            fprintf(to, " with %s", cornu_op_name(plan->program->ops[step->pool].id));
        if (step->summed) fprintf(to, " summed");
        if (step->group) cornu__group_print(step->group, to);
        for (int k = 0; k < CORNU_EPILOGUE_OPERANDS; k++)
            if (step->epilogue_in[k] > 0) fprintf(to, " + %s", epilogue_names[k]);
        if (step->epilogue.activation != CORNU_OP_COUNT)
            fprintf(to, " + %s", cornu_op_name(step->epilogue.activation));
        if (step->kernel) fprintf(to, " by %s", step->kernel->name);
        const CornuValue *operands = plan->operands + step->in_first;
        for (int k = 0; k < step->in_count; k++) {
            fprintf(to, "%s", k ? "," : " :");
            print_place(plan, operands[k], to);
        }
        fprintf(to, " ->");
        for (int k = 0; k < step->out_count; k++) {
            fprintf(to, "%s", k ? "," : "");
            print_place(plan, plan->operands[step->out_first + k], to);
        }
        fprintf(to, "\n");
        if (cornu__dumps("kernels")) print_declined(plan, step, to);
        if (!step->scan) continue;
        fprintf(to, "     %lld times:\n", (long long)step->scan->attributes.steps);
        cornu__plan_print(&step->scan->plan, to);
        fprintf(to, "     until here\n");
    }
}
