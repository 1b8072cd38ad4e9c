/* cornu predict: on pictures. */
#ifndef CORNU_EXAMPLES_PREDICT_H
#define CORNU_EXAMPLES_PREDICT_H

#include "../common/data.h"

/* Classifies the pictures options->arguments[1...] (PNG or JPEG), a line each on stdout. A picture
 * that cannot be read is told on stderr, and sets *failed to 1; the others go on. */
CornuStatus predict_pictures(const Options *options, const DataFlags *flags, CornuModel *model,
                             CornuDevice *device, int *failed);

#endif
