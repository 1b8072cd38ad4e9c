/*
 * Shared by the callbacks that monitor one log: which values are better, and by how much.
 * Source: keras/src/callbacks/monitor_callback.py.
 */
#ifndef CORNU_NN_MONITOR_INTERNAL_H
#define CORNU_NN_MONITOR_INTERNAL_H

#include "../model/callback.h"

/* Doubles, as in a backup (callback.h, `state`). */
typedef struct { double known, value; } CornuBest;

typedef struct {
    const char      *who;          /* begins messages: "early stopping"; not copied */
    char            *name;         /* of the log */
    CornuMonitorMode mode;
    double           min_delta;    /* an improvement is larger than this */
    CornuBest       *best;         /* the best so far, in the callback's state */
} CornuMonitor;

/* Copies the log's name, val_loss for NULL; the caller releases it. Checks mode and min_delta. */
CornuStatus cornu__monitor_open(CornuMonitor *monitor, const char *name);

/* Resolves CORNU_MODE_AUTO by the model's metric of that name, or by the name, which `model` NULL
 * leaves alone; CORNU_ERR_ARGUMENT where neither tells. */
CornuStatus cornu__monitor_find_mode(CornuMonitor *monitor, const CornuModel *model);

/* Whether `value` is better than `reference`, compared in f32 as in Keras. The mode must be
 * resolved. */
bool cornu__monitor_improves(const CornuMonitor *monitor, double value, double reference);

/* Whether a log that this epoch lacks is one of epochs that are validated. */
bool cornu__monitor_may_come(const CornuMonitor *monitor, const CornuParams *params,
                             const CornuLogs *logs);

/* The log's value at the end of an epoch. *there: whether there is one; an epoch without validation
 * may lack it. CORNU_ERR_ARGUMENT if no epoch will have it. Resolves the mode. */
CornuStatus cornu__monitor_read(CornuMonitor *monitor, const CornuModel *model,
                                const CornuParams *params, const CornuLogs *logs, double *value,
                                bool *there);

/* Whether the value is better than the best so far, which it then replaces. */
bool cornu__monitor_takes(CornuMonitor *monitor, double value);

#endif
