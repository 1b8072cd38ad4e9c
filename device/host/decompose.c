/*
 * decompose: an op that neither a kernel nor a group computes is replaced by its
 * decomposition, and so are the ops of that, until only ops remain that are computed or
 * have none. Those run by their reference kernels.
 */
#include "../memory_internal.h"
#include "passes.h"

static bool floats_are_f32(const CornuOpCall *call, const CornuType *out_type)
{
    for (int i = 0; i < call->in_count; i++)
        if (cornu_dtype_is_float(call->in[i].dtype) && call->in[i].dtype != CORNU_F32)
            return false;
    for (int i = 0; i < cornu_op_output_count(call->id); i++)
        if (cornu_dtype_is_float(out_type[i].dtype) && out_type[i].dtype != CORNU_F32)
            return false;
    return true;
}

const CornuKernel *cornu__kernel_for(const CornuKernel *const *table,
                                     const CornuProgram       *program,
                                     const CornuProgramOp     *op)
{
    const CornuKernel *kernel = table ? table[op->id] : NULL;
    if (!kernel) return NULL;
    /* Only concat takes any number of operands; those beyond are of the same kind. */
    CornuType   in[64], out[CORNU_MAX_OUTPUTS];
    int         most = (int)(sizeof in / sizeof *in);
    CornuOpCall call = { op->id, &op->attributes,
                         op->in_count < most ? op->in_count : most, in };
    for (int i = 0; i < call.in_count; i++)
        in[i] = cornu_program_type(program, cornu_program_operands(program, op)[i]);
    for (int i = 0; i < op->out_count; i++)
        out[i] = cornu_program_type(program, op->out_first + i);
    bool accepted =
        kernel->accepts ? kernel->accepts(&call, out) : floats_are_f32(&call, out);
    return accepted ? kernel : NULL;
}

static bool is_computed(const CornuHost *host, const CornuProgram *program,
                        const CornuProgramOp *op)
{
    switch (op->id) {
    case CORNU_OP_CONSTANT: case CORNU_OP_RESHAPE: case CORNU_OP_BROADCAST: return true;
    default: return cornu__kernel_for(host->kernels, program, op) ||
                    cornu__elementwise_computes(host->vectors, program, op);
    }
}

/* One round. `changed` tells whether anything was replaced. */
static CornuProgram *decompose_once(const CornuHost *host, const CornuProgram *program,
                                    bool *changed)
{
    CornuRewrite rewrite;
    CornuStatus  status = cornu__rewrite_begin(&rewrite, program, false);
    CornuType   *in = cornu__allocate((size_t)program->operand_count, sizeof *in);
    if (!in) status = CORNU_ERR_MEMORY;
    for (int i = 0; i < program->op_count && status == CORNU_OK; i++) {
        const CornuProgramOp *op = &program->ops[i];
        CornuDecompose       *rule = cornu__op_rules(op->id)->decompose;
        status = cornu_program_scope(rewrite.to, op->scope);
        if (status != CORNU_OK) break;
        if (rule == CORNU_PRIMITIVE || is_computed(host, program, op)) {
            status = cornu__rewrite_keep(&rewrite, op);
            continue;
        }
        *changed = true;
        CornuOpCall call = cornu_program_call(program, op, in);
        status = rule(rewrite.to, &call, cornu__rewrite_operands(&rewrite, op),
                      &rewrite.map[op->out_first]);
    }
    cornu__release(in);
    return cornu__rewrite_end(&rewrite, status);
}

CornuProgram *cornu__decompose(const CornuHost *host, const CornuProgram *program)
{
    bool          changed = false;
    CornuProgram *result = decompose_once(host, program, &changed);
    while (result && changed) {
        changed = false;
        CornuProgram *next = decompose_once(host, result, &changed);
        cornu_program_free(result);
        result = next;
    }
    return result;
}
