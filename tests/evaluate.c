#include "evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 64 };

static CornuStatus run(const CornuProgram *program, const CornuProgramOp *op, double **value)
{
    const CornuValue *operands = cornu_program_operands(program, op);
    CornuType         in_type[MOST_OPERANDS], out_type[CORNU_MAX_OUTPUTS];
    const double     *in[MOST_OPERANDS];
    double           *out[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < op->in_count; i++) in[i] = value[operands[i]];
    for (int i = 0; i < op->out_count; i++) {
        out[i] = value[op->out_first + i];
        out_type[i] = cornu_program_type(program, op->out_first + i);
    }
    return cornu__op_reference(&(CornuReferenceCall){
        .op = cornu_program_call(program, op, in_type),
        .in = in, .out = out, .out_type = out_type, .count = cornu_type_count(out_type[0]),
    });
}

Evaluation evaluate(const CornuProgram *program, const double *const *inputs)
{
    Evaluation e = {
        .count = program->value_count,
        .value = calloc((size_t)program->value_count + 1, sizeof *e.value),
    };
    for (int v = 0; v < e.count; v++) {
        const CornuProgramValue *at = &program->values[v];
        size_t count = (size_t)cornu_type_count(at->type);
        e.value[v] = calloc(count + 1, sizeof(double));
        if (at->op < 0) memcpy(e.value[v], inputs[at->index], count * sizeof(double));
    }
    for (int i = 0; i < program->op_count && e.status == CORNU_OK; i++)
        e.status = run(program, &program->ops[i], e.value);
    return e;
}

void evaluation_free(Evaluation *evaluation)
{
    for (int v = 0; v < evaluation->count; v++) free(evaluation->value[v]);
    free(evaluation->value);
}

bool is_near(double a, double b, double near, double scale)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= near * scale;
}
