/* Writing and reading Functional models as Keras' JSON: layers, and the calls that link them.
 * Source: keras/src/models/functional.py, get_config and functional_from_config. */
#include "architecture_internal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Writing ---- */

/* The calls of a model, grouped by layer, in the order in which the model counts them. */
typedef struct {
    const CornuModel *model;
    const CornuNode **nodes;
    CornuLookup       places;     /* in `nodes`: of each node, and of the first of each layer */
} Written;

/* By layer, in any order, and by call within a layer. */
static int by_layer(const void *a, const void *b)
{
    const CornuNode *x = *(const CornuNode *const *)a, *y = *(const CornuNode *const *)b;
    const uintptr_t  of_x = (uintptr_t)x->layer, of_y = (uintptr_t)y->layer;
    if (of_x != of_y) return of_x < of_y ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static CornuStatus sort_calls(const CornuModel *model, Written *written)
{
    const int count = model->call_count;
    *written = (Written){ .model = model };
    if (!(written->nodes = cornu__allocate((size_t)count, sizeof *written->nodes)))
        return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) written->nodes[i] = model->calls[i].node;
    qsort(written->nodes, (size_t)count, sizeof *written->nodes, by_layer);
    for (int i = 0; i < count; i++) {
        const CornuLayer *layer = written->nodes[i]->layer;
        CORNU__TRY(cornu__lookup_set(&written->places, written->nodes[i], i));
        if (i == 0 || layer != written->nodes[i - 1]->layer)
            CORNU__TRY(cornu__lookup_set(&written->places, layer, i));
    }
    return CORNU_OK;
}

static void free_written(Written *written)
{
    cornu__release(written->nodes);
    cornu__lookup_clear(&written->places);
}

static int call_number(const Written *written, const CornuNode *node)
{
    return cornu__lookup_find(&written->places, node) -
           cornu__lookup_find(&written->places, node->layer);
}

/* Call `number` of the layer; NULL if it has fewer. */
static const CornuNode *call_of(const Written *written, const CornuLayer *layer, int number)
{
    const int at = cornu__lookup_find(&written->places, layer) + number;
    return at < written->model->call_count && written->nodes[at]->layer == layer
               ? written->nodes[at] : NULL;
}

/* [layer, call, result]. Keras counts the calls of a nested functional model from 1 in the outputs
 * of a model, and from 0 elsewhere. */
static json_t *history_to_json(const Written *written, const CornuSymbol *symbol, bool given)
{
    const CornuLayer *layer = symbol->node->layer;
    const int         first = given && layer->kind == &cornu__functional_class;
    return json_pack("[s, i, i]", cornu_layer_name(layer),
                     first + call_number(written, symbol->node), symbol->index);
}

static json_t *symbol_to_json(const Written *written, const CornuSymbol *symbol)
{
    const CornuShape shape = symbol->type.shape;
    return json_pack("{s:s, s:{s:o, s:s, s:o}}", "class_name", "__keras_tensor__", "config",
                     "shape", cornu__json_shape(shape),
                     "dtype", cornu__keras_dtype(symbol->type.dtype),
                     "keras_history", history_to_json(written, symbol, false));
}

static json_t *symbols_to_json(const Written *written, CornuSymbol *const *symbols, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        list = cornu__json_append(list, symbol_to_json(written, symbols[i]));
    return list;
}

/* Takes the next of the words in *text, which blanks separate; false after the last. */
static bool next_word(const char **text, char word[64])
{
    size_t length = *text ? strcspn(*text, " ") : 0;
    if (length == 0) return false;
    snprintf(word, 64, "%.*s", (int)length, *text);
    *text += length + strspn(*text + length, " ");
    return true;
}

/* The keyword without the mark of a list. */
static bool cut_star(char word[64])
{
    const size_t last = strlen(word) - 1;
    if (word[last] != '*') return false;
    word[last] = '\0';
    return true;
}

/* The operands after the first, by the keywords of the layer's class. If Keras requires a second
 * one and there is none, the first is repeated. */
static json_t *keywords_to_json(const Written *written, const CornuNode *node, json_t *kwargs)
{
    const char *words = node->layer->kind->operands;
    char        word[64];
    const int least = node->layer->kind->one_operand ? 1 : 2;
    for (int i = 1; (i < least || i < node->in_count) && next_word(&words, word); i++) {
        const bool list = cut_star(word);
        if (list && i == node->in_count) break;
        kwargs = cornu__json_with(kwargs, word,
                                  list ? symbols_to_json(written, node->in + i, node->in_count - i)
                                       : symbol_to_json(written, node->in[i % node->in_count]));
        if (list) break;
    }
    return kwargs;
}

/* The mask given for operand i; null if there is none. */
static json_t *mask_to_json(const Written *written, const CornuNode *node, int i)
{
    int k = 0;
    while (k < node->mask_count && node->mask_of[k] != i) k++;
    return k < node->mask_count ? symbol_to_json(written, node->in[node->in_count + k])
                                : json_null();
}

/* Masks that were given: "mask" is that of the first operand, or a list where the operands are one;
 * or each operand has a keyword. */
static json_t *masks_to_json(const Written *written, const CornuNode *node, json_t *kwargs)
{
    const CornuLayerClass *kind = node->layer->kind;
    const char            *words = kind->operands;
    char                   word[64], key[80];
    if (kind->first_operand && node->in_count > 1) {
        snprintf(word, sizeof word, "%s", kind->first_operand);
        for (int i = 0; i < node->in_count && (i == 0 || next_word(&words, word)); i++) {
            snprintf(key, sizeof key, "%s_mask", word);
            kwargs = cornu__json_with(kwargs, key, mask_to_json(written, node, i));
        }
        return kwargs;
    }
    json_t *list = json_array();
    if (kind->operands || node->in_count == 1) {
        json_decref(list);
        return cornu__json_with(kwargs, "mask", mask_to_json(written, node, 0));
    }
    for (int i = 0; i < node->in_count; i++)
        list = cornu__json_append(list, mask_to_json(written, node, i));
    return cornu__json_with(kwargs, "mask", list);
}

typedef struct { const Written *written; const CornuNode *node; } WrittenNode;

static json_t *operand_to_json(void *context, int i)
{
    const WrittenNode *of = context;
    return symbol_to_json(of->written, of->node->in[i]);
}

/* The form that the model was read in, or a dictionary of its keys; NULL if it has neither. */
static json_t *form_of(json_t *form, char *const *keys, int count)
{
    return form ? json_incref(form) : keys[0] ? cornu__form_of_keys(keys, count) : NULL;
}

/* The symbols that take the places of leaves, one by one. */
typedef struct {
    const Written      *written;
    CornuSymbol *const *next;
} Ends;

static json_t *next_end(void *context)
{
    Ends *ends = context;
    return history_to_json(ends->written, *ends->next++, true);
}

static json_t *next_operand(void *context)
{
    Ends *ends = context;
    return symbol_to_json(ends->written, *ends->next++);
}

static json_t *call_to_json(const Written *written, const CornuNode *node, json_t *kwargs)
{
    const bool keywords = node->layer->kind->operands != NULL;
    if (cornu__as_operation(node->layer)) {
        json_decref(kwargs);
        return cornu__operation_call_to_json(node->layer, operand_to_json,
                                             &(WrittenNode){ written, node });
    }
    if (node->mask_count) kwargs = masks_to_json(written, node, kwargs);
    if (node->training != CORNU_NOT_FORCED)
        kwargs = cornu__json_with(kwargs, "training",
                                  json_boolean(node->training == CORNU_FORCED_TRAINING));
    if (node->reverse) kwargs = cornu__json_with(kwargs, "reverse", json_true());
    const CornuModel *model = node->layer->kind == &cornu__functional_class
                                  ? (const CornuModel *)node->layer : NULL;
    json_t *form = model ? form_of(model->input_form, model->input_keys, model->input_count) : NULL;
    if (form) {
        json_t *given = cornu__with_leaves(form, next_operand, &(Ends){ written, node->in });
        json_decref(form);
        return json_pack("{s:[o], s:o}", "args", given, "kwargs", kwargs);
    }
    json_t    *args = symbols_to_json(written, node->in, keywords ? 1 : node->in_count);
    if (keywords) kwargs = keywords_to_json(written, node, kwargs);
    const char *format = node->in_count > 1 && !keywords ? "{s:[o], s:o}" : "{s:o, s:o}";
    return json_pack(format, "args", args, "kwargs", kwargs);
}

/* Moves arguments that Keras takes in each call out of a layer's config. */
static json_t *take_call_arguments(const CornuLayerClass *kind, json_t *config)
{
    json_t     *taken = json_object();
    const char *words = kind->call_arguments;
    char        word[64];
    while (next_word(&words, word)) {
        taken = cornu__json_with(taken, word, json_incref(json_object_get(config, word)));
        json_object_del(config, word);
    }
    return taken;
}

/* A layer and the calls that the model makes of it; an input has none. */
static json_t *linked_to_json(const Written *written, const CornuLayer *layer,
                              const CornuPolicy *usual)
{
    const CornuNode *node = call_of(written, layer, 0);
    const bool       is_input = node->in_count == 0;
    json_t *result = is_input ? cornu__input_to_json(written->model, &node->out[0])
                              : cornu__layer_to_json(layer, usual);
    json_t *arguments = take_call_arguments(layer->kind, json_object_get(result, "config"));
    json_t *calls = json_array();
    for (int i = 1; node && !is_input; node = call_of(written, layer, i++))
        calls = cornu__json_append(calls, call_to_json(written, node, json_copy(arguments)));
    json_decref(arguments);
    result = cornu__json_with(result, "name", json_string(cornu_layer_name(layer)));
    return cornu__json_with(result, "inbound_nodes", calls);
}

/* In the form that the model was read in, or: one tensor, or several as a list. */
static json_t *ends_to_json(const Written *written, json_t *form, char *const *keys,
                            CornuSymbol *const *symbols, int count)
{
    json_t *own = form_of(form, keys, count);
    json_t *ends = own ? cornu__with_leaves(own, next_end, &(Ends){ written, symbols }) : NULL;
    json_decref(own);
    if (ends) return ends;
    if (count == 1) return history_to_json(written, symbols[0], true);
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        list = cornu__json_append(list, history_to_json(written, symbols[i], true));
    return list;
}

/* Keras neither writes a policy of such a model nor reads ours: its layers have their own. */
json_t *cornu__functional_to_json(const CornuModel *model, const CornuPolicy *usual)
{
    Written written;
    json_t *layers = sort_calls(model, &written) ? NULL : json_array();
    for (int i = 0; i < model->base.inner_count && layers; i++)
        layers = cornu__json_append(layers, linked_to_json(&written, model->base.inner[i], usual));
    json_t *config = !layers ? NULL :
        json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", cornu_model_name(model), "trainable",
                  !model->base.frozen, "layers", layers,
                  "input_layers", ends_to_json(&written, model->input_form, model->input_keys,
                                               model->inputs, model->input_count),
                  "output_layers", ends_to_json(&written, model->output_form, model->output_keys,
                                                model->outputs, model->output_count));
    free_written(&written);
    if (model->base.own_policy)
        config = cornu__json_with(config, "dtype", cornu__policy_to_json(usual));
    return json_pack("{s:s, s:s, s:o, s:s}", "module", "keras.src.models.functional",
                     "class_name", "Functional", "config", config, "registered_name",
                     "Functional");
}

/* ---- Reading ---- */

/* An input has no `layer`: its node holds it. Nor has an operation of an unknown class: if it
 * computes a mask, that is passed on implicitly. */
typedef struct {
    const char   *name;
    CornuLayer   *layer;
    bool          is_operation;
    const char   *class_name;     /* of an operation of an unknown class */
    const json_t *calls;
    size_t        count, made;    /* of its calls */
    CornuNode   **nodes;
    size_t        wanted;         /* how many of them are needed now, while it is being linked */
    bool          waited_for;     /* is being linked */
} Linked;

typedef struct {
    Linked *layers;
    size_t  count;
    json_t *places;               /* the index of each name */
    CornuSymbol *const *given;    /* of a single call: the symbols that its tensors number */
    int     given_count;
} Links;

static void free_links(Links *links)
{
    for (size_t i = 0; i < links->count && links->layers; i++) {
        Linked *layer = &links->layers[i];
        for (size_t k = 0; k < layer->made; k++) cornu__node_unref(layer->nodes[k]);
        cornu__release(layer->nodes);
        cornu_layer_free(layer->layer);
    }
    cornu__release(links->layers);
    json_decref(links->places);
}

static void hold(Linked *layer, CornuNode *node)
{
    layer->nodes[layer->made++] = cornu__node_ref(node);
}

static CornuStatus make_input(const json_t *value, Linked *layer)
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

static const json_t *kwargs_of(const json_t *calls, size_t i)
{
    return json_object_get(json_array_get(calls, i), "kwargs");
}

/* The layer's JSON, to whose config the arguments are added that Keras has in the first call. NULL
 * when out of memory. */
static json_t *with_call_arguments(const json_t *value)
{
    const CornuLayerClass *kind = cornu__json_class(value);
    const char            *words = kind ? kind->call_arguments : NULL;
    json_t *config = json_copy(json_object_get(value, "config"));
    char    word[64];
    if (!words || !config) {
        json_decref(config);
        return json_incref((json_t *)value);
    }
    while (next_word(&words, word)) {
        json_t *given = json_object_get(kwargs_of(json_object_get(value, "inbound_nodes"), 0),
                                        word);
        if (given) config = cornu__json_with(config, word, json_incref(given));
    }
    return cornu__json_with(json_copy((json_t *)value), "config", config);
}

/* Makes a layer, without its calls. */
static CornuStatus make_linked(const json_t *value, const CornuPolicy *usual, Linked *layer)
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
    json_t     *whole = with_call_arguments(value);
    CornuStatus status = cornu__layer_from_json(whole, usual, &layer->layer);
    json_decref(whole);
    CORNU__TRY(status);
    layer->name = cornu_layer_name(layer->layer);
    return CORNU_OK;
}

static CornuStatus make_all(const json_t *layers, const CornuPolicy *usual, Links *links)
{
    links->layers = cornu__allocate(json_array_size(layers) + 1, sizeof *links->layers);
    links->places = json_object();
    if (!links->layers || !links->places) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        Linked *layer = &links->layers[links->count++];
        CORNU__TRY(make_linked(json_array_get(layers, i), usual, layer));
        if (json_object_get(links->places, layer->name))
            return cornu__fail(CORNU_ERR_FORMAT, "two layers have the name \"%.60s\"",
                               layer->name);
        if (json_object_set_new(links->places, layer->name, json_integer((json_int_t)i)))
            return cornu__fail(CORNU_ERR_MEMORY, "no memory for the names of layers");
    }
    return CORNU_OK;
}

static CornuStatus find_given(const Links *links, const json_t *number, CornuSymbol **symbol)
{
    const json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
    if (i < 0 || i >= links->given_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "a tensor has the number %lld, expected less than "
                           "%d", (long long)i, links->given_count);
    *symbol = links->given[i];
    return CORNU_OK;
}

/* The tensor [layer, call, result]. NULL if that call has not been made yet: it is one of *waits,
 * the last of the *calls that it must make. */
static CornuStatus find_symbol(const Links *links, const json_t *history, bool given,
                               CornuSymbol **symbol, Linked **waits, size_t *calls)
{
    const char   *name = json_string_value(json_array_get(history, 0));
    const json_t *call = json_array_get(history, 1), *result = json_array_get(history, 2);
    *symbol = NULL;
    if (links->given) return find_given(links, history, symbol);
    if (json_array_size(history) != 3 || !name || !json_is_integer(call) ||
        !json_is_integer(result))
        return cornu__fail(CORNU_ERR_FORMAT, "a tensor is not of the form [layer, call, result]");
    const json_t *place = json_object_get(links->places, name);
    if (!place)
        return cornu__fail(CORNU_ERR_FORMAT, "there is no layer \"%.60s\", a result of which is "
                           "used", name);
    Linked *layer = &links->layers[json_integer_value(place)];
    if (layer->is_operation && !layer->layer)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the operation %.60s of class %.60s is not "
                           "available in this version", name,
                           layer->class_name ? layer->class_name : "");
    const bool    from_one = given && layer->layer &&
                             layer->layer->kind == &cornu__functional_class;
    const int64_t number = json_integer_value(call) - from_one, i = json_integer_value(result);
    if (number < 0 || (uint64_t)number >= layer->count)
        return cornu__fail(CORNU_ERR_FORMAT, "a result of call %lld of %.60s is used, which has "
                           "%zu", (long long)number, name, layer->count);
    if ((uint64_t)number >= layer->made) {
        *waits = layer;
        *calls = (size_t)number + 1;
        return CORNU_OK;
    }
    CornuNode *node = layer->nodes[number];
    if (i < 0 || i >= node->out_count)
        return cornu__fail(CORNU_ERR_FORMAT, "result %lld of %.60s is used, which has %d",
                           (long long)i, name, node->out_count);
    *symbol = &node->out[i];
    return CORNU_OK;
}

/* What a tensor's JSON says it is: a history, or a number of a single call's. */
static const json_t *history_of(const json_t *tensor)
{
    const json_t *config = json_object_get(tensor, "config");
    return json_is_integer(config) ? config : json_object_get(config, "keras_history");
}

typedef struct {
    CornuSymbol *in[CORNU_MAX_LAYER_TENSORS];
    int          count;
    CornuCallOptions options;
    Linked      *waits;           /* a layer whose call has not been made yet; or NULL */
    size_t       calls;           /* that it must make */
} Operands;

typedef struct {
    const Links *links;
    Operands    *operands;
} Reading;

/* A tensor; null stands for none. */
static CornuStatus read_operand(void *context, const json_t *value)
{
    const Links *links = ((Reading *)context)->links;
    Operands    *operands = ((Reading *)context)->operands;
    const char  *class_name = json_string_value(json_object_get(value, "class_name"));
    CornuSymbol *symbol;
    if (json_is_null(value)) return CORNU_OK;
    if (!class_name || strcmp(class_name, "__keras_tensor__"))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called on something other than a tensor");
    if (operands->count == CORNU_MAX_LAYER_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called on more than %d tensors",
                           CORNU_MAX_LAYER_TENSORS);
    CORNU__TRY(find_symbol(links, history_of(value), false, &symbol, &operands->waits,
                           &operands->calls));
    operands->in[operands->count++] = symbol;
    return CORNU_OK;
}

/* A tensor, or nested lists and dictionaries of them. */
static CornuStatus read_operands(const Links *links, const json_t *value, Operands *operands)
{
    return cornu__each_leaf(value, read_operand, &(Reading){ links, operands });
}

/* Whether one of the words, which blanks separate, is this one; the mark of a list is ignored. */
static bool has_word(const char *words, const char *wanted)
{
    char word[64];
    while (next_word(&words, word)) {
        cut_star(word);
        if (!strcmp(word, wanted)) return true;
    }
    return false;
}

/* The number of the operand whose mask the keyword gives; -1 if it gives none. */
static int masked_operand(const CornuLayerClass *kind, const char *keyword)
{
    const char *words = kind->operands;
    char        word[64], key[80];
    if (!strcmp(keyword, "mask")) return 0;
    snprintf(key, sizeof key, "%s_mask", kind->first_operand ? kind->first_operand : "");
    for (int i = 0; kind->first_operand; i++) {
        if (!strcmp(keyword, key)) return i;
        if (!next_word(&words, word)) break;
        snprintf(key, sizeof key, "%s_mask", word);
    }
    return -1;
}

/* Whether the tensor is a result of an operation that is not available here. */
static bool is_unknown_operation(const Links *links, const json_t *tensor)
{
    const json_t *history = json_object_get(json_object_get(tensor, "config"), "keras_history");
    const char   *name = json_string_value(json_array_get(history, 0));
    const json_t *place = name ? json_object_get(links->places, name) : NULL;
    const Linked *layer = place ? &links->layers[json_integer_value(place)] : NULL;
    return layer && layer->is_operation && !layer->layer;
}

typedef struct {
    const Links *links;
    Operands    *operands;
    int          operand;      /* whose mask is next */
} ReadMasks;

static CornuStatus read_mask(void *context, const json_t *value)
{
    const Links  *links = ((ReadMasks *)context)->links;
    Operands     *operands = ((ReadMasks *)context)->operands;
    const int     operand = ((ReadMasks *)context)->operand++;
    const json_t *history = history_of(value);
    if (json_is_null(value)) return CORNU_OK;
    /* A key that is not given is the value, but may have a mask of its own. */
    while (operands->count > 0 && operands->count <= operand &&
           operand < CORNU_MAX_LAYER_TENSORS) {
        operands->in[operands->count] = operands->in[operands->count - 1];
        operands->count++;
    }
    if (is_unknown_operation(links, value)) return CORNU_OK;
    if (!history)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "has a mask other than a tensor");
    return find_symbol(links, history, false, &operands->options.masks[operand], &operands->waits,
                       &operands->calls);
}

/* The mask of an operand, or a list or dictionary of the masks of it and those after it. */
static CornuStatus read_masks(const Links *links, const json_t *value, int operand,
                              Operands *operands)
{
    return cornu__each_leaf(value, read_mask, &(ReadMasks){ links, operands, operand });
}

/* The operands by keyword, in the order of the layer's class. One that is not given is, as in
 * Keras' attention, the one before it: the key is the value. */
static CornuStatus read_keywords(const Links *links, const char *words, const json_t *kwargs,
                                 Operands *operands)
{
    char word[64];
    for (int i = 1; next_word(&words, word); i++) {
        cut_star(word);
        const json_t *value = json_object_get(kwargs, word);
        if (!value || json_is_null(value)) continue;
        if (operands->count > i)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called with \"%s\" and %d tensors "
                               "before it, expected %d", word, operands->count, i);
        for (; operands->count < i && operands->count > 0; operands->count++)
            operands->in[operands->count] = operands->in[operands->count - 1];
        CORNU__TRY(read_operands(links, value, operands));
    }
    return CORNU_OK;
}

/* All calls of an operation have the same arguments but for the tensors. */
static CornuStatus read_operation_call(const Links *links, const Linked *layer, const json_t *call,
                                       Operands *operands)
{
    const CornuOperation *operation = cornu__as_operation(layer->layer);
    json_t               *histories = json_array();
    json_t               *given = cornu__operation_operands(call, histories);
    const size_t          count = json_array_size(histories);
    CornuStatus           status = CORNU_OK;
    if (count < 1 || count > CORNU_MAX_LAYER_TENSORS ||
        !json_equal(json_object_get(given, "args"), operation->args) ||
        !json_equal(json_object_get(given, "kwargs"), operation->kwargs))
        status = cornu__fail(CORNU_ERR_UNSUPPORTED, "is called on %zu tensors or with several "
                             "lists of arguments, expected 1 to %d and one", count,
                             CORNU_MAX_LAYER_TENSORS);
    for (size_t i = 0; i < count && !status; i++) {
        CornuSymbol *symbol;
        status = find_symbol(links, json_array_get(histories, i), false, &symbol,
                             &operands->waits, &operands->calls);
        operands->in[operands->count++] = symbol;
    }
    json_decref(histories);
    json_decref(given);
    return status;
}

/* The keyword of the first operand, where it is not positional: the class' own, or one of those
 * that Keras' layers have. NULL: it is positional. */
static const char *first_keyword(const CornuLayerClass *kind, const json_t *call)
{
    static const char *const words[] = { "inputs", "x", "sequences", "sequence", "images", "data" };
    const json_t *kwargs = json_object_get(call, "kwargs");
    if (json_array_size(json_object_get(call, "args")) > 0) return NULL;
    if (kind->first_operand)
        return json_object_get(kwargs, kind->first_operand) ? kind->first_operand : NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_object_get(kwargs, words[i])) return words[i];
    return NULL;
}

static CornuStatus read_call(const Links *links, const Linked *layer, const json_t *call,
                             Operands *operands)
{
    if (layer->is_operation) return read_operation_call(links, layer, call, operands);
    const CornuLayerClass *kind = layer->layer->kind;
    const json_t          *kwargs = json_object_get(call, "kwargs");
    const char            *keyword;
    json_t                *value;
    const char            *first = first_keyword(kind, call);
    CORNU__TRY(read_operands(links, first ? json_object_get(kwargs, first)
                                          : json_object_get(call, "args"), operands));
    CORNU__TRY(read_keywords(links, kind->operands, kwargs, operands));
    json_object_foreach((json_t *)kwargs, keyword, value) {
        if (first && !strcmp(keyword, first)) continue;
        const int masked = has_word(kind->operands, keyword) ? -1 : masked_operand(kind, keyword);
        /* multi_head_attention.py takes the mask that the query brings along instead. */
        if (masked == 0 && kind->first_operand) continue;
        if (masked >= 0) {
            CORNU__TRY(read_masks(links, value, masked, operands));
            continue;
        }
        if (!strcmp(keyword, "training") && json_is_boolean(value)) {
            operands->options.training = json_is_true(value) ? CORNU_FORCED_TRAINING
                                                             : CORNU_FORCED_INFERENCE;
            continue;
        }
        if (kind->reverses && !strcmp(keyword, "reverse") && json_is_boolean(value)) {
            operands->options.reverse = json_is_true(value);
            continue;
        }
        const bool own = has_word(kind->call_arguments, keyword) &&
                         json_equal(value, json_object_get(kwargs_of(layer->calls, 0), keyword));
        if (!own && !has_word(kind->operands, keyword) && !json_is_null(value))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called with \"%.60s\", which is not "
                               "available in this version", keyword);
    }
    if (operands->count > 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "is called without a tensor");
}

/* Makes the wanted calls, up to one that waits for another layer, *waits; NULL if all are made. */
static CornuStatus make_calls(const Links *links, Linked *layer, Linked **waits)
{
    *waits = NULL;
    while (layer->made < layer->wanted) {
        Operands operands = { .count = 0 };
        CORNU__TRY(cornu__fail_prefix(read_call(links, layer,
                                                json_array_get(layer->calls, layer->made),
                                                &operands), layer->name));
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
static CornuStatus link_layer(const Links *links, Linked *layer, Linked **chain)
{
    size_t length = 0;
    layer->wanted = layer->count;
    while (layer) {
        Linked *waits;
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
static CornuStatus link_all(const Links *links)
{
    Linked    **chain = cornu__allocate(links->count, sizeof *chain);
    CornuStatus status = chain ? CORNU_OK : CORNU_ERR_MEMORY;
    for (size_t i = 0; i < links->count && !status; i++)
        status = link_layer(links, &links->layers[i], chain);
    cornu__release(chain);
    return status;
}

typedef struct {
    const Links  *links;
    CornuSymbol **to;
    int           count;
} ReadEnds;

static CornuStatus read_end(void *context, const json_t *history)
{
    ReadEnds *ends = context;
    Linked   *waits;   /* stays NULL: all calls have been made */
    size_t    calls;
    if (ends->count == CORNU_MAX_MODEL_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "more than %d tensors", CORNU_MAX_MODEL_TENSORS);
    return find_symbol(ends->links, history, true, &ends->to[ends->count++], &waits, &calls);
}

/* The inputs or outputs of a model: one tensor, or nested lists and dictionaries of them. */
static CornuStatus read_ends(const Links *links, const json_t *value, const char *what,
                             CornuSymbol **to)
{
    ReadEnds ends = { .links = links, .to = to };
    CORNU__TRY(cornu__fail_prefix(cornu__each_leaf(value, read_end, &ends), what));
    return ends.count > 0 ? CORNU_OK : cornu__fail(CORNU_ERR_FORMAT, "%s is empty", what);
}

CornuModel *cornu__functional_from_json(const json_t *config, const char *policy,
                                        const CornuPolicy *usual)
{
    Links            links = { 0 };
    CornuModel      *model = NULL;
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
    if (status) cornu__null();
    else model = cornu__model_of(&ends);
    free_links(&links);
    if (!model) return NULL;
    model->input_form = json_incref(json_object_get(config, "input_layers"));
    model->output_form = json_incref(json_object_get(config, "output_layers"));
    return model;
}

/* ---- A single call ---- */

CornuSymbol *cornu_call_from_json(CornuLayer *layer, const char *json, CornuSymbol *const *in,
                                  int count)
{
    CORNU__NEED_TO_MAKE(json);
    if (!layer || count < 1 || cornu__refused()) return cornu__call_with(layer, in, count, NULL);
    json_t *call = cornu__json_parse(json, strlen(json), CORNU_ARCHITECTURE_DEPTH);
    json_t *calls = call ? json_pack("[O]", call) : NULL;
    const Links  links = { .given = in, .given_count = count };
    const Linked linked = { .layer = layer, .calls = calls, .count = 1 };
    Operands     operands = { .count = 0 };
    CornuStatus  status = call ? read_call(&links, &linked, call, &operands) : cornu_error_status();
    if (status) cornu__fail_prefix(status, cornu_layer_name(layer));
    json_decref(call);
    json_decref(calls);
    if (status) cornu__null();
    return cornu__call_with(layer, operands.in, operands.count, &operands.options);
}
