/*
 * What a model that trains as a pipeline became: stages, stashes, idle time.
 *
 *     cornu_pipeline_print(model, stdout);
 *
 *     pipeline: 2 stages, 8 microbatches of 16 rows, 1f1b: 18 slots
 *     stage 0: conv2d … activation_8 51.2 % of time, 0.29 MB of weights, at most 2 stashes of …
 *     stage 1: conv2d_9 … dense      48.8 % of time, 0.81 MB of weights, at most 1 stash of …
 *     bubble: 11.1 % of the slots, (p - 1) / (m + p - 1) is 11.1 %
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
    int         rank;           /* of the process that runs it */
    double      share;          /* of the modelled time of all stages */
    int64_t     weight_bytes;   /* of its layers; its slots and gradients come on top */
    int         stashes;        /* microbatches of which it keeps values at once, at most */
    int64_t     stash_bytes;    /* of one of them */
} CornuPipelineStage;

typedef struct {
    int                   stages, microbatches, slots;
    int                   ranks;                      /* processes that share the stages */
    int64_t               rows;                       /* of a microbatch */
    CornuPipelineSchedule schedule;
    double                bubble, least_bubble;       /* counted; (p - 1) / (m + p - 1) */
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
