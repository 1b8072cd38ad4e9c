/*
 * How many shards to take for a batch: *modelled*, from the published figures of a TPU.
 */
#ifndef CORNU_EXAMPLES_RACE_ADVICE_H
#define CORNU_EXAMPLES_RACE_ADVICE_H

#include <stdio.h>

#include "../explain/scaling.h"

typedef struct {
    const char *device;            /* "tpu:v3-8" */
    Scaling     scaling;           /* of 1, 2, 4, ... shards, as many as there are, and samples */
    int         best, enough;      /* rows of scaling.strong: the shortest step; the fewest shards
                                      whose step is at most 1.1 times as long */
    int         infeed;            /* the first row whose infeed is longer than its ops; -1: none */
} Advice;

/* Models the steps of a TPU of the options' batch. CORNU_ERR_ARGUMENT for another device. */
CornuStatus race_advise(const Options *options, const CornuReferenceModel *reference,
                        const char *device, Advice *advice);

/* Fills in the rows from scaling.strong. */
void race_choose(Advice *advice);

/* At most 80 columns. */
void race_advice_print(const Advice *advice, FILE *to);

#endif
