/* One operator, by its row. */
#include "onnx_internal.h"

#include <stdio.h>

static bool is_end(const CornuLiteOnnxRow *row)
{
    return !row->each && !row->whole && !row->value && !row->rule;
}

static const CornuLiteOnnxRow *row_of(CornuLiteCode code)
{
    static const CornuLiteOnnxRow *const families[] = {
#define FAMILY(name) cornu__lite_onnx_##name,
#include "families.def"
#undef FAMILY
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const CornuLiteOnnxRow *row = families[i]; !is_end(row); row++)
            if (row->code == code) return row;
    return NULL;
}

static bool has_complex(const CornuLiteGraph *graph, const int *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (tensors[i] >= 0 && graph->tensors[tensors[i]].dtype == CORNU_LITE_COMPLEX64)
            return true;
    return false;
}

static CornuStatus put(const CornuLiteStepOnnx *step)
{
    const CornuLiteOnnxRow *row = step->row;
    const CornuLiteTensor  *first = cornu__lite_operand(step, 0);
    int                     x[CORNU_LITE_ONNX_VALUES];
    CORNU__TRY(cornu__lite_expect(step, row->operands));
    if (row->rank && first && first->shape.rank != row->rank)
        return cornu__fail(CORNU_ERR_FORMAT, "its operand has rank %d, expected %d",
                           first->shape.rank, row->rank);
    if (row->rule) return row->rule(step);
    for (int i = 0; i < row->operands; i++) x[i] = cornu__lite_value(step, i);
    return cornu__lite_give(step,
        row->value  ? row->value(step, x)
        : row->each ? cornu__onnx_elementwise(step->to, row->each, x, row->operands, NULL, 0)
                    : cornu__onnx_node(step->to, row->whole, x, row->operands, NULL, 0, 1));
}

CornuStatus cornu__lite_put_operator(const CornuLiteOnnx *of, int i)
{
    const CornuLiteGraph    *graph = of->graph;
    const CornuLiteOperator *op = &graph->operators[i];
    const CornuLiteStepOnnx  step = { of, of->to, op, row_of(op->code) };
    char                     name[250];
    if (!op->out_count)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has no result", cornu__lite_operator_name(op));
    snprintf(name, sizeof name, "%s of \"%.150s\"", cornu__lite_operator_name(op),
             graph->tensors[op->out[0]].name);
    if (!(step.row && step.row->complex) && (has_complex(graph, op->in, op->in_count) ||
                                             has_complex(graph, op->out, op->out_count)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: of complex numbers", name);
    if (!step.row)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: no ONNX nodes in this version", name);
    if (of->to->label) of->to->label = graph->tensors[op->out[0]].name;
    const CornuStatus status = put(&step);
    return status ? cornu__fail_prefix(status, name) : CORNU_OK;
}
