/* Writes a trace in the Trace Event Format. */
#include "../../device/files/file_internal.h"
#include "../formats/json_internal.h"
#include "trace_internal.h"

#include <math.h>

enum { MEASURED = 1, MODELLED = 2, RANKS = 3 };   /* processes; those of other ranks than 0 */

typedef struct {
    const CornuTrace *trace;
    json_t           *events;
    int               process;   /* whose events are written */
    double            zero_s;    /* time 0 of the file */
    bool              failed;    /* out of memory */
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

/* Times are rounded to nanoseconds, so that adjacent events do not overlap. Takes args. */
static void add_event(Writer *writer, const CornuTraceEvent *event, json_t *args)
{
    const double begin = round(1e9 * (event->begin_s - writer->zero_s));
    const double end = round(1e9 * (event->end_s - writer->zero_s));
    append_event(writer, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "cat",
                                   event->category, "name", event->name, "pid", writer->process,
                                   "tid", event->track, "ts", 1e-3 * begin, "dur",
                                   1e-3 * (end - begin), "args", args));
}

/* ---- The processes ---- */

static void write_name(void *context, int track, const char *name)
{
    Writer *writer = context;
    add_name(writer, "thread_name", writer->process, track, name);
}

static json_t *describe_step(const CornuTraceEvent *event)
{
    const CornuExecutableStep *step = event->step;
    json_t *args = json_pack("{s:i, s:s, s:s, s:s}", "step", event->index, "scope", step->scope,
                             "kind", step->kind, "clock", cornu_clock_name(event->measured->clock));
    if (step->per_shard) json_object_set_new(args, "shard", json_integer(event->measured->shard));
    return args;
}

static json_t *describe_exchange(const CornuExchangeEvent *exchange)
{
    return json_pack("{s:i, s:i, s:I, s:I}", "begun by step", exchange->begin_step, "ended by step",
                     exchange->end_step, "bytes sent", (json_int_t)exchange->bytes_sent,
                     "bytes received", (json_int_t)exchange->bytes_received);
}

static void write_event(void *context, const CornuTraceEvent *event)
{
    Writer           *writer = context;
    const CornuTrace *trace = writer->trace;
    json_t           *args;
    if (event->measured) args = describe_step(event);
    else if (event->exchange) args = describe_exchange(event->exchange);
    else if (event->op)
        args = json_pack("{s:s, s:s}", "scope", event->step->scope, "bound",
                         cornu_tpu_bound_name(event->op->bound));
    else if (event->whole && trace->step)
        args = json_pack("{s:I, s:I}", "epoch", (json_int_t)trace->epoch, "step",
                         (json_int_t)trace->step);
    else args = json_object();
    add_event(writer, event, args);
}

static CornuStatus add_measured(Writer *writer)
{
    const CornuTrace     *trace = writer->trace;
    const CornuDevice    *device = cornu_executable_device(trace->executable);
    const CornuProcesses *processes = cornu_device_processes(device);
    char                  text[400], rank[40] = "";
    if (cornu_process_count(processes) > 1)
        snprintf(rank, sizeof rank, "rank %d of %d, ", cornu_process_rank(processes),
                 cornu_process_count(processes));
    snprintf(text, sizeof text, "%smeasured: %s | steps timed by %s", rank,
             cornu_device_description(device), cornu_clock_name(trace->events->clock));
    add_name(writer, "process_name", writer->process, 0, text);
    return cornu__trace_measured(trace, &(CornuTraceSink){ .context = writer, .name = write_name,
                                                           .event = write_event });
}

/* The host's dispatch, then the steps in order, while the next batch is fed. */
static CornuStatus add_modelled(Writer *writer)
{
    CornuTpuModel *model;
    CORNU__TRY(cornu__trace_model(writer->trace, &model));
    if (!model) return CORNU_OK;
    char text[64];
    snprintf(text, sizeof text, "modelled: %s, one replica", model->slice.name);
    writer->process = MODELLED;
    add_name(writer, "process_name", MODELLED, 0, text);
    cornu__trace_modelled(writer->trace, model, writer->zero_s,
                          &(CornuTraceSink){ .context = writer, .name = write_name,
                                             .event = write_event });
    cornu_tpu_model_free(model);
    return CORNU_OK;
}

/* ---- The file ---- */

CornuStatus cornu__trace_events(const CornuTrace *trace, double zero_s, json_t **events)
{
    const int rank = cornu_process_rank(
        cornu_device_processes(cornu_executable_device(trace->executable)));
    Writer writer = { .trace = trace, .events = json_array(), .zero_s = zero_s,
                      .process = rank ? RANKS + rank - 1 : MEASURED };
    CornuStatus status = add_measured(&writer);
    if (!status && rank == 0) status = add_modelled(&writer);
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
