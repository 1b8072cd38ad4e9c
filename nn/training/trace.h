/*
 * Traces: what one training step did when, as a file that Perfetto (ui.perfetto.dev) and
 * chrome://tracing open.
 *
 *     cornu_fit(model, train, .epochs = 12, .callbacks = { cornu_trace("step.json") });
 *
 * One process has a track for each thread, of times measured here: the step, in it what the main
 * thread does (wait for the batch, infeed, run, outfeed, callbacks), in that the segments of the
 * shards and the steps of the executable. On a device that emulates a TPU a second process,
 * "modelled: v2-8, one replica", has a track for each of its units: nothing of it was measured.
 *
 * Format: "Trace Event Format", the JSON object with "traceEvents"; ts and dur in microseconds.
 */
#ifndef CORNU_NN_TRACE_H
#define CORNU_NN_TRACE_H

#include "../../device/device.h"
#include "../model/callback.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- In fit ---- */

typedef struct {
    char        unset;
    const char *path;    /* required; copied */
} CornuTraceConfig;

/* Measures one step in each epoch, its last but one, and writes the last of them when the training
 * ends. The other steps are not measured. Fails at once if the file cannot be written;
 * cornu_file_check (file.h) asks that even before the model is there. */
CornuCallback *cornu_trace_from(const CornuTraceConfig *config);
#define cornu_trace(...) cornu_trace_from(&(CornuTraceConfig){ .unset = 0, __VA_ARGS__ })

/* ---- In a loop of one's own ----
 *
 *     CornuTrace *trace = cornu_trace_create();
 *     cornu_trace_phase(trace, "infeed");
 *     cornu_graph_feed(x, batch);
 *     cornu_trace_run(trace, cornu_graph_executable(graph));
 *     cornu_run(graph, NULL, 0, NULL);
 *     cornu_trace_phase(trace, NULL);
 *     cornu_trace_write(trace, "step.json");
 *     cornu_trace_free(trace);
 */

typedef struct CornuTrace CornuTrace;

/* Of one step, which begins with its first phase. */
CornuTrace *cornu_trace_create(void);
void        cornu_trace_free(CornuTrace *trace);

/* What the calling thread does from now on; NULL ends the step. The text is kept, not copied. Of
 * more than 16 phases the last goes on to the end. */
void cornu_trace_phase(CornuTrace *trace, const char *name);

/* Begins the phase "run", in which the executable runs once, and measures that until the step
 * ends. Takes memory: the run itself does not. */
CornuStatus cornu_trace_run(CornuTrace *trace, CornuExecutable *executable);

/* CORNU_ERR_ARGUMENT unless the step has ended and something ran in it; CORNU_ERR_FILE. What ran
 * must still be there: its graph, its device. */
CornuStatus cornu_trace_write(const CornuTrace *trace, const char *path);

#ifdef __cplusplus
}
#endif
#endif
