/* Shared by the files of the pass fuse, fuse*.c. */
#ifndef CORNU_DEVICE_HOST_FUSE_INTERNAL_H
#define CORNU_DEVICE_HOST_FUSE_INTERNAL_H

#include "../../integer_internal.h"
#include "../../memory_internal.h"
#include "passes.h"
#include "units.h"

/* In one group: its registers should stay in the first-level cache. */
enum { CORNU_GROUP_OPS = 40 };

typedef enum {
    CORNU_NODE_LOOKED_THROUGH, CORNU_NODE_KERNEL, CORNU_NODE_JOINED, CORNU_NODE_ALONE,
    CORNU_NODE_GROUP
} CornuNodeKind;

/* An op. */
typedef struct {
    CornuNodeKind      kind;
    int                uses;      /* of its output 0, program outputs included */
    int                user;      /* the last op that uses output 0 */
    const CornuKernel *kernel;
    int                pool;      /* the pooling joined with a convolution, -1: none */
    bool               summed;    /* a product joined with its sum over the shards */
    bool               in_memory[CORNU_MAX_OUTPUTS]; /* outputs others read from memory */
    bool               pinned[CORNU_MAX_OUTPUTS];    /* and not only groups of as many elements */
    bool               written_out;    /* looked through, but needed in memory */
    bool               fixed;          /* depends on nothing that changes from run to run */
    int64_t            row;            /* of what is made of sums of rows: elements of these; 1 */
    CornuEpilogueOperand part;         /* if a kernel's epilogue does this op: which operand of an
                                          epilogue is that of the op; OPERANDS: it has none */
    CornuValue         part_value;
} CornuNode;

/* What a group goes over: elements, in rows of so many, or of 1. */
typedef struct { int64_t count, row; } CornuExtent;

typedef struct {
    CornuPlan          *plan;
    const CornuProgram *program;
    CornuNode          *nodes;
    CornuUnits          units;
    CornuExtent        *extents;    /* by unit: of a group */
    bool               *flags;      /* by op: a list on the way */
    int                *slot_of;    /* see cornu__group_create */
    int                *packed;     /* by value: the last step that packs it, -1: none */
    int                *packed_before;   /* by step: the one before that, of the same value */
    int                *reader;     /* by op: the last operand that reads it in a register, */
    int                *reader_before;   /* by operand: and the one before; -1: none */
} CornuFuser;

static inline int64_t cornu__value_count(const CornuFuser *f, CornuValue value)
{
    return cornu_type_count(cornu_program_type(f->program, value));
}

static inline const CornuValue *cornu__op_operands(const CornuFuser *f, int op)
{
    return cornu_program_operands(f->program, &f->program->ops[op]);
}

/* What op `op` of a group reads for operand k, and how. */
static inline CornuValue cornu__op_source(const CornuFuser *f, int op, int k, CornuAccess *access)
{
    return cornu__group_source(f->program, cornu__op_operands(f, op)[k], access);
}

/* The op, if it is a kernel's; COUNT: another, or none. */
static inline CornuOpId cornu__kernel_id(const CornuFuser *f, int op)
{
    return op >= 0 && f->nodes[op].kind == CORNU_NODE_KERNEL ? f->program->ops[op].id
                                                             : CORNU_OP_COUNT;
}

/* ---- fuse_kernels.c ---- */

/* Joins the kernel of op `op` with what it can do besides: a pool, a sum over shards, an
 * epilogue. */
void cornu__fuse_kernel(CornuFuser *f, int op);

/* ---- fuse_groups.c ---- */

/* Finds what is to join groups besides elementwise ops, and joins ops into groups. */
void cornu__fuse_groups(CornuFuser *f);

/* The op whose result op `op` would read in a register if the two were in one group: operand k's
 * maker, looked at through reshapes, and along rows. -1: it reads memory there. */
int cornu__register_maker(const CornuFuser *f, int op, int k);

/* Elements of the rows along which operand k of op `op` is read, 1: it is read as it is. */
int64_t cornu__operand_row(const CornuFuser *f, int op, int k);

/* Extent of an op by itself. */
CornuExtent cornu__op_extent(const CornuFuser *f, int op);

/* Whether one group can go over both, the ops of one being by row where it has fewer elements; one
 * of which reads the other's along rows of `row` elements, or 1: as it is. */
bool cornu__extents_fit(CornuExtent a, CornuExtent b, int64_t row, CornuExtent *both);

/* ---- fuse_memory.c ---- */

/* Finds the values that are read from memory, once units are formed. */
void cornu__fuse_memory(CornuFuser *f);

#endif
