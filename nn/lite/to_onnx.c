/* A graph as an ONNX file: operators one by one, by their rules. */
#include "onnx_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "to_onnx.h"

enum { OPSET = 20 };   /* the first with Gelu */

static CornuLiteOnnxRule *rule_of(CornuLiteCode code)
{
    static const CornuLiteOnnxRow *const families[] = {
        cornu__lite_onnx_elementwise, cornu__lite_onnx_shapes, cornu__lite_onnx_windows,
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const CornuLiteOnnxRow *row = families[i]; row->rule; row++)
            if (row->code == code) return row->rule;
    return NULL;
}

/* ---- The graph ---- */

/* Types whose numbers the graph has as they are. */
static CornuStatus check_types(const CornuLiteGraph *graph)
{
    for (int i = 0; i < graph->tensor_count; i++) {
        const CornuLiteTensor *tensor = &graph->tensors[i];
        const bool             known = tensor->dtype == CORNU_LITE_F32 ||
                           tensor->dtype == CORNU_LITE_I32 || tensor->dtype == CORNU_LITE_I64 ||
                           tensor->dtype == CORNU_LITE_BOOL ||
                           (tensor->dtype == CORNU_LITE_F16 && tensor->data);
        if (!known || tensor->quantization.count)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is %s%s, expected a model "
                               "in f32", tensor->name,
                               tensor->quantization.count ? "quantized, " : "",
                               cornu__lite_dtype_name(tensor->dtype));
    }
    return CORNU_OK;
}

static CornuStatus add_operator(const CornuLiteOnnx *of, int i)
{
    const CornuLiteOperator *op = &of->graph->operators[i];
    const CornuLiteStepOnnx  step = { of, of->to, op };
    CornuLiteOnnxRule       *rule = rule_of(op->code);
    char                     name[250];
    if (!op->out_count)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has no result", cornu__lite_code_name(op->code));
    snprintf(name, sizeof name, "%s of \"%.150s\"", cornu__lite_code_name(op->code),
             of->graph->tensors[op->out[0]].name);
    if (!rule)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: not available in models in f32", name);
    of->to->label = of->graph->tensors[op->out[0]].name;
    const CornuStatus status = rule(&step);
    return status ? cornu__fail_prefix(status, name) : CORNU_OK;
}

/* Names of inputs and outputs, each unlike the others and those of values. */
typedef struct { char text[240]; } PortName;
static const char *port_name(PortName *name, const CornuLitePort *ports, int i, const char *more)
{
    int same = 0;
    for (int k = 0; k < i; k++) same += !strcmp(ports[k].name, ports[i].name);
    if (same) snprintf(name->text, sizeof name->text, "%.200s%s_%d", ports[i].name, more, same);
    else snprintf(name->text, sizeof name->text, "%.200s%s", ports[i].name, more);
    return name->text;
}

static CornuStatus put_graph(CornuOnnx *to, CornuMessage *message, const void *context)
{
    const CornuLiteGraph *graph = context;
    CornuLiteOnnx         of = { .to = to, .graph = graph };
    CornuStatus           status = CORNU_OK;
    PortName              name;
    of.values = cornu__allocate((size_t)graph->tensor_count, sizeof *of.values);
    if (!of.values) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->input_count; i++) {
        const CornuLitePort   *port = &graph->inputs[i];
        const CornuLiteTensor *tensor = &graph->tensors[port->tensor];
        const bool             whole = cornu__lite_onnx_dtype(tensor->dtype) == CORNU_I64;
        const int value = cornu__onnx_put_input(to, message, port_name(&name, graph->inputs, i, ""),
                                                whole ? CORNU_ONNX_INT32 : CORNU_ONNX_FLOAT,
                                                tensor->shape);
        of.values[port->tensor] = whole ? cast(to, value, CORNU_ONNX_INT64) : value;
    }
    for (int i = 0; i < graph->operator_count && !status; i++) status = add_operator(&of, i);
    to->label = NULL;
    for (int i = 0; i < graph->output_count && !status; i++) {
        const CornuLitePort   *port = &graph->outputs[i];
        const CornuLiteTensor *tensor = &graph->tensors[port->tensor];
        int                    value = of.values[port->tensor];
        if (cornu__lite_onnx_dtype(tensor->dtype) == CORNU_I64)
            value = cast(to, value, CORNU_ONNX_FLOAT);
        if (!value)
            status = cornu__fail(CORNU_ERR_UNSUPPORTED, "the output \"%s\" is a constant",
                                 port->name);
        else
            cornu__onnx_put_output(to, message, port_name(&name, graph->outputs, i, "_out"),
                                   CORNU_ONNX_FLOAT, tensor->shape, value);
    }
    cornu__release(of.values);
    return status;
}

CornuStatus cornu__lite_to_onnx(const CornuLiteGraph *graph, CornuMessage *file)
{
    CornuOnnx to = { .opset = OPSET };
    CORNU__TRY(check_types(graph));
    const CornuStatus status = cornu__onnx_put_file(&to, file, graph->name ? graph->name : "main",
                                                    put_graph, graph);
    cornu__onnx_free(&to);
    return status;
}
