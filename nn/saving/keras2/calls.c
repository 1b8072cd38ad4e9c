/* The calls that link the layers of a functional model. Keras 2 writes each as tuples
 * [layer, call, result, keywords], one for each tensor, or one tuple alone; Keras 3 as arguments in
 * which tensors are objects. */
#include "keras2_internal.h"

#include "../../../device/memory_internal.h"

#include <string.h>

static const char *const constant = "_CONSTANT_VALUE";

/* [string, whole number, …]: a tensor, or a constant in the place of one. */
static bool is_tuple(const json_t *value)
{
    return json_is_string(json_array_get(value, 0)) && json_is_integer(json_array_get(value, 1)) &&
           (json_array_size(value) == 3 || json_array_size(value) == 4);
}

static const char *class_of(const json_t *layer)
{
    const char *name = json_string_value(json_object_get(layer, "class_name"));
    return name ? name : "";
}

static const char *name_of(const json_t *layer)
{
    const json_t *name = json_object_get(layer, "name");
    if (!name) name = json_object_get(json_object_get(layer, "config"), "name");
    return json_string_value(name);
}

/* ---- The layers that calls refer to ---- */

typedef CornuStatus OnTuple(void *context, const json_t *tuple);

/* Calls `on` for each tuple in nested lists and dictionaries, also in its keywords. */
static CornuStatus each_tuple(const json_t *value, OnTuple *on, void *context)
{
    const char *key;
    json_t     *member;
    CornuStatus status = CORNU_OK;
    if (is_tuple(value)) {
        status = on(context, value);
        return status ? status : each_tuple(json_array_get(value, 3), on, context);
    }
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value) && !status; i++)
        status = each_tuple(json_array_get(value, i), on, context);
    json_object_foreach((json_t *)value, key, member)
        if (!status) status = each_tuple(member, on, context);
    return status;
}

static const json_t *nodes_of(const json_t *layer)
{
    return json_object_get(layer, "inbound_nodes");
}

/* A nested model has its own inputs as call 0 in most files, so that the model around it begins at
 * 1: then a result of call number `count` is used. */
static CornuStatus note_call(void *context, const json_t *tuple)
{
    CornuKeras2Links *links = context;
    const json_t     *place = json_object_get(links->places,
                                              json_string_value(json_array_get(tuple, 0)));
    if (!place) return CORNU_OK;
    const size_t  i = (size_t)json_integer_value(place);
    const json_t *layer = json_array_get(links->layers, i);
    const size_t  count = json_array_size(nodes_of(layer));
    const bool    is_model = json_object_get(json_object_get(layer, "config"), "layers") ||
                             json_is_array(json_object_get(layer, "config"));
    if (is_model && count > 0 &&
        json_integer_value(json_array_get(tuple, 1)) == (json_int_t)count)
        links->first[i] = 1;
    return CORNU_OK;
}

CornuStatus cornu__keras2_links(const json_t *config, CornuKeras2Links *links)
{
    const json_t *layers = json_object_get(config, "layers");
    const size_t  count = json_array_size(layers);
    *links = (CornuKeras2Links){ .layers = layers, .places = json_object(),
                                 .first = cornu__allocate(count + 1, sizeof *links->first) };
    if (!links->places || !links->first) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const char *name = name_of(json_array_get(layers, i));
        if (!name) return cornu__fail(CORNU_ERR_FORMAT, "a layer without a name");
        if (json_object_set_new(links->places, name, json_integer((json_int_t)i)))
            return cornu__fail(CORNU_ERR_MEMORY, "no memory for the names of layers");
    }
    for (size_t i = 0; i < count; i++)
        CORNU__TRY(each_tuple(nodes_of(json_array_get(layers, i)), note_call, links));
    return each_tuple(json_object_get(config, "output_layers"), note_call, links);
}

void cornu__keras2_links_free(CornuKeras2Links *links)
{
    json_decref(links->places);
    cornu__release(links->first);
}

/* The number of a call from 0; -1 for a layer that is not in the model, or one that no call has. */
static json_int_t call_number(const CornuKeras2Links *links, const json_t *tuple, size_t *at)
{
    const json_t *place = json_object_get(links->places,
                                          json_string_value(json_array_get(tuple, 0)));
    if (!place) return -1;
    *at = (size_t)json_integer_value(place);
    const json_int_t call = json_integer_value(json_array_get(tuple, 1));
    return call < 0 || call > INT32_MAX ? -1 : call - links->first[*at];
}

/* ---- Calls ---- */

static json_t *tensor(const CornuKeras2Links *links, const json_t *tuple)
{
    size_t           at = 0;
    const json_int_t call = call_number(links, tuple, &at);
    return json_pack("{s:s, s:{s:[O, I, O], s:s}}", "class_name", "__keras_tensor__", "config",
                     "keras_history", json_array_get(tuple, 0), call, json_array_get(tuple, 2),
                     "dtype", "float32");
}

/* A value of the keywords, in which tensors are [layer, call, result] too. */
static bool keyword(void *context, const json_t *value, json_t **made)
{
    const CornuKeras2Links *links = context;
    size_t                  at;
    if (!is_tuple(value) || call_number(links, value, &at) < 0) return false;
    *made = tensor(links, value);
    return true;
}

typedef struct {
    const CornuKeras2Links *links;
    const json_t           *keywords;   /* of the last tuple, all of which have the same */
} Operands;

static bool operand(void *context, const json_t *value, json_t **made)
{
    Operands *of = context;
    if (!is_tuple(value)) return false;
    if (json_object_size(json_array_get(value, 3)) > 0) of->keywords = json_array_get(value, 3);
    *made = strcmp(json_string_value(json_array_get(value, 0)), constant)
                ? tensor(of->links, value) : json_incref(json_array_get(value, 2));
    return true;
}

static json_t *call(const CornuKeras2Links *links, const json_t *node)
{
    Operands    of = { .links = links };
    json_t     *given, *kwargs = json_object();
    const char *key;
    json_t     *value;
    if (json_object_get(node, "args")) {   /* Keras 3's form */
        json_decref(kwargs);
        return json_incref((json_t *)node);
    }
    if (json_array_size(node) == 1 && is_tuple(json_array_get(node, 0)))
        node = json_array_get(node, 0);    /* one tensor is not a list of one */
    given = cornu__json_map(node, operand, &of);
    json_object_foreach((json_t *)of.keywords, key, value) {
        /* Flags may be 0 and 1. */
        const bool flag = !strcmp(key, "training") && json_is_integer(value);
        kwargs = cornu__json_with(kwargs, key,
                                  flag ? json_boolean(json_integer_value(value))
                                       : cornu__json_map(value, keyword, (void *)links));
    }
    return json_pack("{s:[o], s:o}", "args", given, "kwargs", kwargs);
}

json_t *cornu__keras2_calls(const CornuKeras2Links *links, const json_t *nodes)
{
    json_t *calls = json_array();
    for (size_t i = 0; i < json_array_size(nodes); i++)
        calls = cornu__json_append(calls, call(links, json_array_get(nodes, i)));
    return calls;
}

/* Keras 3 counts the calls of a nested functional model from 1 here, those of others from 0. */
static bool end(void *context, const json_t *history, json_t **made)
{
    const CornuKeras2Links *links = context;
    size_t                  at = 0;
    if (!is_tuple(history)) return false;
    const json_int_t number = call_number(links, history, &at);
    const json_t    *layer = json_array_get(links->layers, at);
    const bool       from_one = number >= 0 && nodes_of(layer) &&
                                strcmp(class_of(layer), "Sequential") &&
                                json_object_get(json_object_get(layer, "config"), "layers");
    *made = json_pack("[O, I, O]", json_array_get(history, 0), number + from_one,
                      json_array_get(history, 2));
    return true;
}

json_t *cornu__keras2_end(const CornuKeras2Links *links, const json_t *history)
{
    return cornu__json_map(history, end, (void *)links);
}
