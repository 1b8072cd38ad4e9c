#include "products.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../device/device.h"
#include "../../device/host/machine/cpu.h"
#include "../../device/host/isa/product.h"
#include "../../device/host/machine/threads.h"
#include "../../device/memory_internal.h"
#include "subject.h"

/* In the order of the devices. */
static const CornuDtype dtypes[SUBJECT_DEVICES] = { CORNU_F32, CORNU_BF16 };

static json_t *pack_row(int dtype, const char *layer, const char *name, const BenchCase *timed,
                        double flops, double bytes)
{
    return json_pack("{sssssssssssssfsfsfsfsb}", "isa", cornu__isa_name(cornu__isa_in_use()),
                     "model", "products", "device", subject_device(dtype), "layer", layer, "name",
                     name, "class", "product", "us", 1e6 * bench_quantile(timed, 0.5), "gflop",
                     1e-9 * flops, "mb", 1e-6 * bytes, "near_mb",
                     1e-6 * bytes / cornu__cpu_threads(), "bf16", dtypes[dtype] == CORNU_BF16);
}

/* ---- Micro-kernels ---- */

enum { MOST_THREADS = 256, TILES = 2000 };

/* A tile for each thread. */
typedef struct {
    const CornuProducts *products;
    CornuThreads        *threads;
    int64_t              k;
    CornuRun             run;
    CornuTile            tiles[MOST_THREADS];
    void                *memory[MOST_THREADS][4];
} Micro;

static void run_tiles(void *context, int64_t block, int thread)
{
    const Micro *micro = context;
    (void)thread;
    for (int i = 0; i < TILES; i++) micro->products->tile(&micro->tiles[block]);
}

static CornuStatus run_micro(void *context)
{
    const Micro *micro = context;
    cornu__threads_run(micro->threads, cornu__threads_count(micro->threads), run_tiles, context);
    return CORNU_OK;
}

/* Operands take three quarters of the cache, the sums some of the rest. */
static void open_micro(Micro *micro)
{
    const CornuProducts *p = micro->products;
    const int            columns = 2 * p->lanes;
    const int64_t        column = (int64_t)p->size * (p->tile_rows + columns);
    micro->k = cornu__cpu()->l1d * 3 / 4 / column / 16 * 16;
    if (micro->k < 16) micro->k = 16;
    micro->run = (CornuRun){ .length = micro->k };
    for (int t = 0; t < cornu__threads_count(micro->threads); t++) {
        void       **memory = micro->memory[t];
        const size_t k = (size_t)micro->k;
        memory[0] = cornu__allocate_aligned(k * (size_t)p->tile_rows * p->size);
        memory[1] = cornu__allocate_aligned(k * (size_t)columns * p->size);
        memory[2] = cornu__allocate_aligned((size_t)columns * sizeof(float));
        memory[3] = cornu__allocate_aligned((size_t)(p->tile_rows * columns) * sizeof(float));
        micro->tiles[t] = (CornuTile){
            .x = memory[0], .x_stride = micro->k, .runs = &micro->run, .run_count = 1,
            .panel = memory[1], .bias = memory[2], .y = memory[3], .y_stride = columns,
            .rows = p->tile_rows, .vectors = 2, .columns = columns,
        };
    }
}

static CornuStatus measure_micro(const Bench *bench, int dtype, json_t *rows)
{
    static Micro     micro;
    static BenchCase timed;
    char             layer[64];
    const int        all = cornu__cpu_threads();
    const CornuProducts *products = dtype ? cornu__products_of_bf16() : cornu__products();
    micro = (Micro){ .products = products,
                     .threads = cornu__threads_create(all < MOST_THREADS ? all : MOST_THREADS) };
    timed = (BenchCase){ .run = run_micro, .context = &micro };
    if (!micro.threads) return cornu_error_take();
    open_micro(&micro);
    const int   count = cornu__threads_count(micro.threads);
    CornuStatus status = cornu_error_status();
    if (!status) status = bench_alternate(&timed, 1, bench->seconds / 4.0);
    const double flops = 2.0 * TILES * count * products->tile_rows * 2 * products->lanes *
                         (double)micro.k;
    snprintf(layer, sizeof layer, "%dx%dx%d in L1", products->tile_rows, (int)micro.k,
             2 * products->lanes);
    if (!status)
        json_array_append_new(rows, pack_row(dtype, layer, "micro-kernel", &timed, flops, 0.0));
    for (int t = 0; t < count; t++)
        for (int i = 0; i < 4; i++) cornu__release(micro.memory[t][i]);
    cornu__threads_free(micro.threads);
    return status;
}

/* ---- Whole products ---- */

typedef struct {
    CornuDevice     *device;
    CornuExecutable *executable;
    CornuBuffer     *in[2], *out;
} Whole;

static CornuStatus run_whole(void *context)
{
    const Whole *whole = context;
    return cornu_executable_run(whole->executable, whole->in, &whole->out);
}

static CornuStatus record_whole(Whole *whole, CornuProgram *program, CornuType type)
{
    CornuValue  in[2], out;
    CornuStatus status = cornu_program_input(program, type, &in[0]);
    if (!status) status = cornu_program_input(program, type, &in[1]);
    const CornuAttributes attributes = { .matmul = { .dtype = CORNU_F32 } };
    if (!status)
        status = cornu_program_record(program, CORNU_OP_MATMUL, &attributes, in, 2, &out);
    if (!status) status = cornu_program_output(program, out, -1);
    if (status) return status;
    whole->executable = cornu_device_compile(whole->device, program);
    return whole->executable ? CORNU_OK : cornu_error_status();
}

static CornuStatus open_whole(Whole *whole, int dtype, int64_t n)
{
    const CornuType type = cornu_type(dtypes[dtype], n, n);
    *whole = (Whole){ .device = cornu_device_open(subject_device(dtype), .shards = 1) };
    CornuProgram *program = whole->device ? cornu_program_create() : NULL;
    CornuStatus   status = program ? record_whole(whole, program, type) : cornu_error_status();
    cornu_program_free(program);
    for (int i = 0; i < 2 && !status; i++)
        whole->in[i] = cornu_buffer_create(.device = whole->device, .type = type);
    if (!status)
        whole->out = cornu_buffer_create(.device = whole->device,
                                         .type = cornu_type(CORNU_F32, n, n));
    return status ? status : cornu_error_status();
}

static void close_whole(Whole *whole)
{
    cornu_buffer_free(whole->out);
    cornu_buffer_free(whole->in[1]);
    cornu_buffer_free(whole->in[0]);
    if (whole->executable) cornu_executable_release(whole->executable);
    cornu_device_close(whole->device);
}

/* Repeated without a pause, as for the micro-kernel, so that the device's threads do not fall
 * asleep between two runs, as they would while another device runs. */
static CornuStatus measure_whole(const Bench *bench, int dtype, int n, json_t *rows)
{
    static BenchCase timed;
    Whole            whole;
    CornuStatus      status = open_whole(&whole, dtype, n);
    timed = (BenchCase){ .run = run_whole, .context = &whole };
    if (!status) status = bench_alternate(&timed, 1, bench->seconds / 2.0);
    if (!status) {
        char         layer[64];
        const double count = (double)n * n;
        const double each = 2.0 * (double)cornu_dtype_size(dtypes[dtype]) + sizeof(float);
        snprintf(layer, sizeof layer, "%dx%dx%d", n, n, n);
        json_array_append_new(rows, pack_row(dtype, layer, "matmul", &timed, 2.0 * count * n,
                                             count * each));
    }
    close_whole(&whole);
    return status;
}

CornuStatus products_measure(Bench *bench)
{
    json_t     *rows = bench_rows(bench, "kernels");
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < SUBJECT_DEVICES && !status; i++) {
        status = measure_micro(bench, i, rows);
        for (int n = 512; n <= 2048 && !status; n *= 2) status = measure_whole(bench, i, n, rows);
    }
    return status;
}
