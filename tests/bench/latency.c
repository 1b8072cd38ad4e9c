/* Predictions: the latency of one sample and the throughput of large batches, with predict, which
 * opens a data set over the array, and with predict_on_batch, which is the step alone. The network
 * for text predicts one character after another. */
#include <stdio.h>

#include "bench.h"
#include "subject.h"

enum { MANY = 1024, CALLS = 2 };

static CornuStatus predict(void *context)
{
    const Subject *s = context;
    return cornu_predict(s->model, .x = s->x, .to = s->to, .batch_size = s->config.batch,
                         .verbose = CORNU_SILENT);
}

static CornuStatus predict_on_batch(void *context)
{
    const Subject *s = context;
    return cornu_predict_on_batch(s->model, s->x, s->to);
}

static json_t *pack(const Subject *s, const BenchCase *timed)
{
    return json_pack("{sssssssIsisfsfsfsfsi}", "model", s->config.model, "device",
                     s->config.device, "call",
                     timed->run == predict ? "predict" : "predict_on_batch", "batch",
                     (json_int_t)s->config.batch, "threads", subject_threads(s), "ms",
                     1e3 * bench_quantile(timed, 0.5), "ms_p95", 1e3 * bench_quantile(timed, 0.95),
                     "ms_p99", 1e3 * bench_quantile(timed, 0.99), "samples_per_s",
                     (double)s->config.batch / bench_quantile(timed, 0.5), "rounds",
                     timed->rounds);
}

static CornuStatus measure(Bench *bench, const char *model, int64_t batch)
{
    static BenchCase cases[SUBJECT_MOST * CALLS];
    Subject          subjects[SUBJECT_MOST] = { { .model = NULL } };
    SubjectConfig    configs[SUBJECT_MOST];
    CornuStatus      status = CORNU_OK;
    const int        count = subject_configs(bench->devices, &(SubjectConfig){
        .model = model, .batch = batch, .predicts = true }, configs);
    for (int i = 0; i < count && !status; i++) {
        status = subject_open(&subjects[i], &configs[i]);
        for (int k = 0; k < CALLS; k++)
            cases[i * CALLS + k] = (BenchCase){ .run = k ? predict_on_batch : predict,
                                                .context = &subjects[i] };
    }
    if (!status) status = bench_alternate(cases, count * CALLS, bench->seconds);
    for (int i = 0; i < count * CALLS && !status; i++)
        json_array_append_new(bench_rows(bench, "latency"),
                              pack(&subjects[i / CALLS], &cases[i]));
    for (int i = 0; i < count; i++) subject_close(&subjects[i]);
    return status;
}

CornuStatus bench_latency(Bench *bench)
{
    for (int i = 0; subject_model(i); i++) {
        const char *model = subject_model(i);
        if (!subject_wanted(bench->models, model)) continue;
        CornuStatus status = measure(bench, model, 1);
        if (!status) status = measure(bench, model, MANY);
        if (status) return status;
    }
    return CORNU_OK;
}

void bench_latency_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "latency");
    printf("\nlatency: predictions; of shakespeare_lstm one character for each of the batch\n"
           "  %-18s %-8s %5s %-17s %10s %10s %10s %11s\n", "model", "on", "batch", "call",
           "median ms", "95 of 100", "99 of 100", "samples/s");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        printf("  %-18s %-8s %5.0f %-17s %10.4f %10.4f %10.4f %11.1f\n", bench_text(row, "model"),
               bench_text(row, "device"), bench_number(row, "batch"), bench_text(row, "call"),
               bench_number(row, "ms"), bench_number(row, "ms_p95"), bench_number(row, "ms_p99"),
               bench_number(row, "samples_per_s"));
    }
}
