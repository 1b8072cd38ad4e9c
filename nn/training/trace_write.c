/* Writes a trace in the Trace Event Format. */
#include "../../device/memory_internal.h"
#include "../../device/tpu/model.h"
#include "../../device/files/file_internal.h"
#include "../formats/json_internal.h"
#include "trace_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEASURED = 1, MODELLED = 2, RANKS = 3 };   /* processes; those of other ranks than 0 */

typedef struct {
    json_t *events;
    int     measured;  /* the process */
    double  zero_s;    /* time 0 of the file */
    bool    failed;    /* out of memory */
} Writer;

static void append_event(Writer *writer, json_t *event)
{
    if (json_array_append_new(writer->events, event)) writer->failed = true;
}

/* "process_name" or "thread_name". */
static void add_name(Writer *writer, const char *what, int process, int thread, const char *name)
{
    append_event(writer, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", what, "pid",
                                   process, "tid", thread, "args", "name", name));
}

/* An event of a track. Times are rounded to nanoseconds, so that adjacent events do not overlap.
 * Takes args. */
static void add_event(Writer *writer, int process, int thread, const char *category,
                      const char *name, double begin_s, double end_s, json_t *args)
{
    const double begin = round(1e9 * (begin_s - writer->zero_s));
    const double end = round(1e9 * (end_s - writer->zero_s));
    append_event(writer, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "cat",
                                   category, "name", name, "pid", process, "tid", thread, "ts",
                                   1e-3 * begin, "dur", 1e-3 * (end - begin), "args", args));
}

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
    const CornuExecutableStep *steps;
    int                       *segment;   /* of each step: 0 if it runs once, else counted from 1 */
    const CornuStepEvent     **order;     /* the events of one thread, by time */
    int                        threads, event_count;
} Run;

static CornuStatus open_run(Run *run, const CornuTrace *trace)
{
    int count;
    *run = (Run){ .trace = trace, .steps = cornu_executable_steps(trace->executable, &count),
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

/* Whether this thread runs a part of another thread's step. */
static bool is_part(const CornuStepEvent *event)
{
    const CornuStepEvent *first = event - event->thread;
    while (first->begin_s == 0.0) first++;
    return first != event;
}

static void add_step_event(Writer *writer, const Run *run, const CornuStepEvent *event)
{
    const CornuExecutableStep *step = &run->steps[event->step];
    json_t *args = json_pack("{s:i, s:s, s:s, s:s}", "step", event->step, "scope", step->scope,
                             "kind", step->kind, "clock", cornu_clock_name(event->clock));
    if (step->per_shard) json_object_set_new(args, "shard", json_integer(event->shard));
    add_event(writer, writer->measured, event->thread, is_part(event) ? "part" : "step", step->name,
              event->begin_s, event->end_s, args);
}

/* The steps on one thread, each run of steps of one shard's segment inside an event of it. */
static void add_thread(Writer *writer, Run *run, int thread)
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
            add_event(writer, writer->measured, thread, "segment", name, first->begin_s,
                      run->order[end - 1]->end_s, json_object());
        }
        for (int k = i; k < end; k++) add_step_event(writer, run, run->order[k]);
    }
}

/* ---- Exchanges with other processes ---- */

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
static void add_exchanges(Writer *writer, const CornuTrace *trace, int track)
{
    if (trace->exchange_count == 0) return;
    add_name(writer, "thread_name", writer->measured, track, "exchanges");
    for (int i = 0; i < trace->exchange_count; i++) {
        const CornuExchangeEvent *exchange = &trace->exchanges[i];
        if (!is_shown(trace, exchange)) continue;
        add_event(writer, writer->measured, track, "exchange", exchange->name, exchange->begin_s,
                  exchange->end_s,
                  json_pack("{s:i, s:i, s:I, s:I}", "begun by step", exchange->begin_step,
                            "ended by step", exchange->end_step, "bytes sent",
                            (json_int_t)exchange->bytes_sent, "bytes received",
                            (json_int_t)exchange->bytes_received));
    }
}

static CornuStatus add_measured(Writer *writer, const CornuTrace *trace)
{
    const CornuDevice    *device = cornu_executable_device(trace->executable);
    const CornuProcesses *processes = cornu_device_processes(device);
    const CornuPhase     *first = &trace->phases[0], *last = first + trace->phase_count - 1;
    char                  text[400], rank[40] = "";
    Run                   run;
    if (cornu_process_count(processes) > 1)
        snprintf(rank, sizeof rank, "rank %d of %d, ", cornu_process_rank(processes),
                 cornu_process_count(processes));
    snprintf(text, sizeof text, "%smeasured: %s | steps timed by %s", rank,
             cornu_device_description(device), cornu_clock_name(trace->events->clock));
    add_name(writer, "process_name", writer->measured, 0, text);
    add_event(writer, writer->measured, 0, "host", "training step", first->begin_s, last->end_s,
              trace->step ? json_pack("{s:I, s:I}", "epoch", (json_int_t)trace->epoch, "step",
                                      (json_int_t)trace->step) : json_object());
    for (int i = 0; i < trace->phase_count; i++)
        add_event(writer, writer->measured, 0, "host", trace->phases[i].name,
                  trace->phases[i].begin_s, trace->phases[i].end_s, json_object());
    CornuStatus status = open_run(&run, trace);
    for (int thread = 0; !status && thread < run.threads; thread++) {
        snprintf(text, sizeof text, "thread %d%s", thread, thread ? "" : ", the program's own");
        add_name(writer, "thread_name", writer->measured, thread, text);
        add_thread(writer, &run, thread);
    }
    if (!status) add_exchanges(writer, trace, run.threads);
    close_run(&run);
    return status;
}

/* ---- Modelled ---- */

enum { MXU, VECTOR, HBM, LINKS, INFEED, HOST, UNITS };

static void add_unit(Writer *writer, int unit, const CornuExecutableStep *step, double begin_s,
                     double seconds, CornuTpuBound bound)
{
    if (seconds > 0.0)
        add_event(writer, MODELLED, unit, "modelled", step->name, begin_s, begin_s + seconds,
                  json_pack("{s:s, s:s}", "scope", step->scope, "bound",
                            cornu_tpu_bound_name(bound)));
}

/* The host's dispatch, then the steps in order, while the next batch is fed. */
static CornuStatus add_modelled(Writer *writer, const CornuExecutable *executable)
{
    static const char *const units[UNITS] = { "MXU", "vector unit", "HBM", "links", "infeed",
                                              "host" };
    if (!cornu_device_profile(cornu_executable_device(executable))) return CORNU_OK;
    CornuTpuModel *model = cornu_tpu_model(.executable = executable,
                                           .passes = CORNU_TPU_HIGHEST);
    if (!model) return cornu_error_take();
    char text[64];
    snprintf(text, sizeof text, "modelled: %s, one replica", model->slice.name);
    add_name(writer, "process_name", MODELLED, 0, text);
    for (int i = 0; i < UNITS; i++) add_name(writer, "thread_name", MODELLED, i, units[i]);
    int                        count;
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    double                     at = writer->zero_s;
    add_event(writer, MODELLED, HOST, "modelled", "dispatch", at, at + model->dispatch_s,
              json_object());
    at += model->dispatch_s;
    add_event(writer, MODELLED, INFEED, "modelled", "infeed", at, at + model->infeed_s,
              json_object());
    for (int i = 0; i < count; i++) {
        const CornuTpuOp *op = &model->ops[i];
        add_unit(writer, MXU, &steps[i], at, op->mxu_s, op->bound);
        add_unit(writer, VECTOR, &steps[i], at, op->vector_s, op->bound);
        add_unit(writer, HBM, &steps[i], at, op->hbm_s, op->bound);
        add_unit(writer, LINKS, &steps[i], at, op->links_s, op->bound);
        at += op->seconds;
    }
    cornu_tpu_model_free(model);
    return CORNU_OK;
}

/* ---- The file ---- */

CornuStatus cornu__trace_events(const CornuTrace *trace, double zero_s, json_t **events)
{
    const int rank = cornu_process_rank(
        cornu_device_processes(cornu_executable_device(trace->executable)));
    Writer writer = { .events = json_array(), .zero_s = zero_s,
                      .measured = rank ? RANKS + rank - 1 : MEASURED };
    CornuStatus status = add_measured(&writer, trace);
    if (!status && rank == 0) status = add_modelled(&writer, trace->executable);
    if (!status && writer.failed)
        status = cornu__fail(CORNU_ERR_MEMORY, "no memory for the trace, or a name in it is not "
                             "UTF-8");
    *events = writer.events;
    return status;
}

CornuStatus cornu__trace_write_events(json_t *events, const char *path)
{
    json_t *file = json_pack("{s:s, s:O}", "displayTimeUnit", "ms", "traceEvents", events);
    if (!file) return cornu__fail(CORNU_ERR_MEMORY, "no memory for the trace");
    CornuNewFile to;
    CornuStatus  status = cornu__file_create(&to, path);
    if (!status) {
        json_dumpf(file, to.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
        fputc('\n', to.stream);
        status = cornu__file_commit(&to);
    }
    json_decref(file);
    return status;
}

CornuStatus cornu_trace_write(const CornuTrace *trace, const char *path)
{
    CORNU__NEED(trace);
    CORNU__NEED(path);
    if (!trace->ended || !trace->events)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the traced step %s", path,
                           trace->events ? "has not ended" : "ran nothing");
    json_t     *events;
    CornuStatus status = cornu__trace_events(trace, cornu__trace_begin(trace), &events);
    if (status) cornu__fail_prefix(status, path);
    else status = cornu__trace_write_events(events, path);
    json_decref(events);
    return status;
}
