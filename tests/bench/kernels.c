/*
 * Every kernel of the networks' training steps, timed within the step: on that device, with the
 * same shapes and after the same kernels. So no list is kept by hand, packing and conversions are
 * steps of their own, and operands are in the cache if they are in training.
 *
 * A process chooses its instruction set once (BLIS does so when it starts), so each is measured by
 * a child, this program with CORNU_ISA set, which writes its rows to a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../device/host/machine/cpu.h"
#include "products.h"
#include "subject.h"
#include "work.h"

/* ---- In the steps ---- */

enum { MOST_KEPT = 200 };

typedef struct {
    Subject         subject;
    int             steps, runs;
    CornuStepEvent *events;
    double         *shares;      /* run r has those from r * steps on */
} Recorder;

static CornuStatus open_recorder(Recorder *r, const SubjectConfig *config)
{
    *r = (Recorder){ .steps = 0 };
    CornuStatus status = subject_open(&r->subject, config);
    if (status) return status;
    cornu_executable_steps(r->subject.executable, &r->steps);
    r->events = calloc((size_t)cornu_executable_event_count(r->subject.executable) + 1,
                       sizeof *r->events);
    r->shares = calloc((size_t)r->steps * MOST_KEPT + 1, sizeof *r->shares);
    if (!r->events || !r->shares) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for times");
    cornu_executable_record(r->subject.executable, r->events);
    return CORNU_OK;
}

static void close_recorder(Recorder *r)
{
    subject_close(&r->subject);
    free(r->events);
    free(r->shares);
}

static CornuStatus run(void *context)
{
    Recorder   *r = context;
    CornuStatus status = subject_train(&r->subject);
    cornu_executable_shares(r->subject.executable, r->events,
                            r->shares + (size_t)(r->runs++ % MOST_KEPT) * (size_t)r->steps);
    return status;
}

static double median(const Recorder *r, int step)
{
    double    sorted[MOST_KEPT];
    const int count = r->runs < MOST_KEPT ? r->runs : MOST_KEPT;
    for (int i = 0; i < count; i++) sorted[i] = r->shares[i * r->steps + step];
    bench_sort(sorted, count);
    return sorted[count / 2];
}

static json_t *pack_types(const CornuType *types, int count)
{
    CornuText text;
    json_t   *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_string(cornu_type_print(&text, types[i])));
    return list;
}

static json_t *pack_step(const Recorder *r, int number)
{
    int                        count;
    const Subject             *s = &r->subject;
    const CornuExecutableStep *step = &cornu_executable_steps(s->executable, &count)[number];
    const Work                 work = work_of(s->executable, step);
    const WorkClass class = work_class(cornu_executable_program(s->executable), step);
    return json_pack("{sssssssIsisisssssssssfsfsfsfsbsoso}", "isa",
                     cornu__isa_name(cornu__isa_in_use()), "model", s->config.model, "device",
                     s->config.device, "batch", (json_int_t)s->config.batch, "shards",
                     subject_shards(s), "step", number, "layer", step->scope, "name", step->name,
                     "kind", step->kind, "class", work_class_name(class), "us",
                     1e6 * median(r, number), "gflop", 1e-9 * work.flops, "mb", 1e-6 * work.bytes,
                     "near_mb", 1e-6 * work.near_bytes, "bf16", (int)work.bf16, "in",
                     pack_types(step->in, step->in_count), "out",
                     pack_types(step->out, step->out_count));
}

static CornuStatus measure(Bench *bench, const char *model, int64_t batch)
{
    static BenchCase cases[SUBJECT_MOST];
    Recorder         recorders[SUBJECT_MOST] = { { .steps = 0 } };
    SubjectConfig    configs[SUBJECT_MOST];
    CornuStatus      status = CORNU_OK;
    const int        count = subject_own_configs(bench->devices, &(SubjectConfig){
        .model = model, .batch = batch }, configs);
    for (int i = 0; i < count && !status; i++) {
        status = open_recorder(&recorders[i], &configs[i]);
        cases[i] = (BenchCase){ .run = run, .context = &recorders[i] };
    }
    if (!status) status = bench_alternate(cases, count, bench->seconds);
    for (int i = 0; i < count && !status; i++)
        for (int k = 0; k < recorders[i].steps; k++)
            json_array_append_new(bench_rows(bench, "kernels"), pack_step(&recorders[i], k));
    for (int i = 0; i < count; i++) close_recorder(&recorders[i]);
    return status;
}

static CornuStatus measure_here(Bench *bench)
{
    int64_t     batches[BENCH_MOST_NUMBERS];
    const int   count = bench_numbers(bench->batches ? bench->batches : "128", batches);
    CornuStatus status = products_measure(bench);
    for (int i = 0; subject_model(i); i++)
        for (int k = 0; k < count && subject_wanted(bench->models, subject_model(i)); k++)
            if (!status) status = measure(bench, subject_model(i), batches[k]);
    return status;
}

/* ---- A child for each instruction set ---- */

static void become(const Bench *bench, const char *isa, const char *file)
{
    char        seconds[32];
    const char *arguments[16] = { "bench", "--filter", "kernels", "--json", file, "--seconds",
                                  seconds };
    int         count = 7;
    snprintf(seconds, sizeof seconds, "%g", bench->seconds);
    if (bench->models) arguments[count++] = "--models", arguments[count++] = bench->models;
    if (bench->devices) arguments[count++] = "--devices", arguments[count++] = bench->devices;
    if (bench->batches) arguments[count++] = "--batches", arguments[count++] = bench->batches;
    const int nothing = open("/dev/null", O_WRONLY);
    if (nothing >= 0) dup2(nothing, STDOUT_FILENO);
    setenv("CORNU_ISA", isa, 1);
    execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static CornuStatus run_child(Bench *bench, const char *isa)
{
    char      file[] = "/tmp/cornu-bench-XXXXXX";
    const int descriptor = mkstemp(file);
    if (descriptor < 0)
        return cornu_error_set(CORNU_ERR_FILE, "%s: %s", file, strerror(errno));
    close(descriptor);
    fprintf(stderr, "  %s\n", isa);
    int         result = -1;
    const pid_t child = fork();
    if (child == 0) become(bench, isa, file);
    if (child > 0) waitpid(child, &result, 0);
    json_t *page = result == 0 ? json_load_file(file, 0, NULL) : NULL;
    unlink(file);
    if (!page)
        return cornu_error_set(CORNU_ERR_DEVICE, "kernels of %s could not be measured", isa);
    json_array_extend(bench_rows(bench, "kernels"), json_object_get(page, "kernels"));
    json_decref(page);
    return CORNU_OK;
}

CornuStatus bench_kernels(Bench *bench)
{
    const char *isa = getenv("CORNU_ISA");
    CornuStatus status = CORNU_OK;
    if (isa && *isa) return measure_here(bench);
    for (int i = (int)cornu__cpu()->best; i >= 0 && !status; i--)
        if (bench_listed(bench->isas, cornu__isa_name((CornuIsa)i)))
            status = run_child(bench, cornu__isa_name((CornuIsa)i));
    return status;
}

/* ---- Printing ---- */

/* The children have computed these with their own limits. */
static void set_percent(const BenchLimits *limits, json_t *row)
{
    const double seconds = 1e-6 * bench_number(row, "us");
    const Work   work = { .flops = 1e9 * bench_number(row, "gflop"),
                          .bytes = 1e6 * bench_number(row, "mb"),
                          .near_bytes = 1e6 * bench_number(row, "near_mb"),
                          .bf16 = json_is_true(json_object_get(row, "bf16")) };
    if (json_object_get(row, "percent") || seconds <= 0.0) return;
    json_object_set_new(row, "gflops", json_real(1e-9 * work.flops / seconds));
    json_object_set_new(row, "gb_per_s", json_real(1e-9 * work.bytes / seconds));
    json_object_set_new(row, "percent",
                        json_real(100.0 * work_bound(limits, work) / seconds));
}

/* Whether two rows have the same title. */
static bool together(const json_t *a, const json_t *b)
{
    return a && !strcmp(bench_text(a, "isa"), bench_text(b, "isa")) &&
           !strcmp(bench_text(a, "model"), bench_text(b, "model")) &&
           !strcmp(bench_text(a, "device"), bench_text(b, "device")) &&
           bench_number(a, "batch") == bench_number(b, "batch");
}

static double time_from(const json_t *rows, size_t first)
{
    double us = 0.0;
    for (size_t i = first; i < json_array_size(rows); i++) {
        if (!together(json_array_get(rows, first), json_array_get(rows, i))) break;
        us += bench_number(json_array_get(rows, i), "us");
    }
    return us;
}

static void print_row(const json_t *row)
{
    const json_t *out = json_array_get(json_object_get(row, "out"), 0);
    printf("    %-24.24s %-34.34s %-26.26s %10.1f %8.1f %8.1f %6.1f%%\n", bench_text(row, "layer"),
           bench_text(row, "name"), out ? json_string_value(out) : "", bench_number(row, "us"),
           bench_number(row, "gflops"), bench_number(row, "gb_per_s"),
           bench_number(row, "percent"));
}

void bench_kernels_print(const Bench *bench)
{
    const BenchLimits *limits = bench_limits_of(bench, cornu__cpu_threads());
    const json_t      *rows = bench_rows(bench, "kernels"), *before = NULL;
    double             all = 0.0, rest = 0.0;
    printf("\nkernels: in the training steps, of all shards; those from 1 %% of a step (--json has "
           "all);\npart of the limit: that of arithmetic in registers, or of reading from the "
           "nearest cache that\nholds what is read and written, whichever rules; of the same "
           "instruction set\n    %-24s %-34s %-26s %10s %8s %8s %7s\n", "layer", "kernel", "result",
           "us", "GFLOP/s", "GB/s", "limit");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        set_percent(limits, row);
        if (!together(before, row)) {
            if (rest > 0.0) printf("    %-24s %-34s %-26s %10.1f\n", "", "the others", "", rest);
            all = time_from(rows, i), rest = 0.0;
            printf("  %s, %s on %s", bench_text(row, "isa"), bench_text(row, "model"),
                   bench_text(row, "device"));
            if (json_object_get(row, "batch"))
                printf(", batch %.0f, %.0f shards", bench_number(row, "batch"),
                       bench_number(row, "shards"));
            printf("\n");
        }
        before = row;
        const bool in_step = json_object_get(row, "step") != NULL;
        if (!in_step || bench_number(row, "us") >= 0.01 * all) print_row(row);
        else rest += bench_number(row, "us");
    }
    if (rest > 0.0) printf("    %-24s %-34s %-26s %10.1f\n", "", "the others", "", rest);
}
