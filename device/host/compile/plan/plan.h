/*
 * Plans: the steps that a program is compiled to, in the order in which they run, and the place of
 * every value in memory.
 */
#ifndef CORNU_DEVICE_HOST_PLAN_H
#define CORNU_DEVICE_HOST_PLAN_H

#include "../../../device_internal.h"
#include "group.h"
#include "host.h"

/* ---- Values in memory ---- */

/* A value that is part of another's memory: on shard s of all it begins offset + s stride bytes
 * after the start of the whole. */
typedef struct {
    CornuValue whole;
    size_t     offset, stride;
} CornuPart;

typedef enum {
    CORNU_NOWHERE, CORNU_ARENA, CORNU_PACKED, CORNU_SUMS, CORNU_FIXED, CORNU_INPUT, CORNU_OUTPUT
} CornuRegion;

/* Where a value lives. */
typedef struct {
    CornuRegion region;
    int         number;   /* of the input or output buffer */
    size_t      offset;   /* bytes, on this process' first shard and worker 0 */
    size_t      stride;   /* bytes from shard to shard; 0: all shards share the value */
    int         block;    /* over 1: the stride is from block to block of so many shards */
    size_t      worker_stride;   /* bytes from worker to worker */
} CornuPlace;

/* Bytes of a region: a part that shards share, then one part for each own shard, then one for each
 * worker. Values that live within one segment alone are in the part of the worker that runs it, so
 * that the next shard finds that memory in the cache. */
typedef struct { size_t shared, shard, worker; } CornuSpace;

/* Bytes of the region of sums over shards, which are made block by block (sums.c): a part for each
 * block, then one for each worker. */
typedef struct { size_t block, worker; } CornuSumSpace;

/* ---- Steps ---- */

typedef enum {
    CORNU_STEP_KERNEL, CORNU_STEP_PACK, CORNU_STEP_REFERENCE, CORNU_STEP_GROUP, CORNU_STEP_COPY,
    CORNU_STEP_SCAN, CORNU_STEP_LOOP, CORNU_STEP_SUM, CORNU_STEP_SEND, CORNU_STEP_WAIT
} CornuStepKind;

typedef struct {
    CornuStepKind      kind;
    int                position;   /* its last op in the program: the order wanted      */
    int                op;         /* of a kernel, pack, reference, scan or send step   */
    int                pool;       /* the pooling op joined with a kernel's, or -1      */
    int               *ops;        /* all that it computes, ascending; none for a copy  */
    int                op_count;
    int                in_first, in_count;    /* values read and values written: ranges */
    int                out_first, out_count;  /* of CornuPlan.operands                  */
    const CornuKernel *kernel;
    CornuEpilogue      epilogue;
    int                epilogue_in[CORNU_EPILOGUE_OPERANDS];   /* numbers of these among the values
                                      read; 0: none, as the op reads something before them */
    bool               summed;     /* a kernel joined with the sum of its results over all shards */
    int                packed;     /* the value read that a pack step made, -1: none    */
    bool               varies;     /* every shard runs it; else it runs once            */
    bool               fixed;      /* reads only what is the same in every run: done once   */
    bool               waits;      /* until every shard is done with the steps before   */
    int                block;      /* of a sum step: shards whose values it adds up; of the
                                      all_reduce that reads the sums, likewise; else 0 */
    int                input;      /* of a gather that is left to the next run, what it fills; of a
                                      wait step, what is waited for; else -1 */
    CornuGroup        *group;
    struct CornuScanPlan *scan;
    CornuType         *types;      /* of the values read, then of those written         */
} CornuPlanStep;

typedef struct {
    const CornuHost *host;
    CornuProgram    *program;        /* after the passes; owned */
    CornuPlanStep   *steps;          /* in the order in which they run, once planned */
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
    int64_t         *starts;         /* by operand of the program, of concat and pack: the element
                                        of the result where it begins */
    CornuValue       largest[CORNU_LARGEST];   /* of the arena's, when most of it is in use */
    int              largest_count;
    CornuSpace       arena;
    CornuSpace       packed;         /* packed operands: like scratch memory a need of this CPU, not
                                        of the device that is emulated */
    CornuSumSpace    sums;
    CornuSpace       fixed;          /* results of fixed steps, likewise */
    bool            *is_fixed;       /* by value, once planned */
    size_t           scratch_bytes;  /* of the step that takes most */
} CornuPlan;

/* The body of a scan: a plan of its own for one shard, whose carries are written into the inputs
 * that they came from, and whose steps that read constants alone run once. It runs in the step's
 * scratch memory, in this order: addresses of the body's operands, inputs and outputs; a buffer for
 * each slice and each stacked result; the body's arena, packed operands, fixed results and scratch
 * memory. In a loop step, within which shards meet, the body is a plan for all of them, which
 * runs once on all own shards in memory of its own (run/loop.h), and no output is a carry. */
typedef struct CornuScanPlan {
    CornuHost            host;       /* with one shard; of a loop with all */
    CornuPlan            plan;
    CornuAttributes_SCAN attributes; /* its body is the plan's program */
    size_t               buffers;    /* offset of the first buffer */
    size_t               arena, packed, fixed, scratch;   /* offsets of the last parts */
} CornuScanPlan;

/* ---- plan.c ---- */

/* At least 1; and those that this process runs, all of them unless it is one of several. */
int        cornu__plan_shards(const CornuPlan *plan);
CornuRange cornu__plan_own(const CornuPlan *plan);

/* Whether the step, which runs once on all own shards, meets other processes (run/exchange.h). */
bool cornu__plan_exchanges(const CornuPlan *plan, const CornuPlanStep *step);

/* Whether such a step, of a kernel, only ends a sum that a send step has begun. */
bool cornu__plan_ends_sum(const CornuPlan *plan, const CornuPlanStep *step);

/* Threads that each take a shard from start to end of a segment; 1: all threads work on one shard
 * after the other. */
int cornu__plan_workers(const CornuPlan *plan);

/* Shards in a row that one worker runs one after the other, so that it can add up what they have:
 * a power of two. */
int cornu__plan_block(const CornuPlan *plan);
/* Blocks of own shards, the last of which may have fewer. */
int cornu__plan_blocks(const CornuPlan *plan);

/* Bytes of one of its regions, and what one shard's device needs of it. */
size_t cornu__plan_bytes(const CornuPlan *plan, CornuSpace space);
size_t cornu__plan_bytes_of_shard(CornuSpace space);
size_t cornu__plan_sum_bytes(const CornuPlan *plan);

/* Bytes from the start of its region to a value on worker 0 and number `shard` of the own. */
size_t cornu__place_offset(const CornuPlace *place, int shard);

/* Bytes between the parts of two shards in a buffer of the value; 0 if they share it. */
size_t cornu__plan_stride(const CornuPlan *plan, CornuValue value);

/* Whether the step reads what other shards made. */
bool cornu__plan_crosses(const CornuPlan *plan, const CornuPlanStep *step);

/* "kernel", "group", …; "collective" for a kernel that reads what other shards made. */
const char *cornu__plan_kind_name(const CornuPlan *plan, const CornuPlanStep *step);

/* The call that a kernel, pack or reference step makes for its op, and the type of its result.
 * `types` is memory that both may use: those of an op with a packed operand or joined with a
 * pooling are not what the step reads and writes. */
enum { CORNU_CALL_TYPES = CORNU_MAX_INPUTS + 1 };
CornuOpCall cornu__plan_call(const CornuPlan *plan, const CornuPlanStep *step,
                             CornuType types[CORNU_CALL_TYPES], const CornuType **out_type);

/* The pooling joined with a kernel step, made in `call` and `types`; NULL: there is none. */
const CornuOpCall *cornu__plan_pool(const CornuPlan *plan, const CornuPlanStep *step,
                                    CornuType types[CORNU_CALL_TYPES], CornuOpCall *call);

/* The memory of the regions that a run has for itself, and of what all runs share. */
typedef struct { char *arena, *packed, *sums, *fixed; } CornuRegions;

/* addresses[i] = the address of operand i on worker 0 and a shard: number `shard` of the own. */
void cornu__plan_addresses(const CornuPlan *plan, int shard, void *const *inputs,
                           void *const *outputs, const CornuRegions *regions,
                           void **addresses);

/* Enters the values of plan->program, which have no place yet. */
CornuStatus cornu__plan_values(CornuPlan *plan);

/* A value that the program does not have: in a buffer, or a packed operand. */
CornuStatus cornu__plan_value(CornuPlan *plan, CornuType type, bool varies, CornuPlace place,
                              CornuValue *value);

/* Appends a step with these values; its other fields are the caller's to fill. NULL and
 * CORNU_ERR_MEMORY. */
CornuPlanStep *cornu__plan_step(CornuPlan *plan, CornuStepKind kind, const CornuValue *in,
                                int in_count, const CornuValue *out, int out_count);

void cornu__plan_free(CornuPlan *plan);

/* ---- part.c ---- */

/* Whether the op's result is part of its operand's memory: a reshape, a slice of leading axes, a
 * shard's slice of a value that all share. All parts start at multiples of 64 bytes. */
bool cornu__is_view(const CornuProgram *program, const CornuProgramOp *op, CornuPart *part);

/* Whether an operand can be made as part of the op's result: of a pack, of a concat along the first
 * axis, of an all_gather over all shards. */
bool cornu__is_joined(const CornuPlan *plan, const CornuProgramOp *op, int operand,
                      CornuPart *part);

/* Fills in the plan's starts. CORNU_ERR_MEMORY. */
CornuStatus cornu__plan_find_starts(CornuPlan *plan);

/* Whether the op's kernel may make its result in this operand's own memory, of which it writes only
 * what differs. */
bool cornu__is_replaced(const CornuProgramOp *op, int operand);

/* The value that `value` is a view of, made by its own op; and the part of memory where it is, of a
 * whole that may be made later. */
CornuValue cornu__plan_root(const CornuPlan *plan, CornuValue value);
CornuPart  cornu__plan_part(const CornuPlan *plan, CornuValue value);

/* Which input's memory the step reads as operand i, and which part; -1: none. */
int cornu__plan_input_read(const CornuPlan *plan, const CornuPlanStep *step, int i,
                           CornuPart *part);

/* Whether operand k of the step has to be moved into the result that the step joins it to; false
 * where it is there already, and for other steps. */
bool cornu__plan_moves(const CornuPlan *plan, const CornuPlanStep *step, int k);

/* ---- plan_scan.c ---- */

/* Finds the offsets, once the plan of the body is built. */
void cornu__scan_lay_out(CornuScanPlan *scan);

/* Whether input i of the body is a slice of the scan's operand i. */
bool      cornu__scan_is_sliced(const CornuScanPlan *scan, int i);
CornuType cornu__scan_input_type(const CornuScanPlan *scan, int i);
CornuType cornu__scan_output_type(const CornuScanPlan *scan, int i);

/* ---- plan_count.c ---- */

/* Bytes that the step moves as its operand k, results counted after the operands: all of the
 * operand, but of a table the rows that are looked up or replaced, and of operands that it joins
 * only the ones not yet in place. */
int64_t cornu__plan_bytes_moved(const CornuPlan *plan, const CornuPlanStep *step, int k);

/* Adds the cost of the steps to the statistics. */
void cornu__plan_count(const CornuPlan *plan, CornuStatistics *statistics);

/* ---- plan_fixed.c ---- */

/* Marks the values and steps that depend on fixed inputs alone (program.h) and have memory of their
 * own. */
CornuStatus cornu__plan_find_fixed(CornuPlan *plan);

/* ---- ../sums/sums.c ---- */

/* The sum step that makes what the all_reduce `step` reads; NULL if it reads the shards' values. */
const CornuPlanStep *cornu__plan_sum_of(const CornuPlan *plan, const CornuPlanStep *step);

/* ---- ../sums/exchanges.c ---- */

/* Whether a kernel step ends the sum that `send` has begun. */
bool cornu__plan_begins(const CornuPlan *plan, const CornuPlanStep *send,
                        const CornuPlanStep *step);

/* ---- plan_print.c ---- */

/* As cornu_executable_declined. */
int cornu__plan_declined(const CornuPlan *plan, const CornuPlanStep *step, CornuDeclined *to);

void cornu__plan_print(const CornuPlan *plan, FILE *to);

#endif
