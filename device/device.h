/*
 * Devices: memory, and a compiler from programs to executables.
 *
 *     CornuDevice *cpu = cornu_device_open("cpu", .threads = 2);
 *
 * "cpu" computes in float32 on this machine's threads, some products with BLIS. "tpu" emulates a
 * TPU: products of bf16, summed in f32, sharded over its replicas. "reference" keeps every element
 * as a double and runs the ops one by one with their reference kernels: slow, easy to check, the
 * oracle of all tests. "pjrt:cpu", "pjrt:cuda", "pjrt:tpu" and "pjrt:PLUGIN.so" compile by XLA, on
 * what the plugin is for (pjrt/README.md).
 *
 * A device and what was made on it are used by one thread at a time; compiling or running while
 * another thread does either fails with CORNU_ERR_BUSY.
 */
#ifndef CORNU_DEVICE_DEVICE_H
#define CORNU_DEVICE_DEVICE_H

#include "mesh/mesh.h"
#include "processes/processes.h"
#include "steps.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuDevice CornuDevice;
typedef struct CornuBuffer CornuBuffer;

/* How a device that multiplies bf16 multiplies f32: in 6 passes, as exact as f32 sums are; in 3,
 * with products good to 16 bits; or in 1, with operands rounded to bf16. bf16 takes one pass. On
 * pjrt it is XLA's PrecisionConfig, whose lesser ones are the platform's to choose: the same on
 * TPUs, TF32 (10 bits) on NVIDIA's GPUs, no difference on processors. */
typedef enum { CORNU_PRECISION_HIGHEST, CORNU_PRECISION_HIGH, CORNU_PRECISION_DEFAULT }
    CornuPrecision;

/* "highest", "high", "default"; NULL for anything else. */
const char *cornu_precision_name(CornuPrecision precision);

typedef struct {
    char        unset;
    const char *name;     /* "cpu", "reference", "tpu", "tpu:v3-8", "pjrt:cuda"; required */
    int         threads;  /* default: processors this process may use, at most its quota, dealt
                             over processes that may use the same */
    int         shards;   /* replicas that each take a part of the batch, 1 to 1024, 64 on pjrt;
                             default: as many as the device has, 1 on cpu. The reference device
                             has one */
    CornuPrecision precision;   /* default CORNU_PRECISION_HIGHEST; others on tpu and pjrt */
    CornuProcesses *processes;  /* default none: this process owns all shards. Else on cpu and tpu
                                   each process owns some of them, at least one */
    int         groups;         /* with processes: they are so many groups, of equally many ranks
                                   in order. Each group has all shards, which its ranks share, and
                                   compiles and runs what it likes, as stages of a pipeline do; all
                                   ranks are fed the rows of all shards. Default: none, they are
                                   together */
    int64_t     shard_memory;   /* bytes that a shard has; default the HBM of a replica of the
                                   profile, and on other devices unlimited */
} CornuDeviceConfig;

/* NULL and CORNU_ERR_DEVICE for an unknown name (the message lists the known ones, the nearest
 * first), CORNU_ERR_ARGUMENT for negative threads, or shards, a precision or processes that the
 * device lacks. Buffers, programs, graphs, models and whatever else is made on it keep it: one that
 * is closed before them goes on for them, and ends with the last. It is to end before its processes
 * are closed.
 *
 * With several processes all of them open the device, and compile, run and read in the same order.
 * Of buffers per shard each has memory for its own shards' parts, and writes those alone; reading
 * one gathers the parts, on all processes. */
CornuDevice *cornu_device_open_from(const CornuDeviceConfig *config);
#define cornu_device_open(...) \
    cornu_device_open_from(&(CornuDeviceConfig){ .unset = 0, __VA_ARGS__ })
/* Once; NULL is ignored. */
void cornu_device_close(CornuDevice *device);

/* A device of its own, opened by the same name, with the same shards, precision and processes;
 * threads 0: as many as it has. The caller closes it. */
CornuDevice *cornu_device_open_like(const CornuDevice *device, int threads);

/* The name of known device i, NULL past the last: for iterating over all of them. */
const char *cornu_device_known(int i);

const char *cornu_device_name(const CornuDevice *device);    /* "cpu", "tpu", "pjrt" */
int         cornu_device_threads(const CornuDevice *device); /* that compute */
/* Those that share a batch, of all processes together: with a mesh, as many as there are along its
 * batch axis. */
int         cornu_device_shards(const CornuDevice *device);
/* Without axes unless it was given one: mesh/layout_map.h. */
const CornuMesh *cornu_device_mesh(const CornuDevice *device);

/* Those that this process owns: `*count` of them, from shard *first on. All, unless several
 * processes share the device; then as equal as possible, the larger ones first. With a mesh, those
 * whose rows it needs; of groups of processes all. */
void cornu_device_own_shards(const CornuDevice *device, int *first, int *count);

/* NULL if it was opened without. */
CornuProcesses *cornu_device_processes(const CornuDevice *device);

/* What it was opened with. */
CornuPrecision cornu_device_precision(const CornuDevice *device);

/* One line that names the processor, its instruction set, the BLAS and its kernels, and the
 * threads: "cpu: AMD EPYC … | avx512 | BLIS 0.9.0 skx | 2 threads". */
const char *cornu_device_description(const CornuDevice *device);

/* The machine it emulates, "v3-8"; NULL for a device that emulates none. */
const char *cornu_device_profile(const CornuDevice *device);

/* The dtype policy that suits it, by Keras' name: "float32", "mixed_bfloat16". */
const char *cornu_device_policy(const CornuDevice *device);

/* ---- Memory ---- */

/* What memory is used for. */
#define CORNU_USE_MAP(X)                                                                \
    X(OTHER,       "other")         /* states of metrics, fetched results            */ \
    X(WEIGHTS,     "weights")       /* of layers                                     */ \
    X(SLOTS,       "slots")         /* all variables of the optimizer                */ \
    X(ACTIVATIONS, "activations")   /* values between a program's inputs and outputs */ \
    X(INFEED,      "infeed")        /* the batches fed to a program                  */

typedef enum {
#define X(id, name) CORNU_USE_##id,
    CORNU_USE_MAP(X)
#undef X
    CORNU_USE_COUNT
} CornuUse;

/* "weights", "slots"; "unknown" for any other number. */
const char *cornu_use_name(CornuUse use);

typedef struct {
    char         unset;
    CornuDevice *device;     /* required */
    CornuType    type;       /* required */
    CornuUse     use;        /* default CORNU_USE_OTHER */
    const char  *name;       /* for messages; copied */
    bool         per_shard;  /* axis 0 is the shard, and each shard holds its part; else each
                                holds a copy */
} CornuBufferConfig;

/* Memory for one value, all zeros. The caller frees it before the device. CORNU_ERR_ARGUMENT
 * without a device, CORNU_ERR_SHAPE if per_shard and axis 0 is not the number of shards;
 * CORNU_ERR_MEMORY, before anything is allocated, if it exceeds the device's capacity even after
 * unused executables are evicted; the message says what is in use and names the largest tensors. */
CornuBuffer *cornu_buffer_create_from(const CornuBufferConfig *config);
#define cornu_buffer_create(...) \
    cornu_buffer_create_from(&(CornuBufferConfig){ .unset = 0, __VA_ARGS__ })
/* Once; NULL is ignored. */
void         cornu_buffer_free(CornuBuffer *buffer);
CornuType    cornu_buffer_type(const CornuBuffer *buffer);   /* that it was made with */

/* Copies a host array into the buffer; the types must be equal. */
CornuStatus cornu_buffer_write(CornuBuffer *buffer, CornuArray from);
/* Copies the buffer to a host array of its type, after the runs that write it have ended. */
CornuStatus cornu_buffer_read(const CornuBuffer *buffer, CornuArray to);

/* Writes a part: the array's elements, of the buffer's dtype, are its elements `first`,
 * first + 1, ... */
CornuStatus cornu_buffer_write_part(CornuBuffer *buffer, int64_t first, CornuArray from);
/* Reads a part, likewise. */
CornuStatus cornu_buffer_read_part(const CornuBuffer *buffer, int64_t first, CornuArray to);

/*
 * Memory in use on one shard, in bytes: on a TPU, its replica's HBM. Elements count in their
 * declared dtype, as stored here; the tiles of 8 by 128 that a TPU pads them to are left to the
 * performance model (tpu/model.h). A replicated buffer counts whole, since each replica holds a
 * copy; a per-shard one counts one shard's part. Each executable that the device keeps counts its
 * plan: what shards share, and one shard's part, each value aligned to 64 bytes. Scratch memory of
 * this machine's kernels does not count.
 */
typedef struct {
    int64_t now, peak;
} CornuBytes;

typedef struct {
    int64_t    capacity;               /* 0: unlimited; on "tpu" the HBM of a replica */
    CornuBytes total;
    CornuBytes uses[CORNU_USE_COUNT];  /* each with a peak of its own */
} CornuMemory;

/* What is in use now, and at most since the device was opened. */
CornuMemory cornu_device_memory(const CornuDevice *device);

/* ---- Programs ---- */

/* What a compiled program costs to run; all counts are exact. */
typedef struct {
    int64_t flops;          /* of the program as recorded; a multiply-add counts two */
    int64_t ops;            /* ops of the program as recorded                       */
    int64_t kernels;        /* kernels that run per step after fusion               */
    int64_t fallbacks;      /* of these, ops run by their reference kernel          */
    /* The name of such an op of each id, one of them for registered ops; NULL: none. */
    const char *fell_back[CORNU_OP_COUNT];
    int64_t copies;         /* of the kernels, copies the memory plan could not avoid */
    int64_t bytes_planned;  /* memory for all values between inputs and outputs, of all shards
                               that run at the same time */
    int64_t bytes_moved;    /* read and written per step by all kernels             */
} CornuStatistics;

/* Compiles, or returns an equal program compiled before (by hash, then by full comparison). The
 * device owns the executable; the caller releases it when done, and it stays cached for an equal
 * program until its memory is needed or eight newer ones are unused too. `program` stays the
 * caller's. Memory for intermediate values is allocated here, so running allocates nothing;
 * CORNU_ERR_MEMORY as for a buffer. CORNU_DUMP=program,plan in the environment prints the program,
 * the plan, or both, to stderr; CORNU_DUMP=kernels the plan and why kernels declined. */
CornuExecutable *cornu_device_compile(CornuDevice *device, const CornuProgram *program);
/* Once for each compile or twin: it may be evicted then. NULL is ignored. */
void             cornu_executable_release(CornuExecutable *executable);
/* The device that compiled it. */
CornuDevice     *cornu_executable_device(const CornuExecutable *executable);

/* The same program with memory of its own for values: twins may run while other threads run other
 * twins, or compile or run anything else, as long as no buffer that one of them writes is used by
 * another. Making and releasing one counts as compiling. It keeps the executable that it was made
 * of. `inputs` are those of its runs: of the program's
 * fixed ones (program.h) the first twin, or run, computes what depends on them alone. NULL with
 * CORNU_ERR_UNSUPPORTED on a device that runs one program at a time, which pjrt is. */
CornuExecutable *cornu_executable_twin(CornuExecutable *executable, CornuBuffer *const *inputs);
/* Whether the device has twins. */
bool             cornu_device_runs_twins(const CornuDevice *device);

/* Runs once. inputs: one buffer per input of the program; outputs: one per output, NULL for an
 * output that is written into an input. Types must be those of cornu_program_buffer_type. Bad data,
 * such as a label out of range, is CORNU_ERR_VALUE with a message naming op and row; aliased inputs
 * are then undefined.
 *
 * On a pjrt device a run of which all outputs are aliased may return before it has ended. Its
 * failure is then that of the next run on the device, of reading a buffer, or of
 * cornu_device_wait, whichever comes first. */
CornuStatus cornu_executable_run(CornuExecutable *executable, CornuBuffer *const *inputs,
                                 CornuBuffer *const *outputs);

/* The next `runs` runs may be done together, each with what its INFEED buffers held when it was
 * asked for: by a pjrt device, as one loop, if all outputs are aliased. They are started at the
 * latest when the last of them is asked for, a buffer is read, another is written, or another
 * program runs. Other devices do not need it. */
void cornu_executable_collect(CornuExecutable *executable, int64_t runs);

/* Until all runs have ended; the failure of one that has not been reported. */
CornuStatus cornu_device_wait(CornuDevice *device);

/* What its program costs; owned by the executable. */
const CornuStatistics *cornu_executable_statistics(const CornuExecutable *executable);

/* What a compiler below the device, XLA, says of a program. What it does not say is 0. */
typedef struct {
    bool    has_memory, has_cost, has_program;
    /* Bytes on a shard: of inputs, outputs, the outputs that are written into inputs, values
     * between them, and code; the most at once (0 if not said). */
    int64_t argument_bytes, output_bytes, alias_bytes, temporary_bytes, code_bytes, peak_bytes;
    /* Of one run, on a shard; its own estimates, in which a loop's body may count once. */
    double  flops, bytes_accessed;
    int64_t fusions;        /* of ops into one, in the optimized program */
} CornuCompiledFigures;

/* All 0 on devices of which no compiler but Cornu's knows the program: cpu, tpu, reference. */
CornuCompiledFigures cornu_executable_figures(const CornuExecutable *executable);

#ifdef __cplusplus
}
#endif
#endif
