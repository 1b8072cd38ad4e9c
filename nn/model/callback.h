/*
 * Callbacks: functions that fit, evaluate and predict call as they go, in Keras' order.
 *
 *     train_begin { epoch_begin { train_batch_begin train_batch_end }
 *                   [ test_begin { test_batch_begin test_batch_end } test_end ] epoch_end }
 *     train_end
 *
 * Hooks of batches come once per execution: of n steps (steps_per_execution) that begin with batch
 * i, batch_begin gets i and batch_end i + n - 1, also where the epoch's last one has fewer.
 *
 * fit appends History and, unless silent, the progress bar after the user's callbacks. Logs
 * are sorted by name; behind them come those that callbacks add. A hook that fails ends the
 * training with its status. callbacks.h has the ready-made ones.
 */
#ifndef CORNU_NN_CALLBACK_H
#define CORNU_NN_CALLBACK_H

#include "../../device/type.h"
#include "../metrics/logs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuModel CornuModel;

/* What set_params tells. */
typedef struct {
    int     verbose;
    int64_t epochs;
    int64_t steps;         /* -1: unknown until the first epoch ends */
    bool    validates;     /* fit has validation data: logs of epochs may have val_ ones */
} CornuParams;

/* Which values of a monitored log are better. Auto: a loss or an error shall fall, an accuracy
 * shall rise; anything else has to be said. */
typedef enum { CORNU_MODE_AUTO, CORNU_MODE_MIN, CORNU_MODE_MAX } CornuMonitorMode;

enum { CORNU_MAX_ADDED_LOGS = 4 };

typedef struct CornuCallback CornuCallback;

typedef CornuStatus CornuHook(CornuCallback *self, CornuModel *model, const CornuLogs *logs);
typedef CornuStatus CornuIndexHook(CornuCallback *self, CornuModel *model, int64_t index,
                                   const CornuLogs *logs);

/* A callback's own struct begins with this one. Hooks may be NULL. index counts from 0.
 *
 * The logs of batch_end hooks are running means that live on the device. Reading them costs a
 * wait, so before those hooks every callback with wants_batch_logs is asked once; if one says
 * yes the logs are read for all, else they are NULL. cornu_always_wants_logs says yes. */
struct CornuCallback {
    CornuParams     params;
    CornuLog        added[CORNU_MAX_ADDED_LOGS]; /* up to the first without a name: what epoch_end
                                       adds to its logs, for callbacks behind this one, the bar and
                                       History; the name is not copied */
    bool            takes_nan;      /* a loss that is no finite number does not end fit with an
                                       error: this callback sees to it */
    bool            runs_last;   /* its hooks come after those of the others: it keeps what they
                                    change */
    /* The numbers that it goes on from, *count of them, the same ones each time; a backup
     * (backup.h) keeps them and puts them back. NULL: there are none. */
    double       *(*state)(CornuCallback *self, int *count);
    /* Beside those numbers arrays, *count of them, the callback's own. Where a backup is read, the
     * numbers have been put back, and it makes room for as many as they tell of. NULL: none. */
    CornuStatus   (*arrays)(CornuCallback *self, CornuModel *model, CornuArray **arrays,
                            int *count);
    bool          (*wants_batch_logs)(CornuCallback *self, int64_t batch);
    CornuHook      *train_begin, *train_end;
    CornuIndexHook *epoch_begin, *epoch_end;
    CornuIndexHook *train_batch_begin, *train_batch_end;
    CornuHook      *test_begin, *test_end;
    CornuIndexHook *test_batch_begin, *test_batch_end;
    CornuHook      *predict_begin, *predict_end;
    CornuIndexHook *predict_batch_begin, *predict_batch_end;
    void          (*free)(CornuCallback *self);   /* frees self too; NULL: the caller's */
};

/* For wants_batch_logs. */
bool cornu_always_wants_logs(CornuCallback *self, int64_t batch);

#ifdef __cplusplus
}
#endif
#endif
