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
#include "passes.h"
#include "../../ops/rewrite.h"

CornuChoice cornu__choice(const CornuHost *host, const CornuProgram *program,
                          const CornuProgramOp *op)
{
    switch (op->id) {
    case CORNU_OP_CONSTANT: case CORNU_OP_RESHAPE: case CORNU_OP_BROADCAST:
        return CORNU_CHOICE_NOTHING;
    case CORNU_OP_SCAN: return CORNU_CHOICE_SCAN;
    default: break;
    }
    if (cornu__kernel_for(host, program, op, NULL)) return CORNU_CHOICE_KERNEL;
    if (cornu__group_computes(host->vectors, program, op)) return CORNU_CHOICE_GROUP;
    if (cornu__widened_kernel_for(host, program, op)) return CORNU_CHOICE_WIDENED;
    return cornu__is_primitive(op->id, &op->attributes) ? CORNU_CHOICE_REFERENCE
                                                        : CORNU_CHOICE_DECOMPOSED;
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

static CornuStatus record(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context)
{
    switch (cornu__choice(context, rewrite->from, op)) {
    case CORNU_CHOICE_WIDENED:    return widen(rewrite, op);
    case CORNU_CHOICE_DECOMPOSED: return cornu__rewrite_decompose(rewrite, op);
    default:                      return cornu__rewrite_keep(rewrite, op);
    }
}

CornuProgram *cornu__decompose(const CornuHost *host, const CornuProgram *program)
{
    return cornu__pass_runs(CORNU_PASS_DECOMPOSE)
         ? cornu__rewrite_rounds(program, record, host) : cornu__rewrite_copy(program, false);
}
