/* Functional models as Keras' JSON: layers, and the calls that link them.
 * Source: keras/src/models/functional.py, get_config. */
#include "architecture_internal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

/* The operands after the first, by the keywords of the layer's class. If Keras requires a second
 * one and there is none, the first is repeated. */
static json_t *keywords_to_json(const Written *written, const CornuNode *node, json_t *kwargs)
{
    const char *words = cornu__keras_class(node->layer)->operands;
    char        word[64];
    const int least = cornu__keras_class(node->layer)->one_operand ? 1 : 2;
    for (int i = 1; (i < least || i < node->in_count) && cornu__next_word(&words, word); i++) {
        const bool list = cornu__cut_star(word);
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
    const CornuKerasClass *keras = cornu__keras_class(node->layer);
    const char            *words = keras->operands;
    char                   word[64], key[80];
    if (keras->first_operand && node->in_count > 1) {
        snprintf(word, sizeof word, "%s", keras->first_operand);
        for (int i = 0; i < node->in_count && (i == 0 || cornu__next_word(&words, word)); i++) {
            snprintf(key, sizeof key, "%s_mask", word);
            kwargs = cornu__json_with(kwargs, key, mask_to_json(written, node, i));
        }
        return kwargs;
    }
    json_t *list = json_array();
    if (keras->operands || node->in_count == 1) {
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
    const bool keywords = cornu__keras_class(node->layer)->operands != NULL;
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
    const char *words = cornu__keras_class_of(kind)->call_arguments;
    char        word[64];
    while (cornu__next_word(&words, word)) {
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
    json_t *more = model->more_count && config ? json_array() : NULL;
    for (int i = 0; i < model->more_count && more; i++)
        more = cornu__json_append(more, history_to_json(&written, model->more[i], true));
    if (model->more_count) config = cornu__json_with(config, "more_inputs", more);
    free_written(&written);
    if (model->base.own_policy)
        config = cornu__json_with(config, "dtype", cornu__policy_to_json(usual));
    return json_pack("{s:s, s:s, s:o, s:s}", "module", "keras.src.models.functional",
                     "class_name", "Functional", "config", config, "registered_name",
                     "Functional");
}
