/* The pjrt device: a plugin's client, whose devices are the replicas of a program; or a topology,
 * for which programs are compiled but not run. */
#ifndef CORNU_DEVICE_PJRT_CLIENT_H
#define CORNU_DEVICE_PJRT_CLIENT_H

#include "../device_internal.h"
#include "emit/emit.h"
#include "plugin.h"

/* The most replicas of a program. */
enum { CORNU_PJRT_REPLICAS = 64 };

/* A run that was started (run.c). */
typedef struct {
    const CornuModule *module;              /* NULL: none */
    int64_t            first_run;           /* the number of its first */
    PjrtEvent         *done[CORNU_PJRT_REPLICAS], *fetched[CORNU_PJRT_REPLICAS];
    PjrtBuffer        *checks[CORNU_PJRT_REPLICAS];
    const int64_t     *found;               /* where these are fetched to */
    CornuStatus        failure;             /* of starting to fetch */
} CornuPjrtFlight;

typedef struct {
    CornuDevice            base;
    const CornuPjrtPlugin *plugin;
    PjrtClient            *client;     /* NULL if it has a topology */
    PjrtTopology          *topology;   /* NULL if it has a client */
    PjrtDevice            *devices[CORNU_PJRT_REPLICAS];   /* of each shard */
    int                    ids[CORNU_PJRT_REPLICAS];
    char                   platform[32], version[128], kind[64];
    bool                   is_cpu, is_gpu;
    CornuTarget            target;
    int64_t                runs;       /* so far, collected ones included */
    CornuPjrtFlight        flight;     /* the one that is not waited for yet */
    struct CornuPjrtExecutable *collecting;   /* runs of this one are kept; NULL: of none */
    bool                   profiling_fails;   /* it is not tried again */
} CornuPjrtDevice;

static inline CornuPjrtDevice *cornu__pjrt_of(const CornuDevice *device)
{
    return (CornuPjrtDevice *)(uintptr_t)device;
}

/* What a replica is: its number and kind, "TPU v3", go to place i of the device. */
CornuStatus cornu__pjrt_describe(CornuPjrtDevice *device, int i, PjrtDescription *description);

/* How many replicas a program has on a platform with `count` of them: `shards`, or all if that is
 * 0. CORNU_ERR_ARGUMENT, naming the device or topology, if there are too few. */
CornuStatus cornu__pjrt_replicas(CornuPjrtDevice *device, const char *name, size_t count,
                                 int shards);

/* A string of the plugin's on one line, cut to `size` with its terminator. */
void cornu__pjrt_copy(char *to, size_t size, const char *text, size_t text_size);

/* ---- Topologies (topology.c) ---- */

/* A device for `shards` replicas of a topology that need not be there, "v3:2x2"; `name` has the
 * plugin's other options. CORNU_ERR_ARGUMENT if the topology has fewer. */
CornuStatus cornu__pjrt_open_topology(CornuPjrtDevice *device, const char *topology,
                                      const CornuPjrtName *name, int shards);
void        cornu__pjrt_close_topology(CornuPjrtDevice *device);

/* ---- Buffers (buffer.c) ---- */

/* A value is on the host, on the device, or the same on both. On the device it is whole on every
 * shard, or split: then axis 0 is the shard. */
typedef struct {
    CornuBuffer base;
    void       *host;         /* NULL: none allocated */
    bool        host_is_new, device_is_new;
    bool        split;
    PjrtBuffer *on[CORNU_PJRT_REPLICAS];   /* NULL: none */
} CornuPjrtBuffer;

CornuBuffer *cornu__pjrt_buffer_create(CornuDevice *device, CornuType type, bool per_shard,
                                       bool empty);
void         cornu__pjrt_buffer_free(CornuBuffer *buffer);
CornuStatus  cornu__pjrt_buffer_write(CornuBuffer *buffer, int64_t first, CornuArray from);
CornuStatus  cornu__pjrt_buffer_read(const CornuBuffer *buffer, int64_t first, CornuArray to);

/* Has the value on the device, whole or split as asked for; `shard` is the type of what each shard
 * is given. */
CornuStatus cornu__pjrt_upload(CornuPjrtBuffer *buffer, CornuType shard, bool split);

/* Takes over results of a run, one for each shard; what was on the device is destroyed. */
void cornu__pjrt_take_over(CornuPjrtBuffer *buffer, PjrtBuffer *const *on, bool split);

/* Destroys a buffer of the device; NULL does nothing. */
void cornu__pjrt_destroy(const CornuPjrtDevice *device, PjrtBuffer *buffer);

/* Starts to copy a buffer of the device into packed host memory, row by row; *done is to be waited
 * for. */
CornuStatus cornu__pjrt_start_fetch(const CornuPjrtDevice *device, PjrtBuffer *buffer,
                                    CornuType type, void *to, PjrtEvent **done);

/* A new buffer of the device on a shard, from packed host memory, which is free again. */
CornuStatus cornu__pjrt_to_device(const CornuPjrtDevice *device, CornuType type, const void *from,
                                  int shard, PjrtBuffer **made);

/* The value on the host, shard after shard if it is split. */
CornuStatus cornu__pjrt_on_host(CornuPjrtBuffer *buffer, const char **data);

/* ---- Programs (executable.c, loop.c, place.c) ---- */

CornuStatus      cornu__pjrt_place(const CornuDevice *device, const CornuProgram *program,
                                   const CornuProgramOp *op, CornuPlacement *out);

CornuExecutable *cornu__pjrt_compile(CornuDevice *device, const CornuProgram *program);
CornuStatus      cornu__pjrt_run(CornuExecutable *executable, CornuBuffer *const *inputs,
                                 CornuBuffer *const *outputs);
void             cornu__pjrt_collect(CornuExecutable *executable, int64_t runs);
CornuStatus      cornu__pjrt_flush(CornuDevice *device);
CornuStatus      cornu__pjrt_wait(CornuDevice *device);
void             cornu__pjrt_figures(const CornuExecutable *executable,
                                     CornuCompiledFigures *figures);
void             cornu__pjrt_executable_free(CornuExecutable *executable);

#endif
