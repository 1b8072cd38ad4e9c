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

/* What differs between two of them: the number of differences, and the first few as text,
 * "optimizer was … and is …; …". */
typedef struct {
    char   text[800];
    size_t used;
    int    count;
} CornuDifferences;

/* CORNU_ERR_FORMAT for a string that is no JSON. */
CornuStatus cornu__settings_differences(const char *there, const char *here,
                                        CornuDifferences *found);

/* CORNU_ERR_ARGUMENT naming the first few differences, unless both are the same. */
CornuStatus cornu__settings_compare(const char *there, const char *here);

#endif
