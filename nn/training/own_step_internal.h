/* What a step of the model's losses and an own step record alike (record_loss.c). */
#ifndef CORNU_NN_OWN_STEP_INTERNAL_H
#define CORNU_NN_OWN_STEP_INTERNAL_H

#include "../metrics/metric_internal.h"
#include "../model/compiled_internal.h"
#include "../optimizers/optimizer_internal.h"

/* The losses of the outputs in a step. */
typedef struct {
    CornuMetricCall call[CORNU_MAX_MODEL_TENSORS];
    CornuTensor    *shown[CORNU_MAX_MODEL_TENSORS];   /* values that the logs show the mean of */
    CornuTensor    *loss, *shown_loss;                /* of all of them */
} CornuStepLosses;

/* Records the losses of compile for step->predictions. added: the sum that layers add to the loss,
 * or NULL. */
CornuStatus cornu__record_losses(CornuModel *model, CornuStep *step, CornuTensor *const *masks,
                                 CornuTensor *added, CornuStepLosses *losses);

/* Tracks the metrics of compile and, with_losses, the losses. */
CornuStatus cornu__track_compiled(CornuModel *model, const CornuStep *step,
                                  const CornuStepLosses *losses, bool with_losses);

/* Records the gradients of the loss by the optimizer's weights, and its update. */
CornuStatus cornu__record_gradients(CornuModel *model, CornuStep *step, CornuOptimizer *optimizer,
                                    CornuTensor *loss);

/* Creates the states of a tracked value in the first step, where they are known. All or none. */
CornuStatus cornu__make_states(CornuModel *model, CornuTracked *tracked, const char *name);

/* Records the update of the states of a tracked value: of its metric, or of a mean of values. */
CornuStatus cornu__track(CornuModel *model, CornuTracked *tracked, const char *name,
                         CornuTensor *loss_values, const CornuMetricCall *call);

#endif
