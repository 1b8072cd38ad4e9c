/*
 * Callbacks: functions that fit, evaluate and predict call as they go, in Keras' order.
 *
 *     train_begin { epoch_begin { train_batch_begin train_batch_end }
 *                   [ test_begin { test_batch_begin test_batch_end } test_end ] epoch_end }
 *     train_end
 *
 * Batch hooks are called once per execution: for n steps (steps_per_execution) from batch i on,
 * batch_begin gets i and batch_end i + n - 1, also where the epoch's last execution has fewer.
 *
 * fit appends History and, unless silent, the progress bar after the user's callbacks. Logs are
 * sorted by name; those added by callbacks follow. A hook that fails ends the training with its
 * status. callbacks.h has the ready-made callbacks.
 *
 * Of several processes (device/processes) each calls its own callbacks, at the same steps and with
 * the same logs, save that logs of batches may be read on some only. A hook may exchange with the
 * other processes, as reading the model's variables does, if it does so on all of them;
 * wants_batch_logs may not.
 */
#ifndef CORNU_NN_CALLBACK_H
#define CORNU_NN_CALLBACK_H

#include "../../device/type.h"
#include "../metrics/logs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuModel CornuModel;

/* The maximum number of inputs, and of outputs, of a model. */
enum { CORNU_MAX_MODEL_TENSORS = 64 };

/* What Keras' set_params tells a callback of the training. */
typedef struct {
    int     verbose;
    int64_t epochs;
    int64_t steps;         /* -1: unknown until the first epoch ends */
    bool    validates;     /* fit has validation data: epoch logs may include val_ ones */
} CornuParams;

/* Which values of a monitored log are better. Auto: lower for losses and errors, higher for
 * accuracies; other logs need min or max. */
typedef enum { CORNU_MODE_AUTO, CORNU_MODE_MIN, CORNU_MODE_MAX } CornuMonitorMode;

enum { CORNU_MAX_ADDED_LOGS = 4 };

typedef struct CornuCallback CornuCallback;

typedef CornuStatus CornuHook(CornuCallback *self, CornuModel *model, const CornuLogs *logs);
typedef CornuStatus CornuIndexHook(CornuCallback *self, CornuModel *model, int64_t index,
                                   const CornuLogs *logs);

/* The first member of a callback's own struct. Hooks may be NULL. index counts from 0.
 *
 * The logs of batch_end hooks are running means that are kept on the device. As reading them waits
 * for the device, every wants_batch_logs is called first; if any returns true, the logs are read
 * for all callbacks, else they are NULL. cornu_always_wants_logs returns true. */
struct CornuCallback {
    CornuParams     params;
    CornuLog        added[CORNU_MAX_ADDED_LOGS]; /* up to the first without a name: logs that
                                       epoch_end adds for later callbacks, the bar and History;
                                       names are not copied */
    bool            takes_nan;      /* a NaN or infinite loss does not end fit with an error:
                                       this callback handles it */
    bool            runs_last;   /* its hooks run after those of the others, to see their
                                    changes */
    /* Returns the numbers, *count of them, from which the callback resumes, always the same array;
     * a backup (backup.h) saves and restores them. NULL: none. */
    double       *(*state)(CornuCallback *self, int *count);
    /* Returns further arrays to save, *count of them, owned by the callback. When a backup is
     * restored, the numbers are restored first, and this allocates the arrays accordingly. NULL:
     * none. */
    CornuStatus   (*arrays)(CornuCallback *self, CornuModel *model, CornuArray **arrays,
                            int *count);
    bool          (*wants_batch_logs)(CornuCallback *self, int64_t batch);
    /* Whether its hooks are about to end the call, as after a signal: asked again and again of all
     * callbacks while one of them holds up a step. NULL: no. */
    bool          (*interrupted)(CornuCallback *self);
    CornuHook      *train_begin, *train_end;
    CornuIndexHook *epoch_begin, *epoch_end;
    CornuIndexHook *train_batch_begin, *train_batch_end;
    CornuHook      *test_begin, *test_end;
    CornuIndexHook *test_batch_begin, *test_batch_end;
    CornuHook      *predict_begin, *predict_end;
    CornuIndexHook *predict_batch_begin, *predict_batch_end;
    void          (*free)(CornuCallback *self);   /* frees self too; NULL: the caller's */
};

/* For .wants_batch_logs of callbacks that read the logs of every batch: true. */
bool cornu_always_wants_logs(CornuCallback *self, int64_t batch);

#ifdef __cplusplus
}
#endif
#endif
