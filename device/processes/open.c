#include "open_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../host/machine/cpu.h"
#include "../log_internal.h"
#include "../memory_internal.h"
#include "../version.h"
#include "mpi_internal.h"
#include "shm_internal.h"
#include "tcp_internal.h"

/* What each rank says of itself first. */
typedef struct {
    char version[24], isa[24], transport[8], host[64];
} Rank;

/* Differs from host to host, from boot to boot, and between what is on networks of its own, such as
 * containers, which count as hosts: they do not reach each other by loopback. */
static void read_host(char *host, size_t size)
{
    cornu__boot_id(host, size);
    if (!host[0] && gethostname(host, size - 1)) host[0] = '\0';
    host[size - 1] = '\0';
    const size_t length = strlen(host);
    struct stat  network;
    if (stat("/proc/self/ns/net", &network) == 0)
        snprintf(host + length, size - length, " %llu", (unsigned long long)network.st_ino);
}

static CornuStatus describe_rank(Rank *rank, const CornuLaunch *launch)
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

/* all[r * bytes ...] = rank r's, which is there already on rank r. */
static CornuStatus gather_ranks(CornuTransport *transport, const char *what, uint64_t number,
                                double timeout_s, void *all, size_t bytes)
{
    const int     rank = transport->rank, size = transport->size;
    CornuMessage *messages = cornu__allocate(2 * (size_t)size, sizeof *messages);
    if (!messages) return CORNU_ERR_MEMORY;
    CornuExchange exchange = { .what = what, .number = number, .sends = messages,
                               .receives = messages + size };
    for (int i = 0; i < size; i++) {
        if (i == rank) continue;
        messages[exchange.send_count++] =
            (CornuMessage){ i, (char *)all + (size_t)rank * bytes, bytes };
        messages[size + exchange.receive_count++] =
            (CornuMessage){ i, (char *)all + (size_t)i * bytes, bytes };
    }
    const CornuStatus status = transport->class->exchange(transport, &exchange, timeout_s);
    cornu__release(messages);
    return status;
}

static CornuStatus compare_ranks(const Rank *all, int size)
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

/* ---- Choosing ---- */

/* How the others reach a rank, and a key that they may use. */
typedef struct {
    char     address[128];
    CornuKey key;
} Contact;

/* Gathers all ranks' addresses into the launch, and rank 0's key, by MPI, which knows its own. */
static CornuStatus gather_addresses(CornuTransport *mpi, CornuLaunch *launch, bool one_host)
{
    const size_t size = (size_t)mpi->size;
    launch->text = cornu__allocate(size, sizeof(Contact));
    launch->workers = cornu__allocate(size, sizeof *launch->workers);
    if (!launch->text || !launch->workers) return CORNU_ERR_MEMORY;
    Contact *all = (Contact *)(void *)launch->text, *own = &all[mpi->rank];
    for (size_t i = 0; i < size; i++) launch->workers[i] = all[i].address;
    CORNU__TRY(cornu__random_bytes(&own->key, sizeof own->key));
    CORNU__TRY(cornu__mesh_listen(launch, one_host, own->address, sizeof own->address));
    CORNU__TRY(gather_ranks(mpi, "addresses", CORNU_EXCHANGE_ADDRESSES, launch->timeout_s, all,
                            sizeof *all));
    launch->key = all[0].key;
    return CORNU_OK;
}

/* TCP between processes that MPI has started. */
static CornuStatus build_mesh(CornuTransport **transport, CornuLaunch *launch, bool one_host)
{
    CornuMesh       mesh;
    CornuTransport *mpi = *transport;
    CORNU__TRY(gather_addresses(mpi, launch, one_host));
    CORNU__TRY(cornu__mesh_open(&mesh, launch));
    CornuTransport *tcp = cornu__tcp_open(&mesh);
    if (!tcp) return cornu_error_status();
    tcp->stop = mpi->stop;
    tcp->base = mpi;
    *transport = tcp;
    return CORNU_OK;
}

/* On failure *transport is what has been opened so far. */
static CornuStatus choose_transport(CornuTransport **transport, CornuLaunch *launch, int hosts)
{
    const char     *wanted = launch->transport;
    const bool      mpi = launch->mpi.name, any = strcmp(wanted, "auto") == 0;
    CornuTransport *shm = NULL;
    if (strcmp(wanted, "mpi") == 0 && !mpi)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "transport is \"mpi\", but no launcher of MPI, "
                           "such as mpirun, has started this process");
    if (strcmp(wanted, "shm") == 0 && hosts > 1)
        return cornu__fail(CORNU_ERR_PROCESS, "transport is \"shm\", but the processes are on %d "
                           "hosts, which share no memory", hosts);
    if (strcmp(wanted, "mpi") == 0 || (any && mpi && hosts > 1)) return CORNU_OK;
    if (mpi) CORNU__TRY(build_mesh(transport, launch, hosts == 1));
    if (strcmp(wanted, "tcp") == 0 || hosts > 1) return CORNU_OK;
    CORNU__TRY(cornu__shm_open(*transport, launch->timeout_s, &shm));
    if (!shm && !any) return cornu_error_status();
    if (shm) *transport = shm;
    else cornu__log(CORNU_LOG_WARNING, "tcp instead of shm: %s", cornu_error_message());
    return CORNU_OK;
}

/* "4 processes on 2 hosts, by Open MPI 4.1.4 over tcp". */
static void describe_group(const CornuTransport *transport, const CornuLaunch *launch, int hosts,
                           char *description, size_t size)
{
    const CornuTransport *first = transport;
    while (first->base) first = first->base;
    const char *by = launch->mpi.name ? first->description : "";
    snprintf(description, size, "%d processes on %d host%s, %s%s%sover %s", transport->size, hosts,
             hosts > 1 ? "s" : "", *by ? "by " : "", by, *by ? " " : "", transport->class->name);
}

static CornuStatus open_group(CornuTransport **transport, CornuLaunch *launch, char *description,
                              size_t size)
{
    const int   ranks = (*transport)->size;
    Rank       *all = cornu__allocate((size_t)ranks, sizeof *all);
    CornuStatus status = all ? describe_rank(&all[launch->rank], launch) : CORNU_ERR_MEMORY;
    if (!status)
        status = gather_ranks(*transport, "meeting", CORNU_EXCHANGE_OPEN, launch->timeout_s, all,
                              sizeof *all);
    if (!status) status = compare_ranks(all, ranks);
    const int hosts = status ? 0 : count_hosts(all, ranks);
    if (!status) status = choose_transport(transport, launch, hosts);
    if (!status) describe_group(*transport, launch, hosts, description, size);
    cornu__release(all);
    return status;
}

static CornuTransport *open_first(CornuLaunch *launch, const _Atomic bool *stop)
{
    CornuMesh mesh;
    if (launch->mpi.name) return cornu__mpi_open(&launch->mpi, stop);
    if (cornu__mesh_open(&mesh, launch)) return NULL;
    CornuTransport *tcp = cornu__tcp_open(&mesh);
    if (tcp) tcp->stop = stop;
    return tcp;
}

CornuTransport *cornu__transport_open(CornuLaunch *launch, const _Atomic bool *stop,
                                      char *description, size_t size)
{
    CornuFailure    failure;
    CornuTransport *transport = open_first(launch, stop);
    if (!transport) return NULL;
    const CornuStatus status = open_group(&transport, launch, description, size);
    if (!status) return transport;
    cornu__failure_keep(&failure, status);
    transport->failed = true;
    transport->class->tell(transport, failure.message);
    cornu__transport_close(transport);
    cornu__failure_tell(&failure);
    return NULL;
}

void cornu__transport_close(CornuTransport *transport)
{
    while (transport) {
        CornuTransport *base = transport->base;
        if (base) base->failed |= transport->failed;
        transport->class->close(transport);
        transport = base;
    }
}
