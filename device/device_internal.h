/*
 * What a device consists of: a class of functions. To add one: a folder, and a row of devices.def.
 *
 * What devices share is in device.c and account.c: names, checks of arguments, the cache of
 * executables. A class embeds the base structs as the first field of its own.
 */
#ifndef CORNU_DEVICE_DEVICE_INTERNAL_H
#define CORNU_DEVICE_DEVICE_INTERNAL_H

#include <stdatomic.h>

#include "device.h"
#include "placement/placement.h"
#include "program_internal.h"
#include "status_internal.h"

/* ---- guard.c ---- what only one thread may use at a time: a second gets an error, not a wait. */

/* A lock that knows its holder; all zeros is one that is free. */
typedef struct {
    _Atomic(const char *) function;   /* the holder's outermost one; NULL: free */
    _Atomic uintptr_t     thread;     /* the holder; 0 until it is known */
    int                   depth;      /* nested calls; only the holder reads it */
} CornuGuard;

/* Takes the guard for `function`, a string constant. CORNU_ERR_BUSY, naming both functions and
 * `what`, while another thread holds it; its holder may take it again. A NULL guard is ignored.
 * `advice` ends the message: what several threads can use instead; or "". */
CornuStatus cornu__guard_enter(CornuGuard *guard, const char *what, const char *function,
                               const char *advice);

/* Undoes the last cornu__guard_enter. */
void cornu__guard_leave(CornuGuard *guard);

/* ---- Devices ---- */

/* device.c fills the base structs: class, precision, all of a buffer's fields, and those of an
 * executable that are not marked. `open` fills threads, shards, own, description, policy, profile
 * and capacity. */
typedef struct {
    const char *name;
    int         most_shards;   /* 0 counts as 1 */
    bool        has_profiles;     /* its devices are called NAME or NAME:PROFILE; open refuses
                                     unknown profiles */
    bool        has_precisions;   /* of products of f32, which the others compute as f32 */
    bool        is_reference;     /* every op runs by its reference kernel */
    bool        shards_at_once;   /* they run at the same time, on devices of their own */
    CornuDevice *(*open)(const CornuDeviceConfig *config);
    void (*close)(CornuDevice *device);
    /* Of a buffer per shard, memory for the own shards' parts; `empty`: none yet. */
    CornuBuffer *(*buffer_create)(CornuDevice *device, CornuType type, bool per_shard, bool empty);
    /* Allocates a buffer's memory, all zeros, or frees it. NULL: no buffer is empty or dealt. */
    CornuStatus (*buffer_keep)(CornuBuffer *buffer, bool here);
    void (*buffer_free)(CornuBuffer *buffer);
    /* Element `first` of the buffer is the array's first. Of other processes' parts nothing is
     * written, and all are read. */
    CornuStatus (*buffer_write)(CornuBuffer *buffer, int64_t first, CornuArray from);
    CornuStatus (*buffer_read)(const CornuBuffer *buffer, int64_t first, CornuArray to);
    /* What this process has of it, and how many bytes, where the host can use it while nothing
     * runs. NULL: it cannot. */
    void *(*buffer_data)(const CornuBuffer *buffer, size_t *bytes);
    /* Where groups of processes run programs of their own: deals the buffer to some groups, bit g:
     * to group g, in addition to those that it was dealt to before; all ranks call it. The others
     * give its memory back, write nothing, and read it from the first that has it, so that reading
     * is for all of them at the same time. NULL: the device is of one process. */
    CornuStatus (*buffer_deal)(CornuBuffer *buffer, uint32_t holders);
    /* Fills the marked fields of the base. The base owns `program`, which lives as long. */
    CornuExecutable *(*compile)(CornuDevice *device, const CornuProgram *program);
    /* Another executable of the same program, that may run at the same time: only what it does not
     * share with the given one, which outlives it. device.c copies the base. NULL: the device runs
     * one at a time. */
    CornuExecutable *(*twin)(CornuExecutable *executable);
    /* Allocates the executable's `bytes`, once the device has room for them. NULL: compile did. */
    CornuStatus (*allocate)(CornuExecutable *executable);
    /* Before the first run: computes what depends on fixed inputs alone. NULL: nothing is computed
     * once. */
    CornuStatus (*fix)(CornuExecutable *executable, CornuBuffer *const *inputs);
    CornuStatus (*run)(CornuExecutable *executable, CornuBuffer *const *inputs,
                       CornuBuffer *const *outputs);
    /* As cornu_executable_collect; starts the runs that are collected; starts them and waits for
     * all. Called before a buffer is written or freed, and before one is read. NULL, all three:
     * each run ends before it returns. */
    void (*collect)(CornuExecutable *executable, int64_t runs);
    CornuStatus (*flush)(CornuDevice *device);
    CornuStatus (*wait)(CornuDevice *device);
    /* Fills kind and why, and how unless the op is decomposed. */
    CornuStatus (*place)(const CornuDevice *device, const CornuProgram *program,
                         const CornuProgramOp *op, CornuPlacement *out);
    /* As cornu_executable_declined, of a step that there is. NULL: it has no kernels to choose
     * among. */
    int (*declined)(const CornuExecutable *executable, int step, CornuDeclined *to);
    /* Fills what is known. NULL: nothing is, since the device compiles by itself. */
    void (*figures)(const CornuExecutable *executable, CornuCompiledFigures *figures);
    /* Notes, of exchanges that nobody has waited for, those that have ended. NULL: there are
     * none. */
    void (*exchanges)(CornuExecutable *executable);
    void (*executable_free)(CornuExecutable *executable);
} CornuDeviceClass;

/* Shards first, first + 1, … */
typedef struct { int first, count; } CornuRange;

/* Those of a rank: `count` shards divided among `ranks`, as equally as possible, larger ones
 * first. */
static inline CornuRange cornu__range_of(int count, int rank, int ranks)
{
    const int each = count / ranks, more = count % ranks;
    return (CornuRange){ rank * each + (rank < more ? rank : more), each + (rank < more) };
}

/* An allocation as messages name it. */
typedef struct {
    char      name[64];
    CornuType type;
    CornuUse  use;
    int64_t   bytes;   /* of a shard */
} CornuHeld;

enum { CORNU_LARGEST = 5 };

struct CornuLayout;
struct CornuLaid;

struct CornuDevice {
    const CornuDeviceClass *class;
    int                     threads, shards;
    CornuRange              own;           /* the shards of this process; none counts as all */
    CornuProcesses         *processes;     /* NULL: all are */
    CornuMesh               mesh;          /* of the shards; no axes: none */
    unsigned                data;          /* its axes that share the batch */
    struct CornuLayoutMap  *layouts;       /* of variables; NULL: none is cut */
    void                  (*free_layouts)(struct CornuLayoutMap *layouts);
    /* Set with the mesh, so that programs without one need no partitioning: cornu__partition_laid,
     * mesh/partition.h. */
    CornuProgram         *(*partition)(const CornuProgram *program, const CornuMesh *mesh,
                                       unsigned data, const struct CornuLayout *layouts,
                                       const struct CornuLaid *laid, int laid_count);
    bool                    fully_sharded; /* large variables are also cut along `data` */
    int                     groups;        /* as CornuDeviceConfig's */
    bool                    plans;         /* and has no memory: cornu__device_plan */
    CornuPrecision          precision;
    char                    description[256];
    const char             *profile;       /* NULL: it emulates none */
    const char             *policy;        /* NULL: float32 */
    CornuMemory             memory;
    CornuBuffer            *buffers;       /* newest first */
    CornuExecutable        *executables;   /* likewise */
    CornuGuard              guard;         /* of compiling and running */
    char                   *opened;        /* the name that it was opened by */
    atomic_int              owners;        /* the opener, and what was made on it */
    atomic_bool             closed;        /* by the opener */
};

/* Whoever keeps the device's address beyond a call counts among its owners: buffers, executables,
 * graphs, models. The last one to drop it ends it. NULL is ignored, and returned. */
CornuDevice *cornu__device_retain(CornuDevice *device);
void         cornu__device_release(CornuDevice *device);
/* Puts a device, or NULL, in place of the one in *kept. */
void         cornu__device_keep(CornuDevice **kept, CornuDevice *device);

/* Before anything is made on it: the device compiles programs and counts what they and buffers
 * take, without a limit, but none gets memory. Writes have no effect, reads leave arrays as they
 * are, and nothing runs: for what a step would take of a machine that is larger than this one. */
void cornu__device_plan(CornuDevice *device);

struct CornuBuffer {
    CornuDevice *device;
    CornuType    type;
    CornuHeld    held;
    int64_t      bytes;            /* of a shard, while it has memory */
    bool         empty;            /* it has none yet, and is all zeros */
    uint32_t     holders;          /* bit g: group g of processes has it; 0: all do */
    bool         away;             /* this one does not */
    CornuBuffer *next, *previous;
};

/* CORNU_ERR_SHAPE or CORNU_ERR_DTYPE for another type: "WHAT is …, expected …". */
CornuStatus cornu__check_stored(CornuType expected, CornuType received, const char *what);
/* Waits for the runs of a device that returns before they have ended. */
CornuStatus cornu__device_end_runs(CornuDevice *device);

/* Gives a buffer memory if it has none; or takes it, as groups of processes do of what another one
 * is to have. CORNU_ERR_MEMORY. */
CornuStatus cornu__buffer_keep(CornuBuffer *buffer, bool here);

/* The ranks that share the shards: those of a group of processes, or all. */
static inline int cornu__device_sharers(const CornuDevice *device)
{
    const int ranks = cornu_process_count(device->processes);
    return device->groups ? ranks / device->groups : ranks;
}

struct CornuExecutable {
    CornuDevice     *device;
    CornuProgram    *program;
    uint64_t         hash;
    int              users;
    bool             is_fixed;                /* `fix` has been called */
    CornuExecutable *original;                /* of a twin, which is not in the device's list */
    CornuStepEvent  *events;                  /* where runs write their times; NULL: nowhere */
    CornuExecutable *next;

    /* Filled by the device class when it compiles. */
    CornuStatistics  statistics;
    int64_t          bytes;                   /* activations of a shard */
    CornuHeld        largest[CORNU_LARGEST];  /* the largest at their peak; bytes 0 ends them */

    /* Filled by cornu__describe_begin, which the class calls. */
    const CornuProgram  *compiled;            /* what the steps compute */
    CornuExecutableStep *steps;
    int                  step_count;

    /* Filled and freed by a class that exchanges with other processes; others leave them 0. */
    CornuExchangeEvent  *exchanges;
    int                  exchange_count;
};

/* Starts the list of the `count` steps of a compiled program, which are then added one by one in
 * the order in which they run. Of `step`, kind, ops, types, per_shard and the kernel's name are
 * copied, NULL as ""; the rest is derived, the name and the scope too if they are NULL. device.c
 * frees the descriptions. */
CornuStatus cornu__describe_begin(CornuExecutable *executable, const CornuProgram *compiled,
                                  int count);
CornuStatus cornu__describe_step(CornuExecutable *executable, const CornuExecutableStep *step);
/* Also for a class whose compile fails. */
void        cornu__describe_free(CornuExecutable *executable);

/* ---- Accounting (account.c) ---- */

bool        cornu__memory_fits(const CornuDevice *device, int64_t bytes);
/* CORNU_ERR_MEMORY: `bytes` more of a shard do not fit. The message names `what`, and the largest
 * of `parts` and of all other allocations. */
CornuStatus cornu__memory_fail(const CornuDevice *device, const char *what, int64_t bytes,
                               const CornuHeld parts[CORNU_LARGEST]);
/* Evicts unused executables until `bytes` more fit; fails as cornu__memory_fail (device.c). */
CornuStatus cornu__memory_evict(CornuDevice *device, const char *what, int64_t bytes,
                                const CornuHeld parts[CORNU_LARGEST]);
/* Counts an allocation, or with negative `more` a release. */
void        cornu__memory_count(CornuDevice *device, CornuUse use, int64_t more);

/* ---- The table of devices (devices.c), for device.c alone: no device calls back into it ---- */

enum {
#define CORNU_DEVICE(name) CORNU__DEVICE_##name,
#include "devices.def"
#undef CORNU_DEVICE
    CORNU_DEVICE_COUNT
};

#define CORNU_DEVICE(name) extern const CornuDeviceClass cornu__##name##_device;
#include "devices.def"
#undef CORNU_DEVICE

extern const CornuDeviceClass *const cornu__device_classes[CORNU_DEVICE_COUNT];

#endif
