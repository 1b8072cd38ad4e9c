/* Kinds of fields that are activations or layers. */
#include "../fields/field_internal.h"
#include "../fields/own_objects_internal.h"
#include "layer_internal.h"

#include <string.h>

/* A name, or a layer. */
static json_t *write_activation(const CornuFieldSource *from)
{
    const CornuActivation activation = *(const CornuActivation *)from->at;
    const CornuLayer     *layer = cornu__activation_layer(activation);
    if (!layer) return json_string(cornu_activation_name(activation));
    return from->inside ? from->inside->to_json(layer, from->inside->usual) : NULL;
}

/* A name, a function of that name, or a layer; null is linear. */
static CornuStatus read_activation(const CornuFieldTarget *to, const json_t *value)
{
    const char      *class_name = json_string_value(json_object_get(value, "class_name"));
    const char      *text = json_is_null(value) ? "linear" : json_string_value(value);
    CornuActivation *activation = to->at;
    CornuLayer      *layer;
    if (class_name && !strcmp(class_name, "function"))
        text = json_string_value(json_object_get(value, "config"));
    if (text && strchr(text, '>'))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is the registered function \"%.60s\", "
                           "expected one of Keras' activations; a layer class of your own can "
                           "compute it, see cornu_register_layer", to->name, text);
    if (text) return cornu_activation_find(text, activation);
    if (!class_name || !to->inside)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is not a name or a layer; Python functions "
                           "without a name, such as a lambda, are not available", to->name);
    CORNU__TRY(to->inside->from_json(value, to->inside->usual, &layer));
    layer->owners = 0;
    *activation = cornu_activation_of(layer);
    return cornu_error_take();
}

const CornuFieldKind cornu_field_activation = {
    .name = "activation", .size = sizeof(CornuActivation), .read = read_activation,
    .write = write_activation, .takes_null = true,
    .examples = { "\"linear\"" },
};

static json_t *write_layer(const CornuFieldSource *from)
{
    const CornuLayersInside *inside = from->inside;
    return inside ? inside->to_json(*(CornuLayer *const *)from->at, inside->usual) : NULL;
}

/* One of the caller's, or of its JSON. */
static CornuStatus layer_of(const CornuFieldTarget *to, const json_t *value, CornuLayer **layer)
{
    *layer = cornu_layer_take(cornu__own_object(value));
    return *layer ? CORNU_OK : to->inside->from_json(value, to->inside->usual, layer);
}

static CornuStatus read_layer(const CornuFieldTarget *to, const json_t *value)
{
    return to->inside ? layer_of(to, value, to->at)
                      : cornu__unexpected(to->name, "an argument of a layer");
}

#define EXAMPLE(class_name, name) "{\"class_name\": \"" class_name "\", " \
                                  "\"config\": {\"name\": \"" name "\", \"units\": 1}}"
const CornuFieldKind cornu_field_layer = {
    .name = "layer", .write = write_layer, .read = read_layer,
    .most_layers = 1,
    .examples = { EXAMPLE("LSTM", "layer"), EXAMPLE("LSTMCell", "cell"),
                  EXAMPLE("Dense", "layer") },
};

static json_t *write_layers(const CornuFieldSource *from)
{
    CornuLayer *const       *layers = from->at;
    const CornuLayersInside *inside = from->inside;
    json_t                  *list = inside ? json_array() : NULL;
    for (int i = 0; i < CORNU_MAX_WRAPPED && layers[i] && inside; i++)
        list = cornu__json_append(list, inside->to_json(layers[i], inside->usual));
    return list;
}

/* A NULL ends the list unless it is full. */
static CornuStatus read_layers(const CornuFieldTarget *to, const json_t *value)
{
    const size_t count = json_array_size(value);
    CornuLayer **layers = to->at;
    if (!to->inside || !json_is_array(value) || count > CORNU_MAX_WRAPPED)
        return cornu__fail(CORNU_ERR_FORMAT, "%s is not a list of at most %d layers", to->name,
                           CORNU_MAX_WRAPPED);
    for (size_t i = 0; i < count; i++)
        CORNU__TRY(layer_of(to, json_array_get(value, i), &layers[i]));
    return CORNU_OK;
}

const CornuFieldKind cornu_field_layers = {
    .name = "layers", .write = write_layers, .read = read_layers,
    .most_layers = CORNU_MAX_WRAPPED, .examples = { "[" EXAMPLE("LSTMCell", "cell") "]" },
};
