/* What metrics share. The loss is accumulated as a mean too. */
#ifndef CORNU_NN_METRIC_INTERNAL_H
#define CORNU_NN_METRIC_INTERNAL_H

#include "loss_internal.h"
#include "metrics.h"

/* A metric of `size` bytes that begins with *base and is freed by cornu_metric_free. NULL with a
 * pending error, also where one was pending. */
void *cornu__metric_create(size_t size, const CornuMetric *base);

/* States 0 and 1 of a mean, f64 sums of values and of their weights, after a batch whose values
 * (B, …) are given; and its result. */
CornuStatus cornu__mean_update(CornuTensor *values, const CornuMetricCall *call,
                               CornuTensor *const *old, CornuTensor **new_states);
double      cornu__mean_result(const CornuArray *states);

/* old + the sum over all shards of `more` f32, in f64. */
CornuTensor *cornu__accumulate(CornuTensor *old, CornuTensor *more);

/* The usual result of one that is a vector. */
double cornu__mean_of_results(const CornuMetric *self, const CornuArray *states);

/* Elements of an f64 state. */
static inline const double *cornu__numbers(CornuArray state) { return state.data; }

/* a / b, 0 where b is 0. */
static inline double cornu__ratio(double a, double b) { return b == 0.0 ? 0.0 : a / b; }

/* Means that cornu_metric knows and that have no arguments. */
CornuMetric *cornu__accuracy(const char *name);       /* by shape */
CornuMetric *cornu__crossentropy(const char *name);   /* by shape */
CornuMetric *cornu__categorical_accuracy(const char *name);
CornuMetric *cornu__sparse_categorical_accuracy(const char *name);
CornuMetric *cornu__root_mean_squared_error(const char *name);

#endif
