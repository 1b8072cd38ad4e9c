/* Losses and metrics keep the config that they were made from, and are looked up by name. */
#include "serializable_internal.h"

#include <stdalign.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/text/nearest.h"

static const char **name_in(const CornuSerializableClass *kind, void *config)
{
    return (const char **)((char *)config + kind->name_offset);
}

void *cornu__serializable_create(size_t size, const CornuSerializableClass *kind,
                                 const void *config, const char *usual,
                                 const void **config_copy, const char **name)
{
    const size_t align = alignof(max_align_t), after = (size + align - 1) / align * align;
    const size_t config_size = kind ? kind->config_size : 0;
    const char  *given = kind ? *name_in(kind, (void *)config) : NULL;
    if (!given) given = usual;
    const size_t name_size = strlen(given) + 1;
    char        *object = cornu__allocate(1, after + config_size + name_size);
    if (!object) return cornu__null();
    *name = memcpy(object + after + config_size, given, name_size);
    *config_copy = NULL;
    if (!kind) return object;
    *config_copy = memcpy(object + after, config, config_size);
    *name_in(kind, object + after) = *name;
    return object;
}

void *cornu__serializable_default(const CornuSerializableClass *kind, const char *name)
{
    void *config = cornu__allocate(1, kind->config_size);
    if (!config) return cornu__null();
    *name_in(kind, config) = name;
    void *object = kind->from(config);
    cornu__release(config);
    return object;
}

const CornuSerializableClass *cornu__serializable_class(const CornuSerializableTable *table,
                                                        const char *class_name)
{
    for (int i = 0; i < table->count; i++) {
        const CornuSerializableClass *kind = table->rows[i].kind;
        if (kind->class_name && !strcmp(kind->class_name, class_name)) return kind;
    }
    return NULL;
}

enum { MAX_NAMES = 64 };

const CornuSerializableClass *cornu__serializable_find(const CornuSerializableTable *table,
                                                       const char *name)
{
    const char *names[MAX_NAMES];
    int         count = 0;
    for (int i = 0; i < table->count && count < MAX_NAMES; i++) {
        const CornuSerializableRow *row = &table->rows[i];
        if (row->kind->class_name && !strcmp(name, row->kind->class_name)) return row->kind;
        if (row->needs_arguments) continue;
        names[count] = row->alias ? row->alias : row->kind->name;
        if (!strcmp(name, names[count++])) return row->kind;
    }
    const char *near = cornu_nearest(name, names, count);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s \"%s\" is not known%s%s%s", table->word, name,
                            near ? "; is \"" : "", near ? near : "", near ? "\" meant?" : "");
}
