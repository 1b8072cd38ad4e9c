#include "objective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "mesh_flags.h"
#include "session.h"

enum { MOST_METRICS = 8, NAME = 64, PROBED_ROWS = 32 };

CornuOptimizer *objective_optimizer(const Objective *objective, const Options *options)
{
    CornuOptimizer *optimizer =
        cornu_optimizer(objective->optimizer ? objective->optimizer : "adam");
    if (optimizer && options->learning_rate != 0.0)
        cornu_optimizer_set_learning_rate(optimizer, options->learning_rate);
    return optimizer;
}

/* The metrics of "accuracy,auc", which are the caller's; CORNU_ERR_ARGUMENT for too many. */
static CornuStatus make_metrics(const char *list, CornuMetric *metrics[MOST_METRICS])
{
    char name[NAME];
    int  count = 0;
    for (const char *at = list; at && *at;) {
        const size_t length = strcspn(at, ",");
        if (count == MOST_METRICS)
            return options_refuse("--metrics %s: more than %d of them", list,
                                  MOST_METRICS);
        snprintf(name, sizeof name, "%.*s", (int)(length < NAME ? length : NAME - 1), at);
        if (!(metrics[count++] = cornu_metric(name))) return cornu_error_status();
        at += length + (at[length] == ',');
    }
    return CORNU_OK;
}

/* The same loss of logits; NULL for one that is not of probabilities. */
static CornuLoss *of_logits(CornuLoss *loss)
{
    CornuLoss *of = NULL;
    if (!loss) return NULL;
    if (!strcmp(loss->name, "sparse_categorical_crossentropy"))
        of = cornu_sparse_categorical_crossentropy(.from_logits = true);
    else if (!strcmp(loss->name, "categorical_crossentropy"))
        of = cornu_categorical_crossentropy(.from_logits = true);
    else if (!strcmp(loss->name, "categorical_focal_crossentropy"))
        of = cornu_categorical_focal_crossentropy(.from_logits = true);
    else if (!strcmp(loss->name, "binary_crossentropy"))
        of = cornu_binary_crossentropy(.from_logits = true);
    else if (!strcmp(loss->name, "binary_focal_crossentropy"))
        of = cornu_binary_focal_crossentropy(.from_logits = true);
    cornu_loss_free(loss);
    return of;
}

CornuStatus objective_compile(const Objective *objective, const Options *options, CornuModel *model,
                              CornuOptimizer *optimizer, CornuDevice *device)
{
    CornuMetric *metrics[MOST_METRICS] = { NULL };
    if (make_metrics(objective->metrics, metrics)) {
        for (int i = 0; i < MOST_METRICS; i++) cornu_metric_free(metrics[i]);
        cornu_optimizer_free(optimizer);
        return cornu_error_status();
    }
    CornuCompileConfig config = { .model = model, .optimizer = optimizer, .device = device,
                                  .steps_per_execution = options->steps_per_execution,
                                  .accumulate_steps = objective->accumulate_steps,
                                  .gradient_norm = options->gradient_norm,
                                  .debug_nans = options->debug_nans };
    bool any_logits = false;
    for (int i = 0; i < DATA_MOST; i++) any_logits |= objective->logits[i];
    if (!any_logits) config.loss = cornu_loss(objective->loss);
    for (int i = 0; i < cornu_model_output_count(model) && any_logits; i++)
        config.losses[i] = objective->logits[i] ? of_logits(cornu_loss(objective->loss))
                                                : cornu_loss(objective->loss);
    memcpy(config.metrics, metrics, sizeof metrics);
    return cornu_compile_from(&config);
}

/* ---- Logits ---- */

/* Whether any of the predictions is not a probability. */
static bool outside(CornuArray values)
{
    const float *of = values.data;
    for (int64_t i = 0; i < cornu_type_count(values.type); i++)
        if (of[i] < -1e-3F || of[i] > 1.001F) return true;
    return false;
}

static CornuStatus find_logits(Objective *objective, CornuModel *model, CornuPredictor *predictor,
                               const CornuArray *x)
{
    const int   outputs = cornu_model_output_count(model);
    CornuArray  to[DATA_MOST] = { { .data = NULL } };
    CornuType   types[DATA_MOST];
    CornuStatus status = cornu_predictor_output_types(predictor, x, types);
    for (int i = 0; i < outputs && !status; i++) {
        types[i].dtype = CORNU_F32;
        to[i] = cornu_array_from(malloc(cornu_type_bytes(types[i]) + 1), types[i]);
        if (!to[i].data) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for predictions");
    }
    if (!status) status = cornu_predictor_predict(predictor, x, to);
    for (int i = 0; i < outputs; i++) {
        objective->logits[i] = !status && cornu_model_loss(model, i) && outside(to[i]);
        free(to[i].data);
    }
    return status;
}

CornuStatus objective_logits(Objective *objective, const Options *options, CornuModel *model,
                             CornuDevice *device, const CornuArray *x)
{
    CornuLoss *of = objective->loss ? of_logits(cornu_loss(objective->loss)) : NULL;
    cornu_loss_free(of);
    if (!of || cornu_model_is_function(model)) return cornu_error_take(), CORNU_OK;
    CornuArray    few[DATA_MOST];
    const int64_t fixed = cornu_model_batch_size(model);
    for (int i = 0; i < cornu_model_input_count(model); i++) {
        int64_t *rows = &(few[i] = x[i]).type.shape.extent[0];
        if (*rows > PROBED_ROWS) *rows = fixed > 0 ? fixed : PROBED_ROWS;
    }
    CornuDevice    *cpu = cornu_device_open("cpu", .threads = options->threads, .shards = 1);
    CornuPredictor *predictor = cpu ? cornu_predictor(model, .device = cpu) : NULL;
    bool            any = false;
    if (!predictor || find_logits(objective, model, predictor, few))
        cornu_error_take();   /* a model with states, or what the training says as well */
    cornu_predictor_free(predictor);
    cornu_device_close(cpu);
    for (int i = 0; i < cornu_model_output_count(model); i++) {
        if (!objective->logits[i]) continue;
        printf("%s is not between 0 and 1: %s takes it as logits\n",
               cornu_model_output_name(model, i), cornu_model_loss(model, i)->name);
        any = true;
    }
    return any ? objective_compile(objective, options, model,
                                   objective_optimizer(objective, options), device) : CORNU_OK;
}

/* ---- Models ---- */

static bool keeps_objective(const char *name)
{
    const char *suffix = strrchr(name, '.');
    return suffix &&
           (!strcmp(suffix, ".keras") || !strcmp(suffix, ".h5") || !strcmp(suffix, ".hdf5"));
}

/* The network of models/ that a file holds, by the name of its model; or NULL. */
static const CornuReferenceModel *reference_in(const CornuModel *model)
{
    int                        count;
    const CornuReferenceModel *all = cornu_reference_models(&count);
    for (int i = 0; i < count; i++)
        if (!strcmp(all[i].name, cornu_model_name(model))) return &all[i];
    return NULL;
}

/* A mesh is made for a model, which is then moved to it. */
static CornuStatus lay_out_compiled(const Options *options, CornuModel *model, CornuDevice *device)
{
    if (!mesh_is_given(options)) return CORNU_OK;
    const CornuStatus status = mesh_lay_out(options, model, device);
    return status ? status : mesh_blame(options, cornu_model_move(model, device));
}

/* With the loss, optimizer and metrics of its file. */
static CornuModel *as_saved(const Objective *objective, const Options *options,
                            const Subject *subject, CornuDevice *device)
{
    CornuModel *model =
        cornu_model_load_compiled(subject->name, mesh_is_given(options) ? NULL : device);
    if (!model) return NULL;
    CornuStatus status = lay_out_compiled(options, model, device);
    if (!status && (options->gradient_norm || options->debug_nans || options->steps_per_execution ||
                    objective->accumulate_steps))
        status =
            cornu_error_set(CORNU_ERR_ARGUMENT,
                            "%s is trained as it was compiled when it was "
                            "saved: --gradient-norm, --debug-nans, --steps-per-execution and "
                            "--accumulate-steps need a --loss NAME",
                            subject->name);
    else if (!status && options->learning_rate != 0.0)
        status = cornu_optimizer_set_learning_rate(cornu_model_optimizer(model),
                                                   options->learning_rate);
    if (!status) return model;
    cornu_model_free(model);
    return NULL;
}

CornuModel *objective_model(const Objective *objective, const Options *options,
                            const Subject *subject, CornuDevice *device)
{
    Objective whole = *objective;
    char      why[600] = "";
    if (!whole.loss && !whole.optimizer && !whole.metrics && !subject->reference &&
        keeps_objective(subject->name)) {
        CornuModel *model = as_saved(&whole, options, subject, device);
        if (model || cornu_error_status() != CORNU_ERR_UNSUPPORTED) return model;
        snprintf(why, sizeof why, "%s", cornu_error_message());
        cornu_error_take();   /* it was saved without: it may be a network of models/ */
    }
    CornuModel *model = subject_model(subject);
    if (!model) return NULL;
    const CornuReferenceModel *reference = subject->reference ? subject->reference
                                                              : reference_in(model);
    if (reference && !whole.metrics && !whole.loss) whole.metrics = "accuracy";
    if (reference && !whole.loss) whole.loss = reference->loss;
    if (!whole.loss && *why)
        cornu_error_set(CORNU_ERR_ARGUMENT, "%s; --loss NAME gives it one, such as mse or "
                        "sparse_categorical_crossentropy", why);
    else if (!whole.loss)
        cornu_error_set(CORNU_ERR_ARGUMENT,
                        "%s has no loss in it%s, expected --loss NAME, such as mse "
                        "or sparse_categorical_crossentropy",
                        subject->name,
                        objective->optimizer || objective->metrics
                            ? " that goes with --optimizer and --metrics"
                            : "");
    else if (!mesh_lay_out(options, model, device) &&
             mesh_blame(options, objective_compile(&whole, options, model,
                                                   objective_optimizer(&whole, options),
                                                   device)) == CORNU_OK)
        return model;
    cornu_model_free(model);
    return NULL;
}

int64_t objective_batch(const Options *options, const CornuModel *model, int64_t usual)
{
    const int64_t fixed = cornu_model_batch_size(model);
    return options->batch_size ? options->batch_size : fixed > 0 ? fixed : usual;
}
