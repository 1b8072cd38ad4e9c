#include "launch_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../system/environment_internal.h"
#include "../memory_internal.h"
#include "../text/nearest.h"
#include "../text/print.h"

static const char *const transports[] = { "auto", "shm", "tcp", "mpi" };
enum { TRANSPORTS = sizeof transports / sizeof *transports };

static CornuStatus read_transport(CornuLaunch *launch, const char *name)
{
    char known[80];
    launch->transport = name ? name : "auto";
    for (int i = 0; i < TRANSPORTS; i++)
        if (strcmp(launch->transport, transports[i]) == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "transport is \"%s\", expected one of %s", name,
                       cornu_nearest_first(known, sizeof known, name, transports, TRANSPORTS));
}

static CornuStatus read_timeout(CornuLaunch *launch, double wanted)
{
    enum { DEFAULT_S = 60 };
    const char *text = cornu__environment("CORNU_RANK_TIMEOUT");
    char       *end;
    if (!(wanted >= 0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "timeout_s is %g, expected more than 0", wanted);
    launch->timeout_s = wanted > 0 ? wanted : DEFAULT_S;
    if (wanted > 0 || !text) return CORNU_OK;
    launch->timeout_s = cornu__parse_number(text, &end);
    if (end != text && !*end && launch->timeout_s > 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_RANK_TIMEOUT is \"%s\", expected seconds, such "
                       "as 60", text);
}

/* A whole number of the environment, from 0 to most. */
static CornuStatus read_number(const char *name, const char *text, long most, int *number)
{
    char      *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < 0 || value > most)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s is \"%s\", expected a number from 0 to %ld",
                           name, text, most);
    *number = (int)value;
    return CORNU_OK;
}

static CornuStatus copy_workers(CornuLaunch *launch, const CornuProcessesConfig *config)
{
    if (config->count < 1 || config->count > CORNU_MAX_PROCESSES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "count of workers is %d, expected 1 to %d",
                           config->count, CORNU_MAX_PROCESSES);
    if (config->rank < 0 || config->rank >= config->count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "rank is %d, expected 0 to %d, as there are %d "
                           "workers", config->rank, config->count - 1, config->count);
    for (int i = 0; i < config->count; i++)
        if (!config->workers[i])
            return cornu__fail(CORNU_ERR_ARGUMENT, "workers[%d] is NULL, expected host:port", i);
    launch->workers = cornu__allocate((size_t)config->count, sizeof *launch->workers);
    if (!launch->workers) return CORNU_ERR_MEMORY;
    memcpy(launch->workers, config->workers, (size_t)config->count * sizeof *launch->workers);
    launch->count = config->count;
    launch->rank = config->rank;
    return CORNU_OK;
}

/* Splits a copy of CORNU_WORKERS at its commas. */
static CornuStatus split_workers(CornuLaunch *launch, const char *text)
{
    int count = 1;
    for (const char *c = text; *c; c++) count += *c == ',';
    if (count > CORNU_MAX_PROCESSES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_WORKERS has %d addresses, expected at most "
                           "%d", count, CORNU_MAX_PROCESSES);
    launch->text = cornu__copy_text(text);
    launch->workers = cornu__allocate((size_t)count, sizeof *launch->workers);
    if (!launch->text || !launch->workers) return CORNU_ERR_MEMORY;
    char *rest = launch->text;
    for (launch->count = 0; rest; launch->count++) {
        char *comma = strchr(rest, ',');
        launch->workers[launch->count] = rest;
        if (comma) *comma++ = '\0';
        rest = comma;
    }
    return CORNU_OK;
}

/* The inherited socket is closed when this process becomes another program. */
static CornuStatus take_listener(CornuLaunch *launch, const char *text)
{
    int       listening = 0, socket;
    socklen_t size = sizeof listening;
    CORNU__TRY(read_number("CORNU_LISTEN_FD", text, 1 << 20, &socket));
    if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) || !listening)
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_LISTEN_FD is %s, which is not a listening "
                           "socket", text);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    launch->listener = socket;
    return CORNU_OK;
}

static CornuStatus read_environment(CornuLaunch *launch)
{
    const char *workers = cornu__environment("CORNU_WORKERS");
    const char *rank = cornu__environment("CORNU_RANK");
    const char *listener = cornu__environment("CORNU_LISTEN_FD");
    if (!workers && !rank) return CORNU_OK;
    if (!workers || !rank)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s is set without %s; cornu run sets both",
                           workers ? "CORNU_WORKERS" : "CORNU_RANK",
                           workers ? "CORNU_RANK" : "CORNU_WORKERS");
    CORNU__TRY(split_workers(launch, workers));
    CORNU__TRY(read_number("CORNU_RANK", rank, CORNU_MAX_PROCESSES - 1, &launch->rank));
    if (launch->rank >= launch->count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_RANK is %d, expected 0 to %d, as "
                           "CORNU_WORKERS has %d addresses", launch->rank, launch->count - 1,
                           launch->count);
    return listener && launch->count > 1 ? take_listener(launch, listener) : CORNU_OK;
}

static CornuStatus read_mpi(CornuLaunch *launch)
{
    CORNU__TRY(cornu__mpi_launcher(&launch->mpi));
    launch->rank = launch->mpi.rank;
    launch->count = launch->mpi.count;
    return CORNU_OK;
}

/* What Keras' users say, where nothing else does. */
static CornuStatus read_tf_config(CornuLaunch *launch, const char *text)
{
    CornuTfConfig *config = &launch->tf_config;
    CORNU__TRY(cornu__tf_config_read(config, text));
    if (config->count == 0) return CORNU_OK;
    launch->workers = cornu__allocate((size_t)config->count, sizeof *launch->workers);
    if (!launch->workers) return CORNU_ERR_MEMORY;
    for (int i = 0; i < config->count; i++) launch->workers[i] = config->workers[i];
    launch->count = config->count;
    launch->rank = config->rank;
    return CORNU_OK;
}

/* Processes that MPI has started share one that rank 0 draws (open.c). */
static CornuStatus read_key(CornuLaunch *launch, const CornuProcessesConfig *config)
{
    return launch->count > 1 ? cornu__key_read(&launch->key, config->key) : CORNU_OK;
}

CornuStatus cornu__launch_read(CornuLaunch *launch, const CornuProcessesConfig *config)
{
    *launch = (CornuLaunch){ .count = 1, .listener = -1 };
    CORNU__TRY(read_transport(launch, config->transport));
    CORNU__TRY(read_timeout(launch, config->timeout_s));
    if (config->workers) {
        CORNU__TRY(copy_workers(launch, config));
        return read_key(launch, config);
    }
    if (config->rank || config->count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "rank is %d and count is %d, but workers is NULL",
                           config->rank, config->count);
    CORNU__TRY(read_environment(launch));
    if (!launch->workers) CORNU__TRY(read_mpi(launch));
    if (launch->mpi.name) return CORNU_OK;
    const char *tf_config = cornu__environment("TF_CONFIG");
    if (tf_config && !launch->workers) CORNU__TRY(read_tf_config(launch, tf_config));
    return read_key(launch, config);
}

void cornu__launch_clear(CornuLaunch *launch)
{
    cornu__release(launch->workers);
    cornu__release(launch->text);
    cornu__tf_config_clear(&launch->tf_config);
    *launch = (CornuLaunch){ .count = 1, .listener = -1 };
}
