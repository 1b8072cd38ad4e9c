/* A program as a module of StableHLO: its inputs, its ops one after the other, its outputs. */
#include <string.h>

#include "../../memory_internal.h"
#include "lower.h"

/* Whether the output replaces the buffer of its input. The same value may be returned twice, but
 * only one result can take over an argument's memory. */
static int alias_of(const CornuProgram *program, int input)
{
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].alias == input) return i;
    return -1;
}

static void write_argument(CornuEmitter *e, const CornuProgram *program, int i, CornuName name)
{
    const int alias = alias_of(program, i);
    cornu__write(e, "%s%%%d: ", i ? ", " : "", name);
    cornu__write_type(e, cornu__hlo_of(e, name));
    if (alias >= 0) cornu__write(e, " {tf.aliasing_output = %d : i32}", alias);
}

/* An operand of an op that the program keeps apart stands behind a barrier, so that XLA keeps the
 * op apart, too, unless it comes from others of the same number. */
static CornuName set_apart(CornuEmitter *e, const CornuProgram *program, int apart,
                           CornuValue value, CornuName x)
{
    const int from = program->values[value].op;
    if (from >= 0 && program->ops[from].apart == apart) return x;
    const CornuName same = cornu__begin(e, "optimization_barrier", cornu__hlo_of(e, x), &x, 1);
    cornu__end(e, same, &x, 1);
    return same;
}

static void emit_op(CornuEmitter *e, const CornuProgram *program, const CornuProgramOp *op,
                    CornuName *names, CornuName *in, CornuType *in_type)
{
    const CornuOpCall call = cornu_program_call(program, op, in_type);
    CornuType         out_type[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < op->in_count; i++)
        in[i] = names[cornu_program_operands(program, op)[i]];
    for (int i = 0; i < op->in_count && op->apart; i++)
        in[i] = set_apart(e, program, op->apart, cornu_program_operands(program, op)[i], in[i]);
    for (int i = 0; i < op->out_count; i++)
        out_type[i] = cornu_program_type(program, op->out_first + i);
    (*(*e->table)[op->id])(e, &(CornuEmitCall){ call, in, out_type, names + op->out_first,
                                                program, op });
}

void cornu__emit_program(CornuEmitter *e, const CornuProgram *recorded, const CornuName *in,
                         CornuName *out)
{
    if (e->status != CORNU_OK) return;
    CornuProgram *program = cornu__lower(recorded, e->table);
    const size_t  values = program ? (size_t)program->value_count : 0;
    const size_t  operands = program ? (size_t)program->operand_count : 0;
    CornuName    *names = cornu__allocate(values, sizeof *names);
    CornuName    *op_in = cornu__allocate(operands, sizeof *op_in);
    CornuType    *in_type = cornu__allocate(operands, sizeof *in_type);
    if (!program || !names || !op_in || !in_type) e->status = CORNU_ERR_MEMORY;
    for (int i = 0; e->status == CORNU_OK && i < program->input_count; i++)
        names[program->inputs[i]] = in[i];
    for (int i = 0; e->status == CORNU_OK && i < program->op_count; i++)
        emit_op(e, program, &program->ops[i], names, op_in, in_type);
    for (int i = 0; e->status == CORNU_OK && i < program->output_count; i++)
        out[i] = names[program->outputs[i].value];
    cornu__release(in_type);
    cornu__release(op_in);
    cornu__release(names);
    cornu_program_free(program);
}

/* i64 (checks, 2), of all checks. */
static int write_checks(CornuEmitter *e, CornuName *out)
{
    const int count = e->module->check_count;
    if (count == 0 || e->status != CORNU_OK) return 0;
    *out = cornu__hlo_concat(e, e->failed, count, 0);
    return 1;
}

CornuType cornu__hlo_stacked(CornuType type, int axis, int64_t steps)
{
    for (int i = type.shape.rank++; i > axis; i--)
        type.shape.extent[i] = type.shape.extent[i - 1];
    type.shape.extent[axis] = steps;
    return type;
}

static CornuHloType type_of_argument(const CornuProgram *program, const CornuModuleLoop *loop,
                                     int i)
{
    const CornuType type = cornu_program_type(program, program->inputs[i]);
    return cornu__hlo_type(loop && loop->is_stacked[i] ? cornu__hlo_stacked(type, 0, loop->steps)
                                                       : type);
}

static void emit_steps(CornuEmitter *e, const CornuProgram *program, const CornuModuleLoop *loop,
                       const CornuName *in, CornuName *out)
{
    int *carried = cornu__allocate((size_t)program->output_count, sizeof *carried);
    if (!carried) e->status = CORNU_ERR_MEMORY;
    for (int i = 0; carried && i < program->output_count; i++)
        carried[i] = program->outputs[i].alias;
    if (e->status == CORNU_OK)
        cornu__hlo_loop(e, &(CornuHloLoop){
            .body = program, .steps = loop->steps, .is_sliced = loop->is_stacked,
            .carried = carried, .numbers_steps = true }, in, out);
    cornu__release(carried);
}

static void write_module(CornuEmitter *e, const CornuProgram *program,
                         const CornuModuleLoop *loop, CornuName *in, CornuName *out)
{
    cornu__write(e, "module @step attributes {mhlo.num_partitions = 1 : i32, "
                 "mhlo.num_replicas = %d : i32} {\n", e->target.shards);
    e->depth++;
    cornu__write(e, "func.func public @main(");
    for (int i = 0; i < program->input_count; i++) {
        in[i] = cornu__name(e, type_of_argument(program, loop, i));
        write_argument(e, program, i, in[i]);
    }
    cornu__write(e, ") -> (");
    for (int i = 0; i < program->output_count; i++) {
        if (i) cornu__write(e, ", ");
        cornu__write_type(e, cornu__hlo_type(cornu_program_type(program,
                                                                program->outputs[i].value)));
    }
    /* How many checks there are is known once the ops are written: the place is filled then. */
    const size_t place = e->module->size;
    cornu__write(e, "%40s) {\n", "");
    e->depth++;
    if (loop) emit_steps(e, program, loop, in, out);
    else cornu__emit_program(e, program, in, out);
    const int more = write_checks(e, &out[program->output_count]);
    cornu__write_return(e, "func.return", out, program->output_count + more);
    e->depth--;
    cornu__write(e, "}\n");
    e->depth--;
    cornu__write(e, "}\n");
    if (e->status != CORNU_OK || !more) return;
    char      type[41];
    const int length = snprintf(type, sizeof type, "%stensor<%dx2xi64>",
                                program->output_count ? ", " : "", e->module->check_count);
    memcpy(e->module->text + place, type, (size_t)length);
}

CornuStatus cornu__module_emit(CornuModule *module, const CornuProgram *program,
                               CornuTarget target, const CornuModuleLoop *loop)
{
    CornuEmitter e = { .module = module, .table = &cornu__emit_table, .target = target };
    CornuName   *in = cornu__allocate((size_t)program->input_count, sizeof *in);
    CornuName   *out = cornu__allocate((size_t)program->output_count + 1, sizeof *out);
    *module = (CornuModule){ .steps = loop ? loop->steps : 1 };
    if (!in || !out) e.status = CORNU_ERR_MEMORY;
    write_module(&e, program, loop, in, out);
    cornu__release(out);
    cornu__release(in);
    cornu__release(e.types);
    cornu__release(e.failed);
    return e.status;
}

void cornu__module_free(CornuModule *module)
{
    cornu__release(module->text);
    cornu__release(module->checks);
    *module = (CornuModule){ 0 };
}
