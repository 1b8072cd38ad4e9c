/*
 * How a step would scale on slices of a TPU pod: *modelled*, nothing runs. Weak scaling
 * gives each shard as many samples as it has on the smallest slice; strong scaling divides the same
 * batch among more shards.
 */
#ifndef CORNU_EXAMPLES_EXPLAIN_SCALING_H
#define CORNU_EXAMPLES_EXPLAIN_SCALING_H

#include <stdio.h>

#include <cornu/cornu.h>

#include "../common/options.h"

enum { SCALING_ROWS = 16 };

typedef struct {
    CornuTpuSlice slice;
    int64_t       shards, batch;
    double        step_s;           /* the longer of device and infeed, without the dispatch */
    double        infeed_s;         /* that of the infeed */
    double        links_s;          /* of the device's */
    double        link_bytes;       /* that the busiest link moves one way */
    double        efficiency;       /* 1: as many times faster as there are more shards */
    double        wrapped;          /* the same if links closed every axis of a slice */
} ScalingRow;

typedef struct {
    const char *model, *policy;
    int64_t     batch, rows;        /* of strong scaling; of a shard in weak scaling */
    double      alone_s;            /* a step of `rows` samples on one shard */
    int         count;
    ScalingRow  weak[SCALING_ROWS]; /* compared with alone_s */
    int         strong_count;       /* those slices that have a sample for each shard */
    ScalingRow  strong[SCALING_ROWS];   /* compared with the first */
} Scaling;

/* Models the slices in `list`, ascending numbers of shards such as "8,32,128"; `config` has the
 * model and what it is explained with, the options the device, the batch and the numerics.
 * CORNU_ERR_ARGUMENT for another list, a device that is not a TPU, and more shards than its pod
 * has. */
CornuStatus explain_scaling_of(const Options *options, const CornuExplainConfig *config,
                               const char *list, Scaling *scaling);

/* Likewise for a network of models/; and the rows of strong scaling alone. */
CornuStatus explain_scaling(const Options *options, const CornuReferenceModel *reference,
                            const char *list, Scaling *scaling);
CornuStatus explain_strong_scaling(const Options *options, const CornuReferenceModel *reference,
                                   const char *list, Scaling *scaling);

/* At most 80 columns. */
void explain_scaling_print(const Scaling *scaling, FILE *to);

/* CORNU_ERR_FILE, CORNU_ERR_MEMORY. */
CornuStatus explain_scaling_write(const Scaling *scaling, const char *path);

#endif
