/*
 * Batches of elements of open extent: sequences of different lengths, padded to the longest of a
 * batch, or to the end of a bucket of lengths.
 *
 * An element of open extent has components with a first axis of the most entries that any element
 * has, and as its last component a whole number, a scalar: how many of them it holds, from the
 * first on. cornu_dataset_window makes such elements; a generator or a map may.
 *
 *     CornuDataset *lines = cornu_dataset_generator(read_line, types, 3, .context = file);
 *                                       tokens i32 (200), class i32 (), length i64 ()
 *     CornuDataset *train = cornu_dataset_bucket_by_sequence_length(lines,
 *         .bucket_boundaries = (int64_t[]){ 25, 50, 100 },
 *         .bucket_batch_sizes = (int64_t[]){ 256, 128, 64, 32 }, .boundaries = 3,
 *         .pad_to_bucket_boundary = true);
 *
 * Batches are without the last component. Their arrays have the extents of the batch: axis 1 of
 * open components is as long as said below, 1 at least, and axis 0 of all as the batch size. What
 * is after an element's entries is padding. Models whose inputs have an axis of CORNU_NONE train
 * and predict with such batches: one step is compiled for each pair of extents, and the last eight
 * are kept, so that a few buckets are better than any length.
 *
 * Of what follows such batches a map gets arrays of these extents, and its results have them unless
 * it is given types; filter, take, skip, shuffle, repeat, prefetch, parallel, concatenate and other
 * choices of batches keep them; the rest is refused.
 */
#ifndef CORNU_DATASETS_PADDED_BATCH_H
#define CORNU_DATASETS_PADDED_BATCH_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char          unset;
    CornuDataset *source;          /* required; taken */
    int64_t       batch_size;      /* required */
    const int    *open;            /* numbers of the open components, in ascending order; */
    int           open_count;      /* NULL and 0: component 0 alone */
    const double *padding_values;  /* of each of them; NULL: 0 */
    bool          drop_remainder;  /* of fewer rows at the end */
} CornuPaddedBatchConfig;

/* Batches of elements in their order, padded to the longest of each. CORNU_ERR_VALUE, when it is
 * read, for a length below 0 or above the axis. All processes of several read all rows. */
CornuDataset *cornu_dataset_padded_batch_from(const CornuPaddedBatchConfig *config);
#define cornu_dataset_padded_batch(...) \
    cornu_dataset_padded_batch_from(&(CornuPaddedBatchConfig){ .unset = 0, .source = __VA_ARGS__ })

typedef struct {
    char           unset;
    CornuDataset  *source;               /* required; taken */
    const int64_t *bucket_boundaries;    /* required: ascending, above 0 */
    const int64_t *bucket_batch_sizes;   /* required: one more than boundaries */
    int            boundaries;           /* required: their number, 1 to 255 */
    const int     *open;                 /* as above */
    int            open_count;
    const double  *padding_values;
    bool           pad_to_bucket_boundary;
    bool           drop_remainder;
} CornuBucketBySequenceLengthConfig;

/*
 * Batches of elements of similar length: bucket i has those shorter than boundary i and not shorter
 * than the one before, the last bucket the rest. A batch is made when its bucket has as many
 * elements as its batch size, and at the end of what is left in each. It is padded to its longest
 * element, or with pad_to_bucket_boundary to one less than the boundary, in the last bucket to the
 * whole axis. The number of batches is CORNU_UNKNOWN, and to seek reads the elements before.
 */
CornuDataset *cornu_dataset_bucket_by_sequence_length_from(
    const CornuBucketBySequenceLengthConfig *config);
#define cornu_dataset_bucket_by_sequence_length(...)                 \
    cornu_dataset_bucket_by_sequence_length_from(                    \
        &(CornuBucketBySequenceLengthConfig){ .unset = 0, .source = __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
