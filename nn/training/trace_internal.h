/* A trace, for trace.c and trace_write.c. */
#ifndef CORNU_NN_TRACE_INTERNAL_H
#define CORNU_NN_TRACE_INTERNAL_H

#include "trace.h"

#include "../../device/tpu/model.h"

#include <stdint.h>

#include <jansson.h>

enum { CORNU_TRACE_PHASES = 16 };

typedef struct {
    const char *name;
    double      begin_s, end_s;   /* of clock_internal.h, as those of events */
} CornuPhase;

struct CornuTrace {
    int64_t          epoch, step;    /* from 1: which one to trace; 0 in a custom loop */
    CornuPhase       phases[CORNU_TRACE_PHASES];
    int              phase_count;
    bool             ended, measuring;
    CornuExecutable *executable;
    CornuStepEvent  *events;
    CornuExchangeEvent *exchanges;   /* as the step's end finds them */
    int                 exchange_count;
};

/* The trace if it traces step i (from 0) of the epoch, else NULL. */
static inline CornuTrace *cornu__trace_of(CornuTrace *trace, int64_t i)
{
    return trace && trace->step == i + 1 ? trace : NULL;
}

/* cornu_trace_phase unless the trace is NULL. */
static inline void cornu__phase(CornuTrace *trace, const char *name)
{
    if (trace) cornu_trace_phase(trace, name);
}

/* Makes *own, which is NULL or one that this has made, the trace of a step of the model. Only one
 * callback traces at a time: CORNU_ERR_ARGUMENT if another one does. And ends that. */
CornuStatus cornu__trace_arm(CornuModel *model, CornuTrace **own, int64_t epoch, int64_t step);
void        cornu__trace_disarm(CornuModel *model, CornuTrace **own);

/* ---- What a trace has (trace_events.c) ---- */

/* Tracks of the step as modelled. */
enum { CORNU_TRACE_MXU, CORNU_TRACE_VECTOR, CORNU_TRACE_HBM, CORNU_TRACE_LINKS, CORNU_TRACE_INFEED,
       CORNU_TRACE_HOST, CORNU_TRACE_UNITS };

typedef struct {
    int         track;               /* a thread, after them the exchanges; or one of the units */
    const char *category, *name;     /* "host", "segment", "step", "part" of another thread's step,
                                        "exchange", "modelled"; the name may be on the stack */
    double      begin_s, end_s;
    bool        whole;               /* the step itself, around its phases */
    int         index;               /* of the executable's step */
    const CornuExecutableStep *step;       /* or NULL */
    const CornuStepEvent      *measured;   /* of a step that ran; or NULL */
    const CornuExchangeEvent  *exchange;   /* or NULL */
    const CornuTpuOp          *op;         /* of a step as modelled; or NULL */
} CornuTraceEvent;

typedef struct {
    void  *context;
    void (*name)(void *context, int track, const char *name);   /* before its events, but "host" */
    void (*event)(void *context, const CornuTraceEvent *event);
} CornuTraceSink;

/* What this process measured. */
CornuStatus cornu__trace_measured(const CornuTrace *trace, const CornuTraceSink *sink);

/* *model, the caller's: what the step is on the TPU that its device emulates; NULL on others. Then
 * a replica's step as modelled, from the host's dispatch on. */
CornuStatus cornu__trace_model(const CornuTrace *trace, CornuTpuModel **model);
void        cornu__trace_modelled(const CornuTrace *trace, const CornuTpuModel *model,
                                  double begin_s, const CornuTraceSink *sink);

/* ---- Files (trace_write.c, trace_ranks.c) ---- */

/* When the first event begins. Some viewers drop what is before time 0 of a file. */
double cornu__trace_begin(const CornuTrace *trace);

/* The events of the trace's process, and on rank 0 of the modelled one; time 0 is zero_s. The
 * caller drops *events, also after a failure. */
CornuStatus cornu__trace_events(const CornuTrace *trace, double zero_s, json_t **events);
CornuStatus cornu__trace_write_events(json_t *events, const char *path);

/* cornu_trace_write of all ranks that share the executable's device, at once: rank 0 writes a file
 * with a process for each of them. If it cannot, the others do not know. */
CornuStatus cornu__trace_write_together(const CornuTrace *trace, const char *path);

#endif
