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
    CornuCPart *part = add_part(s, (CornuCPart){ .kind = CORNU_C_OP, .first = s->member_count,
                                                 .scope = op->scope });
    if (!part) return CORNU_ERR_MEMORY;
    CORNU__TRY(add_member(s, part, i));
    return op->id == CORNU_OP_SCAN ? cornu__c_scan_prepare(s, part, op) : CORNU_OK;
}

static const CornuCView *operand_of(const CornuCSection *s, const CornuProgramOp *op)
{
    return op->in_count ? &s->views[cornu_program_operands(s->program, op)[0]] : NULL;
}

/* A view that an op wants densely is copied where it is made, for all who read it. */
static CornuStatus add_seen(CornuCSection *s, const CornuProgramOp *op)
{
    CornuCView view;
    if (s->views[op->out_first].root != op->out_first) return CORNU_OK;
    (void)cornu__c_view(s->program, op, operand_of(s, op), &view);
    return add_part(s, (CornuCPart){ .kind = CORNU_C_COPY, .first = s->member_count,
                                     .value = op->out_first, .from = view, .scope = op->scope })
         ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus add_op(CornuCSection *s, int i)
{
    const CornuProgramOp *op = &s->program->ops[i];
    const CornuCRule     *rule = *cornu__c_table[op->id];
    if (rule == CORNU_C_SEEN) return add_seen(s, op);
    return rule->write ? add_other(s, i) : add_elementwise(s, i);
}

/* ---- Views ---- */

/* The value lies densely from now on; true if it did not, so that what was seen of it before is to
 * be seen again. */
static bool make_dense(CornuCSection *s, CornuValue value, bool *copied)
{
    if (cornu__c_is_dense(&s->views[value], s->types[value].shape)) return false;
    s->views[value] = cornu__c_dense(value, s->types[value].shape);
    return copied[value] = true;
}

/* The view of what the op makes; *again: a value is copied that was not before. */
static CornuStatus see(CornuCSection *s, const CornuProgramOp *op, bool *copied, bool *again)
{
    const CornuCRule *rule = *cornu__c_table[op->id];
    const CornuValue *in = cornu_program_operands(s->program, op);
    CornuCView       *view = &s->views[op->out_first];
    for (int k = 0; k < op->out_count; k++)
        view[k] = cornu__c_dense(op->out_first + k, s->types[op->out_first + k].shape);
    if (rule == CORNU_C_SEEN) {
        CornuCView seen;
        if (!cornu__c_view(s->program, op, operand_of(s, op), &seen)) {
            *again |= make_dense(s, in[0], copied);
            if (!cornu__c_view(s->program, op, operand_of(s, op), &seen))
                return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: no view of memory",
                                   cornu_program_op_name(op));
        }
        if (!copied[op->out_first]) *view = seen;
        return CORNU_OK;
    }
    for (int k = 0; k < op->in_count && rule->write; k++)
        if (s->views[in[k]].literal || !(k < 32 && rule->strided >> k & 1))
            *again |= make_dense(s, in[k], copied);
    return CORNU_OK;
}

/* Where all values are. What one op wants densely, the ops before it read densely, too. */
static CornuStatus see_all(CornuCSection *s)
{
    bool       *copied = cornu__allocate((size_t)s->program->value_count + 1, sizeof *copied);
    bool        again = copied != NULL;
    CornuStatus status = copied ? CORNU_OK : CORNU_ERR_MEMORY;
    while (again && !status) {
        again = false;
        for (int i = 0; i < s->program->input_count; i++) {
            const CornuValue value = s->program->inputs[i];
            s->views[value] = cornu__c_dense(value, s->types[value].shape);
        }
        for (int i = 0; i < s->program->op_count && !status; i++)
            status = see(s, &s->program->ops[i], copied, &again);
    }
    cornu__release(copied);
    return status;
}

/* ---- Outputs ---- */

/* Whether an output is written into this input. */
static bool is_replaced(const CornuCSection *s, CornuValue input)
{
    const CornuProgram *p = s->program;
    if (input < 0 || input >= p->value_count || p->values[input].op >= 0) return false;
    for (int i = 0; i < p->output_count; i++)
        if (p->outputs[i].alias == p->values[input].index) return true;
    return false;
}

static CornuStatus add_copy(CornuCSection *s, CornuValue to, const CornuCView *from)
{
    return add_part(s, (CornuCPart){ .kind = CORNU_C_COPY, .first = s->member_count, .value = to,
                                     .from = *from, .scope = "" }) ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* A copy into each output's memory; before all of them one into other memory of what is of an input
 * that an output replaces. */
static CornuStatus add_outputs(CornuCSection *s)
{
    const CornuProgram *p = s->program;
    CornuCView         *from = cornu__allocate((size_t)p->output_count + 1, sizeof *from);
    CornuStatus         status = from ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; i < p->output_count && !status; i++) {
        const CornuValue value = p->outputs[i].value;
        const int        alias = p->outputs[i].alias;
        CornuValue       copy;
        from[i] = s->views[value];
        if (from[i].literal || !is_replaced(s, from[i].root)) continue;
        if (alias >= 0 && p->inputs[alias] == from[i].root && value == from[i].root) continue;
        status = cornu__c_extra(s, s->types[value], &copy);
        if (!status) status = add_copy(s, copy, &from[i]);
        if (!status) from[i] = cornu__c_dense(copy, s->types[value].shape);
    }
    for (int i = 0; i < p->output_count && !status; i++)
        status = add_copy(s, p->value_count + i, &from[i]);
    cornu__release(from);
    return status;
}

CornuStatus cornu__c_parts(CornuCSection *s)
{
    CORNU__TRY(see_all(s));
    for (int i = 0; i < s->program->op_count; i++) CORNU__TRY(add_op(s, i));
    CORNU__TRY(add_outputs(s));
    for (int i = 0; i < s->part_count; i++) {
        const bool same = i > 0 && !strcmp(s->parts[i].scope, s->parts[i - 1].scope);
        s->parts[i].unit = same ? s->unit_count - 1 : s->unit_count++;
    }
    return CORNU_OK;
}
