/* What a trace holds, shared by trace.c and trace_write.c. */
#ifndef CORNU_NN_TRACE_INTERNAL_H
#define CORNU_NN_TRACE_INTERNAL_H

#include "trace.h"

#include <stdint.h>

enum { CORNU_TRACE_PHASES = 16 };

typedef struct {
    const char *name;
    double      begin_s, end_s;   /* of clock_internal.h, as those of events */
} CornuPhase;

struct CornuTrace {
    int64_t          epoch, step;    /* from 1; 0 in a loop of one's own */
    CornuPhase       phases[CORNU_TRACE_PHASES];
    int              phase_count;
    bool             ended, measuring;
    CornuExecutable *executable;
    CornuStepEvent  *events;
};

#endif
