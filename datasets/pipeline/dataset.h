/*
 * Data sets: where elements come from, and what is done to them on the way to a model.
 *
 * An element has one or more components (x, y, ...), each a host array of a fixed type that
 * stays as it is stored: u8 images stay u8, and the step's graph converts them. A pipeline is
 * written as in tf.data:
 *
 *     CornuDataset *train = cornu_dataset_from_arrays((CornuArray[]){ x, y }, 2);
 *     train = cornu_dataset_shuffle(train, seed);
 *     train = cornu_dataset_batch(train, 128, false);
 *     train = cornu_dataset_prefetch(train, 2);
 *
 * and read through an iterator (iterator.h). A data set never changes: it is a function from
 * (epoch, index) to an element, and each transformation either renames indices (shuffle, take,
 * skip, repeat) or makes elements of others (map, batch). Hence the same seed and epoch give
 * the same elements in the same order whatever threads do, any position can be sought, and one
 * data set may serve many iterators at once.
 *
 * Ownership: a transformation takes its source, even when it fails, so calls nest and chain
 * without leaks. A NULL source, or a pending error (status.h), gives NULL.
 */
#ifndef CORNU_DATASETS_DATASET_H
#define CORNU_DATASETS_DATASET_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuDataset CornuDataset;

enum { CORNU_MAX_COMPONENTS = 16 };

/*
 * The rows of arrays: element i is row i of each. Every array has rank 1 or more and the same
 * first extent.
 *   from_arrays   copies them in the call and keeps no pointer
 *   own_arrays    takes their memory, which free() must be able to free, also when it fails;
 *                 every arrays[i].data is NULL afterwards
 */
CornuDataset *cornu_dataset_from_arrays(const CornuArray *arrays, int count);
CornuDataset *cornu_dataset_own_arrays(CornuArray *arrays, int count);

/* The count of a data set whose elements alone tell where it ends. */
#define CORNU_UNKNOWN (-2)

/* Which element of which epoch, as counted where the question is asked: before a shuffle the
 * index is the row of the arrays, after it the position in the shuffled order. */
typedef struct {
    int64_t epoch, index;
} CornuSample;

/* Writes element `sample` of an epoch to to[component], or sets *end behind the last one. */
typedef CornuStatus CornuYieldFunction(void *state, CornuSample sample, const CornuArray *to,
                                       bool *end);

typedef struct {
    char                unset;
    CornuYieldFunction *next;     /* required */
    const CornuType    *types;    /* required: of the components */
    int                 count;    /* of types */
    void               *context;  /* the caller's; outlives the data set and its iterators */
    /* A pass over the elements begins, and is over: makes the state that `next` is given, and frees
     * it. Default: the state is the context. */
    CornuStatus       (*begin)(void *context, int64_t epoch, void **state);
    void              (*end)(void *context, void *state);
} CornuGeneratorConfig;

/*
 * The elements that a function yields, one after the other, until it says end; in each epoch from
 * the first one on. Keras' and tf.data's from_generator.
 *
 *     static CornuStatus lines(void *file, CornuSample sample, const CornuArray *to, bool *end)
 *     {
 *         if (sample.index == 0) rewind(file);
 *         *end = fscanf(file, "%f", (float *)to[0].data) != 1;
 *         return CORNU_OK;
 *     }
 *     const CornuType types[] = { cornu_scalar(CORNU_F32) };
 *     CornuDataset *dataset = cornu_dataset_generator(lines, types, 1, .context = file);
 *
 * An element depends on its sample alone, so that an epoch that goes on elsewhere (resuming) can be
 * made anew. The count is CORNU_UNKNOWN: cache makes it known, without which shuffle and repeat
 * refuse. Called from the prefetch thread; iterators at work at once, as of training and validation
 * with the same data set, need `begin`. A status other than CORNU_OK ends what reads the data set,
 * with the message of cornu_error_set and the number of the element.
 */
CornuDataset *cornu_dataset_generator_from(const CornuGeneratorConfig *config);
#define cornu_dataset_generator(...) \
    cornu_dataset_generator_from(&(CornuGeneratorConfig){ .unset = 0, __VA_ARGS__ })

/* start, start + step, … before stop, i64 scalars: for a map that makes elements of numbers. */
CornuDataset *cornu_dataset_range(int64_t start, int64_t stop, int64_t step);

/* Makes the components of one element (or of one batch, after cornu_dataset_batch) out of
 * another's. Called from the prefetch thread; must depend on nothing but its arguments. */
typedef CornuStatus CornuMapFunction(void *context, CornuSample sample, const CornuArray *in,
                                     const CornuArray *out);

/*
 * Applies function to every element. types are the components of the result, without a batch
 * axis; NULL with 0 means those of the source. context stays the caller's and must outlive the
 * data set and its iterators.
 */
CornuDataset *cornu_dataset_map(CornuDataset *source, CornuMapFunction *function, void *context,
                                const CornuType *types, int count);

/* Makes every element now, as of epoch 0, and keeps them in memory: what stands before is done
 * once and not once per epoch. Stands before batch; refuses an endless source. */
CornuDataset *cornu_dataset_cache(CornuDataset *source);

/* All elements, in an order drawn uniformly for each (seed, epoch). At most 2^32 - 1 elements;
 * four bytes per element in each iterator. */
CornuDataset *cornu_dataset_shuffle(CornuDataset *source, uint64_t seed);

/* Elements of size rows. The last batch of an epoch may have fewer valid rows: it keeps its
 * extent, the rest is zero. drop_remainder leaves it out. */
CornuDataset *cornu_dataset_batch(CornuDataset *source, int64_t size, bool drop_remainder);

/* The first count elements (fewer if there are fewer), and all but the first count. */
CornuDataset *cornu_dataset_take(CornuDataset *source, int64_t count);
CornuDataset *cornu_dataset_skip(CornuDataset *source, int64_t count);

/* The source times times over, or without end for CORNU_NONE. Each pass is an epoch of the
 * source, so a shuffle before it draws anew. */
CornuDataset *cornu_dataset_repeat(CornuDataset *source, int64_t times);

/* An iterator works depth (1 to 64) elements ahead, in a thread of its own. The thread runs the
 * whole pipeline wherever this stands; the largest depth counts. */
CornuDataset *cornu_dataset_prefetch(CornuDataset *source, int depth);

/* One more owner of the same data set, each of whom frees it: for a pipeline built on a data
 * set that its maker keeps. */
CornuDataset *cornu_dataset_retain(CornuDataset *dataset);
void          cornu_dataset_free(CornuDataset *dataset);

/* Elements in an epoch (batches, once batched); CORNU_NONE if endless, CORNU_UNKNOWN if they have
 * an end that only they tell. */
int64_t cornu_dataset_count(const CornuDataset *dataset);

/* Rows of a batch; 0 if the data set is not batched. */
int64_t cornu_dataset_batch_size(const CornuDataset *dataset);

/* Components of an element, and the type of one of them without the batch axis. */
int       cornu_dataset_components(const CornuDataset *dataset);
CornuType cornu_dataset_type(const CornuDataset *dataset, int component);

#ifdef __cplusplus
}
#endif
#endif
