/*
 * A group of processes: the thread that does its exchanges, one after the other, and the queue that
 * leads to it. The thread opens the transport, uses and closes it.
 */
#include "processes_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../system/clock_internal.h"
#include "../log_internal.h"
#include "../memory_internal.h"
#include "../text/print.h"
#include "../system/thread_internal.h"
#include "open_internal.h"
#include "report_internal.h"

enum { QUEUE = 64 };   /* exchanges that have started and not ended */

struct CornuProcesses {
    int             rank, count;
    CornuProcesses *group;               /* of a part, which has these four alone: what it is a */
    int             first;               /* part of, and the rank there of its rank 0 */
    CornuProcesses *next;                /* another part of it */
    CornuProcesses *parts;
    CornuLaunch     launch;
    char            description[200];
    CornuMessage   *messages;            /* of collectives: 2 for each rank */
    CornuTransport *transport;           /* the thread's */
    _Atomic bool    stop;                /* for the transport: this rank has failed */

    pthread_t       thread;
    bool            threaded;
    pthread_mutex_t lock;                /* of all below */
    pthread_cond_t  begun, ended;
    CornuExchange  *queue[QUEUE];        /* by order */
    uint64_t        begin_count, end_count;   /* exchanges that have started, and ended */
    uint64_t        number;              /* of the last that started of the whole group, */
    uint32_t        of_part;             /* and of a part's since then */
    bool            opened, closing;
    bool            failing, failed;     /* this rank has, and is to tell so; the group has */
    CornuFailure    failure;
    CornuTraffic    traffic;
};

/* ---- The thread ---- */

/* Tells all, and makes everything fail from now on. Without the lock: with it nothing is seen of
 * the exchange's messages after it. */
static void end_group(CornuProcesses *processes, CornuStatus status)
{
    CornuFailure failure;
    pthread_mutex_lock(&processes->lock);
    const bool own = processes->failing;
    if (own) failure = processes->failure;
    pthread_mutex_unlock(&processes->lock);
    if (!own) cornu__failure_keep(&failure, status);
    processes->transport->failed = true;
    processes->transport->class->tell(processes->transport, failure.message);
    pthread_mutex_lock(&processes->lock);
    if (!own) processes->failure = failure;
    processes->failed = true;
    processes->failing = false;
    pthread_cond_broadcast(&processes->ended);
    pthread_mutex_unlock(&processes->lock);
    cornu__log(CORNU_LOG_ERROR, "%s", failure.message);
}

static void count_bytes(CornuTraffic *traffic, const CornuExchange *exchange)
{
    traffic->exchanges++;
    for (int i = 0; i < exchange->send_count; i++)
        traffic->bytes_sent += (int64_t)exchange->sends[i].bytes;
    for (int i = 0; i < exchange->receive_count; i++)
        traffic->bytes_received += (int64_t)exchange->receives[i].bytes;
}

/* With the lock. False when it is time to say that this rank, which computes, is well. */
static bool wait_for_work(CornuProcesses *processes)
{
    struct timespec until;
    const double    pause_s = processes->launch.timeout_s / CORNU_NOTICES;
    const double    bounded = pause_s < 3600 ? pause_s : 3600;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(1e9 * (bounded - (double)(long)bounded));
    until.tv_sec += (time_t)bounded + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_cond_timedwait(&processes->begun, &processes->lock, &until) == 0;
}

static void do_exchanges(CornuProcesses *processes)
{
    CornuTransport *transport = processes->transport;
    pthread_mutex_lock(&processes->lock);
    while (!processes->failed) {
        if (!processes->failing && processes->end_count == processes->begin_count) {
            if (processes->closing) break;
            if (wait_for_work(processes)) continue;
            pthread_mutex_unlock(&processes->lock);
            transport->class->notify(transport);
            pthread_mutex_lock(&processes->lock);
            continue;
        }
        const bool     failing = processes->failing;
        CornuExchange *exchange = processes->queue[processes->end_count % QUEUE];
        pthread_mutex_unlock(&processes->lock);
        CornuStatus status = CORNU_ERR_INTERRUPTED;
        if (!failing) {
            exchange->begin_s = cornu__seconds();
            status = transport->class->exchange(transport, exchange,
                                                processes->launch.timeout_s);
            exchange->end_s = cornu__seconds();
        }
        if (status) end_group(processes, status);
        pthread_mutex_lock(&processes->lock);
        if (status) break;
        count_bytes(&processes->traffic, exchange);
        processes->end_count++;
        pthread_cond_broadcast(&processes->ended);
    }
    pthread_mutex_unlock(&processes->lock);
}

static void *thread_main(void *argument)
{
    CornuProcesses *processes = argument;
    CornuTransport *transport = cornu__transport_open(&processes->launch, &processes->stop,
                                                      processes->description,
                                                      sizeof processes->description);
    pthread_mutex_lock(&processes->lock);
    processes->opened = true;
    processes->transport = transport;
    processes->failed = !transport;
    if (!transport) cornu__failure_keep(&processes->failure, cornu_error_status());
    pthread_cond_broadcast(&processes->ended);
    pthread_mutex_unlock(&processes->lock);
    if (!transport) return NULL;
    do_exchanges(processes);
    cornu__transport_close(transport);
    return NULL;
}

/* ---- Opening and closing ---- */

static CornuStatus start_thread(CornuProcesses *processes)
{
    const int failure = cornu__thread_start(&processes->thread, thread_main, processes);
    if (failure)
        return cornu__fail(CORNU_ERR_PROCESS, "the thread that exchanges with other processes "
                           "cannot be started: %s", strerror(failure));
    processes->threaded = true;
    pthread_mutex_lock(&processes->lock);
    while (!processes->opened) pthread_cond_wait(&processes->ended, &processes->lock);
    pthread_mutex_unlock(&processes->lock);
    return processes->failed ? cornu__failure_tell(&processes->failure) : CORNU_OK;
}

CornuProcesses *cornu_processes_open_from(const CornuProcessesConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    CornuProcesses *processes = cornu__refused() ? NULL : cornu__allocate(1, sizeof *processes);
    if (!processes) return cornu__null();
    pthread_mutex_init(&processes->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&processes->begun, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&processes->ended, NULL);
    atomic_init(&processes->stop, false);
    snprintf(processes->description, sizeof processes->description, "1 process");
    if (!cornu__processes_enter(processes)) {
        cornu__fail(CORNU_ERR_BUSY, "this process is a member of a group already; "
                    "cornu_processes_close leaves it");
        goto fail;
    }
    cornu__report_begin();
    if (cornu__launch_read(&processes->launch, config)) goto fail;
    processes->rank = processes->launch.rank;
    processes->count = processes->launch.count;
    if (processes->count == 1) return processes;
    processes->messages = cornu__allocate(2 * (size_t)processes->count,
                                          sizeof *processes->messages);
    if (!processes->messages || start_thread(processes)) goto fail;
    cornu__log(CORNU_LOG_INFO, "rank %d of %s", processes->rank, processes->description);
    return processes;

fail:
    if (cornu_error_status() != CORNU_ERR_PROCESS)
        cornu__report(processes->launch.rank, cornu_error_status(), cornu_error_message());
    cornu_processes_close(processes);
    return cornu__null();
}

void cornu_processes_close(CornuProcesses *processes)
{
    if (!processes) return;
    if (processes->threaded) {
        pthread_mutex_lock(&processes->lock);
        processes->closing = true;
        pthread_cond_broadcast(&processes->begun);
        pthread_mutex_unlock(&processes->lock);
        pthread_join(processes->thread, NULL);
    }
    cornu__processes_leave(processes);
    for (CornuProcesses *next, *part = processes->parts; part; part = next) {
        next = part->next;
        cornu__release(part);
    }
    cornu__launch_clear(&processes->launch);
    pthread_cond_destroy(&processes->ended);
    pthread_cond_destroy(&processes->begun);
    pthread_mutex_destroy(&processes->lock);
    cornu__release(processes->messages);
    cornu__release(processes);
}

/* ---- Parts ---- */

static CornuProcesses *group_of(CornuProcesses *processes)
{
    return processes->group ? processes->group : processes;
}

CornuStatus cornu__processes_part(CornuProcesses *processes, int parts, CornuProcesses **part)
{
    const int count = cornu_process_count(processes) / parts;
    *part = parts == 1 ? processes : NULL;
    if (parts == 1 || count == 1) return CORNU_OK;
    for (*part = processes->parts; *part && (*part)->count != count;) *part = (*part)->next;
    if (*part) return CORNU_OK;
    *part = cornu__allocate(1, sizeof **part);
    if (!*part) return CORNU_ERR_MEMORY;
    **part = (CornuProcesses){ .rank = processes->rank % count, .count = count,
                               .group = processes, .next = processes->parts,
                               .first = processes->rank - processes->rank % count };
    processes->parts = *part;
    return CORNU_OK;
}

/* ---- Exchanges ---- */

static bool alone(const CornuProcesses *processes) { return !processes || processes->count == 1; }

/* Which exchange it is, of the group and of a part. */
static void count_exchange(CornuProcesses *group, const CornuProcesses *of, CornuExchange *exchange)
{
    if (of->group) {
        group->of_part++;
    } else {
        group->number++;
        group->of_part = 0;
    }
    exchange->order = ++group->begin_count;
    exchange->number = group->number;
    exchange->of_part = group->of_part;
    exchange->first = of->first;
}

/* The group's failure, if it has one. Called with the lock held. */
static CornuStatus failure_of(const CornuProcesses *processes)
{
    return processes->failed || processes->failing ? cornu__failure_tell(&processes->failure)
                                                   : CORNU_OK;
}

CornuStatus cornu__exchange_start(CornuProcesses *processes, CornuExchange *exchange)
{
    if (alone(processes)) return CORNU_OK;
    CornuProcesses *group = group_of(processes);
    pthread_mutex_lock(&group->lock);
    while (!group->failed && group->begin_count - group->end_count == QUEUE)
        pthread_cond_wait(&group->ended, &group->lock);
    const CornuStatus status = failure_of(group);
    if (!status) {
        group->queue[group->begin_count % QUEUE] = exchange;
        count_exchange(group, processes, exchange);
        pthread_cond_signal(&group->begun);
    }
    pthread_mutex_unlock(&group->lock);
    return status;
}

CornuStatus cornu__exchange_finish(CornuProcesses *processes, CornuExchange *exchange)
{
    if (alone(processes)) return CORNU_OK;
    CornuProcesses *group = group_of(processes);
    pthread_mutex_lock(&group->lock);
    if (!group->failed && group->end_count < exchange->order) {
        const double begin_s = cornu__seconds();
        while (!group->failed && group->end_count < exchange->order)
            pthread_cond_wait(&group->ended, &group->lock);
        group->traffic.wait_seconds += cornu__seconds() - begin_s;
    }
    const CornuStatus status = failure_of(group);
    pthread_mutex_unlock(&group->lock);
    return status;
}

bool cornu__exchange_ended(CornuProcesses *processes, const CornuExchange *exchange)
{
    if (alone(processes)) return true;
    CornuProcesses *group = group_of(processes);
    pthread_mutex_lock(&group->lock);
    const bool ended = !group->failed && group->end_count >= exchange->order;
    pthread_mutex_unlock(&group->lock);
    return ended;
}

/* Nothing uses messages of exchanges any more when this returns. */
CornuStatus cornu__processes_fail(CornuProcesses *processes, CornuStatus status)
{
    if (alone(processes) || status == CORNU_OK) return status;
    CornuProcesses *group = group_of(processes);
    CornuFailure    failure;
    cornu__failure_keep(&failure, status);
    pthread_mutex_lock(&group->lock);
    if (!group->failed && !group->failing) {
        group->failing = true;
        group->failure.status = CORNU_ERR_PROCESS;
        cornu__format(group->failure.message, sizeof group->failure.message, "rank %d: %s",
                      group->rank, failure.message);
        cornu__report(group->rank, status, failure.message);
        atomic_store(&group->stop, true);
        pthread_cond_signal(&group->begun);
    }
    while (!group->failed) pthread_cond_wait(&group->ended, &group->lock);
    pthread_mutex_unlock(&group->lock);
    return status;
}

/* ---- What it is ---- */

int cornu_process_rank(const CornuProcesses *processes) { return processes ? processes->rank : 0; }
int cornu_process_count(const CornuProcesses *processes)
{
    return processes ? processes->count : 1;
}

const char *cornu_processes_description(const CornuProcesses *processes)
{
    return processes ? processes->description : "1 process";
}

CornuTraffic cornu_processes_traffic(const CornuProcesses *processes)
{
    if (alone(processes)) return (CornuTraffic){ .exchanges = 0 };
    CornuProcesses *shared = (CornuProcesses *)processes;   /* for its lock */
    pthread_mutex_lock(&shared->lock);
    const CornuTraffic traffic = shared->traffic;
    pthread_mutex_unlock(&shared->lock);
    return traffic;
}

CornuMessage *cornu__processes_messages(CornuProcesses *processes)
{
    return group_of(processes)->messages;
}
