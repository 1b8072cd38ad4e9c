/*
 * ModelCheckpoint: saves the model as it trains.
 *
 *     cornu_model_checkpoint("out/{epoch:02d}-{val_loss:.2f}.safetensors",
 *                            .save_best_only = true)
 *
 * Of several processes all gather the model, and rank 0 writes it.
 *
 * Source: keras/src/callbacks/model_checkpoint.py.
 */
#ifndef CORNU_NN_CHECKPOINT_H
#define CORNU_NN_CHECKPOINT_H

#include "../model/callback.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char             unset;
    const char      *filepath;                /* required; {epoch}, {batch} and {LOG}, with a
                                                 format as in {epoch:02d} or {val_loss:.2f} */
    const char      *monitor;                 /* default val_loss */
    int              verbose;                 /* 1: prints what it saves */
    bool             save_best_only;          /* an epoch without the log, between validated
                                                 ones, is not saved, where Keras saves it; if no
                                                 epoch has it all are. Both are logged as a warning
                                                 once */
    bool             save_weights_only;
    CornuMonitorMode mode;
    int64_t          save_freq;               /* batches between saves; default each epoch */
    bool             has_initial_value;       /* whether initial_value_threshold is set */
    double           initial_value_threshold; /* the best value to begin with */
    FILE            *file;                    /* for verbose; default stdout */
} CornuModelCheckpointConfig;

/* Missing folders are made. Strings are copied. Fails at once on a suffix that cannot be saved, and
 * at the first save on a name in {} that names no log. */
CornuCallback *cornu_model_checkpoint_from(const CornuModelCheckpointConfig *config);
#define cornu_model_checkpoint(...) \
    cornu_model_checkpoint_from(&(CornuModelCheckpointConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
