/* Compiling: what a model is trained with, and its variables on a device, which they may leave
 * for another one. */
#include <string.h>

#include "metric_internal.h"
#include "model_internal.h"
#include "optimizer_internal.h"
#include "strategy.h"

/* ---- Tracked values ---- */

void cornu__states_free(CornuTracked *tracked)
{
    for (int i = 0; i < tracked->state_count; i++) {
        cornu_variable_free(tracked->states[i]);
        cornu__release(tracked->host[i].data);
    }
    tracked->state_count = 0;
}

/* What stateful layers remember is their device's. */
static void drop_layer_states(CornuModel *model)
{
    for (int i = 0; i < model->layer_count; i++) cornu__layer_drop_states(model->layers[i]);
}

void cornu__uncompile(CornuModel *model)
{
    cornu__steps_free(model);
    for (int i = 0; i < model->tracked_count; i++) {
        cornu_metric_free(model->tracked[i].metric);
        cornu__states_free(&model->tracked[i]);
        model->tracked[i].metric = NULL;
    }
    drop_layer_states(model);
    model->tracked_count = 0;
    cornu_optimizer_free(model->optimizer);
    cornu_loss_free(model->loss);
    model->optimizer = NULL;
    model->loss = NULL;
    model->policy = NULL;
    model->compiled = model->ready = false;
}

/* ---- Compiling ---- */

static void free_given(const CornuCompileConfig *config, CornuOptimizer *optimizer)
{
    for (int i = 0; i < CORNU_MAX_METRICS; i++) cornu_metric_free(config->metrics[i]);
    cornu_optimizer_free(optimizer);
    cornu_loss_free(config->loss);
}

/* Settles what each layer computes in; gradients may be too small for f16. */
static CornuStatus settle_precision(CornuModel *model)
{
    model->policy = model->own_policy ? model->own_policy
                                      : cornu_policy(cornu_device_policy(model->device));
    if (!model->policy) return cornu_error_take();
    for (int i = 0; i < model->layer_count; i++) {
        const bool last = i == model->layer_count - 1;
        if (cornu__layer_settle(model->layers[i], model->policy, last))
            cornu_loss_scale_optimizer(model->optimizer);
    }
    return CORNU_OK;
}

static CornuStatus make_seed(CornuModel *model)
{
    if (model->seed_variable && cornu_variable_device(model->seed_variable) == model->device)
        return CORNU_OK;
    const CornuType type = cornu_scalar(CORNU_I64);
    int64_t         seed = (int64_t)model->seed;
    cornu_variable_free(model->seed_variable);
    model->seed_variable = cornu_variable_create(model->device, type, "seed");
    if (!model->seed_variable) return cornu_error_take();
    return cornu_variable_write(model->seed_variable, cornu_array_from(&seed, type));
}

/* Moves what the built model has to the device; the optimizer begins anew. */
static CornuStatus make_variables(CornuModel *model)
{
    int trainable = 0;
    const int weights = cornu_model_weight_count(model);
    CORNU__TRY(settle_precision(model));
    for (int i = 0; i < model->layer_count; i++)
        CORNU__TRY(cornu_layer_move(model->layers[i], model->device));
    CORNU__TRY(make_seed(model));
    CornuVariable **w = cornu__allocate((size_t)weights, sizeof *w);
    if (!w) return CORNU_ERR_MEMORY;
    for (int i = 0; i < model->layer_count; i++) {
        const CornuLayer *layer = model->layers[i];
        for (int k = 0; k < layer->weight_count && !layer->frozen; k++)
            if (!layer->weights[k]->non_trainable) w[trainable++] = layer->weights[k]->variable;
    }
    CornuStatus status =
        trainable > 0 ? cornu_optimizer_build(model->optimizer, w, trainable) : CORNU_OK;
    cornu__release(w);
    for (int i = 0, k = 0; i < weights && k < trainable && !status; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        if (weight->variable == model->optimizer->w[k])
            cornu_optimizer_constrain(model->optimizer, k++, weight->constraint);
    }
    model->ready = status == CORNU_OK;
    return status;
}

/* The device given, or one of the model's own. NULL on failure. */
static CornuDevice *choose_device(CornuModel *model, CornuDevice *given)
{
    if (!given && !model->own_device) model->own_device = cornu_device_open("cpu");
    return given ? given : model->own_device;
}

CornuStatus cornu_compile_from(const CornuCompileConfig *config)
{
    CornuModel     *model = config->model;
    CornuOptimizer *optimizer = config->optimizer ? config->optimizer : cornu_rmsprop();
    CornuStatus     status = cornu__model_check(model);
    if (!status && model->layer_count == 0)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: the model has no layers", model->name);
    if (!status && (config->steps_per_execution < 0 || config->steps_per_execution > INT32_MAX))
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: .steps_per_execution is %lld, expected 1 to "
                             "%d", model->name, (long long)config->steps_per_execution, INT32_MAX);
    if (status) {
        free_given(config, optimizer);
        return status;
    }
    cornu__uncompile(model);
    model->optimizer = optimizer;
    model->loss = config->loss;
    model->tracked_count = 1;
    for (int i = 0; i < CORNU_MAX_METRICS && config->metrics[i]; i++)
        model->tracked[model->tracked_count++].metric = config->metrics[i];
    for (int i = 1; i < model->tracked_count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(cornu_model_metric_name(model, i), cornu_model_metric_name(model, k)))
                return cornu__fail(CORNU_ERR_ARGUMENT, "%s: two metrics have the name \"%s\"",
                                   model->name, cornu_model_metric_name(model, i));
    const CornuStrategy *strategy = config->device ? NULL : cornu_strategy_in_scope();
    model->device = choose_device(model, strategy ? cornu_strategy_device(strategy)
                                                  : config->device);
    if (!model->device) return cornu_error_take();
    model->steps_per_execution = config->steps_per_execution ? config->steps_per_execution
                               : strategy ? cornu_strategy_iterations_per_loop(strategy) : 1;
    model->compiled = true;
    return model->built ? make_variables(model) : CORNU_OK;
}

static CornuStatus check_compiled(const CornuModel *model)
{
    return model->compiled ? CORNU_OK
                           : cornu__fail(CORNU_ERR_ARGUMENT, "%s: not compiled; cornu_compile "
                                         "comes first", model->name);
}

CornuStatus cornu__model_ready(CornuModel *model, CornuType x)
{
    CORNU__TRY(cornu__model_check(model));
    CORNU__TRY(check_compiled(model));
    if (x.shape.rank < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the data are a scalar", model->name);
    CornuShape row = { .rank = x.shape.rank - 1 };
    for (int i = 0; i < row.rank; i++) row.extent[i] = x.shape.extent[i + 1];
    CORNU__TRY(cornu_model_build(model, row));
    return model->ready ? CORNU_OK : make_variables(model);
}

/* ---- Moving ---- */

/* Where variable i is kept, of the weights and, behind them, the seed. */
static CornuVariable **variable_at(CornuModel *model, int i)
{
    return i < cornu_model_weight_count(model) ? &cornu_model_weight(model, i)->variable
                                               : &model->seed_variable;
}

/* fresh[i]: a copy of variable i on the device; w: those that the optimizer trains, as it has
 * them. */
static CornuStatus copy_variables(CornuModel *model, CornuDevice *device, CornuVariable **fresh,
                                  CornuVariable **w)
{
    const CornuOptimizer *optimizer = model->optimizer;
    const int             weights = cornu_model_weight_count(model);
    for (int i = 0; i <= weights; i++) {
        const CornuVariable *old = *variable_at(model, i);
        fresh[i] = cornu_variable_create(device, cornu_variable_type(old),
                                         cornu_variable_name(old),
                                         .use = i < weights ? CORNU_USE_WEIGHTS : CORNU_USE_OTHER);
        if (!fresh[i]) return cornu_error_take();
        CORNU__TRY(cornu_variable_copy(fresh[i], old));
        for (int k = 0; k < optimizer->count; k++)
            if (optimizer->w[k] == old) w[k] = fresh[i];
    }
    return CORNU_OK;
}

/* The optimizer's too: all of them or none. */
static CornuStatus move_variables(CornuModel *model, CornuDevice *device)
{
    const int       count = cornu_model_weight_count(model) + 1;
    CornuVariable **fresh = cornu__allocate((size_t)(count + model->optimizer->count),
                                            sizeof *fresh);
    if (!fresh) return CORNU_ERR_MEMORY;
    CornuStatus status = copy_variables(model, device, fresh, fresh + count);
    if (!status) status = cornu__optimizer_move(model->optimizer, fresh + count);
    for (int i = 0; i < count; i++) {
        CornuVariable **variable = variable_at(model, i);
        cornu_variable_free(status ? fresh[i] : *variable);
        if (!status) *variable = fresh[i];
    }
    cornu__release(fresh);
    return status;
}

CornuStatus cornu_model_move(CornuModel *model, CornuDevice *device)
{
    CORNU__TRY(cornu__model_check(model));
    CORNU__TRY(check_compiled(model));
    if (!(device = choose_device(model, device))) return cornu_error_take();
    if (device == model->device) return CORNU_OK;
    cornu__steps_free(model);
    if (model->ready) CORNU__TRY(move_variables(model, device));
    for (int i = 0; i < model->tracked_count; i++) cornu__states_free(&model->tracked[i]);
    drop_layer_states(model);
    model->device = device;
    return model->ready ? settle_precision(model) : CORNU_OK;
}

/* ---- Reading what was accumulated ---- */

CornuStatus cornu__metrics_read(CornuModel *model, double *values)
{
    for (int i = 0; i < model->tracked_count; i++) {
        const CornuTracked *tracked = &model->tracked[i];
        values[i] = 0.0;
        if (tracked->state_count == 0) continue;   /* nothing has run yet */
        for (int s = 0; s < tracked->state_count; s++)
            CORNU__TRY(cornu_variable_read(tracked->states[s], tracked->host[s]));
        values[i] = tracked->metric ? tracked->metric->result(tracked->metric, tracked->host)
                                    : cornu__mean_result(tracked->host);
    }
    return CORNU_OK;
}

CornuStatus cornu_model_reset_metrics(CornuModel *model)
{
    CORNU__TRY(cornu__model_check(model));
    for (int i = 0; i < model->tracked_count; i++) {
        const CornuTracked *tracked = &model->tracked[i];
        for (int s = 0; s < tracked->state_count; s++) {
            memset(tracked->host[s].data, 0, cornu_type_bytes(tracked->host[s].type));
            CORNU__TRY(cornu_variable_write(tracked->states[s], tracked->host[s]));
        }
    }
    return CORNU_OK;
}
