/*
 * Data sets made of several others.
 *
 *     CornuDataset *both[] = { mine, theirs };
 *     CornuDataset *train = cornu_dataset_sample_from_datasets(both, 2, (double[]){ 0.8, 0.2 });
 *     train = cornu_dataset_batch(train, 32, false);
 *
 * Each takes ownership of its sources, even if it fails; NULL as any transformation, and if the
 * sources' types, or the rows of their batches, differ. Which source an element comes from depends
 * on (seed, epoch) and the sources' counts alone. To seek to an element reads none of those before
 * it from sources whose count is known.
 */
#ifndef CORNU_DATASETS_JOIN_H
#define CORNU_DATASETS_JOIN_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements with the components of an element of each source, in their order: as many as the
 * shortest source has. Batches are as long as each other: CORNU_ERR_SHAPE when they are not. */
CornuDataset *cornu_dataset_zip(CornuDataset *const *sources, int count);

/* The elements of the source, then those of the other one. */
CornuDataset *cornu_dataset_concatenate(CornuDataset *source, CornuDataset *other);

/*
 * Each element from a source drawn at random with these weights, in the order of that source; a
 * source of weight 0 is not read. One that has ended is not drawn any more; with
 * stop_on_empty_dataset the epoch ends when it is drawn.
 */
typedef struct {
    char                 unset;
    CornuDataset *const *sources;                /* required */
    int                  count;                  /* of sources, 1 or more */
    const double        *weights;                /* of each, 0 or more, of any sum; NULL: equal */
    uint64_t             seed;
    bool                 stop_on_empty_dataset;
} CornuSampleFromDatasetsConfig;

CornuDataset *cornu_dataset_sample_from_datasets_from(const CornuSampleFromDatasetsConfig *config);
#define cornu_dataset_sample_from_datasets(...)                                            \
    cornu_dataset_sample_from_datasets_from(&(CornuSampleFromDatasetsConfig){ .unset = 0, \
                                                                   .sources = __VA_ARGS__ })

/*
 * Each element from the source whose number, from 0, is the next element of `choices`, a data set
 * of one i64 scalar. The epoch ends with the choices, or when a source is chosen that has ended;
 * with ignore_empty_datasets such choices are left out, and it ends with the last source. A number
 * that no source has is CORNU_ERR_VALUE when it is read.
 */
typedef struct {
    char                 unset;
    CornuDataset *const *sources;                /* required */
    int                  count;                  /* of sources, 1 or more */
    CornuDataset        *choices;                /* required; taken */
    bool                 ignore_empty_datasets;  /* stop_on_empty_dataset=False of tf.data */
} CornuChooseFromDatasetsConfig;

CornuDataset *cornu_dataset_choose_from_datasets_from(const CornuChooseFromDatasetsConfig *config);
#define cornu_dataset_choose_from_datasets(...)                                            \
    cornu_dataset_choose_from_datasets_from(&(CornuChooseFromDatasetsConfig){ .unset = 0, \
                                                                   .sources = __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
