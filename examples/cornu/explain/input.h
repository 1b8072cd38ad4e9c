/* The input of a step: how long its batches take to make, by the stages of the data set. */
#ifndef CORNU_EXAMPLES_INPUT_H
#define CORNU_EXAMPLES_INPUT_H

#include <stdio.h>

#include "../common/data.h"

/* Loads the data, reads batches of them alone as fit would, and prints the times of the stages
 * beside that of a step, 0 if it is not known. */
CornuStatus explain_input(const Options *options, const DataFlags *flags,
                          const CornuExplainConfig *config, double step_seconds, FILE *to);

#endif
