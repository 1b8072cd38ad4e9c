/* Compiling a model with optimizer, losses and metrics; moving it to another device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/mesh/layout_map_internal.h"
#include "../metrics/metric_internal.h"
#include "model_internal.h"
#include "../optimizers/optimizer_internal.h"
#include "pipeline_plan_internal.h"

/* ---- Compiling ---- */

static void free_given(const CornuCompileConfig *config, CornuOptimizer *optimizer)
{
    for (int i = 0; i < CORNU_MAX_METRICS; i++) {
        cornu_metric_free(config->metrics[i]);
        cornu_metric_free(config->weighted_metrics[i]);
    }
    for (int i = 0; i < CORNU_MAX_LOSSES; i++) {
        for (int k = 0; k < CORNU_MAX_METRICS; k++) {
            cornu_metric_free(config->output_metrics[i][k]);
            cornu_metric_free(config->output_weighted_metrics[i][k]);
        }
        cornu_loss_free(config->losses[i]);
        cornu_loss_free(config->outputs[i].loss);
        for (int k = 0; k < CORNU_MAX_METRICS; k++) {
            cornu_metric_free(config->outputs[i].metrics[k]);
            cornu_metric_free(config->outputs[i].weighted_metrics[k]);
        }
    }
    for (int i = 0; i < CORNU_MAX_OPTIMIZERS; i++)
        cornu_optimizer_free(config->optimizers[i].optimizer);
    cornu__own_step_free(config->step);
    cornu_optimizer_free(optimizer);
    cornu_loss_free(config->loss);
}

/* Whether the object was taken before; marks it as taken. Objects that the caller frees (no .free)
 * may be shared. */
static bool was_taken(bool is_freed, bool *taken, const char *what, const char *name,
                      CornuStatus *status)
{
    const bool before = is_freed && *taken;
    if (is_freed) *taken = true;
    if (before && !*status)
        *status = cornu__fail(CORNU_ERR_ARGUMENT, "cornu_compile: the %s %s is already taken by "
                              "another model or argument; expected one for each", what, name);
    return before;
}

static CornuStatus take_loss(CornuLoss **loss, CornuStatus status)
{
    if (*loss && was_taken((*loss)->free, &(*loss)->taken, "loss", (*loss)->name, &status))
        *loss = NULL;
    return status;
}

static CornuStatus take_metrics(CornuMetric *metrics[CORNU_MAX_METRICS], CornuStatus status)
{
    for (int i = 0; i < CORNU_MAX_METRICS; i++)
        if (metrics[i] && was_taken(metrics[i]->free, &metrics[i]->taken, "metric",
                                    metrics[i]->name, &status))
            metrics[i] = NULL;
    return status;
}

static CornuStatus take_optimizer(CornuOptimizer **optimizer, CornuStatus status)
{
    if (*optimizer && was_taken(true, &(*optimizer)->taken, "optimizer", (*optimizer)->name,
                                &status))
        *optimizer = NULL;
    return status;
}

/* Takes all given objects. Those taken before are not freed by this call, and are removed from
 * `given`. */
static CornuStatus take_given(CornuCompileConfig *given)
{
    CornuStatus status = take_loss(&given->loss, CORNU_OK);
    status = take_metrics(given->metrics, status);
    status = take_metrics(given->weighted_metrics, status);
    for (int i = 0; i < CORNU_MAX_LOSSES; i++) {
        status = take_loss(&given->losses[i], status);
        status = take_metrics(given->output_metrics[i], status);
        status = take_metrics(given->output_weighted_metrics[i], status);
        status = take_loss(&given->outputs[i].loss, status);
        status = take_metrics(given->outputs[i].metrics, status);
        status = take_metrics(given->outputs[i].weighted_metrics, status);
    }
    status = take_optimizer(&given->optimizer, status);
    for (int i = 0; i < CORNU_MAX_OPTIMIZERS; i++)
        status = take_optimizer(&given->optimizers[i].optimizer, status);
    CornuOwnStep *step = given->step;
    if (step && was_taken(step->free, &step->taken, "step", "of its own", &status))
        given->step = NULL;
    return status;
}

/* ---- Several optimizers ---- */

static bool has_layer(const CornuLayer *layer, const CornuLayer *inner)
{
    bool has = layer == inner;
    for (int i = 0; i < layer->inner_count && !has; i++) has = has_layer(layer->inner[i], inner);
    return has;
}

static CornuStatus check_layers(const CornuCompileConfig *given, int n)
{
    const CornuModel          *model = given->model;
    const CornuLayerOptimizer *share = &given->optimizers[n];
    if (!share->layers[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .optimizers[%d], %s, has no layers",
                           model->base.name, n, share->optimizer->name);
    for (int i = 0; i < CORNU_MAX_OPTIMIZER_LAYERS && share->layers[i]; i++) {
        if (!has_layer(&model->base, share->layers[i]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .optimizers[%d].layers[%d], %s, is not a "
                               "layer of the model", model->base.name, n, i,
                               cornu_layer_name(share->layers[i]));
        for (int k = 0; k < n * CORNU_MAX_OPTIMIZER_LAYERS; k++) {
            const CornuLayer *other = given->optimizers[k / CORNU_MAX_OPTIMIZER_LAYERS]
                                          .layers[k % CORNU_MAX_OPTIMIZER_LAYERS];
            if (other && (has_layer(other, share->layers[i]) || has_layer(share->layers[i], other)))
                return cornu__fail(CORNU_ERR_ARGUMENT, "%s: two of .optimizers train %s, expected "
                                   "one", model->base.name, cornu_layer_name(share->layers[i]));
        }
    }
    return CORNU_OK;
}

/* One that is made of those of .optimizers. */
static CornuOptimizer *several(CornuCompileConfig *given, CornuStatus *status)
{
    CornuOptimizer *all[CORNU_MAX_OPTIMIZERS];
    const char     *names[CORNU_MAX_OPTIMIZERS];
    int             count = 0;
    if (given->optimizer)
        *status = cornu__fail(CORNU_ERR_ARGUMENT, "cornu_compile: both .optimizer and .optimizers "
                              "are given, expected one");
    if (!*status) *status = cornu__model_check(given->model);
    for (; count < CORNU_MAX_OPTIMIZERS && given->optimizers[count].optimizer && !*status; count++)
        if (!(*status = check_layers(given, count))) {
            all[count] = given->optimizers[count].optimizer;
            names[count] = cornu_layer_name(given->optimizers[count].layers[0]);
        }
    if (*status) return given->optimizer;
    for (int i = 0; i < count; i++) {
        all[i]->taken = false;
        given->optimizers[i].optimizer = NULL;
    }
    CornuOptimizer *optimizer = cornu__multi_optimizer_of(
        all, names, count, cornu__model_optimizer_of, given->model);
    if (!optimizer) *status = cornu_error_take();
    return optimizer;
}

/* Remembers whose layers are whose: `all` is made of these optimizers. */
static CornuStatus set_shares(CornuModel *model, const CornuCompileConfig *config,
                              const CornuOptimizer *all)
{
    if (!config->optimizers[0].layers[0]) return CORNU_OK;
    model->shares = cornu__allocate(CORNU_MAX_OPTIMIZERS, sizeof *model->shares);
    if (!model->shares) return CORNU_ERR_MEMORY;
    memcpy(model->shares, config->optimizers, sizeof config->optimizers);
    for (int i = 0; i < CORNU_MAX_OPTIMIZERS && cornu__optimizer_inner(all, i); i++)
        model->shares[i].optimizer = cornu__optimizer_inner(all, i);
    return CORNU_OK;
}

/* ---- The arguments of each output ---- */

/* The losses, weights and metrics of the model's outputs, in their order. */
typedef struct {
    CornuLoss          *loss[CORNU_MAX_LOSSES];
    double              weight[CORNU_MAX_LOSSES];
    CornuMetric *const *metrics[CORNU_MAX_LOSSES];
    CornuMetric *const *weighted_metrics[CORNU_MAX_LOSSES];
} Outputs;

static int given_losses(const CornuCompileConfig *config)
{
    int count = 0;
    while (count < CORNU_MAX_LOSSES && config->losses[count]) count++;
    return count;
}

/* Checks the arguments in the order of the outputs. */
static CornuStatus check_outputs(const CornuModel *model, const CornuCompileConfig *config)
{
    const char *name = model->base.name;
    const int   outputs = model->output_count, losses = given_losses(config);
    bool        by_output = false;
    for (int i = 0; i < CORNU_MAX_LOSSES; i++) {
        const bool metrics = config->output_metrics[i][0] || config->output_weighted_metrics[i][0];
        if ((metrics || config->loss_weights[i] != 0.0) && i >= outputs)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s has an entry %d, but the model has %d "
                               "output%s", name, metrics ? "output_metrics" : "loss_weights", i,
                               outputs, outputs > 1 ? "s" : "");
        by_output |= metrics;
        if (!isfinite(config->loss_weights[i]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .loss_weights[%d] is %g, expected a finite "
                               "number", name, i, config->loss_weights[i]);
    }
    if (config->loss && losses)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .loss and .losses are given, expected one",
                           name);
    if (losses && losses != outputs)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .losses are %d, expected one for each of %d "
                           "outputs, CORNU_NO_LOSS for one without", name, losses, outputs);
    if (outputs > 1 && (config->metrics[0] || config->weighted_metrics[0]))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: has %d outputs; .metrics is for one, "
                           ".output_metrics for several", name, outputs);
    if (outputs == 1 && by_output)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: has one output; .output_metrics is for several,"
                           " .metrics for one", name);
    return CORNU_OK;
}

static CornuStatus order_outputs(const CornuModel *model, const CornuCompileConfig *config,
                                 Outputs *to)
{
    const bool several = model->output_count > 1;
    CORNU__TRY(check_outputs(model, config));
    for (int i = 0; i < model->output_count; i++) {
        to->loss[i] = config->loss ? config->loss : config->losses[i];
        to->weight[i] = config->loss_weights[i];
        to->metrics[i] = several ? config->output_metrics[i] : config->metrics;
        to->weighted_metrics[i] = several ? config->output_weighted_metrics[i]
                                          : config->weighted_metrics;
    }
    return CORNU_OK;
}

/* Those given by name: an output that is not named has no loss and no metrics. */
static CornuStatus find_outputs(const CornuModel *model, const CornuCompileConfig *config,
                                Outputs *to)
{
    static CornuMetric *const none[CORNU_MAX_METRICS] = { NULL };
    const char *name = model->base.name;
    bool        others = config->loss || config->losses[0] || config->metrics[0] ||
                  config->weighted_metrics[0];
    for (int i = 0; i < CORNU_MAX_LOSSES; i++) {
        others |= config->loss_weights[i] != 0.0 || config->output_metrics[i][0] ||
                  config->output_weighted_metrics[i][0];
        to->metrics[i] = to->weighted_metrics[i] = none;
    }
    if (others)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .outputs is given and losses, weights or "
                           "metrics beside it, expected those of each output in .outputs", name);
    for (int k = 0; k < CORNU_MAX_LOSSES && config->outputs[k].name; k++) {
        const CornuOutputConfig *of = &config->outputs[k];
        const int                i = cornu__find_output(model, of->name);
        if (i < 0) return cornu_error_take();
        if (to->metrics[i] != none)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .outputs has \"%s\" twice", name, of->name);
        if (!isfinite(of->loss_weight))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .loss_weight of \"%s\" is %g, expected a "
                               "finite number", name, of->name, of->loss_weight);
        to->loss[i] = of->loss;
        to->weight[i] = of->loss_weight;
        to->metrics[i] = of->metrics;
        to->weighted_metrics[i] = of->weighted_metrics;
    }
    return CORNU_OK;
}

CornuStatus cornu__check_output_count(const CornuModel *model)
{
    if (model->output_count <= CORNU_MAX_LOSSES) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has %d outputs, expected at most %d of a model "
                       "that is compiled", model->base.name, model->output_count,
                       CORNU_MAX_LOSSES);
}

static CornuStatus check_settings(const CornuModel *model, const CornuCompileConfig *config)
{
    CORNU__TRY(cornu__model_check_layers(model));
    CORNU__TRY(cornu__check_output_count(model));
    if (config->steps_per_execution < 0 || config->steps_per_execution > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .steps_per_execution is %lld, expected 1 to "
                           "%d", model->base.name, (long long)config->steps_per_execution,
                           INT32_MAX);
    const CornuOwnStep *own = config->step;
    if (own && own->own_data &&
        (own->xs < 1 || own->xs > CORNU_MAX_MODEL_TENSORS || own->ys < 0 ||
         own->ys > CORNU_MAX_MODEL_TENSORS || own->test_xs < 0 ||
         own->test_xs > CORNU_MAX_MODEL_TENSORS || own->test_ys < 0 ||
         own->test_ys > CORNU_MAX_MODEL_TENSORS))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the step's .xs are %d and .ys %d, .test_xs "
                           "%d and .test_ys %d, expected 1 to %d, and others 0 to %d",
                           model->base.name, own->xs, own->ys, own->test_xs, own->test_ys,
                           CORNU_MAX_MODEL_TENSORS, CORNU_MAX_MODEL_TENSORS);
    return CORNU_OK;
}

CornuStatus cornu__model_set_plan(CornuModel *model, const CornuPipelinePlan *plan)
{
    CornuPipelinePlan *copy = plan ? cornu__allocate(1, sizeof *copy) : NULL;
    if (plan && !copy) return CORNU_ERR_MEMORY;
    if (copy) *copy = *plan;
    if (copy || model->pipeline) cornu__steps_free(model);
    cornu__pipeline_plan_free(model->pipeline);
    model->pipeline = copy;
    return CORNU_OK;
}

/* Compiles it, which was uncompiled before. Takes all arguments, also on failure. */
static CornuStatus make_compiled(CornuModel *model, const CornuCompileConfig *config,
                                 const Outputs *outputs, CornuDevice *device,
                                 const CornuStrategy *strategy)
{
    model->own = config->step;
    model->own_logs = 0;
    model->when_compiled = &cornu__compiled;
    CORNU__TRY(set_shares(model, config, model->optimizer));
    model->valid_rows = config->step && config->step->valid_rows;
    for (int i = 0; i < model->output_count; i++) {
        model->losses[i] = outputs->loss[i] == CORNU_NO_LOSS ? NULL : outputs->loss[i];
        model->loss_weights[i] = cornu__number(outputs->weight[i], 1.0);
        model->valid_rows |= model->losses[i] && model->losses[i]->valid_rows;
    }
    CORNU__TRY(cornu__track_all(model, outputs->metrics, outputs->weighted_metrics,
                                config->gradient_norm));
    cornu__device_keep(&model->device, device);
    cornu__layer_free_states_elsewhere(&model->base, device);
    model->steps_per_execution = config->steps_per_execution ? config->steps_per_execution
                               : strategy ? cornu_strategy_iterations_per_loop(strategy) : 1;
    CORNU__TRY(cornu__model_set_plan(model, cornu__strategy_plan(strategy)));
    model->debug_nans = config->debug_nans;
    model->no_auto_scale_loss = config->no_auto_scale_loss;
    CORNU__TRY(cornu__model_list_weights(model));   /* layers may have more since */
    model->compiled = true;
    return model->base.built ? cornu__model_make_variables(model) : CORNU_OK;
}

/* What is refused is refused before the model is changed, which stays compiled as it was. A later
 * failure leaves it uncompiled; but where a device had no room the model is compiled, and its next
 * step asks for it again. Takes all arguments, also on failure. */
static CornuStatus compile(const CornuCompileConfig *config, CornuOptimizer *optimizer)
{
    CornuModel          *model = config->model;
    Outputs              outputs = { 0 };
    const CornuStrategy *strategy = config->device ? NULL : cornu_strategy_in_scope();
    CornuDevice         *device = NULL;
    CornuStatus          status = check_settings(model, config);
    if (!status)
        status = config->outputs[0].name ? find_outputs(model, config, &outputs)
                                         : order_outputs(model, config, &outputs);
    if (!status) {
        device = cornu__model_choose_device(model, strategy ? cornu_strategy_device(strategy)
                                                            : config->device);
        status = device ? cornu__model_check_device(model, device) : cornu_error_take();
    }
    if (status) {
        free_given(config, optimizer);
        return status;
    }
    optimizer->taken = true;
    cornu__model_free_compiled(model);
    model->optimizer = optimizer;
    status = make_compiled(model, config, &outputs, device, strategy);
    const bool waits = status == CORNU_ERR_MEMORY && model->compiled;
    if (waits) model->when_compiled->advise(model, NULL, NULL);
    else if (status) cornu__model_free_compiled(model);
    return status;
}

CornuStatus cornu_compile_from(const CornuCompileConfig *config)
{
    CornuCompileConfig given = *config;
    CornuModel        *model = config->model;
    CornuStatus        status = take_given(&given);
    CornuOptimizer    *optimizer = given.optimizers[0].optimizer ? several(&given, &status)
                              : given.optimizer ? given.optimizer : cornu_rmsprop();
    if (!status && given.accumulate_steps && optimizer)
        status = cornu_optimizer_set_accumulation(optimizer, given.accumulate_steps);
    if (!status) status = cornu__model_enter(model, "cornu_compile");
    if (status) {
        free_given(&given, optimizer);
        return status;
    }
    status = compile(&given, optimizer);
    cornu__model_leave(model);
    return status;
}

/* ---- Moving ---- */

/* Variable i of the weights, followed by the seed. */
static CornuVariable **variable_at(CornuModel *model, int i)
{
    return i < cornu_model_weight_count(model) ? &cornu_model_weight(model, i)->variable
                                               : &model->seed_variable;
}

/* Sets fresh[i] to a copy of variable i on the device, and w to those that the optimizer trains, in
 * its order. */
static CornuStatus copy_variables(CornuModel *model, CornuDevice *device, CornuVariable **fresh,
                                  CornuVariable **w)
{
    const CornuOptimizer *optimizer = model->optimizer;
    const int             weights = cornu_model_weight_count(model);
    for (int i = 0; i <= weights; i++) {
        const CornuVariable *old = *variable_at(model, i);
        CornuLayout          layout;
        CORNU__TRY(cornu__device_layout(device, cornu_variable_name(old), cornu_variable_type(old),
                                        cornu_variable_has_sparse_gradient(old) ||
                                            cornu_variable_spread(old) != CORNU_SHARED,
                                        i < weights ? cornu_model_weight(model, i)->blocks : 0,
                                        &layout));
        fresh[i] = cornu_variable_create(
            device, cornu_variable_type(old), cornu_variable_name(old),
            .use = i < weights ? CORNU_USE_WEIGHTS : CORNU_USE_OTHER,
            .sparse_gradient = cornu_variable_has_sparse_gradient(old),
            .spread = cornu_variable_spread(old), .precision = cornu_variable_precision(old),
            .layout = &layout);
        if (!fresh[i]) return cornu_error_take();
        CORNU__TRY(cornu_variable_copy(fresh[i], old));
        for (int k = 0; k < optimizer->count; k++)
            if (optimizer->w[k] == old) w[k] = fresh[i];
    }
    return CORNU_OK;
}

/* Moves all variables, the optimizer's included, or none. */
static CornuStatus move_variables(CornuModel *model, CornuDevice *device)
{
    const int       count = cornu_model_weight_count(model) + 1;
    CornuVariable **fresh = cornu__allocate((size_t)(count + model->optimizer->count),
                                            sizeof *fresh);
    if (!fresh) return CORNU_ERR_MEMORY;
    CornuStatus status = copy_variables(model, device, fresh, fresh + count);
    if (!status) status = cornu__model_check_layouts(model, device);
    if (!status) status = cornu__optimizer_move(model->optimizer, device, fresh + count);
    for (int i = 0; i < count; i++) {
        CornuVariable **variable = variable_at(model, i);
        cornu_variable_free(status ? fresh[i] : *variable);
        if (!status) *variable = fresh[i];
    }
    cornu__release(fresh);
    return status;
}

static CornuStatus check_unshared(const CornuModel *model)
{
    for (int i = 0; i < model->base.inner_count && model->ready; i++)
        if (model->base.inner[i]->compiled > 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: cannot move, as another model is compiled "
                               "with its layer %s", model->base.name,
                               cornu_layer_name(model->base.inner[i]));
    return CORNU_OK;
}

static CornuStatus move(CornuModel *model, CornuDevice *device)
{
    CORNU__TRY(cornu__model_check(model));
    CORNU__TRY(cornu__model_check_compiled(model));
    if (!(device = cornu__model_choose_device(model, device))) return cornu_error_take();
    if (device == model->device) return CORNU_OK;
    CORNU__TRY(check_unshared(model));
    cornu__steps_free(model);
    if (model->ready) CORNU__TRY(move_variables(model, device));
    for (int i = 0; i < model->tracked_count; i++) cornu__states_free(&model->tracked[i]);
    cornu__layer_free_states(&model->base);
    cornu__device_keep(&model->device, device);
    cornu__device_keep(&model->placed, device);
    return model->ready ? cornu__model_apply_policy(model) : CORNU_OK;
}

CornuStatus cornu_model_move(CornuModel *model, CornuDevice *device)
{
    CORNU__WITHIN(model, "cornu_model_move", move(model, device));
}

CornuModel *cornu_keras_to_tpu_model(CornuModel *model, CornuStrategy *strategy)
{
    if (!strategy)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "keras_to_tpu_model: the strategy is NULL");
    if (cornu__model_enter(model, "cornu_keras_to_tpu_model")) return cornu__null();
    CornuStatus status = cornu_model_move(model, cornu_strategy_device(strategy));
    if (!status) status = cornu__model_set_plan(model, cornu__strategy_plan(strategy));
    if (!status) model->steps_per_execution = cornu_strategy_iterations_per_loop(strategy);
    cornu__model_leave(model);
    return status ? cornu__null() : model;
}

const CornuLoss *cornu_model_loss(const CornuModel *model, int output)
{
    CORNU__NEED_OR(model, NULL);
    CORNU__NEED_INDEX(output, model->output_count, NULL);
    const CornuLoss *loss = model->losses[output];
    return loss && loss != &cornu_no_loss ? loss : NULL;
}
