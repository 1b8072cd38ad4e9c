/*
 * fuse: turns ops into steps.
 *
 * First each convolution that only a max pooling reads is joined with it, and a convolution's
 * gradients with the pooling's gradient that they alone read; and a product with the sum over all
 * shards that alone reads it, if it has a kernel for that. Then each kernel that takes an
 * epilogue absorbs the bias and the activation after it, or the slope of a relu that multiplies its
 * result. Then elementwise ops with equal numbers of elements are joined into groups, along the
 * values between them, unless a path from one to the other leads through something outside, which
 * would have to run in the middle of the group. Lookups of rows that one group alone reads, and
 * replacements of rows that it makes, are part of it. What such groups would store for others, but
 * these can compute from no more, is computed twice (recompute.c). Ops that compute nothing
 * (reshape, broadcast, constant) get a step of their own only where a kernel needs their result in
 * memory.
 */
#include <string.h>

#include "../../memory_internal.h"
#include "passes.h"
#include "recompute.h"
#include "units.h"

/* In one group: its registers should stay in the first-level cache. */
enum { MOST_OPS = 40 };

typedef enum {
    NODE_LOOKED_THROUGH, NODE_KERNEL, NODE_JOINED, NODE_ALONE, NODE_GROUP
} NodeKind;

/* An op. */
typedef struct {
    NodeKind           kind;
    int                uses;      /* of its output 0, program outputs included */
    int                user;      /* the last op that uses output 0 */
    const CornuKernel *kernel;
    int                pool;      /* the pooling joined with a convolution, -1: none */
    bool               summed;    /* a product joined with its sum over the shards */
    bool               in_memory[CORNU_MAX_OUTPUTS]; /* outputs others read from memory */
    bool               pinned[CORNU_MAX_OUTPUTS];    /* and not only groups of as many elements */
    bool               written_out;    /* looked through, but needed in memory */
    bool               fixed;          /* depends on nothing that changes from run to run */
    CornuEpilogueOperand part;         /* if a kernel's epilogue does this op: which operand of an
                                          epilogue is that of the op; OPERANDS: it has none */
    CornuValue         part_value;
} Node;

typedef struct {
    CornuPlan          *plan;
    const CornuProgram *program;
    Node               *nodes;
    CornuUnits          units;
    bool               *flags;      /* by op: a list on the way */
    int                *slot_of;    /* see cornu__group_create */
    int                *packed;     /* by value: the last step that packs it, -1: none */
    int                *packed_before;   /* by step: the one before that, of the same value */
    int                *reader;     /* by op: the last operand that reads it in a register, */
    int                *reader_before;   /* by operand: and the one before; -1: none */
} Fuser;

static int64_t count_of(const Fuser *f, CornuValue value)
{
    return cornu_type_count(cornu_program_type(f->program, value));
}

static const CornuValue *operands_of(const Fuser *f, int op)
{
    return cornu_program_operands(f->program, &f->program->ops[op]);
}

/* Whether the value is the same in every run. */
static bool is_fixed(const Fuser *f, CornuValue value)
{
    const CornuProgramValue *v = &f->program->values[value];
    return v->op < 0 ? v->fixed : f->nodes[v->op].fixed;
}

static void classify(Fuser *f)
{
    const CornuProgram *program = f->program;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        Node                 *node = &f->nodes[i];
        CornuPart             part;
        node->user = node->pool = -1;
        node->part = CORNU_EPILOGUE_OPERANDS;
        if (op->id == CORNU_OP_CONSTANT || op->id == CORNU_OP_BROADCAST ||
            cornu__is_view(program, op, &part))
            node->kind = NODE_LOOKED_THROUGH;
        else if ((node->kernel = cornu__kernel_for(f->plan->host, program, op)))
            node->kind = NODE_KERNEL;
        else if (cornu__group_computes(f->plan->host->vectors, program, op))
            node->kind = NODE_GROUP;
        else
            node->kind = NODE_ALONE;
        node->fixed = true;
        for (int k = 0; k < op->in_count; k++) {
            const CornuProgramValue *in = &program->values[operands_of(f, i)[k]];
            node->fixed &= is_fixed(f, operands_of(f, i)[k]);
            if (in->op < 0 || in->index != 0) continue;
            f->nodes[in->op].uses++;
            f->nodes[in->op].user = i;
        }
    }
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramValue *out = &program->values[program->outputs[i].value];
        if (out->op >= 0 && out->index == 0) f->nodes[out->op].uses++;
    }
}

/* ---- Kernels joined with their neighbours ---- */

static void absorb(Fuser *f, int op, int last)
{
    cornu__units_append(&f->units, op, last);
    f->nodes[last].kind = NODE_KERNEL;
}

/* With `value` as that operand of the epilogue. */
static void absorb_part(Fuser *f, int op, int last, CornuEpilogueOperand part, CornuValue value)
{
    absorb(f, op, last);
    f->nodes[last].part = part;
    f->nodes[last].part_value = value;
}

static CornuOpId id_of(const Fuser *f, int op)
{
    return op >= 0 && f->nodes[op].kind == NODE_KERNEL ? f->program->ops[op].id
                                                       : CORNU_OP_COUNT;
}

/* The number of operand d_y if the op is a convolution's gradient with a kernel that makes d_y from
 * a pool's gradient; -1 otherwise. */
static int unpooled_operand(const Fuser *f, int op)
{
    const CornuOpId id = id_of(f, op);
    if (id != CORNU_OP_CONV2D_GRAD_INPUT && id != CORNU_OP_CONV2D_GRAD_FILTER) return -1;
    if (!cornu__pooled_kernel_for(f->plan->host, f->program, &f->program->ops[op], NULL)) return -1;
    return id == CORNU_OP_CONV2D_GRAD_FILTER;
}

/* How often the result of op `before` is read by gradients that could be joined with it. */
static int joining_reads(const Fuser *f, int before)
{
    int reads = 0;
    for (int i = before + 1; i <= f->nodes[before].user; i++) {
        const int k = unpooled_operand(f, i);
        reads += k >= 0 && f->program->values[operands_of(f, i)[k]].op == before;
    }
    return reads;
}

/* The pool's gradient that op `op` may be joined with, -1: none. */
static int pool_before(const Fuser *f, int op)
{
    const int k = unpooled_operand(f, op);
    const int before = k < 0 ? -1 : f->program->values[operands_of(f, op)[k]].op;
    if (before < 0 || f->program->ops[before].id != CORNU_OP_MAX_POOL2D_GRAD) return -1;
    const Node *node = &f->nodes[before];
    const bool  alone = node->kind == NODE_KERNEL && node->uses == joining_reads(f, before);
    return alone || node->kind == NODE_JOINED ? before : -1;
}

static int pool_after(const Fuser *f, int op)
{
    const Node *node = &f->nodes[op];
    return node->uses == 1 && id_of(f, node->user) == CORNU_OP_MAX_POOL2D ? node->user : -1;
}

/* Joins a convolution with the pool after it, or its gradient with the pool's gradient before it,
 * which each of the gradients makes again, where nothing else reads the value between. */
static void join_pool(Fuser *f, int op)
{
    const bool         after = id_of(f, op) == CORNU_OP_CONV2D;
    const int          pool = after ? pool_after(f, op) : pool_before(f, op);
    const CornuKernel *kernel = pool < 0 ? NULL
                              : cornu__pooled_kernel_for(f->plan->host, f->program,
                                                         &f->program->ops[op],
                                                         &f->program->ops[pool]);
    if (!kernel) return;
    if (after) absorb(f, op, pool);
    else f->nodes[pool].kind = NODE_JOINED;
    f->nodes[op].pool = pool;
    f->nodes[op].kernel = kernel;
}

/* Joins a product with its sum over all shards. */
static void join_sum(Fuser *f, int op)
{
    const int          user = f->nodes[op].user;
    const CornuValue   value = f->program->ops[op].out_first;
    const CornuKernel *kernel = NULL;
    if (f->nodes[op].uses == 1 && id_of(f, user) == CORNU_OP_ALL_REDUCE &&
        f->program->ops[user].attributes.shards.groups.count == 0)
        kernel = cornu__summed_kernel_for(f->plan->host, f->program, value);
    if (!kernel) return;
    absorb(f, op, user);
    f->nodes[op].kernel = kernel;
    f->nodes[op].summed = true;
}

/* Whether `value` is a vector along the last axis of `type`, broadcast; `bias` is then the vector.
 * Of one row, too, where a sum of two rows is not a bias: more rows would add it in another
 * order. */
static bool is_bias(const Fuser *f, CornuValue value, CornuType type, CornuValue *bias)
{
    CornuAccess access;
    int64_t     last = type.shape.rank ? type.shape.extent[type.shape.rank - 1] : 1;
    *bias = cornu__group_source(f->program, value, &access);
    if (access.rank == 1 && access.stride[0] == 1 && access.extent[0] == last &&
        cornu_type_count(type) == last)
        return cornu_program_type(f->program, *bias).shape.rank == 1 && count_of(f, *bias) == last;
    return access.rank == 2 && access.stride[0] == 0 && access.stride[1] == 1 &&
           access.extent[1] == last && count_of(f, *bias) == last;
}

/* The op that alone reads result 0 of op `op`, through reshapes that keep the last axis, and as
 * which value it does; -1: there is none. */
static int next_after(const Fuser *f, int op, CornuValue *read)
{
    const CornuShape shape = cornu_program_type(f->program, f->program->ops[op].out_first).shape;
    for (;;) {
        *read = f->program->ops[op].out_first;
        if (f->nodes[op].uses != 1 || f->nodes[op].user < 0) return -1;
        op = f->nodes[op].user;
        if (f->program->ops[op].id != CORNU_OP_RESHAPE) return op;
        const CornuShape next =
            cornu_program_type(f->program, f->program->ops[op].out_first).shape;
        if (shape.rank < 1 || next.rank < 1 ||
            shape.extent[shape.rank - 1] != next.extent[next.rank - 1])
            return -1;
    }
}

/* Whether `value` has the elements of a result of `type`, in its order, and is or can be in memory:
 * `term` is then what is read. */
static bool is_term(const Fuser *f, CornuValue value, CornuType type, CornuValue *term)
{
    CornuAccess access;
    *term = cornu__group_source(f->program, value, &access);
    const CornuProgramValue *source = &f->program->values[*term];
    return access.rank == 1 && access.stride[0] == 1 && cornu_type_count(type) > 1 &&
           access.extent[0] == cornu_type_count(type) && source->type.dtype == type.dtype &&
           count_of(f, *term) == cornu_type_count(type) &&
           !(source->op >= 0 && f->program->ops[source->op].id == CORNU_OP_CONSTANT);
}

/* What op `next` would be in an epilogue whose parts before `stage` are there: the operand that it
 * adds or multiplies by; OPERANDS: none. */
static CornuEpilogueOperand part_of(const Fuser *f, const CornuKernel *kernel, int next,
                                    CornuValue result, CornuEpilogueOperand stage,
                                    CornuValue *value)
{
    const CornuOpId  id = f->program->ops[next].id;
    const CornuType  type = cornu_program_type(f->program, result);
    const bool       scales = kernel->takes_scale && type.dtype == CORNU_F32;
    if (id != CORNU_OP_ADD && id != CORNU_OP_MULTIPLY) return CORNU_EPILOGUE_OPERANDS;
    const CornuValue *in = operands_of(f, next), other = in[in[0] == result];
    const bool        vector = is_bias(f, other, type, value);
    if (id == CORNU_OP_MULTIPLY)
        return vector && scales && stage <= CORNU_EPILOGUE_SCALE ? CORNU_EPILOGUE_SCALE
                                                                 : CORNU_EPILOGUE_OPERANDS;
    if (vector && stage == CORNU_EPILOGUE_BIAS) return CORNU_EPILOGUE_BIAS;
    if (vector && scales && stage <= CORNU_EPILOGUE_SHIFT) return CORNU_EPILOGUE_SHIFT;
    return scales && stage <= CORNU_EPILOGUE_TERM && is_term(f, other, type, value)
         ? CORNU_EPILOGUE_TERM : CORNU_EPILOGUE_OPERANDS;
}

/* Joins what an epilogue can do to the kernel of op `op`, where nothing else reads the values
 * between. */
static void absorb_epilogue(Fuser *f, int op)
{
    const CornuProgram *program = f->program;
    const CornuKernel  *kernel = f->nodes[op].kernel;
    int at = f->units.next[op] >= 0 ? f->units.next[op] : op; /* a pool after it */
    const CornuType type = cornu_program_type(program, program->ops[at].out_first);
    const bool narrow = type.dtype == CORNU_BF16;   /* then only activations of one instruction */
    const bool all = kernel->takes_epilogue;
    if (!all && !kernel->takes_relu) return;
    if (type.dtype != CORNU_F32 && !narrow) return;
    CornuEpilogueOperand stage = all ? CORNU_EPILOGUE_BIAS : CORNU_EPILOGUE_OPERANDS;
    CornuValue           value, read;
    for (int next; (next = next_after(f, at, &read)) >= 0; at = next) {
        const CornuOpId id = program->ops[next].id;
        if (f->nodes[next].kind != NODE_GROUP) return;
        if (id == CORNU_OP_RELU || (all && !narrow && (id == CORNU_OP_ELU || id == CORNU_OP_TANH ||
                                                       id == CORNU_OP_SIGMOID))) {
            absorb(f, op, next);
            return;
        }
        const CornuEpilogueOperand part = part_of(f, kernel, next, read, stage, &value);
        if (part == CORNU_EPILOGUE_OPERANDS) return;
        absorb_part(f, op, next, part, value);
        stage = part + 1;
    }
}

/* Joins the multiplication by the slope of a relu to the kernel of op `op`, where nothing else
 * reads the value between; the relu's result, from which the slope is computed, is in memory
 * anyway. */
static void absorb_gate(Fuser *f, int op)
{
    const CornuProgram *program = f->program;
    CornuValue          value;
    const int           next = next_after(f, op, &value);
    if (!f->nodes[op].kernel->takes_gate || next < 0 || f->units.next[op] >= 0 ||
        program->ops[next].id != CORNU_OP_MULTIPLY || f->nodes[next].kind != NODE_GROUP)
        return;
    const CornuValue *in = operands_of(f, next);
    const int         slope = program->values[in[in[0] == value]].op;
    if (slope <= op || program->ops[slope].id != CORNU_OP_STEP || f->nodes[slope].uses != 1) return;
    absorb_part(f, op, slope, CORNU_EPILOGUE_GATE, operands_of(f, slope)[0]);
    absorb(f, op, next);
}

/* ---- Groups ---- */

static bool same_shards(const Fuser *f, CornuValue a, CornuValue b)
{
    return f->program->values[a].varies == f->program->values[b].varies;
}

/* Whether rows looked up by op `op` are read, as they are, by one elementwise op alone. */
static bool feeds_group(const Fuser *f, int op)
{
    const CornuValue rows = f->program->ops[op].out_first;
    while (f->nodes[op].uses == 1 && f->nodes[op].user >= 0) {
        op = f->nodes[op].user;
        const CornuProgramOp *user = &f->program->ops[op];
        if (f->nodes[op].kind == NODE_GROUP)
            return cornu__group_count(f->program, user) == count_of(f, rows) &&
                   !cornu__group_reads_memory(user, 0) && same_shards(f, user->out_first, rows);
        if (user->id != CORNU_OP_RESHAPE) return false;
    }
    return false;
}

/* Whether the rows by which op `op` replaces others are made by an elementwise op. */
static bool ends_group(const Fuser *f, int op)
{
    CornuAccess      access;
    const CornuValue rows = cornu__group_source(f->program, operands_of(f, op)[2], &access);
    const int        maker = f->program->values[rows].op;
    return maker >= 0 && f->nodes[maker].kind == NODE_GROUP &&
           count_of(f, rows) == cornu__group_count(f->program, &f->program->ops[op]) &&
           same_shards(f, f->program->ops[op].out_first, rows);
}

/* Lookups and replacements of rows that elementwise ops are next to join their groups: a block of
 * rows is read where it is used, and written where it is made. */
static void find_rows(Fuser *f)
{
    for (int i = 0; i < f->program->op_count; i++) {
        const CornuOpId id = id_of(f, i);
        if ((id == CORNU_OP_GATHER && feeds_group(f, i)) ||
            (id == CORNU_OP_SCATTER_ROWS && ends_group(f, i)))
            f->nodes[i].kind = NODE_GROUP;
    }
}

/* The op whose result op `op` would read in a register if the two were in one group:
 * operand k's maker, looked at through reshapes. -1: it reads memory there. */
static int register_maker(const Fuser *f, int op, int k)
{
    if (cornu__group_reads_memory(&f->program->ops[op], k)) return -1;
    CornuAccess access;
    CornuValue  source =
        cornu__group_source(f->program, operands_of(f, op)[k], &access);
    int         maker = f->program->values[source].op;
    if (maker < 0 || f->nodes[maker].kind != NODE_GROUP) return -1;
    if (f->program->ops[maker].id == CORNU_OP_SCATTER_ROWS) return -1;   /* a table, in memory */
    /* A value that all shards share is computed once, not by each in its own group. */
    if (!same_shards(f, source, f->program->ops[op].out_first)) return -1;
    return count_of(f, source) == cornu__group_count(f->program, &f->program->ops[op]) ? maker : -1;
}

/* Orders the units that there are, and notes what ops would read in registers. */
static void order_units(Fuser *f)
{
    CornuUnits *units = &f->units;
    for (int i = 0; i < f->program->op_count; i++) {
        const CornuProgramOp *op = &f->program->ops[i];
        f->flags[i] = f->nodes[i].kind == NODE_LOOKED_THROUGH;
        for (int k = 0; k < op->in_count; k++)
            units->direct[op->in_first + k] =
                f->nodes[i].kind == NODE_GROUP ? register_maker(f, i, k) : -1;
    }
    cornu__units_order(units, f->flags);
}

static void form_groups(Fuser *f)
{
    CornuUnits *units = &f->units;
    order_units(f);
    for (int i = 0; i < f->program->op_count; i++) {
        if (f->nodes[i].kind != NODE_GROUP) continue;
        for (int k = 0; k < f->program->ops[i].in_count; k++) {
            const int maker = units->direct[f->program->ops[i].in_first + k];
            if (maker < 0) continue;
            const int other = units->of[maker], own = units->of[i];
            if (other != own &&
                cornu__unit_size(units, other) + cornu__unit_size(units, own) <= MOST_OPS)
                cornu__units_join(units, own, other);
        }
    }
}

/* ---- Values in memory ---- */

/* Notes that `value` is read from memory: if it is a view or broadcast its operand is, too. */
static void need(Fuser *f, CornuValue value)
{
    for (;;) {
        const CornuProgramValue *made = &f->program->values[value];
        if (made->op < 0 || f->nodes[made->op].pinned[made->index]) return;
        Node *node = &f->nodes[made->op];
        node->in_memory[made->index] = node->pinned[made->index] = true;
        if (node->kind != NODE_LOOKED_THROUGH) return;
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
static void need_operand(Fuser *f, int op, int k)
{
    CornuAccess access;
    CornuValue  value = operands_of(f, op)[k];
    const bool  in_memory = cornu__group_reads_memory(&f->program->ops[op], k);
    if (!in_memory) value = cornu__group_source(f->program, value, &access);
    int maker = f->program->values[value].op, direct = register_maker(f, op, k);
    if (direct >= 0) {   /* in a register, once the two are in one group */
        if (f->units.of[direct] != f->units.of[op])
            f->nodes[direct].in_memory[f->program->values[value].index] = true;
        return;
    }
    if (maker >= 0 && f->program->ops[maker].id == CORNU_OP_CONSTANT && !in_memory) return;
    need(f, value);
}

static void find_needs(Fuser *f)
{
    for (int i = 0; i < f->program->output_count; i++)
        need(f, f->program->outputs[i].value);
    for (int i = 0; i < f->program->op_count; i++) {
        if (f->nodes[i].part != CORNU_EPILOGUE_OPERANDS) need(f, f->nodes[i].part_value);
        for (int k = 0; k < f->program->ops[i].in_count; k++) {
            if (f->nodes[i].kind == NODE_GROUP) need_operand(f, i, k);
            /* Of a joined gradient of a pool only the operands are read. */
            int  maker = f->program->values[operands_of(f, i)[k]].op;
            if (maker >= 0 && f->nodes[maker].kind == NODE_JOINED) continue;
            bool absorbed = f->nodes[i].kind == NODE_KERNEL && f->units.of[i] != i;
            if ((f->nodes[i].kind == NODE_KERNEL && !absorbed) ||
                f->nodes[i].kind == NODE_ALONE || f->nodes[i].kind == NODE_JOINED)
                need(f, operands_of(f, i)[k]);
        }
    }
}

/* ---- Delayed ops ---- */

/* Lists the ops that would read another's result in a register. */
static void find_readers(Fuser *f)
{
    for (int i = 0; i < f->program->op_count; i++) f->reader[i] = -1;
    for (int i = 0; i < f->program->op_count; i++)
        for (int k = 0; k < f->program->ops[i].in_count; k++) {
            const int operand = f->program->ops[i].in_first + k;
            const int maker = f->nodes[i].kind == NODE_GROUP ? register_maker(f, i, k) : -1;
            f->units.reader[operand] = i;
            if (maker < 0) continue;
            f->reader_before[operand] = f->reader[maker];
            f->reader[maker] = operand;
        }
}

/* The one unit that reads the op's result, all in registers if the op were part of it; -1
 * if there is no such unit or it is the op's own. */
static int only_reader(const Fuser *f, int op)
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
static bool is_cheap_to_delay(const Fuser *f, int op)
{
    const CornuProgramOp *p = &f->program->ops[op];
    int                   whole = 0;
    if (p->out_count != 1 || p->id == CORNU_OP_RANDOM_UNIFORM || p->id == CORNU_OP_IOTA)
        return false;
    size_t bytes = cornu_type_bytes(cornu_program_type(f->program, p->out_first));
    for (int k = 0; k < p->in_count; k++) {
        CornuAccess access;
        CornuValue  source =
            cornu__group_source(f->program, operands_of(f, op)[k], &access);
        const CornuProgramValue *made = &f->program->values[source];
        if (access.rank == 0) continue;
        bool there = made->op >= 0 && f->nodes[made->op].in_memory[made->index];
        if (!there || cornu_type_bytes(made->type) > 2 * bytes) return false;
        whole++;
    }
    return whole == 1;
}

/*
 * Moves ops to the group that alone needs them. The slope of an activation is recorded
 * with the backward pass but could join the forward group, which would write it to memory
 * for much later; from the activation, which is in memory, it costs nothing in the
 * backward group.
 */
static void delay_ops(Fuser *f)
{
    find_readers(f);
    for (int i = f->program->op_count - 1; i >= 0; i--) {
        Node *node = &f->nodes[i];
        if (node->kind != NODE_GROUP || !node->in_memory[0] || node->pinned[0]) continue;
        int reader = only_reader(f, i);
        if (reader < 0 || cornu__unit_size(&f->units, reader) >= MOST_OPS ||
            !is_cheap_to_delay(f, i))
            continue;
        cornu__units_leave(&f->units, i);
        cornu__units_merge(&f->units, i, reader);
        node->in_memory[0] = false;
    }
}

/* ---- Steps ---- */

/* The values that the kernel reads for the first `in_count` operands of its op: operands of a
 * joined gradient of a pool in place of its result. */
static int add_operands(const Fuser *f, int op, int in_count, CornuValue *all)
{
    int count = 0;
    for (int k = 0; k < in_count; k++) {
        CornuValue value = operands_of(f, op)[k];
        int        maker = f->program->values[value].op;
        if (maker >= 0 && f->nodes[maker].kind == NODE_JOINED)
            count += add_operands(f, maker, f->program->ops[maker].in_count, all + count);
        else
            all[count++] = value;
    }
    return count;
}

/* How an op without a kernel runs. */
static CornuStepKind kind_alone(CornuOpId id)
{
    return id == CORNU_OP_SCAN ? CORNU_STEP_SCAN : CORNU_STEP_REFERENCE;
}

/* Lists the ops that the step computes: those of a unit and, before them, a joined gradient. */
static CornuStatus note_ops(CornuPlanStep *step, const Fuser *f, int unit)
{
    const int pool = f->nodes[unit].pool;
    step->ops = cornu__allocate((size_t)cornu__unit_size(&f->units, unit) + 1,
                                sizeof *step->ops);
    if (!step->ops) return CORNU_ERR_MEMORY;
    if (pool >= 0 && f->nodes[pool].kind == NODE_JOINED) step->ops[step->op_count++] = pool;
    for (int i = unit; i >= 0; i = f->units.next[i]) step->ops[step->op_count++] = i;
    return CORNU_OK;
}

/* The packed operand that an earlier step made for an equal call; CORNU_NO_VALUE: none. */
static CornuValue find_packed(const Fuser *f, const CornuKernel *kernel, const CornuOpCall *call,
                              CornuType out_type, CornuValue operand)
{
    CornuType types[CORNU_MAX_INPUTS];
    for (int i = f->packed[operand]; i >= 0; i = f->packed_before[i]) {
        const CornuPlanStep  *step = &f->plan->steps[i];
        const CornuValue *values = f->plan->operands;
        if (step->kernel != kernel) continue;
        const CornuProgramOp *made = &f->program->ops[step->op];
        const CornuOpCall     other = cornu_program_call(f->program, made, types);
        bool alike = other.id == call->id && other.in_count == call->in_count &&
                     cornu__attributes_equal(call->id, other.attributes, call->attributes) &&
                     cornu_type_equal(cornu_program_type(f->program, made->out_first), out_type);
        for (int k = 0; alike && k < call->in_count; k++)
            alike = cornu_type_equal(other.in[k], call->in[k]);
        if (alike) return values[step->out_first];
    }
    return CORNU_NO_VALUE;
}

/* Adds the step that packs one of the kernel's operands, unless there is an equal one; the kernel
 * reads the panels in place of the operand, as value `*packed` of those it reads. No step where the
 * kernel takes all operands as they are, or packs this one itself. */
static CornuStatus add_pack(Fuser *f, int op, int position, CornuValue *in, int *packed)
{
    CornuType             types[CORNU_MAX_INPUTS];
    const CornuKernel    *kernel = f->nodes[op].kernel;
    const CornuProgramOp *made = &f->program->ops[op];
    if (!kernel || !kernel->pack_bytes) return CORNU_OK;
    const int          at = add_operands(f, op, kernel->packs, in);
    CornuValue        *operand = &in[at];
    const CornuOpCall  call = cornu_program_call(f->program, made, types);
    const CornuType    out_type = cornu_program_type(f->program, made->out_first);
    const CornuMachine machine = cornu__machine(f->plan->host);
    const int64_t      bytes = (int64_t)kernel->pack_bytes(&call, &out_type, &machine);
    if (bytes == 0 || (kernel->packs_itself && !is_fixed(f, *operand) &&
                       kernel->packs_itself(&call, &out_type, &machine)))
        return CORNU_OK;
    *packed = at;
    CornuValue panels = find_packed(f, kernel, &call, out_type, *operand);
    if (panels != CORNU_NO_VALUE) {
        *operand = panels;
        return CORNU_OK;
    }
    CORNU__TRY(cornu__plan_value(f->plan, cornu_type(CORNU_U8, bytes), f->plan->varies[*operand],
                                 (CornuPlace){ .region = CORNU_PACKED }, &panels));
    CornuPlanStep *step = cornu__plan_step(f->plan, CORNU_STEP_PACK, operand, 1, &panels, 1);
    if (!step) return CORNU_ERR_MEMORY;
    step->op = op;
    step->position = position;
    step->kernel = kernel;
    f->packed_before[f->plan->step_count - 1] = f->packed[*operand];
    f->packed[*operand] = f->plan->step_count - 1;
    *operand = panels;
    return CORNU_OK;
}

static CornuStatus add_kernel(Fuser *f, int op)
{
    const CornuProgram   *program = f->program;
    const CornuProgramOp *made =
        &program->ops[op]; /* whose outputs the step has, but for 0 */
    CornuEpilogue         epilogue = { .activation = CORNU_OP_COUNT };
    CornuValue            parts[CORNU_EPILOGUE_OPERANDS];
    int                   last = op;
    for (int i = 0; i < CORNU_EPILOGUE_OPERANDS; i++) parts[i] = CORNU_NO_VALUE;
    for (int i = f->units.next[op]; i >= 0; last = i, i = f->units.next[i]) {
        const CornuOpId id = program->ops[i].id;
        if (id == CORNU_OP_ALL_REDUCE) {
            continue;
        } else if (i == f->nodes[op].pool) {
            made = &program->ops[i];
        } else if (f->nodes[i].part != CORNU_EPILOGUE_OPERANDS) {
            parts[f->nodes[i].part] = f->nodes[i].part_value;
        } else if (id != CORNU_OP_MULTIPLY) {   /* by the slope of a relu */
            epilogue.activation = id;
            epilogue.attributes = program->ops[i].attributes;
        }
    }
    const bool is_kernel = f->nodes[op].kind == NODE_KERNEL;
    CornuValue *in = cornu__allocate((size_t)program->ops[op].in_count + CORNU_EPILOGUE_OPERANDS,
                                     sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    int in_count = add_operands(f, op, program->ops[op].in_count, in);
    int epilogue_in[CORNU_EPILOGUE_OPERANDS] = { 0 };
    for (int i = 0; i < CORNU_EPILOGUE_OPERANDS; i++)
        if (parts[i] != CORNU_NO_VALUE) {
            epilogue_in[i] = in_count;
            in[in_count++] = parts[i];
        }
    CornuValue outs[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < made->out_count; i++) outs[i] = made->out_first + i;
    if (last != op) outs[0] = program->ops[last].out_first;
    int         packed = -1;
    CornuStatus status = is_kernel ? add_pack(f, op, last, in, &packed) : CORNU_OK;
    CornuPlanStep  *step = status != CORNU_OK ? NULL :
        cornu__plan_step(f->plan,
                         is_kernel ? CORNU_STEP_KERNEL : kind_alone(program->ops[op].id),
                         in, in_count, outs, made->out_count);
    cornu__release(in);
    if (!step) return CORNU_ERR_MEMORY;
    step->op = op;
    step->pool = f->nodes[op].pool;
    step->position = last;
    step->kernel = f->nodes[op].kernel;
    step->epilogue = epilogue;
    memcpy(step->epilogue_in, epilogue_in, sizeof epilogue_in);
    step->packed = packed;
    step->summed = f->nodes[op].summed;
    return note_ops(step, f, op);
}

/* A step for the ops of unit `unit`, or to write out that op's result alone. */
static CornuStatus add_group_step(Fuser *f, int unit, const int *ops, int op_count,
                                  const CornuValue *out, int out_count, int position)
{
    CornuGroup *group = cornu__group_create(f->plan->host->vectors, f->program, ops,
                                            op_count, out, out_count, f->slot_of);
    if (!group) return CORNU_ERR_MEMORY;
    CornuPlanStep *step =
        cornu__plan_step(f->plan, CORNU_STEP_GROUP, group->inputs, group->input_count, out,
                         out_count);
    if (!step) {
        cornu__group_free(group);
        return CORNU_ERR_MEMORY;
    }
    step->position = position;
    step->group = group;
    return note_ops(step, f, unit);
}

static CornuStatus add_group(Fuser *f, int unit)
{
    int        ops[MOST_OPS], op_count = 0, out_count = 0;
    CornuValue out[MOST_OPS * CORNU_MAX_OUTPUTS];
    for (int i = unit; i >= 0; i = f->units.next[i]) {
        ops[op_count++] = i;
        for (int k = 0; k < f->program->ops[i].out_count; k++)
            if (f->nodes[i].in_memory[k])
                out[out_count++] = f->program->ops[i].out_first + k;
    }
    if (out_count == 0) return CORNU_OK;
    return add_group_step(f, unit, ops, op_count, out, out_count, ops[op_count - 1]);
}

/* Close it also after a failure. */
static CornuStatus open_fuser(Fuser *f, CornuPlan *plan)
{
    const CornuProgram *program = plan->program;
    const size_t        ops = (size_t)program->op_count, values = (size_t)program->value_count;
    *f = (Fuser){ .plan = plan, .program = program };
    f->nodes = cornu__allocate(ops, sizeof *f->nodes);
    f->flags = cornu__allocate(ops, sizeof *f->flags);
    f->slot_of = cornu__allocate(values, sizeof *f->slot_of);
    f->packed = cornu__allocate(values, sizeof *f->packed);
    f->packed_before = cornu__allocate(2 * ops, sizeof *f->packed_before);   /* and kernels */
    f->reader = cornu__allocate(ops, sizeof *f->reader);
    f->reader_before = cornu__allocate((size_t)program->operand_count, sizeof *f->reader_before);
    if (!f->nodes || !f->flags || !f->slot_of || !f->packed || !f->packed_before || !f->reader ||
        !f->reader_before)
        return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->value_count; i++) f->slot_of[i] = f->packed[i] = -1;
    return cornu__units_create(&f->units, program);
}

static void close_fuser(Fuser *f)
{
    cornu__units_free(&f->units);
    cornu__release(f->nodes);
    cornu__release(f->flags);
    cornu__release(f->slot_of);
    cornu__release(f->packed);
    cornu__release(f->packed_before);
    cornu__release(f->reader);
    cornu__release(f->reader_before);
}

/* Joins ops into units, and finds what of them is in memory. */
static void form_units(Fuser *f)
{
    classify(f);
    const bool pools = cornu__pass_runs(CORNU_PASS_POOL);
    const bool epilogues = cornu__pass_runs(CORNU_PASS_EPILOGUE);
    const bool gates = cornu__pass_runs(CORNU_PASS_GATE);
    for (int i = 0; i < f->program->op_count; i++)
        if (f->nodes[i].kind == NODE_KERNEL && f->units.of[i] == i) {
            if (pools) join_pool(f, i);
            join_sum(f, i);
            if (epilogues) absorb_epilogue(f, i);
            if (gates) absorb_gate(f, i);
        }
    if (cornu__pass_runs(CORNU_PASS_GROUP)) {
        if (cornu__pass_runs(CORNU_PASS_ROWS)) find_rows(f);
        form_groups(f);
    }
    find_needs(f);
    if (cornu__pass_runs(CORNU_PASS_DELAY)) delay_ops(f);
}

/* The program with what is worth computing twice; NULL: nothing is. */
static CornuStatus recompute(const Fuser *f, CornuProgram **again)
{
    CornuResult *results = cornu__allocate((size_t)f->program->op_count, sizeof *results);
    if (!results) return CORNU_ERR_MEMORY;
    for (int i = 0; i < f->program->op_count; i++) {
        const Node *node = &f->nodes[i];
        results[i] = node->kind != NODE_GROUP ? CORNU_RESULT_OUTSIDE
                   : node->pinned[0] ? CORNU_RESULT_FOR_ALL
                   : node->in_memory[0] ? CORNU_RESULT_FOR_GROUPS : CORNU_RESULT_INSIDE;
    }
    const CornuStatus status = cornu__recompute(&f->units, results, MOST_OPS, again);
    cornu__release(results);
    return status;
}

/* Units, of the program with what is computed twice if that is worth it. */
static CornuStatus open_units(Fuser *f, CornuPlan *plan)
{
    CornuProgram *again = NULL;
    CORNU__TRY(open_fuser(f, plan));
    form_units(f);
    if (cornu__pass_runs(CORNU_PASS_GROUP) && cornu__pass_runs(CORNU_PASS_RECOMPUTE))
        CORNU__TRY(recompute(f, &again));
    if (!again) return CORNU_OK;
    close_fuser(f);
    cornu_program_free(plan->program);
    plan->program = again;
    CORNU__TRY(open_fuser(f, plan));
    form_units(f);
    return CORNU_OK;
}

CornuStatus cornu__fuse(CornuPlan *plan)
{
    Fuser       f;
    CornuStatus status = open_units(&f, plan);
    if (!status) status = cornu__plan_values(plan);
    for (int i = 0; !status && i < f.program->op_count; i++) {
        const Node *node = &f.nodes[i];
        if (f.units.of[i] != i) continue;
        if (node->kind == NODE_KERNEL || node->kind == NODE_ALONE)
            status = add_kernel(&f, i);
        else if (node->kind == NODE_GROUP) status = add_group(&f, i);
        else if (node->written_out)
            status = add_group_step(&f, i, NULL, 0, &f.program->ops[i].out_first, 1, i);
    }
    close_fuser(&f);
    return status;
}
