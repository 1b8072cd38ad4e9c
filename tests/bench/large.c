/*
 * A large model: 302 million parameters in 18 dense layers of 4,096 units, trained by Adam on 8
 * rows, in 5 GB of memory. Each parameter needs 16 bytes: itself, two slots and its gradient. The
 * rows are few, so that a step is bound by reading and writing these.
 *
 *     start     from layers without weights to the end of the first step
 *     planned   what the device counts, and cornu explain would print
 *     resident  the largest resident set, less that before the model
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../nn/layers/layers.h"
#include "bench.h"
#include "subject.h"
#include "work.h"

enum { LAYERS = 18, UNITS = 4096, ROWS = 8 };

/* ---- The process' memory ---- */

/* A line "NAME:  123 kB" of /proc/self/status, in bytes; 0 where there is none. */
static double status_bytes(const char *name)
{
    char         line[256];
    const size_t length = strlen(name);
    double       bytes = 0.0;
    FILE        *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, length) && line[length] == ':')
            bytes = 1024.0 * strtod(line + length + 1, NULL);
    if (file) fclose(file);
    return bytes;
}

/* From here on the peak counts. */
static void reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    fputs("5", file);
    fclose(file);
}

/* ---- The model ---- */

static CornuModel *build(void)
{
    CornuModel *model = cornu_sequential(.name = "large", .input_shape = { UNITS });
    for (int i = 0; i < LAYERS; i++)
        cornu_model_add(model, cornu_dense(UNITS, .activation = CORNU_RELU));
    return model;
}

static CornuStatus open_large(Subject *s, const char *device)
{
    const CornuType type = cornu_type(CORNU_F32, ROWS, UNITS);
    s->device = cornu_device_open(device, .shards = 1);
    if (!s->device) return cornu_error_take();
    s->model = build();
    CornuStatus status = cornu_compile(s->model, .device = s->device, .optimizer = cornu_adam(),
                                       .loss = cornu_loss("mean_squared_error"));
    if (status) return status;
    s->x = cornu_array_from(calloc(ROWS * UNITS, sizeof(float)), type);
    s->y = cornu_array_from(calloc(ROWS * UNITS, sizeof(float)), type);
    if (!s->x.data || !s->y.data) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for rows");
    for (int i = 0; i < ROWS * UNITS; i++) ((float *)s->x.data)[i] = (float)(i % 7) - 3.0f;
    s->executable = cornu_model_train_step(s->model, type, type);
    if (!s->executable) return cornu_error_status();
    return subject_train(s);
}

static json_t *pack(const Subject *s, const char *device, double start, double before,
                    const BenchCase *timed)
{
    const CornuMemory memory = cornu_device_memory(s->device);
    const double      parameters = (double)cornu_model_parameters(s->model);
    json_t           *uses = json_object();
    for (int use = 0; use < CORNU_USE_COUNT; use++)
        json_object_set_new(uses, cornu_use_name((CornuUse)use),
                            json_real((double)memory.uses[use].peak / parameters));
    return json_pack("{sssfsfsfsfsisfsfso}", "device", device, "parameters", parameters, "start_s",
                     start, "planned", (double)memory.total.peak / parameters, "resident",
                     (status_bytes("VmHWM") - before) / parameters, "threads", subject_threads(s),
                     "ms", 1e3 * bench_quantile(timed, 0.5), "mb_moved",
                     1e-6 * work_of_all(s->executable).bytes, "bytes_by_use", uses);
}

static CornuStatus measure(Bench *bench, const char *device)
{
    static BenchCase timed;
    Subject          s = { .device = NULL };
    reset_peak();
    const double before = status_bytes("VmRSS"), begin = bench_now();
    CornuStatus  status = open_large(&s, device);
    const double start = bench_now() - begin;
    timed = (BenchCase){ .run = subject_train, .context = &s };
    if (!status) status = bench_alternate(&timed, 1, bench->seconds);
    if (!status)
        json_array_append_new(bench_rows(bench, "large"),
                              pack(&s, device, start, before, &timed));
    subject_close(&s);
    return status;
}

CornuStatus bench_large(Bench *bench)
{
    SubjectConfig configs[SUBJECT_MOST];
    CornuStatus   status = CORNU_OK;
    const int     count = subject_own_configs(bench->devices ? bench->devices : "cpu",
                                              &(SubjectConfig){ .unset = 0 }, configs);
    for (int i = 0; i < count && !status; i++) status = measure(bench, configs[i].device);
    return status;
}

void bench_large_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "large");
    printf("\nlarge: %d dense layers of %d units, Adam, %d rows; bytes a parameter, and the rate "
           "of a step's reading and writing\n"
           "  %-8s %12s %9s %9s %9s %10s %10s %8s %6s\n", LAYERS, UNITS, ROWS, "on", "parameters",
           "start, s", "planned", "resident", "step, ms", "moved, MB", "GB/s", "DRAM");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t      *row = json_array_get(rows, i), *bytes;
        const char  *use;
        const double rate = bench_number(row, "mb_moved") / bench_number(row, "ms");
        const double limit = 1e-9 * bench_limits_of(bench, (int)bench_number(row, "threads"))
                                        ->cpu.read_bytes;
        json_object_set_new(row, "percent", json_real(100.0 * rate / limit));
        printf("  %-8s %12.0f %9.2f %9.2f %9.2f %10.1f %10.0f %8.1f %5.0f%%\n     ",
               bench_text(row, "device"), bench_number(row, "parameters"),
               bench_number(row, "start_s"), bench_number(row, "planned"),
               bench_number(row, "resident"), bench_number(row, "ms"),
               bench_number(row, "mb_moved"), rate, 100.0 * rate / limit);
        json_object_foreach(json_object_get(row, "bytes_by_use"), use, bytes)
            printf(" %s %.2f;", use, json_number_value(bytes));
        printf("\n");
    }
}
