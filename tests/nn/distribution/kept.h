/* In a rank: keeps all that a training leaves as results (tests/device/processes/results.h). */
#ifndef CORNU_TESTS_KEPT_H
#define CORNU_TESTS_KEPT_H

#include "../../../nn/cornu.h"

/* Trains a compiled classifier whose metric is the accuracy and which logs gradient_norm, evaluates
 * it and predicts, on x and y, into `predictions`. Kept as "NAME, …": what the last epoch logs, the
 * weights, the optimizer's variables, the evaluation, the predictions. */
CornuStatus keep_training(CornuModel *model, const char *name, CornuArray x, CornuArray y,
                          int64_t epochs, int64_t batch, CornuArray predictions);

#endif
