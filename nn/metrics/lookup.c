/* Metrics by name. */
#include "metric_internal.h"

CornuMetric *cornu_metric(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const CornuObjectClass *kind = cornu__object_find(&cornu__metrics, name);
    if (!kind) return NULL;
    return kind->loss ? cornu_loss_metric(name, cornu__object_usual(kind->loss, NULL))
                      : cornu__object_usual(kind, name);
}
