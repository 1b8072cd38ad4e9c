/* Frees what compiling and training add to a model. */
#include "model_internal.h"

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

void cornu__model_claim(CornuModel *model, bool claimed)
{
    if (model->ready != claimed) cornu__layer_count_compiled(&model->base, claimed ? 1 : -1);
    model->ready = claimed;
    if (claimed) cornu__device_keep(&model->placed, model->device);
}

void cornu__uncompile(CornuModel *model)
{
    cornu__steps_free(model);
    if (model->compilation) model->compilation->free(model);
    model->compilation = NULL;
    cornu__layer_free_states(&model->base);
    model->policy = NULL;
    cornu__model_claim(model, false);
    model->compiled = model->predicts = model->trains = model->warned = false;
}
