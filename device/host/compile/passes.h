/*
 * From a program to steps in memory: the passes of host devices, one file each.
 *
 *     decompose   ops without a kernel become ops that have one
 *     simplify    what need not be computed is not
 *     distribute  sums over shards come before products of what is summed
 *     combine     sums over shards become few
 *     fuse        ops become steps: kernels with epilogues, elementwise groups
 *     plan        steps are ordered, values get their memory
 *
 * The first four map programs to programs, the others fill a CornuPlan, which verify.c checks if
 * CORNU_VERIFY is 1. CORNU_DUMP=program shows the program after each of the first, CORNU_DUMP=plan
 * the steps; CORNU_PASSES leaves passes out (debug_internal.h).
 */
#ifndef CORNU_DEVICE_HOST_PASSES_H
#define CORNU_DEVICE_HOST_PASSES_H

#include "../../debug_internal.h"
#include "elementwise.h"
#include "../run/executor.h"
#include "../kernels/kernel.h"

/* ---- Programs to programs ---- */

CornuProgram *cornu__decompose(const CornuHost *host, const CornuProgram *program);
CornuProgram *cornu__simplify(const CornuHost *host, const CornuProgram *program);
CornuProgram *cornu__distribute(const CornuHost *host, const CornuProgram *program);
CornuProgram *cornu__combine(const CornuProgram *program);

/* The kernel that takes this op of the program, and the one that takes it joined with a pooling;
 * NULL: none. */
const CornuKernel *cornu__kernel_for(const CornuHost *host, const CornuProgram *program,
                                     const CornuProgramOp *op);
const CornuKernel *cornu__pooled_kernel_for(const CornuHost *host, const CornuProgram *program,
                                            const CornuProgramOp *op);

/* A value that is part of another's memory: on shard s it begins offset + s stride bytes behind
 * the whole. */
typedef struct {
    CornuValue whole;
    size_t     offset, stride;
} CornuPart;

/* Whether the op's result is part of its operand's memory: a reshape, a slice of leading axes, a
 * shard's slice of a value that all share. All parts start at multiples of 64 bytes. */
bool cornu__is_view(const CornuProgram *program, const CornuProgramOp *op, CornuPart *part);

/* Whether an operand can be made as part of the op's result: of a pack, of a concat along the first
 * axis, of an all_gather over all shards. */
bool cornu__is_joined(const CornuProgram *program, const CornuProgramOp *op, int operand,
                      CornuPart *part);

/* A program being copied with changes: `map` gives the new value of each old one. */
typedef struct {
    const CornuProgram *from;
    CornuProgram       *to;
    CornuValue         *map;
    CornuValue         *in;    /* the mapped operands of the op in hand */
    bool                one_shard;
} CornuRewrite;

/* Declares the same inputs; for one shard none of them varies from shard to shard. */
CornuStatus       cornu__rewrite_begin(CornuRewrite *rewrite, const CornuProgram *from,
                                       bool one_shard);
const CornuValue *cornu__rewrite_operands(CornuRewrite *rewrite, const CornuProgramOp *op);
/* Records the op unchanged. */
CornuStatus       cornu__rewrite_keep(CornuRewrite *rewrite, const CornuProgramOp *op);
/* Declares the same outputs, frees all but the new program, which it returns; NULL after
 * a failure. An output of which every shard has its own keeps that where the change has made it one
 * for all, as select(c, x, x) = x does. */
CornuProgram     *cornu__rewrite_end(CornuRewrite *rewrite, CornuStatus status);

/* A copy: what a pass gives that is left out. */
CornuProgram     *cornu__rewrite_nothing(const CornuProgram *program, bool one_shard);

/* What a kernel may ask about the device. */
CornuMachine cornu__machine(const CornuHost *host);

/* ---- Steps ---- */

typedef enum {
    CORNU_STEP_KERNEL, CORNU_STEP_PACK, CORNU_STEP_REFERENCE, CORNU_STEP_GROUP, CORNU_STEP_COPY,
    CORNU_STEP_SCAN
} CornuStepKind;

typedef struct {
    CornuStepKind      kind;
    int                position;   /* its last op in the program: the order wanted      */
    int                op;         /* of a kernel, pack or reference step               */
    int                pool;       /* the pooling op joined with a kernel's, or -1      */
    int               *ops;        /* all that it computes, ascending; none for a copy  */
    int                op_count;
    int                in_first, in_count;    /* values read and values written: ranges */
    int                out_first, out_count;  /* of CornuPlan.operands                  */
    const CornuKernel *kernel;
    CornuEpilogue      epilogue;
    bool               has_bias;   /* then the bias is the last value read              */
    bool               has_gate;   /* then the gate is, and no bias                     */
    int                packed;     /* the value read that a pack step made, -1: none    */
    bool               varies;     /* every shard runs it; else it runs once            */
    bool               waits;      /* until every shard is done with the steps before   */
    CornuGroup        *group;
    struct CornuNested *nested;    /* of a scan                                         */
    CornuType         *types;      /* of the values read, then of those written         */
} CornuStep;

/* Where a value lives. */
typedef enum {
    CORNU_NOWHERE, CORNU_ARENA, CORNU_PACKED, CORNU_INPUT, CORNU_OUTPUT
} CornuRegion;

typedef struct {
    CornuRegion region;
    int         number;   /* of the input or output buffer */
    size_t      offset;   /* bytes, on shard 0 and worker 0 */
    size_t      stride;   /* bytes from shard to shard; 0: all shards share the value */
    size_t      worker_stride;   /* bytes from worker to worker */
} CornuPlace;

/* Memory of a region: what shards share, then a part for each shard, then one for each worker. What
 * a shard needs within one segment alone is in the part of the worker that runs it, so that the
 * next shard finds it in the cache. */
typedef struct { size_t shared, shard, worker; } CornuSpace;

typedef struct {
    const CornuHost *host;
    CornuProgram    *program;        /* after the passes; owned */
    CornuStep       *steps;          /* in the order in which they run, once planned */
    int              step_count, step_space;
    CornuValue      *operands;
    int              operand_count, operand_space;
    /* Values: those of the program, then packed operands and temporaries of copies. */
    CornuType       *types;
    CornuPlace      *places;
    int              value_count, value_space, place_space;
    bool            *varies;         /* by value */
    int              varies_space;
    CornuPart       *joined;         /* by value of the program: the result it is made in, if any */
    CornuValue       largest[CORNU_LARGEST];   /* of the arena's, when most of it is taken */
    int              largest_count;
    CornuSpace       arena;
    CornuSpace       packed;         /* packed operands: like scratch memory this CPU's need, not
                                        the device's that is emulated */
    size_t           scratch_bytes;
} CornuPlan;

/* At least 1. */
int cornu__plan_shards(const CornuPlan *plan);

/* All passes, into an empty plan. Its scratch_bytes are those of the hungriest step. */
CornuStatus cornu__plan_build(CornuPlan *plan, const CornuHost *host, const CornuProgram *program);

/* Threads that each take a shard from start to end of a segment; 1: all threads work on one shard
 * after the other. */
int cornu__plan_workers(const CornuPlan *plan);

/* Bytes of one of its regions, and of it what one shard's device needs. */
size_t cornu__plan_bytes(const CornuPlan *plan, CornuSpace space);
size_t cornu__plan_bytes_of_shard(CornuSpace space);

/* addresses[i] = where operand i is on a shard and worker 0, given the inputs, outputs and regions.
 */
void cornu__plan_addresses(const CornuPlan *plan, int shard, void *const *inputs,
                           void *const *outputs, char *arena, char *packed,
                           void **addresses);

/* One step on a shard whose operands are at `addresses`; the message of a failure names its op. */
CornuStatus cornu__plan_run_step(const CornuPlan *plan, const CornuStep *step,
                                 void *const *addresses, int shard, char *scratch);

/* What the steps cost, each run `times` times; fields are added to. */
void cornu__plan_count(const CornuPlan *plan, int64_t times, CornuStatistics *statistics);

/*
 * A scan: its body is a plan of its own, compiled once, whose carries are written into the inputs
 * that they came from. Its regions and scratch memory are part of the step's scratch memory.
 */
typedef struct CornuNested CornuNested;

CornuNested *cornu__nested_create(const CornuHost *host, const CornuAttributes_SCAN *scan);
void         cornu__nested_free(CornuNested *nested);
size_t       cornu__nested_scratch(const CornuNested *nested);
void         cornu__nested_count(const CornuNested *nested, int64_t times,
                                 CornuStatistics *statistics);
void         cornu__nested_print(const CornuNested *nested, FILE *to);
CornuStatus  cornu__nested_run(const CornuNested *nested, const CornuStep *step,
                               const void *const *in, void *const *out, int shard, char *scratch);

/* Takes the program. */
CornuStatus cornu__fuse(CornuPlan *plan);
CornuStatus cornu__plan_memory(CornuPlan *plan);
/* CORNU_ERR_UNSUPPORTED for a plan that does not compute its program, naming step and value. It
 * takes time and memory, and is for tests and for CORNU_VERIFY=1. */
CornuStatus cornu__plan_verify(const CornuPlan *plan);
void        cornu__plan_print(const CornuPlan *plan, FILE *to);
void        cornu__plan_free(CornuPlan *plan);

/* Appends a step with these values; its other fields are the caller's to fill. NULL and
 * CORNU_ERR_MEMORY. */
CornuStep *cornu__plan_step(CornuPlan *plan, CornuStepKind kind, const CornuValue *in,
                            int in_count, const CornuValue *out, int out_count);

/* A value that the program does not have: in a buffer, or among what is packed. */
CornuStatus cornu__plan_value(CornuPlan *plan, CornuType type, bool varies, CornuPlace place,
                              CornuValue *value);

/* The value that `value` is seen in, made by its maker; and the part of memory where it is, of a
 * whole that may be made later. */
CornuValue cornu__plan_root(const CornuPlan *plan, CornuValue value);
CornuPart  cornu__plan_part(const CornuPlan *plan, CornuValue value);

/* Whether operand k of the step has to be moved into the result that the step joins it to; false
 * where it is there already, and of other steps. */
bool cornu__plan_moves(const CornuPlan *plan, const CornuStep *step, int k);

/* "kernel", "group", …; "collective" for a kernel that reads what other shards made. */
const char *cornu__plan_kind_name(const CornuPlan *plan, const CornuStep *step);

#endif
