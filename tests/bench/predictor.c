/* Predictors (nn/model/predictor.h): one call at a time, of one row and of many, by threads. The
 * network for text reads a sequence of 100 characters, the encoder one of 128 words. With
 * CORNU_BENCH_ONNX, a folder, the networks are also saved there as .onnx files, for other runtimes
 * (peers/compare_onnxruntime). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "bench.h"
#include "networks.h"

enum { MANY = 256, CASES = 4 };

typedef struct {
    CornuPredictor *predictor;
    CornuArray      x, y;
    int64_t         batch;
    int             threads;
} Call;

static CornuStatus predict(void *context)
{
    const Call *call = context;
    return cornu_predictor_predict(call->predictor, &call->x, &call->y);
}

/* f32 of `rows` rows: characters, or pixels from 0 to 1. */
static CornuArray invent(CornuShape shape, int64_t rows, double scale)
{
    shape.extent[0] = rows;
    const CornuType type = cornu_type_from(CORNU_F32, shape);
    float          *data = malloc(cornu_type_bytes(type));
    for (int64_t i = 0; data && i < cornu_type_count(type); i++)
        data[i] = (float)((double)(i * 7919 % 65521 % 256) * scale);
    return cornu_array_from(data, type);
}

static CornuStatus open_call(Call *call, CornuModel *model, bool text)
{
    call->predictor = cornu_predictor(model, .max_batch_size = call->batch,
                                      .threads = call->threads);
    if (!call->predictor) return cornu_error_take();
    call->x = invent(cornu_model_input_shape(model), call->batch, text ? 1.0 : 1.0 / 255.0);
    call->y = invent(cornu_model_output_shape(model), call->batch, 0.0);
    return call->x.data && call->y.data ? CORNU_OK
                                        : cornu_error_set(CORNU_ERR_MEMORY, "no memory for rows");
}

static CornuStatus save(CornuModel *model, const char *name)
{
    char        path[512];
    const char *folder = getenv("CORNU_BENCH_ONNX");
    if (!folder) return CORNU_OK;
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    return cornu_model_save(model, path);
}

static CornuStatus measure(Bench *bench, const char *name, CornuModel *model, bool text)
{
    static BenchCase cases[CASES];
    Call             calls[CASES] = { { .batch = 1, .threads = 1 }, { .batch = 1, .threads = 2 },
                                      { .batch = MANY, .threads = 1 },
                                      { .batch = MANY, .threads = 2 } };
    CornuStatus      status = model ? save(model, name) : cornu_error_take();
    for (int i = 0; i < CASES; i++) cases[i] = (BenchCase){ .run = predict, .context = &calls[i] };
    for (int i = 0; i < CASES && !status; i++) status = open_call(&calls[i], model, text);
    for (int i = 0; i < CASES && !status; i++)   /* each alone, as callers of a server are */
        status = bench_alternate(&cases[i], 1, bench->seconds);
    for (int i = 0; i < CASES; i++) {
        if (!status)
            json_array_append_new(bench_rows(bench, "predictor"), json_pack(
                "{sssIsisfsfsf}", "model", name, "batch", (json_int_t)calls[i].batch, "threads",
                calls[i].threads, "ms", 1e3 * bench_quantile(&cases[i], 0.5), "quick_ms",
                1e3 * bench_quantile(&cases[i], 0.125), "cpu_ms",
                1e3 * cases[i].busy[cases[i].rounds / 2]));
        cornu_predictor_free(calls[i].predictor);
        free(calls[i].x.data);
        free(calls[i].y.data);
    }
    cornu_model_free(model);
    return status;
}

static CornuModel *build(const char *name)
{
    if (network_named(name)) return network_named(name)->build();
    if (!strcmp(name, "shakespeare_lstm")) return cornu_shakespeare_lstm(.sequence_length = 100);
    return cornu_reference_model(name)->build(&(CornuNetworkConfig){ 0 });
}

CornuStatus bench_predictor(Bench *bench)
{
    static const char *const names[] = { "mnist_convnet", "resnet20", "shakespeare_lstm",
                                         "encoder" };
    CornuStatus              status = CORNU_OK;
    for (int i = 0; i < 4 && !status; i++)
        if (bench_listed(bench->models, names[i]))
            status = measure(bench, names[i], build(names[i]), i >= 2);
    return status;
}

void bench_predictor_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "predictor");
    printf("\npredictor: one call at a time on cpu\n  %-18s %5s %8s %10s\n", "model", "batch",
           "threads", "median ms");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        printf("  %-18s %5.0f %8.0f %10.4f\n", bench_text(row, "model"),
               bench_number(row, "batch"), bench_number(row, "threads"), bench_number(row, "ms"));
    }
}
