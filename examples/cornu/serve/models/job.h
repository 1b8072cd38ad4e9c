/* A request for predictions. */
#ifndef CORNU_SERVE_JOB_H
#define CORNU_SERVE_JOB_H

#include "../metrics.h"
#include "../json/rows.h"

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

/* Predicts the rows of jobs of one model, which are a list: of several at once. Sets the results or
 * the problem of each. */
void job_compute(Job *jobs, Metrics *metrics);

/* Frees rows and results. */
void job_free(Job *job);

#endif
