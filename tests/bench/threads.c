/* What handing work to the pool costs: runs of blocks that do nothing, and runs in which every
 * thread takes one block and waits there for all others, which is a barrier. */
#include <stdatomic.h>
#include <stdio.h>

#include "../../device/host/cpu.h"
#include "../../device/host/threads.h"
#include "bench.h"

enum { RUNS = 1000 };

typedef struct {
    CornuThreads *pool;
    int64_t       blocks;
    atomic_int    arrived;
} Load;

static void nothing(void *context, int64_t block, int thread)
{
    (void)context, (void)block, (void)thread;
}

static void run_often(void *context)
{
    const Load *load = context;
    for (int i = 0; i < RUNS; i++)
        cornu__threads_run(load->pool, load->blocks, nothing, NULL);
}

static void wait_for_all(void *context, int64_t block, int thread)
{
    (void)block, (void)thread;
    Load *load = context;
    atomic_fetch_add(&load->arrived, 1);
    while (atomic_load(&load->arrived) < load->blocks) continue;
}

static void meet_often(void *context)
{
    Load *load = context;
    for (int i = 0; i < RUNS; i++) {
        atomic_store(&load->arrived, 0);
        cornu__threads_run(load->pool, load->blocks, wait_for_all, load);
    }
}

void bench_threads(void)
{
    const int64_t blocks[] = { 1, 2, 16, 256 };
    for (int count = 1; count <= cornu__cpu_threads(); count *= 2) {
        Load load = { .pool = cornu__threads_create(count) };
        if (!load.pool) return;
        for (int i = 0; i < 4; i++) {
            load.blocks = blocks[i];
            printf("  %3d threads, %3d empty blocks: %8.0f ns a run\n", count,
                   (int)blocks[i], 1e9 * bench_seconds(21, run_often, &load) / RUNS);
        }
        load.blocks = count;
        printf("  %3d threads, one block each:   %8.0f ns a run\n", count,
               1e9 * bench_seconds(21, meet_often, &load) / RUNS);
        cornu__threads_free(load.pool);
    }
}
