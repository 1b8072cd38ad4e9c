/*
 * The state of a training, in a safetensors file: weights, the optimizer's variables, and
 *
 *     @metric/NAME/I   state I of a loss or metric
 *     @state/I         the states of layers; axis 0 is the shard
 *     @shard/N/NAME    shard N's value of a weight or variable that differs between shards; NAME
 *                      alone is shard 0's
 *     @history         i64 (epochs, 2): index and samples of earlier epochs
 *     @history/NAME    f64 (epochs): their logs; NaN where missing
 *     @callback/I      f64: the numbers of a callback with a state (callback.h)
 *     @callback/I/K    its array K
 *     "training"       in the metadata, JSON: the position in the epochs and in the data
 *     "settings"       in the metadata, JSON: what the resumed training must have in common with
 *                      this one (settings_internal.h)
 *
 * Random numbers and shuffled orders follow from the seed and these positions. Equal states give
 * equal bytes, on any number of threads and of processes.
 */
#ifndef CORNU_NN_BACKUP_FILE_INTERNAL_H
#define CORNU_NN_BACKUP_FILE_INTERNAL_H

#include "../training/training_internal.h"
#include "../formats/safetensors.h"
#include "../saving/settings_internal.h"

/* Writes the state between two steps of the model's fit. All ranks gather it, rank 0 writes it.
 * CORNU_ERR_VALUE on all ranks, naming it, and nothing is written, if a weight, a variable of the
 * optimizer, a loss or a layer's state is not finite. */
CornuStatus cornu__backup_write(CornuModel *model, const char *settings, const char *path);

/* Whether a file that begins with these bytes is a backup: its first array is a loss's or a
 * callback's. */
bool cornu__backup_recognizes(const char *head, size_t size);

/* Opens a backup. NULL with a pending error if it cannot be read or is damaged. */
CornuSafetensors *cornu__backup_open(const char *path);

/* *file: rank 0's, which may be NULL, on all ranks; what another rank passes does not matter. */
CornuStatus cornu__backup_share(CornuProcesses *processes, CornuSafetensors **file);

/* Makes the model's fit, which is about to begin with these settings, resume from the backup.
 * Compiles the step. Changes nothing if something does not fit: CORNU_ERR_SHAPE and the like name
 * the weight and both sides, CORNU_ERR_ARGUMENT the settings that differ. *compared: whether the
 * file has settings, as those of earlier versions do not. */
CornuStatus cornu__backup_restore(CornuModel *model, const CornuSafetensors *file,
                                  const char *settings, bool *compared);

/* Makes the model's fit, which is about to begin, go on from the state in the file, though its
 * settings and its number of steps may differ. *same_data: they are as many batches, of one size
 * and seed, and go on where they were; other data start at their beginning. */
CornuStatus cornu__backup_continue(CornuModel *model, const CornuSafetensors *file,
                                   bool *same_data);

#endif
