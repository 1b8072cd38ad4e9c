#include "own_objects_internal.h"

#include <string.h>

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
