/* Which values are in memory, and ops that are computed later so that fewer are. */
#include "fuse_internal.h"

/* Notes that `value` is read from memory: if it is a view or broadcast its operand is, too. */
static void need(CornuFuser *f, CornuValue value)
{
    for (;;) {
        const CornuProgramValue *made = &f->program->values[value];
        if (made->op < 0 || f->nodes[made->op].pinned[made->index]) return;
        CornuNode *node = &f->nodes[made->op];
        node->in_memory[made->index] = node->pinned[made->index] = true;
        if (node->kind != CORNU_NODE_LOOKED_THROUGH) return;
        CornuPart part;
        if (cornu__is_view(f->program, &f->program->ops[made->op], &part)) {
            value = part.whole;
            continue;
        }
        node->written_out = true;
        CornuAccess access;
        value = cornu__group_source(f->program, value, &access);
        const int maker = f->program->values[value].op;
        if (maker >= 0 && f->program->ops[maker].id == CORNU_OP_CONSTANT) return;
    }
}

/* Notes what a group's op reads from memory. */
static void need_operand(CornuFuser *f, int op, int k)
{
    CornuAccess access;
    CornuValue  value = cornu__op_operands(f, op)[k];
    const bool  in_memory = cornu__group_reads_memory(&f->program->ops[op], k);
    if (!in_memory) value = cornu__group_source(f->program, value, &access);
    int maker = f->program->values[value].op, direct = cornu__register_maker(f, op, k);
    if (direct >= 0) {   /* in a register, once the two are in one group */
        if (f->units.of[direct] != f->units.of[op])
            f->nodes[direct].in_memory[f->program->values[value].index] = true;
        return;
    }
    if (maker >= 0 && f->program->ops[maker].id == CORNU_OP_CONSTANT && !in_memory) return;
    need(f, value);
}

static void find_needs(CornuFuser *f)
{
    for (int i = 0; i < f->program->output_count; i++)
        need(f, f->program->outputs[i].value);
    for (int i = 0; i < f->program->op_count; i++) {
        if (f->nodes[i].part != CORNU_EPILOGUE_OPERANDS) need(f, f->nodes[i].part_value);
        for (int k = 0; k < f->program->ops[i].in_count; k++) {
            if (f->nodes[i].kind == CORNU_NODE_GROUP) need_operand(f, i, k);
            /* Of a joined gradient of a pool only the operands are read. */
            int  maker = f->program->values[cornu__op_operands(f, i)[k]].op;
            if (maker >= 0 && f->nodes[maker].kind == CORNU_NODE_JOINED) continue;
            bool absorbed = f->nodes[i].kind == CORNU_NODE_KERNEL && f->units.of[i] != i;
            if ((f->nodes[i].kind == CORNU_NODE_KERNEL && !absorbed) ||
                f->nodes[i].kind == CORNU_NODE_ALONE || f->nodes[i].kind == CORNU_NODE_JOINED)
                need(f, cornu__op_operands(f, i)[k]);
        }
    }
}

/* ---- Delayed ops ---- */

/* Lists the ops that would read another's result in a register. */
static void find_readers(CornuFuser *f)
{
    for (int i = 0; i < f->program->op_count; i++) f->reader[i] = -1;
    for (int i = 0; i < f->program->op_count; i++)
        for (int k = 0; k < f->program->ops[i].in_count; k++) {
            const int  operand = f->program->ops[i].in_first + k;
            const bool joins = f->nodes[i].kind == CORNU_NODE_GROUP;
            const int  maker = joins ? cornu__register_maker(f, i, k) : -1;
            f->units.reader[operand] = i;
            if (maker < 0) continue;
            f->reader_before[operand] = f->reader[maker];
            f->reader[maker] = operand;
        }
}

/* The one unit that reads the op's result, all in registers if the op were part of it; -1
 * if there is no such unit or it is the op's own. */
static int only_reader(const CornuFuser *f, int op)
{
    int reader = -1;
    for (int k = f->reader[op]; k >= 0; k = f->reader_before[k]) {
        const int unit = f->units.of[f->units.reader[k]];
        if (reader >= 0 && reader != unit) return -1;
        reader = unit;
    }
    return reader == f->units.of[op] ? -1 : reader;
}

/* Whether the op can be computed later from memory at no more traffic than its result
 * costs: from one operand that is there anyway, and scalars. */
static bool is_cheap_to_delay(const CornuFuser *f, int op)
{
    const CornuProgramOp *p = &f->program->ops[op];
    int                   whole = 0;
    if (p->out_count != 1 || p->id == CORNU_OP_RANDOM_UNIFORM || p->id == CORNU_OP_IOTA)
        return false;
    size_t bytes = cornu_type_bytes(cornu_program_type(f->program, p->out_first));
    for (int k = 0; k < p->in_count; k++) {
        CornuAccess access;
        CornuValue  source = cornu__op_source(f, op, k, &access);
        const CornuProgramValue *made = &f->program->values[source];
        if (access.rank == 0) continue;
        bool there = made->op >= 0 && f->nodes[made->op].in_memory[made->index];
        if (!there || cornu_type_bytes(made->type) > 2 * bytes) return false;
        whole++;
    }
    return whole == 1;
}

/* Elements of the rows along which the op's result is read by its last reader, 1: as it is. */
static int64_t row_of_reader(const CornuFuser *f, int op)
{
    const int operand = f->reader[op], reader = f->units.reader[operand];
    return cornu__operand_row(f, reader, operand - f->program->ops[reader].in_first);
}

/* The op becomes a unit of its own. */
static void leave_unit(CornuFuser *f, int op)
{
    const int         next = f->units.next[op];
    const CornuExtent rest = f->extents[f->units.of[op]];
    cornu__units_leave(&f->units, op);
    if (next >= 0) f->extents[f->units.of[next]] = rest;
    f->extents[op] = cornu__op_extent(f, op);
}

/*
 * Moves ops to the group that alone needs them. The slope of an activation is recorded
 * with the backward pass but could join the forward group, which would write it to memory
 * for much later; from the activation, which is in memory, it costs nothing in the
 * backward group.
 */
static void delay_ops(CornuFuser *f)
{
    find_readers(f);
    for (int i = f->program->op_count - 1; i >= 0; i--) {
        CornuNode *node = &f->nodes[i];
        if (node->kind != CORNU_NODE_GROUP || !node->in_memory[0] || node->pinned[0]) continue;
        int         reader = only_reader(f, i);
        CornuExtent both;
        if (reader < 0 || cornu__unit_size(&f->units, reader) >= CORNU_GROUP_OPS ||
            !cornu__extents_fit(f->extents[reader], cornu__op_extent(f, i), row_of_reader(f, i),
                                &both) ||
            !is_cheap_to_delay(f, i))
            continue;
        leave_unit(f, i);
        cornu__units_merge(&f->units, i, reader);
        f->extents[f->units.of[i]] = both;
        node->in_memory[0] = false;
    }
}

void cornu__fuse_memory(CornuFuser *f)
{
    find_needs(f);
    if (cornu__pass_runs(CORNU_PASS_DELAY)) delay_ops(f);
}
