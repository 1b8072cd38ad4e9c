/*
 * Host overhead: the time around the computation, in programs that compute next to nothing.
 *
 *     run      x + 1 into the variable x: cornu_executable_run
 *     step     a training step of a dense layer with one weight, Adam, on one sample:
 *              cornu_train_on_batch, with its feeding, checks and metrics
 *
 * Each is waited for before the next. On a plugin's device the same program is also run bare: the
 * plugin executes it and is waited for. The difference is ours.
 */
#include <stdio.h>

#include "../../nn/layers/layers.h"
#include "bare.h"
#include "bench.h"
#include "subject.h"

enum { REPEATS = 20 };   /* in a round, which is then long beside reading the clock */

typedef struct {
    const char      *what;
    CornuDevice     *device;
    CornuModel      *model;         /* of a step, else NULL */
    CornuExecutable *executable;
    CornuBuffer     *variable;      /* of a run, else NULL */
    Bare             bare;
} Tiny;

/* ---- The programs ---- */

static CornuStatus record_increment(CornuProgram *program)
{
    static const CornuAttributes one = { .constant = { CORNU_F32, 1.0 } };
    CornuValue                   in[2], sum;
    CORNU__TRY(cornu_program_input(program, cornu_scalar(CORNU_F32), &in[0]));
    CORNU__TRY(cornu_program_record(program, CORNU_OP_CONSTANT, &one, NULL, 0, &in[1]));
    CORNU__TRY(cornu_program_record(program, CORNU_OP_ADD, NULL, in, 2, &sum));
    return cornu_program_output(program, sum, 0);
}

static CornuStatus open_run(Tiny *tiny)
{
    CornuProgram *program = cornu_program_create();
    CornuStatus   status = program ? record_increment(program) : cornu_error_take();
    tiny->what = "run";
    if (!status) {
        tiny->executable = cornu_device_compile(tiny->device, program);
        tiny->variable = cornu_buffer_create(.device = tiny->device,
                                             .type = cornu_scalar(CORNU_F32));
        if (!tiny->executable || !tiny->variable) status = cornu_error_take();
    }
    cornu_program_free(program);
    return status;
}

static const float sample[1] = { 1.0f };

static CornuArray batch(void)
{
    return cornu_array_from((void *)(uintptr_t)sample, cornu_type(CORNU_F32, 1, 1));
}

static CornuStatus open_step(Tiny *tiny)
{
    tiny->what = "step";
    tiny->model = cornu_sequential(.input_shape = { 1 });
    cornu_model_add(tiny->model, cornu_dense(1));
    CORNU__TRY(cornu_compile(tiny->model, .device = tiny->device, .optimizer = cornu_adam(),
                             .loss = cornu_loss("mean_squared_error")));
    tiny->executable = cornu_model_train_step(tiny->model, batch().type, batch().type);
    return tiny->executable ? CORNU_OK : cornu_error_take();
}

static CornuStatus open_tiny(Tiny *tiny, const char *device, bool is_step)
{
    *tiny = (Tiny){ .device = cornu_device_open(device, .shards = 1) };
    if (!tiny->device) return cornu_error_take();
    CORNU__TRY(is_step ? open_step(tiny) : open_run(tiny));
    if (!subject_is_plugin(device)) return CORNU_OK;
    return bare_open(&tiny->bare, tiny->device, cornu_executable_program(tiny->executable));
}

static void close_tiny(Tiny *tiny)
{
    bare_close(&tiny->bare);
    cornu_buffer_free(tiny->variable);
    if (tiny->executable && !tiny->model) cornu_executable_release(tiny->executable);
    cornu_model_free(tiny->model);
    cornu_device_close(tiny->device);
}

/* ---- Their times ---- */

static CornuStatus run_ours(void *context)
{
    Tiny        *tiny = context;
    CornuBuffer *nowhere = NULL;
    CornuStatus  status = CORNU_OK;
    for (int i = 0; i < REPEATS && !status; i++) {
        status = tiny->model ? cornu_train_on_batch(tiny->model, batch(), batch(), NULL)
                             : cornu_executable_run(tiny->executable, &tiny->variable, &nowhere);
        if (!status) status = cornu_device_wait(tiny->device);
    }
    return status;
}

static CornuStatus run_bare(void *context)
{
    Tiny       *tiny = context;
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < REPEATS && !status; i++) status = bare_run(&tiny->bare);
    return status;
}

static CornuStatus measure(Bench *bench, const char *device, bool is_step)
{
    static BenchCase cases[2];
    Tiny             tiny;
    CornuStatus      status = open_tiny(&tiny, device, is_step);
    const int        count = tiny.bare.loaded ? 2 : 1;
    cases[0] = (BenchCase){ .run = run_ours, .context = &tiny };
    cases[1] = (BenchCase){ .run = run_bare, .context = &tiny };
    if (!status) status = bench_alternate(cases, count, bench->seconds);
    if (!status) {
        const double us = 1e6 * bench_quantile(&cases[0], 0.5) / REPEATS;
        json_t      *row = json_pack("{sssssfsf}", "device", device, "what", tiny.what, "us", us,
                                     "us_low", 1e6 * bench_quantile(&cases[0], 0.0) / REPEATS);
        if (count > 1) {
            const double bare = 1e6 * bench_quantile(&cases[1], 0.5) / REPEATS;
            json_object_set_new(row, "bare_us", json_real(bare));
            json_object_set_new(row, "overhead_us", json_real(us - bare));
        }
        json_array_append_new(bench_rows(bench, "overhead"), row);
    }
    close_tiny(&tiny);
    return status;
}

CornuStatus bench_overhead(Bench *bench)
{
    SubjectConfig configs[SUBJECT_MOST];
    CornuStatus   status = CORNU_OK;
    const int     count = subject_configs(bench->devices, &(SubjectConfig){ .unset = 0 }, configs);
    for (int i = 0; i < 2 * count && !status; i++)
        status = measure(bench, configs[i / 2].device, i % 2);
    return status;
}

void bench_overhead_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "overhead");
    printf("\noverhead: programs that compute next to nothing; microseconds, medians; bare: the "
           "plugin alone\n  %-8s %-6s %9s %9s %9s %9s\n", "on", "", "whole", "fastest", "bare",
           "ours");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        printf("  %-8s %-6s %9.2f %9.2f", bench_text(row, "device"), bench_text(row, "what"),
               bench_number(row, "us"), bench_number(row, "us_low"));
        if (json_object_get(row, "bare_us"))
            printf(" %9.2f %9.2f", bench_number(row, "bare_us"), bench_number(row, "overhead_us"));
        printf("\n");
    }
}
