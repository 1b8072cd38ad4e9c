#include "monitor_internal.h"

#include "../../device/memory_internal.h"
#include "../metrics/metric_internal.h"
#include "../model/model_internal.h"

#include <stdio.h>
#include <string.h>

CornuStatus cornu__monitor_open(CornuMonitor *monitor, const char *name)
{
    if ((unsigned)monitor->mode > CORNU_MODE_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .mode is %d, expected CORNU_MODE_AUTO, "
                           "CORNU_MODE_MIN or CORNU_MODE_MAX", monitor->who, (int)monitor->mode);
    if (!(monitor->min_delta >= 0.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .min_delta is %g, expected 0 or more",
                           monitor->who, monitor->min_delta);
    monitor->name = cornu__copy_text(name ? name : "val_loss");
    return monitor->name ? CORNU_OK : CORNU_ERR_MEMORY;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* By the name of one of Keras' losses and metrics; CORNU_MODE_AUTO for others. */
static CornuMonitorMode direction_of(const char *name)
{
    static const char *const falling[] = { "loss", "crossentropy", "error", "divergence", "mse",
                                           "mae", "mape", "msle", "ce", "bce", "logcosh",
                                           "log_cosh", "hinge", "poisson" };
    static const char *const rising[] = { "accuracy", "acc", "auc", "precision", "recall",
                                          "f1_score", "fbeta_score", "r2_score", "io_u",
                                          "cosine_similarity", "correlation",
                                          "sensitivity", "specificity" };
    CornuMonitorMode mode = CORNU_MODE_AUTO;
    for (size_t i = 0; i < sizeof falling / sizeof *falling; i++)
        if (ends_with(name, falling[i])) mode = CORNU_MODE_MIN;
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++)
        if (ends_with(name, rising[i])) mode = CORNU_MODE_MAX;
    return mode;
}

static bool is_of_validation(const char *name) { return strncmp(name, "val_", 4) == 0; }

/* The metric that the log shows, whatever its name; NULL for a loss and for other logs. */
static const CornuMetric *metric_of(const CornuModel *model, const char *name)
{
    if (is_of_validation(name)) name += 4;
    for (int i = 0; model && i < model->tracked_count; i++)
        if (!strcmp(model->tracked[i].name, name)) return model->tracked[i].metric;
    return NULL;
}

/* Whether a metric of this class is the mean of a loss. */
static bool is_loss(const CornuSerializableClass *kind)
{
    bool found = kind->loss != NULL;
    for (int i = 0; i < cornu__losses.count; i++) found |= cornu__losses.rows[i].kind == kind;
    return found;
}

/* As Keras, by the metric; where that does not tell, by the name of the log. */
CornuStatus cornu__monitor_find_mode(CornuMonitor *monitor, const CornuModel *model)
{
    if (monitor->mode != CORNU_MODE_AUTO) return CORNU_OK;
    const CornuMetric *metric = metric_of(model, monitor->name);
    if (metric && metric->kind)
        monitor->mode = is_loss(metric->kind) ? CORNU_MODE_MIN : direction_of(metric->kind->name);
    if (monitor->mode == CORNU_MODE_AUTO) monitor->mode = direction_of(monitor->name);
    if (monitor->mode != CORNU_MODE_AUTO) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: unknown whether a small or a large \"%s\" "
                       "is better, expected .mode = CORNU_MODE_MIN or CORNU_MODE_MAX",
                       monitor->who, monitor->name);
}

bool cornu__monitor_improves(const CornuMonitor *monitor, double value, double reference)
{
    const float best = (float)reference;
    return monitor->mode == CORNU_MODE_MIN ? (float)(value + monitor->min_delta) < best
                                           : (float)(value - monitor->min_delta) > best;
}

bool cornu__monitor_may_come(const CornuMonitor *monitor, const CornuParams *params,
                             const CornuLogs *logs)
{
    double trained;
    return params->validates && is_of_validation(monitor->name) &&
           cornu_logs_find(logs, monitor->name + 4, &trained);
}

CornuStatus cornu__monitor_read(CornuMonitor *monitor, const CornuModel *model,
                                const CornuParams *params, const CornuLogs *logs, double *value,
                                bool *there)
{
    CORNU__TRY(cornu__monitor_find_mode(monitor, model));
    *there = cornu_logs_find(logs, monitor->name, value);
    if (*there || cornu__monitor_may_come(monitor, params, logs)) return CORNU_OK;
    double     trained;
    const bool of_validation = is_of_validation(monitor->name) &&
                               cornu_logs_find(logs, monitor->name + 4, &trained);

    char known[400] = "";
    for (int i = 0; i < logs->count; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", logs->logs[i].name);
    }
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: no log \"%s\" to monitor, expected one of %s%s",
                       monitor->who, monitor->name, known,
                       of_validation ? "; fit was given no validation data" : "");
}

bool cornu__monitor_takes(CornuMonitor *monitor, double value)
{
    CornuBest *best = monitor->best;
    if (best->known != 0.0 && !cornu__monitor_improves(monitor, value, best->value)) return false;
    *best = (CornuBest){ 1.0, value };
    return true;
}
