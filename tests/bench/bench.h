/* build/bench: measures this machine and our kernels side by side. `build/bench threads`
 * runs the groups whose name contains "threads". All times are measured here, by the wall
 * clock. */
#ifndef CORNU_TESTS_BENCH_H
#define CORNU_TESTS_BENCH_H

/* name, function: one file each */
#define BENCH_MAP(X)             \
    X("threads", bench_threads)  \
    X("blis",    bench_blis)     \
    X("kernels", bench_kernels)  \
    X("recurrent", bench_recurrent)

#define X(name, function) void function(void);
BENCH_MAP(X)
#undef X

/* Seconds of one call of function(context): the median of `repeats` calls after one to
 * warm up. */
double bench_seconds(int repeats, void (*function)(void *context), void *context);

#endif
