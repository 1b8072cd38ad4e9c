#include "xplane_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../device/files/file_internal.h"
#include "../../device/files/protobuf_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/system/clock_internal.h"
#include "../formats/output_internal.h"

/* Fields of the messages, by xplane.proto. */
enum { SPACE_PLANES = 1, SPACE_HOSTNAMES = 4 };
enum { PLANE_ID = 1, PLANE_NAME, PLANE_LINES, PLANE_EVENTS, PLANE_STATS, PLANE_OWN_STATS };
enum { LINE_ID = 1, LINE_NAME, LINE_TIMESTAMP_NS, LINE_EVENTS };
enum { EVENT_METADATA = 1, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS };
enum { METADATA_ID = 1, METADATA_NAME, METADATA_DISPLAY = 4, METADATA_STATS = 5 };
enum { VALUE_METADATA = 1, VALUE_DOUBLE, VALUE_INTEGER = 4, VALUE_TEXT, VALUE_BYTES };
enum { MAP_KEY = 1, MAP_VALUE };
enum { ACCESS = 1, ACCESS_KIND = 1, ACCESS_MEMORY, ACCESS_BYTES };   /* op_metrics.proto */

/* Those that XProf knows have its names. */
#define STATS(X)                                                                        \
    X(STEP_NUM, "step_num") X(GROUP_ID, "group_id") X(STEP_NAME, "step_name")           \
    X(PROGRAM_ID, "program_id") X(RUN_ID, "run_id") X(SYMBOL_ID, "symbol_id")           \
    X(CATEGORY, "hlo_category") X(TF_OP, "tf_op") X(FLOPS, "flops")                     \
    X(MODEL_FLOPS, "model_flops") X(BYTES, "bytes_accessed")                            \
    X(BREAKDOWN, "memory_access_breakdown") X(DEVICE_OFFSET, "device_offset_ps")        \
    X(DEVICE_DURATION, "device_duration_ps") X(DEVICE_TYPE, "device_type_string")       \
    X(PEAK_FLOPS, "peak_teraflops_per_second")                                          \
    X(PEAK_HBM, "peak_hbm_bw_gigabytes_per_second") X(EPOCH, "epoch") X(LAYER, "layer") \
    X(KIND, "kind") X(CLOCK, "clock") X(KERNEL, "kernel") X(SHARD, "shard")             \
    X(SENT, "bytes sent") X(RECEIVED, "bytes received") X(BOUND, "bound")               \
    X(TILES, "tiles") X(USEFUL, "useful multiply-accumulates")                          \
    X(PADDED, "padded multiply-accumulates") X(ORIGIN, "how")

enum {
    NO_STAT,
#define X(id, name) STAT_##id,
    STATS(X)
#undef X
    STAT_COUNT
};

enum { PROGRAM = 1, MOST_NAMES = 4096 };

/* ---- A plane ---- */

/* A plane: its lines are messages of their own until it ends, as events come to them in turn. */
typedef struct {
    CornuMessage *lines;        /* the events of each */
    char        (*called)[64];  /* names of lines */
    int           line_count;
    CornuMessage  events;       /* the entries of its table of events */
    char         *names[MOST_NAMES];
    int           name_count;
    int           first_number; /* of the names: those below it are the caller's */
    int           first_line;   /* of the events that come from a trace */
    double        zero_s;       /* offsets count from it */
    int64_t       step;         /* the step whose events come, from first_step */
    const CornuTrace *trace;
    bool          failed;
} Plane;

static Plane *open_plane(int lines, double zero_s)
{
    Plane *plane = cornu__allocate(1, sizeof *plane);
    if (!plane) return NULL;
    plane->lines = cornu__allocate((size_t)lines, sizeof *plane->lines);
    plane->called = cornu__allocate((size_t)lines, sizeof *plane->called);
    plane->line_count = lines;
    plane->first_number = 1;
    plane->zero_s = zero_s;
    plane->failed = !plane->lines || !plane->called;
    return plane;
}

static void close_plane(Plane *plane)
{
    if (!plane) return;
    for (int i = 0; i < plane->line_count && plane->lines; i++)
        cornu__release(plane->lines[i].bytes);
    for (int i = 0; i < plane->name_count; i++) cornu__release(plane->names[i]);
    cornu__release(plane->lines);
    cornu__release(plane->called);
    cornu__release(plane->events.bytes);
    cornu__release(plane);
}

static size_t begin_entry(CornuMessage *to, int field, int64_t key, size_t *value)
{
    const size_t entry = cornu__begin_field(to, field);
    cornu__put_number(to, MAP_KEY, key);
    *value = cornu__begin_field(to, MAP_VALUE);
    return entry;
}

/* The number of an event's name in the plane's table, with what is shown for it, or NULL. Names
 * beyond the table's space share one. */
static int64_t number_of(Plane *plane, const char *name, const char *shown)
{
    int i = 0;
    while (i < plane->name_count && strcmp(plane->names[i], name) != 0) i++;
    if (i == MOST_NAMES) i--;
    const int64_t number = plane->first_number + i;
    if (i < plane->name_count) return number;
    plane->names[i] = cornu__copy_text(name);
    plane->failed |= !plane->names[i];
    if (plane->failed) return number;
    size_t       value;
    const size_t entry = begin_entry(&plane->events, PLANE_EVENTS, number, &value);
    cornu__put_number(&plane->events, METADATA_ID, number);
    cornu__put_text(&plane->events, METADATA_NAME, name);
    if (shown) cornu__put_text(&plane->events, METADATA_DISPLAY, shown);
    cornu__end_field(&plane->events, value);
    cornu__end_field(&plane->events, entry);
    plane->name_count++;
    return number;
}

static int64_t picoseconds(double seconds) { return (int64_t)llround(1e12 * seconds); }

static void put_integer(CornuMessage *to, int field, int stat, int64_t value)
{
    const size_t begin = cornu__begin_field(to, field);
    cornu__put_number(to, VALUE_METADATA, stat);
    cornu__put_number(to, VALUE_INTEGER, value);
    cornu__end_field(to, begin);
}

static void put_real(CornuMessage *to, int field, int stat, double value)
{
    const size_t begin = cornu__begin_field(to, field);
    cornu__put_number(to, VALUE_METADATA, stat);
    cornu__put_double(to, VALUE_DOUBLE, value);
    cornu__end_field(to, begin);
}

/* Nothing for "". */
static void put_words(CornuMessage *to, int field, int stat, const char *text)
{
    if (!*text) return;
    const size_t begin = cornu__begin_field(to, field);
    cornu__put_number(to, VALUE_METADATA, stat);
    cornu__put_text(to, VALUE_TEXT, text);
    cornu__end_field(to, begin);
}

/* Begins an event, whose stats may follow. */
static size_t begin_event(const Plane *plane, CornuMessage *line, int64_t number, double begin_s,
                          double end_s)
{
    const int64_t from = picoseconds(begin_s - plane->zero_s);
    const size_t  begin = cornu__begin_field(line, LINE_EVENTS);
    cornu__put_number(line, EVENT_METADATA, number);
    cornu__put_number(line, EVENT_OFFSET_PS, from);
    cornu__put_number(line, EVENT_DURATION_PS, picoseconds(end_s - plane->zero_s) - from);
    put_integer(line, EVENT_STATS, STAT_GROUP_ID, plane->step);
    return begin;
}

/* Puts the plane into the space. Time 0 of its lines is zero_ns after 1970. */
static void put_plane(CornuMessage *space, const Plane *plane, int64_t id, const char *name,
                      int64_t zero_ns, const CornuMessage *own)
{
    static const char *const stats[] = {
#define X(id, name) name,
        STATS(X)
#undef X
    };
    const size_t begin = cornu__begin_field(space, SPACE_PLANES);
    size_t       entry, value;
    cornu__put_number(space, PLANE_ID, id);
    cornu__put_text(space, PLANE_NAME, name);
    for (int i = 0; i < plane->line_count; i++) {
        if (!plane->lines[i].size) continue;
        const size_t line = cornu__begin_field(space, PLANE_LINES);
        cornu__put_number(space, LINE_ID, i + 1);
        cornu__put_text(space, LINE_NAME, plane->called[i]);
        cornu__put_number(space, LINE_TIMESTAMP_NS, zero_ns);
        cornu__put(space, plane->lines[i].bytes, plane->lines[i].size);
        cornu__end_field(space, line);
        space->failed |= plane->lines[i].failed;
    }
    cornu__put(space, plane->events.bytes, plane->events.size);
    for (int i = 1; i < STAT_COUNT; i++) {
        entry = begin_entry(space, PLANE_STATS, i, &value);
        cornu__put_number(space, METADATA_ID, i);
        cornu__put_text(space, METADATA_NAME, stats[i - 1]);
        cornu__end_field(space, value);
        cornu__end_field(space, entry);
    }
    if (own) cornu__put(space, own->bytes, own->size);
    cornu__end_field(space, begin);
    space->failed |= plane->failed || plane->events.failed || (own && own->failed);
}

/* ---- Events of a trace ---- */

/* "dense/gradient/matmul:Matmul", as TensorFlow writes the name and type of an op. */
static void print_tf_op(char text[256], const CornuExecutableStep *step)
{
    char first[64];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(step->name, "+"), step->name);
    const int end = snprintf(text, 256, "%.90s%s%.60s:", step->scope, *step->scope ? "/" : "",
                             first);
    snprintf(text + end, 256 - (size_t)end, "%c%.60s", toupper((unsigned char)*first),
             *first ? first + 1 : "");
}

static void name_line(void *context, int track, const char *name)
{
    Plane    *plane = context;
    const int line = plane->first_line + track;
    if (line < plane->line_count)
        snprintf(plane->called[line], sizeof *plane->called, "%s", name);
}

/* Of a step that ran XProf takes the layer and the op from its name. */
static int64_t number_of_event(Plane *plane, const CornuTraceEvent *event)
{
    char tf_op[256];
    if (!event->measured || strcmp(event->category, "step") != 0)
        return number_of(plane, event->name, NULL);
    print_tf_op(tf_op, event->step);
    return number_of(plane, tf_op, event->name);
}

static void add_event(void *context, const CornuTraceEvent *event)
{
    Plane    *plane = context;
    const int at = plane->first_line + event->track;
    if (at >= plane->line_count) return;
    CornuMessage *line = &plane->lines[at];
    const size_t begin = begin_event(plane, line, number_of_event(plane, event), event->begin_s,
                                     event->end_s);
    if (event->whole) put_integer(line, EVENT_STATS, STAT_STEP_NUM, plane->step);
    if (event->whole) put_integer(line, EVENT_STATS, STAT_EPOCH, plane->trace->epoch);
    if (event->step) put_words(line, EVENT_STATS, STAT_LAYER, event->step->scope);
    if (event->measured) {
        put_words(line, EVENT_STATS, STAT_KIND, event->step->kind);
        put_words(line, EVENT_STATS, STAT_KERNEL, event->step->kernel);
        put_words(line, EVENT_STATS, STAT_CLOCK, cornu_clock_name(event->measured->clock));
        put_integer(line, EVENT_STATS, STAT_SHARD, event->measured->shard);
    }
    if (event->exchange) {
        put_integer(line, EVENT_STATS, STAT_SENT, event->exchange->bytes_sent);
        put_integer(line, EVENT_STATS, STAT_RECEIVED, event->exchange->bytes_received);
    }
    if (event->op)
        put_words(line, EVENT_STATS, STAT_BOUND, cornu_tpu_bound_name(event->op->bound));
    cornu__end_field(line, begin);
}

static CornuTraceSink sink_of(Plane *plane)
{
    return (CornuTraceSink){ .context = plane, .name = name_line, .event = add_event };
}

/* ---- The device ---- */

enum { STEPS, MODULES, OPS, UNITS };   /* lines; from UNITS on those of cornu__trace_modelled */

/* XLA's word for what an instruction is. */
static const char *category_of(const CornuExecutableStep *step, const CornuTpuOp *op)
{
    static const char *const exchanges[][2] = {
        { "all_gather", "all-gather" }, { "reduce_scatter", "reduce-scatter" },
        { "all_to_all", "all-to-all" }, { "permute", "collective-permute" },
    };
    if (op->product.count > 0)
        return step->op_count > 1 ? "convolution fusion" : "convolution";
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges && op->link_bytes > 0; i++)
        if (strstr(step->name, exchanges[i][0])) return exchanges[i][1];
    if (op->link_bytes > 0) return "all-reduce";
    return step->op_count > 0 ? "loop fusion" : "data formatting";
}

/* All bytes count as read from HBM: the model keeps one sum. */
static void put_accesses(CornuMessage *to, int64_t bytes)
{
    const size_t stat = cornu__begin_field(to, METADATA_STATS);
    cornu__put_number(to, VALUE_METADATA, STAT_BREAKDOWN);
    const size_t value = cornu__begin_field(to, VALUE_BYTES);
    const size_t access = cornu__begin_field(to, ACCESS);
    cornu__put_number(to, ACCESS_KIND, 1);
    cornu__put_number(to, ACCESS_MEMORY, 1);
    cornu__put_number(to, ACCESS_BYTES, bytes);
    cornu__end_field(to, access);
    cornu__end_field(to, value);
    cornu__end_field(to, stat);
}

/* Step i of the executable as an event of XLA: number i + 1. */
static void describe_op(CornuMessage *to, int i, const CornuExecutableStep *step,
                        const CornuTpuOp *op)
{
    char         tf_op[256], name[300], display[240];
    size_t       value;
    const size_t entry = begin_entry(to, PLANE_EVENTS, i + 1, &value);
    const int64_t flops = 2 * op->useful_macs * (op->passes ? op->passes : 1) + op->vector_ops;
    print_tf_op(tf_op, step);
    snprintf(display, sizeof display, "%.200s.%d", step->name, i);
    snprintf(name, sizeof name, "%%%s = %s", display, category_of(step, op));
    cornu__put_number(to, METADATA_ID, i + 1);
    cornu__put_text(to, METADATA_NAME, name);
    cornu__put_text(to, METADATA_DISPLAY, display);
    put_integer(to, METADATA_STATS, STAT_PROGRAM_ID, PROGRAM);
    put_integer(to, METADATA_STATS, STAT_SYMBOL_ID, i + 1);
    put_words(to, METADATA_STATS, STAT_CATEGORY, category_of(step, op));
    put_words(to, METADATA_STATS, STAT_TF_OP, tf_op);
    put_integer(to, METADATA_STATS, STAT_FLOPS, flops);
    put_integer(to, METADATA_STATS, STAT_MODEL_FLOPS, 2 * op->useful_macs + op->vector_ops);
    put_integer(to, METADATA_STATS, STAT_BYTES, op->hbm_bytes);
    put_accesses(to, op->hbm_bytes);
    put_words(to, METADATA_STATS, STAT_LAYER, step->scope);
    put_words(to, METADATA_STATS, STAT_BOUND, cornu_tpu_bound_name(op->bound));
    put_integer(to, METADATA_STATS, STAT_TILES, op->cycles.folds);
    put_integer(to, METADATA_STATS, STAT_USEFUL, op->useful_macs);
    put_integer(to, METADATA_STATS, STAT_PADDED, op->cycles.padded_macs);
    put_words(to, METADATA_STATS, STAT_ORIGIN, "modelled");
    cornu__end_field(to, value);
    cornu__end_field(to, entry);
}

static void end_device_event(CornuMessage *line, size_t begin, double offset_s, double seconds)
{
    put_integer(line, EVENT_STATS, STAT_DEVICE_OFFSET, picoseconds(offset_s));
    put_integer(line, EVENT_STATS, STAT_DEVICE_DURATION, picoseconds(seconds));
    cornu__end_field(line, begin);
}

/* A step that begins then: the host's dispatch, the module, and in it its ops. */
static void add_device_step(Plane *plane, const CornuTpuModel *model, int ops, double begin_s)
{
    CornuMessage *steps = &plane->lines[STEPS], *modules = &plane->lines[MODULES];
    CornuMessage *line = &plane->lines[OPS];
    const double  zero = plane->zero_s, busy_s = model->step_s - model->dispatch_s;
    double        op_s = begin_s + model->dispatch_s;
    char          name[32];
    snprintf(name, sizeof name, "%lld", (long long)plane->step);
    size_t begin = begin_event(plane, steps, number_of(plane, name, NULL), begin_s,
                               begin_s + model->step_s);
    put_words(steps, EVENT_STATS, STAT_STEP_NAME, name);
    put_integer(steps, EVENT_STATS, STAT_STEP_NUM, plane->step);
    end_device_event(steps, begin, begin_s - zero, model->step_s);

    begin = begin_event(plane, modules, number_of(plane, "training_step(1)", NULL), op_s,
                        op_s + busy_s);
    put_integer(modules, EVENT_STATS, STAT_PROGRAM_ID, PROGRAM);
    put_integer(modules, EVENT_STATS, STAT_RUN_ID, plane->step);
    end_device_event(modules, begin, op_s - zero, busy_s);
    for (int i = 0; i < ops; i++) {
        const double seconds = model->ops[i].seconds;
        if (!(seconds > 0.0)) continue;
        begin = begin_event(plane, line, i + 1, op_s, op_s + seconds);
        end_device_event(line, begin, op_s - zero, seconds);
        op_s += seconds;
    }
}

/* What the plane says of the TPU: one replica. */
static void describe_device(CornuMessage *own, const CornuTpuModel *model)
{
    const CornuTpuProfile *profile = model->profile;
    char                   name[64];
    snprintf(name, sizeof name, "TPU %.*s (modelled)", (int)strcspn(profile->name, "-"),
             profile->name);
    put_words(own, PLANE_OWN_STATS, STAT_DEVICE_TYPE, name);
    put_real(own, PLANE_OWN_STATS, STAT_PEAK_FLOPS,
             2e-12 * profile->mxu_rows.value * profile->mxu_columns.value *
                 (double)cornu_tpu_replica_mxus(profile) * 1e6 * profile->clock_mhz.value);
    put_real(own, PLANE_OWN_STATS, STAT_PEAK_HBM, 1e-9 * cornu_tpu_replica_hbm_rate(profile));
}

static void fill_device(Plane *plane, const CornuTrace *trace, const CornuTpuModel *model,
                        int count, int64_t first_step)
{
    int                        ops;
    const CornuExecutableStep *steps = cornu_executable_steps(trace->executable, &ops);
    const CornuTraceSink       sink = sink_of(plane);
    for (int i = 0; i < ops; i++) describe_op(&plane->events, i, &steps[i], &model->ops[i]);
    plane->first_number = ops + 1;
    name_line(plane, STEPS, "Steps");
    name_line(plane, MODULES, "XLA Modules");
    name_line(plane, OPS, "XLA Ops");
    plane->first_line = UNITS;
    for (int i = 0; i < count; i++) {
        const double begin_s = plane->zero_s + i * model->step_s;
        plane->step = first_step + i;
        add_device_step(plane, model, ops, begin_s);
        cornu__trace_modelled(trace, model, begin_s, &sink);
    }
}

/* ---- The planes ---- */

static CornuStatus put_host(CornuMessage *space, CornuTrace *const *traces, int count,
                            int64_t first_step, int64_t zero_ns)
{
    const CornuDevice   *device = cornu_executable_device(traces[0]->executable);
    Plane               *plane = open_plane(cornu_device_threads(device) + 1,
                                            cornu__trace_begin(traces[0]));
    CornuStatus          status = plane && !plane->failed ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; i < count && !status; i++) {
        const CornuTraceSink sink = sink_of(plane);
        plane->trace = traces[i];
        plane->step = first_step + i;
        status = cornu__trace_measured(traces[i], &sink);
    }
    if (!status) put_plane(space, plane, 1, "/host:CPU", zero_ns, NULL);
    close_plane(plane);
    return status;
}

static CornuStatus put_device(CornuMessage *space, CornuTrace *const *traces, int count,
                              int64_t first_step, int64_t zero_ns, const CornuTpuModel *model)
{
    Plane       *plane = open_plane(UNITS + CORNU_TRACE_UNITS, cornu__trace_begin(traces[0]));
    CornuMessage own = { 0 };
    CornuStatus  status = plane && !plane->failed ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status) {
        describe_device(&own, model);
        fill_device(plane, traces[0], model, count, first_step);
        put_plane(space, plane, 2, "/device:TPU:0", zero_ns, &own);
    }
    cornu__release(own.bytes);
    close_plane(plane);
    return status;
}

/* ---- The file ---- */

/* When a time of this machine's clock was, in nanoseconds since 1970. */
static int64_t since_1970(double seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec -
           (int64_t)(1e9 * (cornu__seconds() - seconds));
}

static CornuStatus write_space(const CornuMessage *space, const char *host, const char *folder)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.xplane.pb", folder, host) >= (int)sizeof path)
        return cornu__fail(CORNU_ERR_FILE, "%.200s…: the path is longer than %d bytes", folder,
                           (int)sizeof path - 1);
    CornuNewFile file;
    CORNU__TRY(cornu__output_folders_above(path));
    CORNU__TRY(cornu__file_create(&file, path));
    fwrite(space->bytes, 1, space->size, file.stream);
    return cornu__file_commit(&file);
}

CornuStatus cornu__xplane_write(CornuTrace *const *traces, int count, int64_t first_step,
                                const char *folder)
{
    char           host[256] = "localhost";
    CornuMessage   space = { 0 };
    CornuTpuModel *model;
    const int64_t  zero_ns = since_1970(cornu__trace_begin(traces[0]));
    gethostname(host, sizeof host - 1);
    CORNU__TRY(cornu__trace_model(traces[0], &model));
    CornuStatus status = put_host(&space, traces, count, first_step, zero_ns);
    if (!status && model)
        status = put_device(&space, traces, count, first_step, zero_ns, model);
    cornu__put_text(&space, SPACE_HOSTNAMES, host);
    if (!status && space.failed)
        status = cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for the profile", folder);
    if (!status) status = write_space(&space, host, folder);
    cornu_tpu_model_free(model);
    cornu__release(space.bytes);
    return status;
}
