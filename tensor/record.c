/* Recording ops, and what gradient rules share. */
#include "graph_internal.h"

#include <limits.h>

static CornuTensor *record_op(CornuGraph *graph, CornuOpId id, const CornuAttributes *attributes,
                              const CornuValue *in, int count, CornuTensor **out)
{
    CornuValue values[CORNU_MAX_OUTPUTS];
    if (graph->op_limit && graph->program->op_count >= graph->op_limit)
        return cornu__fail_null(CORNU_ERR_MEMORY, "the graph has %d ops, as many as it may have",
                                graph->op_limit);
    if (cornu_program_record(graph->program, id, attributes, in, count, values))
        return cornu__null();
    const int out_count = cornu__result_count(id, attributes);
    for (int i = 0; i < out_count; i++)
        if (!(out[i] = cornu__tensor(graph, values[i]))) return NULL;
    return out[0];
}

int cornu__graph_limit(CornuGraph *graph, const int *budget)
{
    const int before = graph ? graph->program->op_count : 0;
    if (graph && budget)
        graph->op_limit = *budget > 0 && *budget < INT_MAX - before ? before + *budget : before + 1;
    return before;
}

void cornu__graph_spend(CornuGraph *graph, int *budget, int before)
{
    if (!graph || !budget) return;
    *budget -= graph->program->op_count - before;
    graph->op_limit = 0;
}

CornuTensor *cornu__record(CornuOpId id, const CornuAttributes *attributes,
                           CornuTensor *const *in, int count, CornuTensor **out)
{
    enum { USUAL = 8 };
    CornuValue  usual[USUAL], *values = usual;
    CornuGraph *graph = count > 0 && in[0] ? in[0]->graph : NULL;
    for (int i = 0; i < count; i++) {
        if (!in[i])
            return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand %d is NULL",
                                    cornu__called(id, attributes), i);
        if (in[i]->graph != graph)
            return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                    "%s: operands 0 and %d belong to different graphs",
                                    cornu__called(id, attributes), i);
    }
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: expected at least one operand",
                                cornu__called(id, attributes));
    if (count > USUAL && !(values = cornu__allocate((size_t)count, sizeof *values)))
        return cornu__null();
    for (int i = 0; i < count; i++) values[i] = in[i]->value;
    CornuTensor *result = record_op(graph, id, attributes, values, count, out);
    if (values != usual) cornu__release(values);
    return result;
}

CornuTensor *cornu__record0(CornuGraph *graph, CornuOpId id, const CornuAttributes *attributes)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: no graph given", cornu_op_name(id));
    return record_op(graph, id, attributes, NULL, 0, out);
}

CornuTensor *cornu__record1(CornuOpId id, CornuTensor *x)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, NULL, &x, 1, out);
}

CornuTensor *cornu__record2(CornuOpId id, CornuTensor *a, CornuTensor *b)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, NULL, (CornuTensor *[]){ a, b }, 2, out);
}

CornuAttributes cornu__shape_attributes(CornuShape shape)
{
    CornuAttributes attributes = { .shape = { .rank = shape.rank } };
    for (int i = 0; i < shape.rank && i < CORNU_MAX_RANK; i++)
        attributes.shape.extents[i] = shape.extent[i];
    return attributes;
}

/* ---- Gradient rules ---- */

CornuDtype cornu__gradient_dtype(const CornuTensor *x)
{
    const CornuProgram *program = x->graph->program;
    const CornuDtype    own = cornu_tensor_type(x).dtype;
    const int           maker = program->values[x->value].op;
    if (maker < 0 || program->ops[maker].id != CORNU_OP_CONVERT) return own;
    const CornuValue from = cornu_program_operands(program, &program->ops[maker])[0];
    const bool       narrowed = own == CORNU_BF16;
    return narrowed && cornu_program_type(program, from).dtype == CORNU_F32 ? CORNU_F32 : own;
}

void cornu__no_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    (void)op, (void)d_y, (void)d_x;
}

void cornu__gradient_of_decomposition(const CornuRecorded *op, CornuTensor *const *d_y,
                                      CornuTensor **d_x)
{
    /* Not reached: cornu__rewrite has replaced the op with its decomposition. */
    (void)d_y, (void)d_x;
    cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: its decomposition was not recorded",
                     cornu_op_name(op->id));
}
