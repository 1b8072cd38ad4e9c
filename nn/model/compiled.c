/* What compiling adds to a model's variables, and frees: the optimizer's, losses and metrics. */
#include "compiled_internal.h"

#include "../metrics/metric_internal.h"
#include "../optimizers/optimizer_internal.h"

CornuStatus cornu__compiled_build(CornuModel *model)
{
    int trainable = 0;
    const int weights = cornu_model_weight_count(model);
    CornuVariable **w = cornu__allocate((size_t)weights, sizeof *w);
    if (!w) return CORNU_ERR_MEMORY;
    for (int i = 0; i < weights; i++)
        if (cornu__layer_trains(&model->base, model->base.weights[i]))
            w[trainable++] = model->base.weights[i]->variable;
    CornuStatus status =
        trainable > 0 ? cornu_optimizer_build(model->optimizer, w, trainable)
                      : cornu__optimizer_build_empty(model->optimizer, model->device);
    cornu__release(w);
    for (int i = 0, k = 0; i < weights && !status; i++) {
        const CornuWeight *weight = model->base.weights[i];
        if (cornu__layer_trains(&model->base, weight))
            cornu_optimizer_constrain(model->optimizer, k++, weight->constraint);
    }
    return status;
}

/* With f16 gradients may underflow. */
CornuStatus cornu__compiled_scale_loss(CornuModel *model)
{
    if (model->optimizer->scales_loss || model->no_auto_scale_loss) return CORNU_OK;
    return cornu__optimizer_scale(model->optimizer, &(CornuLossScaleConfig){ .unset = 0 });
}

CornuStatus cornu__compiled_pack(CornuModel *model)
{
    return cornu__optimizer_pack(model->optimizer);
}

void cornu__states_free(CornuTracked *tracked)
{
    for (int i = 0; i < tracked->state_count; i++) {
        cornu_variable_free(tracked->states[i]);
        cornu__release(tracked->host[i].data);
    }
    tracked->state_count = 0;
}

/* A loss shared by several outputs is in the array several times. */
static void free_losses(CornuModel *model)
{
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        CornuLoss *loss = model->losses[i];
        for (int k = i; k < CORNU_MAX_MODEL_TENSORS && loss; k++)
            if (model->losses[k] == loss) model->losses[k] = NULL;
        cornu_loss_free(loss);
    }
}

void cornu__compiled_free(CornuModel *model)
{
    for (int i = 0; i < model->tracked_count; i++) {
        cornu_metric_free(model->tracked[i].metric);
        cornu__states_free(&model->tracked[i]);
        cornu__release(model->tracked[i].name);
    }
    cornu__release(model->tracked);
    model->tracked = NULL;
    model->tracked_count = 0;
    model->gradient_norm = NULL;
    cornu_optimizer_free(model->optimizer);
    free_losses(model);
    model->optimizer = NULL;
}
