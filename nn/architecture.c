/* Architectures in Keras' JSON, out and in. What a layer's arguments are called, and where they
 * stand, its class says in a table (layer.h). */
#include "files_internal.h"

#include "model_internal.h"
#include "rules_internal.h"

#include <string.h>

/* ---- Out ---- */

/* Without memory jansson gives NULL, and takes NULL for a failure: what follows does the same, so
 * that one check at the end will do. */

static const char *const modes[] = { [CORNU_ROWS] = "rows", [CORNU_COLUMNS] = "columns" };

/* Appends a value, which is taken; NULL, and the list is gone, without memory. */
static json_t *append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) == 0) return list;
    json_decref(list);
    return NULL;
}

/* CORNU_NONE is null. */
static json_t *list_of(const int64_t *numbers, int count)
{
    json_t *result = json_array();
    for (int i = 0; i < count; i++)
        result = append(result, numbers[i] == CORNU_NONE ? json_null()
                                                         : json_integer(numbers[i]));
    return result;
}

static json_t *object_of(const char *module, const char *class_name, json_t *config)
{
    return json_pack("{s:s, s:s, s:o, s:n}", "module", module, "class_name", class_name,
                     "config", config, "registered_name");
}

/* The text that stands for a number of an enum, all of which are below MOST_TEXTS; NULL if it
 * stands for none. */
enum { MOST_TEXTS = 8 };

static const char *text_of(CornuFieldKind kind, int number)
{
    switch (kind) {
    case CORNU_FIELD_PADDING:       return cornu_padding_name((CornuPadding)number);
    case CORNU_FIELD_MERGE:         return cornu_merge_name((CornuMerge)number);
    case CORNU_FIELD_INTERPOLATION: return cornu_interpolation_name((CornuInterpolation)number);
    case CORNU_FIELD_FILL_MODE:     return cornu_fill_mode_name((CornuFillMode)number);
    case CORNU_FIELD_FLIP_MODE:     return cornu_flip_mode_name((CornuFlipMode)number);
    default:                        return NULL;
    }
}

static json_t *layer_to_json(const CornuModel *model, const CornuLayer *layer);
static json_t *rule_to_json(const CornuRuleFamily *family, const void *rule);

static json_t *field_to_json(const CornuModel *model, const CornuField *field, const void *config)
{
    const void *at = (const char *)config + field->offset;
    switch (field->kind) {
    case CORNU_FIELD_INTEGER: return json_integer(*(const int64_t *)at);
    case CORNU_FIELD_SINGLE:  return list_of(at, 1);
    case CORNU_FIELD_PAIR:    return list_of(at, 2);
    case CORNU_FIELD_PAIR_OR_NONE: {
        const int64_t *pair = at;
        if (!pair[0] && !pair[1]) return json_null();
        return list_of((const int64_t[]){ cornu__integer(pair[0], 0), cornu__integer(pair[1], 0) },
                       2);
    }
    case CORNU_FIELD_EDGES: {
        const int64_t *edges = at, top = cornu__integer(edges[0], 0);
        return append(append(json_array(), list_of((const int64_t[]){ top, edges[1] }, 2)),
                      list_of(edges + 2, 2));
    }
    case CORNU_FIELD_SHAPE: {
        const int64_t *extents = at;
        json_t *shape = json_array();
        for (int i = 0; i < CORNU_MAX_RANK && extents[i] != 0; i++)
            shape = append(shape, json_integer(extents[i]));   /* here Keras writes -1 */
        return shape;
    }
    case CORNU_FIELD_NUMBER: {
        const double number = *(const double *)at;
        return json_real(number == (double)CORNU_ZERO ? 0.0 : number);
    }
    case CORNU_FIELD_RANGE: {
        const double *range = at;
        return append(append(json_array(), json_real(range[0])), json_real(range[1]));
    }
    case CORNU_FIELD_FLAG: return json_boolean(*(const bool *)at);
    case CORNU_FIELD_NOT:  return json_boolean(!*(const bool *)at);
    case CORNU_FIELD_ACTIVATION:
        return json_string(cornu_activation_name(*(const CornuActivation *)at));
    case CORNU_FIELD_INITIALIZER:
        return json_string(cornu_initializer_name(*(const CornuInitializer *)at));
    case CORNU_FIELD_PADDING: case CORNU_FIELD_MERGE: case CORNU_FIELD_INTERPOLATION:
    case CORNU_FIELD_FILL_MODE: case CORNU_FIELD_FLIP_MODE: {
        const char *text = text_of(field->kind, *(const int *)at);
        return text ? json_string(text) : json_null();
    }
    case CORNU_FIELD_LAYER: return layer_to_json(model, *(CornuLayer *const *)at);
    case CORNU_FIELD_REGULARIZER: return rule_to_json(&cornu__regularizers, at);
    case CORNU_FIELD_CONSTRAINT:  return rule_to_json(&cornu__constraints, at);
    case CORNU_FIELD_ORTHOGONAL_MODE:
        return json_string(modes[*(const CornuOrthogonalMode *)at]);
    case CORNU_FIELD_AXES: {
        const int64_t *axis = at;
        int count = 1;
        while (count < CORNU_MAX_RANK && axis[count] != 0) count++;
        return count == 1 ? json_integer(axis[0]) : list_of(axis, count);
    }
    }
    return NULL;
}

/* The fields of a config, added to an object, which is taken. */
static json_t *fields_to_json(const CornuModel *model, const CornuField *field, const void *config,
                              json_t *object)
{
    for (; field && field->name; field++) {
        if (json_object_set_new(object, field->name, field_to_json(model, field, config)) == 0)
            continue;
        json_decref(object);
        return NULL;
    }
    return object;
}

/* A regularizer or a constraint; null for none. */
static json_t *rule_to_json(const CornuRuleFamily *family, const void *rule)
{
    const CornuRuleClass *kind = cornu__rule_class(family, rule);
    char module[40];
    if (!kind) return json_null();
    snprintf(module, sizeof module, "keras.%ss", family->word);
    return object_of(module, kind->class_name,
                     fields_to_json(NULL, kind->fields, rule, json_object()));
}

/* A policy that was chosen. What the device chose is none of the architecture's: "float32", which
 * Keras reads as such. */
static json_t *policy_to_json(const CornuPolicy *policy)
{
    if (!policy) return json_string("float32");
    return object_of("keras", "DTypePolicy", json_pack("{s:s}", "name", policy->name));
}

static json_t *layer_to_json(const CornuModel *model, const CornuLayer *layer)
{
    const CornuLayerClass *kind = layer->kind;
    const CornuPolicy *policy = layer->own_policy ? layer->own_policy : model->base.own_policy;
    json_t *config = json_pack("{s:s, s:b, s:o}", "name", cornu_layer_name(layer), "trainable",
                               !layer->frozen, "dtype", policy_to_json(policy));
    config = fields_to_json(model, kind->fields, (const char *)layer + kind->config_offset, config);
    return object_of("keras.layers", kind->class_name, config);
}

static json_t *input_to_json(const CornuModel *model)
{
    CornuShape shape = cornu_model_input_shape(model);
    shape.extent[0] = cornu_model_batch_size(model);   /* Keras asks for it of a stateful one */
    return object_of("keras.layers", "InputLayer",
                     json_pack("{s:o, s:s, s:s}", "batch_shape", list_of(shape.extent, shape.rank),
                               "dtype", "float32", "name", "input_layer"));
}

json_t *cornu__model_config(const CornuModel *model)
{
    if (model->base.kind != &cornu__sequential_class) {
        cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: models of class %s cannot be saved whole in this "
                    "version; cornu_model_save_weights can", cornu_model_name(model),
                    model->base.kind->class_name);
        return NULL;
    }
    json_t *layers = append(json_array(), input_to_json(model));
    for (int i = 0; i < cornu_model_layer_count(model); i++) {
        const CornuLayer *layer = cornu_model_layer(model, i);
        if (!layer->kind->from) {
            json_decref(layers);
            cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: layers of class %s cannot be saved",
                        cornu_layer_name(layer), layer->kind->class_name);
            return NULL;
        }
        layers = append(layers, layer_to_json(model, layer));
    }
    json_t *result = object_of("keras", "Sequential",
                               json_pack("{s:s, s:b, s:o, s:o}", "name", cornu_model_name(model),
                                         "trainable", 1, "dtype",
                                         policy_to_json(model->base.own_policy), "layers", layers));
    if (!result) cornu__fail(CORNU_ERR_MEMORY, "no memory for the architecture");
    return result;
}

/* ---- In ---- */

static CornuStatus unexpected(const char *name, const char *expected)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s is not %s", name, expected);
}

/* Up to `most` whole numbers; null is CORNU_NONE. */
static CornuStatus read_list(const json_t *value, const char *name, int64_t *numbers, size_t most,
                             size_t *count)
{
    *count = json_array_size(value);
    if (!json_is_array(value) || *count > most)
        return cornu__fail(CORNU_ERR_FORMAT, "%s is not a list of at most %zu numbers", name, most);
    for (size_t i = 0; i < *count; i++) {
        const json_t *number = json_array_get(value, i);
        if (!json_is_integer(number) && !json_is_null(number))
            return unexpected(name, "a list of whole numbers");
        numbers[i] = json_is_null(number) ? CORNU_NONE : json_integer_value(number);
    }
    return CORNU_OK;
}

static CornuStatus read_text(CornuFieldKind kind, const char *name, const char *text, int *number)
{
    char   all[160];
    size_t length = 0;
    for (int i = 0; i < MOST_TEXTS; i++) {
        const char *one = text_of(kind, i);
        if (!one) continue;
        *number = i;
        if (!strcmp(text, one)) return CORNU_OK;
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", length ? ", " : "",
                                   one);
    }
    return cornu__fail(CORNU_ERR_FORMAT, "%s is \"%.40s\", expected one of %s", name, text, all);
}

/* (top, bottom), (left, right) */
static CornuStatus read_edges(const json_t *value, const char *name, int64_t *edges)
{
    size_t count = json_array_size(value), two = 2;
    for (size_t i = 0; i < 2 && count == 2 && two == 2; i++)
        CORNU__TRY(read_list(json_array_get(value, i), name, edges + 2 * i, 2, &two));
    if (!edges[0] && !edges[1] && !edges[2] && !edges[3]) edges[0] = CORNU_ZERO;
    return count == 2 && two == 2 ? CORNU_OK : unexpected(name, "two lists of two numbers");
}

/* Both ends, or a number x for -x and x. */
static CornuStatus read_range(const json_t *value, const char *name, double *range)
{
    for (size_t i = 0; i < 2; i++) {
        const json_t *end = json_is_number(value) ? value : json_array_get(value, i);
        if (!json_is_number(end)) return unexpected(name, "a number or a list of two");
        range[i] = end == value && i == 0 ? -json_number_value(end) : json_number_value(end);
    }
    return CORNU_OK;
}

static CornuStatus read_initializer(const char *text, CornuInitializer *initializer)
{
    for (int i = 0; i < CORNU_INITIALIZER_COUNT; i++) {
        if (strcmp(text, cornu_initializer_name((CornuInitializer)i))) continue;
        *initializer = (CornuInitializer)i;
        return CORNU_OK;
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "there is no initializer \"%.40s\"", text);
}

static CornuStatus read_mode(const char *text, CornuOrthogonalMode *mode)
{
    *mode = strcmp(text, modes[CORNU_COLUMNS]) ? CORNU_ROWS : CORNU_COLUMNS;
    if (!strcmp(text, modes[*mode])) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "mode is \"%.40s\", expected rows or columns", text);
}

/* One axis, or a list, in which 0 comes first here. */
static CornuStatus read_axes(const json_t *value, const char *name, int64_t axis[CORNU_MAX_RANK])
{
    size_t count = 1;
    axis[0] = json_integer_value(value);
    if (json_is_integer(value)) return CORNU_OK;
    CORNU__TRY(read_list(value, name, axis, CORNU_MAX_RANK, &count));
    for (size_t i = 1; i < count; i++)
        if (axis[i] == 0) {
            axis[i] = axis[0];
            axis[0] = 0;
        }
    return count > 0 ? CORNU_OK : unexpected(name, "a number or a list of at least one");
}

static CornuStatus make_layer(const CornuModel *model, const json_t *value, CornuLayer **layer);
static CornuStatus read_rule(const CornuRuleFamily *family, const json_t *value, const char *name,
                             void *rule);

static CornuStatus read_field(const CornuModel *model, const CornuField *field,
                              const json_t *value, void *config)
{
    void *at = (char *)config + field->offset;
    const char *text = json_string_value(value);
    size_t count;
    switch (field->kind) {
    case CORNU_FIELD_INTEGER:
        if (!json_is_integer(value)) return unexpected(field->name, "a whole number");
        *(int64_t *)at = json_integer_value(value);
        return CORNU_OK;
    case CORNU_FIELD_PAIR:
        CORNU__TRY(read_list(value, field->name, at, 2, &count));
        return count == 2 ? CORNU_OK : unexpected(field->name, "a list of two numbers");
    case CORNU_FIELD_SINGLE:
        CORNU__TRY(read_list(value, field->name, at, 1, &count));
        return count == 1 ? CORNU_OK : unexpected(field->name, "a list of one number");
    case CORNU_FIELD_PAIR_OR_NONE: {
        int64_t *pair = at;
        if (json_is_null(value)) return CORNU_OK;
        CORNU__TRY(read_list(value, field->name, pair, 2, &count));
        for (int i = 0; i < 2; i++) pair[i] = pair[i] ? pair[i] : CORNU_ZERO;
        return count == 2 ? CORNU_OK : unexpected(field->name, "null or a list of two numbers");
    }
    case CORNU_FIELD_EDGES: return read_edges(value, field->name, at);
    case CORNU_FIELD_RANGE: return read_range(value, field->name, at);
    case CORNU_FIELD_SHAPE:
        return read_list(value, field->name, at, CORNU_MAX_RANK, &count);
    case CORNU_FIELD_NUMBER:
        if (!json_is_number(value)) return unexpected(field->name, "a number");
        *(double *)at = json_number_value(value);
        if (*(double *)at == 0.0) *(double *)at = (double)CORNU_ZERO;
        return CORNU_OK;
    case CORNU_FIELD_FLAG:
    case CORNU_FIELD_NOT:
        if (!json_is_boolean(value)) return unexpected(field->name, "true or false");
        *(bool *)at = json_is_true(value) == (field->kind == CORNU_FIELD_FLAG);
        return CORNU_OK;
    case CORNU_FIELD_ACTIVATION:
        return text ? cornu_activation_find(text, at) : unexpected(field->name, "a text");
    case CORNU_FIELD_PADDING: case CORNU_FIELD_MERGE: case CORNU_FIELD_INTERPOLATION:
    case CORNU_FIELD_FILL_MODE: case CORNU_FIELD_FLIP_MODE:
        return text ? read_text(field->kind, field->name, text, at)
                    : unexpected(field->name, "a text");
    case CORNU_FIELD_INITIALIZER:
        return text ? read_initializer(text, at) : unexpected(field->name, "a text");
    case CORNU_FIELD_LAYER: return make_layer(model, value, at);
    case CORNU_FIELD_REGULARIZER:
        return read_rule(&cornu__regularizers, value, field->name, at);
    case CORNU_FIELD_CONSTRAINT:
        return read_rule(&cornu__constraints, value, field->name, at);
    case CORNU_FIELD_ORTHOGONAL_MODE:
        return text ? read_mode(text, at) : unexpected(field->name, "a text");
    case CORNU_FIELD_AXES: return read_axes(value, field->name, at);
    }
    return CORNU_OK;
}

/* What every layer has besides its class's arguments. */
static bool is_common(const char *name)
{
    return !strcmp(name, "name") || !strcmp(name, "trainable") || !strcmp(name, "dtype");
}

static CornuStatus read_arguments(const CornuModel *model, const CornuField *fields,
                                  const json_t *config, void *arguments)
{
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)config, name, value) {
        const CornuField *field = fields;
        while (field && field->name && strcmp(field->name, name)) field++;
        if (field && field->name)
            CORNU__TRY(read_field(model, field, value, arguments));
        else if (!is_common(name))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%.60s\" is not known", name);
    }
    return CORNU_OK;
}

/* null, an object or, with defaults, a name. */
static CornuStatus read_rule(const CornuRuleFamily *family, const json_t *value, const char *name,
                             void *rule)
{
    const json_t *class_name = json_is_object(value) ? json_object_get(value, "class_name") : value;
    if (json_is_null(value)) return CORNU_OK;
    if (!json_is_string(class_name))
        return unexpected(name, "null, a text or an object with a class_name");
    CORNU__TRY(cornu__fail_prefix(
        cornu__rule_find(family, json_string_value(class_name), rule), name));
    const json_t *config = json_object_get(value, "config");
    if (!config) return CORNU_OK;
    CORNU__TRY(cornu__fail_prefix(read_arguments(NULL, cornu__rule_class(family, rule)->fields,
                                                 config, rule), name));
    return cornu__fail_prefix(family->resolve(rule), name);
}

/* A policy as it was written: NULL in *name where none was chosen. */
static CornuStatus read_policy(const json_t *dtype, const char **name)
{
    *name = NULL;
    if (!dtype || json_is_null(dtype)) return CORNU_OK;
    if (json_is_string(dtype)) {
        if (strcmp(json_string_value(dtype), "float32")) *name = json_string_value(dtype);
        return CORNU_OK;
    }
    *name = json_string_value(json_object_get(json_object_get(dtype, "config"), "name"));
    return *name ? CORNU_OK : unexpected("dtype", "a text or a DTypePolicy with a name");
}

/* Gives the layer its own policy, where that is not the model's. */
static CornuStatus set_policy(const CornuModel *model, CornuLayer *layer, const json_t *dtype)
{
    const char *name;
    CORNU__TRY(read_policy(dtype, &name));
    const CornuPolicy *policy = name ? cornu_policy(name) : NULL;
    if (name && !policy) return cornu_error_take();
    if (policy != model->base.own_policy) layer->own_policy = policy;
    return CORNU_OK;
}

static const CornuLayerClass *find_class(const char *name)
{
    int count;
    const CornuLayerClass *const *classes = cornu__layer_classes(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(classes[i]->class_name, name) == 0) return classes[i];
    return NULL;
}

/* The layers among arguments that no constructor has taken. */
static void free_layers(const CornuLayerClass *kind, const void *arguments)
{
    for (const CornuField *field = kind->fields; field->name; field++)
        if (field->kind == CORNU_FIELD_LAYER)
            cornu_layer_free(*(CornuLayer *const *)((const char *)arguments + field->offset));
}

static CornuStatus make_layer(const CornuModel *model, const json_t *value, CornuLayer **layer)
{
    const char   *class_name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    const char   *name = json_string_value(json_object_get(config, "name"));
    *layer = NULL;
    if (!class_name || !name)
        return cornu__fail(CORNU_ERR_FORMAT, "a layer without class_name or name");
    const CornuLayerClass *kind = find_class(class_name);
    if (!kind)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%.60s: there is no layer class \"%.60s\"", name,
                           class_name);
    void *arguments = cornu__allocate(1, kind->config_size);
    if (!arguments) return CORNU_ERR_MEMORY;
    CornuStatus status = read_arguments(model, kind->fields, config, arguments);
    if (status != CORNU_OK) {
        free_layers(kind, arguments);
    } else {
        *layer = kind->from(arguments);
        status = *layer ? set_policy(model, *layer, json_object_get(config, "dtype"))
                        : cornu_error_take();
    }
    cornu__release(arguments);
    if (status != CORNU_OK) {
        cornu_layer_free(*layer);
        char place[80];
        snprintf(place, sizeof place, "%.60s", name);
        return cornu__fail_prefix(status, place);
    }
    cornu__release((*layer)->name);
    (*layer)->name = cornu__copy_text(name);
    (*layer)->frozen = json_is_false(json_object_get(config, "trainable"));
    if ((*layer)->name) return CORNU_OK;
    cornu_layer_free(*layer);
    return CORNU_ERR_MEMORY;
}

/* The InputLayer's batch_shape: the rows of a batch, 0 for any number, and the rest. */
static CornuStatus read_input_shape(const json_t *input, int64_t *batch_size,
                                    int64_t shape[CORNU_MAX_RANK])
{
    int64_t batch_shape[CORNU_MAX_RANK] = { 0 };
    size_t  rank;
    const char *class_name = json_string_value(json_object_get(input, "class_name"));
    if (!class_name || strcmp(class_name, "InputLayer"))
        return cornu__fail(CORNU_ERR_FORMAT, "the first layer is no InputLayer");
    const json_t *value = json_object_get(json_object_get(input, "config"), "batch_shape");
    CORNU__TRY(read_list(value, "batch_shape", batch_shape, CORNU_MAX_RANK, &rank));
    for (size_t i = 0; i < rank; i++) {
        if (batch_shape[i] < 1 && (i > 0 || batch_shape[i] != CORNU_NONE))
            return cornu__fail(CORNU_ERR_FORMAT, "batch_shape has an extent of %lld",
                               (long long)batch_shape[i]);
        if (i > 0) shape[i - 1] = batch_shape[i];
    }
    *batch_size = batch_shape[0] == CORNU_NONE ? 0 : batch_shape[0];
    return rank > 1 ? CORNU_OK : unexpected("batch_shape", "a batch and at least one more axis");
}

static CornuStatus fill_model(CornuModel *model, const json_t *layers)
{
    for (size_t i = 1; i < json_array_size(layers); i++) {
        CornuLayer *layer;
        CORNU__TRY(make_layer(model, json_array_get(layers, i), &layer));
        CORNU__TRY(cornu_model_add(model, layer));
    }
    return CORNU_OK;
}

CornuModel *cornu__model_from_config(const json_t *architecture, double input_scale)
{
    const json_t *config = json_object_get(architecture, "config");
    const json_t *layers = json_object_get(config, "layers");
    const char   *class_name = json_string_value(json_object_get(architecture, "class_name"));
    CornuSequentialConfig sequential = {
        .name = json_string_value(json_object_get(config, "name")), .input_scale = input_scale,
    };
    if (!class_name || strcmp(class_name, "Sequential"))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the model's class is \"%.60s\", expected "
                                "Sequential", class_name ? class_name : "");
    if (read_input_shape(json_array_get(layers, 0), &sequential.batch_size,
                         sequential.input_shape) != CORNU_OK ||
        read_policy(json_object_get(config, "dtype"), &sequential.policy) != CORNU_OK)
        return cornu__null();
    CornuModel *model = cornu_sequential_from(&sequential);
    if (!model) return NULL;
    if (fill_model(model, layers) == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}
