/*
 * plan: the order of the steps (plan_order.c), and a place in memory for every value: outputs'
 * (plan_outputs.c), the others' (plan_arena.c).
 */
#include "plan_internal.h"

int cornu__plan_shards(const CornuPlan *plan)
{
    return plan->host->shards > 1 ? plan->host->shards : 1;
}

CornuStep *cornu__plan_step(CornuPlan *plan, CornuStepKind kind, const CornuValue *in,
                            int in_count, const CornuValue *out, int out_count)
{
    if (cornu__reserve(&plan->steps, &plan->step_space, plan->step_count, 1,
                       sizeof *plan->steps) != CORNU_OK ||
        cornu__reserve(&plan->operands, &plan->operand_space, plan->operand_count,
                       in_count + out_count, sizeof *plan->operands) != CORNU_OK)
        return NULL;
    CornuStep *step = &plan->steps[plan->step_count];
    *step = (CornuStep){
        .kind = kind,
        .op = -1,
        .pool = -1, .packed = -1,
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

int cornu__plan_workers(const CornuPlan *plan)
{
    const int threads = cornu__threads_count(plan->host->threads);
    return cornu__plan_shards(plan) > 1 && cornu__plan_shards(plan) >= threads ? threads : 1;
}

size_t cornu__plan_bytes(const CornuPlan *plan, CornuSpace space)
{
    return space.shared + (size_t)cornu__plan_shards(plan) * space.shard +
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

/* What is part of another value's memory is there. */
static void place_parts(CornuPlan *plan)
{
    for (int i = 0; i < plan->program->value_count; i++) {
        const CornuPart part = cornu__plan_part(plan, i);
        if (part.whole == i) continue;
        plan->places[i] = plan->places[part.whole];
        plan->places[i].offset += part.offset;
        plan->places[i].stride += part.stride;
    }
}

CornuStatus cornu__plan_memory(CornuPlan *plan)
{
    CornuPlanner p = { .plan = plan };
    CornuStatus  status = cornu__reserve(
        &p.writer, &p.writer_space, 0,
        plan->value_count + 2 * plan->program->output_count, sizeof *p.writer);
    for (int i = 0; status == CORNU_OK && i < p.writer_space; i++) p.writer[i] = -1;
    for (int i = 0; status == CORNU_OK && i < plan->program->input_count; i++)
        plan->places[plan->program->inputs[i]] =
            (CornuPlace){ .region = CORNU_INPUT, .number = i,
                          .stride = cornu__plan_stride(plan, plan->program->inputs[i]) };
    for (int i = 0; status == CORNU_OK && i < plan->step_count; i++)
        status = cornu__plan_connect(&p, i);
    for (int i = 0, count = plan->step_count; status == CORNU_OK && i < count; i++)
        status = cornu__plan_connect_operands(&p, i);
    if (status == CORNU_OK) cornu__plan_join_operands(&p);
    if (status == CORNU_OK) status = cornu__plan_outputs(&p);
    if (status == CORNU_OK) status = cornu__plan_order(&p);
    if (status == CORNU_OK) cornu__plan_find_waits(plan);
    if (status == CORNU_OK) status = cornu__plan_arena(plan, CORNU_ARENA, &plan->arena);
    if (status == CORNU_OK) status = cornu__plan_arena(plan, CORNU_PACKED, &plan->packed);
    if (status == CORNU_OK) place_parts(plan);
    cornu__release(p.writer);
    cornu__release(p.head);
    cornu__release(p.edges);
    cornu__release(p.seen);
    cornu__release(p.left);
    return status;
}

/* ---- Printing and freeing ---- */

const char *cornu__plan_kind_name(const CornuPlan *plan, const CornuStep *step)
{
    static const char *const names[] = { "kernel", "pack", "reference", "group", "copy", "scan" };
    return cornu__plan_crosses(plan, step) ? "collective" : names[step->kind];
}

static void print_place(const CornuPlan *plan, CornuValue value, FILE *to)
{
    static const char *const regions[] = { "nowhere", "arena", "packed", "input", "output" };
    CornuPlace               place = plan->places[value];
    CornuText                text;
    fprintf(to, " %%%d %s %s", (int)value, cornu_type_print(&text, plan->types[value]),
            regions[place.region]);
    if (place.region == CORNU_ARENA || place.region == CORNU_PACKED)
        fprintf(to, "+%zu", place.offset);
    else fprintf(to, " %d%s", place.number, place.offset ? " (part)" : "");
}

void cornu__plan_print(const CornuPlan *plan, FILE *to)
{
    fprintf(to, "plan: %d steps, %zu bytes of values, %zu bytes of scratch memory\n",
            plan->step_count, cornu__plan_bytes_of_shard(plan->arena), plan->scratch_bytes);
    if (cornu__plan_shards(plan) > 1)
        fprintf(to, "%d shards; of the values %zu bytes on each, %zu on the worker that runs it\n",
                cornu__plan_shards(plan), plan->arena.shard, plan->arena.worker);
    for (int i = 0; i < plan->step_count; i++) {
        const CornuStep *step = &plan->steps[i];
        fprintf(to, "%4d%s %s%s", i, step->varies ? " *" : "", step->waits ? "waits, " : "",
                cornu__plan_kind_name(plan, step));
        if (step->op >= 0)
            fprintf(to, " %s", cornu_op_name(plan->program->ops[step->op].id));
        if (step->pool >= 0)
            fprintf(to, " with %s", cornu_op_name(plan->program->ops[step->pool].id));
        if (step->group) cornu__group_print(step->group, to);
        if (step->has_bias) fprintf(to, " + bias");
        if (step->has_gate) fprintf(to, " + step + multiply");
        if (step->epilogue.activation != CORNU_OP_COUNT)
            fprintf(to, " + %s", cornu_op_name(step->epilogue.activation));
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
        if (step->nested) cornu__nested_print(step->nested, to);
    }
}

void cornu__plan_free(CornuPlan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        cornu__group_free(plan->steps[i].group);
        cornu__nested_free(plan->steps[i].nested);
        cornu__release(plan->steps[i].ops);
        cornu__release(plan->steps[i].types);
    }
    cornu__release(plan->steps);
    cornu__release(plan->operands);
    cornu__release(plan->types);
    cornu__release(plan->places);
    cornu__release(plan->varies);
    cornu__release(plan->joined);
    cornu_program_free(plan->program);
}
