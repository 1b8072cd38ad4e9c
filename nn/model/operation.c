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

/* Keras' list of the arguments of the call: its operands, in place of the nulls of `form`, or just
 * these if that is NULL. */
static json_t *operands(const json_t *form, int count)
{
    const int all = form ? (int)json_array_size(form) : count;
    json_t   *args = json_array();
    for (int i = 0, next = 0; i < all && args; i++) {
        json_t *given = json_array_get(form, (size_t)i);
        json_t *value = given && !json_is_null(given)
            ? json_incref(given)
            : json_pack("{s:s, s:i}", "class_name", "__keras_tensor__", "config", next++);
        if (json_array_append_new(args, value)) {
            json_decref(args);
            args = NULL;
        }
    }
    return args;
}

static int count_nulls(const json_t *form)
{
    int count = 0;
    for (size_t i = 0; i < json_array_size(form); i++)
        count += json_is_null(json_array_get(form, i));
    return count;
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
    json_t *form = json_incref(json_object_get(config, "args"));
    if (form && (!json_is_array(form) || count_nulls(form) != count)) {
        json_decref(form);
        json_decref(config);
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_operation: \"args\" of %s is not a list "
                                "with %d times null", kind->kind.class_name, count);
    }
    json_t *name = json_incref(json_object_get(config, "name"));
    json_object_del(config, "args");
    json_object_del(config, "name");
    json_t     *args = operands(form, count), *kwargs = json_object();
    CornuLayer *layer = args && kwargs
        ? cornu__operation_create(kind, json_string_value(name), config, args, kwargs)
        : cornu__fail_null(CORNU_ERR_MEMORY, "no memory for an operation");
    json_decref(form);
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
