/* Models of 8 bits (nn/lite/quantize.h) beside the float ones that they were made of: one row and
 * many, by threads. With CORNU_BENCH_INT8, a folder, they are also saved there as .tflite files,
 * for other runtimes (peers/compare_int8). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "bench.h"
#include "networks.h"

enum { MANY = 256, CALIBRATION = 64, CASES = 4, MODELS = 6 };

/* One after the other, as the weights of both would not fit into a cache together. */
typedef struct {
    CornuPredictor *predictor;
    CornuInt8Model *small;
    CornuArray      x, y;
    int8_t         *small_x, *small_y;
    int64_t         batch;
    int             threads;
} Pair;

static CornuStatus predict_float(void *context)
{
    const Pair *pair = context;
    return cornu_predictor_predict(pair->predictor, &pair->x, &pair->y);
}

static CornuStatus predict_int8(void *context)
{
    const Pair *pair = context;
    return cornu_int8_predict_integers(pair->small, pair->batch, pair->small_x, pair->small_y);
}

/* f32 of `rows` rows from 0 to 1. */
static CornuArray invent(CornuShape shape, int64_t rows)
{
    shape.extent[0] = rows;
    const CornuType type = cornu_type_from(CORNU_F32, shape);
    float          *data = malloc(cornu_type_bytes(type));
    for (int64_t i = 0; data && i < cornu_type_count(type); i++)
        data[i] = (float)(i * 7919 % 65521 % 256) / 255.0f;
    return cornu_array_from(data, type);
}

static CornuStatus open_pair(Pair *pair, CornuModel *model)
{
    const CornuArray sample = invent(cornu_model_input_shape(model), CALIBRATION);
    pair->predictor = cornu_predictor(model, .max_batch_size = pair->batch,
                                      .threads = pair->threads);
    pair->small = cornu_quantize(model, .x = sample, .samples = CALIBRATION,
                                 .threads = pair->threads);
    free(sample.data);
    if (!pair->predictor || !pair->small) return cornu_error_take();
    pair->x = invent(cornu_model_input_shape(model), pair->batch);
    pair->y = invent(cornu_model_output_shape(model), pair->batch);
    pair->small_x = malloc((size_t)cornu_type_count(pair->x.type));
    pair->small_y = malloc((size_t)cornu_type_count(pair->y.type));
    if (!pair->x.data || !pair->y.data || !pair->small_x || !pair->small_y)
        return cornu_error_set(CORNU_ERR_MEMORY, "no memory for rows");
    for (int64_t i = 0; i < cornu_type_count(pair->x.type); i++)
        pair->small_x[i] = (int8_t)(i * 7919 % 65521 % 256 - 128);
    return CORNU_OK;
}

static void close_pair(Pair *pair)
{
    cornu_predictor_free(pair->predictor);
    cornu_int8_free(pair->small);
    free(pair->x.data), free(pair->y.data), free(pair->small_x), free(pair->small_y);
}

static CornuStatus save(const CornuInt8Model *small, const char *name)
{
    char        path[512];
    const char *folder = getenv("CORNU_BENCH_INT8");
    if (!folder) return CORNU_OK;
    snprintf(path, sizeof path, "%s/%s.tflite", folder, name);
    return cornu_int8_save(small, path);
}

static CornuStatus measure(Bench *bench, const char *name, CornuModel *model, Pair *pair)
{
    static BenchCase cases[2];
    CornuStatus      status = open_pair(pair, model);
    cases[0] = (BenchCase){ .run = predict_int8, .context = pair };
    cases[1] = (BenchCase){ .run = predict_float, .context = pair };
    if (!status) status = save(pair->small, name);
    for (int i = 0; i < 2 && !status; i++)
        status = bench_alternate(&cases[i], 1, bench->seconds);
    if (!status)
        json_array_append_new(bench_rows(bench, "int8"), json_pack(
            "{sssIsisfsfsfsf}", "model", name, "batch", (json_int_t)pair->batch, "threads",
            pair->threads, "ms", 1e3 * bench_quantile(&cases[0], 0.5), "cpu_ms",
            1e3 * cases[0].busy[cases[0].rounds / 2], "float_ms",
            1e3 * bench_quantile(&cases[1], 0.5), "float_cpu_ms",
            1e3 * cases[1].busy[cases[1].rounds / 2]));
    close_pair(pair);
    return status;
}

static CornuModel *build(const char *name)
{
    if (network_named(name)) return network_named(name)->build();
    return cornu_reference_model(name)->build(&(CornuNetworkConfig){ 0 });
}

CornuStatus bench_int8(Bench *bench)
{
    static const char *const names[MODELS] = { "mnist_convnet", "resnet20", "fashion_mnist_cnn",
                                         "depthwise", "mobile", "mlp" };
    CornuStatus              status = CORNU_OK;
    for (int i = 0; i < MODELS && !status; i++) {
        if (!bench_listed(bench->models, names[i])) continue;
        CornuModel *model = build(names[i]);
        if (!model) return cornu_error_take();
        for (int c = 0; c < CASES && !status; c++)
            status = measure(bench, names[i], model, &(Pair){ .batch = c < 2 ? 1 : MANY,
                                                              .threads = 1 + c % 2 });
        cornu_model_free(model);
    }
    return status;
}

void bench_int8_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "int8");
    printf("\nint8: models of 8 bits, one call at a time\n  %-18s %5s %8s %10s %10s %6s\n", "model",
           "batch", "threads", "median ms", "float ms", "ratio");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        printf("  %-18s %5.0f %8.0f %10.4f %10.4f %6.2f\n", bench_text(row, "model"),
               bench_number(row, "batch"), bench_number(row, "threads"), bench_number(row, "ms"),
               bench_number(row, "float_ms"),
               bench_number(row, "float_ms") / bench_number(row, "ms"));
    }
}
