/* A graph as an ONNX file. */
#include "onnx_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../device/files/file_internal.h"
#include "to_onnx.h"

/* ---- The graph ---- */

/* Types that the graph's values can have; tensors that nothing uses may have any. */
static CornuStatus check_type(const CornuLiteTensor *tensor)
{
    const bool plain = tensor->dtype == CORNU_LITE_F32 || tensor->dtype == CORNU_LITE_I32 ||
                       tensor->dtype == CORNU_LITE_I64 || tensor->dtype == CORNU_LITE_BOOL ||
                       tensor->dtype == CORNU_LITE_COMPLEX64 ||
                       (tensor->dtype == CORNU_LITE_F16 && tensor->data);
    if (cornu__lite_onnx_quantized(tensor) || (plain && !tensor->quantization.count))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is %s, with %d scales",
                       tensor->name, cornu__lite_dtype_name(tensor->dtype),
                       tensor->quantization.count);
}

static CornuStatus check_types(const CornuLiteGraph *graph)
{
    for (int i = 0; i < graph->input_count; i++)
        CORNU__TRY(check_type(&graph->tensors[graph->inputs[i].tensor]));
    for (int i = 0; i < graph->operator_count; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        for (int k = 0; k < op->in_count; k++)
            if (op->in[k] >= 0) CORNU__TRY(check_type(&graph->tensors[op->in[k]]));
        for (int k = 0; k < op->out_count; k++)
            CORNU__TRY(check_type(&graph->tensors[op->out[k]]));
    }
    return CORNU_OK;
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

/* States are of one row: the shape that LiteRT takes unless told otherwise. */
static CornuShape input_shape(const CornuLiteGraph *graph, const CornuLiteTensor *tensor)
{
    CornuShape shape = tensor->shape;
    for (int i = 0; i < shape.rank && graph->variable_count; i++)
        if (shape.extent[i] == CORNU_NONE) shape.extent[i] = 1;
    return shape;
}

static void put_input(const CornuLiteOnnx *of, CornuMessage *message, int i)
{
    const CornuLitePort   *port = &of->graph->inputs[i];
    const CornuLiteTensor *tensor = &of->graph->tensors[port->tensor];
    PortName               name;
    const bool             narrow = cornu__lite_onnx_quantized(tensor) && of->loads;
    const int value = cornu__onnx_put_input(of->to, message,
                                            port_name(&name, of->graph->inputs, i, ""),
                                            narrow ? CORNU_ONNX_FLOAT
                                                   : cornu__lite_onnx_stored(tensor->dtype),
                                            input_shape(of->graph, tensor));
    if (narrow) of->quantized[port->tensor] = value;
    of->values[port->tensor] = cornu__lite_onnx_quantized(tensor)
        ? cornu__lite_dequantize(of, tensor, value)
        : cornu__lite_onnx_dtype(tensor->dtype) == CORNU_I64
        ? cast(of->to, value, CORNU_ONNX_INT64) : value;
}

/* Whole numbers as f32, which they are between layers; quantized ones as they are stored. */
static CornuStatus put_output(const CornuLiteOnnx *of, CornuMessage *message, int i)
{
    const CornuLitePort   *port = &of->graph->outputs[i];
    const CornuLiteTensor *tensor = &of->graph->tensors[port->tensor];
    const bool             stored = cornu__lite_onnx_quantized(tensor);
    int                    value = of->values[port->tensor];
    PortName               name;
    if (of->to->nodes.failed) return CORNU_ERR_MEMORY;
    if (!value)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the output \"%s\" is a constant", port->name);
    if (stored)
        value = of->quantized[port->tensor] != CORNU_ONNX_NONE
                    ? of->quantized[port->tensor] : cornu__lite_quantize(of, tensor, value);
    else if (cornu__lite_onnx_dtype(tensor->dtype) == CORNU_I64)
        value = cast(of->to, value, CORNU_ONNX_FLOAT);
    cornu__onnx_put_output(of->to, message, port_name(&name, of->graph->outputs, i, "_out"),
                           stored && !of->loads ? cornu__lite_onnx_stored(tensor->dtype)
                                                : CORNU_ONNX_FLOAT,
                           tensor->shape, value);
    return CORNU_OK;
}

static CornuStatus put_graph(CornuOnnx *to, CornuMessage *message, const void *context)
{
    const CornuLiteGraph *graph = context;
    const size_t          count = (size_t)graph->tensor_count;
    CornuLiteOnnx         of = { .to = to, .graph = graph, .loads = to->label != NULL };
    of.values = cornu__allocate(count, sizeof *of.values);
    of.quantized = cornu__allocate(count, sizeof *of.quantized);
    CornuStatus status = of.values && of.quantized ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->input_count && !status; i++) put_input(&of, message, i);
    if (!status) status = cornu__lite_put_operators(&of);
    if (to->label) to->label = "";
    for (int i = 0; i < graph->output_count && !status; i++)
        status = put_output(&of, message, i);
    cornu__release(of.values);
    cornu__release(of.quantized);
    return status;
}

/* Gelu is an operator from 20 on; others read files of 18. */
static int opset_for(const CornuLiteGraph *graph)
{
    for (int i = 0; i < graph->operator_count; i++)
        if (graph->operators[i].code == CORNU_LITE_GELU) return 20;
    return 18;
}

CornuStatus cornu__lite_to_onnx(const CornuLiteGraph *graph, bool named, CornuMessage *file)
{
    CornuOnnx to = { .opset = opset_for(graph), .label = named ? "" : NULL };
    CORNU__TRY(check_types(graph));
    if (graph->variable_count && !named)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the graph has variables, which ONNX lacks");
    const CornuStatus status = cornu__onnx_put_file(&to, file, graph->name ? graph->name : "main",
                                                    put_graph, graph);
    cornu__onnx_free(&to);
    return status;
}

CornuStatus cornu__lite_export_onnx(const CornuLiteGraph *graph, const char *path)
{
    CornuMessage file = { 0 };
    CornuStatus  status = cornu__lite_to_onnx(graph, false, &file);
    status = status ? cornu__fail_prefix(status, path)
                    : cornu_file_write(path, file.bytes, file.size);
    cornu__release(file.bytes);
    return status;
}
