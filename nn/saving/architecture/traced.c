/*
 * Traced layers as JSON: what Keras writes of a class of the program, so that Keras reads it where
 * that class is registered, and beside it, as "traced", its weights and graphs.
 */
#include "../../model/traced_internal.h"
#include "architecture_internal.h"

#include <stdlib.h>

static json_t *numbers_to_json(const int *numbers, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) list = cornu__json_append(list, json_integer(numbers[i]));
    return list;
}

static json_t *graph_to_json(const CornuTracedGraph *graph)
{
    json_t *value = json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "operands", graph->operands,
                              "results", graph->results, "losses", graph->losses,
                              "reads", numbers_to_json(graph->reads, graph->read_count),
                              "assigned", numbers_to_json(graph->assigned, graph->assigned_count),
                              "graph", cornu__functional_to_json(graph->model, NULL));
    if (graph->training_only) value = cornu__json_with(value, "training_only", json_true());
    if (graph->computes_mask) value = cornu__json_with(value, "computes_mask", json_true());
    if (graph->inference_only) value = cornu__json_with(value, "inference_only", json_true());
    return value;
}

json_t *cornu__traced_to_json(const CornuLayer *layer, const CornuPolicy *usual)
{
    const CornuTraced *traced = cornu__as_traced(layer);
    const CornuPolicy *policy = layer->own_policy ? layer->own_policy : usual;
    json_t *config = json_copy(traced->config), *weights = json_array(), *graphs = json_array();
    config = cornu__json_with(config, "name", json_string(cornu_layer_name(layer)));
    config = cornu__json_with(config, "trainable", json_boolean(!layer->frozen));
    config = cornu__json_with(config, "dtype", cornu__policy_to_json(policy));
    for (int i = 0; i < layer->own_count; i++)
        weights = cornu__json_append(weights, cornu__traced_weight_to_json(traced, i));
    for (int i = 0; i < traced->graph_count; i++)
        graphs = cornu__json_append(graphs, graph_to_json(&traced->graphs[i]));
    return json_pack("{s:s, s:s, s:o, s:s, s:{s:o, s:o, s:O, s:b}}", "module", traced->module,
                     "class_name", traced->class_name, "config", config, "registered_name",
                     traced->registered_name, "traced", "weights", weights, "graphs", graphs, "attributes",
                     traced->attributes, "supports_masking", traced->supports_masking);
}

bool cornu__is_traced_json(const json_t *value)
{
    return json_is_object(json_object_get(value, "traced"));
}

static int integer(const json_t *value, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(value, name));
    return number < 0 || number > CORNU_MAX_MODEL_TENSORS ? -1 : (int)number;
}

/* Their number; -1 for more than there can be. */
static int read_numbers(const json_t *list, int numbers[CORNU_MAX_MODEL_TENSORS])
{
    const size_t count = json_array_size(list);
    if (count > CORNU_MAX_MODEL_TENSORS) return -1;
    for (size_t i = 0; i < count; i++) {
        const json_int_t number = json_integer_value(json_array_get(list, i));
        numbers[i] = number < 0 || number > INT32_MAX ? -1 : (int)number;
    }
    return (int)count;
}

/* Layers that an earlier graph calls, too, are that one's. */
static CornuStatus read_graph(CornuTraced *traced, const json_t *value)
{
    CornuTracedGraph graph = {
        .operands = integer(value, "operands"), .results = integer(value, "results"),
        .losses = integer(value, "losses"),
        .training_only = json_is_true(json_object_get(value, "training_only")),
        .inference_only = json_is_true(json_object_get(value, "inference_only")),
        .computes_mask = json_is_true(json_object_get(value, "computes_mask")),
    };
    graph.read_count = read_numbers(json_object_get(value, "reads"), graph.reads);
    graph.assigned_count = read_numbers(json_object_get(value, "assigned"), graph.assigned);
    if (graph.operands < 0 || graph.results < 0 || graph.losses < 0 || graph.read_count < 0 ||
        graph.assigned_count < 0)
        return cornu__fail(CORNU_ERR_FORMAT, "a graph with more than %d operands, weights or "
                           "results", CORNU_MAX_MODEL_TENSORS);
    graph.model = cornu__functional_from_json(
        json_object_get(json_object_get(value, "graph"), "config"), NULL, NULL,
        traced->graph_count ? traced->graphs[0].model : NULL);
    if (!graph.model) return cornu_error_take();
    CORNU__TRY(cornu__traced_add_graph(traced, graph));
    return cornu__traced_check_reads(traced);
}

static CornuStatus read_parts(CornuTraced *traced, const json_t *parts)
{
    const json_t *weights = json_object_get(parts, "weights");
    const json_t *graphs = json_object_get(parts, "graphs");
    json_object_update(traced->attributes, json_object_get(parts, "attributes"));
    for (size_t i = 0; i < json_array_size(weights); i++)
        if (!cornu__traced_add_weight(traced, json_array_get(weights, i)))
            return cornu_error_take();
    for (size_t i = 0; i < json_array_size(graphs); i++)
        CORNU__TRY(read_graph(traced, json_array_get(graphs, i)));
    return json_array_size(graphs) ? CORNU_OK : cornu__unexpected("graphs", "a list of graphs");
}

CornuStatus cornu__traced_from_json(const json_t *value, CornuLayer **layer)
{
    const json_t *parts = json_object_get(value, "traced");
    json_t       *config = json_object_get(value, "config");
    const char   *policy;
    CORNU__TRY(cornu__read_policy(json_object_get(config, "dtype"), &policy));
    char *text = cornu__json_text(config);
    if (!text) return CORNU_ERR_MEMORY;
    *layer = cornu_traced(
        .class_name = json_string_value(json_object_get(value, "class_name")),
        .module = json_string_value(json_object_get(value, "module")),
        .registered_name = json_string_value(json_object_get(value, "registered_name")),
        .config = text, .name = json_string_value(json_object_get(config, "name")),
        .dtype = policy, .frozen = json_is_false(json_object_get(config, "trainable")),
        .supports_masking = json_is_true(json_object_get(parts, "supports_masking")));
    free(text);
    if (!*layer) return cornu_error_take();
    (*layer)->owners = 1;
    return read_parts(cornu__as_traced(*layer), parts);
}
