/* The step that is explained: whether it trains, with which loss, and a copy of the model for
 * it. */
#include <stdlib.h>
#include <string.h>

#include "../model/pipeline_plan_internal.h"
#include "../saving/files.h"
#include "explain_internal.h"

/* ---- The loss ---- */

/* The loss that fits how an output is made; NULL: none does, as it is made of whole numbers. */
static const char *fitting_loss(const CornuModelTypes *probe, int i)
{
    if (!cornu_dtype_is_float(probe->outputs[i].dtype)) return NULL;
    if (probe->made_by[i] == CORNU_OP_SOFTMAX) return "sparse_categorical_crossentropy";
    return probe->made_by[i] == CORNU_OP_SIGMOID ? "binary_crossentropy" : "mean_squared_error";
}

static const char *reason_of(const CornuModelTypes *probe, int i)
{
    return probe->made_by[i] == CORNU_OP_SOFTMAX   ? "ends in a softmax"
         : probe->made_by[i] == CORNU_OP_SIGMOID   ? "ends in a sigmoid"
         : cornu_dtype_is_float(probe->outputs[i].dtype) ? "ends in neither softmax nor sigmoid"
                                                         : "is of whole numbers";
}

static bool has_loss(const CornuModel *model)
{
    for (int i = 0; i < model->output_count; i++)
        if (cornu_model_compiled(model) && model->losses[i]) return true;
    return false;
}

static void add_loss(CornuExplanation *e, const char *name)
{
    const size_t used = strlen(e->loss);
    snprintf(e->loss + used, sizeof e->loss - used, "%s%s", used ? ", " : "", name);
}

/* The first outputs are told of one by one. */
static void guess_losses(CornuExplanation *e)
{
    enum { TOLD = 3 };
    char text[CORNU_EXPLAIN_TEXT] = "";
    int  used = 0;
    for (int i = 0; i < e->probe.output_count; i++) {
        const char *loss = fitting_loss(&e->probe, i);
        if (loss) add_loss(e, loss);
        if (i < TOLD)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%s as the output %.40s %s",
                             i ? ", " : "", loss ? loss : "no loss",
                             cornu_model_output_name(e->config.model, i), reason_of(&e->probe, i));
    }
    cornu__explain_note(e, "Nothing says what it is trained with. Taken are Adam and %s%s.", text,
                        e->probe.output_count > TOLD ? ", .." : "");
}

/* Sets e->loss, and e->compiled where the model has its own; says why. */
static void choose_loss(CornuExplanation *e)
{
    const CornuModel *model = e->config.model;
    if (e->config.loss) {
        add_loss(e, e->config.loss);
        cornu__explain_note(e, "It trains with the loss that was asked for, %s, and Adam.",
                            e->loss);
        return;
    }
    if (has_loss(model)) {
        e->compiled = cornu_compile_to_json(model);
        for (int i = 0; i < model->output_count && e->compiled; i++)
            if (model->losses[i]) add_loss(e, model->losses[i]->name);
        if (e->compiled) {
            cornu__explain_note(e, "It trains as the model was compiled: loss %s, optimizer %s.",
                                e->loss, cornu_optimizer_name(cornu_model_optimizer(model)));
            return;
        }
        cornu_error_take();
        cornu__explain_note(e, "What the model was compiled with is the program's own, which a "
                            "copy cannot have.");
    }
    guess_losses(e);
}

/* Where a loss is asked for, a model that cannot be trained is refused. */
static CornuStatus choose_step(CornuExplanation *e)
{
    CornuModel *model = e->config.model;
    const bool  fixed = cornu_model_trainable_parameters(model) == 0;
    e->trains = false;
    if (e->config.predict) return CORNU_OK;
    if (e->config.loss) CORNU__TRY(cornu__model_refuse_function(model, "cornu_explain with .loss"));
    if (e->config.loss && fixed)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "cornu_explain with .loss: no parameter of %s is "
                           "trainable", cornu_model_name(model));
    if (e->function) {
        cornu__explain_note(e, "It is run and not trained: axis 0 of its inputs and outputs is no "
                            "batch.");
    } else if (fixed) {
        cornu__explain_note(e, "It predicts and is not trained: no parameter is trainable.");
    } else {
        choose_loss(e);
        e->trains = *e->loss;
        if (!e->trains) cornu__explain_note(e, "So it predicts and is not trained.");
    }
    return CORNU_OK;
}

/* ---- The types ---- */

static void tell_types(CornuExplanation *e, const CornuModelTypes *types)
{
    char      text[CORNU_EXPLAIN_TEXT / 2] = "";
    int       used = 0;
    CornuText type;
    for (int i = 0; i < types->input_count && used < (int)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", i ? ", " : "",
                         cornu_type_print(&type, types->inputs[i]));
    cornu__explain_note(e, "The model leaves extents of its inputs open; here they are %s.", text);
}

/* Those of the first batch are told, and stay. */
CornuStatus cornu__explain_probe(CornuExplanation *e, int64_t batch, CornuModelTypes *to)
{
    int64_t taken;
    CORNU__TRY(cornu__model_types(e->config.model, batch, e->config.extent, to, &taken));
    if (to != &e->probe || taken == CORNU_NONE) return CORNU_OK;
    tell_types(e, to);
    e->config.extent = taken;
    return CORNU_OK;
}

/* ---- The device ---- */

static CornuStatus open_device(CornuExplanation *e, int shards)
{
    const CornuDevice *like = e->config.device;
    const char *name = like ? cornu_device_name(like)
                            : e->config.device_name ? e->config.device_name : "cpu";
    char        whole[128];
    if (like && cornu_device_profile(like)) {
        snprintf(whole, sizeof whole, "tpu:%s", cornu_device_profile(like));
        name = whole;
    }
    cornu_device_close(e->own_device);
    e->own_device = like ? cornu_device_open(name, .shards = shards,
                                             .threads = cornu_device_threads(like),
                                             .precision = cornu_device_precision(like))
                         : cornu_device_open(name, .shards = shards);
    e->device = e->own_device;
    return e->device ? CORNU_OK : cornu_error_status();
}

/* Rows that cannot be divided are computed on one shard. */
static CornuStatus choose_device(CornuExplanation *e)
{
    CornuModel *model = e->config.model;
    e->device = e->config.device;
    if (e->config.mesh.axes) CORNU__TRY(cornu__explain_open_mesh(e));
    if (!e->device) CORNU__TRY(open_device(e, 0));
    const int shards = cornu_device_shards(e->device);
    const int64_t fixed = cornu_model_batch_size(model);
    if (shards == 1) return CORNU_OK;
    if (cornu__model_rows(model, e->probe.inputs)) cornu_error_take();
    const bool  dependent = cornu__model_mixes_rows(model), few = fixed > 0 && fixed < shards;
    if (!e->function && !dependent && !few) return CORNU_OK;
    const char *why = e->function ? "without a batch there are no rows to deal"
                    : dependent ? "the rows of a batch depend on each other"
                                : "the model has a batch of fewer rows";
    if (cornu__explain_mesh(e)->axes)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the mesh deals a batch over %d shards, expected "
                           "1: %s", cornu_model_name(model), shards, why);
    cornu__explain_note(e, "It runs on 1 shard, not %d: %s.", shards, why);
    e->alone = true;
    return open_device(e, 1);
}

static CornuStatus check_explain(const CornuExplainConfig *config)
{
    CORNU__TRY(cornu__model_check(config->model));
    if (!config->model->base.built)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explain: %s is not built; give its input "
                           "shape or load it", cornu_model_name(config->model));
    if (config->pipeline && config->device)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explain: .pipeline and .device, expected "
                           ".device_name");
    if (config->mesh.axes && config->device)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explain: .mesh and .device, expected one of "
                           "them; a device with a mesh has its own");
    if (config->batch_size < 0 || config->extent < 0 || config->steps < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explain: .%s is negative, expected at least "
                           "1", config->batch_size < 0 ? "batch_size"
                                                  : config->extent < 0 ? "extent" : "steps");
    CornuLoss *loss = config->loss ? cornu_loss(config->loss) : NULL;
    if (config->loss && !loss) return cornu_error_take();
    cornu_loss_free(loss);
    return CORNU_OK;
}

CornuStatus cornu__explain_choose(CornuExplanation *e)
{
    CORNU__TRY(check_explain(&e->config));
    const CornuModel *model = e->config.model;
    const int64_t     fixed = cornu_model_batch_size(model);
    e->function = cornu_model_is_function(model);
    e->batch = e->config.batch_size ? e->config.batch_size : fixed > 0 ? fixed : 32;
    if (e->function) e->batch = 1;
    CORNU__TRY(cornu__explain_probe(e, e->batch, &e->probe));
    CORNU__TRY(choose_device(e));
    return choose_step(e);
}

/* ---- The copy ---- */

static CornuStatus compile(const CornuExplanation *e, CornuModel *model, CornuDevice *device)
{
    CornuCompileConfig config = { .model = model, .device = device };
    if (!e->trains) return cornu__model_predict_on(model, device);
    if (e->compiled) return cornu_compile_from_json(model, e->compiled, device);
    for (int i = 0; i < e->probe.output_count; i++) {
        const char *loss = e->config.loss ? e->config.loss : fitting_loss(&e->probe, i);
        config.losses[i] = loss ? cornu_loss(loss) : CORNU_NO_LOSS;
    }
    config.optimizer = cornu_adam();
    return cornu_compile_from(&config);
}

/* An array's type as it was given, for this batch. */
static bool given_type(CornuType given, int64_t batch, CornuType *to)
{
    if (given.shape.rank == 0) return false;
    *to = given;
    to->shape.extent[0] = batch;
    return true;
}

/* Numbers of classes have the outputs' shape without the classes; CTC takes words, here of one. */
static CornuType label_type(const CornuExplanation *e, const CornuModel *model, int i,
                            const CornuModelTypes *probe)
{
    const CornuLoss *loss = model->losses[i];
    CornuType        type = cornu_type_from(CORNU_F32, probe->outputs[i].shape);
    if (given_type(e->config.labels[i], type.shape.extent[0], &type)) return type;
    if (!loss || !loss->kind || !loss->kind->whole_labels) return type;
    if (!strcmp(loss->kind->class_name, "CTC"))
        return cornu_type(CORNU_I32, type.shape.extent[0], 1);
    type.dtype = CORNU_I32;
    type.shape.extent[--type.shape.rank] = 0;
    return type;
}

static CornuStatus make_step(const CornuExplanation *e, const CornuModelTypes *probe,
                             CornuExplainSubject *to)
{
    CornuArray x[CORNU_MAX_MODEL_TENSORS], y[CORNU_MAX_MODEL_TENSORS];
    for (int i = 0; i < probe->input_count; i++) {
        CornuType type = probe->inputs[i];
        if (probe->rows_of[i] && cornu_dtype_is_float(type.dtype)) type.dtype = CORNU_I32;
        const int64_t rows = type.shape.rank ? type.shape.extent[0] : 1;
        given_type(e->config.inputs[i], rows, &type);
        x[i] = cornu_array_from(NULL, type);
    }
    for (int i = 0; i < probe->output_count && e->trains; i++)
        y[i] = cornu_array_from(NULL, label_type(e, to->model, i, probe));
    return cornu__step(to->model, e->trains ? CORNU_STEP_TRAIN : CORNU_STEP_PREDICT,
                       &(CornuArrays){ .x = x, .y = y }, &to->step);
}

CornuStatus cornu__explain_make(const CornuExplanation *e, CornuDevice *device,
                                const CornuModelTypes *probe, bool weights,
                                CornuExplainSubject *to)
{
    const CornuModel *model = e->config.model;
    *to = (CornuExplainSubject){ .model = cornu_model_clone(model) };
    CornuStatus status = to->model ? CORNU_OK : cornu_error_take();
    if (!status && weights) status = cornu_model_copy_weights(to->model, model);
    if (!status) status = compile(e, to->model, device);
    if (!status && e->plan) status = cornu__model_set_plan(to->model, e->plan);
    if (!status) status = make_step(e, probe, to);
    if (!status) return CORNU_OK;
    cornu_model_free(to->model);
    to->model = NULL;
    return status;
}
