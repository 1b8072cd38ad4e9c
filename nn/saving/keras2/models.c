/* The JSON of models of Keras 2: objects, Sequential and functional models. */
#include "keras2_internal.h"


#include <string.h>

static json_t *rewritten(const json_t *value);

/* ---- What an object is ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The name of a layer, for messages. */
static const char *name_of(const json_t *object)
{
    const char *name = text_of(json_object_get(object, "config"), "name");
    return *name ? name : text_of(object, "name");
}

/* tf.keras registers some classes of its own: "Custom>Adam", "Keras>Rescaling". */
static const char *own_class(const char *class_name)
{
    static const char *const packages[] = { "Keras>", "keras>", "TF>" };
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (!strncmp(class_name, packages[i], strlen(packages[i])))
            return class_name + strlen(packages[i]);
    return class_name;
}

/* Values that Keras 2 wraps: tuples, shapes, and NumPy's numbers. NULL for any other. */
static const json_t *wrapped(const json_t *value)
{
    const char *class_name = text_of(value, "class_name");
    if (!strcmp(class_name, "__tuple__") || !strcmp(class_name, "TensorShape"))
        return json_object_get(value, "items");
    return !*class_name && json_object_size(value) == 2 && json_object_get(value, "type")
               ? json_object_get(value, "value") : NULL;
}

/* ---- Inputs of Sequential models ---- */

/* The input shape that a layer was given, or the first one within it; NULL if there is none. */
static const json_t *shape_of(const json_t *layer)
{
    const json_t *config = json_object_get(layer, "config");
    const json_t *shape = json_object_get(config, "batch_input_shape");
    const json_t *layers = json_is_array(config) ? config : json_object_get(config, "layers");
    if (!shape && layers) shape = shape_of(json_array_get(layers, 0));
    if (!shape) shape = json_object_get(config, "batch_shape");
    return wrapped(shape) ? wrapped(shape) : shape;
}

static json_t *input_layer(const json_t *first, const json_t *shape)
{
    const json_t *dtype = json_object_get(json_object_get(first, "config"), "dtype");
    const char   *text = json_string_value(dtype);
    return json_pack("{s:s, s:{s:O, s:s, s:o}}", "class_name", "InputLayer", "config",
                     "batch_shape", shape, "dtype", text ? text : "float32", "name",
                     json_sprintf("%s_input", name_of(first)));
}

/* A Sequential model's config: a list of layers in older files. */
static json_t *sequential_config(const json_t *value)
{
    const json_t *config = json_object_get(value, "config");
    const json_t *layers = json_is_array(config) ? config : json_object_get(config, "layers");
    const json_t *first = json_array_get(layers, 0);
    const json_t *shape = shape_of(first);
    json_t       *list = json_array();
    if (!shape) shape = json_object_get(config, "build_input_shape");
    if (wrapped(shape)) shape = wrapped(shape);
    if (json_is_array(shape) && strcmp(text_of(first, "class_name"), "InputLayer"))
        list = cornu__json_append(list, input_layer(first, shape));
    for (size_t i = 0; i < json_array_size(layers); i++)
        list = cornu__json_append(list, rewritten(json_array_get(layers, i)));
    json_t *made = json_is_array(config) ? json_pack("{s:s}", "name", "sequential")
                                         : json_copy((json_t *)config);
    return cornu__json_with(made, "layers", list);
}

/* ---- Functional models ---- */

static json_t *linked(const CornuKeras2Links *links, const json_t *layer)
{
    const char *name = name_of(layer), *class_name = text_of(layer, "class_name");
    json_t     *calls = cornu__keras2_calls(links, json_object_get(layer, "inbound_nodes"));
    if (calls && cornu__keras2_is_function(class_name)) {
        json_t *made = cornu__keras2_function(name, json_object_get(layer, "config"), calls);
        json_decref(calls);
        return made;
    }
    json_t *made = rewritten(layer);
    return cornu__json_with(made, "inbound_nodes", calls);
}

static json_t *functional_config(const json_t *value)
{
    const json_t    *config = json_object_get(value, "config");
    const json_t    *layers = json_object_get(config, "layers");
    CornuKeras2Links links;
    json_t          *list = json_array(), *made = NULL;
    if (cornu__keras2_links(config, &links)) cornu__null();
    for (size_t i = 0; i < json_array_size(layers) && !cornu_error_pending(); i++)
        list = cornu__json_append(list, linked(&links, json_array_get(layers, i)));
    if (!cornu_error_pending()) {
        made = cornu__json_with(json_copy((json_t *)config), "layers", json_incref(list));
        made = cornu__json_with(made, "input_layers", cornu__keras2_end(
            &links, json_object_get(config, "input_layers")));
        made = cornu__json_with(made, "output_layers", cornu__keras2_end(
            &links, json_object_get(config, "output_layers")));
    }
    json_decref(list);
    cornu__keras2_links_free(&links);
    return made;
}

/* ---- All of it ---- */

static bool rewrite(void *context, const json_t *value, json_t **made);

static json_t *copied(const json_t *object)
{
    return cornu__json_map_members(object, rewrite, NULL);
}

/* The first layer that has an input shape is one of a model, to which that was given. */
static json_t *input_config(const json_t *config)
{
    const json_t *shape = json_object_get(config, "batch_input_shape");
    json_t       *made = copied(config);
    if (!shape) return made;
    return cornu__json_with(made, "batch_shape",
                            json_incref((json_t *)(wrapped(shape) ? wrapped(shape) : shape)));
}

static json_t *config_of(const json_t *value, const char *class_name)
{
    const json_t *config = json_object_get(value, "config");
    if (!strcmp(class_name, "Sequential")) return sequential_config(value);
    if (json_object_get(config, "layers") && json_object_get(config, "output_layers"))
        return functional_config(value);
    if (!strcmp(class_name, "InputLayer")) return input_config(config);
    return copied(config);
}

/* An object with a class and a config. Modules are not kept: those of Keras 2 have other names. */
static json_t *object(const json_t *value)
{
    const char *class_name = own_class(text_of(value, "class_name"));
    const char *name = text_of(value, "name");
    json_t     *made = json_object(), *config = config_of(value, class_name);
    if (!config && !cornu_error_pending())
        cornu__fail_null(CORNU_ERR_MEMORY, "no memory for the architecture");
    CornuStatus status = config ? cornu__keras2_apply(class_name, made, config)
                                : cornu_error_take();
    if (!status) {
        if (strchr(class_name, '>')) {   /* a class of the program that wrote the file */
            made = cornu__json_with(made, "registered_name", json_string(class_name));
            made = cornu__json_with(made, "module", json_null());
            made = cornu__json_with(made, "class_name", json_string(strchr(class_name, '>') + 1));
        }
        made = cornu__json_with(made, "config", json_incref(config));
        if (*name) made = cornu__json_with(made, "name", json_string(name));
    }
    json_decref(config);
    if (!status) return made;
    json_decref(made);
    if (*name_of(value)) cornu__fail_prefix(status, name_of(value));
    return cornu__null();
}

static bool rewrite(void *context, const json_t *value, json_t **made)
{
    const json_t *config = json_object_get(value, "config"), *inside = wrapped(value);
    const bool    is_object = json_is_string(json_object_get(value, "class_name")) &&
                              (json_is_object(config) || json_is_array(config));
    (void)context;
    if (inside) *made = cornu__json_map(inside, rewrite, NULL);
    else if (is_object) *made = object(value);
    return inside || is_object;
}

static json_t *rewritten(const json_t *value) { return cornu__json_map(value, rewrite, NULL); }

/* ---- Which Keras wrote it ---- */

static bool seems_old(const json_t *value)
{
    const char *key;
    json_t     *member;
    bool        old = false;
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value) && !old; i++)
        old = seems_old(json_array_get(value, i));
    json_object_foreach((json_t *)value, key, member) {
        if (old) break;
        const json_t *node = json_array_get(member, 0);
        old = !strcmp(key, "batch_input_shape") ||
              (!strcmp(key, "inbound_nodes") && json_is_array(node)) || seems_old(member);
    }
    return old;
}

/* Files of Keras 3 say so, but for the strings of to_json. */
static bool is_old(const json_t *value, const char *version)
{
    return version ? version[0] < '3' : seems_old(value);
}

json_t *cornu__keras2_model(const json_t *model, const char *version)
{
    if (!version) version = json_string_value(json_object_get(model, "keras_version"));
    if (!is_old(model, version)) return json_incref((json_t *)model);
    json_t *made = rewritten(model);
    if (!made && !cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_MEMORY, "no memory for the architecture");
    if (!made || !version || version[0] > '1') return made;
    json_decref(made);
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "was written by Keras %.20s; load it in Keras 2 "
                            "and save it again", version);
}
