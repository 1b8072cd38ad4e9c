#include "model_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static _Thread_local uint64_t random_seed;
static _Thread_local int      models_made;   /* without a name of their own */

void     cornu_set_random_seed(uint64_t seed) { random_seed = seed; }
uint64_t cornu_model_seed(const CornuModel *model) { return model->seed; }

/* ---- Making ---- */

static CornuStatus read_input_shape(const int64_t *extents, CornuShape *shape)
{
    *shape = (CornuShape){ 0 };
    if (!extents[0]) return CORNU_OK;
    *shape = cornu_shape(CORNU_NONE);
    for (int i = 0; i < CORNU_MAX_RANK && extents[i]; i++) {
        if (i == CORNU_MAX_RANK - 1 || extents[i] < 1 || extents[i] > INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "sequential: .input_shape[%d] is %lld; expected "
                               "at most %d extents from 1 to %d", i, (long long)extents[i],
                               CORNU_MAX_RANK - 1, INT32_MAX);
        shape->extent[shape->rank++] = extents[i];
    }
    return CORNU_OK;
}

CornuModel *cornu_sequential_from(const CornuSequentialConfig *config)
{
    CornuShape   input;
    const double scale = cornu__number(config->input_scale, 1.0);
    const CornuPolicy *policy = config->policy ? cornu_policy(config->policy)
                                               : cornu_dtype_policy();
    if (cornu_error_pending() || read_input_shape(config->input_shape, &input))
        return cornu__null();
    if (config->batch_size < 0 || config->batch_size > INT32_MAX)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "sequential: .batch_size is %lld, expected 1 "
                                "to %d", (long long)config->batch_size, INT32_MAX);
    if (!isfinite(scale))
        return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                "sequential: .input_scale is %g, expected a finite number", scale);
    char automatic[32] = "sequential";
    if (!config->name && models_made > 0)
        snprintf(automatic, sizeof automatic, "sequential_%d", models_made);
    CornuModel *model = cornu__allocate(1, sizeof *model);
    if (!model || !(model->name = cornu__copy_text(config->name ? config->name : automatic))) {
        cornu__release(model);
        return cornu__null();
    }
    if (!config->name) models_made++;
    model->seed = random_seed;
    model->input = input;
    model->batch_size = config->batch_size;
    model->input_scale = scale;
    model->own_policy = policy;
    return model;
}

void cornu_model_free(CornuModel *model)
{
    if (!model) return;
    cornu__uncompile(model);
    cornu_variable_free(model->seed_variable);
    for (int i = 0; i < model->layer_count; i++) cornu_layer_free(model->layers[i]);
    cornu__release(model->layers);
    cornu_device_close(model->own_device);
    cornu__release(model->name);
    cornu__release(model);
}

/* ---- Layers ---- */

static CornuStatus check_name(const CornuModel *model, const CornuLayer *layer)
{
    for (int i = 0; i < model->layer_count; i++)
        if (!strcmp(model->layers[i]->name, layer->name))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: two layers have the name \"%s\"",
                               model->name, layer->name);
    return CORNU_OK;
}

static CornuStatus build_layer(CornuModel *model, CornuLayer *layer, CornuShape input)
{
    if (layer->built) return CORNU_OK;
    layer->seed = model->seed;
    layer->generator = model->next_generator;
    CORNU__TRY(cornu_layer_build(layer, input));
    model->next_generator += cornu__layer_generators(layer);
    return CORNU_OK;
}

static CornuStatus append(CornuModel *model, CornuLayer *layer)
{
    if (model->compiled)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a layer is added after compiling",
                           model->name);
    CORNU__TRY(cornu__layer_set_name(layer, model->layers, model->layer_count));
    CORNU__TRY(check_name(model, layer));
    if (cornu_layer_outputs(layer) > 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: gives %d tensors, but what follows in the "
                           "Sequential model %s expects 1; cornu_layer_call_many gives all",
                           cornu_layer_name(layer), cornu_layer_outputs(layer), model->name);
    if (model->input.rank > 0) {
        CORNU__TRY(build_layer(model, layer, cornu_model_output_shape(model)));
        model->built = true;
    }
    CORNU__TRY(cornu__reserve(&model->layers, &model->layer_space, model->layer_count, 1,
                              sizeof *model->layers));
    model->layers[model->layer_count++] = layer;
    return CORNU_OK;
}

CornuStatus cornu_model_add(CornuModel *model, CornuLayer *layer)
{
    CornuStatus status = !model || !layer
        ? cornu__fail(CORNU_ERR_ARGUMENT, "cornu_model_add: the %s is NULL",
                      model ? "layer" : "model")
        : cornu__model_check(model);
    if (!status) {
        status = append(model, layer);
        if (!status) return CORNU_OK;
        /* Nobody checks each of ten lines: the model remembers, and cannot be used. */
        model->failed = status;
        snprintf(model->failure, sizeof model->failure, "%s", cornu_error_message());
    }
    cornu_layer_free(layer);
    return status;
}

CornuStatus cornu_model_build(CornuModel *model, CornuShape input)
{
    CORNU__TRY(cornu__model_check(model));
    if (model->built) return CORNU_OK;
    if (model->layer_count == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the model has no layers", model->name);
    if (input.rank + 1 > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the input has %d axes without the batch, expected "
                           "at most %d", model->name, input.rank, CORNU_MAX_RANK - 1);
    CornuShape shape = { .rank = input.rank + 1, .extent = { CORNU_NONE } };
    for (int i = 0; i < input.rank; i++) shape.extent[i + 1] = input.extent[i];
    for (int i = 0; i < model->layer_count; i++)
        CORNU__TRY(build_layer(model, model->layers[i],
                               i == 0 ? shape : model->layers[i - 1]->output));
    model->input = shape;
    model->built = true;
    return CORNU_OK;
}

CornuStatus cornu__model_check(const CornuModel *model)
{
    if (cornu_error_pending()) return cornu_error_status();
    if (!model) return cornu__fail(CORNU_ERR_ARGUMENT, "the model is NULL");
    return model->failed ? cornu__fail(model->failed, "%s", model->failure) : CORNU_OK;
}

/* ---- Asking ---- */

const char *cornu_model_name(const CornuModel *model) { return model->name; }
int         cornu_model_layer_count(const CornuModel *model) { return model->layer_count; }
CornuLayer *cornu_model_layer(const CornuModel *model, int i) { return model->layers[i]; }
bool        cornu_model_built(const CornuModel *model) { return model->built; }
CornuShape  cornu_model_input_shape(const CornuModel *model) { return model->input; }
double      cornu_model_input_scale(const CornuModel *model) { return model->input_scale; }

const CornuPolicy *cornu_model_policy(const CornuModel *model)
{
    return model->policy ? model->policy : model->own_policy;
}

int64_t cornu_model_batch_size(const CornuModel *model)
{
    if (model->batch_size) return model->batch_size;
    for (const CornuStep *step = model->steps; step; step = step->next)
        if (step->stateful) return step->x_type.shape.extent[0];
    return CORNU_NONE;
}

CornuShape cornu_model_output_shape(const CornuModel *model)
{
    return model->layer_count ? model->layers[model->layer_count - 1]->output : model->input;
}

int cornu_model_weight_count(const CornuModel *model)
{
    int count = 0;
    for (int i = 0; i < model->layer_count; i++) count += model->layers[i]->weight_count;
    return count;
}

CornuWeight *cornu_model_weight(const CornuModel *model, int i)
{
    int layer = 0;
    while (i >= model->layers[layer]->weight_count) i -= model->layers[layer++]->weight_count;
    return model->layers[layer]->weights[i];
}

CornuStatus cornu_model_reset_states(CornuModel *model)
{
    CORNU__TRY(cornu__model_check(model));
    for (int i = 0; i < model->layer_count; i++)
        CORNU__TRY(cornu_layer_reset_states(model->layers[i]));
    return CORNU_OK;
}

int64_t cornu_model_parameters(const CornuModel *model)
{
    int64_t count = 0;
    for (int i = 0; i < model->layer_count; i++)
        count += cornu_layer_parameters(model->layers[i]);
    return count;
}

int64_t cornu_model_trainable_parameters(const CornuModel *model)
{
    int64_t count = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const CornuLayer *layer = model->layers[i];
        for (int k = 0; k < layer->weight_count && !layer->frozen; k++)
            if (!layer->weights[k]->non_trainable)
                count += cornu_type_count(layer->weights[k]->type);
    }
    return count;
}

int cornu_model_optimizer_variable_count(const CornuModel *model)
{
    return model->optimizer ? cornu_optimizer_variable_count(model->optimizer) : 0;
}

CornuVariable *cornu_model_optimizer_variable(const CornuModel *model, int i)
{
    return cornu_optimizer_variable(model->optimizer, i);
}

int64_t cornu_model_optimizer_parameters(const CornuModel *model)
{
    int64_t count = 0;
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++)
        count += cornu_type_count(cornu_variable_type(cornu_model_optimizer_variable(model, i)));
    return count;
}

bool            cornu_model_compiled(const CornuModel *model) { return model->compiled; }
CornuDevice    *cornu_model_device(const CornuModel *model) { return model->device; }
CornuOptimizer *cornu_model_optimizer(const CornuModel *model) { return model->optimizer; }
int64_t cornu_model_steps_per_execution(const CornuModel *model)
{
    return model->steps_per_execution;
}
int             cornu_model_metric_count(const CornuModel *model) { return model->tracked_count; }

const char *cornu_model_metric_name(const CornuModel *model, int i)
{
    return model->tracked[i].metric ? model->tracked[i].metric->name : "loss";
}

const CornuStatistics *cornu_model_statistics(const CornuModel *model)
{
    for (const CornuStep *step = model->steps; step; step = step->next)
        if (step->mode == CORNU_STEP_TRAIN) return cornu_graph_statistics(step->graph);
    return NULL;
}

void cornu_model_stop_training(CornuModel *model) { model->stop_training = true; }
