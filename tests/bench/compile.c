/*
 * The time to record, compile and allocate a training step by the depth of the network: from layers
 * without weights to a step that is ready to run, in processor time of the thread that does it, the
 * least of several times. The exponent is the slope from one size to the next on logarithmic
 * scales: 1 where the time is proportional to the number of layers.
 *
 *     dense      layers of 16 units with relu, Adam
 *     resnet     models/resnet20.c with more blocks: 6 n + 2 layers
 *     unrolled   a recurrent layer of 16 units recorded step by step, and its gradients
 *     lstm       one layer over so many time steps, which is one op
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "../../device/status_internal.h"
#include "../../nn/layers/layers.h"
#include "../../nn/model/functional.h"
#include "bench.h"

enum { SIZES = 4, UNITS = 16, ROWS = 4, CHANNELS = 8, CLASSES = 10 };

/* ---- Models ---- */

static CornuModel *dense(int layers)
{
    CornuModel *model = cornu_sequential(.input_shape = { UNITS });
    for (int i = 0; i < layers; i++)
        cornu_model_add(model, cornu_dense(UNITS, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuSymbol *normalized(CornuSymbol *x, int64_t filters, int64_t stride)
{
    x = cornu_call(cornu_conv2d(filters, 3, stride, CORNU_SAME), x);
    return cornu_call(cornu_batch_normalization(), x);
}

static CornuSymbol *block(CornuSymbol *x, int64_t filters, int64_t stride)
{
    CornuSymbol *y = cornu_call(cornu_activation(CORNU_RELU), normalized(x, filters, stride));
    y = normalized(y, filters, 1);
    if (stride > 1) x = cornu_call(cornu_conv2d(filters, 1, stride, CORNU_SAME), x);
    return cornu_call(cornu_activation(CORNU_RELU), cornu_call(cornu_add(), x, y));
}

static CornuModel *resnet(int layers)
{
    CornuSymbol *image = cornu_input(.shape = { 8, 8, 1 });
    CornuSymbol *x = cornu_call(cornu_activation(CORNU_RELU), normalized(image, CHANNELS, 1));
    for (int64_t stage = 0; stage < 3; stage++)
        for (int i = 0; i < (layers - 2) / 6; i++)
            x = block(x, CHANNELS << stage, stage > 0 && i == 0 ? 2 : 1);
    x = cornu_call(cornu_global_average_pooling2d(), x);
    x = cornu_call(cornu_dense(CLASSES, .activation = CORNU_SOFTMAX), x);
    return cornu_model(.inputs = { image }, .outputs = { x });
}

static CornuModel *lstm(int steps)
{
    CornuModel *model = cornu_sequential(.input_shape = { steps, CHANNELS });
    cornu_model_add(model, cornu_lstm(UNITS));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

/* The ops of a step that is ready to run. */
static CornuStatus prepare(CornuDevice *device, CornuModel *(*build)(int), int size, int *ops)
{
    CornuModel *model = build(size);
    CornuStatus status = cornu_compile(model, .device = device, .optimizer = cornu_adam(),
                                       .loss = cornu_loss("sparse_categorical_crossentropy"));
    if (!status) {
        CornuShape x = cornu_model_input_shape(model);
        x.extent[0] = ROWS;
        CornuExecutable *step = cornu_model_train_step(model, cornu_type_from(CORNU_F32, x),
                                                       cornu_type(CORNU_I32, ROWS));
        if (step) *ops = (int)cornu_executable_statistics(step)->ops;
        else status = cornu_error_status();
    }
    cornu_model_free(model);
    return status;
}

/* ---- Steps in time, one by one ---- */

/* h = tanh(x[t] + h u), and the gradients by u and the first h. */
static CornuStatus record(CornuGraph *graph, CornuVariable *u, int steps)
{
    const CornuType rows = cornu_type(CORNU_F32, ROWS, UNITS);
    CornuTensor    *h = cornu_graph_input(graph, rows), *d[2];
    CornuTensor    *x = cornu_graph_input(graph, cornu_type(CORNU_F32, steps, ROWS, UNITS));
    CornuTensor    *by[2] = { cornu_read(graph, u), h };
    for (int64_t t = 0; t < steps; t++) {
        CornuTensor *now = cornu_op_slice(x, (int64_t[]){ t, 0, 0 }, (int64_t[]){ 1, ROWS, UNITS });
        now = cornu_op_reshape(now, rows.shape);
        h = cornu_op_tanh(cornu_op_add(now, cornu_op_matmul(h, by[0])));
    }
    CORNU__TRY(cornu_gradients(cornu_op_sum(h), by, 2, d));
    CORNU__TRY(cornu_assign(u, cornu_op_subtract(by[0], d[0])));
    return cornu_graph_prepare(graph, &d[1], 1);
}

static CornuStatus prepare_unrolled(CornuDevice *device, int size, int *ops)
{
    CornuVariable *u = cornu_variable_create(device, cornu_type(CORNU_F32, UNITS, UNITS), "u");
    CornuGraph    *graph = cornu_graph_create(device);
    CornuStatus    status = u && graph ? record(graph, u, size) : cornu_error_take();
    if (!status) *ops = (int)cornu_graph_statistics(graph)->ops;
    cornu_graph_free(graph);
    cornu_variable_free(u);
    return status;
}

/* ---- Their times ---- */

static const struct {
    const char *name;
    CornuModel *(*build)(int size);   /* NULL: unrolled */
    int         sizes[SIZES];         /* 0 after the last */
} networks[] = {
    { "dense", dense, { 50, 100, 200, 400 } },
    { "resnet", resnet, { 20, 56, 110, 218 } },
    { "unrolled", NULL, { 125, 250, 500, 1000 } },
    { "lstm", lstm, { 250, 500, 1000 } },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

const char *bench_compile_network(int i) { return i < NETWORKS ? networks[i].name : NULL; }

static double busy_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Each time on a new device, which finds no program that it has compiled before. */
static CornuStatus measure(const Bench *bench, int network, int size, double *least, int *ops)
{
    enum { LEAST_ROUNDS = 3 };
    const double begin = bench_now();
    CornuStatus  status = CORNU_OK;
    *least = INFINITY;
    for (int i = 0; !status && (i < LEAST_ROUNDS || bench_now() - begin < bench->seconds); i++) {
        CornuDevice *device = cornu_device_open(bench->devices ? bench->devices : "cpu",
                                                .threads = 1);
        if (!device) return cornu_error_take();
        const double before = busy_now();
        status = networks[network].build
               ? prepare(device, networks[network].build, size, ops)
               : prepare_unrolled(device, size, ops);
        const double took = busy_now() - before;
        if (took < *least) *least = took;
        cornu_device_close(device);
    }
    return status;
}

CornuStatus bench_compile(Bench *bench)
{
    for (int n = 0; n < NETWORKS; n++)
        for (int i = 0; i < SIZES && networks[n].sizes[i]; i++) {
            const int    size = networks[n].sizes[i];
            int          ops = 0;
            double       seconds;
            if (!bench_listed(bench->models, networks[n].name)) continue;
            fprintf(stderr, "  %s %d\n", networks[n].name, size);
            const CornuStatus status = measure(bench, n, size, &seconds, &ops);
            if (status) return status;
            json_array_append_new(bench_rows(bench, "compile"),
                                  json_pack("{sssisisf}", "network", networks[n].name, "size",
                                            size, "ops", ops, "ms", 1e3 * seconds));
        }
    return CORNU_OK;
}

void bench_compile_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "compile"), *before = NULL;
    printf("\ncompile: recording, compiling and allocating a training step; processor time\n"
           "  %-10s %6s %8s %10s %10s %9s\n", "network", "size", "ops", "ms", "us an op",
           "exponent");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t      *row = json_array_get(rows, i);
        const double size = bench_number(row, "size"), ms = bench_number(row, "ms");
        printf("  %-10s %6.0f %8.0f %10.2f %10.2f", bench_text(row, "network"), size,
               bench_number(row, "ops"), ms, 1e3 * ms / bench_number(row, "ops"));
        if (before && size > bench_number(before, "size")) {
            const double exponent = log(ms / bench_number(before, "ms")) /
                                    log(size / bench_number(before, "size"));
            json_object_set_new(row, "exponent", json_real(exponent));
            printf(" %9.2f", exponent);
        }
        printf("\n");
        before = row;
    }
}
