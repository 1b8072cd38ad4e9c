/*
 * A run publishes its blocks by setting `remaining`; a thread that decrements it from a positive
 * value owns a block, so a thread that wakes late finds nothing and nobody waits for it. The run is
 * over when `unfinished` is zero; only then may the next one begin, so that only owners of a block
 * read the plain fields.
 *
 * The owner then finds the block: the next of its own part, which are consecutive blocks, or once
 * that is done one of another thread's. So what neighbouring blocks share is read by one processor,
 * and from run to run its caches meet the same blocks again.
 *
 * A thread with nothing to do spins for a few microseconds, as the next op follows at once in a
 * training step, and then sleeps. Sleeping and waking follow Dekker's pattern: one side announces
 * that it sleeps, then looks for work; the other publishes work, then looks for sleepers; the four
 * accesses are sequentially consistent, so at least one side sees the other.
 */
#define _GNU_SOURCE /* sched_yield under -std=c11 */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "../../system/clock_internal.h"
#include "../../memory_internal.h"
#include "../../system/thread_internal.h"
#include "../isa/product.h"
#include "cpu.h"

enum { SPIN_NANOSECONDS = 40000, LINE = 64 };

typedef struct {
    CornuThreads *pool;
    pthread_t     handle;
    int           number;
} Worker;

/* The blocks of one thread: those from `next` to `end` are left. */
typedef struct {
    _Alignas(LINE) atomic_int_fast64_t next;
    int64_t end;
} Part;

struct CornuThreads {
    int     count;
    int     started;        /* entries of `workers` */
    Worker *workers;        /* count - 1: the caller is thread 0 */
    Part   *parts;          /* count */
    int     processors;     /* that may work at once, at most `count` */
    int64_t spin;           /* nanoseconds; 0 with more threads than processors */

    CornuWork *work;
    void      *context;
    CornuSpan *spans;       /* NULL: nobody watches */

    pthread_mutex_t one_run;
    pthread_mutex_t lock;   /* for the two conditions */
    pthread_cond_t  begun, done;
    atomic_int      sleepers;
    atomic_bool     caller_sleeps;
    atomic_bool     stop;

    /* Written at each block, so on cache lines of their own. */
    _Alignas(LINE) atomic_int_fast64_t remaining;
    _Alignas(LINE) atomic_int_fast64_t unfinished;
    _Alignas(LINE) char end;
};

/* The pool whose block this thread is running, and its number there. */
typedef struct {
    const CornuThreads *pool;
    int                 number;
} Place;

static _Thread_local Place inside;

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool begun(CornuThreads *pool)
{
    return atomic_load(&pool->remaining) > 0 || atomic_load(&pool->stop);
}

static bool done(CornuThreads *pool) { return atomic_load(&pool->unfinished) == 0; }

/* Spins until the condition holds, for a bounded time. Returns whether it holds. */
static bool spin(CornuThreads *pool, bool (*condition)(CornuThreads *))
{
    enum { LOOKS = 32 }; /* between two looks at the clock */
    if (condition(pool)) return true;
    if (pool->spin == 0) return false;
    const int64_t end = now() + pool->spin;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (condition(pool)) return true;
            relax();
        }
    } while (now() < end);
    return false;
}

static void sleep_until_begun(CornuThreads *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!begun(pool)) pthread_cond_wait(&pool->begun, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
}

/* Wakes up to `most` workers that sleep. */
static void wake_workers(CornuThreads *pool, int64_t most)
{
    if (most <= 0 || atomic_load(&pool->sleepers) == 0) return;
    pthread_mutex_lock(&pool->lock);
    if (most >= atomic_load(&pool->sleepers)) pthread_cond_broadcast(&pool->begun);
    else while (most-- > 0) pthread_cond_signal(&pool->begun);
    pthread_mutex_unlock(&pool->lock);
}

static void sleep_until_done(CornuThreads *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_sleeps, true);
    while (!done(pool)) pthread_cond_wait(&pool->done, &pool->lock);
    atomic_store(&pool->caller_sleeps, false);
    pthread_mutex_unlock(&pool->lock);
}

static void note(CornuSpan *span, double begin_s)
{
    if (span->begin_s == 0.0) span->begin_s = begin_s;
    span->end_s = cornu__seconds();
}

/* A thread that waits or runs the code of others holds no registers of tiles. */
static void release_tiles(void)
{
    const CornuProducts *products = cornu__products_of_bf16();
    if (products->release) products->release();
}

/* A block for a thread that owns one; one is left, since each owner was counted off from them. */
static int64_t find_block(CornuThreads *pool, int number)
{
    for (int i = number;; i = i + 1 < pool->count ? i + 1 : 0) {
        Part *part = &pool->parts[i];
        if (atomic_load_explicit(&part->next, memory_order_relaxed) >= part->end) continue;
        const int64_t block = atomic_fetch_add_explicit(&part->next, 1, memory_order_relaxed);
        if (block < part->end) return block;
    }
}

/* Takes blocks until there are none. */
static void take_part(CornuThreads *pool, int number)
{
    const Place before = inside;
    inside = (Place){ pool, number };
    int64_t taken = 0;
    double  begin_s = 0.0;
    while (atomic_fetch_sub(&pool->remaining, 1) > 0) {
        if (taken++ == 0 && pool->spans) begin_s = cornu__seconds();
        pool->work(pool->context, find_block(pool, number), number);
    }
    inside = before;
    release_tiles();
    if (taken > 0 && pool->spans) note(&pool->spans[number], begin_s);
    if (taken == 0 || atomic_fetch_sub(&pool->unfinished, taken) > taken) return;
    if (atomic_load(&pool->caller_sleeps)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void *worker_main(void *argument)
{
    const Worker *worker = argument;
    CornuThreads *pool = worker->pool;
    while (!atomic_load(&pool->stop)) {
        if (!spin(pool, begun)) sleep_until_begun(pool);
        /* A plain load first: a decrement would take the cache line away from the threads at work.
         * */
        if (atomic_load(&pool->remaining) > 0) take_part(pool, worker->number);
    }
    return NULL;
}

/* All blocks on the calling thread. */
static void run_here(CornuThreads *pool, int number, int64_t blocks, CornuWork *work,
                     void *context)
{
    const Place before = inside;
    inside = (Place){ pool, number };
    for (int64_t block = 0; block < blocks; block++) work(context, block, number);
    inside = before;
    release_tiles();
}

static int64_t part_begin(const CornuThreads *pool, int64_t blocks, int number)
{
    return number * blocks / pool->count;
}

void cornu__threads_run(CornuThreads *pool, int64_t blocks, CornuWork *work,
                        void *context)
{
    if (inside.pool == pool) {
        run_here(pool, inside.number, blocks, work, context);
        return;
    }
    /* While another caller has the workers, this one is faster alone than waiting for them. */
    if (blocks <= 1 || pool->count == 1 || pthread_mutex_trylock(&pool->one_run)) {
        run_here(pool, 0, blocks, work, context);
        return;
    }
    pool->work = work;
    pool->context = context;
    for (int i = 0; i < pool->count; i++) {
        Part *part = &pool->parts[i];
        atomic_store_explicit(&part->next, part_begin(pool, blocks, i), memory_order_relaxed);
        part->end = part_begin(pool, blocks, i + 1);
    }
    atomic_store(&pool->unfinished, blocks);
    atomic_store(&pool->remaining, blocks);
    wake_workers(pool, (blocks < pool->processors ? blocks : pool->processors) - 1);
    take_part(pool, 0);
    if (!spin(pool, done)) sleep_until_done(pool);
    pthread_mutex_unlock(&pool->one_run);
}

int64_t cornu__threads_next(const CornuThreads *pool, int64_t blocks, int64_t block)
{
    for (int i = 1; i < pool->count; i++)
        if (part_begin(pool, blocks, i) == block + 1) return blocks;
    return block + 1;
}

void cornu__threads_watch(CornuThreads *pool, CornuSpan *spans) { pool->spans = spans; }

int cornu__threads_count(const CornuThreads *pool) { return pool->count; }

CornuThreads *cornu__threads_create(int count)
{
    if (count < 1)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "threads is %d, expected at least 1", count);
    CornuThreads *pool = cornu__allocate_aligned(sizeof *pool);
    if (!pool) return cornu__null();
    pool->count = count;
    const int processors = cornu__cpu_threads();
    pool->processors = count < processors ? count : processors;
    pool->spin = count > processors ? 0 : SPIN_NANOSECONDS;
    pthread_mutex_init(&pool->one_run, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begun, NULL);
    pthread_cond_init(&pool->done, NULL);
    atomic_init(&pool->remaining, 0);
    atomic_init(&pool->unfinished, 0);
    atomic_init(&pool->sleepers, 0);
    atomic_init(&pool->caller_sleeps, false);
    atomic_init(&pool->stop, false);

    pool->workers = cornu__allocate((size_t)count - 1, sizeof *pool->workers);
    pool->parts = cornu__allocate_aligned((size_t)count * sizeof *pool->parts);
    if (!pool->workers || !pool->parts) goto fail;
    for (; pool->started < count - 1; pool->started++) {
        Worker *worker = &pool->workers[pool->started];
        worker->pool = pool;
        worker->number = pool->started + 1;
        const int failure = cornu__thread_start(&worker->handle, worker_main, worker);
        if (failure) {
            cornu__fail(CORNU_ERR_DEVICE, "only %d of %d threads could be started: %s; use fewer",
                        pool->started + 1, count, strerror(failure));
            goto fail;
        }
    }
    return pool;

fail:
    cornu__threads_free(pool);
    return cornu__null();
}

void cornu__threads_free(CornuThreads *pool)
{
    if (!pool) return;
    atomic_store(&pool->stop, true);
    wake_workers(pool, pool->started);
    for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i].handle, NULL);
    cornu__release(pool->parts);
    cornu__release(pool->workers);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->begun);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->one_run);
    cornu__release(pool);
}
