#include "objective.h"

#include <stdio.h>
#include <string.h>

#include "session.h"

enum { MOST_METRICS = 8, NAME = 64 };

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
            return cornu_error_set(CORNU_ERR_ARGUMENT, "--metrics %s: more than %d of them", list,
                                   MOST_METRICS);
        snprintf(name, sizeof name, "%.*s", (int)(length < NAME ? length : NAME - 1), at);
        if (!(metrics[count++] = cornu_metric(name))) return cornu_error_status();
        at += length + (at[length] == ',');
    }
    return CORNU_OK;
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
    return cornu_compile(model, .optimizer = optimizer, .loss = cornu_loss(objective->loss),
                         .metrics = { metrics[0], metrics[1], metrics[2], metrics[3], metrics[4],
                                      metrics[5], metrics[6], metrics[7] },
                         .device = device, .steps_per_execution = options->steps_per_execution,
                         .gradient_norm = options->gradient_norm,
                         .debug_nans = options->debug_nans);
}

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

/* With the loss, optimizer and metrics of its file. */
static CornuModel *as_saved(const Options *options, const Subject *subject, CornuDevice *device)
{
    CornuModel *model = cornu_model_load_compiled(subject->name, device);
    if (!model) return NULL;
    CornuStatus status = CORNU_OK;
    if (options->gradient_norm || options->debug_nans || options->steps_per_execution)
        status =
            cornu_error_set(CORNU_ERR_ARGUMENT,
                            "%s is trained as it was compiled when it was "
                            "saved: --gradient-norm, --debug-nans and --steps-per-execution need "
                            "a --loss NAME",
                            subject->name);
    else if (options->learning_rate != 0.0)
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
        CornuModel *model = as_saved(options, subject, device);
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
    else if (objective_compile(&whole, options, model, objective_optimizer(&whole, options),
                               device) == CORNU_OK)
        return model;
    cornu_model_free(model);
    return NULL;
}

int64_t objective_batch(const Options *options, const CornuModel *model, int64_t usual)
{
    const int64_t fixed = cornu_model_batch_size(model);
    return options->batch_size ? options->batch_size : fixed > 0 ? fixed : usual;
}
