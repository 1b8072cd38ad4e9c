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

/* Adds examples of fields, in their order, until the class takes them; NULL if it never does. */
static json_t *add_examples(const CornuDescribed *described, json_t *arguments, int i)
{
    for (const CornuField *field = described->fields; field && field->name; field++) {
        const char *text = field->kind->examples[i];
        if (!text) text = field->kind->examples[0];
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

/* Null if the field takes no words. */
static json_t *choices_of(const CornuFieldKind *kind)
{
    json_t *list = NULL;
    for (int i = 0; i < CORNU__MOST_WORDS; i++)
        if (kind->words[i])
            list = cornu__json_append(list ? list : json_array(), json_string(kind->words[i]));
    return list;
}

static json_t *field_to_json(const CornuField *field, const json_t *arguments,
                             const json_t *config)
{
    json_t       *result = json_pack("{s:s, s:s}", "name", field->name, "type",
                                     field->kind->name);
    json_t       *choices = choices_of(field->kind);
    const json_t *usual = json_object_get(config, field->name);
    /* The layer in a wrapper is the example's. */
    if (field->kind->most_layers) usual = NULL;
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
    for (int i = 0; i < CORNU__FIELD_EXAMPLES && !config; i++) {
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
