#include "lower.h"

#include "../../ops/rewrite.h"

void cornu__decomposed(CornuEmitter *e, const CornuEmitCall *call)
{
    if (e->status == CORNU_OK)
        e->status = cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: XLA has no such op, and it is not "
                                "composed of others", cornu_program_op_name(call->record));
}

static CornuStatus record(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context)
{
    CornuEmit *const *const *rules = context;
    const bool decomposes = *rules[op->id] == CORNU_DECOMPOSED &&
                            !cornu__is_primitive(op->id, &op->attributes);
    return decomposes ? cornu__rewrite_decompose(rewrite, op) : cornu__rewrite_keep(rewrite, op);
}

CornuProgram *cornu__lower(const CornuProgram *program, const CornuEmitTable *table)
{
    return cornu__rewrite_rounds(program, record, *table);
}
