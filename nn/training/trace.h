/*
 * Traces: the timeline of one training step, in a file for Perfetto (ui.perfetto.dev) and
 * chrome://tracing.
 *
 *     cornu_fit(model, train, .epochs = 12, .callbacks = { cornu_trace("step.json") });
 *
 * One process has a track for each thread, with measured times: the step; in it the phases of the
 * main thread (wait for the batch, infeed, run, outfeed, callbacks); in those the segments of the
 * shards and the steps of the executable. Steps are timed by wall clock, or on a pjrt device by the
 * profiler of its plugin if that has one; the name of the process and the argument "clock" of each
 * step say which. On a device that emulates a TPU a second process, "modelled: v2-8, one replica",
 * has a track for each unit of the TPU: its times come from a model.
 *
 * Of several processes that train together rank 0 writes the callback's file, in which each rank is
 * a process, "rank 2 of 4, measured: ...". Clocks of several machines are set by an exchange, to
 * within the time that one takes; cornu_trace_write writes the steps of its own rank alone, if that
 * is 0, without an exchange.
 *
 * Each of them has a track "exchanges": what the executable exchanges with the others, and when the
 * thread that does so was at it, beside the steps that go on meanwhile. Of a gather that is left
 * to the next step, that of the step before is shown.
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

/* Measures the last step but one of each epoch, and writes the last step measured when training
 * ends. The other steps are not measured. Fails at once if the file cannot be written; to find out
 * before a model exists, call cornu_file_check (file.h). */
CornuCallback *cornu_trace_from(const CornuTraceConfig *config);
#define cornu_trace(...) cornu_trace_from(&(CornuTraceConfig){ .unset = 0, __VA_ARGS__ })

/* ---- In a custom loop ----
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

/* A trace of one step, which begins with its first phase. */
CornuTrace *cornu_trace_create(void);
/* Once; NULL is ignored. */
void        cornu_trace_free(CornuTrace *trace);

/* Begins a phase of the calling thread, which ends the one before; NULL ends the step. The name is
 * not copied. The 16th phase lasts to the end of the step. */
void cornu_trace_phase(CornuTrace *trace, const char *name);

/* Begins the phase "run" and measures the executable, which is to run once, until the step ends.
 * Allocates memory; the run itself does not. */
CornuStatus cornu_trace_run(CornuTrace *trace, CornuExecutable *executable);

/* CORNU_ERR_ARGUMENT unless the step has ended and an executable ran in it; CORNU_ERR_FILE. The
 * executable's graph and device must still exist. */
CornuStatus cornu_trace_write(const CornuTrace *trace, const char *path);

#ifdef __cplusplus
}
#endif
#endif
