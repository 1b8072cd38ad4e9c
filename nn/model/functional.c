/* Making a model from symbols: finds the calls between its inputs and outputs, and the order of its
 * layers. Source of the order: keras/src/ops/function.py, map_graph. */
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"

/* ---- The calls that the outputs depend on ---- */

/* A layer, its position in the walk from the outputs, and its farthest call from them. */
typedef struct {
    CornuLayer *layer;
    int         order, depth;
} Placed;

/* A node, its depth, and when map_graph visits it on its way from the outputs. */
typedef struct {
    int node, depth, order;
} Visited;

/* A node whose operands are being visited; `next` is the index of the next one. */
typedef struct {
    CornuNode *node;
    int        next;
} Visit;

typedef struct {
    const CornuModelConfig *config;
    const char *name;
    CornuSymbol *const *more;         /* further inputs */
    int         inputs, outputs, more_count; /* number given */
    int         stamp;
    CornuNode **nodes;                /* in topological order */
    int        *depths;               /* per node: calls to the farthest output */
    Visited    *visited;              /* the nodes in the order of their calls in a step */
    Placed     *layers;
    CornuLookup places;               /* of layers in `layers`, before sorting */
    Visit      *visits;               /* the stack of the walk */
    int         node_count, node_space, layer_count, layer_space, visit_count, visit_space;
} Map;

static bool is_given(const Map *map, const CornuNode *node)
{
    for (int i = 0; i < map->inputs; i++)
        if (map->config->inputs[i]->node == node) return true;
    for (int i = 0; i < map->more_count; i++)
        if (map->more[i]->node == node) return true;
    return false;
}

static CornuStatus add_layer(Map *map, CornuLayer *layer)
{
    if (cornu__lookup_find(&map->places, layer) >= 0) return CORNU_OK;
    CORNU__TRY(cornu__lookup_set(&map->places, layer, map->layer_count));
    CORNU__TRY(cornu__reserve(&map->layers, &map->layer_space, map->layer_count, 1,
                              sizeof *map->layers));
    map->layers[map->layer_count] = (Placed){ .layer = layer, .order = map->layer_count };
    map->layer_count++;
    return CORNU_OK;
}

/* Starts visiting a new node. */
static CornuStatus enter(Map *map, CornuNode *node, const CornuSymbol *output)
{
    CornuText text;
    if (node->stamp == map->stamp) return CORNU_OK;
    node->stamp = map->stamp;
    if (cornu__node_is_input(node) && !is_given(map, node))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the output %s also depends on the input %s, "
                           "which is not among .inputs", map->name,
                           cornu__symbol_print(&text, output), cornu_layer_name(node->layer));
    CORNU__TRY(add_layer(map, node->layer));
    CORNU__TRY(cornu__reserve(&map->visits, &map->visit_space, map->visit_count, 1,
                              sizeof *map->visits));
    map->visits[map->visit_count++] = (Visit){ .node = node };
    return CORNU_OK;
}

/* Files can have chains of calls of any length, so the walk has its own stack. */
static CornuStatus visit(Map *map, const CornuSymbol *output)
{
    CORNU__TRY(enter(map, output->node, output));
    while (map->visit_count > 0) {
        Visit     *at = &map->visits[map->visit_count - 1];
        CornuNode *node = at->node;
        if (at->next < cornu__node_symbols(node)) {
            CORNU__TRY(enter(map, node->in[at->next++]->node, output));
            continue;
        }
        map->visit_count--;
        CORNU__TRY(cornu__reserve(&map->nodes, &map->node_space, map->node_count, 1,
                                  sizeof *map->nodes));
        node->at = map->node_count;
        map->nodes[map->node_count++] = node;
    }
    return CORNU_OK;
}

/* Also visits inputs that no output depends on. */
static CornuStatus visit_all(Map *map)
{
    map->stamp = cornu__next_stamp();
    for (int i = 0; i < map->outputs; i++)
        CORNU__TRY(visit(map, map->config->outputs[i]));
    for (int i = 0; i < map->inputs; i++)
        CORNU__TRY(visit(map, map->config->inputs[i]));
    for (int i = 0; i < map->more_count; i++) CORNU__TRY(visit(map, map->more[i]));
    return CORNU_OK;
}

/* ---- The order of layers ---- */

static void most(int *a, int b)
{
    if (*a < b) *a = b;
}

/* The depth of a layer called several times is that of its farthest call. */
static CornuStatus measure(Map *map)
{
    int order = 0;
    map->depths = cornu__allocate((size_t)map->node_count, sizeof *map->depths);
    map->visited = cornu__allocate((size_t)map->node_count, sizeof *map->visited);
    if (!map->depths || !map->visited) return CORNU_ERR_MEMORY;
    for (int i = map->node_count - 1; i >= 0; i--) {
        const CornuNode *node = map->nodes[i];
        int *of_layer = &map->layers[cornu__lookup_find(&map->places, node->layer)].depth;
        most(&map->depths[i], *of_layer);
        *of_layer = map->depths[i];
        if (!map->visited[i].order) map->visited[i].order = ++order;
        map->visited[i].node = i;
        map->visited[i].depth = map->depths[i];
        for (int k = 0; k < cornu__node_symbols(node); k++) {
            const int before = node->in[k]->node->at;
            most(&map->depths[before], map->depths[i] + 1);
            if (!map->visited[before].order) map->visited[before].order = ++order;
        }
    }
    return CORNU_OK;
}

/* The farthest from the outputs first; then as visited. Moving statistics of a layer that is called
 * several times depend on this order. Source: keras/src/ops/function.py, _run_through_graph. */
static int by_depth_then_order(const void *a, const void *b)
{
    const Visited *x = a, *y = b;
    if (x->depth != y->depth) return x->depth > y->depth ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* By depth, the farthest first; then in the order of the walk. */
static int by_depth(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    if (x->depth != y->depth) return x->depth > y->depth ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static CornuStatus name_layers(const Map *map, CornuLookup *names)
{
    for (int i = 0; i < map->layer_count; i++) {
        const CornuLayer *layer = map->layers[i].layer;
        const int         other = cornu__lookup_find(names, cornu_layer_name(layer));
        if (other >= 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: two layers have the name \"%s\", one "
                               "of class %s and one of class %s", map->name,
                               cornu_layer_name(layer), map->layers[other].layer->kind->class_name,
                               layer->kind->class_name);
        CORNU__TRY(cornu__lookup_set(names, cornu_layer_name(layer), i));
    }
    return CORNU_OK;
}

static CornuStatus check_names(const Map *map)
{
    CornuLookup names = { .of_strings = true };
    CornuStatus status = name_layers(map, &names);
    cornu__lookup_clear(&names);
    return status;
}

/* ---- The model ---- */

/* Layers of another model keep their generators; the others get the ones after these. */
static void number_layers(CornuModel *model)
{
    int64_t next = 0;
    for (int i = 0; i < model->base.inner_count; i++) {
        const CornuLayer *layer = model->base.inner[i];
        const int64_t     end = layer->generator + cornu__layer_generators(layer);
        if (layer->numbered && end > next) next = end;
    }
    for (int i = 0; i < model->base.inner_count; i++) {
        CornuLayer *layer = model->base.inner[i];
        if (layer->numbered) continue;
        cornu__layer_set_generators(layer, model->seed, next);
        next += cornu__layer_generators(layer);
    }
    model->next_generator = next;
}

/* Orders the calls as Keras does, if a layer has several. */
static void order_calls(CornuModel *model, const Map *map)
{
    bool shared = false;
    for (int i = 0; i < map->node_count; i++) shared |= model->calls[i].next != i;
    for (int i = 0; i < map->node_count && shared; i++) model->calls[i].nth = map->visited[i].node;
}

static CornuStatus fill_model(CornuModel *model, const Map *map)
{
    for (int i = 0; i < map->node_count; i++)
        CORNU__TRY(cornu__model_append_call(model, map->nodes[i]));
    order_calls(model, map);
    for (int i = 0; i < map->layer_count; i++)
        CORNU__TRY(cornu__model_append_layer(model, map->layers[i].layer));
    for (int i = 0; i < map->inputs; i++) {
        model->inputs[model->input_count++] = map->config->inputs[i];
        const CornuInputLayer *input = (CornuInputLayer *)map->config->inputs[i]->node->layer;
        const int64_t          batch = input->batch_size;
        if (i == 0) model->input_scale = input->scale;
        if (model->batch_size && batch && batch != model->batch_size)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .batch_size is %lld in one input and %lld "
                               "in another, expected the same", map->name,
                               (long long)model->batch_size, (long long)batch);
        if (batch) model->batch_size = batch;
    }
    for (int i = 0; i < map->outputs; i++)
        model->outputs[model->output_count++] = map->config->outputs[i];
    model->more = cornu__allocate((size_t)map->more_count + 1, sizeof *model->more);
    if (!model->more) return CORNU_ERR_MEMORY;
    for (int i = 0; i < map->more_count; i++) model->more[model->more_count++] = map->more[i];
    model->function = cornu__symbol_is_whole(model->inputs[0]);
    model->base.output = model->outputs[0]->type.shape;
    CORNU__TRY(cornu__model_set_keys(model, map->config->input_keys, map->config->output_keys));
    number_layers(model);
    return cornu__model_list_weights(model);
}

static CornuStatus check_map(Map *map)
{
    const CornuModelConfig *config = map->config;
    while (map->inputs < CORNU_MAX_MODEL_TENSORS && config->inputs[map->inputs]) map->inputs++;
    while (map->outputs < CORNU_MAX_MODEL_TENSORS && config->outputs[map->outputs]) map->outputs++;
    if (!map->inputs || !map->outputs)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is required", map->name,
                           map->inputs ? "outputs" : "inputs");
    for (int i = 0; i < map->inputs; i++) {
        CornuText text;
        if (!cornu__node_is_input(config->inputs[i]->node))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .inputs[%d] is %s, the output of a "
                               "layer; expected a symbol of cornu_input", map->name, i,
                               cornu__symbol_print(&text, config->inputs[i]));
        if (cornu__symbol_is_whole(config->inputs[i]) != cornu__symbol_is_whole(config->inputs[0]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: axis 0 of one of the inputs %s and %s is "
                               "the batch and of the other it is not, expected inputs of one kind",
                               map->name, cornu_layer_name(config->inputs[0]->node->layer),
                               cornu_layer_name(config->inputs[i]->node->layer));
        for (int k = 0; k < i; k++)
            if (config->inputs[i] == config->inputs[k])
                return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .inputs has %s twice", map->name,
                                   cornu_layer_name(config->inputs[i]->node->layer));
    }
    for (int i = 0; i < map->outputs; i++) {
        const CornuShape shape = config->outputs[i]->type.shape;
        CornuText        text, name;
        if (config->outputs[i]->type.dtype == CORNU_STRING)
            return cornu__fail(CORNU_ERR_DTYPE, "%s: the output %s has strings, which only "
                               "cornu_layer_compute gives", map->name,
                               cornu__symbol_print(&name, config->outputs[i]));
        if (!cornu__symbol_is_whole(config->inputs[0]) && !config->only_called &&
            (shape.rank == 0 || shape.extent[0] != CORNU_NONE))
            return cornu__fail(CORNU_ERR_SHAPE, "%s: the output %s is %s, expected the batch as "
                               "axis 0", map->name, cornu__symbol_print(&name, config->outputs[i]),
                               cornu_shape_print(&text, shape));
    }
    for (int i = 0; i < map->more_count; i++)
        if (!cornu__node_is_input(map->more[i]->node) || !cornu__symbol_is_whole(map->more[i]))
            return cornu__fail(CORNU_ERR_FORMAT, "%s: input %d of a graph is the output of a layer",
                               map->name, map->inputs + i);
    CORNU__TRY(visit_all(map));
    CORNU__TRY(measure(map));
    qsort(map->layers, (size_t)map->layer_count, sizeof *map->layers, by_depth);
    qsort(map->visited, (size_t)map->node_count, sizeof *map->visited, by_depth_then_order);
    return check_names(map);
}

CornuModel *cornu__model_of(const CornuModelConfig *config)
{
    return cornu__model_with_more(config, NULL, 0);
}

CornuModel *cornu__model_with_more(const CornuModelConfig *config, CornuSymbol *const *more,
                                   int more_count)
{
    int        *made = &cornu__making()->functional;
    Map         map = { .config = config, .name = config->name ? config->name : "functional",
                        .more = more, .more_count = more_count };
    CornuModel *model = NULL;
    CornuStatus status = cornu_error_pending() ? cornu_error_status() : check_map(&map);
    if (!status) {
        model = cornu__model_create(&cornu__functional_class, config->name, config->policy, made);
        status = model ? fill_model(model, &map) : cornu_error_status();
    }
    for (int i = 0; i < map.node_count && !status; i++) cornu__node_detach(map.nodes[i]);
    cornu__release(map.nodes);
    cornu__release(map.depths);
    cornu__release(map.visited);
    cornu__release(map.layers);
    cornu__release(map.visits);
    cornu__lookup_clear(&map.places);
    if (!status) {
        model->base.built = true;
        return model;
    }
    cornu_model_free(model);
    return cornu__null();
}

CornuModel *cornu_model_from(const CornuModelConfig *config)
{
    CornuModelConfig  own = *config;
    const CornuStatus status = cornu_error_pending() ? cornu_error_status()
                                                     : cornu__cut_inputs(&own);
    CornuModel       *model = status ? cornu__null() : cornu__model_of(&own);
    if (!model) cornu_clear_session();
    return model;
}

CornuLayer *cornu_as_layer(CornuModel *model)
{
    if (cornu__model_check(model)) return cornu__null();
    return &model->base;
}

CornuModel *cornu_as_model(CornuLayer *layer)
{
    if (!layer || cornu_error_pending() || !layer->kind->call_masked) return NULL;
    return (CornuModel *)layer;
}

/* ---- Symbols of a model ---- */

static CornuSymbol *symbol_at(const CornuModel *model, CornuSymbol *const *symbols, int count,
                              int i, const char *what)
{
    if (cornu__model_check(model)) return cornu__null();
    if (i >= 0 && i < count && symbols[i]) return symbols[i];
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: has no %s %d%s", cornu_model_name(model), what,
                            i, model->base.built ? "" : ": it is not built");
}

CornuSymbol *cornu_model_input(const CornuModel *model, int i)
{
    return symbol_at(model, model->inputs, model->input_count, i, "input");
}

CornuSymbol *cornu_model_output(const CornuModel *model, int i)
{
    return symbol_at(model, model->outputs, model->output_count, i, "output");
}

CornuSymbol *cornu_model_symbol(const CornuModel *model, const char *layer)
{
    CORNU__NEED_TO_MAKE(layer);
    if (cornu__model_check(model)) return cornu__null();
    for (int i = 0; i < model->call_count; i++)
        if (!strcmp(cornu_layer_name(model->calls[i].node->layer), layer))
            return &model->calls[i].node->out[0];
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: does not call a layer \"%s\"",
                            cornu_model_name(model), layer);
}
