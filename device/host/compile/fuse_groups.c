/* Which ops are joined into groups. group.c makes the groups themselves. */
#include "fuse_internal.h"

enum { NEAR = 40 };   /* ops between two that read one value, of the gradient of one layer */

static bool same_shards(const CornuFuser *f, CornuValue a, CornuValue b)
{
    return !f->program->values[a].varies == !f->program->values[b].varies;
}

/* Whether rows looked up by op `op` are read, as they are, by one elementwise op alone. */
static bool feeds_group(const CornuFuser *f, int op)
{
    const CornuValue rows = f->program->ops[op].out_first;
    while (f->nodes[op].uses == 1 && f->nodes[op].user >= 0) {
        op = f->nodes[op].user;
        const CornuProgramOp *user = &f->program->ops[op];
        if (f->nodes[op].kind == CORNU_NODE_GROUP)
            return cornu__group_count(f->program, user) == cornu__value_count(f, rows) &&
                   !cornu__group_reads_memory(user, 0) && same_shards(f, user->out_first, rows);
        if (user->id != CORNU_OP_RESHAPE) return false;
    }
    return false;
}

/* Whether the rows by which op `op` replaces others are made by an elementwise op. */
static bool ends_group(const CornuFuser *f, int op)
{
    CornuAccess      access;
    const CornuValue rows = cornu__op_source(f, op, 2, &access);
    const int        maker = f->program->values[rows].op;
    return maker >= 0 && f->nodes[maker].kind == CORNU_NODE_GROUP &&
           cornu__value_count(f, rows) == cornu__group_count(f->program, &f->program->ops[op]) &&
           same_shards(f, f->program->ops[op].out_first, rows);
}

/* Lookups and replacements of rows that elementwise ops are next to join their groups: a block of
 * rows is read where it is used, and written where it is made. */
static void find_rows(CornuFuser *f)
{
    for (int i = 0; i < f->program->op_count; i++) {
        const CornuOpId id = cornu__kernel_id(f, i);
        if ((id == CORNU_OP_GATHER && feeds_group(f, i)) ||
            (id == CORNU_OP_SCATTER_ROWS && ends_group(f, i)))
            f->nodes[i].kind = CORNU_NODE_GROUP;
    }
}

int64_t cornu__operand_row(const CornuFuser *f, int op, int k)
{
    CornuAccess      access;
    const CornuValue source = cornu__op_source(f, op, k, &access);
    return cornu__pass_runs(CORNU_PASS_ROW_SUMS)
         ? cornu__group_repeats(cornu_program_type(f->program, source), &access) : 1;
}

int cornu__register_maker(const CornuFuser *f, int op, int k)
{
    if (cornu__group_reads_memory(&f->program->ops[op], k)) return -1;
    CornuAccess access;
    CornuValue  source = cornu__op_source(f, op, k, &access);
    int         maker = f->program->values[source].op;
    if (maker < 0 || f->nodes[maker].kind != CORNU_NODE_GROUP) return -1;
    if (f->program->ops[maker].id == CORNU_OP_SCATTER_ROWS) return -1;   /* a table, in memory */
    /* A value that all shards share is computed once, not by each in its own group. */
    if (!same_shards(f, source, f->program->ops[op].out_first)) return -1;
    return cornu__operand_row(f, op, k) * cornu__value_count(f, source) ==
                   cornu__group_count(f->program, &f->program->ops[op]) ? maker : -1;
}

CornuExtent cornu__op_extent(const CornuFuser *f, int op)
{
    const CornuProgramOp *o = &f->program->ops[op];
    return (CornuExtent){ cornu__group_count(f->program, o), cornu__group_reduces(f->program, o) };
}

bool cornu__extents_fit(CornuExtent a, CornuExtent b, int64_t row, CornuExtent *both)
{
    const CornuExtent more = a.count > b.count ? a : b, less = a.count > b.count ? b : a;
    *both = (CornuExtent){ more.count, larger(row, larger(a.row, b.row)) };
    const bool same = (a.row == 1 || a.row == both->row) && (b.row == 1 || b.row == both->row) &&
                      (row == 1 || row == both->row);
    return same && (less.count == more.count ||
                    (less.row == 1 && less.count * both->row == more.count));
}

/* Joins unit `other` with unit `own`, which reads it along rows of so many elements, or is after
 * it, if one group can do both. */
static void join_units(CornuFuser *f, int own, int other, int64_t row)
{
    CornuExtent both;
    if (cornu__unit_size(&f->units, other) + cornu__unit_size(&f->units, own) > CORNU_GROUP_OPS ||
        !cornu__extents_fit(f->extents[own], f->extents[other], row, &both) ||
        !cornu__units_join(&f->units, own, other))
        return;
    f->extents[f->units.of[own]] = both;
}

/* ---- Sums of rows ---- */

/* The op that makes operand k of op `op`, of sums of rows; -1: operand k is not made of such. */
static int summed_rows(const CornuFuser *f, int op, int k)
{
    CornuAccess      access;
    const CornuValue source = cornu__op_source(f, op, k, &access);
    const int        maker = f->program->values[source].op;
    return maker >= 0 && f->nodes[maker].row > 1 ? maker : -1;
}

/* Notes what is made of sums of rows, and what of that op `op` reads along these rows. */
static void note_rows(CornuFuser *f, int op)
{
    f->nodes[op].row = 1;
    f->flags[op] = false;
    if (f->nodes[op].kind == CORNU_NODE_KERNEL && f->units.next[op] < 0)
        f->nodes[op].row = cornu__group_reduces(f->program, &f->program->ops[op]);
    if (f->nodes[op].kind != CORNU_NODE_GROUP) return;
    for (int k = 0; k < f->program->ops[op].in_count; k++) {
        const int     maker = summed_rows(f, op, k);
        const int64_t row = cornu__operand_row(f, op, k);
        if (maker < 0) continue;
        if (row == f->nodes[maker].row) f->flags[maker] = true;
        else if (row == 1) f->nodes[op].row = f->nodes[maker].row;
    }
}

/* Sums and maxima of rows that elementwise ops make, or read along these rows, themselves or what
 * is made of them, are to join their groups. */
static void find_row_sums(CornuFuser *f)
{
    const int count = f->program->op_count;
    for (int i = 0; i < count; i++) note_rows(f, i);
    for (int i = count - 1; i >= 0; i--) {
        CornuNode *node = &f->nodes[i];
        for (int k = 0; k < f->program->ops[i].in_count && node->row > 1 && f->flags[i]; k++) {
            const int maker = summed_rows(f, i, k);
            if (maker >= 0) f->flags[maker] = true;
        }
        if (node->row > 1 && node->kind == CORNU_NODE_KERNEL &&
            (f->flags[i] || cornu__register_maker(f, i, 0) >= 0))
            node->kind = CORNU_NODE_GROUP;
    }
}

/* Orders the units that there are, and notes what ops would read in registers. */
static void order_units(CornuFuser *f)
{
    CornuUnits *units = &f->units;
    for (int i = 0; i < f->program->op_count; i++) {
        const CornuProgramOp *op = &f->program->ops[i];
        f->flags[i] = f->nodes[i].kind == CORNU_NODE_LOOKED_THROUGH;
        for (int k = 0; k < op->in_count; k++)
            units->direct[op->in_first + k] =
                f->nodes[i].kind == CORNU_NODE_GROUP ? cornu__register_maker(f, i, k) : -1;
    }
    cornu__units_order(units, f->flags);
}

/* Whether op `op` and the maker of operand k have as many elements; else one is made for a row, or
 * read along it. */
static bool goes_over_same(const CornuFuser *f, int op, int k)
{
    const int maker = f->units.direct[f->program->ops[op].in_first + k];
    return cornu__op_extent(f, maker).count == cornu__op_extent(f, op).count;
}

/* Joins the groups of two ops that read one value from memory. */
static void join_readers(CornuFuser *f, int op, int before)
{
    const CornuUnits *units = &f->units;
    const int         own = units->of[op], other = units->of[before];
    if (own == other || op - before > NEAR ||
        !same_shards(f, f->program->ops[op].out_first, f->program->ops[before].out_first))
        return;
    if (units->rank[own] < units->rank[other]) join_units(f, other, own, 1);
    else join_units(f, own, other, 1);
}

/* Whether op `op` of a group reads operand k, in memory as `value`, element by element. */
static bool reads_elements(const CornuFuser *f, int op, int k, CornuValue *value)
{
    CornuAccess access;
    *value = cornu__op_source(f, op, k, &access);
    const int maker = f->units.direct[f->program->ops[op].in_first + k];
    return !cornu__group_reads_memory(&f->program->ops[op], k) &&
           cornu__access_is_whole(&access) &&
           (maker < 0 || f->units.of[maker] != f->units.of[op]);
}

/* Joins groups that read the same from memory element by element, as the gradients of an operand
 * and of a scale do. */
static void share_reads(CornuFuser *f)
{
    int *reader = f->slot_of;   /* by value: the last op that reads it so */
    for (int i = 0; i < f->program->op_count; i++) {
        if (f->nodes[i].kind != CORNU_NODE_GROUP) continue;
        for (int k = 0; k < f->program->ops[i].in_count; k++) {
            CornuValue value;
            if (!reads_elements(f, i, k, &value)) continue;
            if (reader[value] >= 0) join_readers(f, i, reader[value]);
            reader[value] = i;
        }
    }
    for (int i = 0; i < f->program->value_count; i++) reader[i] = -1;
}

/* Joins ops with the makers of what they would read in registers: those that go over as many
 * elements, or the others. */
static void join_makers(CornuFuser *f, bool same)
{
    const CornuUnits *units = &f->units;
    for (int i = 0; i < f->program->op_count; i++) {
        if (f->nodes[i].kind != CORNU_NODE_GROUP) continue;
        for (int k = 0; k < f->program->ops[i].in_count; k++) {
            const int maker = units->direct[f->program->ops[i].in_first + k];
            if (maker >= 0 && units->of[maker] != units->of[i] && goes_over_same(f, i, k) == same)
                join_units(f, units->of[i], units->of[maker], cornu__operand_row(f, i, k));
        }
    }
}

/* First along what is made element by element, which saves traffic; then along what is made by row,
 * which hardly does. */
static void form_groups(CornuFuser *f)
{
    order_units(f);
    join_makers(f, true);
    join_makers(f, false);
    share_reads(f);
}

void cornu__fuse_groups(CornuFuser *f)
{
    const bool groups = cornu__pass_runs(CORNU_PASS_GROUP);
    if (groups && cornu__pass_runs(CORNU_PASS_ROWS)) find_rows(f);
    if (groups && cornu__pass_runs(CORNU_PASS_ROW_SUMS)) find_row_sums(f);
    for (int i = 0; i < f->program->op_count; i++) f->extents[i] = cornu__op_extent(f, i);
    if (groups) form_groups(f);
}
