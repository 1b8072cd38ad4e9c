/* What a strategy of pipelines asks of the models compiled in its scope. */
#ifndef CORNU_NN_MODEL_PIPELINE_PLAN_INTERNAL_H
#define CORNU_NN_MODEL_PIPELINE_PLAN_INTERNAL_H

#include "strategy.h"

typedef struct CornuPipelinePlan {
    int                   stages, microbatches;
    CornuPipelineSchedule schedule;
    int                   cuts;                  /* 0: where stages take equal times */
    char                  cut_at[CORNU_MAX_STAGES - 1][64];
    int                   layers;                /* of a model's own plan: these, and the stage */
    int                  *stage;                 /* of each in the order of their calls; NULL: no
                                                    step is cut yet */
} CornuPipelinePlan;

/* The stages, of which a timetable has to be possible, and where they begin. CORNU_ERR_ARGUMENT. */
CornuStatus cornu__plan_stages(const CornuPipelineParallelConfig *config, CornuPipelinePlan *plan);

/* That of a strategy; NULL: it has none, or is NULL. */
const CornuPipelinePlan *cornu__strategy_plan(const CornuStrategy *strategy);

/* The model trains by a copy of the plan from now on; NULL: by none. */
CornuStatus cornu__model_set_plan(CornuModel *model, const CornuPipelinePlan *plan);

/* Frees a model's own plan; NULL is ignored. */
void cornu__pipeline_plan_free(CornuPipelinePlan *plan);

#endif
