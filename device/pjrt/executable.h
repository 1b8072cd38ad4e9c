/* Executables of the pjrt device: a program compiled once, and where several steps may run in one
 * call, once more as a loop. */
#ifndef CORNU_DEVICE_PJRT_EXECUTABLE_H
#define CORNU_DEVICE_PJRT_EXECUTABLE_H

#include "client.h"

/* A module, compiled, with room for what a run is given and gives: in_of[shard][i]. */
typedef struct {
    CornuModule     module;
    PjrtExecutable *compiled;
    PjrtLoaded     *loaded;               /* NULL if it was compiled ahead of time */
    size_t          in_count, out_count;  /* of the module; one result more for checks */
    PjrtBuffer    **in, **out;            /* those of shard 0, of shard 1, ... */
    PjrtBuffer    **in_of[CORNU_PJRT_REPLICAS], **out_of[CORNU_PJRT_REPLICAS];
    int64_t        *found[2];             /* by the checks of all shards, in turn: that of one run
                                             is read while the next one writes */
    int             turn;
} CornuPjrtCompiled;

/* Runs that are collected, to be done in one. */
typedef struct {
    int64_t           expected;    /* runs to come that may be collected */
    int64_t           collected, most;
    CornuBuffer     **inputs;      /* of these runs, the same for all */
    char            **staged;      /* of each input that is fed: what each shard was fed by each of
                                      `most` runs; NULL for other inputs */
    CornuPjrtCompiled compiled;    /* of `most` steps; loaded is NULL before */
} CornuPjrtLoop;

typedef struct CornuPjrtExecutable {
    CornuExecutable   base;
    CornuPjrtCompiled once;
    CornuPjrtLoop     loop;
} CornuPjrtExecutable;

/* ---- Compiling (compile.c) ---- */

/* Emits and compiles, as a loop unless that is NULL. cornu__pjrt_compiled_free frees it, also after
 * a failure. */
CornuStatus cornu__pjrt_compile_module(CornuPjrtCompiled *compiled, CornuPjrtDevice *device,
                                       const CornuProgram *program, const CornuModuleLoop *loop);
void        cornu__pjrt_compiled_free(CornuPjrtCompiled *compiled, const CornuPjrtDevice *device);

/* ---- Running (run.c) ---- */

/* Starts a run, of all steps of `compiled`, and waits for the one before: so the host prepares the
 * next step while the device computes. `staged`: what was fed, by input, from run `first` on; NULL:
 * the buffers have it. */
CornuStatus cornu__pjrt_launch(CornuPjrtExecutable *executable, CornuPjrtCompiled *compiled,
                               CornuBuffer *const *inputs, CornuBuffer *const *outputs,
                               int64_t first);

/* Waits for what was started, and reports its failure. */
CornuStatus cornu__pjrt_settle(CornuPjrtDevice *device);

/* ---- Collecting runs (loop.c) ---- */

/* Whether the next run is one to be collected; whether it is one more of those that are. */
bool cornu__pjrt_collects(const CornuPjrtExecutable *executable);
bool cornu__pjrt_continues(const CornuPjrtExecutable *executable, CornuBuffer *const *inputs);

/* Collects a run; starts all of them once there are enough. */
CornuStatus cornu__pjrt_collect_run(CornuPjrtExecutable *executable, CornuBuffer *const *inputs);

void cornu__pjrt_loop_free(CornuPjrtLoop *loop, const CornuPjrtDevice *device);

#endif
