/* What metrics share. The loss is accumulated as a mean too. */
#ifndef CORNU_NN_METRIC_INTERNAL_H
#define CORNU_NN_METRIC_INTERNAL_H

#include "../losses/loss_internal.h"
#include "metrics.h"

/* A metric of `size` bytes that begins with *base, named as its config or else its kind says, and
 * freed by cornu_metric_free. One without a kind has no config either, but a base->name. NULL with
 * a pending error, also where one was pending. */
void *cornu__metric_create(size_t size, const CornuMetric *base, const void *config);

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

/* Of metrics without arguments. */
typedef struct {
    const char *name;
} CornuPlainConfig;

/* By shape, as "accuracy", and Keras' class of that name; cornu__crossentropy_class likewise. */
#define METRIC(name)       extern const CornuSerializableClass cornu__##name##_class;
#define ALIAS(known, name)
#define ARGUMENTS(name)    METRIC(name)
#include "metrics.def"
#undef METRIC
#undef ALIAS
#undef ARGUMENTS

/* The class of metrics that are means of such losses; NULL if Keras has none, or none with all the
 * arguments of this one. */
const CornuSerializableClass *cornu__metric_class_of_loss(const CornuLoss *loss);

/* Keras' texts; NULL for what is none. */
const char *cornu__curve_name(CornuCurve curve);
const char *cornu__summation_name(CornuSummation summation);
const char *cornu__average_name(CornuAverage average);
const char *cornu__aggregation_name(CornuAggregation aggregation);

#endif
