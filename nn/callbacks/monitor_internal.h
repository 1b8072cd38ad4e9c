/*
 * What the callbacks share that watch one log: which values are better, and by how much.
 * Source: keras/src/callbacks/monitor_callback.py.
 */
#ifndef CORNU_NN_MONITOR_INTERNAL_H
#define CORNU_NN_MONITOR_INTERNAL_H

#include "../model/callback.h"

/* Doubles, as a backup keeps them (callback.h, `state`). */
typedef struct { double known, value; } CornuBest;

typedef struct {
    const char      *who;          /* begins messages: "early stopping"; not copied */
    char            *name;         /* of the log */
    CornuMonitorMode mode;
    double           min_delta;    /* an improvement is more than this */
    CornuBest       *best;         /* so far: the owner's */
} CornuMonitor;

/* Copies the log's name, val_loss for NULL. Afterwards it is the caller's to release. Checks mode
 * and min_delta. */
CornuStatus cornu__monitor_open(CornuMonitor *monitor, const char *name);

/* Says which of AUTO's modes it is; CORNU_ERR_ARGUMENT for a name that tells nothing. */
CornuStatus cornu__monitor_find_mode(CornuMonitor *monitor);

/* Whether `value` is better than `reference`, as Keras compares: in f32. The mode must be found. */
bool cornu__monitor_improves(const CornuMonitor *monitor, double value, double reference);

/* The log's value at the end of an epoch, *there: whether there is one, as it may be missing after
 * an epoch without validation. CORNU_ERR_ARGUMENT where no epoch will have it. Finds the mode. */
CornuStatus cornu__monitor_read(CornuMonitor *monitor, const CornuParams *params,
                                const CornuLogs *logs, double *value, bool *there);

/* Whether the value is the best so far, which it then becomes. */
bool cornu__monitor_takes(CornuMonitor *monitor, double value);

#endif
