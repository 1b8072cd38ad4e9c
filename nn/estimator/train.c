/* Training and evaluation. */
#include "estimator_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/text/print.h"
#include "../callbacks/event_file_internal.h"

static void free_hooks(CornuCallback *const hooks[CORNU_MAX_HOOKS])
{
    for (int i = 0; i < CORNU_MAX_HOOKS; i++)
        if (hooks[i] && hooks[i]->free) hooks[i]->free(hooks[i]);
}

/* Moves the hooks of the call, those of the spec, and then two others, to the list. */
static void list_hooks(CornuCallback *to[CORNU_MAX_CALLBACKS],
                       CornuCallback *const given[CORNU_MAX_HOOKS],
                       CornuCallback *of_spec[CORNU_MAX_HOOKS], CornuCallback *a, CornuCallback *b)
{
    int count = 0;
    for (int i = 0; i < CORNU_MAX_HOOKS; i++) to[count++] = given[i];
    for (int i = 0; i < CORNU_MAX_HOOKS; i++) {
        to[count++] = of_spec[i];
        of_spec[i] = NULL;
    }
    to[count++] = a;
    to[count++] = b;
}

/* ---- Training ---- */

/* The step to train to; 0 where it is reached already. */
static CornuStatus find_steps(const CornuEstimatorTrainConfig *config, int64_t *max_steps)
{
    CornuCheckpoints all;
    const bool steps = config->steps > 0, max = config->max_steps > 0;
    if (config->steps < 0 || config->max_steps < 0 || steps == max)
        return cornu__fail(CORNU_ERR_ARGUMENT, "train: .steps is %lld and .max_steps %lld, "
                           "expected one of them, at least 1", (long long)config->steps,
                           (long long)config->max_steps);
    CORNU__TRY(cornu__checkpoints_read(config->estimator->model_dir, &all));
    const int64_t begin = all.count ? all.steps[all.count - 1] : 0;
    cornu__checkpoints_release(&all);
    *max_steps = config->steps ? begin + config->steps : config->max_steps;
    if (*max_steps > begin) return CORNU_OK;
    cornu__log(CORNU_LOG_INFO, "Skipping training since max_steps has already saved.");
    *max_steps = 0;
    return CORNU_OK;
}

static CornuStatus train(const CornuEstimatorTrainConfig *config, int64_t max_steps)
{
    CornuTPUEstimator  *estimator = config->estimator;
    CornuEstimatorModel of;
    CornuCallback      *hook = cornu__estimator_hook(estimator, max_steps);
    CornuStatus         status = hook ? CORNU_OK : cornu_error_take();
    if (!status)
        status = cornu__estimator_model_open(estimator, CORNU_MODE_TRAIN, config->input_fn, false,
                                             &of);
    if (status) {
        free_hooks(config->hooks);
        if (hook) hook->free(hook);
        return status;
    }
    CornuFitConfig fit = { .model = of.model, .data = of.data, .epochs = 1,
                           .verbose = CORNU_SILENT, .steps_per_epoch = max_steps };
    list_hooks(fit.callbacks, config->hooks, of.spec->config.training_hooks,
               of.spec->config.host_call, hook);
    of.spec->config.host_call = NULL;
    CornuHistory *history = cornu_fit_from(&fit);
    status = history ? CORNU_OK : cornu_error_take();
    cornu_history_free(history);
    cornu__estimator_model_close(&of);
    return status;
}

CornuStatus cornu_estimator_train_from(const CornuEstimatorTrainConfig *config)
{
    int64_t     max_steps = 0;
    CornuStatus status = cornu__refused_status();
    if (!status && !config->estimator)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "train: .estimator is required");
    if (!status) status = find_steps(config, &max_steps);
    if (!status && max_steps > 0) return train(config, max_steps);
    free_hooks(config->hooks);
    return status;
}

/* ---- Evaluation ---- */

double cornu_evaluation_get(const CornuEvaluation *results, const char *name)
{
    CORNU__NEED_OR(results, NAN);
    for (int i = 0; i < results->count; i++)
        if (!strcmp(results->items[i].name, name)) return results->items[i].value;
    return NAN;
}

/* The total loss and the metrics, without the losses of outputs. */
static void fill_results(CornuEvaluation *to, const CornuModel *model, const double *values,
                         int64_t step)
{
    *to = (CornuEvaluation){ .global_step = step };
    for (int i = 0; i < model->tracked_count; i++) {
        const CornuTracked *tracked = &model->tracked[i];
        if (i > 0 && !tracked->metric) continue;
        snprintf(to->items[to->count].name, CORNU_RESULT_NAME, "%.*s", CORNU_RESULT_NAME - 1,
                 tracked->metric ? tracked->metric->name : tracked->name);
        to->items[to->count++].value = values[i];
    }
}

static void log_results(const CornuEvaluation *results)
{
    char   text[900];
    size_t at = 0;
    for (int i = 0; i < results->count && at < sizeof text; i++)
        at += (size_t)cornu__format(text + at, sizeof text - at, "%s = %.7g, ",
                                    results->items[i].name, results->items[i].value);
    cornu__log(CORNU_LOG_INFO, "Saving dict for global step %lld: %sglobal_step = %lld",
               (long long)results->global_step, text, (long long)results->global_step);
}

/* Into model_dir/eval, or eval_NAME. */
static CornuStatus write_events(const CornuTPUEstimator *estimator, const char *name,
                                const CornuEvaluation *results)
{
    const size_t size = strlen(estimator->model_dir) + (name ? strlen(name) : 0) + 8;
    char        *folder = cornu__allocate(size, 1);
    if (!folder) return CORNU_ERR_MEMORY;
    snprintf(folder, size, "%s/eval%s%s", estimator->model_dir, name ? "_" : "",
             name ? name : "");
    CornuEventFile *events = cornu__event_file_open(folder);
    CornuStatus     status = events ? CORNU_OK : cornu_error_status();
    for (int i = 0; i < results->count && !status; i++)
        status = cornu__event_file_scalar(events, results->items[i].name, results->global_step,
                                          results->items[i].value);
    if (!status) status = cornu__event_file_flush(events);
    cornu__event_file_close(events);
    cornu__release(folder);
    return status;
}

/* Takes the hooks. */
static CornuStatus evaluate_checkpoint(const CornuEstimatorEvaluateConfig *config,
                                       CornuEstimatorModel *of, CornuEvaluation *results)
{
    int64_t             step;
    CornuEvaluateConfig evaluate = { .model = of->model, .data = of->data, .steps = config->steps,
                                     .verbose = CORNU_SILENT };
    CornuStatus status = cornu__checkpoint_load(config->estimator, config->checkpoint_path,
                                                of->model, "evaluate", &step);
    double *values = status ? NULL : cornu__allocate(
        (size_t)cornu_model_metric_count(of->model), sizeof *values);
    if (!values) {
        free_hooks(config->hooks);
        return status ? status : CORNU_ERR_MEMORY;
    }
    evaluate.results = values;
    list_hooks(evaluate.callbacks, config->hooks, of->spec->config.evaluation_hooks, NULL, NULL);
    status = cornu_evaluate_from(&evaluate);
    if (!status) fill_results(results, of->model, values, step);
    cornu__release(values);
    return status;
}

static CornuStatus evaluate(const CornuEstimatorEvaluateConfig *config)
{
    CornuEstimatorModel of;
    CornuEvaluation     results;
    const CornuStatus   status = cornu__estimator_model_open(config->estimator, CORNU_MODE_EVAL,
                                                             config->input_fn, false, &of);
    if (status) {
        free_hooks(config->hooks);
        return status;
    }
    const CornuStatus ran = evaluate_checkpoint(config, &of, &results);
    cornu__estimator_model_close(&of);
    CORNU__TRY(ran);
    log_results(&results);
    if (config->results) *config->results = results;
    return write_events(config->estimator, config->name, &results);
}

CornuStatus cornu_estimator_evaluate_from(const CornuEstimatorEvaluateConfig *config)
{
    CornuStatus status = cornu__refused_status();
    if (!status && !config->estimator)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "evaluate: .estimator is required");
    if (!status && config->steps < 0)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "evaluate: .steps is %lld, expected at least 1",
                             (long long)config->steps);
    if (!status && config->name && (!*config->name || strchr(config->name, '/')))
        status = cornu__fail(CORNU_ERR_ARGUMENT, "evaluate: .name is \"%s\", expected a part of "
                             "the name of a folder", config->name);
    if (!status) return evaluate(config);
    free_hooks(config->hooks);
    return status;
}
