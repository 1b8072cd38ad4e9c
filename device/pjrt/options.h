/* Options of compiling, as XLA's CompileOptionsProto (xla/pjrt/proto/compile_options.proto). */
#ifndef CORNU_DEVICE_PJRT_OPTIONS_H
#define CORNU_DEVICE_PJRT_OPTIONS_H

#include "client.h"

typedef struct {
    char   bytes[256];
    size_t size;
} CornuPjrtOptions;

/* The compile options of a program that runs on all replicas of the device. */
void cornu__pjrt_options(CornuPjrtOptions *options, const CornuPjrtDevice *device);

#endif
