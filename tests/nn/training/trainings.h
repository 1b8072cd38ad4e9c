/* Small trainings with every kind of state that a backup holds: shuffling, dropout, moving
 * statistics, schedules and averages, states of layers, augmentation, validation. */
#ifndef CORNU_TESTS_NN_TRAININGS_H
#define CORNU_TESTS_NN_TRAININGS_H

#include "../../../nn/cornu.h"

typedef enum {
    TRAINING_SHUFFLED,   /* dropout, batch normalization, averaged weights; a partial batch */
    TRAINING_STATEFUL,   /* a stateful LSTM with dropout */
    TRAINING_AUGMENTED,  /* shifted and flipped images, steps_per_epoch below a pass, a schedule */
    TRAINING_GROUPS,     /* as shuffled; on four shards in two groups */
    TRAININGS
} Training;

enum { TRAINING_EPOCHS = 3, TRAINING_STEPS = 4 };

const char *training_name(Training training);

/* A model compiled for the device, always with the same seed; NULL on failure. */
CornuModel *training_model(Training training, CornuDevice *device);

/* Runs three epochs of four steps. Takes the callbacks; NULLs are skipped. */
CornuHistory *training_fit(Training training, CornuModel *model, CornuCallback *a,
                           CornuCallback *b);

#endif
