/*
 * Collectives between processes: what collective ops do where several processes own the shards.
 *
 * Sums follow the tree of kernels/collective.h. A process adds up the subtrees whose shards it owns
 * all of, at most a few; sends of each the elements that another process wants; and finishes the
 * tree of its own elements from everybody's subtrees. So no bit depends on how shards are dealt:
 *
 *     shards    0 1 2 3 4 5 6 7     rank 0 owns 0 to 2: the subtrees 0-1 and 2
 *                                   rank 1 owns 3 to 5: the subtrees 3 and 4-5
 *                                   rank 2 owns 6 to 7: the subtree  6-7
 *
 *     reduce_scatter   each process wants the slices of its own shards
 *     all_reduce       small: each wants all elements; large: each wants its part of them, and a
 *                      second exchange gathers the parts
 *     all_gather       each sends what its shards have to all others
 *     in groups        each sends what its shards have to those that have others of the group, and
 *                      adds by itself
 */
#ifndef CORNU_DEVICE_HOST_EXCHANGE_H
#define CORNU_DEVICE_HOST_EXCHANGE_H

#include "../compile/plan/plan.h"

typedef struct CornuCollective CornuCollective;

/* For a step with cornu__plan_exchanges. NULL without memory. The plan must outlive it. */
CornuCollective *cornu__collective_create(const CornuPlan *plan, const CornuPlanStep *step);
void             cornu__collective_free(CornuCollective *collective);

/* Memory that it needs from the begin of each run to its end, a multiple of 64; whoever has made it
 * gives it so much, aligned to 64, before the first run. */
size_t cornu__collective_bytes(const CornuCollective *collective);
void   cornu__collective_use(CornuCollective *collective, char *memory);

/* The exchanges of a run, at most two, which from now on are written to `to` as they end. */
int  cornu__collective_exchanges(const CornuCollective *collective);
void cornu__collective_report(CornuCollective *collective, int begin_step, int end_step,
                              CornuExchangeEvent *to);

/* addresses: of plan->operands on the first own shard; those of the others follow. All of it; or in
 * two parts, between which what is exchanged stays as it is: begins the exchange of a sum over all
 * shards, or of a gather, and ends it. */
CornuStatus cornu__collective_run(CornuCollective *collective, void *const *addresses);
CornuStatus cornu__collective_begin(CornuCollective *collective, void *const *addresses);
CornuStatus cornu__collective_end(CornuCollective *collective, void *const *addresses);

/* A gather into the buffer of an input that a run leaves to the next one: that begins it when it
 * begins, and ends it before it reads the buffer; whatever else uses the buffer does both
 * (buffer.h). What ranks exchange between runs, callbacks for instance, need not wait for it.
 * CORNU_OK if there is nothing left to begin or to end. */
void        cornu__gather_leave(CornuCollective *gather, void *const *addresses,
                                CornuBuffer *buffer);
CornuStatus cornu__gather_begin(CornuCollective *gather);
CornuStatus cornu__gather_end(CornuCollective *gather);

/* Reports it if it is under way no more, though nobody has waited for its end. */
void cornu__gather_note(CornuCollective *gather);

#endif
