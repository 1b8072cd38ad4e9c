/*
 * Checks the gradients of a model, such as one with custom layers or losses.
 *
 *     CornuStatus status = cornu_check_gradients(model, x, y);
 */
#ifndef CORNU_NN_CHECK_GRADIENTS_H
#define CORNU_NN_CHECK_GRADIENTS_H

#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char        unset;
    CornuModel *model;       /* required: compiled with a loss, of one input and one output */
    CornuArray  x, y;        /* required: a batch; a small one suffices */
    int64_t     samples;     /* elements of each weight to check; default 8 */
    double      step;        /* added and subtracted; default 1e-4 */
    double      tolerance;   /* relative to the largest element of a weight's gradient;
                                default 1e-3 */
    double     *worst;       /* gets the largest such difference; or NULL */
} CornuCheckGradientsConfig;

/* Compares the gradient of the training loss by each trained weight with (loss(w + step) - loss(w -
 * step)) / (2 step), in double on the reference device, to which the model moves during the call;
 * its weights and the optimizer's variables do not change. CORNU_ERR_VALUE names the first element
 * that differs, and both numbers. At a kink of the loss, as of relu at 0, they may legitimately
 * differ. Stateful layers, whose loss changes from call to call, are CORNU_ERR_UNSUPPORTED.
 * Source: "Deep Learning", section 11.5, "Compare back-propagated derivatives to numerical
 * derivatives". */
CornuStatus cornu_check_gradients_from(const CornuCheckGradientsConfig *config);
#define cornu_check_gradients(...) \
    cornu_check_gradients_from(&(CornuCheckGradientsConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
