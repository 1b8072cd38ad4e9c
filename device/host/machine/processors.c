#define _GNU_SOURCE /* sched_getaffinity */

#include "processors.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "../../lookup_internal.h"
#include "../../processes/processes_internal.h"
#include "cpu.h"

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) hash = cornu__hash(hash, ((const unsigned char *)bytes)[i]);
    return hash;
}

/* Equal for processes of one host that may run on the same processors. */
static uint64_t place_of(void)
{
    char      boot[64] = "";
    cpu_set_t allowed[8];   /* 8,192 processors */
    FILE     *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(boot, sizeof boot, file)) boot[0] = '\0';
    if (file) fclose(file);
    memset(allowed, 0, sizeof allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed)) memset(allowed, 0, sizeof allowed);
    return hash_bytes(hash_bytes(0, boot, strlen(boot)), allowed, sizeof allowed);
}

CornuStatus cornu__processor_threads(const CornuDeviceConfig *config, int *threads)
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
    if (!config->threads) *threads = *threads > sharing ? *threads / sharing : 1;
    return CORNU_OK;
}
