/* keras.ops on symbols. */
#include <string.h>

#include "../config/naming_internal.h"
#include "../../device/text/nearest.h"
#include "../layers/operations/operation_internal.h"
#include "functional.h"

/* By Keras' function: "argmax" is the class Argmax. */
static const CornuOperationClass *class_named(const char *name)
{
    char        label[64];
    const char *names[1024];
    int         count = 0;
    for (const CornuOperationClass *row = cornu__operations; row->module; row++) {
        cornu__snake_case(row->kind.class_name, label, sizeof label);
        if (!strcmp(label, name)) return row;
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

/* Keras' list of the arguments of a call: all operands. */
static json_t *operands(int count)
{
    json_t *args = json_array();
    for (int i = 0; i < count && args; i++)
        if (json_array_append_new(args, operand(i))) {
            json_decref(args);
            args = NULL;
        }
    return args;
}

/* A copy of a list in which operand *next and those after it replace the nulls, also in lists in
 * it. */
static json_t *filled(const json_t *form, int *next)
{
    json_t *args = json_array();
    for (size_t i = 0; i < json_array_size(form) && args; i++) {
        json_t *given = json_array_get(form, i);
        json_t *value = json_is_array(given) ? filled(given, next)
                      : json_is_null(given)  ? operand((*next)++) : json_incref(given);
        if (json_array_append_new(args, value)) {
            json_decref(args);
            args = NULL;
        }
    }
    return args;
}

static CornuLayer *operation(const CornuOperationClass *kind, const char *arguments, int count)
{
    json_t *config = arguments ? cornu__json_parse(arguments, strlen(arguments), 4)
                               : json_object();
    if (!config || !json_is_object(config)) {
        json_decref(config);
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_operation: the arguments of %s are "
                                "%.80s, expected a JSON object", kind->kind.class_name, arguments);
    }
    int     nulls = 0;
    json_t *form = json_object_get(config, "args");
    json_t *name = json_incref(json_object_get(config, "name"));
    json_t *args = form ? filled(form, &nulls) : operands(count), *kwargs = json_object();
    if (form && nulls != count) {
        json_decref(name);
        json_decref(args);
        json_decref(kwargs);
        json_decref(config);
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_operation: \"args\" of %s has %d times "
                                "null for %d symbols", kind->kind.class_name, nulls, count);
    }
    json_object_del(config, "args");
    json_object_del(config, "name");
    CornuLayer *layer = args && kwargs
        ? cornu__operation_create(kind, json_string_value(name), config, args, kwargs)
        : cornu__fail_null(CORNU_ERR_MEMORY, "no memory for an operation");
    json_decref(name);
    json_decref(config);
    json_decref(args);
    json_decref(kwargs);
    return layer;
}

CornuSymbol *cornu_operation_from(const char *name, const char *arguments, CornuSymbol *const *in,
                                  int count)
{
    CORNU__NEED_TO_MAKE(name);
    const CornuOperationClass *kind = cornu__refused() ? NULL : class_named(name);
    CornuLayer                *layer = kind ? operation(kind, arguments, count) : NULL;
    return layer ? cornu_call_from(layer, in, count) : NULL;
}
