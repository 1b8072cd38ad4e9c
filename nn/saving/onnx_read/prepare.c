/* Rewriting a graph before it is traced. */
#include "load_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- Operands ---- */

static bool associative(const CornuReadNode *node)
{
    static const char *const ops[] = { "Concat", "Sum", "Max", "Min" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(node->op, ops[i])) return true;
    return false;
}

/* A node of many operands becomes several, each of which takes the result of the one before it. */
static CornuStatus split_operands(CornuReadLoad *load)
{
    enum { MOST = CORNU_MAX_LAYER_TENSORS };
    CornuReadGraph *graph = &load->model.graph;
    size_t          count = 0;
    for (int i = 0; i < graph->node_count; i++)
        count += 1 + (associative(&graph->nodes[i]) ? (size_t)graph->nodes[i].in_count / (MOST - 1)
                                                    : 0);
    if (count == (size_t)graph->node_count) return CORNU_OK;
    CornuReadNode *nodes = cornu__arena_take(&load->arena, count, sizeof *nodes);
    int            made = 0;
    if (!nodes) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->node_count; i++) {
        CornuReadNode rest = graph->nodes[i];
        while (associative(&rest) && rest.in_count > MOST) {
            CornuReadNode *part = &nodes[made++];
            char           name[200];
            snprintf(name, sizeof name, "%.150s.%d", *rest.name ? rest.name : rest.out[0],
                     rest.in_count);
            const char  *text = cornu__arena_text(&load->arena, name, strlen(name));
            const char **out = cornu__arena_take(&load->arena, 1, sizeof *out);
            const char **in = cornu__arena_take(&load->arena, MOST, sizeof *in);
            if (!text || !out || !in) return CORNU_ERR_MEMORY;
            memcpy(in, rest.in, MOST * sizeof *in);   /* the last of them is overwritten below */
            *part = rest;
            part->in = in;
            part->name = out[0] = text;
            part->in_count = part->own_count = MOST;
            part->out = out;
            part->out_count = 1;
            rest.in += MOST - 1;
            rest.in_count -= MOST - 1;
            rest.own_count = rest.in_count;
            rest.in[0] = text;
        }
        nodes[made++] = rest;
    }
    graph->nodes = nodes;
    graph->node_count = made;
    return CORNU_OK;
}

/* ---- Outputs ---- */

/* A node that gives output i, which gets another name. */
static CornuStatus add_output_node(CornuReadLoad *load, int i, CornuReadNode *node)
{
    CornuReadInfo *output = &load->model.graph.outputs[i];
    char           suffix[32];
    snprintf(suffix, sizeof suffix, ".output_%d", i);
    CORNU__TRY(cornu__read_identity(load, output->name, suffix, node));
    output->name = node->name;
    return CORNU_OK;
}

/* Outputs are told apart by their layers: one of a layer that has given another, and one that is an
 * input, get a node of their own. */
static CornuStatus separate_outputs(CornuReadLoad *load)
{
    CornuReadGraph *graph = &load->model.graph;
    CornuLookup     nodes = { .of_strings = true };
    CornuStatus     status = CORNU_OK;
    const int       count = graph->node_count;
    bool           *taken = cornu__arena_take(&load->arena, (size_t)count + 1, sizeof *taken);
    CornuReadNode  *more = cornu__arena_take(&load->arena, (size_t)count +
                                             (size_t)graph->output_count, sizeof *more);
    if (!taken || !more) return CORNU_ERR_MEMORY;
    if (count) memcpy(more, graph->nodes, (size_t)count * sizeof *more);
    for (int i = 0; i < count && !status; i++)
        for (int k = 0; k < graph->nodes[i].out_count && !status; k++)
            status = cornu__lookup_set(&nodes, graph->nodes[i].out[k], i);
    for (int i = 0; i < graph->output_count && !status; i++) {
        CornuReadInfo *output = &graph->outputs[i];
        const int      from = cornu__lookup_find(&nodes, output->name);
        if (from >= 0 && !taken[from]) {
            taken[from] = true;
            continue;
        }
        status = add_output_node(load, i, &more[graph->node_count++]);
    }
    graph->nodes = more;
    cornu__lookup_clear(&nodes);
    return status;
}

/* ---- Constants ---- */

static bool is_many(const CornuReadTensor *tensor)
{
    return cornu_dtype_is_float(tensor->array.type.dtype) &&
           cornu_type_count(tensor->array.type) > 1;
}

static const CornuReadAttribute *constant_of(const CornuReadNode *node)
{
    if (strcmp(node->op, "Constant") || *node->domain || node->out_count != 1) return NULL;
    for (int i = 0; i < node->attribute_count; i++)
        if (!strcmp(node->attributes[i].name, "value") && node->attributes[i].tensor.data)
            return &node->attributes[i];
    return NULL;
}

/* Weights are initializers. Some exporters, such as Paddle's, write them as Constant nodes: in a
 * file without weights among the initializers these become initializers. */
static CornuStatus take_constants(CornuReadLoad *load)
{
    CornuReadGraph *graph = &load->model.graph;
    int             count = 0, kept = 0;
    for (int i = 0; i < graph->tensor_count; i++)
        if (is_many(&graph->tensors[i])) return CORNU_OK;
    for (int i = 0; i < graph->node_count; i++) count += constant_of(&graph->nodes[i]) != NULL;
    if (count == 0) return CORNU_OK;
    CornuReadTensor *tensors = cornu__arena_take(
        &load->arena, (size_t)graph->tensor_count + (size_t)count, sizeof *tensors);
    if (!tensors) return CORNU_ERR_MEMORY;
    if (graph->tensor_count)
        memcpy(tensors, graph->tensors, (size_t)graph->tensor_count * sizeof *tensors);
    for (int i = 0; i < graph->node_count; i++) {
        const CornuReadAttribute *value = constant_of(&graph->nodes[i]);
        if (value)
            tensors[graph->tensor_count++] = (CornuReadTensor){
                .name = graph->nodes[i].out[0], .array = value->tensor, .literal = true,
                .onnx_type = value->tensor_type };
        else graph->nodes[kept++] = graph->nodes[i];
    }
    graph->node_count = kept;
    graph->tensors = tensors;
    return CORNU_OK;
}

/* ---- Names ---- */

static CornuStatus define(CornuReadLoad *load, const char *name)
{
    if (!*name) return cornu__fail(CORNU_ERR_FORMAT, "an input or constant has no name");
    if (cornu__lookup_find(&load->names, name) >= 0)
        return cornu__fail(CORNU_ERR_FORMAT, "the tensor %.100s is computed twice", name);
    return cornu__read_name(&load->names, name) >= 0 ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void name_value(CornuReadLoad *load, const char *name)
{
    CornuReadValue *value = cornu__read_value(load, name);
    if (value) value->name = name;
}

/* Inputs that have an initializer are constants. */
static void drop_inputs(CornuReadGraph *graph, const CornuLookup *tensors)
{
    int kept = 0;
    for (int i = 0; i < graph->input_count; i++)
        if (cornu__lookup_find(tensors, graph->inputs[i].name) < 0)
            graph->inputs[kept++] = graph->inputs[i];
    graph->input_count = kept;
}

static CornuStatus number_values(CornuReadLoad *load)
{
    CornuReadGraph *graph = &load->model.graph;
    load->names.of_strings = true;
    for (int i = 0; i < graph->tensor_count; i++)
        CORNU__TRY(define(load, graph->tensors[i].name));
    drop_inputs(graph, &load->names);
    for (int i = 0; i < graph->input_count; i++)
        CORNU__TRY(define(load, graph->inputs[i].name));
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].out_count; k++)
            if (*graph->nodes[i].out[k]) CORNU__TRY(define(load, graph->nodes[i].out[k]));
    load->values = cornu__arena_take(&load->arena, (size_t)load->names.count, sizeof *load->values);
    load->traced = cornu__arena_take(&load->arena, (size_t)graph->node_count,
                                     sizeof *load->traced);
    if (!load->values || !load->traced) return CORNU_ERR_MEMORY;
    for (int i = 0; i < load->names.count; i++) load->values[i].node = -1;
    for (int i = 0; i < graph->tensor_count; i++)
        name_value(load, graph->tensors[i].name);
    for (int i = 0; i < graph->input_count; i++)
        name_value(load, graph->inputs[i].name);
    return CORNU_OK;
}

static CornuStatus link_nodes(CornuReadLoad *load)
{
    CornuReadGraph *graph = &load->model.graph;
    for (int i = 0; i < graph->node_count; i++) {
        const CornuReadNode *node = &graph->nodes[i];
        load->traced[i].roles = cornu__arena_take(&load->arena, (size_t)node->in_count + 1,
                                                  sizeof *load->traced[i].roles);
        if (!load->traced[i].roles) return CORNU_ERR_MEMORY;
        for (int k = 0; k < node->out_count; k++) {
            CornuReadValue *value = cornu__read_value(load, node->out[k]);
            if (!value) continue;
            value->name = node->out[k];
            value->node = i;
        }
        for (int k = 0; k < node->in_count; k++) {
            CornuReadValue *value = cornu__read_value(load, node->in[k]);
            if (value) value->wanted = true;
        }
    }
    for (int i = 0; i < graph->output_count; i++) {
        CornuReadValue *value = cornu__read_value(load, graph->outputs[i].name);
        if (!value)
            return cornu__fail(CORNU_ERR_FORMAT, "the output %.100s is not computed",
                               graph->outputs[i].name);
        value->wanted = true;
    }
    /* What is not wanted is not computed. */
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].out_count; k++) {
            const CornuReadValue *value = cornu__read_value(load, graph->nodes[i].out[k]);
            if (value && !value->wanted) graph->nodes[i].out[k] = "";
        }
    return CORNU_OK;
}

/* Files of other domains alone need not have an opset of ONNX. */
static CornuStatus check_operators(CornuReadLoad *load)
{
    enum { OPSET = 18 };   /* of the nodes that are added here */
    const CornuReadGraph *graph = &load->model.graph;
    bool                  own = false;
    for (int i = 0; i < graph->node_count; i++) {
        const CornuReadNode *node = &graph->nodes[i];
        const CornuReadRow  *row;
        CORNU__TRY(cornu__fail_prefix(cornu__read_row_of(cornu__read_families, node, &row),
                                      *node->name ? node->name
                                      : node->out_count ? node->out[0] : "a node"));
        own |= !*node->domain || !strcmp(node->domain, "ai.onnx");
    }
    if (!own && load->model.opset == 0) load->model.opset = OPSET;
    if (load->model.opset >= 7) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "it has opset %lld of ONNX, expected at least 7",
                       (long long)load->model.opset);
}

CornuStatus cornu__read_prepare(CornuReadLoad *load)
{
    CORNU__TRY(check_operators(load));
    CORNU__TRY(cornu__read_captures(&load->arena, load->model.graph.nodes,
                                    load->model.graph.node_count));
    CORNU__TRY(take_constants(load));
    CORNU__TRY(split_operands(load));
    CORNU__TRY(separate_outputs(load));
    CORNU__TRY(cornu__read_tie(load));
    CORNU__TRY(number_values(load));
    return link_nodes(load);
}

CornuStatus cornu__read_record_outputs(CornuReadLoad *load, bool *added)
{
    CornuReadGraph *graph = &load->model.graph;
    const size_t    count = (size_t)graph->node_count;
    CornuReadNode  *more = cornu__arena_take(&load->arena, count + (size_t)graph->output_count,
                                             sizeof *more);
    *added = false;
    if (!more) return CORNU_ERR_MEMORY;
    if (count) memcpy(more, graph->nodes, count * sizeof *more);
    for (int i = 0; i < graph->output_count; i++) {
        const CornuReadValue *value = cornu__read_value(load, graph->outputs[i].name);
        if (!value || !value->known) continue;
        CornuReadNode *node = &more[graph->node_count++];
        CORNU__TRY(add_output_node(load, i, node));
        node->name = node->in[0];   /* of which there is no other layer */
        node->recorded = *added = true;
    }
    if (!*added) return CORNU_OK;
    graph->nodes = more;
    cornu__lookup_clear(&load->names);
    CORNU__TRY(number_values(load));
    return link_nodes(load);
}
