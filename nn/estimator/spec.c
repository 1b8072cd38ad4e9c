#include "estimator_internal.h"

static void free_callbacks(CornuCallback *const *callbacks, int count)
{
    for (int i = 0; i < count; i++)
        if (callbacks[i] && callbacks[i]->free) callbacks[i]->free(callbacks[i]);
}

/* What the caller has given; names are still the caller's. */
static void free_given(CornuTPUEstimatorSpecConfig *given)
{
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) cornu_loss_free(given->loss[i].loss);
    for (int i = 0; i < CORNU_MAX_METRICS; i++) cornu_metric_free(given->eval_metrics[i].metric);
    cornu_optimizer_free(given->train_op);
    free_callbacks(&given->host_call, 1);
    free_callbacks(given->training_hooks, CORNU_MAX_HOOKS);
    free_callbacks(given->evaluation_hooks, CORNU_MAX_HOOKS);
}

void cornu__spec_free(CornuTPUEstimatorSpec *spec)
{
    if (!spec) return;
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        cornu__release((char *)spec->config.predictions[i].name);
        cornu__release((char *)spec->config.export_outputs[i].name);
    }
    free_given(&spec->config);
    cornu__release(spec);
}

static CornuStatus check_named(const CornuNamedSymbol *symbols, const char *field)
{
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && (symbols[i].name || symbols[i].symbol); i++)
        if (!symbols[i].name || !*symbols[i].name || !symbols[i].symbol)
            return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator_spec: .%s[%d] has no %s", field,
                               i, symbols[i].symbol ? "name" : "symbol");
    return CORNU_OK;
}

static CornuStatus check_compared(const char *field, int i, const void *by, const char *what,
                                  const CornuSymbol *labels, const CornuSymbol *predictions)
{
    if (by && labels && predictions) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator_spec: .%s[%d] has no %s, expected a %s "
                       "and the labels and predictions that it compares", field, i,
                       !by ? what : labels ? "predictions" : "labels", what);
}

static CornuStatus check_spec(const CornuTPUEstimatorSpecConfig *config)
{
    static const char *const modes[] = { NULL, "CORNU_MODE_TRAIN", "CORNU_MODE_EVAL",
                                         "CORNU_MODE_PREDICT" };
    if (config->mode < CORNU_MODE_TRAIN || config->mode > CORNU_MODE_PREDICT)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator_spec: .mode is %d, expected "
                           "CORNU_MODE_TRAIN, CORNU_MODE_EVAL or CORNU_MODE_PREDICT",
                           (int)config->mode);
    CORNU__TRY(check_named(config->predictions, "predictions"));
    CORNU__TRY(check_named(config->export_outputs, "export_outputs"));
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        const CornuSpecLoss *of = &config->loss[i];
        if (of->loss || of->labels || of->predictions)
            CORNU__TRY(check_compared("loss", i, of->loss, "loss", of->labels, of->predictions));
    }
    for (int i = 0; i < CORNU_MAX_METRICS; i++) {
        const CornuSpecMetric *of = &config->eval_metrics[i];
        if (of->metric || of->labels || of->predictions)
            CORNU__TRY(check_compared("eval_metrics", i, of->metric, "metric", of->labels,
                                      of->predictions));
    }
    const char *missing = config->mode == CORNU_MODE_PREDICT
                        ? (config->predictions[0].name ? NULL : "predictions")
                        : !config->loss[0].loss ? "loss"
                        : config->mode == CORNU_MODE_TRAIN && !config->train_op ? "train_op" : NULL;
    if (!missing) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator_spec: .%s is required with %s", missing,
                       modes[config->mode]);
}

static CornuStatus copy_names(CornuNamedSymbol *symbols)
{
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        if (!symbols[i].name) continue;
        symbols[i].name = cornu__copy_text(symbols[i].name);
        if (!symbols[i].name) status = CORNU_ERR_MEMORY;
    }
    return status;
}

CornuTPUEstimatorSpec *cornu_tpu_estimator_spec_from(const CornuTPUEstimatorSpecConfig *config)
{
    CornuTPUEstimatorSpecConfig given = *config;
    CornuTPUEstimatorSpec      *spec = NULL;
    if (!cornu__refused() && !check_spec(config)) spec = cornu__allocate(1, sizeof *spec);
    if (!spec) {
        free_given(&given);
        return cornu__null();
    }
    spec->config = given;
    const CornuStatus predictions = copy_names(spec->config.predictions);
    const CornuStatus exports = copy_names(spec->config.export_outputs);
    if (!predictions && !exports) return spec;
    cornu__spec_free(spec);
    return cornu__null();
}
