/* The class OnnxNode. */
#include "layer_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../tensor/tensor_internal.h"
#include "../../formats/base64_internal.h"

/* ---- The layer ---- */

static CornuOnnxNode *node_of(CornuLayer *layer) { return (CornuOnnxNode *)layer; }

static bool is_weight(const CornuReadTensor *tensor) { return tensor->role != CORNU_READ_VALUE; }

/* Without the slashes that separate a weight's name from its layer's. */
static void put_name(char *to, size_t size, const char *from)
{
    while (*from == '/') from++;
    snprintf(to, size, "%s", *from ? from : "weight");
    for (char *c = to; *c; c++)
        if (*c == '/') *c = '.';
}

static CornuStatus build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const CornuReadGraph *graph = &node_of(layer)->model.graph;
    (void)in, (void)in_count;
    for (int i = 0; i < graph->tensor_count; i++) {
        const CornuReadTensor *tensor = &graph->tensors[i];
        char                   name[120];
        if (!is_weight(tensor)) continue;
        put_name(name, sizeof name, tensor->name);
        int        order[CORNU_MAX_RANK];
        CornuShape shape = tensor->array.type.shape;
        if (tensor->role == CORNU_READ_FILTER) shape = cornu__filter_shape(shape, order);
        CORNU__TRY(cornu_layer_weight(layer, name, shape, CORNU_ZEROS,
                                      tensor->role > CORNU_READ_FILTER));
        layer->weights[layer->own_count - 1]->kept =
            cornu__read_kept(tensor->role, tensor->onnx_type);
    }
    return CORNU_OK;
}

/* The types of the outputs are in the graph. Those of the inputs must be those that it was made
 * for. */
static CornuStatus types(CornuLayer *layer, const CornuType *in, int in_count, CornuType *out)
{
    const CornuReadGraph *graph = &node_of(layer)->model.graph;
    if (in_count != graph->input_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, the node has %d", in_count,
                           graph->input_count);
    for (int i = 0; i < in_count; i++) {
        const CornuShape given = in[i].shape, want = graph->inputs[i].type.shape;
        CornuText        a, b;
        bool             fits = given.rank == want.rank;
        for (int k = 0; k < want.rank && fits; k++)
            fits = given.extent[k] == want.extent[k] || given.extent[k] == CORNU_NONE ||
                   want.extent[k] == CORNU_NONE;
        if (!fits)
            return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, the node was made for %s",
                               cornu_shape_print(&a, given), cornu_shape_print(&b, want));
    }
    for (int i = 0; i < graph->output_count; i++) out[i] = graph->outputs[i].type;
    return CORNU_OK;
}

static int outputs(const CornuLayer *layer)
{
    return ((const CornuOnnxNode *)layer)->model.graph.output_count;
}

/* What the constants of one call are taken from. */
typedef struct {
    CornuLayer      *layer;
    const CornuCall *call;
    int              next;    /* tensor of the graph */
    CornuArray      *arrays;  /* those that were asked for, and their tensors */
    CornuTensor    **tensors;
    int              count;
} Made;

/* The next constant that the ops need: a weight of the layer. */
static CornuTensor *next_made(CornuReadRun *run, CornuArray array)
{
    Made                 *made = run->context;
    const CornuReadGraph *graph = &node_of(made->layer)->model.graph;
    int                   weight = 0;
    for (int i = 0; i < made->count; i++)
        if (cornu__array_equal(made->arrays[i], array)) return made->tensors[i];
    for (int i = 0; i < graph->tensor_count; i++) {
        const CornuReadTensor *tensor = &graph->tensors[i];
        const int              own = weight;
        weight += is_weight(tensor);
        if (i < made->next || tensor->role != CORNU_READ_MADE) continue;
        if (!cornu_shape_equal(tensor->array.type.shape, array.type.shape)) break;
        made->next = i + 1;
        CornuTensor *value = cornu_layer_read_as(made->layer, made->call, own, CORNU_F32);
        value = cornu_op_convert(value, array.type.dtype);
        made->arrays[made->count] = array;
        made->tensors[made->count++] = value;
        return value;
    }
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a constant depends on an open extent");
}

static CornuTensor *read_state(CornuReadRun *run, int i, CornuShape shape)
{
    const Made *made = run->context;
    return cornu_layer_state(made->layer, made->call, i, shape);
}

static CornuStatus keep_state(CornuReadRun *run, int i, CornuTensor *value)
{
    const Made *made = run->context;
    return cornu_layer_set_state(made->layer, made->call, i, value);
}

/* The weight as it is, and with ONNX' axes: what no op uses is not computed. */
static void as_filter(CornuShape shape, CornuReadOperand *value)
{
    int order[CORNU_MAX_RANK], back[CORNU_MAX_RANK];
    cornu__filter_shape(shape, order);
    for (int i = 0; i < shape.rank; i++) back[order[i]] = i;
    value->filter = value->weight;
    if (shape.rank > 2 && value->weight) value->weight = cornu_op_transpose(value->weight, back);
}

static CornuStatus fill(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                        CornuReadOperand *values)
{
    const CornuOnnxNode  *node = node_of(layer);
    const CornuReadGraph *graph = &node->model.graph;
    int                   weight = 0;
    for (int i = 0; i < graph->tensor_count; i++) {
        const CornuReadTensor *tensor = &graph->tensors[i];
        CornuReadOperand       value = cornu__read_constant(tensor);
        if (is_weight(tensor)) {
            value.known = (CornuArray){ .data = NULL };
            if (layer->weights[weight]->kept)
                value.bytes = cornu__layer_read_bytes(layer, call, weight);
            value.weight = cornu_layer_read_as(layer, call, weight++, tensor->array.type.dtype);
            if (tensor->role == CORNU_READ_FILTER) as_filter(tensor->array.type.shape, &value);
            if (!value.weight) return cornu_error_take();
        }
        values[cornu__lookup_find(&node->names, tensor->name)] = value;
    }
    /* Under any policy the node computes in f32, the type of the graph. */
    for (int i = 0; i < graph->input_count; i++) {
        CornuTensor *x = cornu_op_convert(in[i], graph->inputs[i].type.dtype);
        if (!x) return cornu_error_take();
        values[cornu__lookup_find(&node->names, graph->inputs[i].name)] =
            (CornuReadOperand){ .given = true, .tensor = x };
    }
    return CORNU_OK;
}

static CornuStatus record(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                          CornuArena *arena, int *budget, CornuTensor **out)
{
    const CornuOnnxNode  *node = node_of(layer);
    const CornuReadGraph *graph = &node->model.graph;
    Made         made = { .layer = layer, .call = call };
    CornuReadRun run = { .families = cornu__read_families, .graph = call->graph, .arena = arena,
                         .opset = node->model.opset,
                         .constant = next_made, .read_state = read_state,
                         .keep_state = keep_state, .context = &made, .budget = budget };
    CornuReadOperand *values = cornu__arena_take(arena, (size_t)node->names.count, sizeof *values);
    made.arrays = cornu__arena_take(arena, (size_t)graph->tensor_count, sizeof *made.arrays);
    made.tensors = cornu__arena_take(arena, (size_t)graph->tensor_count, sizeof *made.tensors);
    if (!values || !made.arrays || !made.tensors) return CORNU_ERR_MEMORY;
    CORNU__TRY(fill(layer, call, in, values));
    CORNU__TRY(cornu__read_nodes(&run, graph, &node->names, values));
    for (int i = 0; i < graph->output_count; i++) {
        const CornuReadOperand *value =
            &values[cornu__lookup_find(&node->names, graph->outputs[i].name)];
        out[i] = value->tensor ? value->tensor : value->weight ? value->weight
               : value->given ? cornu__known_tensor(&run, value) : NULL;
        if (!out[i])
            return cornu_error_pending() ? cornu_error_take()
                 : cornu__fail(CORNU_ERR_FORMAT, "the output %.100s is not computed",
                               graph->outputs[i].name);
    }
    return CORNU_OK;
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out)
{
    CornuArena arena = { .blocks = NULL };
    int        budget = CORNU_READ_MOST_OPS;
    if (in_count != node_of(layer)->model.graph.input_count)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: got %d tensors, the node has %d",
                                cornu_layer_name(layer), in_count,
                                node_of(layer)->model.graph.input_count);
    cornu__arena_limit(&arena);
    const int         before = cornu__graph_limit(call->graph, &budget);
    const CornuStatus status = record(layer, call, in, &arena, &budget, out);
    cornu__graph_spend(call->graph, &budget, before);
    cornu__arena_free(&arena);
    if (!status) return out[0];
    cornu__fail_prefix(status, cornu_layer_name(layer));
    return cornu__null();
}

/* The operator: that of the last node, of which the others compute parameters. */
static const char *operator_of(const CornuLayer *layer)
{
    const CornuReadGraph *graph = &((const CornuOnnxNode *)layer)->model.graph;
    return graph->node_count ? graph->nodes[graph->node_count - 1].op : "OnnxNode";
}

static void free_node(CornuLayer *layer)
{
    CornuOnnxNode *node = node_of(layer);
    cornu__lookup_clear(&node->names);
    cornu__arena_free(&node->arena);
    cornu__release(node->bytes);
    cornu__release((char *)node->config.graph);
}

static CornuLayer *from(const void *config) { return cornu__onnx_node_layer("OnnxNode", config); }

static const CornuField fields[] = {
    { "graph", CORNU_FIELD_TEXT, offsetof(CornuOnnxNodeConfig, graph) },
    { 0 },
};

const CornuLayerClass cornu__onnx_node_class = {
    .class_name = "OnnxNode", .size = sizeof(CornuOnnxNode), .build_many = build, .types = types,
    .call_many = call_many, .outputs = outputs, .mask = cornu__no_mask, .free = free_node,
    .keeps_dtypes = true, .any_axis = true,
    .keras = &(const CornuKerasClass){ .shown = operator_of,
                                       CORNU__SAVED(fields, CornuOnnxNode, from) },
};

CornuStatus cornu__onnx_register(void)
{
    return cornu_register_layer(&cornu__onnx_node_class, "Cornu");
}

/* ---- Making it ---- */

/* Numbers the values, and checks that what the outputs use is given. */
static CornuStatus number_values(CornuOnnxNode *node)
{
    const CornuReadGraph *graph = &node->model.graph;
    node->names.of_strings = true;
    CORNU__TRY(cornu__read_names(&node->names, graph));
    for (int i = 0; i < graph->output_count; i++)
        if (cornu__lookup_find(&node->names, graph->outputs[i].name) < 0)
            return cornu__fail(CORNU_ERR_FORMAT, "the output %.100s is not computed",
                               graph->outputs[i].name);
    return CORNU_OK;
}

static CornuStatus check_infos(const CornuReadInfo *infos, int count, const char *what)
{
    if (count < 1 || count > CORNU_MAX_LAYER_TENSORS)
        return cornu__fail(CORNU_ERR_FORMAT, "the graph has %d %s, expected 1 to %d", count, what,
                           CORNU_MAX_LAYER_TENSORS);
    for (int i = 0; i < count; i++)
        if (infos[i].type.shape.rank < 0 || !infos[i].onnx_type)
            return cornu__fail(CORNU_ERR_FORMAT, "the graph has %s of no type", what);
    return CORNU_OK;
}

static CornuStatus read_graph(CornuOnnxNode *node, const CornuOnnxNodeConfig *config)
{
    size_t size;
    node->config.graph = cornu__copy_text(config->graph);
    node->bytes = cornu__base64_bytes(config->graph, &size);
    if (!node->config.graph) return CORNU_ERR_MEMORY;
    if (!node->bytes) return cornu_error_status();
    CORNU__TRY(cornu__onnx_parse(&node->arena, node->bytes, size, NULL, &node->model));
    const CornuReadGraph *graph = &node->model.graph;
    CORNU__TRY(check_infos(graph->inputs, graph->input_count, "inputs"));
    CORNU__TRY(check_infos(graph->outputs, graph->output_count, "outputs"));
    bool whole = true;
    for (int i = 0; i < graph->input_count; i++)
        whole &= !cornu_dtype_is_float(graph->inputs[i].type.dtype);
    node->base.takes_integers = whole;
    CORNU__TRY(cornu__read_captures(&node->arena, graph->nodes, graph->node_count));
    return number_values(node);
}

CornuLayer *cornu__onnx_node_layer(const char *name, const CornuOnnxNodeConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->graph)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .graph is required", name);
    CornuLayer *layer = cornu_layer_create(&cornu__onnx_node_class, NULL, NULL);
    if (!layer) return NULL;
    const CornuStatus status = read_graph(node_of(layer), config);
    if (!status) return layer;
    cornu__fail_prefix(status, name);
    cornu_layer_free(layer);
    return cornu__null();
}
