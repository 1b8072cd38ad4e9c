/* The step on invented data: the time of each part of it. */
#include <stdlib.h>
#include <string.h>

#include "explain_internal.h"

enum { LONG_S = 20 };   /* of all runs that are measured */

/* ---- Data ---- */

/* Pseudo-random: whole numbers from 0 to `below`, or with 0 numbers from 0 to 1; they hardly affect
 * the time. */
static CornuArray invent(CornuType type, int64_t below)
{
    const int64_t    count = cornu_type_count(type);
    const CornuArray array = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    for (int64_t i = 0; array.data && i < count; i++) {
        const int64_t number = i % 1000003 * 7919 % 65521;
        cornu_array_set(array, i, below ? (double)(number * (below / 65521 + 1) % below)
                                        : (double)number / 65521.0);
    }
    return array;
}

/* Rows of a table; pixels; else 0 and 1, which masks and types of tokens are. */
static int64_t below_of(const CornuModelTypes *probe, int i, CornuType type)
{
    return probe->rows_of[i]                ? probe->rows_of[i]
         : cornu_dtype_is_float(type.dtype) ? 0
         : type.dtype == CORNU_U8           ? 256 : 2;
}

typedef struct {
    CornuArray x[CORNU_MAX_MODEL_TENSORS], y[CORNU_MAX_MODEL_TENSORS];
    CornuArray to[CORNU_MAX_MODEL_TENSORS];   /* of predictions */
    int        x_count, y_count, to_count;
} Data;

static void free_data(Data *data)
{
    for (int i = 0; i < data->x_count; i++) cornu__release(data->x[i].data);
    for (int i = 0; i < data->y_count; i++) cornu__release(data->y[i].data);
    for (int i = 0; i < data->to_count; i++) cornu__release(data->to[i].data);
}

static CornuStatus invent_all(const CornuExplanation *e, Data *data)
{
    const CornuStep  *step = e->subject.step;
    const CornuModel *model = e->subject.model;
    bool              failed = false;
    for (int i = 0; i < step->x_count; i++) {
        const CornuType type = step->x_types[i];
        data->x[data->x_count++] = invent(type, below_of(&e->probe, i, type));
        failed |= !data->x[i].data;
    }
    for (int i = 0; i < step->y_count && e->trains; i++) {
        const CornuShape out = e->probe.outputs[i].shape;
        const CornuLoss *loss = model->losses[i];
        const bool whole = !cornu_dtype_is_float(step->y_types[i].dtype) ||
                           (loss && loss->kind && loss->kind->whole_labels);
        data->y[data->y_count++] = invent(step->y_types[i],
                                          whole && out.rank ? out.extent[out.rank - 1] : 0);
        failed |= !data->y[i].data;
    }
    for (int i = 0; i < step->y_count && !e->trains; i++) {
        data->to[data->to_count++] = invent(step->outputs[i], 1);
        failed |= !data->to[i].data;
    }
    return failed ? CORNU_ERR_MEMORY : CORNU_OK;
}

/* ---- Times ---- */

typedef struct {
    const CornuStepEvent *events;
    double                begin_s, wall_s;
} Run;

/* From the start of the first step to the end of the last one. */
static Run read_run(const CornuStepEvent *events, int count)
{
    double begin = 0.0, end = 0.0;
    for (int i = 0; i < count; i++) {
        if (events[i].begin_s > 0.0 && (begin == 0.0 || events[i].begin_s < begin))
            begin = events[i].begin_s;
        if (events[i].end_s > end) end = events[i].end_s;
    }
    return (Run){ .events = events, .wall_s = end - begin };
}

static int by_wall(const void *a, const void *b)
{
    const double x = ((const Run *)a)->wall_s, y = ((const Run *)b)->wall_s;
    return (x > y) - (x < y);
}

static CornuStatus run_once(const CornuExplanation *e, Data *data)
{
    CORNU__TRY(cornu__step_feed(e->subject.step, &(CornuArrays){ .x = data->x, .y = data->y },
                                e->batch));
    CORNU__TRY(cornu__step_run(e->subject.step, data->to));
    return cornu_device_wait(e->device);
}

/* If numbers are out of a table's range that was not seen, all are zeros. */
static CornuStatus warm_up(CornuExplanation *e, Data *data)
{
    CornuStatus status = run_once(e, data);
    if (status != CORNU_ERR_VALUE) return status;
    for (int i = 0; i < data->x_count; i++)
        memset(data->x[i].data, 0, cornu_type_bytes(data->x[i].type));
    status = run_once(e, data);
    if (!status) cornu__explain_note(e, "It is measured on zeros: it refuses random numbers.");
    return status;
}

/* Runs it up to `most` times after a first one, and keeps the median run. */
static CornuStatus measure(CornuExplanation *e, Data *data, CornuStepEvent *events, Run *runs,
                           int most)
{
    const int count = cornu_executable_event_count(e->executable);
    CORNU__TRY(warm_up(e, data));
    const double begin = cornu__seconds();
    CornuStatus  status = CORNU_OK;
    for (; !status && e->runs < most; e->runs++) {
        if (e->runs && cornu__seconds() - begin > LONG_S) break;
        CornuStepEvent *now = events + (size_t)e->runs * (size_t)count;
        cornu_executable_record(e->executable, now);
        status = run_once(e, data);
        runs[e->runs] = read_run(now, count);
    }
    cornu_executable_record(e->executable, NULL);
    if (status) return status;
    qsort(runs, (size_t)e->runs, sizeof *runs, by_wall);
    const Run *median = &runs[e->runs / 2];
    cornu_executable_shares(e->executable, median->events, e->here_s);
    e->wall_s = median->wall_s;
    e->clock = median->events->clock;
    e->events = cornu__allocate((size_t)count, sizeof *e->events);
    if (!e->events) return CORNU_ERR_MEMORY;
    memcpy(e->events, median->events, (size_t)count * sizeof *e->events);
    return CORNU_OK;
}

CornuStatus cornu__explain_measure(CornuExplanation *e)
{
    const size_t most = e->config.steps ? (size_t)e->config.steps : 5;
    const size_t count = (size_t)cornu_executable_event_count(e->executable);
    Data         data = { .x_count = 0 };
    CornuStepEvent *events = cornu__allocate(most * count + 1, sizeof *events);
    Run            *runs = cornu__allocate(most, sizeof *runs);
    CornuStatus     status = events && runs ? invent_all(e, &data) : CORNU_ERR_MEMORY;
    if (!status) status = measure(e, &data, events, runs, (int)most);
    free_data(&data);
    cornu__release(events);
    cornu__release(runs);
    return status;
}
