#include "lower.h"

#include "../../ops/rewrite.h"

void cornu__decomposed(CornuEmitter *e, const CornuEmitCall *call)
{
    if (e->status == CORNU_OK)
        e->status = cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: not decomposed",
                                cornu_op_name(call->op.id));
}

static CornuStatus record(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context)
{
    CornuEmit *const *const *rules = context;
    return *rules[op->id] == CORNU_DECOMPOSED ? cornu__rewrite_decompose(rewrite, op)
                                              : cornu__rewrite_keep(rewrite, op);
}

CornuProgram *cornu__lower(const CornuProgram *program, const CornuEmitTable *table)
{
    return cornu__rewrite_rounds(program, record, *table);
}
