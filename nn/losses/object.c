/* Losses and metrics remember how they were made. */
#include "object_internal.h"

#include <stdalign.h>
#include <string.h>

#include "../../device/memory_internal.h"

static const char **name_in(const CornuObjectClass *kind, void *config)
{
    return (const char **)((char *)config + kind->name_offset);
}

void *cornu__object_create(size_t size, const CornuObjectClass *kind, const void *config,
                           const char *usual, const void **config_copy, const char **name)
{
    const size_t align = alignof(max_align_t), behind = (size + align - 1) / align * align;
    const size_t config_size = kind ? kind->config_size : 0;
    const char  *given = kind ? *name_in(kind, (void *)config) : NULL;
    if (!given) given = usual;
    const size_t name_size = strlen(given) + 1;
    char        *object = cornu__allocate(1, behind + config_size + name_size);
    if (!object) return cornu__null();
    *name = memcpy(object + behind + config_size, given, name_size);
    *config_copy = NULL;
    if (!kind) return object;
    *config_copy = memcpy(object + behind, config, config_size);
    *name_in(kind, object + behind) = *name;
    return object;
}

void *cornu__object_usual(const CornuObjectClass *kind, const char *name)
{
    void *config = cornu__allocate(1, kind->config_size);
    if (!config) return cornu__null();
    *name_in(kind, config) = name;
    void *object = kind->from(config);
    cornu__release(config);
    return object;
}
