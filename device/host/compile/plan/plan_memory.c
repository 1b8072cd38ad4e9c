/*
 * plan_memory: the order of the steps (plan_order.c), and a place in memory for every value:
 * outputs first (plan_outputs.c), then the others (plan_arena.c).
 */
#include "../passes.h"
#include "plan_internal.h"

/* Parts of other values' memory are where their whole is. */
static void place_parts(CornuPlan *plan)
{
    const int first = cornu__plan_own(plan).first;
    for (int i = 0; i < plan->program->value_count; i++) {
        const CornuPart part = cornu__plan_part(plan, i);
        if (part.whole == i) continue;
        plan->places[i] = plan->places[part.whole];
        plan->places[i].offset += part.offset + (size_t)first * part.stride;
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
    if (status == CORNU_OK) status = cornu__plan_late(&p);
    if (status == CORNU_OK) status = cornu__plan_order(&p);
    if (status == CORNU_OK) status = cornu__plan_find_waits(plan);
    if (status == CORNU_OK) status = cornu__plan_find_fixed(plan);
    if (status == CORNU_OK) status = cornu__plan_arena(plan, CORNU_FIXED, &plan->fixed);
    if (status == CORNU_OK) status = cornu__plan_arena(plan, CORNU_ARENA, &plan->arena);
    if (status == CORNU_OK) status = cornu__plan_arena(plan, CORNU_PACKED, &plan->packed);
    if (status == CORNU_OK) place_parts(plan);
    cornu__release(p.writer);
    cornu__release(p.head);
    cornu__release(p.edges);
    cornu__release(p.seen);
    cornu__release(p.left);
    cornu__release(p.readings);
    cornu__release(p.readers);
    cornu__release(p.parts);
    cornu__release(p.next_part);
    cornu__release(p.maker);
    return status;
}
