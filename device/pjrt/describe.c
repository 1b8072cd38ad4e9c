/* What a plugin says about its devices, attached or not. */
#include <stdio.h>

#include "client.h"

void cornu__pjrt_copy(char *to, size_t size, const char *text, size_t text_size)
{
    snprintf(to, size, "%.*s", (int)(text_size < size ? text_size : size), text);
    for (char *c = to; *c; c++)   /* some versions have several lines */
        if ((unsigned char)*c < ' ') *c = ' ';
}

CornuStatus cornu__pjrt_replicas(CornuPjrtDevice *device, const char *name, size_t count,
                                 int shards)
{
    const int all = count < CORNU_PJRT_REPLICAS ? (int)count : CORNU_PJRT_REPLICAS;
    device->base.shards = shards ? shards : all;
    if (device->base.shards > 0 && device->base.shards <= all) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "device \"%s\": %d shards, but the plugin has %zu "
                       "device%s", name, shards, count, count == 1 ? "" : "s");
}

CornuStatus cornu__pjrt_describe(CornuPjrtDevice *device, int i, PjrtDescription *description)
{
    PjrtDescriptionId   id = PJRT_ARGUMENTS(PjrtDescriptionId, .description = description);
    PjrtDescriptionText kind = PJRT_ARGUMENTS(PjrtDescriptionText, .description = description);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_DESCRIPTION_ID, &id));
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_DESCRIPTION_KIND, &kind));
    device->ids[i] = id.id;
    cornu__pjrt_copy(device->kind, sizeof device->kind, kind.text, kind.size);
    return CORNU_OK;
}
