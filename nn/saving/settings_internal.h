/*
 * What a training was begun with, as JSON: its layers and their arguments, the optimizer, losses
 * and metrics, policy, device and shards, and a fingerprint of the data. Trainings in which one of
 * these differs end with other numbers. Not in it: threads, the processor, names, callbacks, how
 * many epochs there are, steps per execution.
 */
#ifndef CORNU_NN_SETTINGS_INTERNAL_H
#define CORNU_NN_SETTINGS_INTERNAL_H

#include "../training/loop_internal.h"

/* Of the model's fit, which is about to begin; reads a few batches. To be freed with free(); NULL,
 * not pending, on failure. */
char *cornu__settings_text(const CornuModel *model);

/* CORNU_ERR_ARGUMENT, naming the first few that differ, unless both are the same. */
CornuStatus cornu__settings_compare(const char *there, const char *here);

#endif
