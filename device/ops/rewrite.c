#include "rewrite.h"

#include "../memory_internal.h"
#include "build.h"

CornuStatus cornu__rewrite_begin(CornuRewrite *rewrite, const CornuProgram *from,
                                 bool one_shard)
{
    *rewrite = (CornuRewrite){ .from = from, .to = cornu_program_create(),
                               .one_shard = one_shard };
    rewrite->map = cornu__allocate((size_t)from->value_count, sizeof *rewrite->map);
    rewrite->in = cornu__allocate((size_t)from->operand_count, sizeof *rewrite->in);
    rewrite->in_type = cornu__allocate((size_t)from->operand_count, sizeof *rewrite->in_type);
    if (!rewrite->to) return cornu_error_take();
    if (!rewrite->map || !rewrite->in || !rewrite->in_type) return CORNU_ERR_MEMORY;
    for (int i = 0; i < from->value_count; i++) rewrite->map[i] = CORNU_NO_VALUE;
    for (int i = 0; i < from->input_count; i++) {
        const CornuValue value = from->inputs[i];
        CORNU__TRY(one_shard
                       ? cornu_program_input(rewrite->to, cornu_program_type(from, value),
                                             &rewrite->map[value])
                       : cornu_program_copy_input(rewrite->to, from, value, &rewrite->map[value]));
        if (from->values[value].fixed)
            cornu_program_fix_input(rewrite->to, rewrite->map[value]);
    }
    return CORNU_OK;
}

const CornuValue *cornu__rewrite_operands(CornuRewrite *rewrite, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(rewrite->from, op);
    for (int i = 0; i < op->in_count; i++) rewrite->in[i] = rewrite->map[in[i]];
    return rewrite->in;
}

CornuStatus cornu__rewrite_keep(CornuRewrite *rewrite, const CornuProgramOp *op)
{
    return cornu_program_record(rewrite->to, op->id, &op->attributes,
                                cornu__rewrite_operands(rewrite, op), op->in_count,
                                &rewrite->map[op->out_first]);
}

CornuStatus cornu__rewrite_decompose(CornuRewrite *rewrite, const CornuProgramOp *op)
{
    const CornuOpCall call = cornu_program_call(rewrite->from, op, rewrite->in_type);
    rewrite->decomposed = true;
    return cornu__op_rules(op->id)->decompose(rewrite->to, &call,
                                              cornu__rewrite_operands(rewrite, op),
                                              &rewrite->map[op->out_first]);
}

/* A program of the op alone, its operands as inputs: as it is, or decomposed. */
static CornuStatus isolate(CornuProgram *to, const CornuProgram *program,
                           const CornuProgramOp *op, bool decomposed)
{
    const CornuValue *operands = cornu_program_operands(program, op);
    CornuValue       *in = cornu__allocate((size_t)op->in_count, sizeof *in);
    CornuType        *types = cornu__allocate((size_t)op->in_count, sizeof *types);
    CornuValue        out[CORNU_MAX_OUTPUTS];
    CornuStatus       status = in && types ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; !status && i < op->in_count; i++)
        status = cornu_program_copy_input(to, program, operands[i], &in[i]);
    if (!status && decomposed) {
        const CornuOpCall call = cornu_program_call(program, op, types);
        status = cornu__op_rules(op->id)->decompose(to, &call, in, out);
    } else if (!status) {
        status = cornu_program_record(to, op->id, &op->attributes, in, op->in_count, out);
    }
    for (int i = 0; !status && i < op->out_count; i++)
        status = cornu_program_output(to, out[i], -1);
    cornu__release(in);
    cornu__release(types);
    return status;
}

CornuProgram *cornu__program_isolate(const CornuProgram *program, const CornuProgramOp *op,
                                     bool decomposed)
{
    CornuProgram *to = cornu_program_create();
    if (!to) return NULL;
    if (isolate(to, program, op, decomposed) == CORNU_OK) return to;
    cornu_program_free(to);
    return cornu__null();
}

/* One round; sets *decomposed if there is to be another. */
static CornuProgram *rewrite_once(const CornuProgram *program, CornuRewriteOp *record,
                                  const void *context, bool *decomposed)
{
    CornuRewrite rewrite;
    CornuStatus  status = cornu__rewrite_begin(&rewrite, program, false);
    for (int i = 0; i < program->op_count && status == CORNU_OK; i++) {
        status = cornu__program_follow(rewrite.to, &program->ops[i]);
        if (status == CORNU_OK) status = record(&rewrite, &program->ops[i], context);
    }
    *decomposed = rewrite.decomposed;
    return cornu__rewrite_end(&rewrite, status);
}

CornuProgram *cornu__rewrite_rounds(const CornuProgram *program, CornuRewriteOp *record,
                                    const void *context)
{
    bool          decomposed;
    CornuProgram *result = rewrite_once(program, record, context, &decomposed);
    while (result && decomposed) {
        CornuProgram *next = rewrite_once(result, record, context, &decomposed);
        cornu_program_free(result);
        result = next;
    }
    return result;
}

bool cornu__has_body(const CornuProgramOp *op)
{
    return cornu__op_rules(op->id)->decompose == CORNU_BODY &&
           !cornu__is_primitive(op->id, &op->attributes);
}

static CornuStatus record_body(CornuRewrite *rewrite, const CornuProgramOp *op,
                               const void *context)
{
    (void)context;
    return cornu__has_body(op) ? cornu__rewrite_decompose(rewrite, op)
                               : cornu__rewrite_keep(rewrite, op);
}

CornuProgram *cornu__rewrite_bodies(const CornuProgram *program)
{
    return cornu__rewrite_rounds(program, record_body, NULL);
}

CornuProgram *cornu__rewrite_copy(const CornuProgram *program, bool one_shard)
{
    CornuRewrite rewrite;
    CornuStatus  status = cornu__rewrite_begin(&rewrite, program, one_shard);
    for (int i = 0; i < program->op_count && status == CORNU_OK; i++) {
        status = cornu__program_follow(rewrite.to, &program->ops[i]);
        if (status == CORNU_OK) status = cornu__rewrite_keep(&rewrite, &program->ops[i]);
    }
    return cornu__rewrite_end(&rewrite, status);
}

/* The same value, of which every shard has its own: whichever shard it is, x is selected. */
static CornuValue for_every_shard(CornuProgram *program, CornuValue x, CornuStatus *status)
{
    CornuBuilder b = { program, CORNU_OK };
    CornuValue   shard = cornu__build(&b, CORNU_OP_REPLICA_ID, NULL, NULL, 0);
    CornuValue   any = cornu__build_compare(&b, shard, CORNU_GREATER_EQUAL,
                                            cornu__build_constant(&b, 0.0, shard));
    CornuValue   own = cornu__build_select(&b, cornu__build_like(&b, any, x), x, x);
    *status = b.status;
    return own;
}

CornuProgram *cornu__rewrite_end(CornuRewrite *rewrite, CornuStatus status)
{
    const CornuProgram *from = rewrite->from;
    CornuProgram       *to = rewrite->to;
    for (int i = 0; i < from->output_count && status == CORNU_OK; i++) {
        const CornuValue old = from->outputs[i].value;
        CornuValue       new = rewrite->map[old];
        if (!rewrite->one_shard && from->values[old].varies && !to->values[new].varies)
            new = for_every_shard(to, new, &status);
        if (status == CORNU_OK) status = cornu_program_output(to, new, from->outputs[i].alias);
    }
    cornu__release(rewrite->map);
    cornu__release(rewrite->in);
    cornu__release(rewrite->in_type);
    if (status == CORNU_OK) return rewrite->to;
    cornu_program_free(rewrite->to);
    return NULL;
}
