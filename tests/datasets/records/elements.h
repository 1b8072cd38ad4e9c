/* Reading elements of data sets in tests, and golden arrays of NumPy's. */
#ifndef CORNU_TESTS_ELEMENTS_H
#define CORNU_TESTS_ELEMENTS_H

#include "../../../datasets/pipeline/iterator.h"

/* An iterator over a data set, which it takes. */
CornuIterator *elements_begin(CornuDataset *dataset);

/* Element `index` of epoch 0; NULL after the last one. */
const CornuBatch *elements_at(CornuIterator *iterator, int64_t index);

/* Fails unless reading element `index` fails so. */
void elements_expect_failure(CornuIterator *iterator, int64_t index, CornuStatus status,
                             const char *text);

/* Fails unless component c of an element is row `index` of an array of a .npz file: NAME. */
void elements_expect_row(const CornuBatch *element, int c, const char *npz, const char *name,
                         int64_t index);

#endif
