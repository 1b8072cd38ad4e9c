/* Logs: the named values that a step, an epoch or an evaluation ends with. */
#ifndef CORNU_NN_LOGS_H
#define CORNU_NN_LOGS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;      /* "accuracy", "val_loss" */
    double      value;
} CornuLog;

typedef struct {
    int             count;
    const CornuLog *logs;  /* sorted by name, then what callbacks added */
} CornuLogs;

/* The value of a log, and whether there is one of that name. */
bool cornu_logs_find(const CornuLogs *logs, const char *name, double *value);

#ifdef __cplusplus
}
#endif
#endif
