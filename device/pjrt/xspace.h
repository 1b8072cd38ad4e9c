/* What profilers of XLA write: an XSpace, in Protocol Buffers, of planes (devices), of lines
 * (streams, or kinds of events), of events. Source: openxla/xla,
 * third_party/tsl/tsl/profiler/protobuf/xplane.proto. */
#ifndef CORNU_DEVICE_PJRT_XSPACE_H
#define CORNU_DEVICE_PJRT_XSPACE_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds from the begin of the first event on a device to the end of the last one: of modules that
 * ran there if the profile has them, as a TPU's has, else of kernels, as a GPU's has, else of
 * anything. seconds[i] is that of the device with i-th smallest number. Returns the number of
 * devices with events, of which `most` are written; -1 if the bytes are damaged. */
int cornu__xspace_seconds(const void *bytes, size_t size, int most, double *seconds);

#endif
