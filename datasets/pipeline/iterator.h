/*
 * Iterators: reading a data set epoch by epoch.
 *
 *     CornuIterator    *iterator = cornu_iterator_begin(train, 0);
 *     const CornuBatch *batch;
 *     for (int64_t epoch = 0; epoch < epochs; epoch++) {
 *         cornu_iterator_rewind(iterator, epoch);
 *         while ((status = cornu_iterator_next(iterator, &batch)) == CORNU_OK && batch)
 *             train_on(batch->arrays[0], batch->arrays[1], batch->valid);
 *     }
 *     cornu_iterator_free(iterator);
 *
 * cornu_iterator_begin allocates all buffers and starts the thread of a pipeline with prefetch;
 * epochs and batches allocate nothing. An iterator must be used by one thread at a time.
 *
 * Where several processes share a device, each can read its own part of every batch:
 * cornu_iterator_begin_for. fit, evaluate and predict do.
 */
#ifndef CORNU_DATASETS_ITERATOR_H
#define CORNU_DATASETS_ITERATOR_H

#include "../../device/device.h"
#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuIterator CornuIterator;

/* An element. The arrays of a batched data set have the full batch extent, but for those of
 * padded_batch.h, which have the extents of their batch; rows from `valid` on are zero. Buffers are
 * aligned to 64 bytes. */
typedef struct {
    const CornuArray *arrays; /* one per component                             */
    int               count;  /* components                                    */
    int64_t           valid;  /* rows that hold data; 1 if not batched         */
    CornuSample       sample; /* the epoch, and this element's position in it  */
} CornuBatch;

/* Starts at the first element of the epoch (0 to 2^32 - 1). The iterator holds a reference to the
 * data set. */
CornuIterator *cornu_iterator_begin(CornuDataset *dataset, int64_t epoch);

/*
 * As above, to feed the device's shards with batches. Of S shards, shard s gets valid / S rows of a
 * batch, and one more if s < valid % S, in order. A process that owns some of them
 * (cornu_device_own_shards) fetches only the rows that these get, and row 0 where one gets none:
 * the images of other rows are not opened, and maps before cornu_dataset_batch not called for them.
 * All else is as for one process: order, number and extent of the batches, `valid`; what the
 * other valid rows hold is unspecified.
 *
 * Whole batches are fetched if one process owns all shards or the device is NULL; before a map that
 * comes after cornu_dataset_batch, which gets them whole; and from elements of an unknown number,
 * such as a generator's, which can only be read in order.
 */
CornuIterator *cornu_iterator_begin_for(CornuDataset *dataset, int64_t epoch,
                                        const CornuDevice *device);

/*
 * The next element, or NULL at the end of the epoch. It belongs to the iterator and is valid
 * until the next call. A failure in the pipeline, also in its thread, is returned here, after the
 * elements that precede it, and again until the iterator is moved.
 */
CornuStatus cornu_iterator_next(CornuIterator *iterator, const CornuBatch **batch);

/* Moves to the first element of an epoch. Moving to the current position costs nothing, so that
 * each epoch may start with a rewind. */
CornuStatus cornu_iterator_rewind(CornuIterator *iterator, int64_t epoch);
/* Moves to any element of an epoch, or to its end. */
CornuStatus cornu_iterator_seek(CornuIterator *iterator, CornuSample sample);

/* What a stage of the pipeline takes for each element of the iterator, without its sources. */
typedef struct {
    const char *name;      /* "map", "batch", ...; several stages may have the same */
    double      seconds;   /* of the thread that makes the element */
} CornuStageTime;

/*
 * Writes the times of at most `most` stages, sources first, to times[]; returns how many stages
 * there are, 0 before any was timed. Every eighth element is timed, the first one among them; what
 * an interleave makes is part of its own time. The sum is what one thread takes for an element: an
 * iterator that is asked for them faster, by several threads as many times faster, makes its caller
 * wait.
 */
int cornu_iterator_stage_times(CornuIterator *iterator, CornuStageTime *times, int most);

/* With its threads and its reference to the data set; NULL is ignored. */
void cornu_iterator_free(CornuIterator *iterator);

#ifdef __cplusplus
}
#endif
#endif
