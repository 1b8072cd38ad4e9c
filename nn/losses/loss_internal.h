/* What losses, metrics and steps share. */
#ifndef CORNU_NN_LOSS_INTERNAL_H
#define CORNU_NN_LOSS_INTERNAL_H

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "loss.h"
#include "../metrics/metric.h"
#include "../config/serializable_internal.h"

/* ---- Making losses ---- */

/* A loss of `size` bytes that begins with *base, named as its config or else its kind says, and
 * freed by cornu_loss_free. NULL with a pending error, also where one was pending or the reduction
 * is none. */
void *cornu__loss_create(size_t size, const CornuLoss *base, const void *config);

#define LOSS(name)         extern const CornuSerializableClass cornu__##name##_class;
#define ALIAS(known, name)
#include "losses.def"
#undef LOSS
#undef ALIAS

/* The arguments of losses without any of their own. */
extern const CornuField cornu__loss_fields[];

/* "sum_over_batch_size"; NULL for what is none. */
const char *cornu__reduction_name(CornuReduction reduction);

/* Keras' epsilon() */
#define CORNU__EPSILON 1e-7

/* y_true with a last axis of extent 1 added or removed if y_pred has one more or less.
 * Source: keras/src/losses/loss.py, squeeze_or_expand_to_same_rank. */
CornuTensor *cornu__match_ranks(CornuTensor *y_true, CornuTensor *y_pred);

/* Makes y_true f32 of y_pred's shape; false with a pending error that names `who`. */
bool cornu__same_shapes(const char *who, CornuTensor **y_true, CornuTensor *y_pred);

/* Class numbers as integers (B, …) for predictions (B, …, C). */
CornuTensor *cornu__class_labels(CornuTensor *y_true, CornuTensor *y_pred);

/* The set of the last axis, for reductions. */
int64_t cornu__last_axis(CornuTensor *x);

/* x with the axis, 0 for the last one, made the last. It is never the batch's. */
CornuTensor *cornu__axis_last(const char *who, CornuTensor *x, int64_t axis);

CornuTensor *cornu__one_minus(CornuTensor *x);

/* The cosine of the angle between vectors along the last axis. */
CornuTensor *cornu__cosine(CornuTensor *a, CornuTensor *b);

/* ---- What counts ---- */

/* x (B, …) with zeros in rows that are not valid. */
CornuTensor *cornu__valid_rows(CornuTensor *x, CornuTensor *valid);

/* The mask (B, …) without the steps of rows that are not valid (bool (B)). */
CornuTensor *cornu__valid_mask(CornuTensor *mask, CornuTensor *valid);

/* A loss's values (B, …); *call gets what the loss itself masks. */
CornuTensor *cornu__loss_values(const CornuLoss *loss, CornuMetricCall *call);

/* Values of a shape, times the sample weights, if there are any. */
CornuTensor *cornu__weighted(CornuTensor *values, const CornuMetricCall *call);

/* What each of `values` counts, f32 of their shape: its sample weight or 1, and 0 where its row is
 * not valid. Masks are not heeded. */
CornuTensor *cornu__value_weights(CornuTensor *values, const CornuMetricCall *call);

/* The sum, a scalar, of those of `values` (B, …) that stand in valid rows or, with a mask, in steps
 * that it lets through; what the others are does not matter. */
CornuTensor *cornu__valid_sum(CornuTensor *values, const CornuMetricCall *call);

/* How many values of that shape count on all shards, an i64 scalar; and the sum of their sample
 * weights, an f64 scalar. */
CornuTensor *cornu__valid_count(CornuTensor *values, const CornuMetricCall *call);
CornuTensor *cornu__valid_weight(CornuTensor *values, const CornuMetricCall *call);

/* This shard's part of the loss: its values reduced over all shards. */
CornuTensor *cornu__reduce_loss(const CornuLoss *loss, CornuTensor *values,
                                const CornuMetricCall *call);

#endif
