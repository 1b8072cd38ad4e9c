/* Products by BLIS, the rows dealt over the threads. */
#include <stdio.h>
#include <stdlib.h>

#include "../../device/cpu/blis.h"
#include "../../device/host/cpu.h"
#include "../../device/host/threads.h"
#include "bench.h"

typedef struct {
    CornuThreads *pool;
    int64_t       m, n, k;
    float        *a, *b, *c;
} Product;

static void multiply_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    const Product *p = context;
    const int64_t  parts = cornu__threads_count(p->pool);
    const int64_t  first = p->m * block / parts, end = p->m * (block + 1) / parts;
    cornu__blis_sgemm(end - first, p->n, p->k, 1, p->a + first * p->k, p->k, 1, p->b,
                      p->n, 1, 0, p->c + first * p->n, p->n, 1);
}

static void multiply(void *context)
{
    const Product *p = context;
    cornu__threads_run(p->pool, cornu__threads_count(p->pool), multiply_rows, context);
}

static float *ones(int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; values && i < count; i++) values[i] = 1;
    return values;
}

void bench_blis(void)
{
    const int sizes[][3] = { { 128, 128, 128 }, { 512, 512, 512 }, { 1024, 1024, 1024 },
                             { 128, 128, 3136 }, { 8192, 64, 288 } };
    const int most = cornu__cpu_threads();
    if (cornu__blis_open(most) != CORNU_OK) {
        printf("  %s\n", cornu_error_message());
        return;
    }
    printf("  BLIS %s, %s kernels\n", cornu__blis_version(), cornu__blis_kernels());
    for (int count = 1; count <= most; count *= 2) {
        Product p = { .pool = cornu__threads_create(count) };
        for (size_t i = 0; p.pool && i < sizeof sizes / sizeof *sizes; i++) {
            p.m = sizes[i][0], p.n = sizes[i][1], p.k = sizes[i][2];
            p.a = ones(p.m * p.k), p.b = ones(p.k * p.n), p.c = ones(p.m * p.n);
            if (!p.a || !p.b || !p.c) abort();
            printf("  %3d threads, (%d, %d) by (%d, %d): %8.1f GFLOP/s\n", count,
                   (int)p.m, (int)p.k, (int)p.k, (int)p.n,
                   2e-9 * (double)p.m * (double)p.n * (double)p.k /
                       bench_seconds(15, multiply, &p));
            free(p.a), free(p.b), free(p.c);
        }
        cornu__threads_free(p.pool);
    }
    cornu__blis_close(most);
}
