/* Graphs that become bodies of ops, and bodies that are recorded in a graph. */
#include "../graph_internal.h"

CornuStatus cornu__graph_close(CornuGraph *template, int in_count, CornuTensor *const *out,
                               int out_count, const char *who, const char *where)
{
    if (template->input_count != in_count || template->assignment_count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s reads or assigns a variable; expected it "
                           "among the %s", who, where);
    for (int i = 0; i < out_count; i++)
        CORNU__TRY(cornu_program_output(template->program, out[i]->value, -1));
    return CORNU_OK;
}

bool cornu__record_body(CornuGraph *graph, const CornuProgram *body, CornuTensor *const *in,
                        CornuTensor **out)
{
    CornuTensor **value = cornu__allocate((size_t)body->value_count, sizeof(CornuTensor *));
    CornuTensor **operand = cornu__allocate((size_t)body->operand_count, sizeof(CornuTensor *));
    bool          done = value && operand;
    if (!done) cornu__null();
    for (int i = 0; done && i < body->input_count; i++) value[body->inputs[i]] = in[i];
    for (int i = 0; done && i < body->op_count; i++) {
        const CornuProgramOp *op = &body->ops[i];
        for (int k = 0; k < op->in_count; k++)
            operand[k] = value[cornu_program_operands(body, op)[k]];
        CornuTensor **made = &value[op->out_first];
        if (op->in_count == 0) made[0] = cornu__record0(graph, op->id, &op->attributes);
        else cornu__record(op->id, &op->attributes, operand, op->in_count, made);
        done = made[0] != NULL;
    }
    for (int i = 0; done && i < body->output_count; i++) out[i] = value[body->outputs[i].value];
    cornu__release(value);
    cornu__release(operand);
    return done;
}
