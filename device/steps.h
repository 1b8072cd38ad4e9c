/*
 * What a device made of a program: the steps that it runs, the kernels that it chose, and the time
 * that a run spent in each.
 *
 *     cornu_executable_record(executable, events);
 *     cornu_executable_run(executable, inputs, outputs);
 *     cornu_executable_shares(executable, events, seconds);
 */
#ifndef CORNU_DEVICE_STEPS_H
#define CORNU_DEVICE_STEPS_H

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuExecutable CornuExecutable;   /* device.h */

/* The program that the steps compute: the one compiled, after the device's passes. */
const CornuProgram *cornu_executable_program(const CornuExecutable *executable);

/* The program given to cornu_device_compile; of the ops of cornu_executable_program, `origin` is
 * the number of the op in it that they come from. */
const CornuProgram *cornu_executable_recorded(const CornuExecutable *executable);

/* ---- Steps ---- */

/* One step of a run. */
typedef struct {
    const char      *name;        /* "conv2d+max_pool2d+bias+relu": the ops it computes */
    const char      *kind;        /* "kernel", "group" (elementwise ops in one pass), "collective"
                                     (between shards), "pack" (lays out an operand for a kernel of
                                     this machine), "copy", "sum" (of many shards' values, as they
                                     are done), "send" and "wait" (for other processes),
                                     "reference" (a fallback) */
    const char      *scope;       /* the layer that recorded it, "conv2d_1", "dense/gradient"; "" */
    const int       *ops;         /* of the compiled program, ascending; none for a copy, a pack */
    int              op_count;
    const CornuType *in, *out;    /* the values it reads and writes in memory; none if they are in
                                     place already */
    int              in_count, out_count;
    bool             per_shard;   /* each shard runs it on its own values; else it runs once */
    int64_t          flops, bytes_read, bytes_written;   /* of one run of the step */
    const char      *kernel;      /* the device's kernel that runs, or that it packs for, by name:
                                     "conv2d_winograd"; "" for other steps */
} CornuExecutableStep;

/* The steps in the order in which they run; *count is how many. The executable owns them. */
const CornuExecutableStep *cornu_executable_steps(const CornuExecutable *executable, int *count);

/* A kernel that the op of a step might run by, and why it declined the call: "needs 3 x 3 or 5 x 5
 * taps", "costs 1.30 of conv2d_direct, estimated (at most 0.91 pays)". */
enum { CORNU_MOST_DECLINED = 8, CORNU_DECLINED_TEXT = 96 };
typedef struct {
    const char *kernel;
    char        why[CORNU_DECLINED_TEXT];
} CornuDeclined;

/* Those that the device asked before the kernel of step `step`, in that order; before a reference
 * kernel all of its op's. Asks them again, so that nothing is kept for it. Returns how many. */
int cornu_executable_declined(const CornuExecutable *executable, int step,
                              CornuDeclined to[CORNU_MOST_DECLINED]);

/* ---- Times ---- */

/* Who measured a time: this machine's CLOCK_MONOTONIC; or the profiler of the device, an
 * accelerator, which counts neither the host's calls nor copies between host and device. */
typedef enum { CORNU_CLOCK_WALL, CORNU_CLOCK_DEVICE } CornuClock;

/* "wall clock", "device profiler"; NULL for anything else. */
const char *cornu_clock_name(CornuClock clock);

/* When a thread worked on a step for a shard (0 for a step that runs once): seconds of
 * CLOCK_MONOTONIC, both 0 if it did not. For the thread that runs the step, from start to end; for
 * threads that help, from their first piece of work to their last. Thread 0 is the caller. By
 * CORNU_CLOCK_DEVICE the difference is the device's own time, and end_s is when the host saw its
 * end. */
typedef struct {
    int        step, shard, thread;
    double     begin_s, end_s;
    CornuClock clock;
} CornuStepEvent;

/* Steps x shards x threads; the event of each is (step * shards + shard) * threads + thread. */
int cornu_executable_event_count(const CornuExecutable *executable);

/* From now on each run writes its times to the caller's `events`, cornu_executable_event_count() of
 * them, over those of the run before. NULL stops that. Running allocates nothing either way, but on
 * a pjrt device: its plugin's profiler, if it has one, is started and read around each run, which
 * takes longer than the run. */
void cornu_executable_record(CornuExecutable *executable, CornuStepEvent *events);

/* An exchange of a run with other processes; a large sum takes two. Bytes and times are those of
 * the last one that has ended: of a gather that goes on now, those of the run before. All 0 before
 * the first. */
typedef struct {
    const char *name;                   /* "all_reduce in dense_1/gradient" */
    int         begin_step, end_step;   /* that starts it, and that waits for its end: between them
                                           it goes on beside other steps. An end before the
                                           beginning is that of the next run */
    int64_t     bytes_sent, bytes_received;   /* by this process */
    double      begin_s, end_s;         /* when the thread of the processes was at it, in seconds of
                                           CLOCK_MONOTONIC */
} CornuExchangeEvent;

/* The exchanges of a run; *count is how many, 0 unless several processes share the device. The
 * executable owns them, and changes them when it runs, and when this is called again. */
const CornuExchangeEvent *cornu_executable_exchanges(CornuExecutable *executable, int *count);

/* seconds[i]: the wall time that step i accounts for in a recorded run. Where each thread runs a
 * shard of its own, its times are divided by the number of such threads; where all threads work on
 * one shard, a step takes as long as thread 0 is in it. On a pjrt device all shards run at the same
 * time: a step takes as long as it does on the slowest. */
void cornu_executable_shares(const CornuExecutable *executable, const CornuStepEvent *events,
                             double *seconds);

#ifdef __cplusplus
}
#endif
#endif
