/* One operator, by its rule. */
#include "onnx_internal.h"

#include <stdio.h>

static CornuLiteOnnxRule *rule_of(CornuLiteCode code)
{
    static const CornuLiteOnnxRow *const families[] = {
#define FAMILY(name) cornu__lite_onnx_##name,
#include "families.def"
#undef FAMILY
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const CornuLiteOnnxRow *row = families[i]; row->rule; row++)
            if (row->code == code) return row->rule;
    return NULL;
}

static bool takes_its_types(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    bool complex = false;
    for (int i = 0; i < op->in_count; i++)
        complex |= op->in[i] >= 0 && graph->tensors[op->in[i]].dtype == CORNU_LITE_COMPLEX64;
    for (int i = 0; i < op->out_count; i++)
        complex |= graph->tensors[op->out[i]].dtype == CORNU_LITE_COMPLEX64;
    return !complex || cornu__lite_takes_complex(op->code);
}

CornuStatus cornu__lite_put_operator(const CornuLiteOnnx *of, int i)
{
    const CornuLiteOperator *op = &of->graph->operators[i];
    const CornuLiteStepOnnx  step = { of, of->to, op };
    CornuLiteOnnxRule       *rule = rule_of(op->code);
    char                     name[250];
    if (!op->out_count)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has no result", cornu__lite_operator_name(op));
    snprintf(name, sizeof name, "%s of \"%.150s\"", cornu__lite_operator_name(op),
             of->graph->tensors[op->out[0]].name);
    if (!takes_its_types(of->graph, op))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: of complex numbers", name);
    if (!rule)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: no ONNX nodes in this version", name);
    if (of->to->label) of->to->label = of->graph->tensors[op->out[0]].name;
    const CornuStatus status = rule(&step);
    return status ? cornu__fail_prefix(status, name) : CORNU_OK;
}
