/*
 * Checks the gradients of a model, such as one with layers or losses of one's own.
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
    CornuArray  x, y;        /* required: a batch, small ones will do */
    int64_t     samples;     /* elements of each weight to try; default 8 */
    double      step;        /* by which they are moved, both ways; default 1e-4 */
    double      tolerance;   /* of the greatest element of a weight's gradient; default 1e-3 */
    double     *worst;       /* the greatest difference so measured; or NULL */
} CornuCheckGradientsConfig;

/* Compares the gradient of the training loss by each trained weight with (loss(w + step) - loss(w -
 * step)) / (2 step), in double on the reference device, where the model is for the time of the
 * call; its weights and the optimizer's variables stay what they were. CORNU_ERR_VALUE names the
 * first element that differs, and both numbers. Where the loss has a kink, as relu at 0, they may
 * differ rightly. Stateful layers, which never give the same loss twice, are CORNU_ERR_UNSUPPORTED.
 * Source: "Deep Learning", section 11.5, "Compare back-propagated derivatives to numerical
 * derivatives". */
CornuStatus cornu_check_gradients_from(const CornuCheckGradientsConfig *config);
#define cornu_check_gradients(...) \
    cornu_check_gradients_from(&(CornuCheckGradientsConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
