/*
 * cornu train: what is common to its three ways, on your own data, on digits and garments, and
 * on text.
 */
#ifndef CORNU_EXAMPLES_TRAIN_H
#define CORNU_EXAMPLES_TRAIN_H

#include "common/data.h"
#include "common/large_batch.h"
#include "common/objective.h"

/* Its own flags; those of Options are common to all commands. */
typedef struct {
    DataFlags   data;
    double      validation_split;                 /* negative: the network's */
    Objective   objective;
    LargeBatch  large;
    int64_t     shift;                            /* pixels */
    bool        flip;
    const char *text, *sampling, *rmsprop;
    int64_t     sequence_length;
    const char *remat;
} TrainFlags;

/* How often the weights are updated in so many steps, by which schedules count: Keras counts an
 * iteration of accumulated gradients as one. */
int64_t train_updates(const TrainFlags *flags, int64_t steps);

/* CORNU_ERR_ARGUMENT if --remat names a layer that the model does not have. */
CornuStatus train_check_remat(const TrainFlags *flags, const CornuModel *model);

/* Trains any model on the data of the flags. */
CornuStatus train_own(Options *options, const TrainFlags *flags, const Subject *subject);

/* Trains a network of models/ on digits or garments, with its published settings. */
CornuStatus train_images(Options *options, const TrainFlags *flags,
                         const CornuReferenceModel *reference);

/* Trains a network of models/ on text. */
CornuStatus train_text(Options *options, TrainFlags *flags, const CornuTextPreset *preset);

/* The network of text of this name in models/; NULL: there is none. */
const CornuTextPreset *text_preset_of(const char *model);

#endif
