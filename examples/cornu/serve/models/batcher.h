/*
 * Computes requests that wait, several rows of one model at once: threads take what waits in the
 * order of arrival, up to --batch-size rows, as soon as so many wait or --batch-timeout is over. A
 * request shares a batch only with others that leave the bits of its predictions as they are by
 * themselves (served_most_rows).
 */
#ifndef CORNU_SERVE_BATCHER_H
#define CORNU_SERVE_BATCHER_H

#include "job.h"

typedef struct Batcher Batcher;

/* Starts the threads. NULL with a message on stderr. */
Batcher *batcher_create(const Settings *settings, Metrics *metrics, int threads);

/* False, and nothing was taken, if too many wait, or after the end. */
bool batcher_submit(Batcher *batcher, Job *job);

/* Computes all that waits, then ends the threads. */
void batcher_end(Batcher *batcher);

/* After its end, and the last call of batcher_submit. */
void batcher_free(Batcher *batcher);

#endif
