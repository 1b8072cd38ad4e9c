/* Matrices and filters that several nodes share become a layer that gives them to those nodes, so
 * that they stay one weight and are trained as one. Vectors do not: exporters merge equal ones,
 * such as the scales of untrained normalizations, which have nothing to do with each other. */
#include "load_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int  uses;
    bool other;     /* a use that needs the numbers */
} Use;

static bool is_tied(const CornuReadTensor *tensor, const Use *use)
{
    return use->uses > 1 && !use->other && tensor->array.type.shape.rank > 1 &&
           cornu_dtype_is_float(tensor->array.type.dtype) &&
           cornu_type_count(tensor->array.type) > 1;
}

CornuStatus cornu__read_identity(CornuReadLoad *load, const char *from, const char *suffix,
                                 CornuReadNode *node)
{
    const size_t length = strlen(from) + strlen(suffix) + 1;
    const char **names = cornu__arena_take(&load->arena, 2, sizeof *names);
    char        *name = cornu__arena_take(&load->arena, length, 1);
    if (!names || !name) return CORNU_ERR_MEMORY;
    snprintf(name, length, "%s%s", from, suffix);
    names[0] = from;
    names[1] = name;
    *node = (CornuReadNode){ .op = "Identity", .domain = "", .name = name, .in = names,
                             .out = names + 1, .in_count = 1, .own_count = 1, .out_count = 1 };
    return CORNU_OK;
}

static CornuStatus put_nodes(CornuReadLoad *load, const CornuLookup *tensors, const Use *uses,
                             int count)
{
    CornuReadGraph *graph = &load->model.graph;
    const size_t    space = (size_t)(graph->node_count + count);
    CornuReadNode  *nodes = cornu__arena_take(&load->arena, space, sizeof *nodes);
    const char    **shared = cornu__arena_take(&load->arena, (size_t)graph->tensor_count,
                                               sizeof *shared);
    int made = 0;
    if (!nodes || !shared) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->tensor_count; i++) {
        if (!is_tied(&graph->tensors[i], &uses[i])) continue;
        CORNU__TRY(cornu__read_identity(load, graph->tensors[i].name, ".shared", &nodes[made]));
        nodes[made].tied = true;
        shared[i] = nodes[made++].name;
    }
    for (int i = 0; i < graph->node_count; i++) {
        CornuReadNode *node = &nodes[made++];
        *node = graph->nodes[i];
        for (int k = 0; k < node->in_count; k++) {
            const int at = cornu__lookup_find(tensors, node->in[k]);
            if (at >= 0 && shared[at]) node->in[k] = shared[at];
        }
    }
    graph->nodes = nodes;
    graph->node_count = made;
    return CORNU_OK;
}

static CornuStatus tie(CornuReadLoad *load, CornuLookup *tensors)
{
    const CornuReadGraph *graph = &load->model.graph;
    Use *uses = cornu__arena_take(&load->arena, (size_t)graph->tensor_count + 1, sizeof *uses);
    int  count = 0;
    if (!uses) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->tensor_count; i++)
        CORNU__TRY(cornu__lookup_set(tensors, graph->tensors[i].name, i));
    for (int i = 0; i < graph->input_count; i++)   /* of the same name: its initial value */
        if (cornu__lookup_find(tensors, graph->inputs[i].name) >= 0) return CORNU_OK;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++) {
            const CornuReadNode *node = &graph->nodes[i];
            const int            at = *node->in[k] ? cornu__lookup_find(tensors, node->in[k]) : -1;
            if (at < 0) continue;
            if (!strcmp(node->op, "Identity")) {   /* its result is the weight, too */
                CORNU__TRY(cornu__lookup_set(tensors, node->out[0], at));
                continue;
            }
            uses[at].uses++;
            uses[at].other |= k >= node->own_count ||
                              !(cornu__read_trains(node, k) || !strcmp(node->op, "Transpose"));
        }
    for (int i = 0; i < graph->tensor_count; i++)
        count += is_tied(&graph->tensors[i], &uses[i]);
    return count ? put_nodes(load, tensors, uses, count) : CORNU_OK;
}

CornuStatus cornu__read_tie(CornuReadLoad *load)
{
    CornuLookup       tensors = { .of_strings = true };
    const CornuStatus status = tie(load, &tensors);
    cornu__lookup_clear(&tensors);
    return status;
}
