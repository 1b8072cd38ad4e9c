/*
 * One pool of threads, shared by all kernels of a device.
 */
#ifndef CORNU_DEVICE_HOST_THREADS_H
#define CORNU_DEVICE_HOST_THREADS_H

#include <stdint.h>

typedef struct CornuThreads CornuThreads;

/* `count` threads including the caller's. NULL with CORNU_ERR_ARGUMENT (count below 1),
 * CORNU_ERR_MEMORY, or CORNU_ERR_DEVICE when the system starts no more threads. */
CornuThreads *cornu__threads_create(int count);
void          cornu__threads_free(CornuThreads *threads);
int           cornu__threads_count(const CornuThreads *threads);

/* Calls work(context, block, thread) once for each block in [0, blocks), `thread` in [0,
 * count), and returns when all are done. Any thread may take any block. A call
 * from inside `work` runs its blocks one after the other on the calling thread, under the
 * same number. Nothing is allocated. Of callers on several threads one has the workers, the others
 * run their blocks alone, all as thread 0: what they give to `work` must be their own. */
typedef void CornuWork(void *context, int64_t block, int thread);
void cornu__threads_run(CornuThreads *threads, int64_t blocks, CornuWork *work,
                        void *context);

/* The block that the thread of this one of `blocks` takes next, if it does not help another one
 * with its part; `blocks` if there is none. */
int64_t cornu__threads_next(const CornuThreads *threads, int64_t blocks, int64_t block);

/* When a thread was at work: from the first block it took to the end of its last, in seconds
 * (clock_internal.h); both 0 if it took none. */
typedef struct {
    double begin_s, end_s;
} CornuSpan;

/* From now on runs record the times of each thread in `spans`, one per thread, which the caller
 * clears; NULL ends that. Not from inside `work`. */
void cornu__threads_watch(CornuThreads *threads, CornuSpan *spans);

#endif
