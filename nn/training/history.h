/* The logs of each epoch, returned by fit. */
#ifndef CORNU_NN_HISTORY_H
#define CORNU_NN_HISTORY_H

#include "../model/callback.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuHistory CornuHistory;

/* Epochs that ended, counted from 0 in the order they ran. */
int cornu_history_epochs(const CornuHistory *history);

/* Index of epoch i, which is initial_epoch + i. */
int64_t cornu_history_epoch(const CornuHistory *history, int i);

/* The number of different logs. */
int         cornu_history_key_count(const CornuHistory *history);
/* The name of log `key`, from 0, sorted: "accuracy", "loss", "val_accuracy", "val_loss". Owned by
 * the history. */
const char *cornu_history_key(const CornuHistory *history, int key);

/* NaN where epoch i has no such value (validation_freq). An unknown name or epoch gives NaN, too,
 * and CORNU_ERR_ARGUMENT with a message that lists the known ones, also logged as a warning. */
double cornu_history_get(const CornuHistory *history, const char *name, int i);

/* Whether epoch i has a value of that name, which may be NaN. */
bool cornu_history_has(const CornuHistory *history, const char *name, int i);

/* Seconds that the training steps of epoch i took, without validation. NaN for an epoch that an
 * earlier run trained (backup.h); for an epoch resumed midway, seconds and infeed are those of the
 * resumed part. */
double  cornu_history_seconds(const CornuHistory *history, int i);
/* The samples that these steps trained on. */
int64_t cornu_history_samples(const CornuHistory *history, int i);

/* How the training batches of epoch i reached the device. The prefetch thread prepares two more
 * while a step runs; seconds are measured on the training thread. */
typedef struct {
    int64_t batches;
    int64_t bytes;         /* copied to the device, padding included */
    double  wait_seconds;  /* for the next batch; without prefetch, to make it */
    double  copy_seconds;  /* to distribute its rows over the shards and copy them */
} CornuInfeed;

/* That of epoch i; all 0 for one that an earlier run trained. */
CornuInfeed cornu_history_infeed(const CornuHistory *history, int i);

/* Once; NULL is ignored. */
void cornu_history_free(CornuHistory *history);

#ifdef __cplusplus
}
#endif
#endif
