/*
 * Data sets of some elements of another: those for which a function of the caller's holds, or that
 * are drawn by their class.
 *
 * As transformations in dataset.h they take ownership of the source. Functions are called in the
 * order of the elements, from the thread that makes them, and may depend on their arguments alone.
 * How many elements there are is not known, CORNU_UNKNOWN, and every process of several reads all
 * of them: a map that takes time comes better after these than before.
 */
#ifndef CORNU_DATASETS_SELECT_H
#define CORNU_DATASETS_SELECT_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *holds for an element, after cornu_dataset_batch for a batch. The sample is its position in
 * the source. */
typedef CornuStatus CornuPredicateFunction(void *context, CornuSample sample, const CornuArray *in,
                                           bool *holds);

/* The elements for which the function holds. The context outlives the data set and its iterators.
 * An iterator remembers where some of them are: to seek within what it has read takes a part of a
 * pass. */
CornuDataset *cornu_dataset_filter(CornuDataset *source, CornuPredicateFunction *function,
                                   void *context);

/* The elements before the first one for which the function does not hold. */
CornuDataset *cornu_dataset_take_while(CornuDataset *source, CornuPredicateFunction *function,
                                       void *context);

/* Sets *number to the class of an element, from 0. */
typedef CornuStatus CornuClassFunction(void *context, CornuSample sample, const CornuArray *in,
                                       int64_t *number);

typedef struct {
    char                unset;
    CornuDataset       *source;        /* required; taken */
    CornuClassFunction *class_func;    /* required */
    const double       *target_dist;   /* required: the share of each class wanted, 0 or more, */
    int                 classes;       /* required: of so many, of any sum */
    const double       *initial_dist;  /* their shares in the source; NULL: found while reading */
    uint64_t            seed;
    void               *context;       /* the caller's; outlives the data set and its iterators */
} CornuRejectionResampleConfig;

/*
 * Elements whose classes have the target distribution, by leaving elements out at random: of class
 * c with a probability in proportion to target_dist[c] / initial_dist[c], at most 1. The class, an
 * i64 scalar, comes before the components of an element. Without initial_dist it is counted, from
 * 10 elements of each class on, so that the distribution is reached after some elements; the source
 * is not batched. CORNU_ERR_VALUE for a class of any other number when it is read.
 */
CornuDataset *cornu_dataset_rejection_resample_from(const CornuRejectionResampleConfig *config);
#define cornu_dataset_rejection_resample(...)                                            \
    cornu_dataset_rejection_resample_from(&(CornuRejectionResampleConfig){ .unset = 0, \
                                                                 .source = __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
