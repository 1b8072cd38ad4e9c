/*
 * A compiled training step as a page for people and as JSON for programs. Measured and modelled
 * numbers are in separate columns, which say which they are.
 */
#ifndef CORNU_EXAMPLES_EXPLAIN_PAGE_H
#define CORNU_EXAMPLES_EXPLAIN_PAGE_H

#include <stdio.h>

#include <cornu/cornu.h>

#include "exchanges.h"

enum { EXPLAIN_LINES = 24, EXPLAIN_WIDTH = 80 };
enum { EXPLAIN_SHARDS = 4, EXPLAIN_PROFILES = 8, EXPLAIN_ADVICE = 12 };

typedef struct {
    const char     *model, *policy, *description;
    const char     *target;          /* what is predicted: "class", "character" */
    int64_t         targets;         /* predictions per sample */
    int64_t         parameters, batch, epoch_samples;
    int             shards, threads;
    CornuStatistics statistics;
    CornuMemory     memory;          /* of a shard */

    const CornuExecutableStep *steps;
    int                        step_count;
    Exchanges                  exchanges;

    /* Measured: seconds on this machine, in the median of `runs` runs, by wall clock if the device
     * has no profiler.
     * A step that several threads run for a shard each counts as their time / the threads. */
    const double *here_s;            /* by step */
    double        wall_s;            /* of the run */
    int           runs;
    CornuClock    clock;

    /* Modelled; NULL and 0 on a device that emulates nothing. */
    const CornuTpuModel *tpu;        /* one row per step */
    const CornuTpuModel *doubled;    /* with twice the batch */
    const CornuTpuModel *by_shards[EXPLAIN_SHARDS];      /* 1, 2, 4, 8; NULL: not possible */
    const CornuTpuModel *by_profile[EXPLAIN_PROFILES];   /* each with its own shards, likewise */
} Explanation;

/* Advice that follows from the numbers, each line with the figures it is based on; returns how many
 * lines. */
typedef struct {
    char text[320];
} Advice;

int explain_advise(const Explanation *explanation, Advice advice[EXPLAIN_ADVICE]);

/* The overview: what the step does, where its time goes, what limits it, its memory, and as much
 * advice as fits. At most 80 columns and, with the line that names the device before it, 24
 * lines. */
void explain_overview(const Explanation *explanation, FILE *to);

/* Everything, with a row for each step. At most 120 columns. */
void explain_print(const Explanation *explanation, FILE *to);

/* CORNU_ERR_FILE, CORNU_ERR_MEMORY. */
CornuStatus explain_write(const Explanation *explanation, const char *path);

#endif
