/* Functional models from Keras' JSON: layers, and the calls that link them.
 * Source: keras/src/models/functional.py, functional_from_config. */
#include "links_internal.h"

#include <string.h>

static void free_links(CornuLinks *links)
{
    for (size_t i = 0; i < links->count && links->layers; i++) {
        CornuLinked *layer = &links->layers[i];
        for (size_t k = 0; k < layer->made; k++) cornu__node_unref(layer->nodes[k]);
        cornu__release(layer->nodes);
        cornu_layer_free(layer->layer);
    }
    cornu__release(links->layers);
    json_decref(links->places);
}

static void hold(CornuLinked *layer, CornuNode *node)
{
    layer->nodes[layer->made++] = cornu__node_ref(node);
}

static CornuStatus make_input(const json_t *value, CornuLinked *layer)
{
    CornuInputConfig input = { 0 };
    CornuType        type;
    const bool       whole = cornu__is_whole_input(value);
    CORNU__TRY(whole ? cornu__read_whole_input(value, &input, &type)
                     : cornu__read_input(value, &input));
    if (!input.name) return cornu__fail(CORNU_ERR_FORMAT, "an InputLayer without a name");
    if (!whole) CORNU__TRY(cornu__input_check(&input, input.name, "", &type));
    CornuNode *node = whole ? cornu__whole_input_node(&input, type)
                            : cornu__input_node(&input, type);
    if (!node) return cornu_error_take();
    layer->name = input.name;
    hold(layer, node);
    return CORNU_OK;
}

/* The layer's JSON, to whose config the arguments are added that Keras has in the first call. NULL
 * when out of memory. */
static json_t *with_call_arguments(const json_t *value)
{
    const CornuLayerClass *kind = cornu__json_class(value);
    const char            *words = kind ? cornu__keras_class_of(kind)->call_arguments : NULL;
    json_t *config = json_copy(json_object_get(value, "config"));
    char    word[64];
    if (!words || !config) {
        json_decref(config);
        return json_incref((json_t *)value);
    }
    while (cornu__next_word(&words, word)) {
        const json_t *calls = json_object_get(value, "inbound_nodes");
        json_t       *given = json_object_get(cornu__kwargs_of(calls, 0), word);
        if (given) config = cornu__json_with(config, word, json_incref(given));
    }
    return cornu__json_with(json_copy((json_t *)value), "config", config);
}

/* The layer of that name in one of the graphs; operations and inputs are each graph's own. */
static CornuLayer *shared_layer(const CornuTraced *shared, const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "name"));
    for (int g = 0; shared && name && g < shared->graph_count; g++) {
        const CornuModel *model = shared->graphs[g].model;
        const int         at = cornu__lookup_find(&model->names, name);
        if (at >= 0) return model->base.inner[at];
    }
    return NULL;
}

/* Makes a layer, without its calls. */
static CornuStatus make_linked(const json_t *value, const CornuPolicy *usual,
                               const CornuTraced *shared, CornuLinked *layer)
{
    const char *module = json_string_value(json_object_get(value, "module"));
    layer->is_operation = module && !strncmp(module, CORNU__OPERATIONS_MODULE,
                                             strlen(CORNU__OPERATIONS_MODULE));
    if (layer->is_operation && !cornu__operation_of_json(value)) {
        layer->name = json_string_value(json_object_get(value, "name"));
        layer->class_name = json_string_value(json_object_get(value, "class_name"));
        return layer->name ? CORNU_OK : cornu__fail(CORNU_ERR_FORMAT, "an operation without name");
    }
    layer->calls = json_object_get(value, "inbound_nodes");
    layer->count = cornu__is_input_json(value) ? 1 : json_array_size(layer->calls);
    if (!(layer->nodes = cornu__allocate(layer->count + 1, sizeof *layer->nodes)))
        return CORNU_ERR_MEMORY;
    if (cornu__is_input_json(value)) return make_input(value, layer);
    if (layer->is_operation) {
        CORNU__TRY(cornu__operation_from_json(value, &layer->layer));
        layer->name = cornu_layer_name(layer->layer);
        return CORNU_OK;
    }
    if ((layer->layer = shared_layer(shared, value))) {
        layer->layer->owners++;
        layer->name = cornu_layer_name(layer->layer);
        return CORNU_OK;
    }
    json_t     *whole = with_call_arguments(value);
    CornuStatus status = cornu__layer_from_json(whole, usual, &layer->layer);
    json_decref(whole);
    CORNU__TRY(status);
    layer->name = cornu_layer_name(layer->layer);
    return CORNU_OK;
}

static CornuStatus make_all(const json_t *layers, const CornuPolicy *usual, CornuLinks *links)
{
    links->layers = cornu__allocate(json_array_size(layers) + 1, sizeof *links->layers);
    links->places = json_object();
    if (!links->layers || !links->places) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        CornuLinked *layer = &links->layers[links->count++];
        CORNU__TRY(make_linked(json_array_get(layers, i), usual, links->shared, layer));
        if (json_object_get(links->places, layer->name))
            return cornu__fail(CORNU_ERR_FORMAT, "two layers have the name \"%.60s\"",
                               layer->name);
        if (json_object_set_new(links->places, layer->name, json_integer((json_int_t)i)))
            return cornu__fail(CORNU_ERR_MEMORY, "no memory for the names of layers");
    }
    return CORNU_OK;
}

/* Makes the wanted calls, up to one that waits for another layer, *waits; NULL if all are made. */
static CornuStatus make_calls(const CornuLinks *links, CornuLinked *layer, CornuLinked **waits)
{
    *waits = NULL;
    while (layer->made < layer->wanted) {
        CornuCallOperands operands = { .count = 0 };
        const json_t     *call = json_array_get(layer->calls, layer->made);
        CORNU__TRY(cornu__fail_prefix(cornu__read_call(links, layer, call, &operands),
                                      layer->name));
        if (operands.waits) {
            *waits = operands.waits;
            if (!operands.waits->waited_for) operands.waits->wanted = operands.calls;
            return CORNU_OK;
        }
        CornuNode *node = cornu__call_node(layer->layer, operands.in, operands.count,
                                           &operands.options);
        if (!node) return cornu_error_take();
        hold(layer, node);
    }
    return CORNU_OK;
}

/* Makes the calls of a layer, after those that they wait for. `chain`, in which each layer waits
 * for the next, has room for all layers. */
static CornuStatus link_layer(const CornuLinks *links, CornuLinked *layer, CornuLinked **chain)
{
    size_t length = 0;
    layer->wanted = layer->count;
    while (layer) {
        CornuLinked *waits;
        if (!layer->waited_for) chain[length++] = layer;
        layer->waited_for = true;
        CORNU__TRY(make_calls(links, layer, &waits));
        if (waits && waits->waited_for)
            return cornu__fail(CORNU_ERR_FORMAT, "%.60s: call %zu depends on itself, or on one "
                               "that does", layer->name, layer->made);
        if (!waits) {
            layer->waited_for = false;
            length--;
        }
        layer = waits ? waits : length > 0 ? chain[length - 1] : NULL;
    }
    return CORNU_OK;
}

/* A layer may be called in several places, so the order of layers is not that of calls. */
static CornuStatus link_all(const CornuLinks *links)
{
    CornuLinked **chain = cornu__allocate(links->count, sizeof *chain);
    CornuStatus   status = chain ? CORNU_OK : CORNU_ERR_MEMORY;
    for (size_t i = 0; i < links->count && !status; i++)
        status = link_layer(links, &links->layers[i], chain);
    cornu__release(chain);
    return status;
}

typedef struct {
    const CornuLinks *links;
    CornuSymbol     **to;
    int               count;
} ReadEnds;

static CornuStatus read_end(void *context, const json_t *history)
{
    ReadEnds    *ends = context;
    CornuLinked *waits;   /* stays NULL: all calls have been made */
    size_t       calls;
    if (ends->count == CORNU_MAX_MODEL_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "more than %d tensors", CORNU_MAX_MODEL_TENSORS);
    return cornu__find_symbol(ends->links, history, true, &ends->to[ends->count++], &waits, &calls);
}

/* The inputs or outputs of a model: one tensor, or nested lists and dictionaries of them. */
static CornuStatus read_ends(const CornuLinks *links, const json_t *value, const char *what,
                             CornuSymbol **to)
{
    ReadEnds ends = { .links = links, .to = to };
    CORNU__TRY(cornu__fail_prefix(cornu__each_leaf(value, read_end, &ends), what));
    return ends.count > 0 ? CORNU_OK : cornu__fail(CORNU_ERR_FORMAT, "%s is empty", what);
}

/* The further inputs of a graph of a traced layer; the caller releases the list. */
static CornuStatus read_more(const CornuLinks *links, const json_t *list, CornuSymbol ***more)
{
    *more = cornu__allocate(json_array_size(list) + 1, sizeof **more);
    if (!*more) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < json_array_size(list); i++) {
        CornuLinked *waits;
        size_t       calls;
        CORNU__TRY(cornu__find_symbol(links, json_array_get(list, i), true, &(*more)[i], &waits,
                                      &calls));
    }
    return CORNU_OK;
}

CornuModel *cornu__functional_from_json(const json_t *config, const char *policy,
                                        const CornuPolicy *usual, const CornuTraced *shared)
{
    CornuLinks       links = { .shared = shared };
    CornuModel      *model = NULL;
    CornuSymbol    **more = NULL;
    const json_t    *others = json_object_get(config, "more_inputs");
    CornuModelConfig ends = {
        .name = json_string_value(json_object_get(config, "name")), .policy = policy,
    };
    const CornuPolicy *own = policy ? cornu_policy(policy) : usual;
    CornuStatus        status = cornu_error_take();
    if (!status) status = make_all(json_object_get(config, "layers"), own, &links);
    if (!status) status = link_all(&links);
    if (!status)
        status = read_ends(&links, json_object_get(config, "input_layers"), "input_layers",
                           ends.inputs);
    if (!status)
        status = read_ends(&links, json_object_get(config, "output_layers"), "output_layers",
                           ends.outputs);
    if (!status)
        status = cornu__form_keys(json_object_get(config, "input_layers"), ends.input_keys,
                                  CORNU_MAX_MODEL_TENSORS);
    if (!status)
        status = cornu__form_keys(json_object_get(config, "output_layers"), ends.output_keys,
                                  CORNU_MAX_MODEL_TENSORS);
    if (!status) status = read_more(&links, others, &more);
    if (status) cornu__null();
    else model = cornu__model_with_more(&ends, more, (int)json_array_size(others));
    cornu__release(more);
    free_links(&links);
    if (!model) return NULL;
    model->input_form = json_incref(json_object_get(config, "input_layers"));
    model->output_form = json_incref(json_object_get(config, "output_layers"));
    return model;
}
