/*
 * Which TPU is there? As TPUClusterResolver does for Keras, from the environment:
 *
 *     CORNU_TPU       what the user wants: "local", or a profile such as "v3-8" to emulate; an
 *                     address or any other word is an error, for it was asked for and cannot be had
 *     COLAB_TPU_ADDR  "10.0.0.2:8470": set by notebooks that have a TPU
 *     TPU_NAME        "local", a name or "grpc://…": set on machines with one
 *
 * The first of them that is set decides. A TPU is claimed only if one answers; in this version
 * that is the emulated one on this machine's processors, and an address in one of the last two is
 * named together with the reason why it is not used. An empty variable is an unset one.
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
    char                   target[64];        /* "local (emulated v2-8)"                   */
    char                   device[32];        /* for cornu_device_open: "tpu:v2-8"         */
    int                    cores;             /* those a program sees: two joined are one  */
    int                    workers;           /* hosts: 1                                  */
    int                    cores_per_worker;
    char                   refused[512];      /* "" or which address is not used, and why  */

    /* What notebooks print, to be printed by the caller; each line ends in '\n':
     *     Found TPU at: local (emulated v2-8)
     *     *** Num TPU Cores: 8
     *     *** Num TPU Workers: 1
     *     *** Num TPU Cores Per Worker: 8
     * after a line with `refused`, if there is anything refused. */
    char text[1024];
} CornuTpuTarget;

/* CORNU_ERR_DEVICE if CORNU_TPU names what is unknown or cannot be used; a pending error is
 * returned as it is. */
CornuStatus cornu_tpu_resolve(CornuTpuTarget *target);

#ifdef __cplusplus
}
#endif
#endif
