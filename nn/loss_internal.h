/* What losses, metrics and steps share. */
#ifndef CORNU_NN_LOSS_INTERNAL_H
#define CORNU_NN_LOSS_INTERNAL_H

#include "loss.h"

/* y_true with a last axis of extent 1 added or removed if y_pred has one more or less.
 * Source: keras/src/losses/loss.py, squeeze_or_expand_to_same_rank. */
CornuTensor *cornu__match_ranks(CornuTensor *y_true, CornuTensor *y_pred);

/* Class numbers as integers (B, …) for predictions (B, …, C). */
CornuTensor *cornu__class_labels(CornuTensor *y_true, CornuTensor *y_pred);

/* The sum, a scalar, of `values` (B, …) over the rows that are valid (bool (B)), and how many
 * values a row has. What stands in the other rows does not matter. */
CornuTensor *cornu__valid_sum(CornuTensor *values, CornuTensor *valid, int64_t *per_row);

#endif
