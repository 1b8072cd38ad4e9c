/*
 * The settings of a training, as JSON: layers and their arguments, the optimizer, losses and
 * metrics, policy, device and shards, and a fingerprint of the data, all of which change its
 * results. Left out are threads, the processor, names, callbacks, the number of epochs, and steps
 * per execution.
 */
#ifndef CORNU_NN_SETTINGS_INTERNAL_H
#define CORNU_NN_SETTINGS_INTERNAL_H

#include "../training/training_internal.h"

/* The settings of a fit that is about to begin; reads a few batches. The caller frees the string
 * with free(). NULL, not pending, on failure. */
char *cornu__settings_text(const CornuModel *model);

/* CORNU_ERR_ARGUMENT naming the first few differences, unless both are the same. */
CornuStatus cornu__settings_compare(const char *there, const char *here);

#endif
