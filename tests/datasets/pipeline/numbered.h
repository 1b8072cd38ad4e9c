/* A data set whose elements tell their number, for tests of their order. */
#ifndef CORNU_TESTS_DATASETS_NUMBERED_H
#define CORNU_TESTS_DATASETS_NUMBERED_H

#include "../../../datasets/pipeline/iterator.h"

enum { NUMBERED_ROWS = 23, NUMBERED_WIDTH = 3 };

/* x: u8 (rows, width) with 10 i + j, y: i32 (rows,) with i. */
CornuDataset *numbered_rows(void);

/* Reads the labels of an epoch and checks that x belongs to y and that padding is zero. Frees the
 * data set; returns the number of labels. */
int numbered_labels(CornuDataset *dataset, int64_t epoch, int32_t *labels, int limit);

/* A map of them: y + 100 epoch + 1000 index, as f32; counts its calls in the int of its context. */
CornuStatus numbered_add(void *context, CornuSample sample, const CornuArray *in,
                         const CornuArray *out);

#endif
