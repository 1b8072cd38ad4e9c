/*
 * The order of records that are taken from several files in turn: `cycle` slots have a file each,
 * and give `block` records in their turn; a file that has ended is replaced by the next one when
 * its slot has its next turn.
 *
 *     for (int file; (file = cornu__interleave_file(&order)) >= 0;)
 *         if (take_one(file)) cornu__interleave_taken(&order);
 *         else cornu__interleave_ended(&order);
 *
 * Source: TensorFlow, tensorflow/core/kernels/data/interleave_dataset_op.cc, GetNextInternal.
 */
#ifndef CORNU_DATASETS_INTERLEAVE_INTERNAL_H
#define CORNU_DATASETS_INTERLEAVE_INTERNAL_H

#include <stdint.h>

#include "../../device/status.h"

typedef struct {
    int    *slot;         /* owned: the file of each, or -1 */
    int     cycle, files;
    int     turn, next;   /* the slot whose turn it is, the next file to be opened */
    int     open;         /* slots with a file */
    int64_t block, used;  /* records in a turn, and of this one */
} CornuInterleave;

/* Free it in any case. CORNU_ERR_MEMORY. */
CornuStatus cornu__interleave_begin(CornuInterleave *order, int files, int64_t cycle,
                                    int64_t block);
void        cornu__interleave_free(CornuInterleave *order);

/* The file that the next record is taken from; -1 at the end. */
int  cornu__interleave_file(CornuInterleave *order);
void cornu__interleave_taken(CornuInterleave *order);
void cornu__interleave_ended(CornuInterleave *order);

#endif
