/* What losses, metrics and steps share. */
#ifndef CORNU_NN_LOSS_INTERNAL_H
#define CORNU_NN_LOSS_INTERNAL_H

#include "loss.h"
#include "metric.h"

/* y_true with a last axis of extent 1 added or removed if y_pred has one more or less.
 * Source: keras/src/losses/loss.py, squeeze_or_expand_to_same_rank. */
CornuTensor *cornu__match_ranks(CornuTensor *y_true, CornuTensor *y_pred);

/* Class numbers as integers (B, …) for predictions (B, …, C). */
CornuTensor *cornu__class_labels(CornuTensor *y_true, CornuTensor *y_pred);

/* The mask (B, T) without the steps of rows that are not valid (bool (B)). */
CornuTensor *cornu__valid_mask(CornuTensor *mask, CornuTensor *valid);

/* The sum, a scalar, of those of `values` (B, …) that stand in valid rows or, with a mask, in steps
 * that it lets through; what the others are does not matter. *count: how many they are on all
 * shards, an i64 scalar. */
CornuTensor *cornu__valid_sum(CornuTensor *values, const CornuMetricCall *call,
                              CornuTensor **count);

#endif
