#include "kept.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../device/processes/results.h"

static void keep(const char *name, const char *of, const void *data, size_t bytes)
{
    char what[80];
    snprintf(what, sizeof what, "%s, %s", name, of);
    result(what, data, bytes);
}

static CornuStatus keep_weights(const CornuModel *model, const char *name)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        void              *values = malloc(cornu_type_bytes(w->type));
        const CornuStatus  status = cornu_weight_read(w, cornu_array_from(values, w->type));
        if (!status) keep(name, w->path, values, cornu_type_bytes(w->type));
        free(values);
        if (status) return status;
    }
    return CORNU_OK;
}

static CornuStatus keep_slots(const CornuModel *model, const char *name)
{
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++) {
        const CornuVariable *v = cornu_model_optimizer_variable(model, i);
        const CornuType      type = cornu_variable_host_type(v);
        void                *values = malloc(cornu_type_bytes(type));
        const CornuStatus    status = cornu_variable_read(v, cornu_array_from(values, type));
        if (!status) keep(name, cornu_variable_name(v), values, cornu_type_bytes(type));
        free(values);
        if (status) return status;
    }
    return CORNU_OK;
}

CornuStatus keep_training(CornuModel *model, const char *name, CornuArray x, CornuArray y,
                          int64_t epochs, int64_t batch, CornuArray predictions)
{
    static const char *const names[] = { "loss", "accuracy", "gradient_norm", "val_loss" };
    double                   values[4];
    CornuHistory *history = cornu_fit(model, .x = x, .y = y, .epochs = epochs, .batch_size = batch,
                                      .validation_data = { .x = x, .y = y },
                                      .verbose = CORNU_SILENT);
    if (!history) return cornu_error_take();
    for (int i = 0; i < 4; i++) {
        values[i] = cornu_history_get(history, names[i], epochs - 1);
        keep(name, names[i], &values[i], sizeof values[i]);
    }
    cornu_history_free(history);
    CornuStatus status = keep_weights(model, name);
    if (!status) status = keep_slots(model, name);
    if (!status)
        status = cornu_evaluate(model, .x = x, .y = y, .batch_size = batch,
                                .verbose = CORNU_SILENT, .results = values);
    if (!status) keep(name, "evaluation", values, 2 * sizeof *values);
    if (!status)
        status = cornu_predict(model, .x = x, .batch_size = batch, .verbose = CORNU_SILENT,
                               .to = predictions);
    if (!status)
        keep(name, "predictions", predictions.data, cornu_type_bytes(predictions.type));
    return status;
}
