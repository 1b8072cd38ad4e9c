/*
 * Tables with a sparse gradient: a training step that looks up 4,096 of 10^5, 10^6, 10^7 rows of 32
 * columns, by SGD, Adagrad and lazy Adam. The tables of an optimizer take turns, so that a busy
 * moment affects all; peers/compare_embedding alternates this with PyTorch's EmbeddingBag.
 */
#include <stdio.h>
#include <string.h>

#include "../../nn/optimizers/optimizer_internal.h"
#include "bench.h"

enum { LOOKUPS = 4096, COLUMNS = 32, BATCHES = 64, STEPS = 8, SIZES = 3 };

static const int64_t sizes[SIZES] = { 100000, 1000000, 10000000 };

typedef struct {
    CornuVariable  *table;
    CornuOptimizer *optimizer;
    CornuGraph     *graph;
    CornuTensor    *indices;
    int32_t        *batches;    /* (BATCHES, LOOKUPS) */
    int             next;
} Table;

static CornuOptimizer *optimizer_of(const char *name)
{
    return !strcmp(name, "sgd") ? cornu_sgd(0.01) : cornu_optimizer(name);
}

/* loss = the sum of (row - 1)^2 */
static CornuStatus record(Table *t)
{
    CornuTensor *w = cornu_read(t->graph, t->table), *d_w;
    CornuTensor *rows = cornu_op_shift(cornu_op_gather(w, t->indices), -1.0);
    CORNU__TRY(cornu_gradients(cornu_op_sum(cornu_op_square(rows)), &w, 1, &d_w));
    CORNU__TRY(cornu_optimizer_apply(t->optimizer, t->graph, &d_w));
    return cornu_graph_prepare(t->graph, NULL, 0);
}

static CornuStatus open_table(Table *t, CornuDevice *device, const char *name, int64_t rows)
{
    uint64_t state = 1;
    t->table = cornu_variable_create(device, cornu_type(CORNU_F32, rows, COLUMNS), "embeddings",
                                     .sparse_gradient = true);
    t->optimizer = optimizer_of(name);
    t->graph = cornu_graph_create(device);
    t->batches = cornu__allocate(BATCHES * LOOKUPS, sizeof *t->batches);
    if (!t->table || !t->optimizer || !t->graph || !t->batches) return cornu_error_take();
    t->indices = cornu_graph_input(t->graph, cornu_type(CORNU_I32, LOOKUPS));
    for (int i = 0; i < BATCHES * LOOKUPS; i++) {   /* Knuth's MMIX generator */
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        t->batches[i] = (int32_t)((state >> 33) % (uint64_t)rows);
    }
    CORNU__TRY(cornu_optimizer_build(t->optimizer, &t->table, 1));
    return record(t);
}

static void close_table(Table *t)
{
    cornu_graph_free(t->graph);
    cornu_variable_free(t->table);
    cornu_optimizer_free(t->optimizer);
    cornu__release(t->batches);
}

static CornuStatus run(void *context)
{
    Table *t = context;
    for (int i = 0; i < STEPS; i++, t->next++) {
        int32_t *batch = t->batches + t->next % BATCHES * LOOKUPS;
        CORNU__TRY(cornu_graph_feed(t->indices, cornu_array(batch, CORNU_I32, LOOKUPS)));
        CORNU__TRY(cornu_run(t->graph, NULL, 0, NULL));
    }
    return CORNU_OK;
}

static CornuStatus measure(Bench *bench, CornuDevice *device, const char *name)
{
    static BenchCase cases[SIZES];
    Table            tables[SIZES] = { 0 };
    CornuStatus      status = CORNU_OK;
    for (int i = 0; i < SIZES && !status; i++) {
        status = open_table(&tables[i], device, name, sizes[i]);
        cases[i] = (BenchCase){ .run = run, .context = &tables[i] };
    }
    for (int i = 0; i < SIZES * BATCHES / STEPS && !status; i++) status = run(&tables[i % SIZES]);
    if (!status) status = bench_alternate(cases, SIZES, bench->seconds);
    for (int i = 0; i < SIZES; i++) {
        const double us = status ? 0.0 : 1e6 * bench_quantile(&cases[i], 0.5) / STEPS;
        if (!status)
            json_array_append_new(bench_rows(bench, "embedding"),
                                  json_pack("{sssIsfsf}", "optimizer", name, "rows",
                                            (json_int_t)sizes[i], "us", us, "us_low",
                                            1e6 * bench_quantile(&cases[i], 0.0) / STEPS));
        close_table(&tables[i]);
    }
    return status;
}

CornuStatus bench_embedding(Bench *bench)
{
    static const char *const names[] = { "sgd", "adagrad", "adam" };
    CornuDevice *device = cornu_device_open("cpu");
    CornuStatus  status = device ? CORNU_OK : cornu_error_take();
    for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++)
        status = measure(bench, device, names[i]);
    cornu_device_close(device);
    return status;
}

void bench_embedding_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "embedding");
    printf("\nembedding: %d lookups in tables with a sparse gradient, %d columns, on cpu; "
           "microseconds a step\n  %-8s %10s %9s %9s %9s\n", LOOKUPS, COLUMNS, "", "rows",
           "median", "fastest", "of 10^5");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *first = json_array_get(rows, i / SIZES * SIZES);
        printf("  %-8s %10.0f %9.1f %9.1f %9.2f\n", bench_text(row, "optimizer"),
               bench_number(row, "rows"), bench_number(row, "us"), bench_number(row, "us_low"),
               bench_number(row, "us") / bench_number(first, "us"));
    }
}
