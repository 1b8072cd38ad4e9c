/*
 * Data sets: pipelines from the source of the data to a model.
 *
 * An element has one or more components (x, y, ...), each a host array of a fixed type. Dtypes are
 * kept: u8 images stay u8, and the step's graph converts them. A pipeline is written as in
 * tf.data:
 *
 *     CornuDataset *train = cornu_dataset_from_arrays((CornuArray[]){ x, y }, 2);
 *     train = cornu_dataset_shuffle(train, seed);
 *     train = cornu_dataset_batch(train, 128, false);
 *     train = cornu_dataset_prefetch(train, 2);
 *
 * and read through an iterator (iterator.h). A data set is immutable: a function from
 * (epoch, index) to an element. Each transformation either maps indices (shuffle, take, skip,
 * repeat) or computes elements from others (map, batch). Hence the same seed and epoch give the
 * same elements in the same order regardless of threads, an iterator can seek to any position, and
 * many iterators can read one data set at a time.
 *
 * More transformations: select.h takes some elements, sequence.h arranges them, padded_batch.h
 * batches those of different lengths, join.h makes one data set of several, interleave.h of those
 * that a function makes.
 *
 * Ownership: a transformation takes ownership of its source, even if it fails, so that nested calls
 * do not leak. It returns NULL if the source is NULL or an error is pending (status.h).
 */
#ifndef CORNU_DATASETS_DATASET_H
#define CORNU_DATASETS_DATASET_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuDataset CornuDataset;

enum { CORNU_MAX_COMPONENTS = 192 };

/* The rows of arrays, which are copied: element i is row i of each. Every array has rank 1 or more
 * and the same first extent. */
CornuDataset *cornu_dataset_from_arrays(const CornuArray *arrays, int count);
/* The same without a copy: takes ownership of the arrays' memory, to be freed with free(), even if
 * it fails; every arrays[i].data is NULL afterwards. */
CornuDataset *cornu_dataset_own_arrays(CornuArray *arrays, int count);

/* The count of a data set whose length is only known when it ends. */
#define CORNU_UNKNOWN (-2)

/* An element of an epoch. The index is that of the stage in question: before a shuffle the row of
 * the arrays, after it the position in the shuffled order. */
typedef struct {
    int64_t epoch, index;
} CornuSample;

/* Writes element `sample` of an epoch to to[component], or sets *end after the last one. */
typedef CornuStatus CornuYieldFunction(void *state, CornuSample sample, const CornuArray *to,
                                       bool *end);

typedef struct {
    char                unset;
    CornuYieldFunction *next;     /* required */
    const CornuType    *types;    /* required: of the components */
    int                 count;    /* of types */
    void               *context;  /* the caller's; outlives the data set and its iterators */
    /* Called before and after a pass over the elements: `begin` makes the state that `next` gets,
     * `end` frees it. Default: the state is the context. */
    CornuStatus       (*begin)(void *context, int64_t epoch, void **state);
    void              (*end)(void *context, void *state);
    /* If the elements are batches, which may have different numbers of rows: called before `next`
     * with the number of the batch, to say how many rows it has, 0 after the last one. `next` then
     * writes as many rows to arrays that have at least as many; *end is not used. */
    CornuStatus       (*batch)(void *state, CornuSample sample, int64_t *rows);
    int64_t             batch_size;  /* required with `batch`: rows of the first one, or of most */
    /* If other axes differ between batches, too: called after `batch`, while there are rows, with
     * the types of a row of the batch before (at first `types`), of which it changes extents. */
    CornuStatus       (*row_types)(void *state, CornuSample sample, CornuType *types);
} CornuGeneratorConfig;

/*
 * The elements that a function yields, in order, until it sets *end; each epoch starts from the
 * first one. The counterpart of tf.data's from_generator.
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
 * With `batch` elements are batches, as programs make them: each is one step, with as many rows as
 * it has, and with `row_types` as long. Such a data set is not batched again, and may be mapped,
 * nothing else; the results of a map without types have those of the batch.
 *
 * An element may depend only on its sample, so that a resumed epoch can repeat it. The count is
 * CORNU_UNKNOWN; shuffle needs a known count, which cache provides; a shuffle within a window does
 * not. `next` is called from
 * the prefetch thread. If several iterators are in use at a time, such as those of training and
 * validation on the same data set, each needs its own state, from `begin`. A status other than
 * CORNU_OK fails the read, with the message of cornu_error_set and the element's number.
 */
CornuDataset *cornu_dataset_generator_from(const CornuGeneratorConfig *config);
#define cornu_dataset_generator(...) \
    cornu_dataset_generator_from(&(CornuGeneratorConfig){ .unset = 0, __VA_ARGS__ })

/* start, start + step, … up to but not including stop, as i64 scalars: input for a map. */
CornuDataset *cornu_dataset_range(int64_t start, int64_t stop, int64_t step);

/* Computes the components of an element (after cornu_dataset_batch, of a batch) from those of
 * another. Called from the prefetch thread; the result may depend only on the arguments. */
typedef CornuStatus CornuMapFunction(void *context, CornuSample sample, const CornuArray *in,
                                     const CornuArray *out);

/*
 * Applies function to every element. types are those of the result's components, without a batch
 * axis; NULL with count 0 means those of the source. context remains the caller's and must outlive
 * the data set and its iterators.
 */
CornuDataset *cornu_dataset_map(CornuDataset *source, CornuMapFunction *function, void *context,
                                const CornuType *types, int count);

/* Computes all elements now, those of epoch 0, and keeps them in memory, so that earlier stages run
 * once and not in every epoch. The source must be finite and not batched. One of several processes
 * computes an element when it first needs it, if their number is known: its rows of the first
 * epoch, then more of them, as a shuffle gives it others in every epoch. */
CornuDataset *cornu_dataset_cache(CornuDataset *source);

/* All elements in a random order, uniform, that depends on (seed, epoch). At most 2^32 - 1
 * elements; each iterator needs four bytes per element. */
CornuDataset *cornu_dataset_shuffle(CornuDataset *source, uint64_t seed);

/*
 * Elements in an order that is random within a window of so many (at most 2^31 - 1), which are kept
 * in memory: the shuffle of tf.data, with its buffer_size. For elements that come in order, such as
 * a generator's that reads a file larger than memory; their number need not be known. An element is
 * less than `size` places before its own, and may be any number after. The order depends on
 * (seed, epoch) alone; to seek takes a pass over the elements before.
 *
 * A file of records that can be read in any order needs no window: a map of shuffled numbers reads
 * them, as the __getitem__ of a PyTorch Dataset does, and cornu_dataset_parallel several at a time.
 *
 *     CornuDataset *records = cornu_dataset_shuffle(cornu_dataset_range(0, count, 1), seed);
 *     records = cornu_dataset_map(records, read_record, file, types, 2);
 */
CornuDataset *cornu_dataset_shuffle_window(CornuDataset *source, int64_t size, uint64_t seed);

/* Batches of size rows. The last batch of an epoch may have fewer valid rows: it keeps its extent
 * and is padded with zeros. drop_remainder drops it. */
CornuDataset *cornu_dataset_batch(CornuDataset *source, int64_t size, bool drop_remainder);

/* At most the first count elements of an epoch. */
CornuDataset *cornu_dataset_take(CornuDataset *source, int64_t count);
/* All but the first count elements of an epoch. */
CornuDataset *cornu_dataset_skip(CornuDataset *source, int64_t count);

/* The source repeated so many times, or endlessly with CORNU_NONE. Each pass is an epoch of the
 * source, so that a shuffle before it gives a new order each time. */
CornuDataset *cornu_dataset_repeat(CornuDataset *source, int64_t times);

/* Makes iterators work depth (1 to 64) elements ahead, in a thread. The thread runs the whole
 * pipeline, wherever prefetch is in it; the largest depth counts. */
CornuDataset *cornu_dataset_prefetch(CornuDataset *source, int depth);

/*
 * Makes iterators compute elements in so many threads (1 to 64), each a whole one, or a batch,
 * beside the others: num_parallel_calls of tf.data, num_workers of PyTorch's DataLoader. Includes a
 * prefetch of as many elements. Elements, their order and their errors are the same for any number
 * of threads. Functions of maps are called by several threads at a time, for different elements:
 * what they write besides the result must be theirs alone. Each thread has buffers, and an order of
 * shuffled elements, of its own. Where elements come from a generator, in order, it is one thread.
 */
CornuDataset *cornu_dataset_parallel(CornuDataset *source, int threads);

/* Adds a reference to a data set, to keep using it after building a pipeline on it. Returns it. */
CornuDataset *cornu_dataset_retain(CornuDataset *dataset);
/* Drops a reference; the last one frees the data set. NULL is ignored. */
void          cornu_dataset_free(CornuDataset *dataset);

/* The number of elements in an epoch (of batches, once batched); CORNU_NONE if endless,
 * CORNU_UNKNOWN if it is not known. */
int64_t cornu_dataset_count(const CornuDataset *dataset);

/* The number of rows in a batch; 0 if the data set is not batched. */
int64_t cornu_dataset_batch_size(const CornuDataset *dataset);

/* The number of components of an element. */
int       cornu_dataset_components(const CornuDataset *dataset);
/* The type of a component, from 0, without the batch axis. */
CornuType cornu_dataset_type(const CornuDataset *dataset, int component);

#ifdef __cplusplus
}
#endif
#endif
