/* cornu predict: on pictures. */
#ifndef CORNU_EXAMPLES_PREDICT_H
#define CORNU_EXAMPLES_PREDICT_H

#include "common/options.h"

/* Classifies the pictures options->arguments[1...] (PNG or JPEG) with the saved model
 * options->arguments[0]; returns the exit status. */
int predict_pictures(const Options *options, const char *program);

#endif
