/* Shared by the files of the pipeline: data sets as a chain of stages; see dataset.h. */
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
    /* Writes element `at` to to[component] and the number of its rows that hold data to *valid: 0
     * after the end of a data set whose count is not known. */
    CornuStatus (*fetch)(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid);
    CornuStatus (*open)(CornuStage *stage);  /* allocates what an iterator needs */
    void        (*close)(CornuStage *stage); /* also after open failed           */
    void        (*free)(CornuDataset *dataset);
    bool          by_row;                    /* of its data sets, see below      */
    bool          in_order;                  /* an element takes all before it   */
    bool          of_any_batch;              /* its source's batches may differ in rows */
    /* The rows of element `at`, where they differ: elements have room for batch_size of them, which
     * grows. 0 after the end. */
    CornuStatus (*rows)(CornuStage *stage, CornuSample at, int64_t *rows);
} CornuDatasetKind;

/* The functions of a CornuGeneratorConfig. */
typedef struct {
    CornuYieldFunction *next;
    CornuStatus       (*begin)(void *context, int64_t epoch, void **state);
    void              (*end)(void *context, void *state);
    CornuStatus       (*batch)(void *state, CornuSample sample, int64_t *rows);
    void               *context;
} CornuGenerator;

struct CornuDataset {
    atomic_int              owners;
    atomic_int              taken;      /* of these, data sets derived from it      */
    const CornuDatasetKind *kind;
    CornuDataset           *source;     /* NULL for the first one                   */
    int64_t                 count;      /* elements per epoch, CORNU_NONE, CORNU_UNKNOWN */
    int64_t                 batch_size; /* 0 if not batched                         */
    int                     prefetch;   /* depth; 0 is none                         */
    int                     workers;    /* threads of an iterator; 0 is one         */
    bool                    by_row;     /* a batch's row b depends on no row of the
                                           source's batch but row b                 */
    int                     components;
    CornuType               type[CORNU_MAX_COMPONENTS];  /* as delivered            */
    size_t                  bytes[CORNU_MAX_COMPONENTS]; /* of type                 */
    union {
        /* owned: freed with the data set, as is the memory of borrowed ones, unless it is NULL */
        struct { void *data[CORNU_MAX_COMPONENTS]; bool owned; void *memory; } arrays;
        struct { CornuMapFunction *function; void *context; } map;
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
    CornuStage         *source;
    const CornuShare   *share;   /* of a batch's rows: others need not be fetched; NULL: all */
    union {
        void *own; /* of kinds in other folders; freed by their close */
        struct { uint32_t *order; int64_t epoch; } shuffle; /* epoch of order, -1 at first */
        struct { void *memory, *element[CORNU_MAX_COMPONENTS]; } map; /* the source's element */
        /* place: the next element; rows: of the one before it, a batch */
        struct { void *state; CornuSample place; bool begun, ended; int64_t rows; } generator;
    };
};

/* The stages of a chain, *count of them, from the first source to the data set itself. *share, the
 * caller's, may change between fetches; NULL: all rows. It reaches the stage that makes batches
 * unless one after it needs whole ones. NULL on failure, recorded and not pending. */
CornuStage *cornu__stages_open(const CornuDataset *dataset, const CornuShare *share, int *count);
void        cornu__stages_close(CornuStage *stages, int count);

/* Room for so many rows in the elements of the data set, and of those that it is made of; only
 * where the first one's kind has `rows`. */
CornuStatus cornu__dataset_grow(CornuDataset *dataset, int64_t rows);

static inline CornuStatus cornu__stage_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                             int64_t *valid)
{
    return stage->dataset->kind->fetch(stage, at, to, valid);
}

/* A cache of a source with a known count that computes elements when they are first asked for: of
 * the rows of a share, those alone. Takes the source. */
CornuDataset *cornu__dataset_cache_on_demand(CornuDataset *source);

/* As cornu_dataset_from_arrays, without a copy: the arrays must outlive the data set, which takes
 * `memory`, that of some of them or NULL, also on failure. */
CornuDataset *cornu__dataset_borrow_arrays(const CornuArray *arrays, int count, void *memory);

/* The arrays that the data set is made from, a data set of their rows; NULL if it is made of
 * something else. */
const CornuDataset *cornu__dataset_arrays(const CornuDataset *dataset);

/* As cornu_iterator_begin_for, for any share; and changes the share from the next element on. It
 * returns the share until then. */
CornuIterator *cornu__iterator_begin_share(CornuDataset *dataset, int64_t epoch, CornuShare share);
CornuShare     cornu__iterator_set_share(CornuIterator *iterator, CornuShare share);

/* A data set of `kind` that takes ownership of source and delivers the same types. As any
 * constructor NULL if an error is pending or source is NULL; `name` is for messages. */
CornuDataset *cornu__dataset_derive(CornuDataset *source, const CornuDatasetKind *kind,
                                    const char *name);

/* The index in the first source of row `row` of the element or batch `at`; -1 if it is not
 * known, or out of memory. */
int64_t cornu__dataset_origin(const CornuDataset *dataset, CornuSample at, int64_t row);

/* Fills order with a uniform random permutation of 0 to count - 1, given by (seed, epoch). */
void cornu__shuffle_order(uint32_t *order, int64_t count, uint64_t seed, int64_t epoch);

/* Zeroed memory for one element, one block: component c is at at[c], aligned to 64 bytes. NULL with
 * CORNU_ERR_MEMORY, not pending. */
void *cornu__element_allocate(const CornuDataset *dataset, void **at);

#endif
