/* Generation: the processor time of one more token of each sequence, by a generator, and by the
 * whole window computed again, one thread. A generator's step reads each weight once: the bandwidth
 * of where they lie is the bound. Windows that are full keep their later half; that it is computed
 * again is in the step's time. */
#include <stdio.h>
#include <stdlib.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "bench.h"

enum { BOTH = 2, TOKENS = 64 };   /* of a run, one after the other, as text is written */

typedef struct {
    const char          *preset;
    int64_t              batch;
    CornuDevice         *device;
    CornuModel          *model;
    CornuTokenGenerator *generator;
    CornuArray           tokens, window, next, all;
} Case;

static CornuStatus step(void *context)
{
    const Case *c = context;
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < TOKENS && !status; i++)
        status = cornu_generator_next(c->generator, c->tokens, c->next);
    return status;
}

static CornuStatus window(void *context)
{
    const Case *c = context;
    return cornu_predict_on_batch(c->model, c->window, c->all);
}

static CornuArray zeros(CornuType type)
{
    return cornu_array_from(calloc(1, cornu_type_bytes(type)), type);
}

static CornuStatus open_case(Case *c)
{
    c->device = cornu_device_open("cpu", .threads = 1);
    c->model = cornu_text_network(.preset = cornu_text_preset(c->preset));
    CornuStatus status = cornu_compile(c->model, .device = c->device);
    if (status) return status;
    const CornuShape out = cornu_model_output_shape(c->model);
    const int64_t    B = c->batch, T = out.extent[1], V = out.extent[2];
    c->tokens = zeros(cornu_type(CORNU_I32, B));
    c->window = zeros(cornu_type(CORNU_I32, B, T));
    c->next = zeros(cornu_type(CORNU_F32, B, V));
    c->all = zeros(cornu_type(CORNU_F32, B, T, V));
    CornuArray *primes = calloc((size_t)B, sizeof *primes);
    c->generator = cornu_generator(c->model, B, .window = CORNU_WINDOW_HALVES);
    if (!primes || !c->tokens.data || !c->window.data || !c->next.data || !c->all.data)
        status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for tokens");
    else if (!c->generator)
        status = cornu_error_take();
    for (int64_t b = 0; b < B && !status; b++)
        primes[b] = cornu_array(c->window.data, CORNU_I32, T / 2);
    if (!status) status = cornu_generator_begin(c->generator, primes, c->next);
    free(primes);
    return status;
}

static void close_case(Case *c)
{
    cornu_generator_free(c->generator);
    cornu_model_free(c->model);
    cornu_device_close(c->device);
    free(c->tokens.data), free(c->window.data), free(c->next.data), free(c->all.data);
}

static CornuStatus measure(Bench *bench, const char *preset, int64_t batch)
{
    static BenchCase cases[BOTH];
    Case             c = { .preset = preset, .batch = batch };
    CornuStatus      status = open_case(&c);
    cases[0] = (BenchCase){ .run = step, .context = &c };
    cases[1] = (BenchCase){ .run = window, .context = &c };
    if (!status) status = bench_alternate(cases, BOTH, bench->seconds);
    if (!status)
        json_array_append_new(bench_rows(bench, "generation"), json_pack(
            "{sssIsfsfsf}", "model", cornu_model_name(c.model), "batch", (json_int_t)batch,
            "step_ms", 1e3 / TOKENS * cases[0].busy[cases[0].rounds / 2], "window_ms",
            1e3 * cases[1].busy[cases[1].rounds / 2], "megabytes",
            4e-6 * (double)cornu_model_parameters(c.model)));
    close_case(&c);
    return status;
}

CornuStatus bench_generation(Bench *bench)
{
    static const char *const presets[] = { "gpt", "full" };
    for (int i = 0; i < 2; i++) {
        const CornuStatus status = measure(bench, presets[i], 1);
        if (status || measure(bench, presets[i], 16)) return cornu_error_status();
    }
    return CORNU_OK;
}

void bench_generation_print(const Bench *bench)
{
    size_t  i;
    json_t *row;
    printf("\nOne more token of each sequence, one thread: a generator's step, the window\n"
           "%-20s %6s %10s %10s %8s %10s\n", "model", "batch", "step, ms", "window, ms", "times",
           "GB/s");
    json_array_foreach(bench_rows(bench, "generation"), i, row) {
        const double ms = bench_number(row, "step_ms");
        printf("%-20s %6.0f %10.4f %10.3f %8.1f %10.1f\n", bench_text(row, "model"),
               bench_number(row, "batch"), ms, bench_number(row, "window_ms"),
               bench_number(row, "window_ms") / ms, bench_number(row, "megabytes") / ms);
    }
}
