/* The rates of registers, caches and memory, by number of threads. */
#include <stdio.h>

#include "../../device/host/machine/cpu.h"
#include "bench.h"

static void keep_larger(double *best, double now)
{
    if (now > *best) *best = now;
}

static CornuStatus measure(BenchLimits *best, int threads)
{
    CornuCpuLimits   cpu;
    CornuCacheLimits cache;
    CornuStatus      status = cornu_cpu_limits(threads, &cpu);
    if (!status) status = cornu_cache_limits(threads, &cache);
    if (status) return status;
    best->cpu.threads = best->cache.threads = threads;
    best->cpu.bf16_instructions = cpu.bf16_instructions;
    keep_larger(&best->cpu.f32_flops, cpu.f32_flops);
    keep_larger(&best->cpu.bf16_flops, cpu.bf16_flops);
    keep_larger(&best->cpu.read_bytes, cpu.read_bytes);
    keep_larger(&best->cache.l1_bytes, cache.l1_bytes);
    keep_larger(&best->cache.l2_bytes, cache.l2_bytes);
    keep_larger(&best->cache.l3_bytes, cache.l3_bytes);
    keep_larger(&best->cache.copy_bytes, cache.copy_bytes);
    return CORNU_OK;
}

/* Billions per second. */
static json_t *pack(const BenchLimits *limits)
{
    const CornuCpuLimits   *cpu = &limits->cpu;
    const CornuCacheLimits *cache = &limits->cache;
    return json_pack("{sisfsfsbsfsfsfsfsf}", "threads", cpu->threads, "fp32",
                     1e-9 * cpu->f32_flops, "bf16", 1e-9 * cpu->bf16_flops, "bf16_instructions",
                     (int)cpu->bf16_instructions, "l1_read", 1e-9 * cache->l1_bytes, "l2_read",
                     1e-9 * cache->l2_bytes, "l3_read", 1e-9 * cache->l3_bytes, "dram_read",
                     1e-9 * cpu->read_bytes, "dram_copy", 1e-9 * cache->copy_bytes);
}

/* Called before and after the other groups; keeps the better figures. */
CornuStatus bench_limits(Bench *bench)
{
    const int most = cornu__cpu_threads();
    json_t   *by_threads = json_array();
    bench->limit_count = 0;
    for (int threads = 1; bench->limit_count < BENCH_MOST_LIMITS; threads *= 2) {
        if (threads > most) threads = most;
        BenchLimits *limits = &bench->limits[bench->limit_count++];
        CornuStatus  status = measure(limits, threads);
        if (status) return status;
        json_array_append_new(by_threads, pack(limits));
        if (threads == most) break;
    }
    json_t *all = pack(bench_limits_of(bench, most));
    json_object_set_new(all, "by_threads", by_threads);
    json_object_set_new(bench->page, "limits", all);
    return CORNU_OK;
}

const BenchLimits *bench_limits_of(const Bench *bench, int threads)
{
    int i = 0;
    while (i < bench->limit_count - 1 && bench->limits[i].cpu.threads < threads) i++;
    return &bench->limits[i];
}

void bench_limits_print(const Bench *bench)
{
    const json_t *machine = json_object_get(bench->page, "machine");
    printf("%s | %s | %.0f threads | load %.2f at the start\n", bench_text(machine, "cpu"),
           bench_text(machine, "isa"), bench_number(machine, "threads"),
           bench_number(machine, "load"));
    printf("limits, before and after the rest, the better of the two\n"
           "           GFLOP/s in registers   GB/s read from                     GB/s copied\n"
           "  threads      fp32      bf16       L1       L2       L3     DRAM     DRAM\n");
    for (int i = 0; i < bench->limit_count; i++) {
        const BenchLimits *l = &bench->limits[i];
        printf("  %7d %9.1f %9.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", l->cpu.threads,
               1e-9 * l->cpu.f32_flops, 1e-9 * l->cpu.bf16_flops, 1e-9 * l->cache.l1_bytes,
               1e-9 * l->cache.l2_bytes, 1e-9 * l->cache.l3_bytes, 1e-9 * l->cpu.read_bytes,
               1e-9 * l->cache.copy_bytes);
    }
}
