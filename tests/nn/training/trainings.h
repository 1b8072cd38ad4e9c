/* Small trainings with all that a backup has to know of: an order that is shuffled, dropout, moving
 * statistics, schedules and averages, states of layers, data that are augmented, validation. */
#ifndef CORNU_TESTS_NN_TRAININGS_H
#define CORNU_TESTS_NN_TRAININGS_H

#include "../../../nn/cornu.h"

typedef enum {
    TRAINING_SHUFFLED,   /* dropout, batch normalization, averaged weights; a partial batch */
    TRAINING_STATEFUL,   /* an LSTM that goes on from batch to batch, with dropout */
    TRAINING_AUGMENTED,  /* images moved and mirrored, steps_per_epoch below a pass, a schedule */
    TRAINING_GROUPS,     /* as shuffled; on four shards two groups learn apart */
    TRAININGS
} Training;

enum { TRAINING_EPOCHS = 3, TRAINING_STEPS = 4 };

const char *training_name(Training training);

/* Compiled for the device, always with the same seed; NULL on failure. */
CornuModel *training_model(Training training, CornuDevice *device);

/* Three epochs of four steps. The callbacks are taken; NULLs are left out. */
CornuHistory *training_fit(Training training, CornuModel *model, CornuCallback *a,
                           CornuCallback *b);

#endif
