/*
 * The limits of this machine, measured here and now, which every other rate is a part of. On a
 * shared machine they move, so measure them in the run that they are compared with.
 *
 *     CornuCpuLimits limits;
 *     if (cornu_cpu_limits(2, &limits) == CORNU_OK)
 *         printf("%.0f GFLOP/s\n", 1e-9 * limits.f32_flops);
 */
#ifndef CORNU_DEVICE_HOST_LIMITS_H
#define CORNU_DEVICE_HOST_LIMITS_H

#include <stdbool.h>

#include "../../status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rates per second of all threads together. A multiply-add is two operations. */
typedef struct {
    int    threads;
    double f32_flops;          /* multiply-adds of f32 on registers alone                      */
    double bf16_flops;         /* of bf16 with f32 sums, the best way the instruction set in use
                                  (CORNU_ISA) has                                              */
    bool   bf16_instructions;  /* that way is an instruction for bf16; else they are widened
                                  and multiplied as f32                                        */
    double read_bytes;         /* read in order from memory: a buffer twice the last cache, from
                                  64 to 256 MiB; part of it stays in a larger cache            */
} CornuCpuLimits;

/* Takes about 50 ms for each of the three and prints nothing. The three take turns and the best
 * turn counts. threads 0: as many as there are processors. CORNU_ERR_ARGUMENT for negative threads
 * or a wrong CORNU_ISA, CORNU_ERR_MEMORY. */
CornuStatus cornu_cpu_limits(int threads, CornuCpuLimits *limits);

/* What the caches give, bytes per second of all threads together. Each thread reads memory of its
 * own again and again: half of a first-level or of a second-level cache, or its part of half the
 * last cache; where second-level caches hold that part, the last one is as fast as they are. */
typedef struct {
    int    threads;
    double l1_bytes, l2_bytes, l3_bytes;   /* read; the last 0 without a third level           */
    double copy_bytes;                     /* read and written, each counted, from memory to
                                              memory, by memcpy                                */
} CornuCacheLimits;

/* Takes about 50 ms for each but the copy, 200 ms for that one; else as cornu_cpu_limits. */
CornuStatus cornu_cache_limits(int threads, CornuCacheLimits *limits);

#ifdef __cplusplus
}
#endif
#endif
