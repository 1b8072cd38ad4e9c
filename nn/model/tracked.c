/* The losses and metrics of a compiled model: their names in logs, and their results. */
#include <stdio.h>
#include <string.h>

#include "../metrics/metric_internal.h"
#include "model_internal.h"

/* ---- Names ---- */

static bool is_tracked(const CornuModel *model, const char *name)
{
    for (int i = 0; i < model->tracked_count; i++)
        if (!strcmp(model->tracked[i].name, name)) return true;
    return false;
}

/* "scores_loss" for one of several outputs, "loss" else. A name in use becomes "weighted_…" for a
 * weighted metric, then gets a number. NULL when out of memory. Source:
 * keras/src/trainers/compile_utils.py, CompileMetrics.result. */
static char *free_name(const CornuModel *model, const char *what, int output, bool weighted)
{
    static const char mark[] = "weighted_";
    const bool   prefixed = model->output_count > 1 && output >= 0;
    const char  *of = prefixed ? cornu__output_name(model, output) : "";
    const char  *line = prefixed ? "_" : "";
    const size_t space = strlen(of) + sizeof mark + strlen(what) + 16;
    char        *name = cornu__allocate(space, 1);
    if (!name) return NULL;
    int length = snprintf(name, space, "%s%s%s", of, line, what);
    if (weighted && is_tracked(model, name))
        length = snprintf(name, space, "%s%s%s%s", of, line, mark, what);
    for (int n = 1; is_tracked(model, name); n++)
        snprintf(name + length, space - (size_t)length, "_%d", n);
    return name;
}

/* Takes the metric, also on failure: once all are listed, uncompiling frees them. */
static void add_tracked(CornuModel *model, const char *what, CornuMetric *metric, int output,
                        bool weighted, CornuStatus *status)
{
    model->valid_rows |= metric && metric->valid_rows;
    char *name = *status ? NULL : free_name(model, what, output, weighted);
    if (!name) {
        if (!*status) *status = CORNU_ERR_MEMORY;
        cornu_metric_free(metric);
        return;
    }
    model->tracked[model->tracked_count++] = (CornuTracked){
        .name = name, .metric = metric, .output = output, .weighted = weighted,
        .trained = !cornu__model_has_own(model, CORNU_STEP_TRAIN),
        .tested = !cornu__model_has_own(model, CORNU_STEP_TEST) };
}

/* Logs of the own step, those of a step that is not the model's own beside them. */
static void add_own(CornuModel *model, CornuStatus *status)
{
    for (int i = 0; i < CORNU_MAX_STEP_LOGS && model->own && model->own->logs[i]; i++) {
        const char *name = model->own->logs[i];
        if (is_tracked(model, name)) continue;
        add_tracked(model, name, NULL, -1, false, status);
        if (*status) return;
        CornuTracked *log = &model->tracked[model->tracked_count - 1];
        log->own = true;
        log->trained = log->tested = false;
    }
}

CornuTracked *cornu__model_own_log(CornuModel *model, const char *name)
{
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < model->tracked_count; i++)
        if (!strcmp(model->tracked[i].name, name)) return &model->tracked[i];
    if (!model->own->more_logs)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: its step logs \"%s\", which is not among "
                                "the .logs of the CornuOwnStep", model->base.name, name);
    if (model->own_logs == CORNU_MAX_STEP_LOGS)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: its step logs \"%s\" besides %d others, "
                                "expected %d at most", model->base.name, name, model->own_logs,
                                CORNU_MAX_STEP_LOGS);
    add_tracked(model, name, NULL, -1, false, &status);
    if (status) return cornu__null();
    model->own_logs++;
    CornuTracked *log = &model->tracked[model->tracked_count - 1];
    log->own = true;
    log->trained = log->tested = false;
    return log;
}

static int metric_count(CornuMetric *const metrics[CORNU_MAX_METRICS])
{
    int count = 0;
    while (count < CORNU_MAX_METRICS && metrics[count]) count++;
    return count;
}

CornuStatus cornu__track_all(CornuModel *model, CornuMetric *const *const *metrics,
                             CornuMetric *const *const *weighted_metrics, bool gradient_norm)
{
    int count = 2, losses = 0;
    for (int i = 0; i < model->output_count; i++) {
        losses += model->losses[i] != NULL;
        count += 1 + metric_count(metrics[i]) + metric_count(weighted_metrics[i]);
    }
    if (model->own) count += 2 * CORNU_MAX_STEP_LOGS;   /* they stay where they are */
    model->tracked = cornu__allocate((size_t)count, sizeof *model->tracked);
    CornuStatus status = model->tracked ? CORNU_OK : CORNU_ERR_MEMORY;
    const bool  own = cornu__model_has_own(model, CORNU_STEP_TRAIN) ||
                     cornu__model_has_own(model, CORNU_STEP_TEST);
    if (losses > 0 || !own) add_tracked(model, "loss", NULL, -1, false, &status);
    for (int i = 0; i < model->output_count && losses > 1; i++)
        if (model->losses[i]) add_tracked(model, "loss", NULL, i, false, &status);
    for (int n = 0; n < 2 * model->output_count; n++) {   /* weighted ones last */
        const int  i = n % model->output_count;
        const bool weighted = n >= model->output_count;
        CornuMetric *const *of = weighted ? weighted_metrics[i] : metrics[i];
        for (int k = 0; k < metric_count(of); k++)
            add_tracked(model, of[k]->name, of[k], i, weighted, &status);
    }
    add_own(model, &status);
    if (!gradient_norm) return status;
    add_tracked(model, "gradient_norm", NULL, -1, false, &status);
    if (status) return status;
    model->gradient_norm = &model->tracked[model->tracked_count - 1];
    model->gradient_norm->tested = false;
    return CORNU_OK;
}

bool cornu_model_metric_shown(const CornuModel *model, int i, bool training)
{
    CORNU__NEED_OR(model, false);
    CORNU__NEED_INDEX(i, model->tracked_count, false);
    return training ? model->tracked[i].trained : model->tracked[i].tested;
}

/* ---- Reading losses and metrics ---- */

static CornuStatus read_states(const CornuTracked *tracked)
{
    for (int s = 0; s < tracked->state_count; s++)
        CORNU__TRY(cornu_variable_read(tracked->states[s], tracked->host[s]));
    return CORNU_OK;
}

static double result_of(const CornuTracked *tracked)
{
    return tracked->metric ? tracked->metric->result(tracked->metric, tracked->host)
                           : cornu__mean_result(tracked->host);
}

CornuStatus cornu__metrics_read(CornuModel *model, double *values)
{
    for (int i = 0; i < model->tracked_count; i++) {
        CORNU__TRY(read_states(&model->tracked[i]));
        /* no states: nothing has run yet */
        values[i] = model->tracked[i].state_count ? result_of(&model->tracked[i]) : 0.0;
    }
    return CORNU_OK;
}

/* Metric i with its states read; NULL if it does not exist, or before the first step. */
static const CornuTracked *read_metric(const CornuModel *model, int i)
{
    if (cornu__model_check(model)) return cornu__null();
    if (i < 0 || i >= model->tracked_count)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: there is no metric %d, expected 0 to %d",
                                model->base.name, i, model->tracked_count - 1);
    const CornuTracked *tracked = &model->tracked[i];
    if (tracked->state_count == 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: the metric %s has no result before the "
                                "first step", model->base.name, tracked->name);
    return read_states(tracked) ? cornu__null() : tracked;
}

int64_t cornu_model_metric_size(const CornuModel *model, int i)
{
    CORNU__NEED_OR(model, 0);
    CORNU__NEED_INDEX(i, model->tracked_count, 0);
    const CornuMetric *metric = model->tracked[i].metric;
    return metric && metric->result_at ? metric->result_count : 1;
}

static CornuStatus metric_result(CornuModel *model, int i, double *result, int64_t count)
{
    const CornuTracked *tracked = read_metric(model, i);
    if (!tracked) return cornu_error_take();
    const int64_t size = cornu_model_metric_size(model, i);
    if (count < 0 || count > size)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %lld values of %s requested, expected at most "
                           "%lld", model->base.name, (long long)count, tracked->name,
                           (long long)size);
    const bool vector = tracked->metric && tracked->metric->result_at;
    for (int64_t k = 0; k < count; k++)
        result[k] = vector ? tracked->metric->result_at(tracked->metric, tracked->host, k)
                           : result_of(tracked);
    return CORNU_OK;
}

CornuStatus cornu_model_metric_result(CornuModel *model, int i, double *result, int64_t count)
{
    CORNU__NEED(result);
    CORNU__WITHIN(model, "cornu_model_metric_result", metric_result(model, i, result, count));
}

static CornuStatus metric_state(CornuModel *model, int i, int state, CornuArray *array)
{
    const CornuTracked *tracked = read_metric(model, i);
    if (!tracked) return cornu_error_take();
    if (state < 0 || state >= tracked->state_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s has no state %d, expected 0 to %d",
                           model->base.name, tracked->name, state, tracked->state_count - 1);
    *array = tracked->host[state];
    return CORNU_OK;
}

CornuStatus cornu_model_metric_state(CornuModel *model, int i, int state, CornuArray *array)
{
    CORNU__NEED(array);
    CORNU__WITHIN(model, "cornu_model_metric_state", metric_state(model, i, state, array));
}

static CornuStatus reset_metrics(CornuModel *model)
{
    CORNU__TRY(cornu__model_check(model));
    for (int i = 0; i < model->tracked_count; i++) {
        const CornuTracked *tracked = &model->tracked[i];
        for (int s = 0; s < tracked->state_count; s++) {
            memset(tracked->host[s].data, 0, cornu_type_bytes(tracked->host[s].type));
            CORNU__TRY(cornu_variable_write(tracked->states[s], tracked->host[s]));
        }
    }
    return CORNU_OK;
}

CornuStatus cornu_model_reset_metrics(CornuModel *model)
{
    CORNU__WITHIN(model, "cornu_model_reset_metrics", reset_metrics(model));
}
