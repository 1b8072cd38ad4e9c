/*
 * Devices: memory, and a compiler from programs to executables.
 *
 *     CornuDevice *cpu = cornu_device_open("cpu", .threads = 2);
 *
 * "cpu" computes in float32, in part with BLIS, on this machine's threads. "reference" keeps every
 * element as a double and runs the reference kernel of each op, one after the other: slow,
 * easy to check, the oracle of all tests.
 *
 * A device and what was made on it are used by one thread at a time; compiling or running while
 * another thread does is CORNU_ERR_BUSY.
 */
#ifndef CORNU_DEVICE_DEVICE_H
#define CORNU_DEVICE_DEVICE_H

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuDevice     CornuDevice;
typedef struct CornuBuffer     CornuBuffer;
typedef struct CornuExecutable CornuExecutable;

/* In how many passes a device that multiplies bf16 multiplies f32: 6, as exact as f32 sums are; 3,
 * whose products carry 16 bits; or 1, operands rounded to bf16. Products of bf16 take one. */
typedef enum { CORNU_PRECISION_HIGHEST, CORNU_PRECISION_HIGH, CORNU_PRECISION_DEFAULT }
    CornuPrecision;

/* "highest", "high", "default"; NULL for anything else. */
const char *cornu_precision_name(CornuPrecision precision);

typedef struct {
    char        unset;
    const char *name;     /* "cpu", "reference", "tpu", "tpu:v3-8"; required */
    int         threads;  /* default: processors this process may use, at most its quota */
    int         shards;   /* replicas that each take a part of the batch, 1 to 8; default: the
                             device's own number, 1 on cpu. The reference device has one */
    CornuPrecision precision;   /* default CORNU_PRECISION_HIGHEST; others on tpu alone */
} CornuDeviceConfig;

/* NULL and CORNU_ERR_DEVICE for an unknown name (the message lists the known ones, the nearest
 * first), CORNU_ERR_ARGUMENT for negative threads or a precision that is not the device's. Close it
 * after everything made on it. */
CornuDevice *cornu_device_open_from(const CornuDeviceConfig *config);
#define cornu_device_open(...) \
    cornu_device_open_from(&(CornuDeviceConfig){ .unset = 0, __VA_ARGS__ })
void cornu_device_close(CornuDevice *device);

/* The name of known device i, NULL past the last: for walking over all of them. */
const char *cornu_device_known(int i);

const char *cornu_device_name(const CornuDevice *device);
int         cornu_device_threads(const CornuDevice *device);
int         cornu_device_shards(const CornuDevice *device);

CornuPrecision cornu_device_precision(const CornuDevice *device);

/* One line that names the processor, its instruction set, the BLAS and its kernels, and the
 * threads: "cpu: AMD EPYC … | avx512 | BLIS 0.9.0 skx | 2 threads". */
const char *cornu_device_description(const CornuDevice *device);

/* The machine it emulates, "v3-8"; NULL for a device that is itself. */
const char *cornu_device_profile(const CornuDevice *device);

/* The precision policy that suits it, by Keras' name: "float32", "mixed_bfloat16". */
const char *cornu_device_policy(const CornuDevice *device);

/* ---- Memory ---- */

/* What memory is used for. */
#define CORNU_USE_MAP(X)                                                                \
    X(OTHER,       "other")         /* states of metrics, fetched results            */ \
    X(WEIGHTS,     "weights")       /* of layers                                     */ \
    X(SLOTS,       "slots")         /* all variables of the optimizer                */ \
    X(ACTIVATIONS, "activations")   /* values between a program's inputs and outputs */ \
    X(INFEED,      "infeed")        /* what is fed to a program                      */

typedef enum {
#define X(id, name) CORNU_USE_##id,
    CORNU_USE_MAP(X)
#undef X
    CORNU_USE_COUNT
} CornuUse;

const char *cornu_use_name(CornuUse use);

typedef struct {
    char         unset;
    CornuDevice *device;     /* required */
    CornuType    type;       /* required */
    CornuUse     use;        /* default CORNU_USE_OTHER */
    const char  *name;       /* for messages; copied */
    bool         per_shard;  /* axis 0 counts the shards and each holds its part; else each holds
                                all of it */
} CornuBufferConfig;

/* Space for one value, all zeros. The caller frees it before the device. CORNU_ERR_ARGUMENT
 * without a device, CORNU_ERR_SHAPE where axis 0 is not the shards; CORNU_ERR_MEMORY, before
 * anything is taken, where it goes beyond the device's capacity, also once the executables that
 * nobody uses are gone; the message says what is in use and names the largest tensors. */
CornuBuffer *cornu_buffer_create_from(const CornuBufferConfig *config);
#define cornu_buffer_create(...) \
    cornu_buffer_create_from(&(CornuBufferConfig){ .unset = 0, __VA_ARGS__ })
void         cornu_buffer_free(CornuBuffer *buffer);
CornuType    cornu_buffer_type(const CornuBuffer *buffer);

/* Copies a host array in or out; the types must be equal. */
CornuStatus cornu_buffer_write(CornuBuffer *buffer, CornuArray from);
CornuStatus cornu_buffer_read(const CornuBuffer *buffer, CornuArray to);

/* As above for a part: as many elements of the buffer as the array has, of its dtype, from number
 * `first` on. */
CornuStatus cornu_buffer_write_part(CornuBuffer *buffer, int64_t first, CornuArray from);
CornuStatus cornu_buffer_read_part(const CornuBuffer *buffer, int64_t first, CornuArray to);

/*
 * What is taken of one shard's memory, in bytes: on a TPU its replica's HBM. Counted are the
 * elements in their declared dtype, as they lie here; the tiles of 8 by 128 that a TPU pads them
 * to are the performance model's (tpu/model.h). A replicated buffer counts whole, since each
 * replica holds a copy; one that is per shard with the shard's part. Each executable that the
 * device keeps counts its plan: what shards share, and one shard's part, all of whose pieces begin
 * at multiples of 64 bytes. Scratch memory of this machine's kernels does not count.
 */
typedef struct {
    int64_t now, peak;
} CornuBytes;

typedef struct {
    int64_t    capacity;               /* 0: no cap. "tpu" has its replica's HBM */
    CornuBytes total;
    CornuBytes uses[CORNU_USE_COUNT];  /* each with a peak of its own */
} CornuMemory;

CornuMemory cornu_device_memory(const CornuDevice *device);

/* ---- Programs ---- */

/* What compiling and running cost; all counts are exact. */
typedef struct {
    int64_t flops;          /* multiply-adds count two; the program as recorded     */
    int64_t ops;            /* ops of the program as recorded                       */
    int64_t kernels;        /* kernels that run per step after fusion               */
    int64_t fallbacks;      /* of these, ops run by their reference kernel          */
    bool    fell_back[CORNU_OP_COUNT]; /* which ops these are                      */
    int64_t copies;         /* of these, copies the memory plan could not avoid     */
    int64_t bytes_planned;  /* memory for all values between inputs and outputs, of all shards
                               that threads run at once */
    int64_t bytes_moved;    /* read and written per step by all kernels             */
} CornuStatistics;

/* Compiles, or finds an equal program compiled before (by hash, then by full comparison). The
 * executable belongs to the device; whoever asked for it says when it is no longer used, and it is
 * kept for an equal program until its memory is wanted or eight newer ones are not used either.
 * `program` stays the caller's. Memory for the values in between is taken here, so running
 * allocates nothing; CORNU_ERR_MEMORY as for a buffer. CORNU_DUMP=program,plan in the environment
 * prints what its words name to stderr. */
CornuExecutable *cornu_device_compile(CornuDevice *device, const CornuProgram *program);
void             cornu_executable_release(CornuExecutable *executable);

/* Runs once. inputs: one buffer per input of the program; outputs: one per output, NULL for an
 * output that is written into an input. Types must be those of cornu_program_buffer_type. A
 * fault in the data is CORNU_ERR_VALUE with a message naming op and row; aliased inputs are then
 * undefined. */
CornuStatus cornu_executable_run(CornuExecutable *executable, CornuBuffer *const *inputs,
                                 CornuBuffer *const *outputs);

const CornuStatistics *cornu_executable_statistics(const CornuExecutable *executable);

/* ---- What runs, and when ---- */

/* One of the steps that a run consists of. */
typedef struct {
    const char      *name;        /* "conv2d+max_pool2d+bias+relu": the ops it computes */
    const char      *kind;        /* "kernel", "group" (elementwise ops in one pass), "collective"
                                     (between shards), "pack" (an operand is laid out as a kernel
                                     of this machine wants it), "copy", "reference" (a fallback) */
    const char      *scope;       /* who recorded it, "conv2d_1", "dense/gradient"; "" if nobody */
    const int       *ops;         /* ascending, of the compiled program; none for a copy, a pack */
    int              op_count;
    const CornuType *in, *out;    /* the values it reads and writes in memory; none where it only
                                     puts together what lies in place */
    int              in_count, out_count;
    bool             per_shard;   /* each shard runs it on its own values; else it runs once */
    int64_t          flops, bytes_read, bytes_written;   /* of one run of the step */
} CornuExecutableStep;

/* The steps in the order in which they run; *count is how many. The executable owns them. */
const CornuExecutableStep *cornu_executable_steps(const CornuExecutable *executable, int *count);

/* What the steps compute: the program that was compiled after the device's passes, which
 * decompose, drop and join ops. */
const CornuProgram *cornu_executable_program(const CornuExecutable *executable);

CornuDevice *cornu_executable_device(const CornuExecutable *executable);

/* When a thread worked on a step for a shard (0 for a step that runs once): seconds of
 * CLOCK_MONOTONIC, both 0 if it did not. The thread that runs a step is in it from its begin to its
 * end; others that help are from the first to the last piece they take. Thread 0 is the caller. */
typedef struct {
    int    step, shard, thread;
    double begin_s, end_s;
} CornuStepEvent;

/* Steps x shards x threads: event (step * shards + shard) * threads + thread is theirs. */
int cornu_executable_event_count(const CornuExecutable *executable);

/* From now on each run writes its times to `events`, the caller's, as many as the above; the next
 * run writes over them. NULL ends that. Running allocates nothing either way. */
void cornu_executable_record(CornuExecutable *executable, CornuStepEvent *events);

/* seconds[i]: what step i took of the clock in a recorded run. A thread that runs a shard's steps
 * from the first to the last is one of several that do so at a time, and its time counts as that
 * part; where all threads work on one shard, a step lasts as long as thread 0 is in it. */
void cornu_executable_shares(const CornuExecutable *executable, const CornuStepEvent *events,
                             double *seconds);

#ifdef __cplusplus
}
#endif
#endif
