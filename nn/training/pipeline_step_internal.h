/* Training steps that run microbatch by microbatch. */
#ifndef CORNU_NN_TRAINING_PIPELINE_STEP_INTERNAL_H
#define CORNU_NN_TRAINING_PIPELINE_STEP_INTERNAL_H

#include "../../tensor/pipeline_internal.h"
#include "../model/model_internal.h"
#include "../model/pipeline_plan_internal.h"
#include "pipeline_parallel.h"

/* A batch is fed as to shards, of which each is a microbatch. Where stages are of several ranks,
 * steps that test or predict run in stages as well, whole batches at a time. */
typedef struct CornuPipelineStep {
    CornuPipeline      *pipeline;
    CornuGraph         *update;        /* reads the sums of gradients; NULL: nothing is trained */
    CornuRankGraph     *shared;        /* that one, shared by ranks; NULL: there is one */
    CornuVariable      *predictions[CORNU_MAX_MODEL_TENSORS];   /* of a step that predicts */
    CornuVariable     **sums;          /* of the gradients of a batch, zero between batches */
    int                 sum_count;
    int                 active;        /* microbatches that have rows of the batch just fed */
    bool                dirty;         /* a run failed: the sums are not zero */
    CornuPipelineReport report;
    CornuStatistics     statistics;    /* of the programs of this process */
} CornuPipelineStep;

/* The layers of the model in the order of their first calls. */
typedef struct {
    const char **name;
    double      *cost;
    int         *stage;
    int          count;
    CornuLookup  number;     /* by name */
} CornuPipelineLayers;

/* Fills the report of a step that has been cut (pipeline_report.c). */
CornuStatus cornu__pipeline_describe(const CornuModel *model, CornuStep *step,
                                     const CornuPipelineLayers *layers);

/* CORNU_ERR_UNSUPPORTED if a loss of an output needs more than the rows of a microbatch. */
CornuStatus cornu__pipeline_check_loss(const CornuModel *model, const CornuLoss *loss,
                                       const CornuMetricCall *call);

/* Adds the gradients to sums; replaces them by these in a graph of their own, *graph, that ends by
 * setting them to zero. */
CornuStatus cornu__pipeline_sum(CornuModel *model, CornuStep *step, CornuGraph **graph,
                                CornuTensor **d_w);

#endif
