/* What a trace has, in the order in which its files have it. */
#include "../../device/memory_internal.h"
#include "trace_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Measured ---- */

static int by_begin(const void *a, const void *b)
{
    const double x = (*(const CornuStepEvent *const *)a)->begin_s;
    const double y = (*(const CornuStepEvent *const *)b)->begin_s;
    return (x > y) - (x < y);
}

/* The events of one run of an executable. */
typedef struct {
    const CornuTrace          *trace;
    const CornuTraceSink      *sink;
    const CornuExecutableStep *steps;
    int                       *segment;   /* of each step: 0 if it runs once, else counted from 1 */
    const CornuStepEvent     **order;     /* the events of one thread, by time */
    int                        threads, event_count;
} Run;

static CornuStatus open_run(Run *run, const CornuTrace *trace, const CornuTraceSink *sink)
{
    int count;
    *run = (Run){ .trace = trace, .sink = sink,
                  .steps = cornu_executable_steps(trace->executable, &count),
                  .threads = cornu_device_threads(cornu_executable_device(trace->executable)),
                  .event_count = cornu_executable_event_count(trace->executable) };
    run->segment = cornu__allocate((size_t)count, sizeof *run->segment);
    run->order = cornu__allocate((size_t)run->event_count, sizeof(CornuStepEvent *));
    if (!run->segment || !run->order) return CORNU_ERR_MEMORY;
    for (int i = 0, segment = 0; i < count; i++) {
        if (!run->steps[i].per_shard) continue;
        segment += i == 0 || !run->steps[i - 1].per_shard;
        run->segment[i] = segment;
    }
    return CORNU_OK;
}

static void close_run(Run *run)
{
    cornu__release(run->segment);
    cornu__release((void *)run->order);
}

static void put_event(const CornuTraceSink *sink, CornuTraceEvent event)
{
    sink->event(sink->context, &event);
}

/* Whether this thread runs a part of another thread's step. */
static bool is_part(const CornuStepEvent *event)
{
    const CornuStepEvent *first = event - event->thread;
    while (first->begin_s == 0.0) first++;
    return first != event;
}

static void put_step(const Run *run, const CornuStepEvent *event)
{
    const CornuExecutableStep *step = &run->steps[event->step];
    put_event(run->sink, (CornuTraceEvent){
        .track = event->thread, .category = is_part(event) ? "part" : "step", .name = step->name,
        .begin_s = event->begin_s, .end_s = event->end_s, .index = event->step, .step = step,
        .measured = event });
}

/* The steps on one thread, each run of steps of one shard's segment inside an event of it. */
static void put_thread(Run *run, int thread)
{
    int count = 0;
    for (int i = thread; i < run->event_count; i += run->threads)
        if (run->trace->events[i].begin_s > 0.0) run->order[count++] = &run->trace->events[i];
    qsort((void *)run->order, (size_t)count, sizeof(CornuStepEvent *), by_begin);
    for (int i = 0, end; i < count; i = end) {
        const CornuStepEvent *first = run->order[i];
        const int             segment = run->segment[first->step];
        for (end = i + 1; end < count && segment > 0; end++)
            if (run->segment[run->order[end]->step] != segment ||
                run->order[end]->shard != first->shard)
                break;
        if (segment > 0) {
            char name[64];
            snprintf(name, sizeof name, "segment %d, shard %d", segment, first->shard);
            put_event(run->sink, (CornuTraceEvent){
                .track = thread, .category = "segment", .name = name, .begin_s = first->begin_s,
                .end_s = run->order[end - 1]->end_s });
        }
        for (int k = i; k < end; k++) put_step(run, run->order[k]);
    }
}

/* The last one of each, unless it was over long before the step. */
static bool is_shown(const CornuTrace *trace, const CornuExchangeEvent *exchange)
{
    const double begin = trace->phases[0].begin_s;
    const double seconds = trace->phases[trace->phase_count - 1].end_s - begin;
    return exchange->begin_s > 0.0 && exchange->end_s > begin - seconds;
}

double cornu__trace_begin(const CornuTrace *trace)
{
    double begin = trace->phases[0].begin_s;
    for (int i = 0; i < trace->exchange_count; i++)
        if (is_shown(trace, &trace->exchanges[i]))
            begin = fmin(begin, trace->exchanges[i].begin_s);
    return begin;
}

/* Exchanges between processes get a track of their own. */
static void put_exchanges(const CornuTrace *trace, int track, const CornuTraceSink *sink)
{
    if (trace->exchange_count == 0) return;
    sink->name(sink->context, track, "exchanges");
    for (int i = 0; i < trace->exchange_count; i++) {
        const CornuExchangeEvent *exchange = &trace->exchanges[i];
        if (is_shown(trace, exchange))
            put_event(sink, (CornuTraceEvent){
                .track = track, .category = "exchange", .name = exchange->name,
                .begin_s = exchange->begin_s, .end_s = exchange->end_s, .exchange = exchange });
    }
}

CornuStatus cornu__trace_measured(const CornuTrace *trace, const CornuTraceSink *sink)
{
    const CornuPhase *first = &trace->phases[0], *last = first + trace->phase_count - 1;
    Run               run;
    put_event(sink, (CornuTraceEvent){ .category = "host", .name = "training step", .whole = true,
                                       .begin_s = first->begin_s, .end_s = last->end_s });
    for (int i = 0; i < trace->phase_count; i++)
        put_event(sink, (CornuTraceEvent){ .category = "host", .name = trace->phases[i].name,
                                           .begin_s = trace->phases[i].begin_s,
                                           .end_s = trace->phases[i].end_s });
    CornuStatus status = open_run(&run, trace, sink);
    for (int thread = 0; !status && thread < run.threads; thread++) {
        char text[64];
        snprintf(text, sizeof text, "thread %d%s", thread, thread ? "" : ", the program's own");
        sink->name(sink->context, thread, text);
        put_thread(&run, thread);
    }
    if (!status) put_exchanges(trace, run.threads, sink);
    close_run(&run);
    return status;
}

/* ---- Modelled ---- */

CornuStatus cornu__trace_model(const CornuTrace *trace, CornuTpuModel **model)
{
    const CornuDevice *device = cornu_executable_device(trace->executable);
    *model = NULL;
    if (!cornu_device_profile(device)) return CORNU_OK;
    *model = cornu_tpu_model(.executable = trace->executable,
                             .passes = cornu_tpu_passes(cornu_device_precision(device)));
    return *model ? CORNU_OK : cornu_error_take();
}

static void put_unit(const CornuTraceSink *sink, int unit, double seconds, CornuTraceEvent event)
{
    if (!(seconds > 0.0)) return;
    event.track = unit;
    event.end_s = event.begin_s + seconds;
    put_event(sink, event);
}

void cornu__trace_modelled(const CornuTrace *trace, const CornuTpuModel *model, double begin_s,
                           const CornuTraceSink *sink)
{
    static const char *const units[CORNU_TRACE_UNITS] = { "MXU", "vector unit", "HBM", "links",
                                                          "infeed", "host" };
    for (int i = 0; i < CORNU_TRACE_UNITS; i++) sink->name(sink->context, i, units[i]);
    int                        count;
    const CornuExecutableStep *steps = cornu_executable_steps(trace->executable, &count);
    CornuTraceEvent            event = { .category = "modelled", .name = "dispatch",
                                         .begin_s = begin_s };
    put_event(sink, (CornuTraceEvent){ .track = CORNU_TRACE_HOST, .category = "modelled",
                                       .name = "dispatch", .begin_s = begin_s,
                                       .end_s = begin_s + model->dispatch_s });
    event.begin_s += model->dispatch_s;
    put_event(sink, (CornuTraceEvent){ .track = CORNU_TRACE_INFEED, .category = "modelled",
                                       .name = "infeed", .begin_s = event.begin_s,
                                       .end_s = event.begin_s + model->infeed_s });
    for (int i = 0; i < count; i++) {
        const CornuTpuOp *op = &model->ops[i];
        event.name = steps[i].name;
        event.index = i;
        event.step = &steps[i];
        event.op = op;
        put_unit(sink, CORNU_TRACE_MXU, op->mxu_s, event);
        put_unit(sink, CORNU_TRACE_VECTOR, op->vector_s, event);
        put_unit(sink, CORNU_TRACE_HBM, op->hbm_s, event);
        put_unit(sink, CORNU_TRACE_LINKS, op->links_s, event);
        event.begin_s += op->seconds;
    }
}
