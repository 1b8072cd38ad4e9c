/* Tensors in lists and dictionaries, as Keras' models take and return them. Their order is that of
 * lists, and of sorted keys: keras/src/tree, flatten. */
#include "architecture_internal.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **cornu__sorted_keys(const json_t *object)
{
    const char **keys = cornu__allocate(json_object_size(object) + 1, sizeof *keys), *key;
    json_t      *value;
    size_t       count = 0;
    if (!keys) return NULL;
    json_object_foreach((json_t *)object, key, value) keys[count++] = key;
    qsort(keys, count, sizeof *keys, by_text);
    return keys;
}

static bool is_leaf(const json_t *value)
{
    const bool history = json_is_array(value) && json_is_string(json_array_get(value, 0));
    return history || !(json_is_array(value) || json_is_object(value)) ||
           json_object_get(value, "class_name");
}

CornuStatus cornu__form_keys(const json_t *form, const char **keys, size_t most)
{
    const size_t count = json_object_size(form);
    if (count < 1 || count > most) return CORNU_OK;
    const char **sorted = cornu__sorted_keys(form);
    bool         flat = true;
    if (!sorted) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) flat &= is_leaf(json_object_get(form, sorted[i]));
    if (flat) memcpy(keys, sorted, count * sizeof *keys);
    cornu__release(sorted);
    return CORNU_OK;
}

json_t *cornu__form_of_keys(char *const *keys, int count)
{
    json_t *form = json_object();
    for (int i = 0; i < count; i++) form = cornu__json_with(form, keys[i], json_null());
    return form;
}

CornuStatus cornu__each_leaf(const json_t *value, CornuLeaf *leaf, void *context)
{
    CornuStatus status = CORNU_OK;
    if (is_leaf(value)) return leaf(context, value);
    for (size_t i = 0; i < json_array_size(value) && !status; i++)
        status = cornu__each_leaf(json_array_get(value, i), leaf, context);
    if (json_is_array(value)) return status;
    const char **keys = cornu__sorted_keys(value);
    if (!keys) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < json_object_size(value) && !status; i++)
        status = cornu__each_leaf(json_object_get(value, keys[i]), leaf, context);
    cornu__release(keys);
    return status;
}

json_t *cornu__with_leaves(const json_t *value, CornuNextLeaf *next, void *context)
{
    if (is_leaf(value)) return next(context);
    if (json_is_array(value)) {
        json_t *list = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            list = cornu__json_append(list, cornu__with_leaves(json_array_get(value, i), next,
                                                               context));
        return list;
    }
    const char **keys = cornu__sorted_keys(value);
    json_t      *object = keys ? json_object() : NULL;
    for (size_t i = 0; i < json_object_size(value) && keys; i++)
        object = cornu__json_with(object, keys[i],
                                  cornu__with_leaves(json_object_get(value, keys[i]), next,
                                                     context));
    cornu__release(keys);
    return object;
}
