#include "explain_internal.h"

#include <inttypes.h>

CornuExplainExchanges cornu__explain_exchanges(CornuExecutable *executable)
{
    const CornuDevice    *device = cornu_executable_device(executable);
    CornuProcesses       *processes = cornu_device_processes(device);
    int                   steps, first;
    CornuExplainExchanges e = { .processes = cornu_process_count(processes),
                                .rank = cornu_process_rank(processes),
                                .shards = cornu_device_shards(device) };
    e.steps = cornu_executable_steps(executable, &steps);
    e.exchanges = cornu_executable_exchanges(executable, &e.count);
    cornu_device_own_shards(device, &first, &e.own);
    return e;
}

/* Whether steps run between its beginning and its end. */
static bool is_beside(const CornuExchangeEvent *exchange)
{
    return exchange->begin_step != exchange->end_step;
}

void cornu__explain_exchanges_line(const CornuExplainExchanges *e, char text[CORNU_EXPLAIN_TEXT])
{
    int64_t sent = 0, beside = 0;
    text[0] = '\0';
    if (e->processes < 2) return;
    for (int i = 0; i < e->count; i++) {
        sent += e->exchanges[i].bytes_sent;
        beside += is_beside(&e->exchanges[i]) ? e->exchanges[i].bytes_sent : 0;
    }
    snprintf(text, CORNU_EXPLAIN_TEXT, "In %d processes, of which this one, rank %d, has %d of %d "
             "shards: it does its part of those operations, and sends %.1f kB in %d exchange%s, "
             "%.1f kB of it beside other steps.", e->processes, e->rank, e->own, e->shards,
             1e-3 * (double)sent, e->count, e->count == 1 ? "" : "s", 1e-3 * (double)beside);
}

/* "63 send", "6 wait", "65 collective". */
static const char *step_name(const CornuExplainExchanges *e, int i, char text[40])
{
    snprintf(text, 40, "%3d %s", i, e->steps[i].kind);
    return text;
}

void cornu__explain_exchanges_print(const CornuExplainExchanges *e, FILE *to)
{
    char begin[40], end[40];
    if (e->processes < 2) return;
    fprintf(to, "\nExchanged with the other %d process%s by rank %d, which has %d of %d shards; "
            "measured here\n", e->processes - 1, e->processes == 2 ? "" : "es", e->rank, e->own,
            e->shards);
    fprintf(to, "%-15s %-15s %10s %12s %8s  %s\n", "begun by step", "ended by step", "sent kB",
            "received kB", "ms", "exchange");
    for (int i = 0; i < e->count; i++) {
        const CornuExchangeEvent *exchange = &e->exchanges[i];
        fprintf(to, "%-15s %-15s %10.1f %12.1f %8.3f  %s%s\n",
                step_name(e, exchange->begin_step, begin), step_name(e, exchange->end_step, end),
                1e-3 * (double)exchange->bytes_sent, 1e-3 * (double)exchange->bytes_received,
                1e3 * (exchange->end_s - exchange->begin_s), exchange->name,
                exchange->end_step < exchange->begin_step ? ", until the next step" : "");
    }
}

json_t *cornu__explain_exchanges_json(const CornuExplainExchanges *e)
{
    json_t *list = json_array();
    for (int i = 0; list && i < e->count; i++) {
        const CornuExchangeEvent *exchange = &e->exchanges[i];
        json_t *row = json_pack("{s:s, s:i, s:i, s:I, s:I, s:{s:f}}", "name", exchange->name,
                                "begin_step", exchange->begin_step, "end_step", exchange->end_step,
                                "bytes_sent", (json_int_t)exchange->bytes_sent, "bytes_received",
                                (json_int_t)exchange->bytes_received, "measured", "seconds",
                                exchange->end_s - exchange->begin_s);
        if (json_array_append_new(list, row) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}
