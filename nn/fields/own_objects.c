#include "own_objects_internal.h"

#include <string.h>

#include <stdlib.h>

#include "../formats/json_internal.h"

static _Thread_local struct {
    void *const *objects;
    int          count;
} own;

void cornu_own_objects(void *const *objects, int count)
{
    own.objects = objects;
    own.count = objects ? count : 0;
}

void *cornu__own_object(const json_t *value)
{
    const char       *name = json_string_value(json_object_get(value, "class_name"));
    const json_t     *number = json_object_get(value, "config");
    const json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
    if (own.count == 0 || !name || strcmp(name, "__own__")) return NULL;
    return i >= 0 && i < own.count ? own.objects[i] : NULL;
}

static struct {
    CornuResolver *call;
    void          *context;
} resolver;

void cornu_set_resolver(CornuResolver *call, void *context)
{
    resolver.call = call;
    resolver.context = context;
}

void *cornu__resolve(const char *kind, const json_t *value)
{
    char *text = resolver.call ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    void *made = text ? resolver.call(resolver.context, kind, text) : NULL;
    free(text);
    return made;
}

bool cornu__is_of_program(const json_t *value)
{
    const json_t *module = json_object_get(value, "module");
    const char   *name = json_string_value(module);
    if (!json_is_string(json_object_get(value, "registered_name"))) return false;
    if (json_is_null(module)) return true;      /* Keras' form of "__main__" */
    return name && strcmp(name, "keras") && strncmp(name, "keras.", strlen("keras."));
}

const char *cornu__record_name(const json_t *record)
{
    const char *class_name = json_string_value(json_object_get(record, "class_name"));
    const char *known = json_string_value(json_object_get(record, "registered_name"));
    const char *function = json_string_value(json_object_get(record, "config"));
    if (class_name && !strcmp(class_name, "function") && function) return function;
    return known ? known : class_name ? class_name : "";
}
