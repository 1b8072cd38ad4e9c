/*
 * Where values lie. A result that is an output is made in its memory; one that replaces an input is
 * made there by the group that reads this input last. The others share scratch: in order of
 * their size each takes the first place that no value has which is needed at the same time.
 */
#include <stdlib.h>
#include <string.h>

#include "source_internal.h"

static void touch(CornuCSection *s, CornuValue root, int unit)
{
    CornuCPlace *place = &s->places[root];
    place->stored = true;
    if (place->made < 0 || unit < place->made) place->made = unit;
    if (unit > place->last) place->last = unit;
}

static bool is_member(const CornuCSection *s, const CornuCPart *part, int op)
{
    for (int i = 0; i < part->count; i++)
        if (op >= 0 && s->members[part->first + i] == op) return true;
    return false;
}

static void touch_part(CornuCSection *s, const CornuCPart *part)
{
    if (part->kind == CORNU_C_COPY) {
        touch(s, part->value, part->unit);
        if (!part->from.literal) touch(s, part->from.root, part->unit);
        return;
    }
    for (int i = 0; i < part->count; i++) {
        const CornuProgramOp *op = &s->program->ops[s->members[part->first + i]];
        const CornuValue     *in = cornu_program_operands(s->program, op);
        for (int k = 0; k < op->in_count; k++) {
            const CornuCView *view = &s->views[in[k]];
            if (view->literal) continue;
            const bool within = part->kind == CORNU_C_GROUP && view->root < s->program->value_count
                                && is_member(s, part, s->program->values[view->root].op);
            if (!within) touch(s, view->root, part->unit);
        }
        for (int k = 0; part->kind == CORNU_C_OP && k < op->out_count; k++)
            if (!(*cornu__c_table[op->id])->skips ||
                cornu__c_is_read(s->program, op->out_first + k))
                touch(s, op->out_first + k, part->unit);
    }
    if (part->body) touch(s, part->value, part->unit);
}

/* A group makes its results in the unit that it is in, whether they are stored or not. */
static void begin_lives(CornuCSection *s)
{
    for (int i = 0; i < s->part_count; i++) {
        const CornuCPart *part = &s->parts[i];
        for (int k = 0; k < part->count && part->kind == CORNU_C_GROUP; k++) {
            CornuCPlace *place = &s->places[s->program->ops[s->members[part->first + k]].out_first];
            if (place->stored && part->unit < place->made) place->made = part->unit;
        }
    }
}

/* The part that makes a value, -1: none. */
static int maker_of(const CornuCSection *s, CornuValue root)
{
    for (int i = 0; i < s->part_count; i++) {
        const CornuCPart *part = &s->parts[i];
        if (part->kind == CORNU_C_COPY ? part->value == root
                                       : is_member(s, part, s->program->values[root].op))
            return i;
    }
    return -1;
}

/* Whether nothing but this part, and in it no element at another place, reads the input from the
 * part on: it may be overwritten there. */
static bool reads_last(const CornuCSection *s, int maker, CornuValue input, CornuShape shape)
{
    for (int i = 0; i < s->part_count; i++) {
        const CornuCPart *part = &s->parts[i];
        const bool        here = i == maker, before = part->unit < s->parts[maker].unit;
        if (before) continue;
        if (part->kind == CORNU_C_COPY && !part->from.literal && part->from.root == input)
            return false;
        for (int k = 0; k < part->count; k++) {
            const CornuProgramOp *op = &s->program->ops[s->members[part->first + k]];
            for (int j = 0; j < op->in_count; j++) {
                const CornuCView *view = &s->views[cornu_program_operands(s->program, op)[j]];
                if (view->literal || view->root != input) continue;
                if (!here && i > maker) return false;
                if (here && (view->offset || !cornu__c_is_dense(view, shape))) return false;
            }
        }
    }
    return true;
}

/* Leaves out the copy of output i, whose value is made where the output is to be. */
static void drop_copy(CornuCSection *s, int i)
{
    CornuCPart *copy = &s->parts[s->part_count - s->program->output_count + i];
    copy->from = (CornuCView){ .root = CORNU_NO_VALUE, .literal = true };
    copy->value = CORNU_NO_VALUE;
}

static void place_output(CornuCSection *s, int i)
{
    const CornuProgramOutput *output = &s->program->outputs[i];
    const CornuCView         *view = &s->views[output->value];
    const CornuShape          shape = s->types[output->value].shape;
    if (view->literal || view->offset || !cornu__c_is_dense(view, shape)) return;
    const CornuValue root = view->root;
    CornuCPlace     *place = &s->places[root];
    if (root >= s->program->value_count) return;
    if (s->program->values[root].op < 0) {
        if (output->alias >= 0 && s->program->inputs[output->alias] == root) drop_copy(s, i);
        return;
    }
    if (place->given || place->into >= 0 ||
        !cornu_shape_equal(s->types[root].shape, shape) ||
        cornu_type_bytes(s->types[root]) != cornu_type_bytes(s->types[output->value]))
        return;
    if (output->alias < 0) {
        place->given = true;
        snprintf(place->at, sizeof place->at, "%s", s->how->out[i]);
        drop_copy(s, i);
        return;
    }
    const int        maker = maker_of(s, root);
    const CornuValue input = s->program->inputs[output->alias];
    if (maker < 0 || s->parts[maker].kind != CORNU_C_GROUP || s->places[input].into >= 0 ||
        !reads_last(s, maker, input, shape))
        return;
    place->into = output->alias;
    s->places[input].into = output->alias;
    drop_copy(s, i);
}

/* ---- Scratch ---- */

static int larger_first(const void *a, const void *b)
{
    const CornuCLife *x = *(CornuCLife *const *)a, *y = *(CornuCLife *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

/* The first place that is free while the value is needed: behind each of those before in turn. */
static void place_life(CornuCLife *const *lives, int n)
{
    CornuCLife *own = lives[n];
    bool        moved = true;
    for (own->offset = 0; moved;) {
        moved = false;
        for (int i = 0; i < n; i++) {
            const CornuCLife *other = lives[i];
            if (own->first > other->last || other->first > own->last ||
                own->offset >= other->offset + other->bytes ||
                other->offset >= own->offset + own->bytes)
                continue;
            own->offset = other->offset + other->bytes;
            moved = true;
        }
    }
}

CornuStatus cornu__c_place(CornuCLife *lives, int count, size_t *scratch)
{
    CornuCLife **sorted = cornu__allocate((size_t)count + 1, sizeof *sorted);
    if (!sorted) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        const size_t over = lives[i].bytes % CORNU_C_ALIGNMENT;
        if (over) lives[i].bytes += CORNU_C_ALIGNMENT - over;
        sorted[i] = &lives[i];
    }
    qsort(sorted, (size_t)count, sizeof *sorted, larger_first);
    for (int i = 0; i < count; i++) {
        place_life(sorted, i);
        if (sorted[i]->offset + sorted[i]->bytes > *scratch)
            *scratch = sorted[i]->offset + sorted[i]->bytes;
    }
    cornu__release(sorted);
    return CORNU_OK;
}

static bool in_scratch(const CornuCSection *s, CornuValue value)
{
    const CornuCPlace *place = &s->places[value];
    return place->stored && !place->given && place->into < 0;
}

static CornuStatus place_scratch(CornuCSection *s)
{
    CornuCLife *lives = cornu__allocate((size_t)s->value_count + 1, sizeof *lives);
    int         count = 0;
    if (!lives) return CORNU_ERR_MEMORY;
    for (CornuValue v = 0; v < s->value_count; v++)
        if (in_scratch(s, v))
            lives[count++] = (CornuCLife){ s->places[v].made, s->places[v].last,
                                           cornu_type_bytes(s->types[v]), 0 };
    const CornuStatus status = cornu__c_place(lives, count, &s->scratch);
    count = 0;
    for (CornuValue v = 0; v < s->value_count && !status; v++)
        if (in_scratch(s, v))
            snprintf(s->places[v].at, sizeof s->places[v].at, "(%s *)(void *)(s + %zu)",
                     cornu__c_type(s->types[v].dtype), lives[count++].offset);
    cornu__release(lives);
    return status;
}

CornuStatus cornu__c_memory(CornuCSection *s)
{
    const CornuProgram *p = s->program;
    for (int i = 0; i < p->output_count; i++) place_output(s, i);
    for (int i = 0; i < s->part_count; i++)
        if (s->parts[i].kind != CORNU_C_COPY || s->parts[i].value != CORNU_NO_VALUE)
            touch_part(s, &s->parts[i]);
    for (CornuValue v = 0; v < p->value_count; v++)   /* what is made in place is stored, too */
        if (s->places[v].given || (s->places[v].into >= 0 && p->values[v].op >= 0)) {
            const int maker = maker_of(s, v);
            if (maker >= 0) touch(s, v, s->parts[maker].unit);
        }
    begin_lives(s);
    for (int i = 0; i < p->input_count; i++) {
        s->places[p->inputs[i]].given = true;
        snprintf(s->places[p->inputs[i]].at, sizeof s->places->at, "%s", s->how->in[i]);
    }
    for (int i = 0; i < p->output_count; i++) {
        CornuCPlace *place = &s->places[p->value_count + i];
        place->given = true;
        snprintf(place->at, sizeof place->at, "%s", p->outputs[i].alias < 0
                     ? s->how->out[i] : s->how->in[p->outputs[i].alias]);
    }
    return place_scratch(s);
}
