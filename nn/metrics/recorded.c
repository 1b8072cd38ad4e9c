/* Metrics of steps that are recorded by hand: their states. */
#include "metric_internal.h"

#include <string.h>

struct CornuMetricStates {
    CornuMetric   *metric;
    CornuDevice   *device;
    int            count;                        /* 0 until the first update is recorded */
    CornuVariable *variables[CORNU_MAX_STATES];
    CornuArray     host[CORNU_MAX_STATES];
};

CornuMetricStates *cornu_metric_states_create(CornuMetric *metric, CornuDevice *device)
{
    CORNU__NEED_TO_MAKE(metric);
    CORNU__NEED_TO_MAKE(device);
    CornuMetricStates *states = cornu__allocate(1, sizeof *states);
    if (!states) return cornu__null();
    states->metric = metric;
    states->device = device;
    return states;
}

static void free_variables(CornuMetricStates *states)
{
    for (int i = 0; i < CORNU_MAX_STATES; i++) {
        cornu_variable_free(states->variables[i]);
        cornu__release(states->host[i].data);
        states->variables[i] = NULL;
        states->host[i].data = NULL;
    }
    states->count = 0;
}

void cornu_metric_states_free(CornuMetricStates *states)
{
    if (!states) return;
    free_variables(states);
    cornu__release(states);
}

/* All or none. */
static CornuStatus make_variables(CornuMetricStates *states)
{
    const CornuMetric *metric = states->metric;
    const int          count = metric->state_count;
    if (states->count > 0) return CORNU_OK;
    if (count < 1 || count > CORNU_MAX_STATES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "metric %s has %d states, expected 1 to %d",
                           metric->name, count, CORNU_MAX_STATES);
    for (int i = 0; i < count; i++) {
        const CornuType type = metric->states[i];
        states->host[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
        states->variables[i] = cornu_variable_create(states->device, type, metric->name);
        if (states->variables[i] && states->host[i].data) continue;
        free_variables(states);
        return cornu_error_pending() ? cornu_error_take() : CORNU_ERR_MEMORY;
    }
    states->count = count;
    return CORNU_OK;
}

CornuStatus cornu_metric_states_record(CornuMetricStates *states, CornuTensor *y_true,
                                       CornuTensor *y_pred, CornuTensor *sample_weight)
{
    CornuTensor    *old[CORNU_MAX_STATES], *new_states[CORNU_MAX_STATES] = { 0 };
    CornuMetricCall call;
    CORNU__NEED(states);
    if (!y_true || !y_pred) return cornu__fail(CORNU_ERR_ARGUMENT, "%s: no tensor given",
                                               states->metric->name);
    CornuMetric *metric = states->metric;
    if (!cornu__recorded_batch(metric->name, y_true, y_pred, sample_weight, &call))
        return cornu_error_take();
    if (metric->build)
        CORNU__TRY(metric->build(metric, cornu_tensor_shape(y_true), cornu_tensor_shape(y_pred)));
    CORNU__TRY(make_variables(states));
    for (int i = 0; i < states->count; i++)
        old[i] = cornu_read_assigned(cornu_tensor_graph(y_pred), states->variables[i]);
    const CornuStatus status = metric->update(metric, &call, old, new_states);
    if (cornu_error_pending()) return cornu_error_take();
    CORNU__TRY(status);
    for (int i = 0; i < states->count; i++)
        CORNU__TRY(cornu_assign(states->variables[i], new_states[i]));
    return CORNU_OK;
}

int64_t cornu_metric_states_count(const CornuMetricStates *states)
{
    CORNU__NEED_OR(states, 0);
    return states->metric->result_at && states->count > 0 ? states->metric->result_count : 1;
}

CornuStatus cornu_metric_states_result(CornuMetricStates *states, double *values)
{
    CORNU__NEED(states);
    CORNU__NEED(values);
    const CornuMetric *metric = states->metric;
    *values = 0.0;
    if (states->count == 0) return CORNU_OK;
    for (int i = 0; i < states->count; i++)
        CORNU__TRY(cornu_variable_read(states->variables[i], states->host[i]));
    if (!metric->result_at) *values = metric->result(metric, states->host);
    for (int64_t i = 0; metric->result_at && i < metric->result_count; i++)
        values[i] = metric->result_at(metric, states->host, i);
    return CORNU_OK;
}

CornuStatus cornu_metric_states_reset(CornuMetricStates *states)
{
    CORNU__NEED(states);
    for (int i = 0; i < states->count; i++) {
        memset(states->host[i].data, 0, cornu_type_bytes(states->host[i].type));
        CORNU__TRY(cornu_variable_write(states->variables[i], states->host[i]));
    }
    return CORNU_OK;
}
