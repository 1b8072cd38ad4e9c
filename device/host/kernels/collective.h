/*
 * Collectives, in the memory that shards share: device/ops/collective.c has their definitions.
 *
 * Every element is summed in the same fixed binary tree over the members of a group: neighbours
 * first (0 and 1, 2 and 3), then the pairs, then the fours; what has no neighbour goes up as it is.
 * So processes that each hold some neighbours could exchange a few sums each and get the same bits.
 *
 * Nothing is sent: a kernel reads what other shards made, and the plan makes it wait for them. The
 * slices of a gathered value, and a shard's slice of a shared value, are usually in place already
 * (compile/plan_outputs.c).
 */
#ifndef CORNU_DEVICE_HOST_COLLECTIVE_H
#define CORNU_DEVICE_HOST_COLLECTIVE_H

#include "kernel.h"

/* replica_id: the number of the shard that computes. */
extern const CornuKernel cornu__host_all_reduce, cornu__host_reduce_scatter,
                         cornu__host_all_gather, cornu__host_shard_slice, cornu__host_replica_id;

#endif
