/*
 * Compiling ahead of time: a plugin describes the machine, which need not be there. No client is
 * created, since that would look for the machine.
 */
#include <ctype.h>
#include <string.h>

#include "client.h"

/* libtpu takes the topology as a name, "v3:2x2"; other plugins as an option, "1x1x2". */
static CornuStatus create(CornuPjrtDevice *device, const char *topology, const CornuPjrtName *name)
{
    static const char option[] = "topology";
    const bool         is_name = isalpha((unsigned char)topology[0]);
    CornuPjrtLists     lists;
    PjrtNamedValue     values[CORNU_PJRT_OPTIONS + 1];
    int                count = cornu__pjrt_values(name, &lists, values);
    PjrtTopologyCreate call = PJRT_ARGUMENTS(PjrtTopologyCreate, .name = topology,
        .name_size = is_name ? strlen(topology) : 0, .options = values);
    if (!is_name)
        values[count++] = (PjrtNamedValue)PJRT_ARGUMENTS(PjrtNamedValue, .name = option,
            .name_size = sizeof option - 1, .type = PJRT_STRING, .value = { .string = topology },
            .value_size = strlen(topology));
    call.option_count = (size_t)count;
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_TOPOLOGY_CREATE, &call));
    device->topology = call.topology;
    return CORNU_OK;
}

CornuStatus cornu__pjrt_open_topology(CornuPjrtDevice *device, const char *topology,
                                      const CornuPjrtName *name, int shards)
{
    CORNU__TRY(create(device, topology, name));
    PjrtTopologyText         platform = PJRT_ARGUMENTS(PjrtTopologyText,
                                                       .topology = device->topology);
    PjrtTopologyDescriptions get = PJRT_ARGUMENTS(PjrtTopologyDescriptions,
                                                  .topology = device->topology);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_TOPOLOGY_PLATFORM_NAME, &platform));
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_TOPOLOGY_DESCRIPTIONS, &get));
    cornu__pjrt_copy(device->platform, sizeof device->platform, platform.text, platform.size);
    CORNU__TRY(cornu__pjrt_replicas(device, topology, get.count, shards));
    for (int i = 0; i < device->base.shards; i++)
        CORNU__TRY(cornu__pjrt_describe(device, i, get.descriptions[i]));
    return CORNU_OK;
}

void cornu__pjrt_close_topology(CornuPjrtDevice *device)
{
    PjrtTopologyDestroy destroy = PJRT_ARGUMENTS(PjrtTopologyDestroy,
                                                 .topology = device->topology);
    if (device->topology) cornu__pjrt_try(device->plugin, PJRT_TOPOLOGY_DESTROY, &destroy);
    device->topology = NULL;
}
