/*
 * What the epochs of a race cost: money by the prices that are given, and energy.
 *
 * Energy is *measured* by counters of the kernel, for the whole machine while a device was
 * training, or *modelled* from the mean power that is published for a TPU's chips.
 */
#ifndef CORNU_EXAMPLES_RACE_COST_H
#define CORNU_EXAMPLES_RACE_COST_H

#include "race.h"

/* Takes the prices of a list such as "cpu=0.08,tpu:v3-8=8.00", per hour, for the devices of the
 * race, which are open. CORNU_ERR_ARGUMENT for another form, a price below 0 or a device that is
 * not in the race. */
CornuStatus race_price(Race *race, const char *list);

/* The epochs, from the first, that a racer took to the accuracy that is enough, and their seconds
 * and joules; 0 and NAN if there is none, or it has not reached it. */
typedef struct {
    int64_t epochs;
    double  seconds, joules;
} RaceTarget;

RaceTarget race_target(const Race *race, const Racer *racer);

/* Per hour; NAN if none is given. */
double race_price_of(const Racer *racer);

/* Joules that the chips of a modelled epoch use; NAN where no power is published. */
double race_modelled_joules(const ModelledEpoch *epoch);

/* The tables of costs, measured and modelled; nothing if there is nothing to say. */
void race_print_cost(const Race *race, FILE *to);

#endif
