/*
 * The pictures of --plots DIR: curves.png, filters.png, predictions.png and confusion.png
 * (nn/pictures/pictures.h). Each is written completely or not at all, and replaces an older one. Of
 * several processes the first alone makes folder and files.
 */
#ifndef CORNU_EXAMPLES_PICTURES_H
#define CORNU_EXAMPLES_PICTURES_H

#include <cornu/cornu.h>

/* Whether all of them can be written, into a folder that exists or whose parent does. Leaves no
 * file or folder. */
CornuStatus pictures_check(const char *folder);

/* These make the folder if it does not exist. */

/* The curves, and the kernels of the first convolution; prints a line if the model has none. `data`
 * is NULL if the model was not trained on images. */
CornuStatus pictures_of_training(const char *folder, CornuModel *model,
                                 const CornuHistory *history, const CornuTrainTest *data);

/* Test samples with their predictions, and the confusion matrix. predictions: f32 (N, classes), of
 * all test data; `part`: "test" or "validation", for titles. Grey images other than digits and
 * garments are drawn as they are. */
CornuStatus pictures_of_test(const char *folder, const CornuModel *model,
                             const CornuTrainTest *data, const char *part, CornuArray predictions);

#endif
