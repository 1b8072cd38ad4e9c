#include "host_stage_internal.h"
#include "../config/policy_internal.h"

#include "../optimizers/optimizer_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static _Thread_local CornuMaking making;

CornuMaking *cornu__making(void) { return &making; }

void cornu_set_random_seed(uint64_t seed) { making.seed = seed; }

uint64_t cornu_model_seed(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->seed;
}

/* ---- Making ---- */

static const CornuHostStage stage;   /* of every model, below */

CornuModel *cornu__model_create(const CornuLayerClass *kind, const char *name, const char *policy,
                                int *made)
{
    char label[48], automatic[64];
    if (cornu__refused()) return NULL;
    const CornuPolicy *rules = policy ? cornu_policy(policy) : cornu_dtype_policy();
    if (cornu_error_pending()) return NULL;
    if (cornu__policy_of_models(rules)) return cornu__null();
    cornu__snake_case(kind->class_name, label, sizeof label);
    snprintf(automatic, sizeof automatic, *made ? "%s_%d" : "%s", label, *made);
    CornuLayer *layer = cornu_layer_create(kind, name ? name : automatic, NULL);
    if (!layer) return NULL;
    if (!name) ++*made;
    CornuModel *model = (CornuModel *)layer;
    layer->own_policy = rules;
    layer->owners = 1;
    model->seed = making.seed;
    model->input_scale = 1.0;
    model->stage = &stage;
    model->labels.of_strings = model->names.of_strings = true;
    return model;
}

/* The input of a Sequential model, from checked settings. */
static CornuStatus set_input(CornuModel *model, CornuType type)
{
    CornuNode *node = cornu__input_node(&(CornuInputConfig){
        .name = "input_layer", .batch_size = model->batch_size, .scale = model->input_scale,
        .dtype = type.dtype },
        type);
    if (!node) return cornu_error_take();
    cornu__node_ref(node);
    CornuStatus status = cornu__model_append_call(model, node);
    if (!status) model->inputs[0] = model->outputs[0] = &node->out[0];
    cornu__node_unref(node);
    return status;
}

CornuModel *cornu_sequential_from(const CornuSequentialConfig *config)
{
    CornuInputConfig input = { .batch_size = config->batch_size, .scale = config->input_scale,
                               .dtype = config->input_dtype, .scalar = config->input_scalar };
    CornuType        type;
    memcpy(input.shape, config->input_shape, sizeof input.shape);
    if (cornu__refused()) return NULL;
    if (cornu__input_check(&input, "sequential", "input_", &type)) return cornu__null();
    CornuModel *model = cornu__model_create(&cornu__sequential_class, config->name, config->policy,
                                            &making.sequential);
    if (!model) return NULL;
    model->batch_size = config->batch_size;
    model->input_scale = cornu__number(config->input_scale, 1.0);
    model->input_count = model->output_count = 1;
    const bool unknown = type.shape.rank == 1 && type.dtype != CORNU_STRING && !input.scalar;
    if (unknown || set_input(model, type) == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

void cornu_model_free(CornuModel *model)
{
    if (model) cornu_layer_free(&model->base);
}

/* ---- Layers ---- */

static CornuStatus check_name(const CornuModel *model, const CornuLayer *layer)
{
    if (cornu__lookup_find(&model->names, layer->name) < 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: two layers have the name \"%s\"",
                       model->base.name, layer->name);
}

/* Calls the layer on the output of the last one. */
static CornuStatus call_next(CornuModel *model, CornuLayer *layer)
{
    if (!layer->numbered) cornu__layer_set_generators(layer, model->seed, model->next_generator);
    CornuNode *node = cornu__call_node(layer, &model->outputs[0], 1, NULL);
    if (!node) return cornu_error_take();
    const int64_t end = layer->generator + cornu__layer_generators(layer);
    if (end > model->next_generator) model->next_generator = end;
    cornu__node_ref(node);
    CornuStatus status = cornu__model_append_call(model, node);
    if (!status) model->outputs[0] = &node->out[0];
    cornu__node_unref(node);
    return status;
}

/* After all calls: sets the model's properties as a layer. */
static void set_built(CornuModel *model)
{
    model->base.built = true;
    model->base.output = model->outputs[0]->type.shape;
}

static CornuStatus append_layer(CornuModel *model, CornuLayer *layer)
{
    if (model->compiled || model->predicts)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a layer is added after %s",
                           cornu_model_name(model), model->compiled ? "compiling" : "predicting");
    if (model->base.owners > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a layer is added after the model was added to "
                           "another, or called", cornu_model_name(model));
    if (model->base.kind != &cornu__sequential_class)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is not a Sequential model; call layers instead "
                           "of adding them", cornu_model_name(model));
    CORNU__TRY(cornu__layer_set_name(layer, &model->labels));
    CORNU__TRY(check_name(model, layer));
    if (cornu_layer_outputs(layer) > 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: returns %d tensors, expected 1 in the "
                           "Sequential model %s; use cornu_call",
                           cornu_layer_name(layer), cornu_layer_outputs(layer),
                           cornu_model_name(model));
    if (model->inputs[0]) CORNU__TRY(call_next(model, layer));
    CORNU__TRY(cornu__model_append_layer(model, layer));
    if (!model->inputs[0]) return CORNU_OK;
    set_built(model);
    return cornu__model_add_weights(model, layer);
}

CornuStatus cornu_model_add(CornuModel *model, CornuLayer *layer)
{
    CornuStatus status = !model || !layer
        ? cornu__fail_absent(model ? "cornu_model_add: the layer" : "cornu_model_add: the model")
        : cornu__model_enter(model, "cornu_model_add");
    const bool entered = !status;
    if (layer) layer->owners++;   /* for the time of this call */
    if (!status) status = cornu__model_check(model);
    if (!status) {
        status = append_layer(model, layer);
        /* Callers need not check each call: the model keeps the failure and cannot be used. */
        model->failed = status;
        if (status) snprintf(model->failure, sizeof model->failure, "%s", cornu_error_message());
    }
    cornu_layer_free(layer);
    if (entered) cornu__model_leave(model);
    return status;
}

/* Undoes a failed build. */
static void clear_calls(CornuModel *model)
{
    while (model->call_count > 0) {
        const CornuModelCall *last = &model->calls[--model->call_count];
        cornu__release(last->in);
        cornu__node_unref(last->node);
    }
    cornu__lookup_clear(&model->calls_of);
    model->inputs[0] = model->outputs[0] = NULL;
    model->value_count = 0;
}

static CornuStatus build_model(CornuModel *model, CornuType type)
{
    CORNU__TRY(set_input(model, type));
    for (int i = 0; i < model->base.inner_count; i++)
        CORNU__TRY(call_next(model, model->base.inner[i]));
    set_built(model);
    return cornu__model_list_weights(model);
}

static CornuStatus build_for(CornuModel *model, CornuShape input)
{
    CORNU__TRY(cornu__model_check(model));
    if (model->base.built) return CORNU_OK;
    if (model->base.inner_count == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the model has no layers", model->base.name);
    if (input.rank + 1 > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the input has %d axes without the batch, expected "
                           "at most %d", model->base.name, input.rank, CORNU_MAX_RANK - 1);
    CornuShape shape = { .rank = input.rank + 1, .extent = { CORNU_NONE } };
    for (int i = 0; i < input.rank; i++) shape.extent[i + 1] = input.extent[i];
    CornuStatus status = build_model(model, cornu_type_from(CORNU_F32, shape));
    if (status) clear_calls(model);
    return status;
}

/* A Sequential model that is called before it has an input takes strings if it gets them. */
static CornuStatus build_for_strings(CornuLayer *layer, const CornuType *in)
{
    CornuModel *model = (CornuModel *)layer;
    if (layer->built || layer->inner_count == 0 || in->dtype != CORNU_STRING) return CORNU_OK;
    CornuStatus status = build_model(model, *in);
    if (status) clear_calls(model);
    return cornu__fail_prefix(status, layer->name);
}

CornuStatus cornu_model_build(CornuModel *model, CornuShape input)
{
    CORNU__WITHIN(model, "cornu_model_build", build_for(model, input));
}

CornuStatus cornu__model_enter(CornuModel *model, const char *function)
{
    return model ? cornu__guard_enter(&model->guard, model->base.name, function,
                                      "; cornu_predictor predicts from several") : CORNU_OK;
}

void cornu__model_leave(CornuModel *model)
{
    if (model) cornu__guard_leave(&model->guard);
}

CornuStatus cornu__model_check(const CornuModel *model)
{
    CORNU__TRY(cornu__refused_status());
    if (!model) return cornu__fail_absent("the model");
    return model->failed ? cornu__fail(model->failed, "%s", model->failure) : CORNU_OK;
}

/* ---- Properties ---- */

const char *cornu_model_name(const CornuModel *model)
{
    CORNU__NEED_OR(model, NULL);
    return model->base.name;
}

int cornu_model_layer_count(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->base.inner_count;
}

CornuLayer *cornu_model_layer(const CornuModel *model, int i)
{
    CORNU__NEED_OR(model, NULL);
    CORNU__NEED_INDEX(i, model->base.inner_count, NULL);
    return model->base.inner[i];
}

bool cornu_model_built(const CornuModel *model)
{
    CORNU__NEED_OR(model, false);
    return model->base.built;
}

CornuShape cornu_model_input_shape(const CornuModel *model)
{
    CORNU__NEED_OR(model, (CornuShape){ 0 });
    return model->inputs[0] ? model->inputs[0]->type.shape : (CornuShape){ 0 };
}

int cornu_model_input_count(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->input_count;
}

int cornu_model_output_count(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->output_count;
}

double cornu_model_input_scale(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0.0);
    return model->input_scale;
}

const CornuPolicy *cornu_model_policy(const CornuModel *model)
{
    CORNU__NEED_OR(model, NULL);
    return model->policy ? model->policy : model->base.own_policy;
}

bool cornu_model_is_function(const CornuModel *model)
{
    CORNU__NEED_OR(model, false);
    return cornu__model_is_function(model);
}

int64_t cornu_model_batch_size(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    if (model->batch_size) return model->batch_size;
    for (const CornuStep *step = model->steps; step; step = step->next)
        if (step->stateful) return step->x_types[0].shape.extent[0];
    return CORNU_NONE;
}

CornuShape cornu_model_output_shape(const CornuModel *model)
{
    CORNU__NEED_OR(model, (CornuShape){ 0 });
    return model->outputs[0] ? model->outputs[0]->type.shape : (CornuShape){ 0 };
}

int cornu_model_weight_count(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->base.weight_count;
}

CornuWeight *cornu_model_weight(const CornuModel *model, int i)
{
    CORNU__NEED_OR(model, NULL);
    CORNU__NEED_INDEX(i, model->base.weight_count, NULL);
    return model->base.weights[i];
}

CornuStatus cornu_model_copy_weights(CornuModel *to, const CornuModel *from)
{
    CornuText text[2];
    CORNU__NEED(to);
    CORNU__NEED(from);
    const int count = from->base.weight_count;
    if (to->base.weight_count != count)
        return cornu__fail(CORNU_ERR_SHAPE, "%s has %d weights, %s has %d", to->base.name,
                           to->base.weight_count, from->base.name, count);
    for (int i = 0; i < count; i++) {
        const CornuWeight *own = to->base.weights[i], *other = from->base.weights[i];
        if (!cornu_type_equal(own->type, other->type))
            return cornu__fail(CORNU_ERR_SHAPE, "the weight %s of %s is %s, %s of %s is %s",
                               own->path, to->base.name, cornu_type_print(&text[0], own->type),
                               other->path, from->base.name,
                               cornu_type_print(&text[1], other->type));
    }
    /* Those of a model that is to predict are written to its device at once, as they are unless
     * they are rounded there. */
    for (int i = 0; i < count; i++) {
        CornuWeight *own = to->base.weights[i];
        if (CORNU__FULL(to->predicts, false) && cornu__weight_stored(own, NULL) == CORNU_F32)
            CORNU__TRY(cornu__weight_move(own, to->device));
        CORNU__TRY(cornu__weight_copy(own, from->base.weights[i]));
    }
    return CORNU_OK;
}

CornuLayer *cornu_model_find_layer(const CornuModel *model, const char *name)
{
    CORNU__NEED_OR(model, NULL);
    CORNU__NEED_OR(name, NULL);
    for (int i = 0; i < model->base.inner_count; i++)
        if (!strcmp(cornu_layer_name(model->base.inner[i]), name)) return model->base.inner[i];
    return NULL;
}

CornuWeight *cornu_model_find_weight(const CornuModel *model, const char *path)
{
    CORNU__NEED_OR(model, NULL);
    CORNU__NEED_OR(path, NULL);
    for (int i = 0; i < model->base.weight_count; i++)
        if (!strcmp(model->base.weights[i]->path, path)) return model->base.weights[i];
    return NULL;
}

static CornuStatus reset_states(CornuModel *model)
{
    CORNU__TRY(cornu__model_check(model));
    return cornu_layer_reset_states(&model->base);
}

CornuStatus cornu_model_reset_states(CornuModel *model)
{
    CORNU__WITHIN(model, "cornu_model_reset_states", reset_states(model));
}

int64_t cornu_model_parameters(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return cornu_layer_parameters(&model->base);
}

int64_t cornu_model_trainable_parameters(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    int64_t count = 0;
    for (int i = 0, inner = 0; i < model->base.weight_count; i++)
        if (cornu__layer_trains_next(&model->base, model->base.weights[i], &inner))
            count += cornu_type_count(model->base.weights[i]->type);
    return count;
}

int cornu_model_optimizer_variable_count(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->optimizer ? cornu_optimizer_variable_count(model->optimizer) : 0;
}

int cornu__model_saved_count(const CornuModel *model)
{
    return model->optimizer ? cornu__optimizer_saved_count(model->optimizer) : 0;
}

CornuVariable *cornu_model_optimizer_variable(const CornuModel *model, int i)
{
    CORNU__NEED_OR(model, NULL);
    CORNU__NEED_INDEX(i, cornu__model_saved_count(model), NULL);
    return cornu_optimizer_variable(model->optimizer, i);
}

int64_t cornu_model_optimizer_parameters(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    int64_t count = 0;
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++)
        count += cornu_type_count(cornu_variable_type(cornu_model_optimizer_variable(model, i)));
    return count;
}

bool cornu_model_compiled(const CornuModel *model)
{
    CORNU__NEED_OR(model, false);
    return model->compiled;
}

CornuDevice *cornu_model_device(const CornuModel *model)
{
    CORNU__NEED_OR(model, NULL);
    return model->device;
}

CornuOptimizer *cornu_model_optimizer(const CornuModel *model)
{
    CORNU__NEED_OR(model, NULL);
    return model->optimizer;
}

CornuOptimizer *cornu_model_optimizer_at(const CornuModel *model, int i)
{
    CORNU__NEED_OR(model, NULL);
    CornuOptimizer *all = model->optimizer;
    if (all && !model->shares && i == 0) return all;
    int count = 0;
    while (model->shares && count < CORNU_MAX_OPTIMIZERS && model->shares[count].optimizer) count++;
    if (i >= 0 && i < count) return model->shares[i].optimizer;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: there is no optimizer %d, it has %d",
                            model->base.name, i, all && !model->shares ? 1 : count);
}

int64_t cornu_model_steps_per_execution(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->steps_per_execution;
}

int cornu_model_metric_count(const CornuModel *model)
{
    CORNU__NEED_OR(model, 0);
    return model->tracked_count;
}

const char *cornu_model_metric_name(const CornuModel *model, int i)
{
    CORNU__NEED_OR(model, NULL);
    CORNU__NEED_INDEX(i, model->tracked_count, NULL);
    return model->tracked[i].name;
}

const CornuStatistics *cornu_model_statistics(const CornuModel *model)
{
    CORNU__NEED_OR(model, NULL);
    for (const CornuStep *step = model->steps; step; step = step->next)
        if (step->mode == CORNU_STEP_TRAIN)
            return step->pipeline ? step->runs->statistics(step)
                                  : cornu_graph_statistics(step->graph);
    return NULL;
}

void cornu_model_train_as_inference(CornuModel *model, bool as_inference)
{
    CORNU__NEED_OR(model, );
    model->trains_as_inference = as_inference;
}

void cornu_model_stop_training(CornuModel *model)
{
    CORNU__NEED_OR(model, );
    model->stop_training = true;
}

/* ---- The class ---- */

static bool gives_output(const CornuModel *model, const CornuLayer *layer)
{
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i]->node->layer == layer) return true;
    return false;
}

static bool apply_policy(CornuLayer *base, const CornuPolicy *policy, bool last)
{
    const CornuModel *model = (const CornuModel *)base;
    bool narrow = false;
    for (int i = 0; i < model->base.inner_count; i++) {
        CornuLayer *layer = model->base.inner[i];
        narrow |= cornu__layer_apply_policy(layer, policy, last && gives_output(model, layer));
    }
    return narrow;
}

static CornuStatus build_many(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuShape row = { .rank = in[0].rank - 1 };
    for (int i = 0; i < row.rank; i++) row.extent[i] = in[0].extent[i + 1];
    (void)in_count;   /* a Sequential model has one input, a Functional one is built */
    ((CornuModel *)layer)->built_by_call = true;
    return cornu_model_build((CornuModel *)layer, row);
}

static CornuTensor *call_masked(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                           int in_count, CornuTensor *const *masks, CornuTensor **out,
                           CornuTensor **out_masks)
{
    const CornuModel *model = (const CornuModel *)layer;
    CornuType         types[CORNU_MAX_LAYER_TENSORS];
    if (cornu__model_on_host(model))   /* the model around it feeds it as a step would */
        return cornu__model_call_layers(model, call, in, masks, out, out_masks);
    if (cornu__model_refuse_function(model, "a model as a layer")) return cornu__null();
    for (int i = 0; i < in_count; i++) {
        types[i] = cornu_tensor_type(in[i]);
        types[i].shape.extent[0] = CORNU_NONE;
    }
    /* A generator gives it some steps of sequences, in place of whole ones. */
    if (!CORNU__FULL(call->past != NULL, false) && !model->built_by_call &&
        cornu__model_check_inputs(model, types, in_count)) return cornu__null();
    return cornu__model_call_layers(model, call, in, masks, out, out_masks);
}

static int outputs(const CornuLayer *layer) { return ((const CornuModel *)layer)->output_count; }

static void free_model(CornuLayer *layer)
{
    CornuModel        *model = (CornuModel *)layer;
    const CornuDevice *device = model->placed;
    if (device && cornu_device_processes(device)) device = NULL;
    cornu__model_free_compiled(model);
    cornu_variable_free(model->seed_variable);
    for (int i = model->call_count - 1; i >= 0; i--) {
        cornu__release(model->calls[i].in);
        cornu__node_unref(model->calls[i].node);
    }
    for (int i = 0; i < layer->inner_count; i++) {
        cornu__layer_leave_device(layer->inner[i], device);
        cornu_layer_free(layer->inner[i]);
    }
    cornu__model_free_keys(model);
    cornu__release(model->more);
    cornu__release(model->calls);
    cornu__release(layer->inner);
    cornu__lookup_clear(&model->labels);
    cornu__lookup_clear(&model->names);
    cornu__lookup_clear(&model->numbers);
    cornu__lookup_clear(&model->calls_of);
    cornu__device_release(model->device);
    cornu__device_release(model->placed);
    cornu_device_close(model->own_device);
    json_decref(model->input_form);
    json_decref(model->output_form);
    json_decref(model->notes);
    layer->inner_count = layer->weight_count = 0;
}

static const CornuHostStage stage = {
    .has = cornu__stage_has, .takes = cornu__stage_takes, .build = build_for_strings,
    .types = cornu__stage_types,
};

const CornuLayerClass cornu__sequential_class = {
    .class_name = "Sequential", .size = sizeof(CornuModel), .build_many = build_many,
    .call_masked = call_masked, .of_graphs = true, .outputs = outputs,
    .apply_policy = apply_policy,
    .free = free_model, .takes_integers = true,
};

const CornuLayerClass cornu__functional_class = {
    .class_name = "Functional", .size = sizeof(CornuModel), .build_many = build_many,
    .call_masked = call_masked, .of_graphs = true, .outputs = outputs,
    .apply_policy = apply_policy,
    .free = free_model, .takes_integers = true,
};
