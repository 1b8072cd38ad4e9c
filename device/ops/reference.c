/* Programs run by the reference kernels of their ops, one after the other. */
#include "rules.h"

int cornu__most_operands(const CornuProgram *program)
{
    int most = 1;
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].in_count > most) most = program->ops[i].in_count;
    return most;
}

CornuStatus cornu__reference_program_op(const CornuProgram *program, const CornuProgramOp *op,
                                        double *const *value, const double **in,
                                        CornuType *in_type)
{
    const CornuValue *operands = cornu_program_operands(program, op);
    double           *out[CORNU_MAX_OUTPUTS];
    CornuType         out_type[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < op->in_count; i++) in[i] = value[operands[i]];
    for (int i = 0; i < op->out_count; i++) {
        out[i] = value[op->out_first + i];
        out_type[i] = cornu_program_type(program, op->out_first + i);
    }
    CornuStatus status = program->rules[op->id]->reference(&(CornuReferenceCall){
        .op = cornu_program_call(program, op, in_type),
        .in = in, .out = out, .out_type = out_type,
        .count = cornu_type_count(out_type[0]),
    });
    status = cornu__fail_prefix(status, cornu_program_op_name(op));
    return *op->scope ? cornu__fail_prefix(status, op->scope) : status;
}

CornuStatus cornu__reference_program(const CornuProgram *program, double *const *value,
                                     const double **in, CornuType *in_type)
{
    for (int i = 0; i < program->op_count; i++)
        CORNU__TRY(cornu__reference_program_op(program, &program->ops[i], value, in, in_type));
    return CORNU_OK;
}
