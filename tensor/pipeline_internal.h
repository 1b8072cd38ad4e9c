/* Graphs that run as a pipeline: by microbatches and stages (device/mesh/stages.h). */
#ifndef CORNU_TENSOR_PIPELINE_INTERNAL_H
#define CORNU_TENSOR_PIPELINE_INTERNAL_H

#include "../device/mesh/stages.h"
#include "graph_internal.h"

typedef struct {
    CornuGraph      *graph;          /* the step of one microbatch, which the caller keeps */
    CornuProgram    *program;        /* all of it, not cut */
    CornuBuffer    **inputs;         /* of the program: of variables, and of what is fed */
    bool            *fed;            /* whether it is fed */
    int              microbatches;
    CornuTimetable   timetable;
    CornuStages      stages;
    CornuExecutable *executables[CORNU__MAX_PHASES];
    CornuBuffer    **feeds;          /* of input i for microbatch m: [m * inputs + i]; or NULL */
    int             *held, *first;   /* of each crossing: how many microbatches have it at once, and
                                        where their buffers begin */
    CornuBuffer    **crossing;
    int              crossing_count; /* of these buffers */
    CornuBuffer    **in, **out;      /* of the phase that runs */
} CornuPipeline;

/* What all assignments of the graph need, recorded; to be cut next. NULL with a pending error. */
CornuPipeline *cornu__pipeline_create(CornuGraph *graph);
void           cornu__pipeline_free(CornuPipeline *pipeline);

/* Cuts it into stages, by the stage of each layer's name, and compiles them. */
CornuStatus cornu__pipeline_cut(CornuPipeline *pipeline, const CornuLookup *stage_of, int stages,
                                int microbatches, CornuPipelineSchedule schedule);

/* As cornu_graph_feed_part, for a microbatch. */
CornuStatus cornu__pipeline_feed(CornuPipeline *pipeline, int microbatch, const CornuTensor *input,
                                 int64_t first, CornuArray array);

/* Runs the first so many microbatches; *at is the one that failed. */
CornuStatus cornu__pipeline_run(CornuPipeline *pipeline, int microbatches, int *at);

/* The bytes that a stage keeps of one microbatch from forward to backward, what it was sent
 * included. */
int64_t cornu__pipeline_stash(const CornuPipeline *pipeline, int stage);

#endif
