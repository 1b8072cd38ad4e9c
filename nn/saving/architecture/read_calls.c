/* Calls of layers from Keras' JSON: the tensors and masks that they are given, by place and by
 * keyword. */
#include "links_internal.h"

#include <stdio.h>
#include <string.h>

static CornuStatus find_given(const CornuLinks *links, const json_t *number, CornuSymbol **symbol)
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
CornuStatus cornu__find_symbol(const CornuLinks *links, const json_t *history, bool given,
                               CornuSymbol **symbol, CornuLinked **waits, size_t *calls)
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
    CornuLinked *layer = &links->layers[json_integer_value(place)];
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
    const CornuLinks  *links;
    CornuCallOperands *operands;
} Reading;

/* A tensor; null stands for none. */
static CornuStatus read_operand(void *context, const json_t *value)
{
    const CornuLinks  *links = ((Reading *)context)->links;
    CornuCallOperands *operands = ((Reading *)context)->operands;
    const char        *class_name = json_string_value(json_object_get(value, "class_name"));
    CornuSymbol       *symbol;
    if (json_is_null(value)) return CORNU_OK;
    if (!class_name || strcmp(class_name, "__keras_tensor__"))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called on something other than a tensor");
    if (operands->count == CORNU_MAX_LAYER_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called on more than %d tensors",
                           CORNU_MAX_LAYER_TENSORS);
    CORNU__TRY(cornu__find_symbol(links, history_of(value), false, &symbol, &operands->waits,
                                  &operands->calls));
    operands->in[operands->count++] = symbol;
    return CORNU_OK;
}

/* A tensor, or nested lists and dictionaries of them. */
static CornuStatus read_operands(const CornuLinks *links, const json_t *value,
                                 CornuCallOperands *operands)
{
    return cornu__each_leaf(value, read_operand, &(Reading){ links, operands });
}

/* The number of the operand whose mask the keyword gives; -1 if it gives none. */
static int masked_operand(const CornuKerasClass *keras, const char *keyword)
{
    const char *words = keras->operands;
    char        word[64], key[80];
    if (!strcmp(keyword, "mask")) return 0;
    snprintf(key, sizeof key, "%s_mask", keras->first_operand ? keras->first_operand : "");
    for (int i = 0; keras->first_operand; i++) {
        if (!strcmp(keyword, key)) return i;
        if (!cornu__next_word(&words, word)) break;
        snprintf(key, sizeof key, "%s_mask", word);
    }
    return -1;
}

/* Whether the tensor is a result of an operation that is not available here. */
static bool is_unknown_operation(const CornuLinks *links, const json_t *tensor)
{
    const json_t      *history = history_of(tensor);
    const char        *name = json_string_value(json_array_get(history, 0));
    const json_t      *place = name ? json_object_get(links->places, name) : NULL;
    const CornuLinked *layer = place ? &links->layers[json_integer_value(place)] : NULL;
    return layer && layer->is_operation && !layer->layer;
}

typedef struct {
    const CornuLinks  *links;
    CornuCallOperands *operands;
    int                operand;      /* whose mask is next */
} ReadMasks;

static CornuStatus read_mask(void *context, const json_t *value)
{
    const CornuLinks  *links = ((ReadMasks *)context)->links;
    CornuCallOperands *operands = ((ReadMasks *)context)->operands;
    const int          operand = ((ReadMasks *)context)->operand++;
    const json_t      *history = history_of(value);
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
    return cornu__find_symbol(links, history, false, &operands->options.masks[operand],
                              &operands->waits, &operands->calls);
}

/* The mask of an operand, or a list or dictionary of the masks of it and those after it. */
static CornuStatus read_masks(const CornuLinks *links, const json_t *value, int operand,
                              CornuCallOperands *operands)
{
    return cornu__each_leaf(value, read_mask, &(ReadMasks){ links, operands, operand });
}

/* The operands by keyword, in the order of the layer's class. One that is not given is, as in
 * Keras' attention, the one before it: the key is the value. */
static CornuStatus read_keywords(const CornuLinks *links, const char *words, const json_t *kwargs,
                                 CornuCallOperands *operands)
{
    char word[64];
    for (int i = 1; cornu__next_word(&words, word); i++) {
        cornu__cut_star(word);
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
static CornuStatus read_operation_call(const CornuLinks *links, const CornuLinked *layer,
                                       const json_t *call, CornuCallOperands *operands)
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
        status = cornu__find_symbol(links, json_array_get(histories, i), false, &symbol,
                                    &operands->waits, &operands->calls);
        operands->in[operands->count++] = symbol;
    }
    json_decref(histories);
    json_decref(given);
    return status;
}

/* The keyword of the first operand, where it is not positional: the class' own, or one of those
 * that Keras' layers have. NULL: it is positional. */
static const char *first_keyword(const CornuKerasClass *keras, const json_t *call)
{
    static const char *const words[] = { "inputs", "x", "sequences", "sequence", "images", "data" };
    const json_t *kwargs = json_object_get(call, "kwargs");
    if (json_array_size(json_object_get(call, "args")) > 0) return NULL;
    if (keras->first_operand)
        return json_object_get(kwargs, keras->first_operand) ? keras->first_operand : NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_object_get(kwargs, words[i])) return words[i];
    return NULL;
}

CornuStatus cornu__read_call(const CornuLinks *links, const CornuLinked *layer, const json_t *call,
                             CornuCallOperands *operands)
{
    if (layer->is_operation) return read_operation_call(links, layer, call, operands);
    const CornuKerasClass *keras = cornu__keras_class(layer->layer);
    const json_t          *kwargs = json_object_get(call, "kwargs");
    const char            *keyword;
    json_t                *value;
    const char            *first = first_keyword(keras, call);
    CORNU__TRY(read_operands(links, first ? json_object_get(kwargs, first)
                                          : json_object_get(call, "args"), operands));
    CORNU__TRY(read_keywords(links, keras->operands, kwargs, operands));
    json_object_foreach((json_t *)kwargs, keyword, value) {
        if (first && !strcmp(keyword, first)) continue;
        const bool operand = cornu__has_word(keras->operands, keyword);
        const int  masked = operand ? -1 : masked_operand(keras, keyword);
        /* multi_head_attention.py takes the mask that the query brings along instead. */
        if (masked == 0 && keras->first_operand) continue;
        if (masked >= 0) {
            CORNU__TRY(read_masks(links, value, masked, operands));
            continue;
        }
        if (!strcmp(keyword, "training") && json_is_boolean(value)) {
            operands->options.training = json_is_true(value) ? CORNU_FORCED_TRAINING
                                                             : CORNU_FORCED_INFERENCE;
            continue;
        }
        if (keras->reverses && !strcmp(keyword, "reverse") && json_is_boolean(value)) {
            operands->options.reverse = json_is_true(value);
            continue;
        }
        const json_t *before = json_object_get(cornu__kwargs_of(layer->calls, 0), keyword);
        const bool    own = cornu__has_word(keras->call_arguments, keyword) &&
                            json_equal(value, before);
        if (!own && !operand && !json_is_null(value))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called with \"%.60s\", which is not "
                               "available in this version", keyword);
    }
    if (operands->count > 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "is called without a tensor");
}

CornuSymbol *cornu_call_from_json(CornuLayer *layer, const char *json, CornuSymbol *const *in,
                                  int count)
{
    CORNU__NEED_TO_MAKE(json);
    if (!layer || count < 1 || cornu__refused()) return cornu__call_with(layer, in, count, NULL);
    json_t           *call = cornu__json_parse(json, strlen(json), CORNU_ARCHITECTURE_DEPTH);
    json_t           *calls = call ? json_pack("[O]", call) : NULL;
    const CornuLinks  links = { .given = in, .given_count = count };
    const CornuLinked linked = { .layer = layer, .calls = calls, .count = 1 };
    CornuCallOperands operands = { .count = 0 };
    CornuStatus       status = call ? cornu__read_call(&links, &linked, call, &operands)
                                    : cornu_error_status();
    if (status) cornu__fail_prefix(status, cornu_layer_name(layer));
    json_decref(call);
    json_decref(calls);
    if (status) cornu__null();
    return cornu__call_with(layer, operands.in, operands.count, &operands.options);
}
