/*
 * Compiling ahead of time: a plugin describes the machine, which need not be there. No client is
 * created, since that would look for the machine.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "../memory_internal.h"
#include "client.h"
#include "gpus.h"

/* By the library's name, since the plugin tells its platform only when it has a topology. */
static bool is_cuda(const CornuPjrtPlugin *plugin)
{
    const char *slash = strrchr(plugin->path, '/');
    return strstr(slash ? slash + 1 : plugin->path, "cuda");
}

static void add_option(PjrtTopologyCreate *call, PjrtNamedValue *values, const char *name,
                       const char *value)
{
    values[call->option_count++] = (PjrtNamedValue)PJRT_ARGUMENTS(PjrtNamedValue, .name = name,
        .name_size = strlen(name), .type = PJRT_STRING, .value = { .string = value },
        .value_size = strlen(value));
}

/* libtpu takes the topology as a name, "v3:2x2". Plugins for GPUs take two options: the number of
 * slices, of hosts in each and of GPUs in each host, "1x1x8", and what a GPU is. */
static CornuStatus create(CornuPjrtDevice *device, const char *topology, const CornuPjrtName *name,
                          int shards)
{
    char               shape[32];
    CornuPjrtLists     lists;
    PjrtNamedValue     values[CORNU_PJRT_OPTIONS + 2];
    PjrtTopologyCreate call = PJRT_ARGUMENTS(PjrtTopologyCreate, .options = values);
    const bool         is_file = strchr(topology, '/');
    char              *target = NULL;
    call.option_count = (size_t)cornu__pjrt_values(name, &lists, values);
    if (is_file || is_cuda(device->plugin)) {
        CORNU__TRY(is_file ? cornu__pjrt_read_target(topology, &target)
                           : cornu__pjrt_gpu_target(topology, &target));
        device->base.memory.capacity = cornu__pjrt_target_memory(target);
        snprintf(shape, sizeof shape, "1x1x%d", shards > 0 ? shards : 1);
        add_option(&call, values, "topology", shape);
        add_option(&call, values, "target_config", target);
    } else if (isalpha((unsigned char)topology[0])) {
        call.name = topology;
        call.name_size = strlen(topology);
    } else {
        add_option(&call, values, "topology", topology);
    }
    const CornuStatus status = cornu__pjrt_call(device->plugin, PJRT_TOPOLOGY_CREATE, &call);
    cornu__release(target);
    device->topology = call.topology;
    return status;
}

CornuStatus cornu__pjrt_open_topology(CornuPjrtDevice *device, const char *topology,
                                      const CornuPjrtName *name, int shards)
{
    CORNU__TRY(create(device, topology, name, shards));
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
