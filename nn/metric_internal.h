/* The loss is accumulated as a mean too. */
#ifndef CORNU_NN_METRIC_INTERNAL_H
#define CORNU_NN_METRIC_INTERNAL_H

#include "metric.h"

/* States 0 and 1 of a mean, an f64 sum and an i64 count, after a batch whose values (B, …) are
 * given; and its result. */
CornuStatus cornu__mean_update(CornuTensor *values, const CornuMetricCall *call,
                               CornuTensor *const *old, CornuTensor **new_states);
double      cornu__mean_result(const CornuArray *states);

#endif
