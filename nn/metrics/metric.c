/* What metrics share. */
#include "metric.h"

#include "metric_internal.h"

static void free_metric(CornuMetric *metric) { cornu__release(metric); }

void *cornu__metric_create(size_t size, const CornuMetric *base, const void *config)
{
    if (cornu__refused()) return NULL;
    CornuMetric  made = *base;
    CornuMetric *metric = cornu__serializable_create(size, base->kind, config,
                                                     base->kind ? base->kind->name : base->name,
                                                     &made.config, &made.name);
    if (!metric) return NULL;
    if (!made.free) made.free = free_metric;
    *metric = made;
    return metric;
}

void cornu_metric_free(CornuMetric *metric)
{
    if (metric && metric->free) metric->free(metric);
}

CornuTensor *cornu__accumulate(CornuTensor *old, CornuTensor *more)
{
    return cornu_op_add(old, cornu_op_all_reduce(cornu_op_convert(more, CORNU_F64)));
}

double cornu__mean_of_results(const CornuMetric *self, const CornuArray *states)
{
    double sum = 0.0;
    for (int64_t i = 0; i < self->result_count; i++) sum += self->result_at(self, states, i);
    return cornu__ratio(sum, (double)self->result_count);
}
