/* What fit returns: the logs of each epoch. */
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

/* Logs by name, sorted: "accuracy", "loss", "val_accuracy", "val_loss". */
int         cornu_history_key_count(const CornuHistory *history);
const char *cornu_history_key(const CornuHistory *history, int key);

/* NaN where epoch i has no such value (validation_freq), and, with CORNU_ERR_ARGUMENT and a message
 * that names those there are, which is logged as a warning, for a name or an epoch that is not
 * there. */
double cornu_history_get(const CornuHistory *history, const char *name, int i);

/* Seconds that the training steps of epoch i took, validation left out, and their samples. Of an
 * epoch that an earlier run trained (backup.h) the seconds are NaN; of one that it began, they and
 * what is said of the infeed are those of the rest. */
double  cornu_history_seconds(const CornuHistory *history, int i);
int64_t cornu_history_samples(const CornuHistory *history, int i);

/* How the training batches of epoch i reached the device. Two more are made by the prefetch thread
 * while a step runs; seconds are measured on the thread that trains. */
typedef struct {
    int64_t batches;
    int64_t bytes;         /* copied to the device, padding included */
    double  wait_seconds;  /* until a batch was there; without prefetch, making it */
    double  copy_seconds;  /* dealing its rows over the shards, and copying them */
} CornuInfeed;

CornuInfeed cornu_history_infeed(const CornuHistory *history, int i);

void cornu_history_free(CornuHistory *history);

#ifdef __cplusplus
}
#endif
#endif
