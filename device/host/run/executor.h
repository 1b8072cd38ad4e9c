/*
 * Running compiled programs: the functions of a device class that host devices share.
 *
 * A device brings a CornuHost: its kernels, vector loops and threads. Compiling takes a program
 * through the passes (compile/passes.h), allocate takes all memory; a run then allocates nothing
 * and starts no thread.
 */
#ifndef CORNU_DEVICE_HOST_EXECUTOR_H
#define CORNU_DEVICE_HOST_EXECUTOR_H

#include "../../device_internal.h"
#include "../compile/plan/host.h"
#include "buffer.h"

/* `host` must outlive the executable. The class functions of the same names. */
CornuExecutable *cornu__host_compile(const CornuHost *host, const CornuProgram *program);
CornuExecutable *cornu__host_twin(CornuExecutable *executable);
int              cornu__host_declined(const CornuExecutable *executable, int step,
                                      CornuDeclined *to);
CornuStatus      cornu__host_allocate(CornuExecutable *executable);
CornuStatus      cornu__host_fix(CornuExecutable *executable, CornuBuffer *const *inputs);
CornuStatus      cornu__host_run(CornuExecutable *executable, CornuBuffer *const *inputs,
                                 CornuBuffer *const *outputs);
void             cornu__host_exchanges(CornuExecutable *executable);
void             cornu__host_executable_free(CornuExecutable *executable);

#endif
