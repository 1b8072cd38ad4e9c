/* The file around a graph: inputs, outputs, versions. */
#include "rules_internal.h"

#include <stdio.h>

#include "../../../device/memory_internal.h"

/* The version of the format that came with an opset. Source: onnx/helper.py, VERSION_TABLE. */
static int format_of(int opset)
{
    static const int last[] = { 14, 18, 20, 22, 23, 24, 27 };
    int i = 0;
    while (opset > last[i]) i++;
    return 7 + i;
}

/* An input or output of the graph: its name, type, and shape with an open batch. */
static void put_value(CornuMessage *graph, int field, const char *name, int type, CornuShape shape)
{
    const size_t value = cornu__begin_field(graph, field);
    cornu__put_text(graph, 1, name);
    const size_t kind = cornu__begin_field(graph, 2), tensor = cornu__begin_field(graph, 1);
    cornu__put_number(graph, 1, type);
    const size_t extents = cornu__begin_field(graph, 2);
    for (int i = 0; i < shape.rank; i++) {
        const size_t extent = cornu__begin_field(graph, 1);
        char open[240] = "batch";   /* two extents of one name must be equal */
        if (i > 0) snprintf(open, sizeof open, "%s_%d", name, i);
        if (shape.extent[i] < 0) cornu__put_text(graph, 2, open);
        else cornu__put_number(graph, 1, shape.extent[i]);
        cornu__end_field(graph, extent);
    }
    cornu__end_field(graph, extents);
    cornu__end_field(graph, tensor);
    cornu__end_field(graph, kind);
    cornu__end_field(graph, value);
}

/* Nodes that rename inputs and outputs after their layers. */
static void name_value(CornuOnnx *to, const char *in, const char *out)
{
    const size_t node = cornu__onnx_begin_node(to, "Identity");
    cornu__put_text(&to->nodes, 1, in);
    cornu__put_text(&to->nodes, 2, out);
    cornu__end_field(&to->nodes, node);
}

int cornu__onnx_put_input(CornuOnnx *to, CornuMessage *graph, const char *name, int type,
                          CornuShape shape)
{
    CornuOnnxName inner;
    const int     value = cornu__onnx_value(to, (CornuOnnxValue){ 0 });
    put_value(graph, 11, name, type, shape);
    name_value(to, name, cornu__onnx_name(&inner, value));
    return value;
}

void cornu__onnx_put_output(CornuOnnx *to, CornuMessage *graph, const char *name, int type,
                            CornuShape shape, int value)
{
    CornuOnnxName inner;
    put_value(graph, 12, name, type, shape);
    cornu__onnx_put_pending(to, value);
    name_value(to, cornu__onnx_name(&inner, value), name);
}

CornuStatus cornu__onnx_put_file(CornuOnnx *to, CornuMessage *file, const char *name,
                                 CornuOnnxGraph *put, const void *context)
{
    cornu__put_number(file, 1, format_of(to->opset));
    cornu__put_text(file, 2, "cornu");
    const size_t graph = cornu__begin_field(file, 7);
    CORNU__TRY(put(to, file, context));
    cornu__put_text(file, 2, name);
    cornu__put(file, to->constants.bytes, to->constants.size);
    cornu__put(file, to->nodes.bytes, to->nodes.size);
    cornu__end_field(file, graph);
    const size_t opset = cornu__begin_field(file, 8);
    cornu__put_text(file, 1, "");
    cornu__put_number(file, 2, to->opset);
    cornu__end_field(file, opset);
    return file->failed || to->constants.failed || to->nodes.failed ? CORNU_ERR_MEMORY : CORNU_OK;
}

void cornu__onnx_free(CornuOnnx *to)
{
    cornu__release(to->forms);
    cornu__release(to->values);
    cornu__release(to->extents);
    cornu__release(to->nodes.bytes);
    cornu__release(to->constants.bytes);
}
