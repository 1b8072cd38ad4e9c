/* The cost of handing work to the pool: runs of empty blocks, and runs in which each thread takes
 * one block and waits there for all others, which is a barrier. */
#include <stdatomic.h>
#include <stdio.h>

#include "../../device/host/machine/cpu.h"
#include "../../device/host/machine/threads.h"
#include "bench.h"

enum { RUNS = 100 };

typedef struct {
    CornuThreads *pool;
    int64_t       blocks;
    atomic_int    arrived;
} Load;

static void nothing(void *context, int64_t block, int thread)
{
    (void)context, (void)block, (void)thread;
}

static CornuStatus run_often(void *context)
{
    const Load *load = context;
    for (int i = 0; i < RUNS; i++)
        cornu__threads_run(load->pool, load->blocks, nothing, NULL);
    return CORNU_OK;
}

static void wait_for_all(void *context, int64_t block, int thread)
{
    (void)block, (void)thread;
    Load *load = context;
    atomic_fetch_add(&load->arrived, 1);
    while (atomic_load(&load->arrived) < load->blocks) continue;
}

static CornuStatus meet_often(void *context)
{
    Load *load = context;
    for (int i = 0; i < RUNS; i++) {
        atomic_store(&load->arrived, 0);
        cornu__threads_run(load->pool, load->blocks, wait_for_all, load);
    }
    return CORNU_OK;
}

static void measure(const Bench *bench, CornuThreads *pool, int64_t blocks, bool barrier)
{
    Load             load = { .pool = pool, .blocks = blocks };
    static BenchCase work;
    work = (BenchCase){ .run = barrier ? meet_often : run_often, .context = &load };
    bench_alternate(&work, 1, bench->seconds / 10.0);
    json_array_append_new(bench_rows(bench, "threads"),
        json_pack("{sisIsbsf}", "threads", cornu__threads_count(pool), "blocks",
                  (json_int_t)blocks, "barrier", (int)barrier, "ns",
                  1e9 * bench_quantile(&work, 0.5) / RUNS));
}

CornuStatus bench_threads(Bench *bench)
{
    for (int count = 1; count <= cornu__cpu_threads(); count *= 2) {
        CornuThreads *pool = cornu__threads_create(count);
        if (!pool) return cornu_error_take();
        for (int64_t blocks = 1; blocks <= 256; blocks *= 16) measure(bench, pool, blocks, false);
        measure(bench, pool, count, true);
        cornu__threads_free(pool);
    }
    return CORNU_OK;
}

void bench_threads_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "threads");
    printf("\nthreads: nanoseconds to hand out work and wait for its end\n");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        printf("  %3.0f threads, %3.0f %-26s %9.0f ns\n", bench_number(row, "threads"),
               bench_number(row, "blocks"),
               json_is_true(json_object_get(row, "barrier")) ? "that wait for each other"
                                                             : "empty blocks",
               bench_number(row, "ns"));
    }
}
