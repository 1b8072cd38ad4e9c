#include "batcher.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../clock.h"

enum { MOST_THREADS = 1024 };

struct Batcher {
    const Settings *settings;
    Metrics        *metrics;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    Served         *waiting;           /* models with jobs that wait */
    int64_t         count;             /* jobs that wait */
    bool            ending;
    int             thread_count;
    pthread_t       threads[MOST_THREADS];
};

/* ---- The queue, with the lock ---- */

/* Whether jobs of one model may share a batch of `rows` rows: the extents besides are equal, and so
 * are the bits of the predictions. */
static bool can_share(const Job *a, const Job *b, int64_t rows)
{
    const int64_t most = served_most_rows(a->served, a->rows.count);
    if (rows > most || served_most_rows(b->served, b->rows.count) != most) return false;
    for (int i = 0; i < a->rows.x_count; i++) {
        CornuShape one = a->rows.x[i].type.shape, other = b->rows.x[i].type.shape;
        one.extent[0] = other.extent[0] = 0;
        if (!cornu_shape_equal(one, other)) return false;
    }
    return true;
}

/* The model whose first job has waited longest, of those that are due; else NULL and when the next
 * one is. */
static Served *find_due(const Batcher *batcher, double now_s, double *next_s)
{
    const double wait_s = 1e-3 * batcher->settings->batch_timeout_ms;
    Served      *due = NULL;
    *next_s = INFINITY;
    for (Served *served = batcher->waiting; served; served = served->queue.next) {
        const Job   *first = served->queue.first;
        const double queued_s = first->queued_s;
        if (served->queue.rows >= served_most_rows(served, first->rows.count) ||
            batcher->ending || now_s >= queued_s + wait_s) {
            if (!due || queued_s < due->queue.first->queued_s) due = served;
        } else {
            *next_s = fmin(*next_s, queued_s + wait_s);
        }
    }
    return due;
}

/* Takes jobs from the front whose rows fit one batch, at least one job. */
static Job *take(Batcher *batcher, Served *served)
{
    ServedQueue *queue = &served->queue;
    Job         *first = queue->first, *last = first;
    int64_t      rows = first->rows.count;
    batcher->count--;
    while (last->next && can_share(first, last->next, rows + last->next->rows.count)) {
        last = last->next;
        rows += last->rows.count;
        batcher->count--;
    }
    queue->first = last->next;
    queue->rows -= rows;
    last->next = NULL;
    if (!queue->first) {
        Served **at = &batcher->waiting;
        while (*at != served) at = &(*at)->queue.next;
        *at = queue->next;
        queue->last = NULL;
        queue->next = NULL;
    }
    return first;
}

/* ---- The threads ---- */

/* Those that waited too long are answered so; the others are returned. */
static Job *drop_late(Batcher *batcher, Job *jobs, double now_s)
{
    Job *kept = NULL, **end = &kept;
    while (jobs) {
        Job *job = jobs;
        jobs = job->next;
        job->next = NULL;
        metrics_add(batcher->metrics, METRIC_QUEUING_LATENCY, 1e6 * (now_s - job->queued_s),
                    "thread_pool_name=\"cornu_serve\"");
        if (now_s - job->queued_s <= batcher->settings->timeout_s) {
            *end = job;
            end = &job->next;
        } else {
            problem_set(&job->problem, CODE_DEADLINE_EXCEEDED, "Timed out after %g s in the queue",
                        now_s - job->queued_s);
            job->done(job);
        }
    }
    return kept;
}

static void wait_until(Batcher *batcher, double time_s)
{
    if (!isfinite(time_s)) {
        pthread_cond_wait(&batcher->changed, &batcher->lock);
        return;
    }
    const struct timespec until = { (time_t)time_s, (long)(1e9 * (time_s - floor(time_s))) };
    pthread_cond_timedwait(&batcher->changed, &batcher->lock, &until);
}

static void *work(void *context)
{
    Batcher *batcher = context;
    pthread_mutex_lock(&batcher->lock);
    while (!batcher->ending || batcher->waiting) {
        double       next_s;
        const double now_s = clock_seconds();
        Served      *served = find_due(batcher, now_s, &next_s);
        if (!served) {
            wait_until(batcher, next_s);
            continue;
        }
        Job *jobs = take(batcher, served);
        metrics_set(batcher->metrics, METRIC_QUEUE, (double)batcher->count);
        pthread_mutex_unlock(&batcher->lock);
        jobs = drop_late(batcher, jobs, now_s);
        if (jobs) job_compute(jobs, batcher->metrics);
        while (jobs) {
            Job *job = jobs;
            jobs = job->next;          /* the job is gone once it is done */
            job->done(job);
        }
        pthread_mutex_lock(&batcher->lock);
    }
    pthread_mutex_unlock(&batcher->lock);
    return NULL;
}

/* ---- Start, submit, end ---- */

Batcher *batcher_create(const Settings *settings, Metrics *metrics, int threads)
{
    Batcher           *batcher = calloc(1, sizeof *batcher);
    pthread_condattr_t monotonic;
    if (!batcher) {
        fputs("cornu serve: no memory for a queue\n", stderr);
        return NULL;
    }
    batcher->settings = settings;
    batcher->metrics = metrics;
    pthread_mutex_init(&batcher->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&batcher->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int i = 0; i < threads && i < MOST_THREADS; i++, batcher->thread_count++)
        if (pthread_create(&batcher->threads[i], NULL, work, batcher)) break;
    if (batcher->thread_count > 0) return batcher;
    fputs("cornu serve: cannot start a thread\n", stderr);
    batcher_free(batcher);
    return NULL;
}

bool batcher_submit(Batcher *batcher, Job *job)
{
    Served *served = job->served;
    job->next = NULL;
    job->queued_s = clock_seconds();
    pthread_mutex_lock(&batcher->lock);
    const bool taken = !batcher->ending && batcher->count < batcher->settings->queue;
    if (taken) {
        if (served->queue.first) {
            served->queue.last->next = job;
        } else {
            served->queue.first = job;
            served->queue.next = batcher->waiting;
            batcher->waiting = served;
        }
        served->queue.last = job;
        served->queue.rows += job->rows.count;
        batcher->count++;
        pthread_cond_signal(&batcher->changed);
    }
    const int64_t rows = job->rows.count;
    metrics_set(batcher->metrics, METRIC_QUEUE, (double)batcher->count);
    pthread_mutex_unlock(&batcher->lock);
    if (taken) metrics_add(batcher->metrics, METRIC_INPUT_SIZE, (double)rows, "%s", "");
    return taken;
}

void batcher_end(Batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    batcher->ending = true;
    pthread_cond_broadcast(&batcher->changed);
    pthread_mutex_unlock(&batcher->lock);
    for (int i = 0; i < batcher->thread_count; i++) pthread_join(batcher->threads[i], NULL);
    batcher->thread_count = 0;
}

void batcher_free(Batcher *batcher)
{
    if (!batcher) return;
    batcher_end(batcher);
    pthread_cond_destroy(&batcher->changed);
    pthread_mutex_destroy(&batcher->lock);
    free(batcher);
}
