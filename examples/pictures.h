/*
 * The pictures of --plots DIR: curves.png, filters.png, predictions.png and confusion.png
 * (nn/pictures/pictures.h). Each is written whole or not at all, over one that was there.
 */
#ifndef CORNU_EXAMPLES_PICTURES_H
#define CORNU_EXAMPLES_PICTURES_H

#include <cornu/cornu.h>

/* Whether all of them could be written, in a folder that is there or whose parent is. Leaves
 * nothing behind. */
CornuStatus pictures_check(const char *folder);

/* These make the folder where it is not there yet. */

/* The curves, and the kernels of the first convolution; says so on stdout if there is none. data:
 * what was learnt, or NULL if that is no images. */
CornuStatus pictures_of_training(const char *folder, CornuModel *model,
                                 const CornuHistory *history, const CornuTrainTest *data);

/* Samples of the test with what is predicted, and which classes are confused. predictions:
 * f32 (N, classes), of all the test data. */
CornuStatus pictures_of_test(const char *folder, const CornuModel *model,
                             const CornuTrainTest *data, CornuArray predictions);

#endif
