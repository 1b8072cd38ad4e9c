/*
 * Rematerialization: the backward pass records the ops of a part of the graph once more and reads
 * their results, so that those of the forward pass need not be kept.
 *
 * What the part reads and does not make is kept, as its inputs. The ops that are recorded again
 * are kept apart from their equals (device/program_internal.h), which are computed already. What is
 * made of variables and constants alone, such as a weight in bf16, is kept like these, and a
 * result that the backward pass reads already, as the input of what follows, too.
 *
 * Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174.
 */
#include <stdio.h>
#include <string.h>

#include "../graph_internal.h"
#include "remat_internal.h"

void cornu_graph_remat_begin(CornuGraph *graph)
{
    if (graph && graph->remat_depth++ == 0) graph->program->remat = ++graph->remat_count;
}

void cornu_graph_remat_end(CornuGraph *graph)
{
    if (graph && graph->remat_depth > 0 && --graph->remat_depth == 0) graph->program->remat = 0;
}

/* Whether the value is made of variables of floats and constants alone. */
static void find_parameters(CornuRemat *r)
{
    const CornuProgram *program = r->graph->program;
    for (int i = 0; i < program->input_count; i++)
        r->parameter[program->inputs[i]] =
            r->graph->inputs[i].variable &&
            cornu_dtype_is_float(cornu_program_type(program, program->inputs[i]).dtype);
    for (int i = 0; i < r->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        bool                  all = true;
        for (int k = 0; k < op->in_count; k++)
            all &= r->parameter[cornu_program_operands(program, op)[k]];
        for (int k = 0; k < op->out_count; k++) r->parameter[op->out_first + k] = all;
    }
}

CornuStatus cornu__remat_open(CornuRemat *r, CornuGraph *graph, CornuTensor *const *d)
{
    const CornuProgram *program = graph->program;
    const size_t        values = (size_t)program->value_count;
    *r = (CornuRemat){ .graph = graph, .d = d, .op_count = program->op_count,
                       .value_count = program->value_count };
    if (graph->remat_count == 0) return CORNU_OK;
    r->again = cornu__allocate(values, sizeof *r->again);
    r->parameter = cornu__allocate(values, sizeof *r->parameter);
    r->first = cornu__allocate((size_t)graph->remat_count + 1, sizeof *r->first);
    if (!r->again || !r->parameter || !r->first)
        return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < values; i++) r->again[i] = CORNU_NO_VALUE;
    for (int i = r->op_count - 1; i >= 0; i--) r->first[program->ops[i].remat] = i;
    find_parameters(r);
    return CORNU_OK;
}

void cornu__remat_close(CornuRemat *r)
{
    cornu__release(r->again);
    cornu__release(r->parameter);
    cornu__release(r->first);
}

/* read[v]: what the backward pass has recorded so far, and needs, reads value v. */
static void find_read(const CornuRemat *r, bool *read)
{
    const CornuProgram *program = r->graph->program;
    for (int i = 0; i < r->value_count; i++)
        if (r->d[i]) read[r->d[i]->value] = true;
    for (int i = program->op_count - 1; i >= r->op_count; i--) {
        const CornuProgramOp *op = &program->ops[i];
        bool                  needed = false;
        for (int k = 0; k < op->out_count; k++) needed |= read[op->out_first + k];
        for (int k = 0; k < op->in_count && needed; k++)
            read[cornu_program_operands(program, op)[k]] = true;
    }
}

/* Computed again a value has the layout that the mesh gives it. */
static CornuStatus lay_again(CornuRemat *r, CornuValue value)
{
    CornuGraph *graph = r->graph;
    for (int i = 0, count = graph->laid_count; i < count; i++) {
        if (graph->laid[i].tensor->value != value) continue;
        CornuTensor *again = cornu__tensor(graph, r->again[value]);
        if (!again) return cornu_error_status();
        CORNU__TRY(cornu__tensor_lay(again, graph->laid[i].layout));
    }
    return CORNU_OK;
}

static CornuStatus record_again(CornuRemat *r, int i, const bool *read)
{
    enum { USUAL = 8 };
    CornuProgram        *program = r->graph->program;
    const CornuProgramOp op = program->ops[i];   /* a copy: recording moves the program's arrays */
    CornuValue           usual[USUAL], *in = usual, out[CORNU_MAX_OUTPUTS];
    CornuStatus          status = CORNU_OK;
    char                 scope[128];
    bool                 needed = false;
    for (int k = 0; k < op.out_count; k++)
        needed |= !read[op.out_first + k] && !r->parameter[op.out_first + k];
    if (!needed) return CORNU_OK;
    if (op.in_count > USUAL && !(in = cornu__allocate((size_t)op.in_count, sizeof *in)))
        return CORNU_ERR_MEMORY;
    snprintf(scope, sizeof scope, "%s%sremat", op.scope, *op.scope ? "/" : "");
    status = cornu_graph_scope(r->graph, scope);
    cornu__program_apart(program, op.remat);
    for (int k = 0; k < op.in_count; k++)
        in[k] = cornu__remat_value(r, cornu_program_operands(program, &op)[k]);
    if (!status)
        status = cornu_program_record(program, op.id, &op.attributes, in, op.in_count, out);
    cornu__program_apart(program, 0);
    for (int k = 0; k < op.out_count && !status; k++)
        if (!read[op.out_first + k]) {
            r->again[op.out_first + k] = out[k];
            status = lay_again(r, op.out_first + k);
        }
    if (in != usual) cornu__release(in);
    return status;
}

CornuStatus cornu__remat_reach(CornuRemat *r, int op)
{
    const int part = r->graph->program->ops[op].remat;
    if (part == 0 || r->first[part] < 0) return CORNU_OK;
    bool *read = cornu__allocate((size_t)r->graph->program->value_count, sizeof *read);
    if (!read) return CORNU_ERR_MEMORY;
    find_read(r, read);
    CornuStatus status = CORNU_OK;
    for (int i = r->first[part]; i <= op && !status; i++)
        if (r->graph->program->ops[i].remat == part) status = record_again(r, i, read);
    r->first[part] = -1;   /* done */
    cornu__release(read);
    return status;
}

CornuValue cornu__remat_value(const CornuRemat *r, CornuValue value)
{
    return r->again && r->again[value] != CORNU_NO_VALUE ? r->again[value] : value;
}
