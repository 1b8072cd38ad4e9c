/* A model on a device: its dtypes and variables there. A compiled one adds what it trains with. */
#include "../../device/mesh/layout_map_internal.h"
#include "model_internal.h"
#include "strategy.h"

CornuStatus cornu__model_check_layers(const CornuModel *model)
{
    CORNU__TRY(cornu__model_check(model));
    return model->base.inner_count > 0
         ? CORNU_OK
         : cornu__fail(CORNU_ERR_ARGUMENT, "%s: the model has no layers", model->base.name);
}

/* The device of a layer that another model computes with, which cannot leave it; or NULL. */
static CornuDevice *device_of_others(const CornuModel *model)
{
    for (int i = 0; i < model->base.inner_count; i++) {
        const CornuLayer *layer = model->base.inner[i];
        for (int k = 0; k < layer->weight_count && layer->compiled > model->ready; k++)
            if (layer->weights[k]->variable)
                return cornu_variable_device(layer->weights[k]->variable);
    }
    return NULL;
}

CornuDevice *cornu__model_choose_device(CornuModel *model, CornuDevice *given)
{
    if (given || model->own_device) return given ? given : model->own_device;
    CornuDevice *device = device_of_others(model);
    return device ? device : (model->own_device = cornu_device_open("cpu"));
}

CornuStatus cornu__model_apply_policy(CornuModel *model)
{
    model->policy = model->base.own_policy ? model->base.own_policy
                                           : cornu_policy(cornu_device_policy(model->device));
    if (!model->policy) return cornu_error_take();
    const bool f16 = cornu__layer_apply_policy(&model->base, model->policy, true);
    return f16 && model->when_compiled ? model->when_compiled->scale_loss(model) : CORNU_OK;
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

CornuStatus cornu__model_check_layouts(const CornuModel *model, const CornuDevice *device)
{
    bool of_output;
    for (int i = 0; i < model->base.inner_count; i++)
        CORNU__TRY(cornu__layer_note_outputs(model->base.inner[i], device));
    const char *unused = cornu__device_unused_layout(device, &of_output);
    if (!unused) return CORNU_OK;
    const int count = cornu_model_weight_count(model);
    if (of_output && model->base.inner_count > 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the layout map's \"%s\" is for none of its "
                           "layers' outputs, whose names are as %s/output", model->base.name,
                           unused, cornu_layer_name(model->base.inner[0]));
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the layout map's \"%s\" is for none of its %d "
                       "weights, whose names are as %s", model->base.name, unused, count,
                       count > 0 ? cornu_model_weight(model, 0)->path : "dense/kernel");
}

CornuStatus cornu__model_check_device(const CornuModel *model, const CornuDevice *device)
{
    for (int i = 0; i < model->base.inner_count; i++)
        CORNU__TRY(cornu__layer_check_move(model->base.inner[i], device, model->ready));
    return model->base.built ? cornu__model_check_layouts(model, device) : CORNU_OK;
}

CornuStatus cornu__model_make_variables(CornuModel *model)
{
    CORNU__TRY(cornu__model_apply_policy(model));
    for (int i = 0; i < model->base.inner_count; i++)
        CORNU__TRY(cornu_layer_move(model->base.inner[i], model->device));
    CORNU__TRY(cornu__model_check_layouts(model, model->device));
    CORNU__TRY(make_seed(model));
    const CornuStatus status = model->when_compiled ? model->when_compiled->build(model) : CORNU_OK;
    cornu__model_claim(model, status == CORNU_OK);
    return status;
}

CornuStatus cornu__model_follow_trainable(CornuModel *model)
{
    return model->when_compiled && model->ready ? model->when_compiled->follow(model) : CORNU_OK;
}

CornuStatus cornu__model_check_compiled(const CornuModel *model)
{
    return model->compiled ? CORNU_OK
                           : cornu__fail(CORNU_ERR_ARGUMENT, "%s: not compiled; cornu_compile "
                                         "comes first", model->base.name);
}

CornuStatus cornu__model_predict_on(CornuModel *model, CornuDevice *device)
{
    CORNU__TRY(cornu__model_check_layers(model));
    if (model->compiled || model->predicts) return CORNU_OK;
    device = cornu__model_choose_device(model, device);
    if (!device) return cornu_error_take();
    cornu__device_keep(&model->device, device);
    CORNU__TRY(cornu__model_list_weights(model));
    model->steps_per_execution = 1;
    model->predicts = true;
    return CORNU_OK;
}

CornuStatus cornu__model_prepare_to_predict(CornuModel *model)
{
    const CornuStrategy *strategy = cornu_strategy_in_scope();
    return cornu__model_predict_on(model, strategy ? cornu_strategy_device(strategy) : NULL);
}

CornuStatus cornu_model_place(CornuModel *model, CornuDevice *device)
{
    CORNU__NEED(model);
    CORNU__TRY(cornu__model_enter(model, "cornu_model_place"));
    CornuStatus status = model->base.built ? cornu__model_predict_on(model, device)
                       : cornu__fail(CORNU_ERR_ARGUMENT, "%s: not built; cornu_model_build comes "
                                     "first", model->base.name);
    if (!status && !model->ready) status = cornu__model_make_variables(model);
    cornu__model_leave(model);
    return status;
}

CornuStatus cornu__model_ready(CornuModel *model, CornuType x)
{
    CORNU__TRY(cornu__model_check(model));
    if (!model->predicts) CORNU__TRY(cornu__model_check_compiled(model));
    if (cornu__model_is_function(model))
        return model->ready ? CORNU_OK : cornu__model_make_variables(model);
    if (x.shape.rank < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the data are a scalar, expected rows",
                           model->base.name);
    CornuShape row = { .rank = x.shape.rank - 1 };
    for (int i = 0; i < row.rank; i++) row.extent[i] = x.shape.extent[i + 1];
    CORNU__TRY(cornu_model_build(model, row));
    return model->ready ? CORNU_OK : cornu__model_make_variables(model);
}
