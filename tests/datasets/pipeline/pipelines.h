/* The pipelines of tests/golden/make_pipelines.py, and what they are made of. */
#ifndef CORNU_TESTS_DATASETS_PIPELINES_H
#define CORNU_TESTS_DATASETS_PIPELINES_H

#include "listed.h"

/* By its name; NULL if there is none of it, or on failure. */
CornuDataset *pipeline_make(const char *name, ListedAs *as);

/* The names of those that do not hold settings, NULL after the last one. */
const char *pipeline_name(int i);

/* Numbers from start up to stop. */
static inline CornuDataset *pipeline_range(int64_t start, int64_t stop)
{
    return cornu_dataset_range(start, stop, 1);
}

/* The number that an element is. */
static inline int64_t pipeline_number(const CornuArray *in)
{
    return *(const int64_t *)in[0].data;
}

/* The even ones of a data set of numbers. */
CornuDataset *pipeline_even(CornuDataset *dataset);

#endif
