/* A program run on a plugin's device with nothing of ours around it: what remains of the time of
 * cornu_executable_run is the host overhead of the pjrt device. */
#ifndef CORNU_TESTS_BENCH_BARE_H
#define CORNU_TESTS_BENCH_BARE_H

#include "../../device/pjrt/client.h"

typedef struct {
    const CornuPjrtDevice *device;
    PjrtLoaded            *loaded;
    PjrtBuffer           **in, **out;
    int                    in_count, out_count;
    int                   *input_of;   /* of each result: the argument it replaces, or -1 */
} Bare;

/* Compiles the program for the device's one shard; its inputs are zeros on the device. bare_close
 * also after a failure. */
CornuStatus bare_open(Bare *bare, CornuDevice *device, const CornuProgram *program);
void        bare_close(Bare *bare);

/* Executes once and waits. Donated inputs are replaced, other results destroyed. */
CornuStatus bare_run(Bare *bare);

#endif
