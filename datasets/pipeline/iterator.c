/*
 * An iterator is a ring buffer of depth + 1 elements: one is the caller's, the others are ready or
 * being filled by the threads, each of which has stages of its own and takes the next element that
 * none has taken. Without prefetch the ring has one element, filled by the caller's thread.
 */
#include "iterator.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/system/clock_internal.h"
#include "../../device/system/thread_internal.h"
#include "dataset_internal.h"

typedef struct {
    void      *memory;
    CornuArray arrays[CORNU_MAX_COMPONENTS];
    int64_t    valid;
    int64_t    number;   /* of the element that it holds, since `start`; -1: none */
    bool       filling;  /* by a thread, for `number` or for what was wanted before a move */
} Slot;

/* What one thread fills elements with. */
typedef struct {
    CornuIterator *iterator;
    CornuStage    *stages;
    int            stage_count;
    CornuShare     share;     /* of the element being filled; read without the lock */
    pthread_t      thread;
} Worker;

struct CornuIterator {
    CornuDataset *dataset;
    Worker       *workers;
    int           worker_count, thread_count;   /* threads: those that have started */
    Slot         *slots;
    int           slot_count;
    uint64_t      reshaped;  /* that of the data set when the buffers were made */
    CornuBatch    batch; /* the caller's slot, returned by next */
    /* Under the lock: of each stage, without its sources, for `timed` elements; and of others as a
     * whole, for which no clock was read in between. */
    double       *times, untimed_seconds;
    int64_t       timed, untimed;

    /* Shared with the threads, under the lock. Numbers of elements since `start`: `begun` are or
     * were being filled, the first `made` of them are filled, `taken` delivered, and `released` are
     * no longer the caller's. */
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    CornuSample     start;
    CornuShare      share;
    int64_t         begun, made, taken, released;
    int64_t         end;   /* the index of the end of the epoch once it is reached, else -1 */
    uint64_t        moves; /* so that an element started before a move is discarded */
    CornuFailure    failure; /* of element number `failed` */
    int64_t         failed;
    bool            stop;
};

static int64_t remaining(const CornuIterator *iterator)
{
    int64_t count = iterator->dataset->count;
    if (count == CORNU_UNKNOWN && iterator->end >= 0) count = iterator->end;
    return (count < 0 ? INT64_MAX : count) - iterator->start.index;
}

static CornuStatus make_slot(const CornuDataset *dataset, Slot *slot)
{
    void *at[CORNU_MAX_COMPONENTS];
    cornu__release(slot->memory);
    slot->memory = cornu__element_allocate(dataset, at);
    if (!slot->memory) return CORNU_ERR_MEMORY;
    for (int c = 0; c < dataset->components; c++)
        slot->arrays[c] = cornu_array_from(at[c], dataset->type[c]);
    return CORNU_OK;
}

/* Buffers of the types that the data set's batches have now. */
static CornuStatus make_buffers(const Worker *worker, Slot *slot)
{
    CornuIterator *iterator = worker->iterator;
    iterator->reshaped = UINT64_MAX;   /* until all of them are there */
    for (int i = 1; i < worker->stage_count; i++) {
        const CornuDatasetKind *kind = worker->stages[i].dataset->kind;
        if (kind->close) kind->close(&worker->stages[i]);
        if (kind->open) CORNU__TRY(kind->open(&worker->stages[i]));
    }
    CORNU__TRY(make_slot(iterator->dataset, slot));
    iterator->reshaped = iterator->dataset->reshaped;
    return CORNU_OK;
}

/* Makes room for a batch that has more rows than those before it, or others. Such a data set has no
 * prefetch: there is one slot, one worker, and no thread but the caller's. */
static CornuStatus reserve_rows(const Worker *worker, Slot *slot, CornuSample at)
{
    CornuIterator *iterator = worker->iterator;
    CornuStage    *first = worker->stages;
    CornuType      types[CORNU_MAX_COMPONENTS];
    int64_t        rows;
    if (!first->dataset->kind->rows) return CORNU_OK;
    CORNU__TRY(first->dataset->kind->rows(first, at, &rows, types));
    CORNU__TRY(cornu__dataset_reshape(iterator->dataset, rows, types));
    return iterator->reshaped == iterator->dataset->reshaped ? CORNU_OK
                                                             : make_buffers(worker, slot);
}

static CornuStatus fill_slot(const Worker *worker, Slot *slot, CornuSample at)
{
    void *to[CORNU_MAX_COMPONENTS];
    CORNU__TRY(reserve_rows(worker, slot, at));
    CornuStage *last = &worker->stages[worker->stage_count - 1];
    for (int c = 0; c < worker->iterator->dataset->components; c++) to[c] = slot->arrays[c].data;
    CORNU__TRY(cornu__stage_fetch(last, at, to, &slot->valid));
    cornu__stage_arrays(last, to, slot->arrays);
    return CORNU_OK;
}

/* The slot of the next element to fill. */
static Slot *next_slot(CornuIterator *iterator)
{
    return &iterator->slots[iterator->begun % iterator->slot_count];
}

/* Whether there is a next element, and its slot is no longer in use. */
static bool can_make_one(CornuIterator *iterator)
{
    return iterator->failure.status == CORNU_OK && iterator->begun < remaining(iterator) &&
           iterator->begun - iterator->released != iterator->slot_count &&
           !next_slot(iterator)->filling;
}

/* After an element was filled, or could not be: others before it may still be on their way. */
static void note_filled(CornuIterator *iterator, Slot *slot, CornuStatus status)
{
    const bool    first = iterator->failure.status == CORNU_OK || slot->number < iterator->failed;
    const int64_t number = slot->number;
    if (status != CORNU_OK) {
        slot->number = -1;
        if (!first) return;
        iterator->failed = number;
        iterator->failure.status = CORNU_OK;
        cornu__failure_keep(&iterator->failure, status);
    } else if (slot->valid == 0 && iterator->dataset->count == CORNU_UNKNOWN) {
        const int64_t index = iterator->start.index + number;
        slot->number = -1;
        if (iterator->end < 0 || index < iterator->end) iterator->end = index;
    }
    for (;;) {
        const Slot *next = &iterator->slots[iterator->made % iterator->slot_count];
        if (next->filling || next->number != iterator->made) break;
        iterator->made++;
    }
}

enum { TIMED = 8 };   /* each so many-th element is */

static void set_timed(const Worker *worker, bool timed)
{
    for (int i = 0; i < worker->stage_count; i++) {
        worker->stages[i].timed = timed;
        worker->stages[i].seconds = 0.0;
    }
}

/* Called with the lock held, after an element that took so long. */
static void add_times(const Worker *worker, bool timed, double seconds)
{
    CornuIterator *iterator = worker->iterator;
    if (!timed) {
        iterator->untimed++;
        iterator->untimed_seconds += seconds;
        return;
    }
    for (int i = 0; i < worker->stage_count; i++) {
        const CornuStage *stage = &worker->stages[i];
        iterator->times[i] += stage->seconds;
        for (int s = 0; s < stage->dataset->source_count; s++)
            iterator->times[i] -= stage->sources[s]->seconds;
    }
    iterator->timed++;
}

/* Fills the next slot. Called with the lock held, which is released meanwhile. */
static void make_one(Worker *worker)
{
    CornuIterator  *iterator = worker->iterator;
    Slot           *slot = next_slot(iterator);
    const uint64_t  moves = iterator->moves;
    const int64_t   number = iterator->begun++;
    const CornuSample at = { iterator->start.epoch, iterator->start.index + number };
    slot->number = number;
    slot->filling = true;
    worker->share = iterator->share;
    pthread_mutex_unlock(&iterator->lock);
    const bool   pending = cornu_error_pending(), timed = number % TIMED == 0;
    const double begin = cornu__seconds();
    set_timed(worker, timed);
    const CornuStatus status = fill_slot(worker, slot, at);
    pthread_mutex_lock(&iterator->lock);
    if (status == CORNU_OK && slot->valid) add_times(worker, timed, cornu__seconds() - begin);
    slot->filling = false;
    if (iterator->moves == moves) note_filled(iterator, slot, status);
    else slot->number = -1;
    /* The caller gets a status, so an error that a constructor in a map left pending is cleared. */
    if (!pending) cornu_error_take();
}

static void *work(void *argument)
{
    Worker        *worker = argument;
    CornuIterator *iterator = worker->iterator;
    pthread_mutex_lock(&iterator->lock);
    while (!iterator->stop) {
        if (!can_make_one(iterator)) {
            pthread_cond_wait(&iterator->changed, &iterator->lock);
            continue;
        }
        make_one(worker);
        pthread_cond_broadcast(&iterator->changed);
    }
    pthread_mutex_unlock(&iterator->lock);
    return NULL;
}

/* Whether the caller has to wait for the next element: it is neither made, nor failed, nor past the
 * end. */
static bool is_on_its_way(const CornuIterator *iterator)
{
    const bool failed = iterator->failure.status != CORNU_OK &&
                        iterator->failed == iterator->taken;
    return iterator->made == iterator->taken && !failed && iterator->taken != remaining(iterator);
}

CornuStatus cornu_iterator_next(CornuIterator *iterator, const CornuBatch **batch)
{
    CORNU__NEED(iterator);
    CORNU__NEED(batch);
    *batch = NULL;
    pthread_mutex_lock(&iterator->lock);
    iterator->released = iterator->taken;
    if (iterator->thread_count) pthread_cond_broadcast(&iterator->changed);
    while (is_on_its_way(iterator)) {
        if (iterator->thread_count)
            pthread_cond_wait(&iterator->changed, &iterator->lock);
        else
            make_one(&iterator->workers[0]);
    }
    if (iterator->made > iterator->taken) {
        Slot *slot = &iterator->slots[iterator->taken % iterator->slot_count];
        iterator->batch = (CornuBatch){
            .arrays = slot->arrays, .count = iterator->dataset->components, .valid = slot->valid,
            .sample = { iterator->start.epoch, iterator->start.index + iterator->taken },
        };
        iterator->taken++;
        *batch = &iterator->batch;
    }
    pthread_mutex_unlock(&iterator->lock);
    /* NULL: it failed, or the epoch has ended. The failure stays until this caller moves on. */
    return *batch ? CORNU_OK : cornu__failure_tell(&iterator->failure);
}

static CornuStatus check_position(const CornuDataset *dataset, CornuSample to)
{
    if (to.epoch < 0 || to.epoch > UINT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "iterator: epoch is %lld, expected 0 to %lld",
                           (long long)to.epoch, (long long)UINT32_MAX);
    int64_t last = dataset->count < 0 ? CORNU__ENDLESS : dataset->count;
    if (to.index < 0 || to.index > last)
        return cornu__fail(CORNU_ERR_ARGUMENT, "iterator: element %lld, expected 0 to %lld",
                           (long long)to.index, (long long)last);
    return CORNU_OK;
}

/* Called with the lock held. */
static void move(CornuIterator *iterator, CornuSample to)
{
    iterator->start = to;
    iterator->begun = iterator->made = iterator->taken = iterator->released = 0;
    for (int s = 0; s < iterator->slot_count; s++) iterator->slots[s].number = -1;
    iterator->failure.status = CORNU_OK;
    iterator->end = -1;
    iterator->moves++;
    pthread_cond_broadcast(&iterator->changed);
}

CornuStatus cornu_iterator_seek(CornuIterator *iterator, CornuSample to)
{
    CORNU__TRY(check_position(iterator->dataset, to));
    pthread_mutex_lock(&iterator->lock);
    bool there = iterator->failure.status == CORNU_OK && to.epoch == iterator->start.epoch &&
                 to.index == iterator->start.index + iterator->taken;
    if (!there) move(iterator, to);
    pthread_mutex_unlock(&iterator->lock);
    return CORNU_OK;
}

CornuShare cornu__iterator_set_share(CornuIterator *iterator, CornuShare share)
{
    pthread_mutex_lock(&iterator->lock);
    const CornuShare was = iterator->share;
    const bool       both_whole = cornu__share_is_whole(was) && cornu__share_is_whole(share);
    iterator->share = share;
    if (!both_whole)   /* elements that were made ahead are made again */
        move(iterator, (CornuSample){ iterator->start.epoch,
                                      iterator->start.index + iterator->taken });
    pthread_mutex_unlock(&iterator->lock);
    return was;
}

CornuStatus cornu_iterator_rewind(CornuIterator *iterator, int64_t epoch)
{
    return cornu_iterator_seek(iterator, (CornuSample){ .epoch = epoch });
}

static const char *name_of(const CornuDataset *dataset)
{
    return dataset->kind->name ? dataset->kind->name : dataset->source ? "other" : "source";
}

/* Reading the clock takes time, much of that of a stage that copies small elements: the sum is at
 * most that of elements without it. */
static double scale_of(const CornuIterator *iterator, int stages)
{
    double sum = 0.0;
    for (int i = 0; i < stages; i++) sum += iterator->times[i];
    const double untimed = iterator->untimed_seconds * (double)iterator->timed;
    return iterator->untimed && untimed < sum * (double)iterator->untimed
         ? untimed / (sum * (double)iterator->untimed) : 1.0;
}

int cornu_iterator_stage_times(CornuIterator *iterator, CornuStageTime *times, int most)
{
    CORNU__NEED_OR(iterator, 0);
    const Worker *worker = &iterator->workers[0];
    pthread_mutex_lock(&iterator->lock);
    const int count = iterator->timed ? worker->stage_count : 0;
    const double scale = scale_of(iterator, count) / (double)iterator->timed;
    for (int i = 0; times && i < count && i < most; i++) {
        const double mean = scale * iterator->times[i];
        times[i] = (CornuStageTime){ name_of(worker->stages[i].dataset), mean > 0.0 ? mean : 0.0 };
    }
    pthread_mutex_unlock(&iterator->lock);
    return count;
}

static CornuStatus make_slots(CornuIterator *iterator)
{
    const CornuDataset *dataset = iterator->dataset;
    iterator->slots = cornu__allocate((size_t)dataset->prefetch + 1, sizeof *iterator->slots);
    if (!iterator->slots) return CORNU_ERR_MEMORY;
    iterator->slot_count = dataset->prefetch + 1;
    iterator->reshaped = dataset->reshaped;
    for (int s = 0; s < iterator->slot_count; s++) {
        iterator->slots[s].number = -1;
        CORNU__TRY(make_slot(dataset, &iterator->slots[s]));
    }
    return CORNU_OK;
}

bool cornu__dataset_is_in_order(const CornuDataset *dataset)
{
    bool is = dataset->kind->in_order;
    for (int i = 0; i < dataset->source_count; i++)
        is = is || cornu__dataset_is_in_order(dataset->sources[i]);
    return is;
}

int cornu__dataset_threads(const CornuDataset *dataset)
{
    return dataset->workers > 1 && !cornu__dataset_is_in_order(dataset) ? dataset->workers : 1;
}

static CornuStatus make_workers(CornuIterator *iterator)
{
    const int count = cornu__dataset_threads(iterator->dataset);
    iterator->workers = cornu__allocate((size_t)count, sizeof *iterator->workers);
    if (!iterator->workers) return CORNU_ERR_MEMORY;
    for (; iterator->worker_count < count; iterator->worker_count++) {
        Worker *worker = &iterator->workers[iterator->worker_count];
        worker->iterator = iterator;
        worker->stages = cornu__stages_open(iterator->dataset, &worker->share,
                                            &worker->stage_count);
        if (!worker->stages) return CORNU_ERR_MEMORY;
    }
    iterator->times = cornu__allocate((size_t)iterator->workers[0].stage_count,
                                      sizeof *iterator->times);
    return iterator->times ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus start_threads(CornuIterator *iterator)
{
    for (int i = 0; i < iterator->worker_count; i++) {
        const int error = cornu__thread_start(&iterator->workers[i].thread, work,
                                              &iterator->workers[i]);
        if (error)
            return cornu__fail(CORNU_ERR_MEMORY, "prefetch: cannot start a thread: %s",
                               strerror(error));
        iterator->thread_count++;
    }
    return CORNU_OK;
}

CornuIterator *cornu__iterator_begin_share(CornuDataset *dataset, int64_t epoch, CornuShare share)
{
    if (cornu__refused()) return NULL;
    if (!dataset)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "iterator: the data set is NULL");
    CornuSample start = { .epoch = epoch };
    if (check_position(dataset, start) != CORNU_OK) return cornu__null();
    CornuIterator *iterator = cornu__allocate(1, sizeof *iterator);
    if (!iterator) return cornu__null();
    pthread_mutex_init(&iterator->lock, NULL); /* neither can fail with default attributes */
    pthread_cond_init(&iterator->changed, NULL);
    iterator->dataset = cornu_dataset_retain(dataset);
    iterator->start = start;
    iterator->share = share;
    iterator->end = -1;
    if (make_workers(iterator) != CORNU_OK || make_slots(iterator) != CORNU_OK ||
        (dataset->prefetch && start_threads(iterator) != CORNU_OK)) {
        cornu_iterator_free(iterator);
        return cornu__null();
    }
    return iterator;
}

CornuIterator *cornu_iterator_begin(CornuDataset *dataset, int64_t epoch)
{
    return cornu__iterator_begin_share(dataset, epoch, (CornuShare){ 0 });
}

CornuIterator *cornu_iterator_begin_for(CornuDataset *dataset, int64_t epoch,
                                        const CornuDevice *device)
{
    return cornu__iterator_begin_share(dataset, epoch, cornu__share_of(device));
}

void cornu_iterator_free(CornuIterator *iterator)
{
    if (!iterator) return;
    if (iterator->thread_count) {
        pthread_mutex_lock(&iterator->lock);
        iterator->stop = true;
        pthread_cond_broadcast(&iterator->changed);
        pthread_mutex_unlock(&iterator->lock);
    }
    for (int i = 0; i < iterator->thread_count; i++)
        pthread_join(iterator->workers[i].thread, NULL);
    for (int s = 0; s < iterator->slot_count; s++) cornu__release(iterator->slots[s].memory);
    cornu__release(iterator->slots);
    for (int i = 0; i < iterator->worker_count; i++)
        cornu__stages_close(iterator->workers[i].stages, iterator->workers[i].stage_count);
    cornu__release(iterator->workers);
    cornu__release(iterator->times);
    pthread_cond_destroy(&iterator->changed);
    pthread_mutex_destroy(&iterator->lock);
    cornu_dataset_free(iterator->dataset);
    cornu__release(iterator);
}
