/* An executable of the host, and what runs its steps: for executor.c and loop.c. */
#ifndef CORNU_DEVICE_HOST_EXECUTOR_INTERNAL_H
#define CORNU_DEVICE_HOST_EXECUTOR_INTERNAL_H

#include "exchange.h"
#include "executor.h"

typedef struct CornuLoop CornuLoop;

typedef struct {
    CornuExecutable base;
    CornuPlan      *plan;         /* that of a twin is the original's */
    bool            is_twin;
    CornuFailure   *failures;     /* by shard */
    CornuSpan      *spans;        /* by thread: of a step that is measured */
    CornuBuffer *const *buffers;    /* of the inputs of this run */
    CornuCollective **collectives;  /* by step; NULL for those that meet no other process */
    char           *exchanged;    /* their memory */
    CornuLoop     **loops;        /* by step; NULL for those that are none */
    CornuRegions    regions;      /* regions.fixed is the original's, too */
    char           *scratch;
    void          **addresses;    /* of plan.operands on each shard, for this run; */
    void          **inputs, **outputs;   /* buffers that the program reads and writes */
} Executable;

/* Takes all memory; to be freed also after a failure, but for the plan of one that is no twin. */
CornuStatus cornu__executable_allocate(Executable *executable);
void        cornu__executable_release(Executable *executable);

/* Text of its steps, by which their cost is known. */
CornuStatus cornu__executable_describe(Executable *executable);

/* Runs the steps that run once, or the others, at the addresses. */
CornuStatus cornu__executable_fix(Executable *executable);
CornuStatus cornu__executable_steps(Executable *executable);

#endif
