/*
 * Trainings of several processes: that they do the same. Nothing happens where there is one.
 */
#ifndef CORNU_NN_AGREE_INTERNAL_H
#define CORNU_NN_AGREE_INTERNAL_H

#include "training_internal.h"

/* CORNU_ERR_PROCESS, on all, naming a rank and the difference, unless all are about to train for so
 * many epochs with the same seed, steps, data, weights and optimizer. */
CornuStatus cornu__agree_on_training(const CornuModel *model, const CornuDataLoader *loader,
                                     int64_t epochs);

/* As above unless all have as many batches and, if these are made from arrays in memory, the same
 * data; `what` they are is for the message, "the validation data". */
CornuStatus cornu__agree_on_data(const CornuModel *model, const CornuDataLoader *loader,
                                 const char *what);

/* model->stop_training is rank 0's, on all. */
CornuStatus cornu__agree_to_stop(CornuModel *model);

/* The end of fit, evaluate or predict: a failure ends the group, as the other processes cannot go
 * on without this one. Being interrupted is not a failure: all are, at the same step. Returns
 * status. */
CornuStatus cornu__fail_together(const CornuModel *model, CornuStatus status);

#endif
