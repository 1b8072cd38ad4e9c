/* Layers from Keras' JSON, by the table of their class. */
#include "../../../device/inference_internal.h"
#include "architecture_internal.h"

#include <string.h>

CornuStatus cornu__read_policy(const json_t *dtype, const char **name)
{
    *name = NULL;
    if (!dtype || json_is_null(dtype)) return CORNU_OK;
    if (json_is_string(dtype)) {
        if (strcmp(json_string_value(dtype), "float32")) *name = json_string_value(dtype);
        return CORNU_OK;
    }
    const char *class_name = json_string_value(json_object_get(dtype, "class_name"));
    if (!class_name) return cornu__unexpected("dtype", "a string or an object with a class_name");
    if (strcmp(class_name, "DTypePolicy"))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a dtype of class %.60s is not available in this "
                           "version, expected a DTypePolicy", class_name);
    *name = json_string_value(json_object_get(json_object_get(dtype, "config"), "name"));
    return *name ? CORNU_OK : cornu__unexpected("dtype", "a string or a DTypePolicy with a name");
}

/* Gives the layer a policy of its own, unless it is the usual one. */
static CornuStatus set_policy(CornuLayer *layer, const json_t *dtype, const CornuPolicy *usual)
{
    const char *name;
    if (layer->kind->host_call && !layer->kind->moves_to_host)
        return CORNU_OK;    /* the dtype of its output follows from its mode */
    if (cornu__is_quantized_policy(dtype)) return cornu__read_quantized_policy(dtype, layer);
    CORNU__TRY(cornu__read_policy(dtype, &name));
    const CornuPolicy *policy = name ? cornu_policy(name) : NULL;
    if (name && !policy) return cornu_error_take();
    if (policy != usual) layer->own_policy = policy;
    return CORNU_OK;
}

static const CornuLayerClass *find_class(const char *name)
{
    const CornuLayerClass *const *kind = cornu__layer_classes;
    while (*kind && strcmp((*kind)->class_name, name)) kind++;
    return *kind;
}

/* Releases the layers and the memory among the arguments: the layer made of them holds references
 * and copies, or keeps the memory. */
static CornuStatus settle_arguments(const CornuField *field, const void *arguments,
                                    CornuLayer *layer)
{
    CornuStatus status = CORNU_OK;
    for (; field->name; field++) {
        const void *at = (const char *)arguments + field->offset;
        for (int i = 0; i < field->kind->most_layers; i++)
            cornu_layer_free(((CornuLayer *const *)at)[i]);
        void *memory = field->kind->memory ? field->kind->memory(at) : NULL;
        if (!memory) continue;
        if (!layer || !field->kind->keeps) cornu__release(memory);
        else if (cornu__layer_keep(layer, memory)) status = CORNU_ERR_MEMORY;
    }
    return status;
}

/* Layers of other packages may have the names of Keras'. */
static bool is_foreign(const json_t *value)
{
    const char            *module = json_string_value(json_object_get(value, "module"));
    const char            *class_name = json_string_value(json_object_get(value, "class_name"));
    const CornuLayerClass *kind = class_name ? find_class(class_name) : NULL;
    const char            *own = kind ? cornu__keras_class_of(kind)->module : NULL;
    return module && strcmp(module, "keras") && strcmp(module, "keras.layers") &&
           !(own && !strcmp(own, module)) &&
           strncmp(module, "keras.src.models.", strlen("keras.src.models."));
}

/* What Keras calls a class that is not its own: "package>Name", or the name alone if the program
 * did not register it. */
static const char *foreign_name(const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "registered_name"));
    if (name && strchr(name, '>')) return name;
    return is_foreign(value) ? json_string_value(json_object_get(value, "class_name")) : NULL;
}

const CornuLayerClass *cornu__json_class(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    const char *foreign = foreign_name(value);
    if (foreign) return cornu__registered_class(foreign);
    return class_name ? find_class(class_name) : NULL;
}

/* Dense and Embedding of Keras lose their alpha when they are built. */
static CornuStatus set_lora(CornuLayer *layer, const json_t *config)
{
    const json_t *rank = json_object_get(config, "lora_rank");
    const json_t *alpha = json_object_get(config, "lora_alpha");
    if (!rank || json_is_null(rank)) return CORNU_OK;
    if (!json_is_integer(rank)) return cornu__unexpected("lora_rank", "a whole number");
    return cornu_layer_enable_lora(layer, json_integer_value(rank),
                                   cornu__keras_class(layer)->lora_resets_alpha
                                       ? 0.0 : json_number_value(alpha));
}

/* Arguments that Keras' constructors require, for which 0 or nothing is a value here: of the
 * classes whose names have the word. */
static CornuStatus check_required(const CornuLayerClass *kind, const json_t *config)
{
    static const char required[][2][14] = {
        { "Dropout", "rate" }, { "Activation", "activation" }, { "GaussianNoise", "stddev" },
        { "EinsumDense", "output_shape" },
    };
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (strstr(kind->class_name, required[i][0]) && !json_object_get(config, required[i][1]))
            return cornu__fail(CORNU_ERR_FORMAT, "the argument \"%s\" of %s is missing",
                               required[i][1], kind->class_name);
    return CORNU_OK;
}

/* Files of the library that predicts only are those that this one wrote. */
static CornuStatus (*const check)(const CornuLayerClass *kind, const json_t *config) =
    CORNU__FULL(check_required, NULL);

static CornuStatus make_layer(const json_t *value, const CornuPolicy *usual,
                              const CornuLayerClass *kind, CornuLayer **layer)
{
    const json_t *config = json_object_get(value, "config");
    if (check) CORNU__TRY(check(kind, config));
    const CornuKerasClass *keras = cornu__keras_class_of(kind);
    void *arguments = cornu__allocate(1, keras->config_size);
    if (!arguments) return CORNU_ERR_MEMORY;
    const CornuLayersInside layers = { .usual = usual, .from_json = cornu__layer_from_json };
    CornuStatus status = cornu__read_arguments(&layers, keras->fields, config, arguments);
    if (status == CORNU_OK) {
        *layer = cornu__layer_from(kind, arguments);
        status = *layer ? set_policy(*layer, json_object_get(config, "dtype"), usual)
                        : cornu_error_take();
    }
    if (settle_arguments(keras->fields, arguments, *layer) && !status) status = CORNU_ERR_MEMORY;
    cornu__release(arguments);
    CORNU__TRY(status);
    cornu__release((*layer)->name);
    (*layer)->name = cornu__copy_text(json_string_value(json_object_get(config, "name")));
    (*layer)->frozen = json_is_false(json_object_get(config, "trainable"));
    (*layer)->owners = 1;
    CORNU__TRY(cornu__read_quantization(json_object_get(config, "quantization_config"), *layer));
    CORNU__TRY(set_lora(*layer, config));
    if (!(*layer)->name) return CORNU_ERR_MEMORY;
    /* The copies that wrappers make of a layer, too. */
    return cornu__layer_set_name(*layer, &(CornuLookup){ .of_strings = true });
}

static CornuStatus make_model(const json_t *value, const CornuPolicy *usual, CornuLayer **layer)
{
    CornuModel *model = cornu__model_from_json(value, usual);
    if (!model) return cornu_error_take();
    *layer = cornu_as_layer(model);
    if (*layer) return CORNU_OK;
    const CornuStatus status = cornu_error_take();
    cornu_model_free(model);
    return status;
}

/* What to do about classes that are not available, where there is something to do. */
static const struct { const char *class_name, *advice; } advices[] = {
    { "Lambda", "a Lambda holds Python code, which only Python runs; use operations of keras.ops "
                "on tensors of the model, layers such as Rescaling, Reshape and Activation, or a "
                "Layer class of your own that is registered here by cornu_register_layer" },
    { "StringLookup", "StringLookup takes strings, of which there are no tensors; look them up "
                      "before, and begin the saved model with the layer after it" },
    { "TextVectorization", "TextVectorization takes strings, of which there are no tensors; "
                           "vectorize them before, and begin the saved model with the layer after "
                           "it, such as the Embedding" },
    { "Hashing", "Hashing is not available; hash before, and begin the saved model with the layer "
                 "after it, or use IntegerLookup" },
    { "HashedCrossing", "HashedCrossing is not available; cross and hash before, and begin the "
                        "saved model with the layer after it" },
};

static CornuStatus refuse_class(const char *class_name)
{
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (!strcmp(class_name, advices[i].class_name))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s", advices[i].advice);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "there is no layer class \"%.60s\"; a class of your "
                       "own must be registered by cornu_register_layer", class_name);
}

/* The library that predicts only has no losses. */
static CornuStatus (*const read_loss)(const json_t *value, CornuLayer **layer) =
    CORNU__FULL(cornu__loss_layer_from_json, NULL);

CornuStatus cornu__layer_from_json(const json_t *value, const CornuPolicy *usual,
                                   CornuLayer **layer)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    const char *foreign = foreign_name(value);
    const char *name = json_string_value(
        json_object_get(json_object_get(value, "config"), "name"));
    char        place[80];
    CornuStatus status;
    *layer = NULL;
    if (!class_name || !name)
        return cornu__fail(CORNU_ERR_FORMAT, "a layer without class_name or name");
    if ((*layer = cornu__shared_layer(value))) return CORNU_OK;
    const CornuLayerClass *kind = cornu__json_class(value);
    const char            *module = json_string_value(json_object_get(value, "module"));
    snprintf(place, sizeof place, "%.60s", name);
    if (read_loss && cornu__is_loss_layer_json(value))
        status = read_loss(value, layer);
    else if (cornu__is_traced_json(value))
        status = cornu__traced_from_json(value, layer);
    else if (foreign && !kind)
        status = cornu__fail(CORNU_ERR_UNSUPPORTED, "there is no layer class \"%.60s\"%s%.60s%s; "
                             "a class of your own must be registered by cornu_register_layer, here "
                             "as \"%.120s\"", class_name, module ? " of module \"" : "",
                             module ? module : "", module ? "\"" : "", foreign);
    else if (cornu__is_model_class(class_name))
        status = make_model(value, usual, layer);
    else if (kind)
        status = make_layer(value, usual, kind, layer);
    else
        status = refuse_class(class_name);
    if (status == CORNU_OK) status = cornu__share_layer(value, *layer);
    if (status == CORNU_OK) return CORNU_OK;
    cornu_layer_free(*layer);
    *layer = NULL;
    return cornu__fail_prefix(status, place);
}

CornuLayer *cornu_layer_from_json(const char *json)
{
    CORNU__NEED_TO_MAKE(json);
    CornuLayer *layer = NULL;
    if (cornu__refused()) return NULL;
    json_t     *value = cornu__json_parse(json, strlen(json), CORNU_ARCHITECTURE_DEPTH);
    const bool  made = value && cornu__layer_from_json(value, NULL, &layer) == CORNU_OK;
    json_decref(value);
    return made ? layer : cornu__null();
}
