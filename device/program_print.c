/* What a program costs and how it reads. */
#include "ops/rules.h"
#include "program_internal.h"

int64_t cornu__program_op_flops(const CornuProgram *program, const CornuProgramOp *op)
{
    CornuType types[CORNU_MAX_INPUTS];
    if (op->in_count > CORNU_MAX_INPUTS) return 0;   /* a concat only moves data */
    const CornuOpCall call = cornu_program_call(program, op, types);
    return program->rules[op->id]->flops(&call);
}

int64_t cornu_program_flops(const CornuProgram *program)
{
    int64_t sum = 0;
    for (int i = 0; i < program->op_count; i++) {
        const int64_t flops = cornu__program_op_flops(program, &program->ops[i]);
        sum = sum > INT64_MAX - flops ? INT64_MAX : sum + flops;
    }
    return sum;
}

static void print_indented(const CornuProgram *program, int indent, FILE *to);

static void print_input(const CornuProgram *program, int i, int indent, FILE *to)
{
    CornuText type;
    fprintf(to, "%*s%%%d = input %d : %s%s\n", indent, "", (int)program->inputs[i], i,
            cornu_type_print(&type, cornu_program_type(program, program->inputs[i])),
            program->values[program->inputs[i]].varies ? " per shard" : "");
}

static void print_op(const CornuProgram *program, const CornuProgramOp *op, int indent, FILE *to)
{
    CornuText type;
    fprintf(to, "%*s", indent, "");
    for (int i = 0; i < op->out_count; i++)
        fprintf(to, "%s%%%d", i ? ", " : "", (int)op->out_first + i);
    fprintf(to, " = %s(", cornu_program_op_name(op));
    const CornuValue *operands = cornu_program_operands(program, op);
    for (int i = 0; i < op->in_count; i++)
        fprintf(to, "%s%%%d", i ? ", " : "", (int)operands[i]);

    char attributes[1024 + 6 * CORNU_MAX_SHARDS];   /* a list of shards is the longest */
    cornu__attributes_print(op->id, &op->attributes, attributes, sizeof attributes);
    fprintf(to, ")%s%s", *attributes ? " " : "", attributes);
    if (op->apart) fprintf(to, " apart=%d", op->apart);
    fprintf(to, " : ");
    for (int i = 0; i < op->out_count; i++)
        fprintf(to, "%s%s", i ? ", " : "",
                cornu_type_print(&type, cornu_program_type(program, op->out_first + i)));
    fprintf(to, "%s%s\n", *op->scope ? "    " : "", op->scope);
    const CornuProgram *body = cornu__attributes_program(op->id, &op->attributes);
    if (body) print_indented(body, indent + 4, to);
}

/* Inputs may be declared between ops: a line appears where its first value was made. */
static void print_indented(const CornuProgram *program, int indent, FILE *to)
{
    for (CornuValue value = 0; value < program->value_count; value++) {
        const CornuProgramValue *at = &program->values[value];
        if (at->op < 0) print_input(program, at->index, indent, to);
        else if (at->index == 0) print_op(program, &program->ops[at->op], indent, to);
    }
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        fprintf(to, "%*soutput %d = %%%d", indent, "", i, (int)output->value);
        if (output->alias >= 0) fprintf(to, " into input %d", output->alias);
        fputc('\n', to);
    }
}

void cornu_program_print(const CornuProgram *program, FILE *to) { print_indented(program, 0, to); }
