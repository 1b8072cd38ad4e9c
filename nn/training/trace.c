/* A traced step: trace_write.c writes it, callbacks/trace_callback.c chooses it. */
#include "../../device/system/clock_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"
#include "../model/model_internal.h"
#include "trace_internal.h"

CornuTrace *cornu_trace_create(void)
{
    if (cornu__refused()) return NULL;
    CornuTrace *trace = cornu__allocate(1, sizeof *trace);
    return trace ? trace : cornu__null();
}

/* Later runs of the executable are not part of this trace. */
static void stop_measuring(CornuTrace *trace)
{
    if (!trace->measuring) return;
    int                       count;
    const CornuExchangeEvent *all = cornu_executable_exchanges(trace->executable, &count);
    cornu_executable_record(trace->executable, NULL);
    trace->measuring = false;
    for (int i = 0; i < trace->exchange_count; i++) trace->exchanges[i] = all[i];
}

void cornu_trace_free(CornuTrace *trace)
{
    if (!trace) return;
    stop_measuring(trace);
    cornu__release(trace->events);
    cornu__release(trace->exchanges);
    cornu__release(trace);
}

CornuStatus cornu__trace_arm(CornuModel *model, CornuTrace **own, int64_t epoch, int64_t step)
{
    if (model->trace && model->trace != *own)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: two callbacks trace steps, cornu_trace or the "
                           "profile of TensorBoard; expected one", model->base.name);
    cornu__trace_disarm(model, own);
    *own = cornu_trace_create();
    if (!*own) return cornu_error_take();
    (*own)->epoch = epoch;
    (*own)->step = step;
    model->trace = *own;
    return CORNU_OK;
}

void cornu__trace_disarm(CornuModel *model, CornuTrace **own)
{
    if (model && model->trace == *own) model->trace = NULL;
    cornu_trace_free(*own);
    *own = NULL;
}

void cornu_trace_phase(CornuTrace *trace, const char *name)
{
    CORNU__NEED_OR(trace, );
    const double now = cornu__seconds();
    if (trace->ended || (name && trace->phase_count == CORNU_TRACE_PHASES)) return;
    if (trace->phase_count > 0) trace->phases[trace->phase_count - 1].end_s = now;
    if (name) {
        trace->phases[trace->phase_count++] = (CornuPhase){ name, now, now };
        return;
    }
    stop_measuring(trace);
    trace->ended = true;
}

CornuStatus cornu_trace_run(CornuTrace *trace, CornuExecutable *executable)
{
    CORNU__NEED(trace);
    CORNU__NEED(executable);
    stop_measuring(trace);
    cornu__release(trace->events);
    cornu__release(trace->exchanges);
    trace->events = cornu__allocate((size_t)cornu_executable_event_count(executable),
                                    sizeof *trace->events);
    cornu_executable_exchanges(executable, &trace->exchange_count);
    trace->exchanges = cornu__allocate((size_t)trace->exchange_count, sizeof *trace->exchanges);
    if (!trace->events || !trace->exchanges) return CORNU_ERR_MEMORY;
    trace->executable = executable;
    trace->measuring = true;
    cornu_executable_record(executable, trace->events);
    cornu_trace_phase(trace, "run");
    return CORNU_OK;
}
