/*
 * decompose: replaces an op that neither a kernel nor a group computes
 *
 *     by the same op on f32 between conversions, if a kernel takes that: sums are f32 in any case,
 *     and the conversions join the groups before and after;
 *     otherwise by its decomposition, whose ops are treated in the same way,
 *
 * until every op left is computed or has no decomposition. The latter run by their reference
 * kernels.
 */
#include "../../memory_internal.h"
#include "passes.h"
#include "../../ops/rewrite.h"

static bool is_computed(const CornuHost *host, const CornuProgram *program,
                        const CornuProgramOp *op)
{
    switch (op->id) {
    case CORNU_OP_CONSTANT: case CORNU_OP_RESHAPE: case CORNU_OP_BROADCAST: return true;
    default: return cornu__kernel_for(host, program, op) ||
                    cornu__group_computes(host->vectors, program, op);
    }
}

static CornuStatus record_convert(CornuProgram *to, CornuDtype dtype, CornuValue *value)
{
    CornuAttributes attributes = { .convert = { .dtype = dtype } };
    CornuValue      from = *value;
    if (cornu_program_type(to, from).dtype == dtype) return CORNU_OK;
    return cornu_program_record(to, CORNU_OP_CONVERT, &attributes, &from, 1, value);
}

/* Records the op on f32 between conversions from and to bf16 or f16. */
static CornuStatus widen(CornuRewrite *rewrite, const CornuProgramOp *op)
{
    CornuProgram   *to = rewrite->to;
    CornuAttributes attributes = cornu__widened_attributes(op);
    CornuValue     *out = &rewrite->map[op->out_first];
    cornu__rewrite_operands(rewrite, op);
    for (int i = 0; i < op->in_count; i++)
        CORNU__TRY(record_convert(to, cornu__widened(cornu_program_type(to, rewrite->in[i]).dtype),
                                  &rewrite->in[i]));
    CORNU__TRY(cornu_program_record(to, op->id, &attributes, rewrite->in, op->in_count, out));
    for (int i = 0; i < op->out_count; i++)
        CORNU__TRY(record_convert(to, cornu_program_type(rewrite->from, op->out_first + i).dtype,
                                  &out[i]));
    return CORNU_OK;
}

/* One round; sets `changed` if it replaced anything. */
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
        if (!is_computed(host, program, op) && cornu__widened_kernel_for(host, program, op)) {
            status = widen(&rewrite, op);
            continue;
        }
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
    bool changed = false;
    if (!cornu__pass_runs(CORNU_PASS_DECOMPOSE)) return cornu__rewrite_copy(program, false);
    CornuProgram *result = decompose_once(host, program, &changed);
    while (result && changed) {
        changed = false;
        CornuProgram *next = decompose_once(host, result, &changed);
        cornu_program_free(result);
        result = next;
    }
    return result;
}
