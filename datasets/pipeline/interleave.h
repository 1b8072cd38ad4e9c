/*
 * Elements of data sets that a function makes: of the lines of a list of files, for example.
 *
 *     static CornuDataset *lines_of(void *context, CornuSample sample, const CornuArray *in)
 *     {
 *         const char *path = *(const char **)in[0].data;
 *         ...                                           a data set of the lines of this file
 *     }
 *     CornuDataset *lines = cornu_dataset_interleave(files, lines_of, .types = &line, .count = 1,
 *                                                    .cycle_length = 4);
 */
#ifndef CORNU_DATASETS_INTERLEAVE_H
#define CORNU_DATASETS_INTERLEAVE_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a data set from an element; called in the threads of iterators, again for each pass. The
 * pipeline frees what it returns. NULL, with an error recorded, fails the read. */
typedef CornuDataset *CornuExpandFunction(void *context, CornuSample sample, const CornuArray *in);

typedef struct {
    char                 unset;
    CornuDataset        *source;        /* required; taken */
    CornuExpandFunction *function;      /* required */
    void                *context;       /* the caller's; outlives the data set and its iterators */
    const CornuType     *types;         /* of the elements made, of the rows if they are batches; */
    int                  count;         /* NULL and 0: those of the source */
    int64_t              batch_size;    /* of the data sets made; 0: not batched */
    int64_t              cycle_length;  /* 1 to 65536; default 1 */
    int64_t              block_length;  /* 1 or more; default 1 */
} CornuInterleaveConfig;

/*
 * The elements of the data sets that the function makes from those of the source: block_length of
 * each in turn, of cycle_length at a time; one that has ended gives way to the next one. The order
 * is that of tf.data with deterministic=True. Each is read in the epoch of the whole. Their number
 * is not known, CORNU_UNKNOWN; to seek calls the function for the elements before, and reads no
 * elements of data sets with known counts. NULL as any transformation.
 */
CornuDataset *cornu_dataset_interleave_from(const CornuInterleaveConfig *config);
#define cornu_dataset_interleave(...) \
    cornu_dataset_interleave_from(&(CornuInterleaveConfig){ .unset = 0, .source = __VA_ARGS__ })

/* The elements of each of these data sets after those of the one before: an interleave of one at a
 * time. */
CornuDataset *cornu_dataset_flat_map(CornuDataset *source, CornuExpandFunction *function,
                                     void *context, const CornuType *types, int count);

#ifdef __cplusplus
}
#endif
#endif
