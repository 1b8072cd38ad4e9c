/* The time of a run on the device itself, by the plugin's profiler, where it has one: plugins for
 * TPUs and for NVIDIA's GPUs have, those for processors have not. */
#ifndef CORNU_DEVICE_PJRT_PROFILE_H
#define CORNU_DEVICE_PJRT_PROFILE_H

#include "plugin.h"

typedef struct {
    const PjrtProfilerApi *api;
    PjrtProfiler          *profiler;   /* NULL: none runs */
} CornuPjrtProfile;

/* Starts to profile, on all devices of the process. False, and then there is nothing to stop, if
 * the plugin has no profiler or that fails, which is logged. It may take a second. */
bool cornu__pjrt_profile_start(CornuPjrtProfile *profile, const CornuPjrtPlugin *plugin);

/* Stops it; seconds[i] is how long shard i took, from its first work on the device to its last.
 * False if it does not say that of `shards` devices, or not credibly: a time above `most_s`, in
 * which all was done. That is logged. */
bool cornu__pjrt_profile_stop(CornuPjrtProfile *profile, int shards, double most_s,
                              double *seconds);

#endif
