/* Layers whose call is a graph of calls. */
#include "traced_internal.h"

#include <string.h>

#include "../../../device/inference_internal.h"
#include "../../config/naming_internal.h"
#include "../../layers/rnn/recurrent_internal.h"
#include "../../weights/weight_rules_internal.h"

/* How deep configs and arguments may be nested. */
enum { JSON_DEPTH = 64 };

/* The layer as a traced one, or NULL with a pending error. */
static CornuTraced *needed(const CornuLayer *layer)
{
    CornuTraced *traced = cornu__as_traced(layer);
    return traced ? traced
                  : cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: is a layer of class %s, expected one "
                                     "of cornu_traced", cornu_layer_name(layer),
                                     layer->kind->class_name);
}

/* ---- The class ---- */

static int outputs(const CornuLayer *layer)
{
    const CornuTraced *traced = cornu__as_traced(layer);
    return traced->graph_count ? traced->graphs[0].results : 1;
}

static CornuStatus build_many(CornuLayer *layer, const CornuShape *in, int in_count)
{
    (void)in, (void)in_count;
    if (cornu__as_traced(layer)->graph_count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "has no graph yet; expected cornu_traced_add before it "
                       "is called");
}

static void free_traced(CornuLayer *layer)
{
    CornuTraced *traced = cornu__as_traced(layer);
    for (int i = 0; i < traced->read_count; i++) cornu__node_unref(traced->reads[i].node);
    for (int i = 0; i < traced->graph_count; i++) cornu__release(traced->graphs[i].reads);
    cornu__release(traced->reads);
    cornu__release(traced->class_name);
    cornu__release(traced->module);
    cornu__release(traced->registered_name);
    json_decref(traced->config);
    json_decref(traced->attributes);
}

static const char *shown(const CornuLayer *layer)
{
    return cornu__as_traced(layer)->class_name;
}

static const CornuKerasClass keras = { .shown = shown };

const CornuLayerClass cornu__traced_class = {
    .keras = &keras, .class_name = "Traced", .size = sizeof(CornuTraced), .build_many = build_many,
    .call_many = cornu__traced_call_many, .mask_many = cornu__traced_mask_many,
    .outputs = outputs, .free = free_traced,
    .keeps_integers = true, .any_axis = true, .of_graphs = true, .family = &cornu__traced_cell,
    .is_cell = true,
};

/* ---- Making ---- */

static CornuStatus copy_text(char **to, const char *text, const char *usual)
{
    *to = cornu__copy_text(text ? text : usual);
    return *to ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu_traced_set_config(CornuLayer *layer, const char *config)
{
    CORNU__NEED(layer);
    CORNU__NEED(config);
    CornuTraced *traced = needed(layer);
    if (!traced) return cornu_error_take();
    json_t *value = cornu__json_parse(config, strlen(config), JSON_DEPTH);
    if (!value && cornu_error_status() == CORNU_ERR_MEMORY) return cornu_error_take();
    if (!json_is_object(value)) {
        json_decref(value);
        return cornu__fail(CORNU_ERR_ARGUMENT, "the config of %s is %.80s, expected a JSON object",
                           traced->class_name, config);
    }
    json_decref(traced->config);
    traced->config = value;
    return CORNU_OK;
}

static CornuStatus fill(CornuTraced *traced, const CornuTracedConfig *config)
{
    CORNU__TRY(copy_text(&traced->class_name, config->class_name, NULL));
    CORNU__TRY(copy_text(&traced->module, config->module, "cornu"));
    CORNU__TRY(copy_text(&traced->registered_name, config->registered_name, config->class_name));
    traced->supports_masking = config->supports_masking;
    traced->base.frozen = config->frozen;
    cornu__snake_case(config->class_name, traced->base.class_label,
                      sizeof traced->base.class_label);
    if (!(traced->attributes = json_array())) return CORNU_ERR_MEMORY;
    return cornu_traced_set_config(&traced->base, config->config ? config->config : "{}");
}

CornuLayer *cornu_traced_from(const CornuTracedConfig *config)
{
    if (cornu__refused()) return NULL;
    CORNU__NEED_TO_MAKE(config->class_name);
    CornuLayer *layer = cornu_layer_create(&cornu__traced_class, config->name, config->dtype);
    if (!layer) return NULL;
    if (!fill(cornu__as_traced(layer), config)) return layer;
    cornu_layer_free(layer);
    return cornu__null();
}

/* ---- Weights ---- */

static CornuStatus read_shape(const json_t *value, CornuShape *shape)
{
    if (!json_is_array(value) || json_array_size(value) > CORNU_MAX_RANK)
        return cornu__unexpected("shape", "a list of extents");
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!json_is_integer(json_array_get(value, i)))
            return cornu__unexpected("shape", "a list of extents");
        shape->extent[shape->rank++] = json_integer_value(json_array_get(value, i));
    }
    return CORNU_OK;
}

/* The argument of a family's name, if it is given. */
static CornuStatus read_rule(CornuLayer *layer, const CornuFieldKind *field,
                             const json_t *arguments, void *rule)
{
    const json_t *value = json_object_get(arguments, field->family->word);
    if (!value || json_is_null(value)) return CORNU_OK;
    CORNU__TRY(cornu__read_weight_rule(field->family, value, field->family->word, rule));
    void *memory = field->memory(rule);
    return memory ? cornu__layer_keep(layer, memory) : CORNU_OK;
}

static CornuStatus read_weight(CornuLayer *layer, const json_t *arguments)
{
    CornuInitializer initializer = CORNU_GLOROT_UNIFORM;
    CornuRegularizer regularizer = { 0 };
    CornuConstraint  constraint = { 0 };
    CornuShape       shape = { 0 };
    const char      *name = json_string_value(json_object_get(arguments, "name"));
    if (!name || strchr(name, '/'))     /* which ends the layer's in paths */
        return cornu__unexpected("name", "the name of a weight, without \"/\"");
    CORNU__TRY(read_shape(json_object_get(arguments, "shape"), &shape));
    CORNU__TRY(read_rule(layer, CORNU_FIELD_INITIALIZER, arguments, &initializer));
    CORNU__TRY(read_rule(layer, CORNU_FIELD_REGULARIZER, arguments, &regularizer));
    CORNU__TRY(read_rule(layer, CORNU_FIELD_CONSTRAINT, arguments, &constraint));
    CORNU__TRY(cornu_layer_weight(layer, name, shape, initializer,
                                  json_is_false(json_object_get(arguments, "trainable"))));
    return cornu_layer_weight_rules(layer, regularizer, constraint);
}

static CornuSymbol *make_input(CornuType type, const char *name)
{
    CornuNode *node = cornu__whole_input_node(
        &(CornuInputConfig){ .name = name, .dtype = type.dtype }, type);
    return node ? &node->out[0] : NULL;
}

/* The input that reads the weight, which is made if there is none. */
static CornuSymbol *read_of(CornuTraced *traced, const CornuWeight *weight)
{
    for (int i = 0; i < traced->read_count; i++)
        if (traced->reads[i].weight == weight) return &traced->reads[i].node->out[0];
    if (cornu__reserve(&traced->reads, &traced->read_space, traced->read_count, 1,
                       sizeof *traced->reads))
        return cornu__null();
    CornuSymbol *symbol = make_input(weight->type, weight->path);
    if (!symbol) return NULL;
    traced->reads[traced->read_count++] = (CornuTracedRead){ cornu__node_ref(symbol->node),
                                                             weight };
    return symbol;
}

CornuSymbol *cornu__traced_add_weight(CornuTraced *traced, const json_t *arguments)
{
    CornuLayer *layer = &traced->base;
    if (layer->calls > 0 || layer->compiled > 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: a weight is added after the layer was "
                                "called, expected its weights before", cornu_layer_name(layer));
    if (cornu__fail_prefix(read_weight(layer, arguments), cornu_layer_name(layer)))
        return cornu__null();
    return read_of(traced, layer->weights[layer->own_count - 1]);
}

CornuSymbol *cornu_traced_read(CornuLayer *layer, const CornuWeight *weight)
{
    CORNU__NEED_TO_MAKE(layer);
    CORNU__NEED_TO_MAKE(weight);
    CornuTraced *traced = cornu__refused() ? NULL : needed(layer);
    return traced ? read_of(traced, weight) : NULL;
}

CornuSymbol *cornu_traced_weight(CornuLayer *layer, const char *arguments)
{
    CORNU__NEED_TO_MAKE(layer);
    CORNU__NEED_TO_MAKE(arguments);
    CornuTraced *traced = cornu__refused() ? NULL : needed(layer);
    if (!traced) return NULL;
    json_t      *value = cornu__json_parse(arguments, strlen(arguments), JSON_DEPTH);
    CornuSymbol *symbol = value ? cornu__traced_add_weight(traced, value) : cornu__null();
    json_decref(value);
    return symbol;
}

json_t *cornu__traced_weight_to_json(const CornuTraced *traced, int i)
{
    const CornuWeight *weight = traced->base.weights[i];
    const char        *name = strrchr(weight->path, '/');
    return json_pack("{s:s, s:o, s:b, s:o, s:o, s:o}", "name", name ? name + 1 : weight->path,
                     "shape", cornu__json_shape(weight->type.shape),
                     "trainable", !weight->non_trainable,
                     "initializer", cornu__weight_rule_to_json(&cornu__initializers,
                                                               &weight->initializer),
                     "regularizer", cornu__weight_rule_to_json(&cornu__regularizers,
                                                               &weight->regularizer),
                     "constraint", cornu__weight_rule_to_json(&cornu__constraints,
                                                              &weight->constraint));
}

/* ---- Graphs ---- */

/* The layer of that name that a graph calls; NULL: none does. */
static const CornuLayer *called(const CornuTraced *traced, const char *name)
{
    for (int i = 0; i < traced->graph_count; i++) {
        const CornuModel *model = traced->graphs[i].model;
        const int         at = cornu__lookup_find(&model->names, name);
        if (at >= 0) return model->base.inner[at];
    }
    return NULL;
}

static CornuStatus list_of(CornuLayer *layer, const CornuLayer *inner, CornuLookup *known)
{
    int space = layer->weight_count;
    CORNU__TRY(cornu__reserve(&layer->weights, &space, layer->weight_count, inner->weight_count,
                              sizeof *layer->weights));
    for (int i = 0; i < inner->weight_count; i++) {
        if (cornu__lookup_find(known, inner->weights[i]) >= 0) continue;
        CORNU__TRY(cornu__lookup_set(known, inner->weights[i], layer->weight_count));
        layer->weights[layer->weight_count++] = inner->weights[i];
    }
    return CORNU_OK;
}

/* After its own ones, of the layers that its graphs call, in Keras' order, that of attributes; each
 * once. */
static CornuStatus list_weights(CornuTraced *traced)
{
    CornuLayer *layer = &traced->base;
    CornuLookup known = { 0 };
    CornuStatus status = CORNU_OK;
    layer->weight_count = layer->own_count;
    for (size_t i = 0; i < json_array_size(traced->attributes) && !status; i++) {
        const json_t     *pair = json_array_get(traced->attributes, i);
        const CornuLayer *inner = called(traced, json_string_value(json_array_get(pair, 0)));
        if (inner) status = list_of(layer, inner, &known);
    }
    for (int g = 0; g < traced->graph_count && !status; g++)
        status = list_of(layer, &traced->graphs[g].model->base, &known);
    cornu__lookup_clear(&known);
    return status;
}

static bool is_never_called(const CornuTracedGraph *graph)
{
    return graph->training_only && graph->inference_only;
}

static CornuStatus check_graph(const CornuTraced *traced, const CornuTracedGraph *graph)
{
    bool known = graph->results > 0 && graph->operands > 0 &&
                 graph->model->input_count + graph->model->more_count ==
                     graph->operands + graph->read_count &&
                 graph->model->output_count ==
                     graph->results + graph->losses + graph->assigned_count;
    for (int i = 0; i < graph->assigned_count; i++) known &= graph->assigned[i] >= 0;
    if (!known)
        return cornu__fail(CORNU_ERR_FORMAT, "a graph does not have the operands, weights and "
                           "results that it says");
    if (traced->graph_count == CORNU_MAX_WRAPPED)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is traced for more than %d types of operands",
                           CORNU_MAX_WRAPPED);
    const CornuTracedGraph *first = traced->graph_count ? &traced->graphs[0] : NULL;
    if (first && !is_never_called(first) && cornu__traced_computes(graph) == CORNU_TRACED_RESULTS &&
        !is_never_called(graph) && first->results != graph->results)
        return cornu__fail(CORNU_ERR_ARGUMENT, "returns %d tensors and, for other operands or in "
                           "training, %d; expected the same number", first->results,
                           graph->results);
    return cornu__check_depth(cornu_layer_name(&traced->base), &graph->model->base);
}

/* Graphs that are never called come last: the first one says how many results the layer has. */
static void insert(CornuTraced *traced, CornuTracedGraph graph)
{
    int at = traced->graph_count++;
    for (; at > 0 && !is_never_called(&graph) && is_never_called(&traced->graphs[at - 1]); at--)
        traced->graphs[at] = traced->graphs[at - 1];
    traced->graphs[at] = graph;
}

CornuStatus cornu__traced_add_graph(CornuTraced *traced, CornuTracedGraph graph)
{
    CornuLayer *layer = &traced->base;
    CornuStatus status = check_graph(traced, &graph);
    if (status) {
        cornu_model_free(graph.model);
        cornu__release(graph.reads);
        return cornu__fail_prefix(status, cornu_layer_name(layer));
    }
    graph.model->is_traced = true;
    layer->inner = layer->wrapped;
    layer->inner[layer->inner_count++] = &graph.model->base;
    if (layer->depth <= graph.model->base.depth) layer->depth = graph.model->base.depth + 1;
    insert(traced, graph);
    return list_weights(traced);
}

int cornu__traced_place(const CornuTraced *traced, const CornuWeight *weight)
{
    int i = traced->base.weight_count - 1;
    while (i >= 0 && traced->base.weights[i] != weight) i--;
    return i;
}

/* The place among traced->reads of what an input of a graph reads, or -1. */
static int read_at(const CornuTraced *traced, const CornuNode *node)
{
    int i = traced->read_count - 1;
    while (i >= 0 && traced->reads[i].node != node) i--;
    return i;
}

/* A weight that a graph reads becomes an input after the operands, or one of the further ones. */
static void add_read(const CornuTraced *traced, CornuTracedGraph *graph, CornuModelConfig *ends,
                     CornuSymbol **more, int weight)
{
    const int    at = graph->operands + graph->read_count;
    CornuSymbol *symbol = &traced->reads[weight].node->out[0];
    if (at < CORNU_MAX_MODEL_TENSORS) ends->inputs[at] = symbol;
    else more[at - CORNU_MAX_MODEL_TENSORS] = symbol;
    graph->reads[graph->read_count++] = traced->reads[weight].weight;
}

/* The weights that symbols depend on, of which both lists have room for all. */
static CornuStatus add_reads(const CornuTraced *traced, CornuTracedGraph *graph,
                             CornuModelConfig *ends, CornuSymbol **more)
{
    CornuNode **left = NULL;
    int         space = 0, count = 0;
    CornuStatus status = CORNU_OK;
    const int   stamp = cornu__next_stamp();
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && ends->outputs[i] && !status; i++) {
        status = cornu__reserve(&left, &space, count, 1, sizeof *left);
        if (!status) left[count++] = ends->outputs[i]->node;
    }
    while (count > 0 && !status) {
        CornuNode *node = left[--count];
        const int  weight = node->stamp == stamp || node->in_count ? -1 : read_at(traced, node);
        if (node->stamp == stamp) continue;
        node->stamp = stamp;
        if (weight >= 0) add_read(traced, graph, ends, more, weight);
        const int before = cornu__node_symbols(node);
        status = cornu__reserve(&left, &space, count, before, sizeof *left);
        for (int i = 0; i < before && !status; i++) left[count++] = node->in[i]->node;
    }
    cornu__release(left);
    return status;
}

/* Appends symbols to the graph's outputs; their number. */
static int append(CornuModelConfig *ends, int *at, CornuSymbol *const *symbols)
{
    int count = 0;
    while (count < CORNU_MAX_MODEL_TENSORS && symbols[count]) {
        if (*at < CORNU_MAX_MODEL_TENSORS) ends->outputs[*at] = symbols[count];
        ++*at, count++;
    }
    return count;
}

/* Adds a graph whose weights must be the layer's, which is known then. */
static CornuStatus add_traced(CornuTraced *traced, CornuTracedGraph graph,
                              const CornuTracedGraphConfig *config)
{
    CORNU__TRY(cornu__traced_add_graph(traced, graph));
    CornuTracedGraph *added = &traced->graphs[traced->graph_count - 1];
    for (int i = 0; i < graph.assigned_count; i++) {
        if (!config->assigned_of[i]) continue;
        added->assigned[i] = cornu__traced_place(traced, config->assigned_of[i]);
        if (added->assigned[i] < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: assigns %s, a weight of a layer that it "
                               "does not call", cornu_layer_name(&traced->base),
                               config->assigned_of[i]->path);
    }
    for (int i = 0; i < graph.read_count; i++)
        if (cornu__traced_place(traced, graph.reads[i]) < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: reads %s, a weight of a layer that it does "
                               "not call", cornu_layer_name(&traced->base), graph.reads[i]->path);
    return CORNU_OK;
}

CornuStatus cornu_traced_add_from(CornuLayer *layer, const CornuTracedGraphConfig *config)
{
    CORNU__NEED(layer);
    CORNU__NEED(config);
    if (cornu_error_pending()) return cornu_error_take();
    CornuTraced *traced = needed(layer);
    if (!traced) return cornu_error_take();
    CornuModelConfig ends = { .name = cornu_layer_name(layer) };
    CornuTracedGraph graph = { .training_only = config->training_only,
                               .inference_only = config->inference_only,
                               .computes_mask = config->computes_mask,
                               .computes_states = config->computes_states };
    int              outputs = 0;
    while (graph.operands < CORNU_MAX_MODEL_TENSORS && config->inputs[graph.operands]) {
        ends.inputs[graph.operands] = config->inputs[graph.operands];
        graph.operands++;
    }
    graph.results = append(&ends, &outputs, config->outputs);
    graph.losses = append(&ends, &outputs, config->losses);
    graph.assigned_count = append(&ends, &outputs, config->values);
    memcpy(graph.assigned, config->assigned, sizeof graph.assigned);
    if (outputs > CORNU_MAX_MODEL_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has %d results, losses and assigned "
                           "weights, expected at most %d", cornu_layer_name(layer), outputs,
                           CORNU_MAX_MODEL_TENSORS);
    CornuSymbol **more = cornu__allocate((size_t)traced->read_count + 1, sizeof *more);
    graph.reads = cornu__allocate((size_t)traced->read_count + 1, sizeof *graph.reads);
    CornuStatus status = more && graph.reads ? add_reads(traced, &graph, &ends, more)
                                             : CORNU_ERR_MEMORY;
    const int further = graph.operands + graph.read_count - CORNU_MAX_MODEL_TENSORS;
    if (!status) graph.model = cornu__model_with_more(&ends, more, further > 0 ? further : 0);
    if (!status && !graph.model) status = cornu_error_take();
    cornu__release(more);
    if (!status) return add_traced(traced, graph, config);
    cornu__release(graph.reads);
    return status;
}

CornuSymbol *cornu_placeholder(CornuType type, const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    if (cornu__refused()) return NULL;
    if (type.dtype == CORNU_STRING)
        return cornu__fail_null(CORNU_ERR_DTYPE, "%s: strings are not computed with in a graph",
                                name);
    CornuSymbol *symbol = make_input(type, name);
    return symbol ? cornu__node_keep(symbol->node) : NULL;
}

/* [name, attribute] of a layer, or NULL. */
static const json_t *attribute_of(const CornuTraced *traced, const CornuLayer *inner)
{
    for (size_t i = 0; i < json_array_size(traced->attributes); i++) {
        const json_t *pair = json_array_get(traced->attributes, i);
        if (!strcmp(json_string_value(json_array_get(pair, 0)), cornu_layer_name(inner)))
            return pair;
    }
    return NULL;
}

bool cornu__traced_set_attributes(CornuTraced *traced, const json_t *pairs)
{
    bool known = true;
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        known &= json_is_string(json_array_get(pair, 0)) && json_is_string(json_array_get(pair, 1));
    }
    return known && (!pairs || !json_array_extend(traced->attributes, (json_t *)pairs));
}

CornuStatus cornu_traced_attribute(CornuLayer *layer, const CornuLayer *inner,
                                   const char *attribute)
{
    CORNU__NEED(layer);
    CORNU__NEED(inner);
    CORNU__NEED(attribute);
    CornuTraced *traced = needed(layer);
    if (!traced) return cornu_error_take();
    if (attribute_of(traced, inner)) return CORNU_OK;   /* the first one */
    if (!json_array_append_new(traced->attributes, json_pack("[s, s]", cornu_layer_name(inner),
                                                             attribute)))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "no memory for an attribute");
}

const char *cornu__traced_attribute(const CornuTraced *traced, const CornuLayer *inner)
{
    const json_t *pair = attribute_of(traced, inner);
    return pair ? json_string_value(json_array_get(pair, 1)) : cornu_layer_name(inner);
}

CornuLayer *cornu_traced_layer(const CornuLayer *layer, const char *attribute)
{
    CORNU__NEED_OR(layer, NULL);
    CORNU__NEED_OR(attribute, NULL);
    const CornuTraced *traced = cornu__as_traced(layer);
    for (int i = 0; traced && i < traced->graph_count; i++) {
        const CornuLayer *model = &traced->graphs[i].model->base;
        for (int k = 0; k < model->inner_count; k++)
            if (!strcmp(cornu__traced_attribute(traced, model->inner[k]), attribute))
                return model->inner[k];
    }
    return NULL;
}

bool cornu_traced_takes(const CornuLayer *layer, const CornuType *types, int count)
{
    CORNU__NEED_OR(layer, false);
    const CornuTraced *traced = cornu__as_traced(layer);
    return traced && cornu__traced_graph_for(traced, types, count, true, CORNU_TRACED_RESULTS) &&
           cornu__traced_graph_for(traced, types, count, false, CORNU_TRACED_RESULTS);
}

const char *cornu_traced_class(const CornuLayer *layer)
{
    CORNU__NEED_OR(layer, NULL);
    return cornu__as_traced(layer) ? cornu__as_traced(layer)->class_name : NULL;
}
