#define _GNU_SOURCE /* sched_getaffinity */

#include "divide_internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "../host/machine/cpu.h"
#include "../lookup_internal.h"
#include "processes_internal.h"

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) hash = cornu__hash(hash, ((const unsigned char *)bytes)[i]);
    return hash;
}

/* Equal for processes of one host that may run on the same processors. */
static uint64_t place_of(void)
{
    char      boot[64];
    cpu_set_t allowed[8];   /* 8,192 processors */
    cornu__boot_id(boot, sizeof boot);
    memset(allowed, 0, sizeof allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed)) memset(allowed, 0, sizeof allowed);
    return hash_bytes(hash_bytes(0, boot, strlen(boot)), allowed, sizeof allowed);
}

CornuStatus cornu__divide_threads(const CornuDeviceConfig *config, int *threads)
{
    const int      ranks = cornu_process_count(config->processes);
    const uint64_t own = ranks > 1 ? place_of() : 0;
    uint64_t       places[CORNU_MAX_PROCESSES];
    int            sharing = 0;
    *threads = config->threads ? config->threads : cornu__cpu_threads();
    if (ranks == 1) return CORNU_OK;
    CORNU__TRY(cornu__processes_gather(config->processes, "the processors", &own, sizeof own,
                                       places));
    for (int rank = 0; rank < ranks; rank++) sharing += places[rank] == own;
    if (!config->threads && sharing > 1) *threads = *threads > sharing ? *threads / sharing : 1;
    return CORNU_OK;
}

CornuStatus cornu__divide_shards(const CornuDeviceConfig *config, int shards, CornuRange *own)
{
    const int processes = cornu_process_count(config->processes);
    const int groups = config->groups ? config->groups : 1, ranks = processes / groups;
    if (shards == 0) shards = 1;
    if (processes % groups)
        return cornu__fail(CORNU_ERR_ARGUMENT, "device \"%s\": %d processes in %d groups, expected "
                           "equally many in each", config->name, processes, groups);
    *own = cornu__range_of(shards, cornu_process_rank(config->processes) % ranks, ranks);
    if (ranks <= shards) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "device \"%s\": %d shards for %d processes, expected at "
                       "least one for each", config->name, shards, ranks);
}

CornuStatus cornu__program_processes(const CornuDeviceConfig *config, CornuProcesses **processes)
{
    return cornu__processes_part(config->processes, config->groups ? config->groups : 1, processes);
}

CornuStatus cornu__expect_one_process(const CornuDeviceConfig *config)
{
    const int ranks = cornu_process_count(config->processes);
    if (ranks == 1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "device \"%s\" in %d processes, expected 1 process, or "
                       "device cpu or tpu", config->name, ranks);
}

CornuStatus cornu__agree_on_device(const CornuDeviceConfig *config, const CornuDevice *device)
{
    char        text[300];
    const char *kernels = strchr(device->description, '|');
    const char *end = strrchr(device->description, '|');
    const int   shards = device->shards > 1 ? device->shards : 1;
    snprintf(text, sizeof text, "%.*s%s%s with %d shard%s %.*s", (int)strcspn(config->name, ":"),
             config->name, device->profile ? ":" : "", device->profile ? device->profile : "",
             shards, shards == 1 ? "" : "s", (int)(kernels < end ? end - kernels - 1 : 0), kernels);
    return cornu__processes_agree(config->processes, "the device", text);
}
