/*
 * Collectives, in the memory that shards share: device/ops/collective.c says what they mean.
 *
 * Every element of a sum is added up in the same fixed binary tree over the members of a group:
 * neighbours first (0 and 1, 2 and 3), then the pairs, then the fours. So 1, 2, 4 or 8 processes
 * that each hold some neighbours could exchange one sum each and get the same bits.
 *
 * Nothing is sent: a kernel reads what other shards made, and the plan sees to it that they have.
 * A gathered value's slices, and a shard's slice of a shared value, are as a rule where they belong
 * already (plan.c).
 */
#ifndef CORNU_DEVICE_HOST_COLLECTIVE_H
#define CORNU_DEVICE_HOST_COLLECTIVE_H

#include "kernel.h"

/* replica_id: the number of the shard that computes. */
extern const CornuKernel cornu__host_all_reduce, cornu__host_reduce_scatter,
                         cornu__host_all_gather, cornu__host_shard_slice, cornu__host_replica_id;

#endif
