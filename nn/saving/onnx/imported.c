/* Nodes that were read from an ONNX file: written as they are where the opset has the same
 * operator, else as the ops that they record. */
#include "recorded_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../onnx_read/layer_internal.h"

/* The first opset whose nodes of an operator are also those of opset 18 and later, and the last;
 * other operators are the same since opset 7. Source: docs/Changelog.md of ONNX. */
static const struct { const char *op; int first, last; } changed[] = {
    { "BatchNormalization", 9, 99 }, { "Clip", 11, 99 }, { "DFT", 17, 19 }, { "Dropout", 12, 99 },
    { "Gelu", 99, 0 }, { "GroupNormalization", 99, 0 },
    { "Hardmax", 13, 99 },
    { "LogSoftmax", 13, 99 }, { "Pad", 11, 99 }, { "RMSNormalization", 99, 0 },
    { "ReduceL1", 18, 99 }, { "ReduceL2", 18, 99 }, { "ReduceLogSum", 18, 99 },
    { "ReduceLogSumExp", 18, 99 }, { "ReduceMax", 18, 99 }, { "ReduceMean", 18, 99 },
    { "ReduceMin", 18, 99 }, { "ReduceProd", 18, 99 }, { "ReduceSum", 13, 99 },
    { "ReduceSumSquare", 18, 99 }, { "Resize", 11, 18 }, { "Scatter", 99, 0 },
    { "Slice", 10, 99 }, { "Softmax", 13, 99 }, { "Split", 18, 99 }, { "Squeeze", 13, 99 },
    { "Swish", 99, 0 }, { "TopK", 10, 99 }, { "Unsqueeze", 13, 99 }, { "Upsample", 99, 0 },
};

/* Values are written as floats, not as the integers of few bits that these have. */
static bool is_quantized(const CornuReadNode *node)
{
    return !strncmp(node->op, "QLinear", 7) || strstr(node->op, "QuantizeLinear") ||
           !strcmp(node->op, "DequantizeLinear") || strstr(node->op, "Integer");
}

static bool is_same(const CornuReadNode *node, int64_t opset, int64_t wanted)
{
    if (*node->domain || is_quantized(node)) return false;
    for (int i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].graph.bytes) return false;
    if (!strcmp(node->op, "FakeQuantize") || strchr(node->op, ':') ||
        (*node->domain && strcmp(node->domain, "ai.onnx")))
        return false;   /* of no opset */
    if (opset == wanted) return true;
    if (wanted < 18) return false;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        if (strcmp(changed[i].op, node->op)) continue;
        const bool sizes = !strcmp(node->op, "Split") && node->in_count > 1 && opset >= 13;
        return sizes || (opset >= changed[i].first && opset <= changed[i].last);
    }
    return true;
}

/* A constant of any dtype. */
static int constant(CornuOnnx *to, CornuArray array)
{
    const CornuDtype dtype = array.type.dtype;
    if (dtype == CORNU_F32 || dtype == CORNU_I64 || dtype == CORNU_BOOL)
        return cornu__onnx_constant(to, array);
    CornuArray narrow = { cornu_type_from(CORNU_F32, array.type.shape), NULL };
    narrow.data = cornu__allocate((size_t)cornu_type_count(array.type), sizeof(float));
    if (!narrow.data) {
        to->nodes.failed = true;
        return CORNU_ONNX_NONE;
    }
    for (int64_t i = 0; i < cornu_type_count(array.type); i++)
        cornu_array_set(narrow, i, cornu_array_get(array, i));
    const int made = cornu__onnx_constant(to, narrow);
    cornu__release(narrow.data);
    return cast(to, made, cornu__onnx_type_number(dtype));
}

/* Values between layers are floats. */
static int taken(CornuOnnx *to, int value, CornuDtype dtype)
{
    return cornu_dtype_is_float(dtype) ? value : cast(to, value, cornu__onnx_type_number(dtype));
}

/* A filter with ONNX' axes. */
static int filter(CornuOnnx *to, const CornuLayer *layer, int i, CornuShape shape)
{
    int order[CORNU_MAX_RANK], back[CORNU_MAX_RANK];
    cornu__filter_shape(shape, order);
    for (int k = 0; k < shape.rank; k++) back[order[k]] = k;
    return cornu__onnx_weight_as(to, layer, i, back, shape);
}

static void put_node(CornuOnnx *to, const CornuReadNode *node, const CornuLookup *names,
                     int *numbers)
{
    CornuOnnxName name;
    for (int i = 0; i < node->in_count; i++)
        if (*node->in[i])
            cornu__onnx_put_pending(to, numbers[cornu__lookup_find(names, node->in[i])]);
    const size_t begin = cornu__onnx_begin_node(to, node->op);
    for (int i = 0; i < node->in_count; i++) {
        const int value = *node->in[i] ? numbers[cornu__lookup_find(names, node->in[i])]
                                       : CORNU_ONNX_NONE;
        cornu__put_text(&to->nodes, 1, cornu__onnx_name(&name, value));
    }
    /* Most results may be left out, but not these. */
    const bool all = !strcmp(node->op, "TopK") || !strcmp(node->op, "Split");
    for (int i = 0; i < node->out_count; i++) {
        int value = CORNU_ONNX_NONE;
        if (*node->out[i] || all) value = cornu__onnx_value(to, (CornuOnnxValue){ 0 });
        if (*node->out[i]) numbers[cornu__lookup_find(names, node->out[i])] = value;
        cornu__put_text(&to->nodes, 2, cornu__onnx_name(&name, value));
    }
    for (int i = 0; i < node->attribute_count; i++)
        cornu__put_bytes(&to->nodes, 5, node->attributes[i].bytes.bytes,
                         node->attributes[i].bytes.size);
    cornu__end_field(&to->nodes, begin);
}

CornuStatus cornu__onnx_imported(const CornuOnnxCall *call)
{
    CornuOnnx            *to = call->to;
    const CornuOnnxNode  *layer = (const CornuOnnxNode *)call->layer;
    const CornuReadGraph *graph = &layer->model.graph;
    for (int i = 0; i < graph->node_count; i++)
        if (!is_same(&graph->nodes[i], layer->model.opset,
                     to->opset)) return cornu__onnx_recorded(call);
    int *numbers = cornu__allocate((size_t)layer->names.count, sizeof *numbers), weight = 0;
    if (!numbers) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->input_count; i++)
        numbers[cornu__lookup_find(&layer->names, graph->inputs[i].name)] =
            taken(to, call->in[i], graph->inputs[i].type.dtype);
    for (int i = 0; i < graph->tensor_count; i++) {
        const CornuReadTensor *tensor = &graph->tensors[i];
        int *number = &numbers[cornu__lookup_find(&layer->names, tensor->name)];
        if (tensor->role == CORNU_READ_VALUE) *number = constant(to, tensor->array);
        else if (tensor->role == CORNU_READ_FILTER)
            *number = filter(to, call->layer, weight, tensor->array.type.shape);
        else if (tensor->role != CORNU_READ_MADE)
            *number = taken(to, cornu__onnx_weight(to, call->layer, weight),
                            tensor->array.type.dtype);
        weight += tensor->role != CORNU_READ_VALUE;
    }
    for (int i = 0; i < graph->node_count; i++)
        put_node(to, &graph->nodes[i], &layer->names, numbers);
    for (int i = 0; i < graph->output_count; i++) {
        call->out_masks[i] = CORNU_ONNX_NONE;
        const int y = numbers[cornu__lookup_find(&layer->names, graph->outputs[i].name)];
        call->out[i] = cornu_dtype_is_float(graph->outputs[i].type.dtype)
                           ? y : cast(to, y, CORNU_ONNX_FLOAT);
    }
    cornu__release(numbers);
    return CORNU_OK;
}
