/*
 * Collectives, in the memory that shards share: device/ops/collective.c has their definitions.
 *
 * Every element is summed in the same fixed binary tree over the members of a group: neighbours
 * first (0 and 1, 2 and 3), then the pairs, then the fours; what has no neighbour goes up as it is.
 * So processes that each own some neighbours exchange a few sums each and get the same bits
 * (run/exchange.h).
 *
 * In one process nothing is sent: a kernel reads what other shards made, and the plan makes it wait
 * for them. The slices of a gathered value, and a shard's slice of a shared value, are usually in
 * place already (compile/plan/plan_outputs.c).
 */
#ifndef CORNU_DEVICE_HOST_COLLECTIVE_H
#define CORNU_DEVICE_HOST_COLLECTIVE_H

#include "kernel.h"

/* to = the tree over `members` terms of `count` elements each, on all threads. */
void cornu__tree_sum(CornuThreads *threads, CornuDtype dtype, int64_t count,
                     const void *const *terms, int members, void *to);

/* to += from: one sum of the tree. */
void cornu__tree_add(CornuDtype dtype, void *to, const void *from, int64_t count);

/*
 * With many shards, what all_reduce sums is first added up block by block: of `block` shards in a
 * row, a power of two, as the shards of a block are done, one after the other. So there need not be
 * memory for what each shard adds, only for the sum of each block, `first`, and for the sums on the
 * way to it, `others`: cornu__block_sums(block) with the first. Adds a shard's `count` elements;
 * the last of all shards ends its block.
 */
void cornu__block_add(CornuDtype dtype, int64_t count, const void *x, void *first, void *others,
                      int shard, int block, int shards);
int  cornu__block_sums(int block);

/* replica_id: the number of the shard that computes. */
extern const CornuKernel cornu__host_all_reduce, cornu__host_reduce_scatter,
                         cornu__host_all_gather, cornu__host_shard_slice, cornu__host_replica_id;

#endif
