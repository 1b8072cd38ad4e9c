/*
 * Computes requests that wait, several rows of one model at once: threads take what waits in the
 * order of arrival, up to --batch-size rows, as soon as so many wait or --batch-timeout is over. A
 * request shares a batch only with others that leave the bits of its predictions as they are by
 * themselves (served_most_rows).
 */
#ifndef CORNU_SERVE_BATCHER_H
#define CORNU_SERVE_BATCHER_H

#include "metrics.h"
#include "rows.h"

/* A request that waits. `done` is called once, by a thread of the batcher. */
typedef struct Job {
    Served     *served;                /* held by whoever made the job */
    Rows        rows;
    const char *api;                   /* "Predict", …: for figures */
    CornuArray  y[CORNU_MAX_MODEL_TENSORS];   /* of each output; data to be freed by job_free */
    Problem     problem;
    double      queued_s;
    void      (*done)(struct Job *job);
    struct Job *next;
} Job;

/* Frees rows and results. */
void job_free(Job *job);

typedef struct Batcher Batcher;

/* Starts the threads. NULL with a message on stderr. */
Batcher *batcher_create(const Settings *settings, Metrics *metrics, int threads);

/* False, and nothing was taken, if too many wait, or after the end. */
bool batcher_submit(Batcher *batcher, Job *job);

/* Computes all that waits, then ends the threads. */
void batcher_end(Batcher *batcher);

/* After its end, and the last call of batcher_submit. */
void batcher_free(Batcher *batcher);

/* Seconds of a clock that only runs on. */
double clock_seconds(void);

#endif
