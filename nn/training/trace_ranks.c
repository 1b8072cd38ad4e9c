/* Writes the trace of a step that several processes ran together as one file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/system/clock_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/processes/processes_internal.h"
#include "../formats/json_internal.h"
#include "trace_internal.h"

enum { EVENT_DEPTH = 3 };   /* [{"args": {}}] */

/* Seconds of a rank's clock. */
typedef struct { double now, begin; } Clock;

/* Time 0 of the file by this rank's clock: the first begin of all. A collective ends at about the
 * same time on all ranks, which shows how far their clocks are apart. Clocks that are as good as
 * equal then are the same one, of one machine. */
static CornuStatus find_zero(CornuProcesses *processes, const CornuTrace *trace, double *zero_s)
{
    const double same = 10e-3;
    const int    rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    Clock        clocks[CORNU_MAX_PROCESSES], own = { .begin = cornu__trace_begin(trace) };
    CORNU__TRY(cornu__processes_gather(processes, "before the clocks", &own, sizeof own, clocks));
    own.now = cornu__seconds();
    CORNU__TRY(cornu__processes_gather(processes, "the clocks", &own, sizeof own, clocks));
    *zero_s = own.begin;
    for (int i = 0; i < count; i++) {
        const double apart = clocks[rank].now - clocks[i].now;
        *zero_s = fmin(*zero_s, clocks[i].begin + (fabs(apart) < same ? 0.0 : apart));
    }
    return CORNU_OK;
}

/* Sends the text to rank 0, which gets those of the others, one after the other, in *all. */
static CornuStatus send_texts(CornuProcesses *processes, char *text, const uint64_t *sizes,
                              char **all)
{
    const int     rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    CornuMessage  messages[CORNU_MAX_PROCESSES];
    CornuExchange exchange = { .what = "the traces", .sends = messages, .receives = messages };
    size_t        bytes = 1;
    for (int i = 1; i < count; i++) bytes += sizes[i];
    *all = rank == 0 ? cornu__allocate(bytes, 1) : NULL;
    const CornuStatus status = rank == 0 && !*all ? CORNU_ERR_MEMORY : CORNU_OK;
    CORNU__TRY(cornu__processes_check(processes, "memory for the traces", status));
    char *at = *all;
    for (int i = 1; i < count && rank == 0; at += sizes[i++])
        messages[exchange.receive_count++] = (CornuMessage){ i, at, sizes[i] };
    if (rank > 0)
        messages[exchange.send_count++] = (CornuMessage){ 0, text, sizes[rank] };
    CORNU__TRY(cornu__exchange_start(processes, &exchange));
    return cornu__exchange_finish(processes, &exchange);
}

/* Appends the events of the other ranks to those of rank 0. */
static CornuStatus append_all(json_t *events, const char *texts, const uint64_t *sizes, int count)
{
    for (int i = 1; i < count; texts += sizes[i++]) {
        json_t *more = cornu__json_parse(texts, sizes[i], EVENT_DEPTH);
        if (!more) return cornu_error_status();
        const int failed = json_array_extend(events, more);
        json_decref(more);
        if (failed) return cornu__fail(CORNU_ERR_MEMORY, "no memory for the trace");
    }
    return CORNU_OK;
}

/* *texts: on rank 0 the events of the others, as JSON. Takes what making those of this rank came
 * to. */
static CornuStatus gather_events(CornuProcesses *processes, const json_t *events,
                                 CornuStatus status, uint64_t *sizes, char **texts)
{
    uint64_t size = 0;
    char    *text = NULL;
    if (!status && cornu_process_rank(processes) > 0) {
        text = json_dumps(events, JSON_COMPACT | JSON_REAL_PRECISION(15));
        if (!text) status = cornu__fail(CORNU_ERR_MEMORY, "no memory for the trace");
        else size = strlen(text);
    }
    status = cornu__processes_check(processes, "the trace", status);
    if (!status)
        status = cornu__processes_gather(processes, "the sizes of traces", &size, sizeof size,
                                         sizes);
    if (!status) status = send_texts(processes, text, sizes, texts);
    free(text);
    return status;
}

CornuStatus cornu__trace_write_together(const CornuTrace *trace, const char *path)
{
    CornuProcesses *processes = cornu_device_processes(cornu_executable_device(trace->executable));
    const int       count = cornu_process_count(processes);
    uint64_t        sizes[CORNU_MAX_PROCESSES];
    json_t         *events;
    char           *texts = NULL;
    double          zero_s;
    if (count == 1) return cornu_trace_write(trace, path);
    CORNU__TRY(find_zero(processes, trace, &zero_s));
    CornuStatus status = cornu__trace_events(trace, zero_s, &events);
    status = gather_events(processes, events, status, sizes, &texts);
    if (!status && texts) status = append_all(events, texts, sizes, count);
    if (!status && texts) status = cornu__trace_write_events(events, path);
    cornu__release(texts);
    json_decref(events);
    return status;
}
