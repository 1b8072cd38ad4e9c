/*
 * A program as parts: elementwise ops of one shape and one layer in one loop, copies of views that
 * an op wants densely in memory, the other ops each on its own. Parts of one layer that follow each
 * other are one function, a unit.
 */
#include <string.h>

#include "source_internal.h"

static CornuCPart *add_part(CornuCSection *s, CornuCPart part)
{
    if (cornu__reserve(&s->parts, &s->part_space, s->part_count, 1, sizeof *s->parts)) return NULL;
    s->parts[s->part_count] = part;
    return &s->parts[s->part_count++];
}

static CornuStatus add_member(CornuCSection *s, CornuCPart *part, int op)
{
    CORNU__TRY(cornu__reserve(&s->members, &s->member_space, s->member_count, 1,
                              sizeof *s->members));
    s->members[s->member_count++] = op;
    part->count++;
    return CORNU_OK;
}

/* The value lies densely from now on, copied if it is a view. */
static CornuStatus make_dense(CornuCSection *s, CornuValue value, const char *scope)
{
    CornuCView *view = &s->views[value];
    if (cornu__c_is_dense(view, s->types[value].shape)) return CORNU_OK;
    if (!add_part(s, (CornuCPart){ .kind = CORNU_C_COPY, .first = s->member_count, .value = value,
                                   .from = *view, .scope = scope }))
        return CORNU_ERR_MEMORY;
    *view = cornu__c_dense(value, s->types[value].shape);
    return CORNU_OK;
}

/* Whether the op can join a group: no operand is read at another place than it is made at. */
static bool joins(const CornuCSection *s, const CornuCPart *group, const CornuProgramOp *op)
{
    const CornuProgram   *p = s->program;
    const CornuProgramOp *first;
    if (!group || group->kind != CORNU_C_GROUP || strcmp(group->scope, op->scope)) return false;
    first = &p->ops[s->members[group->first]];
    if (!cornu_shape_equal(s->types[first->out_first].shape, s->types[op->out_first].shape))
        return false;
    for (int k = 0; k < op->in_count; k++) {
        const CornuCView *view = &s->views[cornu_program_operands(p, op)[k]];
        if (view->literal) continue;
        for (int i = 0; i < group->count; i++)
            if (p->ops[s->members[group->first + i]].out_first == view->root &&
                (view->offset || !cornu__c_is_dense(view, s->types[op->out_first].shape)))
                return false;
    }
    return true;
}

static CornuStatus add_elementwise(CornuCSection *s, int i)
{
    const CornuProgramOp *op = &s->program->ops[i];
    CornuCPart           *last = s->part_count ? &s->parts[s->part_count - 1] : NULL;
    if (!joins(s, last, op))
        last = add_part(s, (CornuCPart){ .kind = CORNU_C_GROUP, .first = s->member_count,
                                         .scope = op->scope });
    return last ? add_member(s, last, i) : CORNU_ERR_MEMORY;
}

static CornuStatus add_other(CornuCSection *s, int i)
{
    const CornuProgramOp *op = &s->program->ops[i];
    const CornuValue     *in = cornu_program_operands(s->program, op);
    const unsigned        strided = (*cornu__c_table[op->id])->strided;
    for (int k = 0; k < op->in_count; k++)
        if (s->views[in[k]].literal || !(k < 32 && strided >> k & 1))
            CORNU__TRY(make_dense(s, in[k], op->scope));
    CornuCPart *part = add_part(s, (CornuCPart){ .kind = CORNU_C_OP, .first = s->member_count,
                                                 .scope = op->scope });
    if (!part) return CORNU_ERR_MEMORY;
    CORNU__TRY(add_member(s, part, i));
    return op->id == CORNU_OP_SCAN ? cornu__c_scan_prepare(s, part, op) : CORNU_OK;
}

static CornuStatus add_op(CornuCSection *s, int i)
{
    const CornuProgramOp *op = &s->program->ops[i];
    const CornuCRule     *rule = *cornu__c_table[op->id];
    const CornuCView     *x = op->in_count ? &s->views[cornu_program_operands(s->program, op)[0]]
                                           : NULL;
    CornuCView           *view = &s->views[op->out_first];
    if (rule == CORNU_C_SEEN) {
        if (cornu__c_view(s->program, op, x, view)) return CORNU_OK;
        const CornuValue in = cornu_program_operands(s->program, op)[0];
        CORNU__TRY(make_dense(s, in, op->scope));
        return cornu__c_view(s->program, op, &s->views[in], view)
             ? CORNU_OK : cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: no view of memory",
                                      cornu_program_op_name(op));
    }
    for (int k = 0; k < op->out_count; k++)
        view[k] = cornu__c_dense(op->out_first + k, s->types[op->out_first + k].shape);
    return rule->write ? add_other(s, i) : add_elementwise(s, i);
}

/* Whether an output is written into this input. */
static bool is_replaced(const CornuCSection *s, CornuValue input)
{
    const CornuProgram *p = s->program;
    if (input < 0 || input >= p->value_count || p->values[input].op >= 0) return false;
    for (int i = 0; i < p->output_count; i++)
        if (p->outputs[i].alias == p->values[input].index) return true;
    return false;
}

/* A copy into an output's memory, or first into other memory what is of an input that an output
 * replaces. */
static CornuStatus add_outputs(CornuCSection *s)
{
    const CornuProgram *p = s->program;
    for (int i = 0; i < p->output_count; i++) {
        const CornuValue  value = p->outputs[i].value;
        const CornuCView *view = &s->views[value];
        const int         alias = p->outputs[i].alias;
        if (view->literal || !is_replaced(s, view->root)) continue;
        if (alias >= 0 && p->inputs[alias] == view->root && value == view->root) continue;
        if (!add_part(s, (CornuCPart){ .kind = CORNU_C_COPY, .first = s->member_count,
                                       .value = value, .from = *view, .scope = "" }))
            return CORNU_ERR_MEMORY;
        s->views[value] = cornu__c_dense(value, s->types[value].shape);
    }
    for (int i = 0; i < p->output_count; i++) {
        const CornuValue to = p->value_count + i;
        if (!add_part(s, (CornuCPart){ .kind = CORNU_C_COPY, .first = s->member_count, .value = to,
                                       .from = s->views[p->outputs[i].value], .scope = "" }))
            return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

CornuStatus cornu__c_parts(CornuCSection *s)
{
    for (int i = 0; i < s->program->input_count; i++) {
        const CornuValue value = s->program->inputs[i];
        s->views[value] = cornu__c_dense(value, s->types[value].shape);
    }
    for (int i = 0; i < s->program->op_count; i++) CORNU__TRY(add_op(s, i));
    CORNU__TRY(add_outputs(s));
    for (int i = 0; i < s->part_count; i++) {
        const bool same = i > 0 && !strcmp(s->parts[i].scope, s->parts[i - 1].scope);
        s->parts[i].unit = same ? s->unit_count - 1 : s->unit_count++;
    }
    return CORNU_OK;
}
