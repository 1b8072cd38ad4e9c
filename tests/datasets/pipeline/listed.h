/* Elements of data sets as text, to compare whole passes. */
#ifndef CORNU_TESTS_DATASETS_LISTED_H
#define CORNU_TESTS_DATASETS_LISTED_H

#include <jansson.h>

#include "../../../datasets/pipeline/iterator.h"

enum { LISTED_MOST = 128, LISTED_LENGTH = 600 };

/* An element: the values of its components, row by row, without rows of padding. */
typedef struct {
    int  count;
    char text[LISTED_MOST][LISTED_LENGTH];
} Listed;

/* How an element becomes text. */
typedef enum {
    LISTED_WHOLE,
    LISTED_ROWS,      /* a batch, of which the valid rows count */
    LISTED_COUNTED,   /* the last component says how many rows of the others there are */
} ListedAs;

static inline ListedAs listed_as(const CornuDataset *dataset)
{
    return cornu_dataset_batch_size(dataset) ? LISTED_ROWS : LISTED_WHOLE;
}

/* The next element, false at the end. */
bool listed_next(CornuIterator *iterator, ListedAs as, char *text);

/* What is left of an epoch. */
void listed_rest(CornuIterator *iterator, ListedAs as, Listed *listed);

/* An epoch, read by so many threads (0: that of the caller). */
void listed_epoch(CornuDataset *dataset, int64_t epoch, int threads, ListedAs as, Listed *listed);

/* Elements in JSON, each a list of components. */
void listed_from_json(const json_t *elements, Listed *listed);

void listed_equal(const char *name, const Listed *got, const Listed *wanted);

#endif
