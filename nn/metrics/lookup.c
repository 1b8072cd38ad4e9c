/* Metrics by name. */
#include "metric_internal.h"

CornuMetric *cornu_metric(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const CornuSerializableClass *kind = cornu__serializable_find(&cornu__metrics, name);
    if (!kind) return NULL;
    return kind->loss ? cornu_loss_metric(name, cornu__serializable_default(kind->loss, NULL))
                      : cornu__serializable_default(kind, name);
}
