#include "lower.h"

#include "../../memory_internal.h"
#include "../../ops/rewrite.h"

void cornu__decomposed(CornuEmitter *e, const CornuEmitCall *call)
{
    if (e->status == CORNU_OK)
        e->status = cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: not decomposed",
                                cornu_op_name(call->op.id));
}

static CornuStatus lower_op(CornuRewrite *rewrite, const CornuProgramOp *op, CornuType *in,
                            const CornuEmitTable *table, bool *changed)
{
    CORNU__TRY(cornu_program_scope(rewrite->to, op->scope));
    if (*(*table)[op->id] != CORNU_DECOMPOSED) return cornu__rewrite_keep(rewrite, op);
    const CornuOpCall call = cornu_program_call(rewrite->from, op, in);
    *changed = true;
    return cornu__op_rules(op->id)->decompose(rewrite->to, &call,
                                              cornu__rewrite_operands(rewrite, op),
                                              &rewrite->map[op->out_first]);
}

static CornuProgram *lower_once(const CornuProgram *program, const CornuEmitTable *table,
                                bool *changed)
{
    CornuRewrite rewrite;
    CornuStatus  status = cornu__rewrite_begin(&rewrite, program, false);
    CornuType   *in = cornu__allocate((size_t)program->operand_count, sizeof *in);
    if (!in) status = CORNU_ERR_MEMORY;
    for (int i = 0; i < program->op_count && status == CORNU_OK; i++)
        status = lower_op(&rewrite, &program->ops[i], in, table, changed);
    cornu__release(in);
    return cornu__rewrite_end(&rewrite, status);
}

CornuProgram *cornu__lower(const CornuProgram *program, const CornuEmitTable *table)
{
    bool          changed = false;
    CornuProgram *result = lower_once(program, table, &changed);
    while (result && changed) {
        changed = false;
        CornuProgram *next = lower_once(result, table, &changed);
        cornu_program_free(result);
        result = next;
    }
    return result;
}
