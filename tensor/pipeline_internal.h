/* Graphs that run as a pipeline: by microbatches and stages (device/mesh/stages.h), which are dealt
 * to the ranks of the device's processes, or groups of ranks, in contiguous blocks. With a mesh the
 * program that is cut is the one for its shards, each of which runs all stages. */
#ifndef CORNU_TENSOR_PIPELINE_INTERNAL_H
#define CORNU_TENSOR_PIPELINE_INTERNAL_H

#include "../device/device_internal.h"
#include "../device/mesh/stages.h"
#include "graph_internal.h"
#include "ranks_internal.h"

typedef struct {
    CornuGraph      *graph;          /* the step of one microbatch, which the caller keeps */
    CornuProgram    *program;        /* all of it, not cut */
    CornuBuffer    **inputs;         /* of the program: of variables, and of what is fed */
    bool            *fed;            /* whether it is fed */
    int              microbatches;
    CornuTimetable   timetable;
    CornuStages      stages;
    CornuExecutable *executables[CORNU__MAX_PHASES];   /* of this rank's stages */
    CornuBuffer    **feeds;          /* of input i for microbatch m: [m * inputs + i]; or NULL */
    int             *held, *first;   /* of each crossing: how many microbatches have it at once, and
                                        where their buffers begin */
    CornuBuffer    **crossing;       /* NULL: of other ranks */
    int              crossing_count; /* of these buffers */
    CornuBuffer    **in, **out;      /* of the phase that runs */

    CornuRanks       ranks;
    uint32_t        *readers;        /* of each input: bit r: a phase of rank r reads it */
    CornuExchange   *exchanges;      /* of each slot; these five NULL: there is one rank */
    CornuMessage    *sends, *receives;                 /* of a run, in the order of the slots */
    int              send_count, receive_count;
    int             *exchanged;      /* of each crossing buffer: 1 + the slot whose exchange uses it
                                        last in this run; 0: none */
    int              finished;       /* slots whose exchanges have ended */
} CornuPipeline;

/* What all assignments of the graph need, recorded; to be cut next. NULL with a pending error. */
CornuPipeline *cornu__pipeline_create(CornuGraph *graph);
void           cornu__pipeline_free(CornuPipeline *pipeline);

/* Cuts it into stages, by the stage of each layer's name, and compiles those of this rank.
 * Variables of layers are dealt to the ranks that read them. With several ranks all call it. */
CornuStatus cornu__pipeline_cut(CornuPipeline *pipeline, const CornuLookup *stage_of, int stages,
                                int microbatches, CornuPipelineSchedule schedule);

/* As cornu_graph_feed_part, for a microbatch: its rows on all shards. */
CornuStatus cornu__pipeline_feed(CornuPipeline *pipeline, int microbatch, const CornuTensor *input,
                                 int64_t first, CornuArray array);

/* Runs the first so many microbatches; *at is the one that failed. */
CornuStatus cornu__pipeline_run(CornuPipeline *pipeline, int microbatches, int *at);

/* The bytes that a shard of a stage keeps of one microbatch from forward to backward, what it was
 * sent included. */
int64_t cornu__pipeline_stash(const CornuPipeline *pipeline, int stage);

/* ---- Between ranks (pipeline_ranks.c) ---- */

int cornu__phase_rank(const CornuPipeline *pipeline, int phase);
int cornu__task_phase(const CornuPipeline *pipeline, const CornuPipelineTask *task);

/* Whether this rank makes or reads a crossing. */
bool cornu__crossing_is_here(const CornuPipeline *pipeline, const CornuCrossing *crossing);

/* Deals the variables, and makes room for what is exchanged. */
CornuStatus cornu__pipeline_deal(CornuPipeline *pipeline);

/* Before a task of this rank: waits for what it reads, and for what was sent from where it
 * writes. */
CornuStatus cornu__pipeline_await(CornuPipeline *pipeline, const CornuPipelineTask *task);

/* Begins the exchange of what the tasks of a slot, from `first` to `end`, have made. */
CornuStatus cornu__pipeline_exchange(CornuPipeline *pipeline, int first, int end,
                                     int microbatches);

/* After the last slot: all has been exchanged, and what one rank has written all have. */
CornuStatus cornu__pipeline_end(CornuPipeline *pipeline);

#endif
