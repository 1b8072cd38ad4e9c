/*
 * Kernels of the host devices, by op.
 *
 * A host device brings tables of kernels (compile/plan/host.h). An op without a kernel is
 * decomposed; an op that has no decomposition either runs by the reference kernel, counted as a
 * fallback.
 *
 * Every operand and result is packed, row-major, in the dtype of its type, aligned to 64 bytes.
 * Kernels allocate nothing: they say how much scratch memory they need when the program is
 * compiled. Work is cut into blocks whose size depends on shapes alone, and long sums into fixed
 * chunks added in a fixed order, so that the bits do not depend on the number of threads.
 */
#ifndef CORNU_DEVICE_HOST_KERNEL_H
#define CORNU_DEVICE_HOST_KERNEL_H

#include "../../device.h"
#include "../../ops/rules.h"
#include "../machine/threads.h"
#include "../isa/product.h"
#include "scratch.h"

/* What an epilogue reads. */
typedef enum {
    CORNU_EPILOGUE_BIAS, CORNU_EPILOGUE_SCALE, CORNU_EPILOGUE_SHIFT, CORNU_EPILOGUE_TERM,
    CORNU_EPILOGUE_SLOPE, CORNU_EPILOGUE_GATE, CORNU_EPILOGUE_OPERANDS
} CornuEpilogueOperand;

/*
 * The epilogue of a product, applied to the result before it leaves the registers or the cache:
 *     y = activation((y + bias) scale + shift + term) slope(gate), each part optional, bias, scale
 * and shift along the last axis. Scale and shift are those of a batch normalization that predicts,
 * the term what a residual connection adds; or in place of an activation a slope along the last
 * axis, by which what is below 0 is multiplied. Gates are results of a relu: after a gradient the
 * last factor is the slope of that activation.
 */
typedef struct {
    const void      *bias;         /* of the result's dtype; NULL: none */
    const float     *scale, *shift;   /* NULL: none; these and the term only where y is f32 */
    const float     *term;         /* of the result's shape; NULL: none */
    const float     *slope;        /* NULL: none; only where y is f32, and not with an activation */
    const void      *gate;         /* of its dtype and shape; NULL: none */
    float            gate_bound;   /* the slope is 1 where 0 < gate < gate_bound, else 0; 0: none */
    CornuOpId        activation;   /* CORNU_OP_COUNT: none; else RELU, BOUNDED_RELU, ELU, TANH,
                                      SIGMOID */
    CornuAttributes  attributes;   /* of the activation */
} CornuEpilogue;

/* Some of a result, f32: value (m, n) is element first + m width + n of a result with `width`
 * elements along the last axis. */
typedef struct {
    float  *y;
    int64_t rows, columns, stride;   /* value (m, n) is y[m stride + n] */
    int64_t first, width;
} CornuEpilogueRows;

/* What of an epilogue registers take (isa/product.h). */
CornuFinish cornu__epilogue_finish(const CornuEpilogue *epilogue);

/* Applies an epilogue, without gate. */
void cornu__epilogue_apply(const CornuEpilogue *epilogue, const CornuEpilogueRows *rows);

/* What is left of an epilogue, without gate, once that is applied: another activation or none. */
CornuEpilogue cornu__epilogue_after_tiles(const CornuEpilogue *epilogue);

/* Multiplies by slope(gate) `count` elements at y, the first of which is element `first` of the
 * result; dtype F32 or BF16. */
void cornu__epilogue_gate(const CornuEpilogue *epilogue, CornuDtype dtype, int64_t first,
                          int64_t count, void *y);

/* How a device multiplies: f32; or bf16, and f32 operands in some passes of it (device.h). */
typedef struct {
    bool           bf16;
    CornuPrecision precision;
} CornuMultiplier;

/* The properties of the device that a kernel may depend on. */
typedef struct {
    int             threads;
    CornuMultiplier multiplier;
    int             shards;    /* that compute the same op, each on its part; 0 counts as 1 */
} CornuMachine;

typedef struct {
    CornuOpCall          op;
    const CornuType     *out_type;
    const void *const   *in;
    void *const         *out;
    const CornuEpilogue *epilogue;   /* never NULL; empty where none is taken */
    CornuThreads        *threads;
    CornuMultiplier      multiplier;
    int                  shard, shards;   /* the one that computes, from 0, and how many */
    int64_t              shard_stride;    /* shard s has in[i + (s - shard) shard_stride] */
    int                  block;           /* over 1: the operand of shard 0, block, 2 block, … is
                                             the sum of so many shards (collective.h) */
    bool                 packed;     /* in[packs] has been packed by a step of its own */
    void                *scratch;    /* the bytes asked for, aligned to 64, contents undefined */
    /* NULL, or the pooling joined with the op, so that the map between the two is never in memory.
     * After conv2d a max_pool2d: `out` are its values and indices, the epilogue applies to the
     * values. Before a gradient of conv2d a max_pool2d_grad: `in` has its two operands in place of
     * d_y. `op` and `out_type` are the convolution's. */
    const CornuOpCall   *pool;
} CornuKernelCall;

typedef struct CornuKernel CornuKernel;

/* What kernels are asked about: a call, before there are operands. */
typedef struct {
    const CornuOpCall *op;
    const CornuType   *out_type;
    CornuMachine       machine;
    const CornuOpCall *pool;   /* NULL, or what the op is to be joined with: CornuKernelCall */
    unsigned           fixed;  /* bit i: operand i is the same in every run, so that packing it
                                  costs nothing. Only `declines` may depend on it. */
} CornuQuery;

/* Why a kernel does not take a call. */
typedef struct {
    const char        *needs;         /* what the call has not; NULL: the kernel takes it      */
    int64_t            least, most;   /* unless 0, of what is needed at least, at most         */
    int64_t            has;           /* and how many of that the call has                     */
    const CornuKernel *than;          /* or NULL, or the kernel that costs less                */
    double             cost, most_cost;   /* of that one's, estimated, and which would pay     */
} CornuDecline;

#define CORNU_TAKES ((CornuDecline){ .needs = NULL })

static inline CornuDecline cornu__needs(bool met, const char *what)
{
    return (CornuDecline){ .needs = met ? NULL : what };
}

static inline CornuDecline cornu__needs_least(int64_t least, const char *what, int64_t has)
{
    return (CornuDecline){ .needs = what, .least = least, .has = has };
}

static inline CornuDecline cornu__needs_most(int64_t most, const char *what, int64_t has)
{
    return (CornuDecline){ .needs = what, .most = most, .has = has };
}

/* What kernels of an op are compared by: multiply-adds, of whole registers; steps on registers. */
typedef enum { CORNU_COST_MULTIPLIES, CORNU_COST_STEPS } CornuCost;

struct CornuKernel {
    const char *name;   /* its file's topic, "conv2d_winograd": in plans and explanations */
    /* What it needs that this call has not (dtypes, ranks, sizes). NULL: that all floats are
     * f32. */
    CornuDecline (*declines)(const CornuQuery *q);
    /* NULL, or an estimate of what a call costs that the kernel does not decline. */
    double (*cost)(const CornuQuery *q, CornuCost cost);
    /* Of one with a cost that is not its op's last: what both estimate, and in percent of it how
     * much the last one's has to be at least, so that this one takes a call; 0: more. */
    CornuCost compares;
    int       gain_percent;
    /* What it needs to be joined with q->pool, if it does not decline the call itself. NULL: it is
     * joined with none. */
    CornuDecline (*joins)(const CornuQuery *q);
    /* Bytes of scratch memory a call needs. NULL: none. */
    size_t (*scratch)(const CornuQuery *q);
    /* CORNU_ERR_VALUE for a fault in the data, naming the row. */
    CornuStatus (*run)(const CornuKernelCall *call);
    bool takes_epilogue;   /* a bias and an activation */
    bool takes_scale;      /* and, without pooling, a scale, a shift and a term before that */
    bool takes_relu;       /* of that only a relu, with a bound or without */
    /* NULL, or packing of one operand as `run` wants it: bytes of the packed operand, made from
     * call->in[packs] at call->out[0]. Packing is a step of its own, so that shards share a packed
     * operand that they all read: `run` finds it in in[packs]. 0 bytes: `run` takes the operand as
     * it is. */
    size_t (*pack_bytes)(const CornuQuery *q);
    void (*pack)(const CornuKernelCall *call);
    int packs;   /* the number of that operand */
    /* NULL, or whether `run` had better pack the operand itself, each part where it is used: asked
     * where the operand may change from run to run. call->packed says whether it has to. */
    bool (*packs_itself)(const CornuQuery *q);
    bool takes_gate;
    /* NULL, or the kernel that adds up all shards' results as an all_reduce does, if it accepts the
     * call: run once, it finds operand k of shard s by shard_stride. */
    const CornuKernel *summed;
};

/* The kernels of an op, of which the first that accepts a call takes it; NULL after the last. */
enum { CORNU_OP_KERNELS = 7 };
typedef const CornuKernel *const CornuKernels[CORNU_OP_KERNELS];

/* Bytes up to the next multiple of 64, where operands and scratch memory begin. */
static inline size_t cornu__aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Elements of a result from which on `summed` kernels pay: each shard's would not be in the cache
 * anyway. */
enum { CORNU_SUMMED_ELEMENTS = 1 << 20 };

/* Why the kernel does not take the call. `last`: the last one of the op's list, which takes every
 * call that another one does. */
CornuDecline cornu__kernel_declines(const CornuKernel *kernel, const CornuKernel *last,
                                    const CornuQuery *q);

/* "needs at least 12 channels, has 3"; "costs 1.30 of conv2d_direct,
 * estimated (at most 0.91 pays)". */
void cornu__decline_print(CornuDecline decline, char text[CORNU_DECLINED_TEXT]);

/* `declines` of kernels that take every call, `joins` of those that join any pooling; `declines` of
 * kernels that take calls whose floats are all f32, or whose operand and result are both f32 or
 * both bf16. */
CornuDecline cornu__takes_all(const CornuQuery *q);
CornuDecline cornu__takes_f32(const CornuQuery *q);
CornuDecline cornu__takes_f32_or_bf16(const CornuQuery *q);

/* What `summed` kernels need of the shards and of the result. */
CornuDecline cornu__sum_declines(const CornuQuery *q);

/* Whether the op is to be joined with a pooling after it, or with a pooling's gradient before. */
static inline bool cornu__query_pools(const CornuQuery *q)
{
    return q->pool && q->pool->id == CORNU_OP_MAX_POOL2D;
}

static inline bool cornu__query_unpools(const CornuQuery *q)
{
    return q->pool && q->pool->id == CORNU_OP_MAX_POOL2D_GRAD;
}

static inline CornuQuery cornu__query_of(const CornuKernelCall *call)
{
    return (CornuQuery){ &call->op, call->out_type,
                         { cornu__threads_count(call->threads), call->multiplier, call->shards },
                         call->pool, 0 };
}

#endif
