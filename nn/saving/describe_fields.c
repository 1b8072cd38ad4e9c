/* The arguments of a class. Defaults and required arguments are found by making an object of the
 * class and writing it. */
#include "describe_internal.h"

#include <stdio.h>
#include <string.h>

/* The config of an object with these arguments; NULL where they are refused, without an error. */
static json_t *made(const CornuDescribed *described, const json_t *arguments)
{
    json_t *value = json_pack("{s:s, s:O}", "class_name", described->class_name, "config",
                              arguments);
    json_t *config = value ? described->made(described, value) : NULL;
    json_decref(value);
    if (cornu_error_pending()) cornu_error_take();
    return config;
}

/* ---- Required arguments ---- */

/* Examples of values, from which classes take what they require. */
enum { EXAMPLES = 3 };

static const char *example(CornuFieldKind kind, int i)
{
    static const char layer[] = "{\"class_name\": \"LSTM\", "
                                "\"config\": {\"name\": \"layer\", \"units\": 1}}";
    static const char cell[] = "{\"class_name\": \"LSTMCell\", "
                               "\"config\": {\"name\": \"cell\", \"units\": 1}}";
    static const char dense[] = "{\"class_name\": \"Dense\", "
                                "\"config\": {\"name\": \"layer\", \"units\": 1}}";
    static const char cells[] = "[{\"class_name\": \"LSTMCell\", "
                                "\"config\": {\"name\": \"cell\", \"units\": 1}}]";
    switch (kind) {
    case CORNU_FIELD_INTEGER: case CORNU_FIELD_SINGLE: case CORNU_FIELD_PAIR:
    case CORNU_FIELD_TRIPLE: case CORNU_FIELD_INTEGER_OR_DEFAULT:
        return i ? "2" : "1";
    case CORNU_FIELD_SHAPE: case CORNU_FIELD_EXTENTS: case CORNU_FIELD_SHAPE_OR_NONE:
    case CORNU_FIELD_AXES: case CORNU_FIELD_AXES_OR_NONE: case CORNU_FIELD_CLASSES:
    case CORNU_FIELD_ROW_AXES:
        return "[1]";
    case CORNU_FIELD_NUMBER: case CORNU_FIELD_NUMBER_OR_DEFAULT: case CORNU_FIELD_RANGE:
    case CORNU_FIELD_RANGE_OR_NONE: case CORNU_FIELD_REACH:
        return "0.5";
    case CORNU_FIELD_NUMBERS: return "[0.5]";
    case CORNU_FIELD_ACTIVATION: return "\"linear\"";
    case CORNU_FIELD_TEXTS:   return "[\"a\"]";
    case CORNU_FIELD_TEXT:    return "\"ab,bc->ac\"";
    case CORNU_FIELD_LAYER:   return i == 0 ? layer : i == 1 ? cell : dense;
    case CORNU_FIELD_LAYERS:  return cells;
    default:                  return NULL;
    }
}

/* Adds examples of fields, in their order, until the class takes them; NULL if it never does. */
static json_t *add_examples(const CornuDescribed *described, json_t *arguments, int i)
{
    for (const CornuField *field = described->fields; field && field->name; field++) {
        const char *text = example(field->kind, i);
        json_t     *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL, *config;
        if (!value || json_object_set_new(arguments, field->name, value)) continue;
        if ((config = made(described, arguments))) return config;
    }
    return NULL;
}

/* Removes what the class does without; what is left is required. */
static json_t *remove_optional(const CornuDescribed *described, json_t *arguments, json_t *config)
{
    for (const CornuField *field = described->fields; field->name; field++) {
        json_t *value = json_incref(json_object_get(arguments, field->name)), *without = NULL;
        if (value) {
            json_object_del(arguments, field->name);
            without = made(described, arguments);
            if (!without) json_object_set(arguments, field->name, value);
        }
        json_decref(value);
        if (!without) continue;
        json_decref(config);
        config = without;
    }
    return config;
}

/* ---- Fields ---- */

static const char *type_of(CornuFieldKind kind)
{
    static const char *const names[] = {
#define KIND(id, name) [CORNU_FIELD_##id] = name
        KIND(INTEGER, "integer"), KIND(SINGLE, "single"), KIND(SINGLE_OR_NONE, "single_or_none"),
        KIND(PAIR, "pair"), KIND(PAIR_OR_NONE, "pair_or_none"), KIND(TRIPLE, "triple"),
        KIND(TRIPLE_OR_NONE, "triple_or_none"), KIND(EDGES, "edges"), KIND(EDGES_3D, "edges_3d"),
        KIND(SHAPE, "shape"), KIND(EXTENTS, "extents"), KIND(TEXT, "text"),
        KIND(TEXT_OR_NONE, "text_or_none"),
        KIND(SHAPE_OR_NONE, "shape_or_none"), KIND(NUMBER, "number"), KIND(RANGE, "range"),
        KIND(RANGE_OR_NONE, "range_or_none"), KIND(REACH, "reach"), KIND(FLAG, "flag"),
        KIND(NOT, "flag"), KIND(ACTIVATION, "activation"), KIND(PADDING, "padding"),
        KIND(DATA_FORMAT, "data_format"), KIND(INITIALIZER, "initializer"), KIND(SEED, "seed"),
        KIND(FAN_MODE, "fan_mode"), KIND(DISTRIBUTION, "distribution"),
        KIND(SCORE_MODE, "score_mode"), KIND(MERGE, "merge"), KIND(INTERPOLATION, "interpolation"),
        KIND(FILL_MODE, "fill_mode"), KIND(FLIP_MODE, "flip_mode"),
        KIND(REGULARIZER, "regularizer"), KIND(CONSTRAINT, "constraint"),
        KIND(ORTHOGONAL_MODE, "orthogonal_mode"), KIND(AXES, "axes"), KIND(ROW_AXES, "row_axes"),
        KIND(AXES_OR_NONE, "axes_or_none"), KIND(INTEGER_OR_NONE, "integer_or_none"),
        KIND(NUMBER_OR_NONE, "number_or_none"), KIND(INTEGER_OR_DEFAULT, "integer_or_default"),
        KIND(NUMBER_OR_DEFAULT, "number_or_default"), KIND(THRESHOLDS, "thresholds"),
        KIND(CLIPPING, "clipping"), KIND(CLASSES, "classes"), KIND(NUMBERS, "numbers"),
        KIND(INTEGERS, "integers"), KIND(TEXT_OR_DEFAULT, "text_or_default"),
        KIND(TEXTS, "texts"), KIND(STANDARDIZE, "standardize"), KIND(SPLIT, "split"),
        KIND(OUTPUT_MODE, "output_mode"), KIND(REDUCTION, "reduction"), KIND(CURVE, "curve"),
        KIND(SUMMATION, "summation"), KIND(AVERAGE, "average"), KIND(AGGREGATION, "aggregation"),
        KIND(LAYER, "layer"), KIND(LAYERS, "layers"),
#undef KIND
    };
    return names[kind];
}

/* Null if the field takes no words. */
static json_t *choices_of(CornuFieldKind kind)
{
    json_t *list = json_array();
    for (int i = 0; i < CORNU_MOST_FIELD_TEXTS; i++) {
        const char *text = cornu__field_text(kind, i);
        if (text) list = cornu__json_append(list, json_string(text));
    }
    if (json_array_size(list) > 0) return list;
    json_decref(list);
    return NULL;
}

static json_t *field_to_json(const CornuField *field, const json_t *arguments,
                             const json_t *config)
{
    json_t       *result = json_pack("{s:s, s:s}", "name", field->name, "type",
                                     type_of(field->kind));
    json_t       *choices = choices_of(field->kind);
    const json_t *usual = json_object_get(config, field->name);
    /* The layer in a wrapper is the example's. */
    if (field->kind == CORNU_FIELD_LAYER || field->kind == CORNU_FIELD_LAYERS) usual = NULL;
    if (choices) result = cornu__json_with(result, "choices", choices);
    if (json_object_get(arguments, field->name))
        result = cornu__json_with(result, "required", json_true());
    else if (config)
        result = cornu__json_with(result, "default", usual ? json_deep_copy(usual) : json_null());
    return result;
}

/* Of two rows for one argument the second one is for another form of its value. */
static bool is_again(const CornuField *fields, const CornuField *field)
{
    while (fields < field && strcmp(fields->name, field->name)) fields++;
    return fields < field;
}

/* The fields in Keras' order; arguments of Keras that no row has are of type "any". */
static json_t *in_order(json_t *fields, const char *order)
{
    json_t *list = json_array();
    char    name[64];
    int     length;
    for (; sscanf(order, " %63s%n", name, &length) == 1; order += length) {
        size_t i = 0;
        while (i < json_array_size(fields) &&
               strcmp(json_string_value(json_object_get(json_array_get(fields, i), "name")), name))
            i++;
        list = cornu__json_append(list, i < json_array_size(fields)
                                            ? json_incref(json_array_get(fields, i))
                                            : json_pack("{s:s, s:s}", "name", name, "type", "any"));
        json_array_remove(fields, i);
    }
    for (size_t i = 0; i < json_array_size(fields); i++)
        list = cornu__json_append(list, json_incref(json_array_get(fields, i)));
    json_decref(fields);
    return list;
}

json_t *cornu__describe_in_order(const char *kind, const char *class_name, json_t *fields)
{
    static const struct { const char *kind, *class_name, *order; } rows[] = {
#define ORDER(kind, class_name, order) { #kind, #class_name, order },
#include "orders.def"
#undef ORDER
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows && fields; i++)
        if (!strcmp(rows[i].kind, kind) && !strcmp(rows[i].class_name, class_name))
            return in_order(fields, rows[i].order);
    return fields;
}

json_t *cornu__describe(const CornuDescribed *described)
{
    json_t *arguments = json_pack("{s:s}", "name", "name"), *list = json_array();
    if (described->family) json_object_clear(arguments);
    json_t *config = made(described, arguments);
    for (int i = 0; i < EXAMPLES && !config; i++) {
        config = add_examples(described, arguments, i);
        if (config) config = remove_optional(described, arguments, config);
    }
    for (const CornuField *field = described->fields; field && field->name; field++)
        if (!is_again(described->fields, field))
            list = cornu__json_append(list, field_to_json(field, config ? arguments : NULL,
                                                          config));
    json_decref(arguments);
    json_decref(config);
    list = cornu__describe_in_order(described->kind, described->class_name, list);
    return json_pack("{s:s, s:o}", "class_name", described->class_name, "fields", list);
}
