/* Frees what compiling and training add to a model. */
#include "../metrics/metric_internal.h"
#include "model_internal.h"
#include "../optimizers/optimizer_internal.h"

void cornu__states_free(CornuTracked *tracked)
{
    for (int i = 0; i < tracked->state_count; i++) {
        cornu_variable_free(tracked->states[i]);
        cornu__release(tracked->host[i].data);
    }
    tracked->state_count = 0;
}

void cornu__step_free(CornuStep *step)
{
    cornu_graph_free(step->graph);
    for (int i = 0; i < step->y_count; i++) cornu__release(step->staging[i]);
    cornu__release(step);
}

void cornu__steps_free(CornuModel *model)
{
    for (CornuStep *next, *step = model->steps; step; step = next) {
        next = step->next;
        cornu__step_free(step);
    }
    model->steps = NULL;
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

void cornu__model_claim(CornuModel *model, bool claimed)
{
    if (model->ready != claimed) cornu__layer_count_compiled(&model->base, claimed ? 1 : -1);
    model->ready = claimed;
    if (claimed) model->placed = model->device;
}

void cornu__uncompile(CornuModel *model)
{
    cornu__steps_free(model);
    for (int i = 0; i < model->tracked_count; i++) {
        cornu_metric_free(model->tracked[i].metric);
        cornu__states_free(&model->tracked[i]);
        cornu__release(model->tracked[i].name);
    }
    cornu__release(model->tracked);
    cornu__layer_free_states(&model->base);
    model->tracked = NULL;
    model->tracked_count = 0;
    model->gradient_norm = NULL;
    cornu_optimizer_free(model->optimizer);
    free_losses(model);
    model->optimizer = NULL;
    model->policy = NULL;
    cornu__model_claim(model, false);
    model->compiled = model->predicts = false;
}
