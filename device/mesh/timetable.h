/*
 * Timetables of pipelines: which stage runs which part of a training step when.
 *
 * A model is cut into stages, a batch into microbatches. Of each microbatch every stage runs a
 * forward and a backward part: forward after the stage before it, backward after the stage behind
 * it. What a stage keeps of a microbatch from the one to the other is a stash.
 *
 * The timetable is made before anything runs, and is one for all stages: who follows it cannot wait
 * for what never comes. Every stage runs the microbatches in the order 0, 1, 2, …, forward and
 * backward, under any schedule; so gradients are added in that order, and have the same bits.
 *
 * Sources: arXiv 1811.06965 (GPipe), section 2; arXiv 1806.03377 (PipeDream), section 3.2, and
 * arXiv 2104.04473, section 2.2: one forward, one backward, with a flush.
 */
#ifndef CORNU_DEVICE_TIMETABLE_H
#define CORNU_DEVICE_TIMETABLE_H

#include "../status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_MAX_STAGES = 32, CORNU_MAX_MICROBATCHES = 1024 };

typedef enum {
    CORNU_GPIPE,   /* all microbatches forward, then all backward: as many stashes as those */
    CORNU_1F1B     /* backward as soon as may be: at most a stash for each stage from this one on */
} CornuPipelineSchedule;

/* "gpipe", "1f1b". */
const char *cornu_pipeline_schedule_name(CornuPipelineSchedule schedule);

/* What a stage does in a slot. */
typedef struct {
    int  slot, stage, microbatch;
    bool backward;
} CornuPipelineTask;

typedef struct {
    int                stages, microbatches;
    int                slots;
    int                count;                        /* of tasks: 2 * stages * microbatches */
    CornuPipelineTask *tasks;                        /* by slot, then by stage */
    int                stashes[CORNU_MAX_STAGES];    /* the most that each stage holds at once */
    double             bubble;                       /* the share of slots in which stages idle */
} CornuTimetable;

/* With slots of one length for every task. The caller frees it. CORNU_ERR_ARGUMENT for numbers that
 * cannot be, CORNU_ERR_MEMORY. */
CornuStatus cornu_timetable_make(CornuTimetable *timetable, int stages, int microbatches,
                                 CornuPipelineSchedule schedule);
/* Frees its tasks; NULL is ignored. */
void        cornu_timetable_free(CornuTimetable *timetable);

/* (stages - 1) / (microbatches + stages - 1), which both schedules reach. */
double cornu_timetable_least_bubble(int stages, int microbatches);

#ifdef __cplusplus
}
#endif
#endif
