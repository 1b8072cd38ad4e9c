/* Collectives: exchanges that all ranks start and finish at the same place of the program. */
#include "open_internal.h"

#include <stdio.h>
#include <string.h>

#include "../lookup_internal.h"

static bool alone(const CornuProcesses *processes) { return cornu_process_count(processes) == 1; }

static CornuStatus exchange_now(CornuProcesses *processes, CornuExchange *exchange)
{
    CORNU__TRY(cornu__exchange_start(processes, exchange));
    return cornu__exchange_finish(processes, exchange);
}

CornuStatus cornu__processes_gather(CornuProcesses *processes, const char *what, const void *own,
                                    size_t bytes, void *all)
{
    const int rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    if (bytes > 0) memmove((char *)all + (size_t)rank * bytes, own, bytes);
    if (alone(processes)) return CORNU_OK;
    CornuMessage *sends = cornu__processes_messages(processes), *receives = sends + count;
    int           others = 0;
    for (int i = 0; i < count; i++) {
        if (i == rank) continue;
        sends[others] = (CornuMessage){ i, (char *)all + (size_t)rank * bytes, bytes };
        receives[others++] = (CornuMessage){ i, (char *)all + (size_t)i * bytes, bytes };
    }
    CornuExchange exchange = { .what = what, .sends = sends, .receives = receives,
                               .send_count = others, .receive_count = others };
    return exchange_now(processes, &exchange);
}

/* Copies the data of rank `from` to all ranks. */
static CornuStatus broadcast_from(CornuProcesses *processes, const char *what, int from, void *data,
                                  size_t bytes)
{
    const int rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    if (alone(processes)) return CORNU_OK;
    CornuMessage *messages = cornu__processes_messages(processes);
    int           others = 0;
    if (rank != from) {
        messages[0] = (CornuMessage){ from, data, bytes };
        return exchange_now(processes, &(CornuExchange){ .what = what, .receives = messages,
                                                         .receive_count = 1 });
    }
    for (int i = 0; i < count; i++)
        if (i != rank) messages[others++] = (CornuMessage){ i, data, bytes };
    return exchange_now(processes, &(CornuExchange){ .what = what, .sends = messages,
                                                     .send_count = others });
}

CornuStatus cornu__processes_broadcast(CornuProcesses *processes, const char *what, void *data,
                                       size_t bytes)
{
    return broadcast_from(processes, what, 0, data, bytes);
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0;
    for (; *text; text++) hash = cornu__hash(hash, (uint64_t)(unsigned char)*text);
    return hash;
}

CornuStatus cornu__processes_agree(CornuProcesses *processes, const char *what, const char *text)
{
    enum { SHOWN = 300 };
    const int rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    uint64_t  own = hash_of(text), all[CORNU_MAX_PROCESSES];
    char      first[SHOWN], other[SHOWN];
    if (alone(processes)) return CORNU_OK;
    CORNU__TRY(cornu__processes_gather(processes, what, &own, sizeof own, all));
    int differing = 1;
    while (differing < count && all[differing] == all[0]) differing++;
    if (differing == count) return CORNU_OK;
    snprintf(first, sizeof first, "%s", rank == 0 ? text : "");
    snprintf(other, sizeof other, "%s", rank == differing ? text : "");
    CORNU__TRY(broadcast_from(processes, what, 0, first, sizeof first));
    CORNU__TRY(broadcast_from(processes, what, differing, other, sizeof other));
    return cornu__fail(CORNU_ERR_PROCESS, "%s is %s on rank %d and %s on rank 0", what, other,
                       differing, first);
}

CornuStatus cornu__processes_check(CornuProcesses *processes, const char *what, CornuStatus status)
{
    const int    rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    int32_t      own = (int32_t)status, all[CORNU_MAX_PROCESSES];
    CornuFailure failure;
    char         prefix[40];
    if (alone(processes)) return status;
    cornu__failure_keep(&failure, status);
    CORNU__TRY(cornu__processes_gather(processes, what, &own, sizeof own, all));
    int failed = 0;
    while (failed < count && all[failed] == CORNU_OK) failed++;
    if (failed == count) return CORNU_OK;
    if (rank != failed) memset(&failure, 0, sizeof failure);
    CORNU__TRY(broadcast_from(processes, what, failed, failure.message, sizeof failure.message));
    failure.status = (CornuStatus)all[failed];
    failure.message[sizeof failure.message - 1] = '\0';
    cornu__failure_tell(&failure);
    snprintf(prefix, sizeof prefix, "rank %d", failed);
    return cornu__fail_prefix(failure.status, prefix);
}
