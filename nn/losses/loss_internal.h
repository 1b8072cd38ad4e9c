/* Shared by losses, metrics and steps. */
#ifndef CORNU_NN_LOSS_INTERNAL_H
#define CORNU_NN_LOSS_INTERNAL_H

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "loss.h"
#include "../metrics/metric.h"
#include "../config/serializable_internal.h"

/* ---- Making losses ---- */

/* A loss of `size` bytes that begins with *base, named by its config or else its kind, and freed by
 * cornu_loss_free. NULL with a pending error, also if one was pending or the reduction is
 * invalid. */
void *cornu__loss_create(size_t size, const CornuLoss *base, const void *config);

#define LOSS(name)         extern const CornuSerializableClass cornu__##name##_class;
#define ALIAS(known, name)
#include "losses.def"
#undef LOSS
#undef ALIAS

/* The fields of CornuLossConfig. */
extern const CornuField cornu__loss_fields[];

/* Keras' epsilon() */
#define CORNU__EPSILON 1e-7

/* y_true with a trailing axis of extent 1 added or removed to match the rank of y_pred. Source:
 * keras/src/losses/loss.py, squeeze_or_expand_to_same_rank. */
CornuTensor *cornu__match_ranks(CornuTensor *y_true, CornuTensor *y_pred);

/* Converts y_true to f32 and to y_pred's shape; false with a pending error that names `who`. */
bool cornu__same_shapes(const char *who, CornuTensor **y_true, CornuTensor *y_pred);

/* Class numbers as integers (B, …) for predictions (B, …, C). */
CornuTensor *cornu__class_labels(CornuTensor *y_true, CornuTensor *y_pred);

/* The bit set of the last axis, for reductions. */
int64_t cornu__last_axis(CornuTensor *x);

/* x with the axis moved to the end; 0: the last one. The batch axis is refused. */
CornuTensor *cornu__axis_last(const char *who, CornuTensor *x, int64_t axis);

CornuTensor *cornu__one_minus(CornuTensor *x);

/* The cosine of the angle between vectors along the last axis. */
CornuTensor *cornu__cosine(CornuTensor *a, CornuTensor *b);

/* ---- What counts ---- */

/* x (B, …) with zeros in rows that are not valid. */
CornuTensor *cornu__valid_rows(CornuTensor *x, CornuTensor *valid);

/* The mask (B, …), false in rows that are not valid (bool (B)). */
CornuTensor *cornu__valid_mask(CornuTensor *mask, CornuTensor *valid);

/* A batch of a step that is recorded by hand, all rows of which are valid; weight may be NULL.
 * False with a pending error unless y_true and y_pred have as many rows. */
bool cornu__recorded_batch(const char *who, CornuTensor *y_true, CornuTensor *y_pred,
                           CornuTensor *weight, CornuMetricCall *call);

/* A loss's values (B, …). The loss's own mask is added to *call. */
CornuTensor *cornu__loss_values(const CornuLoss *loss, CornuMetricCall *call);

/* The values times the sample weights, if any. */
CornuTensor *cornu__weighted(CornuTensor *values, const CornuMetricCall *call);

/* The weight of each of `values`, f32 of their shape: its sample weight or 1, and 0 where its row
 * is not valid. Masks are ignored. */
CornuTensor *cornu__value_weights(CornuTensor *values, const CornuMetricCall *call);

/* The sum, a scalar, of the `values` (B, …) in valid rows or, with a mask, in steps where it is
 * true. The others may be anything, even NaN. */
CornuTensor *cornu__valid_sum(CornuTensor *values, const CornuMetricCall *call);

/* The number of values of that shape that count on all shards, an i64 scalar; and the sum of their
 * sample weights, an f64 scalar. */
CornuTensor *cornu__valid_count(CornuTensor *values, const CornuMetricCall *call);
CornuTensor *cornu__valid_weight(CornuTensor *values, const CornuMetricCall *call);

/* This shard's part of the loss, reduced over all shards' values. */
CornuTensor *cornu__reduce_loss(const CornuLoss *loss, CornuTensor *values,
                                const CornuMetricCall *call);

/* cornu_loss_record, of steps that a mask (B, T) leaves in; NULL: all. values_alone: those that it
 * reduces. */
CornuTensor *cornu__loss_record_masked(const CornuLoss *loss, CornuTensor *y_true,
                                       CornuTensor *y_pred, CornuTensor *sample_weight,
                                       CornuTensor *mask, bool values_alone);

#endif
