/* Shared by the files of the pipeline: data sets as a tree of stages, of which the leaves are what
 * elements come from; see dataset.h. */
#ifndef CORNU_DATASETS_DATASET_INTERNAL_H
#define CORNU_DATASETS_DATASET_INTERNAL_H

#include <stdatomic.h>

#include "iterator.h"
#include "shard_rows_internal.h"

/* Positions in an endless data set end here, so that no index overflows on its way down. */
#define CORNU__ENDLESS (INT64_C(1) << 40)

typedef struct CornuStage CornuStage;

/* A kind of data set. Functions that have nothing to do are NULL. */
typedef struct {
    const char   *name;   /* what its part of the time is called; NULL: "source" or "other" */
    /* Writes element `at` to to[component] and the number of its rows that hold data to *valid: 0
     * after the end of a data set whose count is not known. */
    CornuStatus (*fetch)(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid);
    CornuStatus (*open)(CornuStage *stage);  /* allocates what an iterator needs */
    void        (*close)(CornuStage *stage); /* also after open failed           */
    void        (*free)(CornuDataset *dataset);
    bool          by_row;                    /* of its data sets, see below      */
    bool          in_order;                  /* an element takes all before it   */
    bool          on_device;                 /* a device has them, too: nn's own tells */
    bool          by_index;                  /* its elements are some of the source's */
    bool          of_any_batch;              /* its source's batches may differ in rows */
    bool          of_trims;                   /* and may be trimmed, see CornuTrim */
    /* The rows of element `at`, and the types of a row, where they differ: elements have room for
     * batch_size of them, which grows. 0 after the end. */
    CornuStatus (*rows)(CornuStage *stage, CornuSample at, int64_t *rows, CornuType *types);
    /* The position in the source of row `row` of element `at`; index -1 if it is not known.
     * NULL: the same. */
    CornuSample (*origin)(const CornuDataset *dataset, CornuSample at, int64_t row);

    /* Of kinds with fetch = cornu__fetch_in_turn. `begin` moves to the first element of an epoch,
     * `next` makes the next one, with *valid 0 after the end. `pass` moves on by *count elements
     * without making them, or sets *count to how many it could: 0 if it takes `next`. */
    CornuStatus (*begin)(CornuStage *stage, int64_t epoch);
    CornuStatus (*next)(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid);
    CornuStatus (*pass)(CornuStage *stage, CornuSample at, int64_t *count);
} CornuDatasetKind;

/* The functions of a CornuGeneratorConfig. */
typedef struct {
    CornuYieldFunction *next;
    CornuStatus       (*begin)(void *context, int64_t epoch, void **state);
    void              (*end)(void *context, void *state);
    CornuStatus       (*batch)(void *state, CornuSample sample, int64_t *rows);
    CornuStatus       (*row_types)(void *state, CornuSample sample, CornuType *types);
    void               *context;
} CornuGenerator;

/* The extents of a batch whose arrays are smaller than the type of its components: axis 0 of all,
 * and axis 1 of the open ones. Its rows lie without gaps. Zeros: as the type. */
typedef struct {
    int64_t rows, extent;
} CornuTrim;

struct CornuDataset {
    atomic_int              owners;
    atomic_int              taken;      /* of these, data sets derived from it      */
    const CornuDatasetKind *kind;
    CornuDataset           *source;     /* the first of its sources; NULL: it has none */
    CornuDataset          **sources;    /* all of them, &source if it is one        */
    int                     source_count;
    int                     below;      /* stages of its sources, of theirs, ...    */
    int64_t                 count;      /* elements per epoch, CORNU_NONE, CORNU_UNKNOWN */
    int64_t                 batch_size; /* 0 if not batched                         */
    uint64_t                reshaped;   /* how often cornu__dataset_reshape changed types */
    int                     prefetch;   /* depth; 0 is none                         */
    int                     workers;    /* threads of an iterator; 0 is one         */
    bool                    by_row;     /* a batch's row b depends on no row of the
                                           source's batch but row b                 */
    int                     components;
    CornuType               type[CORNU_MAX_COMPONENTS];  /* as delivered            */
    size_t                  bytes[CORNU_MAX_COMPONENTS]; /* of type                 */
    bool                    open[CORNU_MAX_COMPONENTS];  /* see CornuTrim            */
    union {
        /* owned: freed with the data set, as is the memory of borrowed ones, unless it is NULL */
        struct { void *data[CORNU_MAX_COMPONENTS]; bool owned; void *memory; } arrays;
        struct { CornuMapFunction *function; void *context; bool same_types; } map;
        struct { uint64_t seed; } shuffle;
        struct { bool whole; } batch;     /* no remainder */
        struct { int64_t first, most; } window; /* take and skip; most 0: no limit */
        struct { int64_t times; } repeat;
        struct { int64_t start, step; } range;
        CornuGenerator generator;
        void *own; /* of kinds in other folders; freed by the kind */
    };
};

/* The state of a data set in one iterator. */
struct CornuStage {
    const CornuDataset *dataset;
    CornuStage         *source;  /* the first of its sources, and all, as in the data set */
    CornuStage        **sources;
    CornuTrim           trim;     /* of the batch fetched last */
    const CornuShare   *share;   /* of a batch's rows: others need not be fetched; NULL: all */
    bool                timed;   /* adds what its fetches take, with its sources, to seconds */
    double              seconds;
    CornuSample         place;   /* in turn: the next element, of an epoch that has begun */
    bool                begun, ended;
    union {
        void *own; /* of kinds in other folders; freed by their close */
        struct { uint32_t *order; int64_t epoch; } shuffle; /* epoch of order, -1 at first */
        struct { int64_t number, first; } passes; /* of repeat: this one, its first element */
        struct { void *memory, *element[CORNU_MAX_COMPONENTS]; } map; /* the source's element */
        struct { void *state; bool open; int64_t rows; } generator; /* rows: of the batch before */
    };
};

/* The stages of a tree, *count of them, each after its sources, the data set's own last. *share,
 * the caller's, may change between fetches; NULL: all rows. It reaches the stages that make batches
 * unless one after them needs whole ones. NULL on failure, recorded and not pending. */
CornuStage *cornu__stages_open(const CornuDataset *dataset, const CornuShare *share, int *count);
void        cornu__stages_close(CornuStage *stages, int count);

/* Room for so many rows, at least, of these types in the elements of the data set, and of those
 * that it is made of; only where the first one's kind has `rows`. */
CornuStatus cornu__dataset_reshape(CornuDataset *dataset, int64_t rows, const CornuType *types);

/* The rows of all batches that batch made, in this or another order; else CORNU_UNKNOWN. */
int64_t cornu__dataset_rows(const CornuDataset *batches);

CornuStatus cornu__stage_fetch_timed(CornuStage *stage, CornuSample at, void *const *to,
                                     int64_t *valid);

static inline CornuStatus cornu__stage_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                             int64_t *valid)
{
    return stage->timed ? cornu__stage_fetch_timed(stage, at, to, valid)
                        : stage->dataset->kind->fetch(stage, at, to, valid);
}

/* As above from one of the stage's sources, whose trim becomes its own. */
static inline CornuStatus cornu__stage_pass(CornuStage *stage, CornuStage *source, CornuSample at,
                                            void *const *to, int64_t *valid)
{
    const CornuStatus status = cornu__stage_fetch(source, at, to, valid);
    stage->trim = source->trim;
    return status;
}

/* As cornu__stage_fetch, for a position that may be after the end of a known count. */
static inline CornuStatus cornu__stage_fetch_within(CornuStage *stage, CornuSample at,
                                                    void *const *to, int64_t *valid)
{
    const int64_t count = stage->dataset->count;
    *valid = 0;
    return count >= 0 && at.index >= count ? CORNU_OK : cornu__stage_fetch(stage, at, to, valid);
}

/* The fetch of kinds whose elements are made one after the other: those before the one requested
 * are passed over, and an earlier one begins the epoch again. After a failure, too. */
CornuStatus cornu__fetch_in_turn(CornuStage *stage, CornuSample at, void *const *to,
                                 int64_t *valid);

/* Random bits for the element at `at`, given by them, the seed, and a number of the operation's own
 * from 0xFFFF0001 on, so that its stream coincides with no other, nor with those of a model, whose
 * generators are numbered from 0: counter = (i / 4, its upper half, epoch, the number). */
uint32_t cornu__sample_draw(uint64_t seed, uint32_t operation, CornuSample at);

/* The origin of a row of a batch of elements in their order. */
CornuSample cornu__origin_batch(const CornuDataset *dataset, CornuSample at, int64_t row);

/* The origin of what is found by a pass alone. */
CornuSample cornu__origin_unknown(const CornuDataset *dataset, CornuSample at, int64_t row);

/* The arrays of the stage's element that lies at at[component], with its trim. */
void cornu__stage_arrays(const CornuStage *stage, void *const *at, CornuArray *arrays);

/* Whether a component is open. */
bool cornu__dataset_is_open(const CornuDataset *dataset);

/* A failure of a function of the caller's, for element `at`, with or without a message. */
CornuStatus cornu__fail_sample(CornuStatus status, const char *name, CornuSample at);

/* Frees a data set whose constructor failed, with what it has taken. */
void *cornu__dataset_abandon(CornuDataset *dataset);

/* The type of component c from that of a row: with a leading axis of the rows of a batch, if the
 * data set is batched. */
CornuStatus cornu__dataset_set_type(CornuDataset *dataset, int c, CornuType type);

/* Another component before all others. The data set is not batched, `name` is for messages. */
CornuStatus cornu__dataset_prepend(CornuDataset *dataset, CornuType type, const char *name);

/* The types of the components of what a function makes, as cornu_dataset_map has them. */
CornuStatus cornu__dataset_set_types(CornuDataset *dataset, const CornuType *types, int count);

/* A cache of a source with a known count that computes elements when they are first asked for: of
 * the rows of a share, those alone. Takes the source. */
CornuDataset *cornu__dataset_cache_on_demand(CornuDataset *source);

/* As cornu_dataset_from_arrays, without a copy: the arrays must outlive the data set, which takes
 * `memory`, that of some of them or NULL, also on failure. */
CornuDataset *cornu__dataset_borrow_arrays(const CornuArray *arrays, int count, void *memory);

/* Whether its batches may have different numbers of rows. */
bool cornu__dataset_varies(const CornuDataset *dataset);

/* Whether elements can only be made one after the other: of several threads each would make all of
 * them. And the threads of an iterator. */
bool cornu__dataset_is_in_order(const CornuDataset *dataset);
int  cornu__dataset_threads(const CornuDataset *dataset);

/* Whether its elements are the rows of arrays in memory. */
bool cornu__dataset_is_arrays(const CornuDataset *dataset);

/* As cornu_iterator_begin_for, for any share; and changes the share from the next element on. It
 * returns the share until then. */
CornuIterator *cornu__iterator_begin_share(CornuDataset *dataset, int64_t epoch, CornuShare share);
CornuShare     cornu__iterator_set_share(CornuIterator *iterator, CornuShare share);

/* All elements of epoch 0 in memory, now; of several processes, too. Takes the source. */
CornuDataset *cornu__dataset_compute(CornuDataset *source);

/* As `like`, whose kind is by index, of another source, which it takes, of as many elements. */
CornuDataset *cornu__dataset_derive_as(CornuDataset *source, const CornuDataset *like);

/* A data set of `kind` that takes ownership of source and delivers the same types. As any
 * constructor NULL if an error is pending or source is NULL; `name` is for messages. */
CornuDataset *cornu__dataset_derive(CornuDataset *source, const CornuDatasetKind *kind,
                                    const char *name);
/* The same of several sources, which it takes; types, rows of a batch and count are those of the
 * first one. */
CornuDataset *cornu__dataset_join(CornuDataset *const *sources, int count,
                                  const CornuDatasetKind *kind, const char *name);

/* The index, in what its elements come from, of row `row` of the element or batch `at`; -1 if it
 * is not known, if that is several data sets, or out of memory. */
int64_t cornu__dataset_origin(const CornuDataset *dataset, CornuSample at, int64_t row);

/* Fills order with a uniform random permutation of 0 to count - 1, given by (seed, epoch). */
void cornu__shuffle_order(uint32_t *order, int64_t count, uint64_t seed, int64_t epoch);

/* Zeroed memory for one element, one block: component c is at at[c], aligned to 64 bytes. NULL with
 * CORNU_ERR_MEMORY, not pending. */
void *cornu__element_allocate(const CornuDataset *dataset, void **at);
/* The same for several, at least one, which lie in a row in each component. */
void *cornu__elements_allocate(const CornuDataset *dataset, int64_t count, void **at);

#endif
