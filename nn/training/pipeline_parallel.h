/*
 * What a model that trains as a pipeline became: stages, stashes, idle time.
 *
 *     cornu_pipeline_print(model, stdout);
 *
 *     pipeline: 2 stages, 8 microbatches of 16 rows, 1f1b: 18 slots
 *     MB of a shard                    time weights slots gradients  stashes sent on  back
 *     stage 0: conv2d … activation_8 51.2 %    0.29  0.29      0.29 2 x 3.24    0.40  0.40
 *     stage 1: conv2d_9 … dense      48.8 %    0.81  0.81      0.81 1 x 1.58
 *     bubble: 11.1 % of the slots, (p - 1) / (m + p - 1) is 11.1 %
 *
 * Of a device that emulates a TPU, and in one process, times are modelled (device/tpu/model.h), and
 * so is that of the whole batch; else they are parts of all stages' by operations and bytes moved.
 */
#ifndef CORNU_NN_PIPELINE_PARALLEL_H
#define CORNU_NN_PIPELINE_PARALLEL_H

#include <stdio.h>

#include "../../device/mesh/timetable.h"
#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *first, *last;   /* names of its layers, owned by the model */
    int         rank;           /* of the process that runs it, or the first of several */
    double      share;          /* of the time of all stages */
    double      forward_s, backward_s;   /* modelled, of a microbatch; 0 if it is not */
    /* Bytes of a shard. A weight that several stages read counts in the first. */
    int64_t     weight_bytes, slot_bytes, gradient_bytes;
    int         stashes;        /* microbatches of which it keeps values at once, at most */
    int64_t     stash_bytes;    /* of one of them */
    int64_t     sent_bytes, returned_bytes;   /* of a microbatch: what this stage and those before
                                                 send to later ones, and get back; 0 of the last */
} CornuPipelineStage;

typedef struct {
    int                   stages, microbatches, slots;
    int                   shards;                     /* of each stage */
    int                   ranks, sharers;             /* processes of all stages; of one stage,
                                                         which share its shards */
    int64_t               rows;                       /* of a microbatch */
    CornuPipelineSchedule schedule;
    double                bubble, least_bubble;       /* counted; (p - 1) / (m + p - 1) */
    const char           *profile;                    /* of the TPU that times are modelled for, or
                                                         NULL, and then these are 0: */
    double                step_s, idle;               /* of all stages; the part that they idle */
    CornuPipelineStage    stage[CORNU_MAX_STAGES];
} CornuPipelineReport;

/* Of the training step made last. CORNU_ERR_ARGUMENT for a model that has made none, or was not
 * compiled in the scope of a pipeline. */
CornuStatus cornu_pipeline_report(CornuModel *model, CornuPipelineReport *report);

/* Prints it as above. */
CornuStatus cornu_pipeline_print(CornuModel *model, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
