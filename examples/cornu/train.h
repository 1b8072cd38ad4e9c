/*
 * cornu train: what is common to its three ways, on arrays, on pictures with labels, and on text.
 */
#ifndef CORNU_EXAMPLES_TRAIN_H
#define CORNU_EXAMPLES_TRAIN_H

#include "common/large_batch.h"
#include "common/objective.h"

/* Its own flags; those of Options are common to all commands. */
typedef struct {
    const char *x, *y, *test_x, *test_y;          /* files */
    double      validation_split;                 /* negative: the network's */
    Objective   objective;
    LargeBatch  large;
    int64_t     shift;                            /* pixels */
    bool        flip;
    const char *text, *sampling, *rmsprop, *encoding;
    int64_t     sequence_length;
} TrainFlags;

/* Trains a model on --x and --y. */
CornuStatus train_arrays(Options *options, const TrainFlags *flags, const Subject *subject);

/* Trains a network of models/ on its own digits or garments. */
CornuStatus train_images(Options *options, const TrainFlags *flags,
                         const CornuReferenceModel *reference);

/* Trains a network of models/ on a text. */
CornuStatus train_text(Options *options, TrainFlags *flags, const CornuTextPreset *preset);

/* "code-points", "alphabet" or "bytes". */
CornuTextEncoding text_encoding(const char *name);

/* The network of text of this name in models/; NULL: there is none. */
const CornuTextPreset *text_preset_of(const char *model);

#endif
