/* Subgraphs: what they use of the graph around them; running them. */
#include "bodies_internal.h"

#include <string.h>

int cornu__read_name(CornuLookup *names, const char *name)
{
    const int known = cornu__lookup_find(names, name), next = names->count;
    if (known >= 0) return known;
    return cornu__lookup_set(names, name, next) ? -1 : next;
}

CornuStatus cornu__read_names(CornuLookup *names, const CornuReadGraph *graph)
{
    bool memory = true;
    for (int i = 0; i < graph->input_count; i++)
        memory &= cornu__read_name(names, graph->inputs[i].name) >= 0;
    for (int i = 0; i < graph->tensor_count; i++)
        memory &= cornu__read_name(names, graph->tensors[i].name) >= 0;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].out_count; k++)
            memory &= cornu__read_name(names, graph->nodes[i].out[k]) >= 0;
    return memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus run_node(CornuReadRun *run, const CornuReadNode *node, const CornuLookup *names,
                            CornuReadOperand *values)
{
    CornuReadStep step;
    CORNU__TRY(cornu__read_begin(run, node, &step));
    for (int i = 0; i < node->in_count; i++) {
        const int at = *node->in[i] ? cornu__lookup_find(names, node->in[i]) : -1;
        if (at >= 0) step.in[i] = values[at];
        if (*node->in[i] && !step.in[i].given)
            return cornu__fail(CORNU_ERR_FORMAT, "the tensor %.100s is not computed before it is "
                               "used", node->in[i]);
    }
    CORNU__TRY(cornu__read_step(&step, false));
    CORNU__TRY(cornu__read_keep_maker(&step));
    for (int i = 0; i < node->out_count; i++)
        if (*node->out[i]) values[cornu__lookup_find(names, node->out[i])] = step.out[i];
    return CORNU_OK;
}

CornuStatus cornu__read_nodes(CornuReadRun *run, const CornuReadGraph *graph,
                              const CornuLookup *names, CornuReadOperand *values)
{
    for (int i = 0; i < graph->node_count; i++)
        CORNU__TRY(run_node(run, &graph->nodes[i], names, values));
    return CORNU_OK;
}

/* ---- What subgraphs use ---- */

static CornuStatus captures_of(CornuArena *arena, CornuReadNode *node, int depth);

/* Adds what is used in a subgraph and not computed there. */
static CornuStatus add_captures(CornuArena *arena, const CornuReadGraph *graph, CornuLookup *inner,
                                CornuLookup *used, int depth)
{
    CORNU__TRY(cornu__read_names(inner, &(const CornuReadGraph){
        .inputs = graph->inputs, .input_count = graph->input_count,
        .tensors = graph->tensors, .tensor_count = graph->tensor_count }));
    for (int i = 0; i < graph->node_count; i++) {
        CornuReadNode *node = &graph->nodes[i];
        CORNU__TRY(captures_of(arena, node, depth));
        for (int k = 0; k < node->in_count; k++)
            if (*node->in[k] && cornu__lookup_find(inner, node->in[k]) < 0)
                CORNU__TRY(cornu__lookup_set(used, node->in[k], 0));
        for (int k = 0; k < node->out_count; k++)
            if (cornu__read_name(inner, node->out[k]) < 0) return CORNU_ERR_MEMORY;
    }
    for (int i = 0; i < graph->output_count; i++)
        if (cornu__lookup_find(inner, graph->outputs[i].name) < 0)
            CORNU__TRY(cornu__lookup_set(used, graph->outputs[i].name, 0));
    return CORNU_OK;
}

/* In an order that does not depend on the table: that of the slots is by hash alone. */
static CornuStatus append(CornuArena *arena, CornuReadNode *node, const CornuLookup *used)
{
    const size_t count = (size_t)node->in_count + (size_t)used->count;
    const char **in = cornu__arena_take(arena, count, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    memcpy(in, node->in, (size_t)node->in_count * sizeof *in);
    for (int i = 0; i < used->space; i++) {
        const char *name = used->slots[i].key;
        if (!name) continue;
        name = cornu__arena_text(arena, name, strlen(name));
        if (!name) return CORNU_ERR_MEMORY;
        in[node->in_count++] = name;
    }
    node->in = in;
    return CORNU_OK;
}

static CornuStatus captures_of(CornuArena *arena, CornuReadNode *node, int depth)
{
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < node->attribute_count && !status; i++) {
        CornuReadGraph *graph;
        CornuLookup     inner = { .of_strings = true }, used = { .of_strings = true };
        if (!node->attributes[i].graph.bytes) continue;
        if (depth == CORNU_READ_MOST_DEPTH)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%.100s: subgraphs nested more than %d deep",
                               node->name, CORNU_READ_MOST_DEPTH);
        graph = node->attributes[i].body = cornu__arena_take(arena, 1, sizeof *graph);
        if (!graph) return CORNU_ERR_MEMORY;
        status = cornu__onnx_parse_graph(arena, &node->attributes[i].graph, graph);
        if (!status) status = add_captures(arena, graph, &inner, &used, depth + 1);
        if (!status) status = append(arena, node, &used);
        cornu__lookup_clear(&inner);
        cornu__lookup_clear(&used);
    }
    return status;
}

CornuStatus cornu__read_captures(CornuArena *arena, CornuReadNode *nodes, int count)
{
    for (int i = 0; i < count; i++) CORNU__TRY(captures_of(arena, &nodes[i], 0));
    return CORNU_OK;
}

/* ---- Running a subgraph ---- */

void cornu__subgraph_free(CornuReadBody *body) { cornu__lookup_clear(&body->names); }

CornuStatus cornu__subgraph_open(const CornuReadStep *step, const char *attribute,
                             CornuReadBody *body)
{
    const CornuReadAttribute *from = cornu__attribute(step, attribute);
    const CornuReadGraph     *graph = from ? from->body : NULL;
    *body = (CornuReadBody){ .graph = graph, .names = { .of_strings = true } };
    if (!graph)
        return cornu__fail(CORNU_ERR_FORMAT, "the graph %s is missing", attribute);
    if (step->run->depth >= CORNU_READ_MOST_DEPTH)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "subgraphs nested more than %d deep",
                           CORNU_READ_MOST_DEPTH);
    for (int i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].role)
            return cornu__fail(CORNU_ERR_FORMAT, "the tensor %.100s has no numbers",
                               graph->tensors[i].name);
    for (int i = step->node->own_count; i < step->node->in_count; i++)
        if (cornu__read_name(&body->names, step->node->in[i]) < 0) return CORNU_ERR_MEMORY;
    return cornu__read_names(&body->names, graph);
}

CornuStatus cornu__subgraph_run(const CornuReadStep *step, const CornuReadBody *body,
                            CornuReadRun *run, const CornuReadOperand *captured,
                            const CornuReadOperand *in, int in_count, CornuReadOperand *out)
{
    const CornuReadGraph *graph = body->graph;
    CornuReadOperand *values = cornu__arena_take(run->arena, (size_t)body->names.count + 1,
                                                 sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    if (in_count != graph->input_count)
        return cornu__fail(CORNU_ERR_FORMAT, "its graph has %d inputs, expected %d",
                           graph->input_count, in_count);
    for (int i = step->node->own_count; i < step->node->in_count; i++)
        values[cornu__lookup_find(&body->names, step->node->in[i])] =
            captured[i - step->node->own_count];
    for (int i = 0; i < in_count; i++)
        values[cornu__lookup_find(&body->names, graph->inputs[i].name)] = in[i];
    for (int i = 0; i < graph->tensor_count; i++)
        values[cornu__lookup_find(&body->names, graph->tensors[i].name)] =
            cornu__read_constant(&graph->tensors[i]);
    run->depth++;
    const CornuStatus status = cornu__read_nodes(run, graph, &body->names, values);
    run->depth--;
    CORNU__TRY(status);
    for (int i = 0; i < graph->output_count; i++) {
        const int at = cornu__lookup_find(&body->names, graph->outputs[i].name);
        if (at < 0 || !values[at].given)
            return cornu__fail(CORNU_ERR_FORMAT, "its result %.100s is not computed",
                               graph->outputs[i].name);
        out[i] = values[at];
    }
    return CORNU_OK;
}
