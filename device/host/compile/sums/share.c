/*
 * share: with many shards, and of large products, sums of which each shard gets a slice become sums
 * that all share.
 *
 *     reduce_scatter(x) = shard_slice(all_reduce(x))
 *     all_reduce(pack(a, b)) = pack(all_reduce(a), all_reduce(b))
 *
 * Where all shards read one memory a slice is a view. An all_reduce can be added up shard by shard
 * (sums.c), and its parts each as soon as they are made, so that no shard's gradients wait in
 * memory for those of the layers before. That of a large product can be made with the product
 * (summed.c), so that no shard's gradient is ever in memory. The elements are added in the same
 * order.
 */
#include "../../../memory_internal.h"
#include "../passes.h"
#include "../../../ops/rewrite.h"

typedef struct {
    CornuRewrite rewrite;
    const CornuHost *host;
    bool         many;    /* shards: every sum is shared */
    int         *uses;    /* by value of rewrite.from, outputs included */
    bool        *split;   /* by value of rewrite.from: a pack whose parts are summed */
} Sharer;

static bool is_sum(const CornuProgram *program, const CornuProgramOp *op)
{
    return (op->id == CORNU_OP_ALL_REDUCE || op->id == CORNU_OP_REDUCE_SCATTER) &&
           op->attributes.shards.groups.count == 0 &&
           program->values[cornu_program_operands(program, op)[0]].varies;
}

/* The pack that makes the value and that nothing else reads; NULL if there is none. */
static const CornuProgramOp *pack_of(const Sharer *s, CornuValue value)
{
    const CornuProgram   *from = s->rewrite.from;
    const int             op = from->values[value].op;
    const CornuProgramOp *made = op >= 0 ? &from->ops[op] : NULL;
    return made && made->id == CORNU_OP_PACK && s->uses[value] == 1 ? made : NULL;
}

/* Whether it pays that a sum of the value, or of a pack of others, is shared. */
static bool pays(const Sharer *s, CornuValue value)
{
    const CornuProgram   *from = s->rewrite.from;
    const CornuProgramOp *pack = pack_of(s, value);
    const int             count = pack ? pack->in_count : 1;
    const CornuValue     *parts = pack ? cornu_program_operands(from, pack) : &value;
    for (int k = 0; k < count && !s->many; k++)
        if (cornu__summed_kernel_for(s->host, from, parts[k])) return true;
    return s->many;
}

static void find_packs(Sharer *s)
{
    const CornuProgram *from = s->rewrite.from;
    for (int i = 0; i < from->operand_count; i++) s->uses[from->operands[i]]++;
    for (int i = 0; i < from->output_count; i++) s->uses[from->outputs[i].value]++;
    for (int i = 0; i < from->op_count; i++) {
        const CornuValue *in = cornu_program_operands(from, &from->ops[i]);
        if (is_sum(from, &from->ops[i]) && pack_of(s, in[0])) s->split[in[0]] = pays(s, in[0]);
    }
}

static CornuStatus record_sum(Sharer *s, const CornuProgramOp *op, CornuValue value,
                              CornuValue *out)
{
    CornuRewrite   *rewrite = &s->rewrite;
    CornuAttributes all = { .shards = { .size = op->attributes.shards.size } };
    if (!s->split[value])
        return cornu_program_record(rewrite->to, CORNU_OP_ALL_REDUCE, &all, &rewrite->map[value],
                                    1, out);
    const CornuProgramOp *pack = &rewrite->from->ops[rewrite->from->values[value].op];
    const CornuValue     *in = cornu__rewrite_operands(rewrite, pack);
    CornuValue           *sums = cornu__allocate((size_t)pack->in_count, sizeof *sums);
    CornuStatus           status = sums ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int k = 0; k < pack->in_count && status == CORNU_OK; k++)
        status = cornu_program_record(rewrite->to, CORNU_OP_ALL_REDUCE, &all, &in[k], 1, &sums[k]);
    if (status == CORNU_OK)
        status = cornu_program_record(rewrite->to, CORNU_OP_PACK, &pack->attributes, sums,
                                      pack->in_count, out);
    cornu__release(sums);
    return status;
}

static CornuStatus share_op(Sharer *s, const CornuProgramOp *op)
{
    CornuRewrite     *rewrite = &s->rewrite;
    const CornuValue *in = cornu_program_operands(rewrite->from, op);
    CornuValue        sum;
    CORNU__TRY(cornu__program_follow(rewrite->to, op));
    if (op->id == CORNU_OP_PACK && s->split[op->out_first]) return CORNU_OK;
    if (!is_sum(rewrite->from, op) || !pays(s, in[0])) return cornu__rewrite_keep(rewrite, op);
    CORNU__TRY(record_sum(s, op, in[0], &sum));
    if (op->id == CORNU_OP_REDUCE_SCATTER)
        CORNU__TRY(cornu_program_record(rewrite->to, CORNU_OP_SHARD_SLICE, &op->attributes, &sum, 1,
                                        &sum));
    rewrite->map[op->out_first] = sum;
    return CORNU_OK;
}

CornuProgram *cornu__share(const CornuHost *host, const CornuProgram *program)
{
    const CornuPlan plan = { .host = host };
    if (!cornu__pass_runs(CORNU_PASS_SHARE)) return cornu__rewrite_copy(program, false);
    Sharer      s = { .host = host, .many = cornu__plan_block(&plan) > 1 };
    CornuStatus status = cornu__rewrite_begin(&s.rewrite, program, false);
    s.uses = cornu__allocate((size_t)program->value_count, sizeof *s.uses);
    s.split = cornu__allocate((size_t)program->value_count, sizeof *s.split);
    if (!s.uses || !s.split) status = CORNU_ERR_MEMORY;
    if (status == CORNU_OK) find_packs(&s);
    for (int i = 0; i < program->op_count && status == CORNU_OK; i++)
        status = share_op(&s, &program->ops[i]);
    cornu__release(s.uses);
    cornu__release(s.split);
    return cornu__rewrite_end(&s.rewrite, status);
}
