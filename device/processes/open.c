#include "open_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../host/machine/cpu.h"
#include "../memory_internal.h"
#include "../version.h"
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
    CornuExchange exchange = { .what = "meeting", .sends = messages, .receives = messages + size };
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

CornuTransport *cornu__transport_open(CornuLaunch *launch, const _Atomic bool *stop,
                                      char *description, size_t size)
{
    CornuMesh mesh;
    if (cornu__mesh_open(&mesh, launch)) return NULL;
    CornuTransport *transport = cornu__tcp_open(&mesh);
    if (!transport) return NULL;
    transport->stop = stop;
    Rank       *all = cornu__allocate((size_t)transport->size, sizeof *all);
    CornuStatus status = all ? gather(transport, launch, all) : CORNU_ERR_MEMORY;
    if (!status) status = compare(all, transport->size);
    if (!status) {
        const int hosts = count_hosts(all, transport->size);
        snprintf(description, size, "%d processes on %d host%s, over %s", transport->size, hosts,
                 hosts > 1 ? "s" : "", transport->description);
    } else {
        char why[CORNU_MESSAGE_SIZE];
        snprintf(why, sizeof why, "%s", cornu_error_message());
        transport->class->tell(transport, why);
        transport->class->close(transport);
        transport = NULL;
    }
    cornu__release(all);
    return transport;
}
