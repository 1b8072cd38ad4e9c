/* What XLA makes of a step for a machine that need not be there, beside what the tpu
 * device and its performance model say of the same step. */
#ifndef CORNU_EXAMPLES_EXPLAIN_AHEAD_H
#define CORNU_EXAMPLES_EXPLAIN_AHEAD_H

#include <stdio.h>

#include <cornu/cornu.h>

/* "pjrt:tpu,topology=v3:2x2" for the device "pjrt:tpu"; CORNU_ERR_ARGUMENT for one that does not
 * compile for topologies. */
CornuStatus explain_topology_device(const char *device, const char *topology, char *to,
                                    size_t size);

/* The topology in a device's name; NULL if it has none. */
const char *explain_topology(const char *device);

/* The profile of the same generation, "v3-8" for "v3:2x2"; NULL if there is none. */
const CornuTpuProfile *explain_topology_profile(const char *topology);

typedef struct {
    const CornuExecutable *ahead;      /* by XLA */
    const CornuExecutable *emulated;   /* by the tpu device, on as many shards; NULL: not done, and
                                        * what is counted here stands in its place */
    const CornuTpuModel   *model;      /* of that; NULL likewise */
    const char            *topology;
} Ahead;

/* Figures of one shard, side by side; at most 80 columns. */
void explain_ahead_print(const Ahead *ahead, FILE *to);

#endif
