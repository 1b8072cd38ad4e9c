#include "open_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../host/machine/cpu.h"
#include "../log_internal.h"
#include "../memory_internal.h"
#include "../version.h"
#include "shm_internal.h"
#include "tcp_internal.h"

/* What each rank says of itself first. */
typedef struct {
    char version[24], isa[24], transport[8], host[64];
} Rank;

/* Differs from host to host, and from boot to boot. */
static void read_host(char *host, size_t size)
{
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t   n = file >= 0 ? read(file, host, size - 1) : -1;
    if (file >= 0) close(file);
    if (n > 0) host[n] = '\0';
    else if (gethostname(host, size - 1)) host[0] = '\0';
    host[size - 1] = '\0';
}

static CornuStatus describe(Rank *rank, const CornuLaunch *launch)
{
    CornuIsa isa;
    memset(rank, 0, sizeof *rank);
    CORNU__TRY(cornu__cpu_isa(&isa));
    snprintf(rank->version, sizeof rank->version, "%s", CORNU_VERSION);
    snprintf(rank->isa, sizeof rank->isa, "%s", cornu__isa_name(isa));
    snprintf(rank->transport, sizeof rank->transport, "%s", launch->transport);
    read_host(rank->host, sizeof rank->host);
    return CORNU_OK;
}

/* All ranks' descriptions. */
static CornuStatus gather(CornuTransport *transport, const CornuLaunch *launch, Rank *all)
{
    const int     rank = transport->rank, size = transport->size;
    CornuMessage *messages = cornu__allocate(2 * (size_t)size, sizeof *messages);
    CornuExchange exchange = { .what = "meeting", .number = CORNU_EXCHANGE_MEET,
                               .sends = messages, .receives = messages + size };
    if (!messages) return CORNU_ERR_MEMORY;
    CornuStatus status = describe(&all[rank], launch);
    for (int i = 0; i < size; i++) {
        if (i == rank) continue;
        messages[exchange.send_count++] = (CornuMessage){ i, &all[rank], sizeof *all };
        messages[size + exchange.receive_count++] = (CornuMessage){ i, &all[i], sizeof *all };
    }
    if (!status) status = transport->class->exchange(transport, &exchange, launch->timeout_s);
    cornu__release(messages);
    return status;
}

static CornuStatus compare(const Rank *all, int size)
{
    for (int i = 1; i < size; i++) {
        const struct { const char *what, *own, *first; } same[] = {
            { "Cornu's version", all[i].version, all[0].version },
            { "the instruction set", all[i].isa, all[0].isa },
            { "the transport", all[i].transport, all[0].transport },
        };
        for (size_t k = 0; k < sizeof same / sizeof *same; k++)
            if (strcmp(same[k].own, same[k].first) != 0)
                return cornu__fail(CORNU_ERR_PROCESS, "%s is %s on rank %d and %s on rank 0",
                                   same[k].what, same[k].own, i, same[k].first);
    }
    return CORNU_OK;
}

static int count_hosts(const Rank *all, int size)
{
    int hosts = 0;
    for (int i = 0; i < size; i++) {
        int before = 0;
        while (strcmp(all[before].host, all[i].host) != 0) before++;
        hosts += before == i;
    }
    return hosts;
}

/* The transport that the launch asks for, which may be built on this one. On failure the old one
 * stays. */
static CornuStatus choose(CornuTransport **transport, const CornuLaunch *launch, int hosts)
{
    const bool      any = strcmp(launch->transport, "auto") == 0;
    CornuTransport *shm = NULL;
    if (strcmp(launch->transport, "mpi") == 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "transport is \"mpi\", but no launcher of MPI "
                           "has started this process");
    if (strcmp(launch->transport, "tcp") == 0 || (any && hosts > 1)) return CORNU_OK;
    if (hosts > 1)
        return cornu__fail(CORNU_ERR_PROCESS, "transport is \"shm\", but the processes are on %d "
                           "hosts, which share no memory", hosts);
    CORNU__TRY(cornu__shm_open(*transport, launch->timeout_s, &shm));
    if (shm) *transport = shm;
    else if (any) cornu__log(CORNU_LOG_WARNING, "tcp instead of shm: %s", cornu_error_message());
    else return cornu_error_status();
    return CORNU_OK;
}

static CornuStatus meet(CornuTransport **transport, const CornuLaunch *launch, char *description,
                        size_t size)
{
    const int   ranks = (*transport)->size;
    Rank       *all = cornu__allocate((size_t)ranks, sizeof *all);
    CornuStatus status = all ? gather(*transport, launch, all) : CORNU_ERR_MEMORY;
    if (!status) status = compare(all, ranks);
    const int hosts = status ? 0 : count_hosts(all, ranks);
    if (!status) status = choose(transport, launch, hosts);
    if (!status)
        snprintf(description, size, "%d processes on %d host%s, over %s", ranks, hosts,
                 hosts > 1 ? "s" : "", (*transport)->description);
    cornu__release(all);
    return status;
}

CornuTransport *cornu__transport_open(CornuLaunch *launch, const _Atomic bool *stop,
                                      char *description, size_t size)
{
    CornuMesh    mesh;
    CornuFailure failure;
    if (cornu__mesh_open(&mesh, launch)) return NULL;
    CornuTransport *transport = cornu__tcp_open(&mesh);
    if (!transport) return NULL;
    transport->stop = stop;
    const CornuStatus status = meet(&transport, launch, description, size);
    if (!status) return transport;
    cornu__failure_keep(&failure, status);
    transport->class->tell(transport, failure.message);
    transport->class->close(transport);
    cornu__failure_tell(&failure);
    return NULL;
}
