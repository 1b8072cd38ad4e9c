/* Shared by metrics, and by the loss, which is accumulated as a mean, too. */
#ifndef CORNU_NN_METRIC_INTERNAL_H
#define CORNU_NN_METRIC_INTERNAL_H

#include "../losses/loss_internal.h"
#include "metrics.h"

/* A metric of `size` bytes that begins with *base, named by its config or else its kind, and freed
 * by cornu_metric_free. One without a kind has no config but a base->name. NULL with a pending
 * error, also if one was pending. */
void *cornu__metric_create(size_t size, const CornuMetric *base, const void *config);

/* The states 0 and 1 of a mean, f64 sums of values and of their weights, after a batch with these
 * values (B, …); and its result. */
CornuStatus cornu__mean_update(CornuTensor *values, const CornuMetricCall *call,
                               CornuTensor *const *old, CornuTensor **new_states);
double      cornu__mean_result(const CornuArray *states);

/* old + the sum over all shards of `more`, f32, in f64. */
CornuTensor *cornu__accumulate(CornuTensor *old, CornuTensor *more);

/* The result of a vector metric: the mean. */
double cornu__mean_of_results(const CornuMetric *self, const CornuArray *states);

/* The elements of an f64 state. */
static inline const double *cornu__numbers(CornuArray state) { return state.data; }

/* a / b, 0 where b is 0. */
static inline double cornu__ratio(double a, double b) { return b == 0.0 ? 0.0 : a / b; }

/* The config of metrics without arguments. */
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

/* The metric class of the mean of such a loss; NULL if Keras has none, or none with all arguments
 * of this loss. */
const CornuSerializableClass *cornu__metric_class_of_loss(const CornuLoss *loss);

#endif
