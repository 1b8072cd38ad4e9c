/*
 * combine: independent sums over shards become one.
 *
 * A value's level is the number of such sums on the longest path to it. All operands of one level
 * and dtype are packed, summed together and unpacked; the plan makes the operands in place in the
 * pack and reads the results where they are. Ops of one level keep their order and come before
 * those of the next.
 */
#include "../../../memory_internal.h"
#include "../passes.h"
#include "../../../ops/rewrite.h"

/* Parts are aligned as kernels expect. */
enum { SEGMENT_BYTES = 64 };

/* A sum, and the offset of its elements in the pack. */
typedef struct {
    const CornuProgramOp *op;
    int64_t               first;
} Member;

typedef struct {
    CornuRewrite rewrite;
    const CornuHost *host;
    Member      *members;
    int         *level;    /* by value of rewrite.from */
    int          levels;
} Combiner;

/* Over all shards: sums over groups are rare and stay as they are; so do those that are made with
 * the product that they add up. */
static bool is_sum(const Combiner *c, const CornuProgramOp *op)
{
    const CornuProgram *from = c->rewrite.from;
    return op->id == CORNU_OP_ALL_REDUCE && op->attributes.shards.groups.count == 0 &&
           !cornu__summed_kernel_for(c->host, from, cornu_program_operands(from, op)[0]);
}

static int level_of_operands(const Combiner *c, const CornuProgramOp *op)
{
    int level = 0;
    for (int i = 0; i < op->in_count; i++) {
        const int of_in = c->level[cornu_program_operands(c->rewrite.from, op)[i]];
        if (of_in > level) level = of_in;
    }
    return level;
}

static void find_levels(Combiner *c)
{
    const CornuProgram *from = c->rewrite.from;
    for (int i = 0; i < from->op_count; i++) {
        const CornuProgramOp *op = &from->ops[i];
        const int             level = level_of_operands(c, op) + is_sum(c, op);
        for (int k = 0; k < op->out_count; k++) c->level[op->out_first + k] = level;
        if (level >= c->levels) c->levels = level + 1;
    }
}

/* One value of `count` elements of a flat sum, in its shape. */
static CornuStatus record_part(CornuProgram *to, CornuValue sum, int64_t first, CornuType type,
                               CornuValue *out)
{
    CornuAttributes slice = { .slice = { { first }, { cornu_type_count(type) } } };
    CornuAttributes shape = { .shape = { .rank = type.shape.rank } };
    for (int i = 0; i < type.shape.rank; i++) shape.shape.extents[i] = type.shape.extent[i];
    CORNU__TRY(cornu_program_record(to, CORNU_OP_SLICE, &slice, &sum, 1, out));
    return cornu_program_record(to, CORNU_OP_RESHAPE, &shape, out, 1, out);
}

/* Combines the sums of this dtype whose operands are of this level. */
static CornuStatus combine(Combiner *c, int level, CornuDtype dtype)
{
    const CornuProgram *from = c->rewrite.from;
    CornuProgram       *to = c->rewrite.to;
    CornuAttributes     pack = { .pack = { SEGMENT_BYTES / (int64_t)cornu_dtype_size(dtype), 0 } };
    CornuValue          sum;
    int                 count = 0;
    for (int i = 0; i < from->op_count; i++) {
        const CornuProgramOp *op = &from->ops[i];
        const CornuType       type = cornu_program_type(from, op->out_first);
        if (!is_sum(c, op) || type.dtype != dtype || c->level[op->out_first] != level + 1) continue;
        const int64_t first = cornu__pack_start(&pack.pack, pack.pack.extent);
        pack.pack.extent = first + cornu_type_count(type);
        c->rewrite.in[count] = c->rewrite.map[cornu_program_operands(from, op)[0]];
        c->members[count++] = (Member){ op, first };
    }
    if (count == 0) return CORNU_OK;
    CORNU__TRY(cornu__program_follow(to, c->members[0].op));
    if (count == 1) return cornu__rewrite_keep(&c->rewrite, c->members[0].op);
    CORNU__TRY(cornu_program_record(to, CORNU_OP_PACK, &pack, c->rewrite.in, count, &sum));
    CORNU__TRY(cornu_program_record(to, CORNU_OP_ALL_REDUCE, &c->members[0].op->attributes, &sum,
                                    1, &sum));
    for (int i = 0; i < count; i++) {
        const CornuValue old = c->members[i].op->out_first;
        CORNU__TRY(record_part(to, sum, c->members[i].first, cornu_program_type(from, old),
                               &c->rewrite.map[old]));
    }
    return CORNU_OK;
}

static CornuStatus rewrite_level(Combiner *c, int level)
{
    const CornuProgram *from = c->rewrite.from;
    for (int i = 0; i < from->op_count; i++) {
        const CornuProgramOp *op = &from->ops[i];
        if (is_sum(c, op) || c->level[op->out_first] != level) continue;
        CORNU__TRY(cornu__program_follow(c->rewrite.to, op));
        CORNU__TRY(cornu__rewrite_keep(&c->rewrite, op));
    }
    for (int dtype = 0; dtype < CORNU_DTYPE_COUNT; dtype++)
        CORNU__TRY(combine(c, level, (CornuDtype)dtype));
    return CORNU_OK;
}

CornuProgram *cornu__combine(const CornuHost *host, const CornuProgram *program)
{
    if (!cornu__pass_runs(CORNU_PASS_COMBINE)) return cornu__rewrite_copy(program, false);
    Combiner    c = { .host = host, .levels = 1 };
    CornuStatus status = cornu__rewrite_begin(&c.rewrite, program, false);
    c.level = cornu__allocate((size_t)program->value_count, sizeof *c.level);
    c.members = cornu__allocate((size_t)program->op_count, sizeof *c.members);
    if (!c.level || !c.members) status = CORNU_ERR_MEMORY;
    if (status == CORNU_OK) find_levels(&c);
    for (int level = 0; level < c.levels && status == CORNU_OK; level++)
        status = rewrite_level(&c, level);
    cornu__release(c.level);
    cornu__release(c.members);
    return cornu__rewrite_end(&c.rewrite, status);
}
