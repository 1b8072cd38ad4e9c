/* NVIDIA's GPUs as XLA wants them described, to compile for one that need not be there. */
#ifndef CORNU_DEVICE_PJRT_GPUS_H
#define CORNU_DEVICE_PJRT_GPUS_H

#include "../status_internal.h"

/* Describes a GPU by its name, "h100", as the plugin's option target_config expects it, in memory
 * for cornu__release.
 * CORNU_ERR_DEVICE for an unknown name; the message lists the known ones, the nearest first. */
CornuStatus cornu__pjrt_gpu_target(const char *name, char **target);

/* Likewise, by a file of the user's. CORNU_ERR_FILE, naming it, if it cannot be read. */
CornuStatus cornu__pjrt_read_target(const char *path, char **target);

/* Bytes of memory of a described GPU; 0 if the description does not say. */
int64_t cornu__pjrt_target_memory(const char *target);

/* The name of GPU i, NULL past the last. */
const char *cornu__pjrt_gpu_at(int i);

#endif
