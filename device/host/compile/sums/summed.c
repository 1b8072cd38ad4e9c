/* summed: which sums over shards are made with the products, or the gradients of lookups, that they
 * add up. */
#include "../passes.h"

static bool is_read_once(const CornuProgram *program, CornuValue value)
{
    int reads = 0;
    for (int i = 0; i < program->operand_count; i++) reads += program->operands[i] == value;
    for (int i = 0; i < program->output_count; i++) reads += program->outputs[i].value == value;
    return reads == 1;
}

const CornuKernel *cornu__summed_kernel_for(const CornuHost *host, const CornuProgram *program,
                                            CornuValue value)
{
    const int             made = program->values[value].op;
    const CornuProgramOp *op = made < 0 ? NULL : &program->ops[made];
    if (!op || host->shards < 2 ||
        cornu_process_count(host->processes) > 1 || !cornu__pass_runs(CORNU_PASS_SUMMED))
        return NULL;
    for (int k = 0; k < op->in_count; k++)
        if (!program->values[cornu_program_operands(program, op)[k]].varies) return NULL;
    const CornuKernel *kernel = cornu__kernel_for(host, program, op, NULL);
    if (!kernel || !kernel->summed) return NULL;
    CornuType          types[CORNU_MAX_INPUTS];
    const CornuOpCall  call = cornu_program_call(program, op, types);
    const CornuType    out_type = cornu_program_type(program, value);
    const CornuQuery   q = { &call, &out_type, cornu__machine(host), NULL, 0 };
    return kernel->summed->declines(&q).needs ||
           !is_read_once(program, value) ? NULL : kernel->summed;
}
