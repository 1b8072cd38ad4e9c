#include "objective.h"

#include <stdio.h>
#include <string.h>

#include "session.h"

enum { MOST_METRICS = 8, NAME = 64 };

CornuOptimizer *objective_optimizer(const Objective *objective, const Options *options)
{
    CornuOptimizer *optimizer = cornu_optimizer(objective->optimizer ? objective->optimizer : "adam");
    if (optimizer && options->learning_rate != 0.0)
        cornu_optimizer_set_learning_rate(optimizer, options->learning_rate);
    return optimizer;
}

CornuStatus objective_compile(const Objective *objective, const Options *options, CornuModel *model,
                              CornuOptimizer *optimizer, CornuDevice *device)
{
    char         name[MOST_METRICS][NAME];
    CornuMetric *metrics[MOST_METRICS] = { NULL };
    int          count = 0;
    for (const char *at = objective->metrics; at && *at && count < MOST_METRICS;) {
        const size_t length = strcspn(at, ",");
        snprintf(name[count], NAME, "%.*s", (int)(length < NAME ? length : NAME - 1), at);
        metrics[count] = cornu_metric(name[count]);
        if (!metrics[count++]) return cornu_error_status();
        at += length + (at[length] == ',');
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
    return suffix && (!strcmp(suffix, ".keras") || !strcmp(suffix, ".h5") || !strcmp(suffix, ".hdf5"));
}

CornuModel *objective_model(const Objective *objective, const Options *options,
                            const Subject *subject, CornuDevice *device)
{
    Objective whole = *objective;
    if (!whole.loss && !whole.optimizer && !whole.metrics && !subject->reference &&
        keeps_objective(subject->name))
        return cornu_model_load_compiled(subject->name, device);
    if (!whole.loss && subject->reference) whole.loss = subject->reference->loss;
    if (!whole.metrics && subject->reference) whole.metrics = "accuracy";
    if (!whole.loss) {
        cornu_error_set(CORNU_ERR_ARGUMENT, "%s has no loss in it, expected --loss NAME, such as mse "
                        "or sparse_categorical_crossentropy", subject->name);
        return NULL;
    }
    CornuModel *model = subject_model(subject);
    if (model && objective_compile(&whole, options, model, objective_optimizer(&whole, options),
                                   device) == CORNU_OK)
        return model;
    cornu_model_free(model);
    return NULL;
}
