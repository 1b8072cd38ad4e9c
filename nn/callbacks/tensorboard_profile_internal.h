/* The profile of the batches that TensorBoard's callback is asked for. */
#ifndef CORNU_NN_TENSORBOARD_PROFILE_INTERNAL_H
#define CORNU_NN_TENSORBOARD_PROFILE_INTERNAL_H

#include "../training/trace_internal.h"

/* The most batches of a profile: each keeps the times of all its steps on all threads. */
enum { CORNU_MOST_PROFILED = 100 };

typedef struct {
    int64_t      first, last;       /* batches since fit began, from 1; 0: none */
    CornuModel  *model;             /* that is traced, or NULL */
    CornuTrace  *current;           /* armed for the next batch, or NULL */
    CornuTrace  *done[CORNU_MOST_PROFILED];
    int          count;
} CornuTensorboardProfile;

/* Before batch `next` of fit, which is step `step` (from 1) of the epoch (from 1): traces it if it
 * is asked for. */
CornuStatus cornu__profile_before(CornuTensorboardProfile *profile, CornuModel *model, int64_t next,
                                  int64_t epoch, int64_t step);

/* After a batch: what was traced is kept. After the last one asked for, or at the end of a training
 * that stopped before it, it is written below log_dir, and forgotten. */
CornuStatus cornu__profile_after(CornuTensorboardProfile *profile, const char *log_dir, bool ended);

void cornu__profile_free(CornuTensorboardProfile *profile);

#endif
