/*
 * All that training goes on from, in a safetensors file: weights, the optimizer's variables, and
 *
 *     @metric/NAME/I   state I of a loss or metric
 *     @state/I         what stateful layers remember; axis 0 counts the shards
 *     @shard/N/NAME    shard N's value of a weight or variable of which each has its own; NAME
 *                      alone is shard 0's
 *     @history         i64 (epochs, 2): index and samples of the epochs before
 *     @history/NAME    f64 (epochs): their logs; NaN where there was none
 *     @callback/I      f64: the numbers of a callback with a state (callback.h)
 *     @callback/I/K    its array K
 *     "training"       in the metadata, JSON: the place in the epochs and in the data
 *     "settings"       in the metadata, JSON: what the training that goes on must have in common
 *                      with this one (settings_internal.h)
 *
 * Random numbers and shuffled orders follow from the seed and these places. Equal states give equal
 * bytes, whatever the threads.
 */
#ifndef CORNU_NN_BACKUP_FILE_INTERNAL_H
#define CORNU_NN_BACKUP_FILE_INTERNAL_H

#include "../training/training_internal.h"
#include "../formats/safetensors.h"
#include "../saving/settings_internal.h"

/* Between two steps of a model's fit. CORNU_ERR_VALUE, naming it, and nothing is written, where a
 * weight, a variable of the optimizer, a loss or what a layer remembers is not finite. */
CornuStatus cornu__backup_write(CornuModel *model, const char *settings, const char *path);

/* Whether a file that begins with these bytes is one: its first array is a loss's or callback's. */
bool cornu__backup_recognizes(const char *head, size_t size);

/* Opens such a file. NULL with a pending error if it cannot be read or is damaged. */
CornuSafetensors *cornu__backup_open(const char *path);

/* Lets the model's fit, which is about to begin with these settings, go on from there. Compiles the
 * step. Nothing is changed if something does not fit: CORNU_ERR_SHAPE and its like name the weight
 * and both sides, CORNU_ERR_ARGUMENT what the trainings do not have in common. *compared: whether
 * the file says its settings, as those of earlier versions do not. */
CornuStatus cornu__backup_restore(CornuModel *model, const CornuSafetensors *file,
                                  const char *settings, bool *compared);

#endif
