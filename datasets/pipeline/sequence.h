/*
 * Data sets made of the elements of another in their order: numbered, several in one, one as
 * several, or each with what was made of those before it. As transformations in dataset.h they take
 * ownership of the source.
 */
#ifndef CORNU_DATASETS_SEQUENCE_H
#define CORNU_DATASETS_SEQUENCE_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each element with its number, an i64 scalar, before its components: start, start + 1, ... The
 * source is not batched. */
CornuDataset *cornu_dataset_enumerate(CornuDataset *source, int64_t start);

typedef struct {
    char          unset;
    CornuDataset *source;          /* required; taken */
    int64_t       size;            /* required: elements of a window */
    int64_t       shift;           /* between the first elements of two windows; default size */
    int64_t       stride;          /* between elements of a window; default 1 */
    bool          drop_remainder;  /* windows of fewer elements at the end */
} CornuWindowConfig;

/*
 * Windows of elements that follow each other: each component has an axis of `size` elements before
 * its own, as window(...).flat_map(lambda w: w.batch(size)) of tf.data. Unless drop_remainder is
 * set, an i64 scalar is the last component: how many elements the window holds, after which it is
 * zero, as the last windows may hold fewer. The source is not batched; its elements are kept from
 * one window to the next, (size - 1) * stride + 1 of them, so that each is made once.
 */
CornuDataset *cornu_dataset_window_from(const CornuWindowConfig *config);
#define cornu_dataset_window(...) \
    cornu_dataset_window_from(&(CornuWindowConfig){ .unset = 0, .source = __VA_ARGS__ })

/*
 * The rows of each batch, or of each element along the first axis of its components, as elements.
 * Their number is known if elements have a fixed number of rows, that is, are not batched, and for
 * the batches, shuffled or not, of a data set whose count is.
 */
CornuDataset *cornu_dataset_unbatch(CornuDataset *source);

/* Computes the components of an element from those of another and from the state, which it
 * changes for the next one. */
typedef CornuStatus CornuScanFunction(void *context, CornuSample sample, void *state,
                                      const CornuArray *in, const CornuArray *out);

typedef struct {
    char               unset;
    CornuDataset      *source;         /* required; taken */
    CornuScanFunction *function;       /* required */
    const void        *initial_state;  /* required: what an epoch begins with, copied */
    size_t             state_bytes;    /* required */
    const CornuType   *types;          /* as in cornu_dataset_map */
    int                count;
    void              *context;        /* the caller's; outlives the data set and its iterators */
} CornuScanConfig;

/* A map with a state: elements are made one after the other, by one thread. */
CornuDataset *cornu_dataset_scan_from(const CornuScanConfig *config);
#define cornu_dataset_scan(...) \
    cornu_dataset_scan_from(&(CornuScanConfig){ .unset = 0, .source = __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
