/*
 * Finds the TPU to use from the environment, as TPUClusterResolver does for Keras:
 *
 *     CORNU_TPU       set by the user: "local", or a profile to emulate, such as "v3-8"; a device
 *                     such as "pjrt:tpu", which must then open; anything else, an address too, is
 *                     an error, since it is not available
 *     COLAB_TPU_ADDR  "10.0.0.2:8470": set by notebooks that have a TPU
 *     TPU_NAME        "local", a name or "grpc://…": set on machines with one
 *
 * The first one set decides; an empty variable counts as unset. Unless CORNU_TPU asks for an
 * emulation, a TPU in this machine is used, which needs libtpu (the device pjrt:tpu); else one is
 * emulated on this machine's processors. An address in one of the last two is not used, and
 * reported with the reason.
 */
#ifndef CORNU_DEVICE_TPU_RESOLVER_H
#define CORNU_DEVICE_TPU_RESOLVER_H

#include "../status.h"
#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const CornuTpuProfile *profile;           /* v2-8 unless CORNU_TPU names another       */
    bool                   is_real;           /* not emulated                              */
    char                   target[320];       /* "local (emulated v2-8)"; what a real one says
                                                 about itself                              */
    char                   device[300];       /* for cornu_device_open: "tpu:v2-8", "pjrt:tpu" */
    int                    cores;             /* that a program sees: two joined are one   */
    int                    workers;           /* hosts: 1                                  */
    int                    cores_per_worker;
    char                   refused[512];      /* the unused address and the reason, or ""  */

    /* What notebooks print, for the caller to print; each line ends in '\n':
     *     Found TPU at: local (emulated v2-8)
     *     *** Num TPU Cores: 8
     *     *** Num TPU Workers: 1
     *     *** Num TPU Cores Per Worker: 8
     * after a line with `refused`, if that is not empty. */
    char text[1024];
} CornuTpuTarget;

/* CORNU_ERR_DEVICE if CORNU_TPU is unknown or not available; a pending error is returned as it
 * is. */
CornuStatus cornu_tpu_resolve(CornuTpuTarget *target);

#ifdef __cplusplus
}
#endif
#endif
