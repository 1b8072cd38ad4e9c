/*
 * The limits of this machine: whether they are plausible, and agree with other measurements.
 *
 * tests/run: alone
 */
#include "../../../../device/host/machine/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../../../device/host/machine/cpu.h"
#include "../../../../device/host/isa/product.h"
#include "../../../allocations.h"
#include "../../../skip.h"

static CornuCpuLimits measured(const char *isa, int threads)
{
    CornuCpuLimits limits;
    if (isa) setenv("CORNU_ISA", isa, 1);
    else unsetenv("CORNU_ISA");
    if (cornu_cpu_limits(threads, &limits)) fail_msg("%s", cornu_error_message());
    unsetenv("CORNU_ISA");
    return limits;
}

static void rates_are_of_the_threads_asked_for(void **state)
{
    (void)state;
    const CornuCpuLimits one = measured(NULL, 1), all = measured(NULL, 0);
    assert_int_equal(one.threads, 1);
    assert_int_equal(all.threads, cornu__cpu_threads());
    /* No machine computes below 100 MFLOP/s or reads less than 100 MB/s; none has 100 TFLOP/s in
     * one thread or reads 10 TB/s. */
    for (int i = 0; i < 2; i++) {
        const CornuCpuLimits *limits = i ? &all : &one;
        assert_true(limits->f32_flops > 1e8 && limits->f32_flops < 1e14 * limits->threads);
        assert_true(limits->bf16_flops > 1e8 && limits->bf16_flops < 1e14 * limits->threads);
        assert_true(limits->read_bytes > 1e8 && limits->read_bytes < 1e13);
    }
}

/* Multiply-adds per second of this thread, timed here. */
static double timed(const CornuProducts *products)
{
    const int64_t   steps = 1 << 18;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    static volatile float sink;
    sink = products->limit(steps);
    (void)sink;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)steps * products->limit_flops /
           ((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
}

/* Nothing is counted twice or left out. Both are measured again, the best of each counting, as long
 * as other programs may have slowed one of them. */
static void a_rate_is_operations_by_seconds(void **state)
{
    (void)state;
    double limit = 0.0, best = 0.0;
    for (int round = 0; round < 40; round++) {
        const double seen = measured(NULL, 1).f32_flops;
        if (seen > limit) limit = seen;
        for (int turn = 0; turn < 20; turn++) {
            const double rate = timed(cornu__products());
            if (rate > best) best = rate;
        }
        if (round >= 2 && limit > 0.7 * best && limit < 1.4 * best) return;
    }
    fail_msg("%g operations per second, %g timed here", limit, best);
}

static void they_follow_the_instruction_set(void **state)
{
    (void)state;
    const CornuIsa best = cornu__cpu()->best, preferred = cornu__cpu()->preferred;
    assert_false(measured("portable", 1).bf16_instructions);
    assert_int_equal(measured(NULL, 1).bf16_instructions, preferred >= CORNU_F32_ISA_COUNT);
#if defined(__aarch64__)
    SKIP_FOR(SKIP_ISA);   /* registers are as wide as those of portable */
#endif
    if (best == CORNU_ISA_PORTABLE) SKIP_FOR(SKIP_ISA);
    /* Registers twice as wide or wider; repeated if another program interfered. */
    for (int round = 0; round < 40; round++)
        if (measured(NULL, 1).f32_flops > 1.5 * measured("portable", 1).f32_flops) return;
    fail_msg("%s is not faster than portable", cornu__isa_name(best));
}

static CornuCacheLimits measured_caches(int threads)
{
    CornuCacheLimits limits;
    if (cornu_cache_limits(threads, &limits)) fail_msg("%s", cornu_error_message());
    return limits;
}

/* Repeated if another program interfered. */
static void caches_are_faster_than_memory(void **state)
{
    (void)state;
    if (!allocations_counted())
        SKIP_FOR(SKIP_SANITIZER);   /* a sanitizer's checks take longer than the reads */
    CornuCacheLimits caches;
    CornuCpuLimits   memory;
    for (int round = 0; round < 40; round++) {
        caches = measured_caches(1), memory = measured(NULL, 1);
        assert_int_equal(caches.threads, 1);
        assert_true(caches.copy_bytes > 1e8 && caches.copy_bytes < 1e13);
        assert_true((caches.l3_bytes > 0.0) == (cornu__cpu()->l3 > 0));
        if (caches.l1_bytes > 1.2 * caches.l2_bytes && caches.l2_bytes > 1.2 * memory.read_bytes)
            return;
    }
    fail_msg("%g, %g, %g bytes per second of L1, L2, DRAM", caches.l1_bytes, caches.l2_bytes,
             memory.read_bytes);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    CornuCpuLimits limits;
    assert_int_equal(cornu_cpu_limits(-1, &limits), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "-1"));
    CornuCacheLimits caches;
    assert_int_equal(cornu_cache_limits(-1, &caches), CORNU_ERR_ARGUMENT);
    setenv("CORNU_ISA", "nonsense", 1);
    assert_int_equal(cornu_cpu_limits(1, &limits), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "nonsense"));
    unsetenv("CORNU_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_of_the_threads_asked_for),
        cmocka_unit_test(a_rate_is_operations_by_seconds),
        cmocka_unit_test(they_follow_the_instruction_set),
        cmocka_unit_test(caches_are_faster_than_memory),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
