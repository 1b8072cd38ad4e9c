/*
 * Whole training steps on synthetic data, with the programs that fit runs: feed, forward, loss,
 * backward, optimizer, metrics.
 *
 * The arithmetic that is needed (work.h), in GFLOP, is 1.54 for mnist_convnet with 128 samples,
 * 14.5 for mnist_cnn with 1024, 44.2 and 354 for fashion_mnist_cnn with 128 and 1024, 254 for
 * shakespeare_lstm with 128. Products are 1.53, 14.4, 43.8, 351 and 253 of it; the rest is
 * normalization, elementwise ops and the optimizer. Products of padding are not counted; with them
 * 44.2 would be 55.0. Zeros in the gradients of max pools are counted, 10.7 of the 44.2, although
 * filter gradients with AVX-512 do not multiply them.
 */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../nn/config/policy.h"
#include "../allocations.h"
#include "work.h"

typedef struct {
    Subject   subject;
    int64_t   allocated;            /* since the first step */
    bool      own;                  /* count only those of this program: beside a plugin, which
                                       allocates in threads of its own */
    bool      warm;
    double    sum[WORK_CLASSES];    /* seconds of a step */

} Stepper;

static int64_t made(const Stepper *stepper)
{
    return stepper->own ? allocations_own() : allocations();
}

static CornuStatus train(void *context)
{
    Stepper      *stepper = context;
    const int64_t before = made(stepper);
    CornuStatus   status = subject_train(&stepper->subject);
    if (stepper->warm) stepper->allocated += made(stepper) - before;
    stepper->warm = true;
    return status;
}

/* ---- By class ---- */

/* Runs the step some more times, measuring each of its own steps. */
static CornuStatus record(Stepper *stepper, int runs)
{
    CornuExecutable *executable = stepper->subject.executable;
    int              count;
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    CornuStepEvent *events = calloc((size_t)cornu_executable_event_count(executable) + 1,
                                    sizeof *events);
    double         *shares = calloc((size_t)count + 1, sizeof *shares);
    CornuStatus     status = events && shares ? CORNU_OK
                                              : cornu_error_set(CORNU_ERR_MEMORY, "no memory");
    for (int run = 0; run < runs && !status; run++) {
        cornu_executable_record(executable, events);
        status = subject_train(&stepper->subject);
        cornu_executable_shares(executable, events, shares);
        for (int i = 0; i < count; i++)
            stepper->sum[work_class(cornu_executable_program(executable), &steps[i])] +=
                shares[i] / runs;
    }
    cornu_executable_record(executable, NULL);
    free(events);
    free(shares);
    return status;
}

static json_t *pack_classes(const Stepper *stepper)
{
    const CornuExecutable *executable = stepper->subject.executable;
    double                 bytes[WORK_CLASSES] = { 0.0 };
    int                    count;
    json_t                *classes = json_object();
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    for (int i = 0; i < count; i++)
        bytes[work_class(cornu_executable_program(executable), &steps[i])] +=
            work_of(executable, &steps[i]).bytes;
    for (int c = 0; c < WORK_CLASSES; c++)
        if (stepper->sum[c] > 0.0)
            json_object_set_new(classes, work_class_name((WorkClass)c),
                                json_pack("{sfsf}", "ms", 1e3 * stepper->sum[c], "mb",
                                          1e-6 * bytes[c]));
    return classes;
}

/* ---- Rows ---- */

static void add_row(const Bench *bench, const char *group, const Stepper *stepper,
                    const BenchCase *timed)
{
    const Subject         *s = &stepper->subject;
    const CornuStatistics *statistics = cornu_executable_statistics(s->executable);
    const Work             work = work_of_all(s->executable);
    const double           median = bench_quantile(timed, 0.5);
    json_t                *row = json_pack(
        "{sssssssIsisisfsfsfsfsfsfsisfsI}", "model", s->config.model, "device", s->config.device,
        "policy", cornu_model_policy(s->model)->name, "batch", (json_int_t)s->config.batch,
        "shards", subject_shards(s), "threads", subject_threads(s), "ms", 1e3 * median, "ms_low",
        1e3 * bench_quantile(timed, 0.0), "ms_high", 1e3 * bench_quantile(timed, 0.9),
        "cpu_ms", 1e3 * timed->busy[timed->rounds / 2],
        "samples_per_s", (double)s->config.batch / median, "gflop_needed",
        1e-9 * work.flops, "rounds", timed->rounds, "mb_moved",
        1e-6 * work.bytes, "fallbacks", (json_int_t)statistics->fallbacks);
    json_object_set_new(row, "allocations",
                        allocations_counted() ? json_integer(stepper->allocated) : json_null());
    json_object_set_new(row, "classes", pack_classes(stepper));
    json_array_append_new(bench_rows(bench, group), row);
}

static CornuStatus measure(Bench *bench, const char *group, Stepper *steppers, BenchCase *cases,
                           int count)
{
    enum { RECORDED = 5 };
    CornuStatus status = bench_alternate(cases, count, bench->seconds);
    for (int i = 0; i < count && !status; i++) {
        if (!subject_is_plugin(steppers[i].subject.config.device))
            status = record(&steppers[i], cases[i].rounds < RECORDED ? 1 : RECORDED);
        if (!status) add_row(bench, group, &steppers[i], &cases[i]);
    }
    return status;
}

CornuStatus steps_measure(Bench *bench, const char *group, const SubjectConfig *config)
{
    static Stepper   steppers[SUBJECT_MOST];
    static BenchCase cases[SUBJECT_MOST];
    SubjectConfig    configs[SUBJECT_MOST];
    const int        count = subject_configs(bench->devices, config, configs);
    CornuStatus      status = CORNU_OK;
    bool             plugins = false;
    for (int i = 0; i < count; i++) plugins |= subject_is_plugin(configs[i].device);
    for (int i = 0; i < count; i++) {
        steppers[i] = (Stepper){ .own = plugins };
        cases[i] = (BenchCase){ .run = train, .context = &steppers[i] };
    }
    fprintf(stderr, "  %s, batch %lld\n", config->model, (long long)config->batch);
    for (int i = 0; i < count && !status; i++)
        status = subject_open(&steppers[i].subject, &configs[i]);
    if (!status) status = measure(bench, group, steppers, cases, count);
    for (int i = 0; i < count; i++) subject_close(&steppers[i].subject);
    return status;
}

static CornuStatus measure_model(Bench *bench, const char *model)
{
    const Network *other = network_named(model);
    int64_t        batches[BENCH_MOST_NUMBERS];
    const int      count = bench_numbers(bench->batches ? bench->batches
                                         : other ? other->batches : "128,1024", batches);
    for (int i = 0; i < count; i++) {
        const SubjectConfig config = { .model = model, .batch = batches[i],
                                       .shards = (int)bench->shards };
        const CornuStatus   status = steps_measure(bench, "steps", &config);
        if (status) return status;
    }
    return CORNU_OK;
}

CornuStatus bench_steps(Bench *bench)
{
    CornuStatus status = CORNU_OK;
    for (int i = 0; subject_model(i) && !status; i++)
        if (bench_listed(bench->models, subject_model(i)))
            status = measure_model(bench, subject_model(i));
    return status;
}

/* ---- Printing ---- */

static void set_percent(const Bench *bench, json_t *row)
{
    const CornuCpuLimits *limits = &bench_limits_of(bench, (int)bench_number(row, "threads"))->cpu;
    const bool            f32 = bench_text(row, "policy")[0] == 'f';
    const double          limit = f32 ? limits->f32_flops : limits->bf16_flops;
    const double gflops = bench_number(row, "gflop_needed") / (1e-3 * bench_number(row, "ms"));
    json_object_set_new(row, "gflops", json_real(gflops));
    json_object_set_new(row, "percent", json_real(100.0 * 1e9 * gflops / limit));
}

static void print_classes(const json_t *row)
{
    const char *name;
    json_t     *class;
    printf("     ");
    json_object_foreach(json_object_get(row, "classes"), name, class)
        if (bench_number(class, "ms") >= 0.01 * bench_number(row, "ms"))
            printf(" %s %.2f ms %.0f MB;", name, bench_number(class, "ms"),
                   bench_number(class, "mb"));
    putchar('\n');
}

void steps_print(const Bench *bench, const char *group)
{
    const json_t *rows = bench_rows(bench, group);
    printf("  median, fastest, and 9 of 10 steps; arithmetic that is needed, with zeros in max "
           "pools'\n  gradients, which filter gradients may skip; part of the limit in registers\n"
           "  %-18s %-8s %5s %2s %2s %10s %10s %10s %11s %8s %8s %6s %6s\n", "model",
           "on", "batch", "sh", "th", "ms", "fastest", "9 of 10", "samples/s", "GFLOP", "GFLOP/s",
           "limit", "allocs");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        set_percent(bench, row);
        const json_t *allocated = json_object_get(row, "allocations");
        printf("  %-18s %-8s %5.0f %2.0f %2.0f %10.3f %10.3f %10.3f %11.1f %8.2f %8.1f %5.1f%%",
               bench_text(row, "model"), bench_text(row, "device"), bench_number(row, "batch"),
               bench_number(row, "shards"), bench_number(row, "threads"), bench_number(row, "ms"),
               bench_number(row, "ms_low"), bench_number(row, "ms_high"),
               bench_number(row, "samples_per_s"), bench_number(row, "gflop_needed"),
               bench_number(row, "gflops"), bench_number(row, "percent"));
        if (json_is_null(allocated)) printf("      -\n");
        else printf(" %6.0f\n", json_number_value(allocated));
        if (json_object_size(json_object_get(row, "classes"))) print_classes(row);
    }
}

void bench_steps_print(const Bench *bench)
{
    printf("\nsteps: training steps, devices in turn; below each its time and bytes moved by class "
           "of op, from 1 %%\n");
    steps_print(bench, "steps");
}
