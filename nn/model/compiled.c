/* What a model has once it is compiled: the optimizer's variables, losses, metrics and steps that
 * train; made when they are first needed, and freed. */
#include "compiled_internal.h"

#include "../../device/log_internal.h"
#include "../metrics/metric_internal.h"
#include "../optimizers/optimizer_internal.h"
#include "pipeline_plan_internal.h"

int cornu__model_optimizer_of(const void *context, const CornuVariable *w)
{
    const CornuModel *model = context;
    for (int n = 0; n < CORNU_MAX_OPTIMIZERS && model->shares[n].optimizer; n++)
        for (int i = 0; i < CORNU_MAX_OPTIMIZER_LAYERS && model->shares[n].layers[i]; i++) {
            const CornuLayer *layer = model->shares[n].layers[i];
            for (int k = 0; k < layer->weight_count; k++)
                if (layer->weights[k]->variable == w) return n;
        }
    return -1;
}

/* Whether weight i is trainable now; `inner` as cornu__layer_trains_next has it. */
static bool trains(const CornuModel *model, int i, int *inner)
{
    const CornuWeight *weight = model->base.weights[i];
    return cornu__layer_trains_next(&model->base, weight, inner) &&
           !(model->own && model->own->own_updates) &&
           (!model->shares || cornu__model_optimizer_of(model, weight->variable) >= 0);
}

/* Sets w[] to the variables of the weights that are trainable now, and returns their number. */
static int list_trainable(const CornuModel *model, CornuVariable **w)
{
    int count = 0, inner = 0;
    for (int i = 0; i < model->base.weight_count; i++)
        if (trains(model, i, &inner)) w[count++] = model->base.weights[i]->variable;
    return count;
}

static void set_constraints(CornuModel *model)
{
    for (int i = 0, k = 0, inner = 0; i < model->base.weight_count; i++) {
        const CornuWeight *weight = model->base.weights[i];
        if (trains(model, i, &inner))
            cornu_optimizer_constrain(model->optimizer, k++, weight->constraint);
    }
}

/* In a pipeline the weights of each layer are a bucket: they are of one stage. */
enum { BY_LAYER = 1 };

CornuStatus cornu__compiled_build(CornuModel *model)
{
    CornuVariable **w = cornu__allocate((size_t)model->base.weight_count, sizeof *w);
    if (!w) return CORNU_ERR_MEMORY;
    const int   count = list_trainable(model, w);
    if (model->pipeline) model->optimizer->bucket_bytes = BY_LAYER;
    CornuStatus status = count > 0 ? cornu_optimizer_build(model->optimizer, w, count)
                                   : cornu__optimizer_build_empty(model->optimizer, model->device);
    cornu__release(w);
    if (!status) set_constraints(model);
    return status;
}

CornuStatus cornu_optimizer_build_weights(CornuOptimizer *optimizer, CornuWeight *const *weights,
                                          int count)
{
    CORNU__NEED(optimizer);
    CORNU__NEED(weights);
    CornuVariable **w = cornu__allocate((size_t)count, sizeof *w);
    CornuStatus     status = w ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; i < count && !status; i++)
        if (!(w[i] = weights[i]->variable))
            status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is on no device; cornu_compile or "
                                 "cornu_model_place comes first", cornu_optimizer_name(optimizer),
                                 weights[i]->path);
    if (!status) status = cornu_optimizer_build(optimizer, w, count);
    cornu__release(w);
    for (int i = 0; i < count && !status; i++)
        cornu_optimizer_constrain(optimizer, i, weights[i]->constraint);
    return status;
}

/* The steps that there are read the optimizer's iteration. */
static CornuStatus rebuild(CornuModel *model, CornuVariable *const *w, int count)
{
    cornu__steps_free(model);
    CORNU__TRY(cornu__optimizer_rebuild(model->optimizer, model->device, w, count));
    set_constraints(model);
    return CORNU_OK;
}

CornuStatus cornu__compiled_follow(CornuModel *model)
{
    const CornuOptimizer *optimizer = model->optimizer;
    CornuVariable       **w = cornu__allocate((size_t)model->base.weight_count, sizeof *w);
    if (!w) return CORNU_ERR_MEMORY;
    const int count = list_trainable(model, w);
    bool      same = count == optimizer->count;
    for (int i = 0; same && i < count; i++) same = w[i] == optimizer->w[i];
    CornuStatus status = CORNU_OK;
    const bool  joined = model->pipeline && optimizer->bucket_bytes != BY_LAYER;
    if (joined) model->optimizer->bucket_bytes = BY_LAYER;   /* moved to a pipeline since */
    if (joined || (!same && !model->trains)) {
        status = rebuild(model, w, count);
    } else if (!same && !model->warned) {
        model->warned = true;
        cornu__log(CORNU_LOG_WARNING, "%s: other weights are trainable than when its first "
                   "training step was made; cornu_compile makes that count", model->base.name);
    }
    if (count == 0 && !status && !model->warned && !(model->own && model->own->own_updates)) {
        model->warned = true;
        cornu__log(CORNU_LOG_WARNING, "%s: no weight is trainable", model->base.name);
    }
    cornu__release(w);
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

void cornu__pipeline_plan_free(CornuPipelinePlan *plan)
{
    if (plan) cornu__release(plan->stage);
    cornu__release(plan);
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

void cornu__own_step_free(CornuOwnStep *own)
{
    if (own && own->free) own->free(own);
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
    cornu__pipeline_plan_free(model->pipeline);
    cornu__release(model->shares);
    cornu__own_step_free(model->own);
    model->pipeline = NULL;
    model->shares = NULL;
    model->own = NULL;
    model->optimizer = NULL;
}

/* ---- Uncompiling ---- */

void cornu__step_free(CornuStep *step)
{
    if (step->pipeline) step->runs->free(step);
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

void cornu__model_free_compiled(CornuModel *model)
{
    cornu__steps_free(model);
    if (model->when_compiled) model->when_compiled->free(model);
    model->when_compiled = NULL;
    model->policy = NULL;
    cornu__model_claim(model, false);
    model->compiled = model->predicts = model->trains = model->warned = false;
}
