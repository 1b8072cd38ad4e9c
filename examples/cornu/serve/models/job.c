#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "../../clock.h"

void job_free(Job *job)
{
    for (int i = 0; job->served && i < job->served->output_count; i++) {
        free(job->y[i].data);
        job->y[i].data = NULL;
    }
    rows_free(&job->rows);
}

static double compute(Served *served, const CornuArray *x, const CornuArray *y, Problem *problem)
{
    const double begin_s = clock_seconds();
    served_predict(served, x, y, problem);
    return clock_seconds() - begin_s;
}

static void observe(Metrics *metrics, const Job *job, double seconds)
{
    MetricsLabel name;
    metrics_add(metrics, METRIC_RUNTIME_LATENCY, 1e6 * seconds,
                "model_name=\"%s\",API=\"%s\",runtime=\"Cornu\"",
                metrics_label(&name, job->served->name), job->api);
}

static void run_alone(Metrics *metrics, Job *job)
{
    if (!served_make_outputs(job->served, job->rows.x, job->y, &job->problem)) return;
    const double seconds = compute(job->served, job->rows.x, job->y, &job->problem);
    observe(metrics, job, seconds);
    metrics_add(metrics, METRIC_BATCH_SIZE, (double)job->rows.count, "%s", "");
}

/* Copies the rows of a job into or out of those of a batch, from row `at` on. */
static void copy_rows(CornuArray *batch, CornuArray *job, int64_t at, bool in)
{
    const CornuType type = job->type;
    const size_t    bytes = (size_t)cornu_type_count(type) * cornu_dtype_size(type.dtype);
    char           *there = (char *)batch->data + bytes / (size_t)type.shape.extent[0] * (size_t)at;
    if (in) memcpy(there, job->data, bytes);
    else memcpy(job->data, there, bytes);
}

/* Computes several jobs at once. False if none has results. */
static bool run_together(Metrics *metrics, Job *jobs)
{
    Served    *served = jobs->served;
    CornuArray x[CORNU_MAX_MODEL_TENSORS] = { { .data = NULL } };
    CornuArray y[CORNU_MAX_MODEL_TENSORS] = { { .data = NULL } };
    Problem    problem = { .code = CODE_OK };
    int64_t    rows = 0, at = 0;
    double     seconds = 0;
    bool       good = true;
    for (Job *job = jobs; job; job = job->next) rows += job->rows.count;
    for (int i = 0; i < served->input_count && good; i++) {
        x[i].type = jobs->rows.x[i].type;
        x[i].type.shape.extent[0] = rows;
        good = (x[i].data = malloc((size_t)cornu_type_count(x[i].type) *
                                   cornu_dtype_size(x[i].type.dtype))) != NULL;
    }
    for (Job *job = jobs; job && good; at += job->rows.count, job = job->next)
        for (int i = 0; i < served->input_count; i++) copy_rows(&x[i], &job->rows.x[i], at, true);
    good = good && served_make_outputs(served, x, y, &problem);
    if (good) seconds = compute(served, x, y, &problem);
    good = good && !problem.code;
    for (Job *job = jobs; job && good; job = job->next)
        good = served_make_outputs(served, job->rows.x, job->y, &job->problem);
    at = 0;
    for (Job *job = jobs; job && good; at += job->rows.count, job = job->next) {
        for (int i = 0; i < served->output_count; i++) copy_rows(&y[i], &job->y[i], at, false);
        observe(metrics, job, seconds);
    }
    if (good) metrics_add(metrics, METRIC_BATCH_SIZE, (double)rows, "%s", "");
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        free(x[i].data);
        free(y[i].data);
    }
    return good;
}

/* If a batch fails, so may only one of its requests: then each is computed by itself. */
void job_compute(Job *jobs, Metrics *metrics)
{
    if (jobs->next && run_together(metrics, jobs)) return;
    for (Job *job = jobs; job; job = job->next) {
        for (int i = 0; i < job->served->output_count; i++) {
            free(job->y[i].data);
            job->y[i].data = NULL;
        }
        job->problem.code = CODE_OK;
        run_alone(metrics, job);
    }
}
