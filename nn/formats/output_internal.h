/*
 * What a training writes and prints: one of everything, however many processes train. Rank 0
 * writes; another rank goes the same way, because what it reads on it may be an exchange with the
 * others, but its files are the null device, it makes no folder, and prints nothing.
 *
 * Caches of downloads and of compiled programs are not results: each host has its own.
 */
#ifndef CORNU_NN_OUTPUT_INTERNAL_H
#define CORNU_NN_OUTPUT_INTERNAL_H

#include <sys/types.h>

#include "../../device/device.h"

/* Whether this process writes: rank 0, or a process on its own. */
bool cornu__output_writes(void);

/* As cornu__open (device/open.h), to write. */
int cornu__output_open(const char *path, int flags, mode_t mode);

/* As cornu__make_folders_above. */
CornuStatus cornu__output_folders_above(const char *path);

/* What the ranks that share the device say of a call that all of them make: CORNU_OK if it
 * succeeded on all, else the first failure, on all. Without a device, or one of this process alone,
 * `status`. */
CornuStatus cornu__output_settle(const CornuDevice *device, const char *what, CornuStatus status);

#endif
