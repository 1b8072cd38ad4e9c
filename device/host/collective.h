/*
 * Sums over shards, in the memory they share. Every element is added up in the same fixed binary
 * tree over the shards' numbers: neighbours first (0 and 1, 2 and 3), then the pairs, then the
 * fours. So 1, 2, 4 or 8 processes that each hold some neighbours could exchange one sum each
 * and get the same bits.
 */
#ifndef CORNU_DEVICE_HOST_COLLECTIVE_H
#define CORNU_DEVICE_HOST_COLLECTIVE_H

#include "kernel.h"

enum { CORNU_MAX_SHARDS = 8 };

/* to = the sum of *x[0], *x[stride], *x[2 stride], ... for `shards` (1 to CORNU_MAX_SHARDS)
 * values of this type: f32, f64, i64 or i32. */
void cornu__all_reduce(CornuThreads *threads, CornuType type, int shards, void *const *x,
                       int64_t stride, void *to);

/* replica_id: the number of the shard that computes. */
extern const CornuKernel cornu__host_replica_id;

#endif
