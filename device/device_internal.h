/*
 * What a device brings: a class of functions. To add a device: one folder, one line in the
 * registry (device.c).
 *
 * Common things live in device.c: names, argument checks, the cache of executables. A class
 * embeds the base structs as the first field of its own.
 */
#ifndef CORNU_DEVICE_DEVICE_INTERNAL_H
#define CORNU_DEVICE_DEVICE_INTERNAL_H

#include "device.h"
#include "op_internal.h"
#include "status_internal.h"

/* device.c fills the bases: class, buffers' device and type, and of an executable all but its
 * statistics. A class fills threads, description and policy when it opens. */
typedef struct {
    const char *name;
    int         most_shards;   /* 0 counts as 1 */
    bool        has_profiles;   /* its devices are called NAME or NAME:PROFILE; open refuses
                                   profiles that it does not know */
    bool        has_precisions;   /* it multiplies bf16, f32 in passes */
    CornuDevice *(*open)(const CornuDeviceConfig *config);
    void (*close)(CornuDevice *device);
    CornuBuffer *(*buffer_create)(CornuDevice *device, CornuType type);
    void (*buffer_free)(CornuBuffer *buffer);
    CornuStatus (*buffer_write)(CornuBuffer *buffer, CornuArray from);
    CornuStatus (*buffer_read)(const CornuBuffer *buffer, CornuArray to);
    /* Fills the base's `statistics`; `program` belongs to the executable's base and lives as
     * long. */
    CornuExecutable *(*compile)(CornuDevice *device, const CornuProgram *program);
    CornuStatus (*run)(CornuExecutable *executable, CornuBuffer *const *inputs,
                       CornuBuffer *const *outputs);
    void (*executable_free)(CornuExecutable *executable);
} CornuDeviceClass;

struct CornuDevice {
    const CornuDeviceClass *class;
    int                     threads, shards;
    char                    description[256];
    const char             *policy;        /* NULL: float32 */
    CornuExecutable        *executables;   /* newest first */
};

struct CornuBuffer {
    CornuDevice *device;
    CornuType    type;
};

struct CornuExecutable {
    CornuDevice     *device;
    CornuProgram    *program;
    uint64_t         hash;
    CornuStatistics  statistics;
    CornuExecutable *next;
};

/* Whether CORNU_DUMP names this word. device.c prints "program", once per compilation. */
bool cornu__dumps(const char *word);

extern const CornuDeviceClass cornu__reference_device, cornu__cpu_device, cornu__tpu_device;

#endif
