/* keras.ops on symbols. */
#include <string.h>

#include "../config/naming_internal.h"
#include "../../device/text/nearest.h"
#include "../layers/operations/operation_internal.h"
#include "functional.h"

/* By Keras' function: "argmax" is the class Argmax. */
static const CornuOperationClass *class_named(const char *name)
{
    CornuText   text;
    char        label[64];
    const char *names[1024];
    int         count = 0;
    for (const CornuOperationClass *row = cornu__operations; row->module; row++) {
        cornu__snake_case(row->kind.class_name, label, sizeof label);
        if (!strcmp(label, name) || !strcmp(cornu__operation_function(row, &text), name))
            return row;
        if (count < (int)(sizeof names / sizeof *names)) names[count++] = row->kind.class_name;
    }
    const char *nearest = cornu_nearest(name, names, count);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_operation: there is no operation \"%s\"%s%s"
                            "%s", name, nearest ? "; did you mean that of the class " : "",
                            nearest ? nearest : "", nearest ? "?" : "");
}

static json_t *operand(int i)
{
    return json_pack("{s:s, s:i}", "class_name", "__keras_tensor__", "config", i);
}

/* What a call is given: its symbols as numbered operands. */
typedef struct {
    const char *name;          /* of the class */
    int         count;         /* of symbols */
    int         nulls;         /* of lists, which are symbols unless these have numbers */
    bool        numbered;
} Symbols;

static json_t *all_operands(int count)
{
    json_t *args = json_array();
    for (int i = 0; i < count && args; i++) args = cornu__json_append(args, operand(i));
    return args;
}

static bool is_operand(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    return class_name && !strcmp(class_name, "__keras_tensor__");
}

static bool has_operand(const json_t *value)
{
    bool has = is_operand(value);
    for (size_t i = 0; i < json_array_size(value) && !has; i++)
        has = has_operand(json_array_get(value, i));
    return has;
}

/* A copy of a list in which the next symbols replace the nulls, also in lists in it. */
static json_t *filled(const json_t *value, Symbols *symbols)
{
    if (json_is_null(value) && !symbols->numbered) return operand(symbols->nulls++);
    if (!json_is_array(value)) return json_incref((json_t *)value);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        list = cornu__json_append(list, filled(json_array_get(value, i), symbols));
    return list;
}

/* Whether the operands in lists and arguments are the symbols; *args is made from "args". */
static CornuStatus place_symbols(const json_t *given, Symbols *symbols, json_t **args)
{
    const char *key;
    json_t     *value, *form = json_object_get(given, "args");
    json_object_foreach((json_t *)given, key, value) symbols->numbered |= has_operand(value);
    if (!form && !symbols->numbered) {
        *args = all_operands(symbols->count);
        return CORNU_OK;
    }
    *args = json_is_array(form) ? filled(form, symbols) : json_array();
    if (symbols->numbered || symbols->nulls == symbols->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_operation: \"args\" of %s has %d times null for "
                       "%d symbols", symbols->name, symbols->nulls, symbols->count);
}

static CornuLayer *operation(const CornuOperationClass *kind, const char *arguments, int count)
{
    Symbols symbols = { .name = kind->kind.class_name, .count = count };
    json_t *given = arguments ? cornu__json_parse(arguments, strlen(arguments), 16) : json_object();
    json_t *positional = NULL, *config = json_object(), *args = json_array();
    json_t *kwargs = json_object(), *name = json_incref(json_object_get(given, "name"));
    CornuLayer *layer = NULL;
    CornuStatus status = CORNU_OK;
    if (!given || !json_is_object(given))
        status = cornu__fail(CORNU_ERR_ARGUMENT, "cornu_operation: the arguments of %s are %.80s, "
                             "expected a JSON object", symbols.name, arguments);
    if (!status) status = place_symbols(given, &symbols, &positional);
    json_object_del(given, "args");
    json_object_del(given, "name");
    if (!status) status = cornu__operation_bind(kind, positional, given, config, args, kwargs);
    if (!status && !args) status = cornu__fail(CORNU_ERR_MEMORY, "no memory for an operation");
    if (!status)
        layer = cornu__operation_create(kind, json_string_value(name), config, args, kwargs);
    json_decref(name);
    json_decref(given);
    json_decref(positional);
    json_decref(config);
    json_decref(args);
    json_decref(kwargs);
    return status ? cornu__null() : layer;
}

CornuSymbol *cornu_operation_from(const char *name, const char *arguments, CornuSymbol *const *in,
                                  int count)
{
    CORNU__NEED_TO_MAKE(name);
    const CornuOperationClass *kind = cornu__refused() ? NULL : class_named(name);
    CornuLayer                *layer = kind ? operation(kind, arguments, count) : NULL;
    return layer ? cornu_call_from(layer, in, count) : NULL;
}
