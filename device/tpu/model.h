/*
 * The performance model: what one step would cost on a TPU.
 *
 *     CornuExecutable *step = cornu_model_train_step(network, x, y);
 *     CornuTpuModel *model = cornu_tpu_model(.executable = step,
 *                                            .profile = cornu_tpu_profile("v3-8"));
 *     printf("%.3f ms modelled\n", 1e3 * model->step_s);
 *
 * The executable is what one shard runs in a step, with its fused ops, collectives and inputs.
 * Everything here is *modelled*: computed from shapes and from a profile's published figures.
 * Nothing ran on a TPU, and no number is a time on this machine.
 *
 * How a step is modelled
 * - Products go to the MXU, weight-stationary: B (K, N) is divided into tiles of the array's shape,
 *   and each tile is held while the M rows of A stream by, one row per cycle. Convolutions are
 *   products: conv2d M = B Ho Wo, K = h w C, N = F; its filter gradient M = h w C, K = B Ho Wo,
 *   N = F; its input gradient M = B H W, K = h w F, N = C. A grouped convolution is one product
 *   per group; a depthwise one, whose K is tiny, goes to the vector unit.
 * - A recurrent op (lstm, gru, their gradients) is one product for each of its T time steps, M = B,
 *   K = U, N = 4 U (or 3 U); K and N are swapped for a gradient. Each waits for the one before, so
 *   the tiles of weights are loaded and the array fills and drains T times; the weights themselves
 *   stay in VMEM. scan runs its body T times in the same way.
 * - gather reads its whole table.
 * - All else goes to the vector unit, one operation of the op's FLOP rule per lane, sublane and
 *   ALU each cycle.
 * - The operands and results of each step of the executable go through HBM, padded to whole tiles
 *   of 8 by 128, in the best layout the compiler may choose; values between the ops of a step stay
 *   on the chip.
 * - Consecutive collectives of the same kind are combined into one, over the links of the smallest
 *   slice that has so many replicas: a board, or up to a pod (slice.h).
 * - A step takes as long as the busiest of MXU, vector unit, HBM and links. Steps run one after
 *   the other: no collective overlaps the backward pass. The infeed of the next batch overlaps all
 *   of them; the host's dispatch does not.
 *
 * Sources: Samajdar et al., "SCALE-Sim: Systolic CNN accelerator simulator", arXiv 1811.02883 (one
 * fold); Jouppi et al., "In-datacenter performance analysis of a tensor processing unit", ISCA
 * 2017 (the next tile loads during the stream). slice.h has those of the links.
 */
#ifndef CORNU_DEVICE_TPU_MODEL_H
#define CORNU_DEVICE_TPU_MODEL_H

#include "../device.h"
#include "slice.h"
#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The MXU ---- */

/* bfloat16 passes of an f32 product, by precision. */
enum { CORNU_TPU_DEFAULT = 1, CORNU_TPU_HIGH = 3, CORNU_TPU_HIGHEST = 6 };

/* `count` products of (M, K) by (K, N). */
typedef struct {
    int64_t count, m, k, n;
} CornuTpuProduct;

/* Cycles of one pass of a product over arrays of R by C. With Mp = M rounded up to 8 and F folds
 * per array,
 *     ideal        count M K N / (R C arrays)                      every cell busy, every cycle
 *     overlapped   R + (F - 1) max(Mp, R) + Mp + (R + C - 2)       the model
 *     no overlap   F (2 R + C + Mp - 2)                            each tile loaded by itself
 * Folds are distributed over the arrays; a single fold leaves all but one of them idle. */
typedef struct {
    int64_t folds;          /* tiles of weights: count ceil(K / R) ceil(N / C)  */
    int64_t padded_macs;    /* multiply-accumulates with Mp rows and whole tiles */
    double  ideal, overlapped, no_overlap;
} CornuTpuCycles;

/* The cycles on so many arrays of `rows` by `columns`; all 0 for a product without elements. */
CornuTpuCycles cornu_tpu_cycles(CornuTpuProduct product, int64_t rows, int64_t columns,
                                int64_t arrays);

/* The product that a matmul, one of the three convolution ops or a recurrent op amounts to; count 0
 * for other ops. `out` is the type of its output. */
CornuTpuProduct cornu_tpu_product(const CornuOpCall *call, CornuType out);

/*
 * What a product keeps in the VMEM of a core with `arrays` of R by C. Each busy array keeps its
 * tile of weights and the next one, which is loading, and for a block of rows the slice of A that
 * streams by and the sums of the tile's columns:
 *     bytes = arrays (2 2 R C + rows (2 parts R + 4 C))
 * Weights and A are bf16, sums f32; an f32 operand of 3 (6) passes is stored as its 2 (3) bf16
 * parts. K and N do not occur, since tiles come one after the other, and the M rows are divided
 * into as few equal blocks as fit, of at least 8. So whether a product fits depends on 8 rows,
 * whatever its extents; they need 70 KiB on an array of 128 by 128. Derived from the two tiles of
 * Jouppi et al. 2017 (above) and the block of rows of JAX's Pallas matmul (docs.jax.dev,
 * pallas/tpu/matmul).
 */
typedef struct {
    int64_t rows, blocks;   /* rows of a block, a multiple of 8; 0 blocks: 8 rows do not fit */
    int64_t bytes;          /* at once, per core */
} CornuTpuTiling;

/* The largest blocks of rows that fit in vmem_bytes, with `passes` bfloat16 passes. */
CornuTpuTiling cornu_tpu_tiling(CornuTpuProduct product, int64_t rows, int64_t columns,
                                int64_t arrays, int passes, int64_t vmem_bytes);

/* The passes of a product of f32 on a device of this precision. */
static inline int cornu_tpu_passes(CornuPrecision precision)
{
    return precision == CORNU_PRECISION_HIGHEST ? CORNU_TPU_HIGHEST
         : precision == CORNU_PRECISION_HIGH    ? CORNU_TPU_HIGH : CORNU_TPU_DEFAULT;
}

/* ---- Memory ---- */

/* Bytes of a value in HBM, row-major: rows padded to 8 (32 for one-byte elements), columns to 128;
 * f32 (128, 10) takes 12.8 times its size. A vector is one row, not padded to 8. */
int64_t cornu_tpu_tiled_bytes(CornuType type);

/* The least of the possible layouts: as above; with the first axis (the batch) along the 8 of a
 * tile; or with it along the 128, and the last axis or, as XLA lays out images of one channel, the
 * one before it along the 8. */
int64_t cornu_tpu_hbm_bytes(CornuType type);

/* Whether shards exchange values in it. */
bool cornu_tpu_is_collective(CornuOpId id);

/* What such an op of a program takes by itself, once. */
CornuTpuExchange cornu_tpu_exchange(const CornuTpuProfile *profile, const CornuTpuSlice *slice,
                                    const CornuProgram *program, const CornuProgramOp *op);

/* ---- A step ---- */

#define CORNU_TPU_BOUND_MAP(X) \
    X(NOTHING,  "-")           \
    X(MXU,      "mxu")         \
    X(VECTOR,   "vector")      \
    X(HBM,      "hbm")         \
    X(LINKS,    "links")       \
    X(INFEED,   "infeed")      \
    X(DISPATCH, "dispatch")

typedef enum {
#define X(id, name) CORNU_TPU_BOUND_##id,
    CORNU_TPU_BOUND_MAP(X)
#undef X
} CornuTpuBound;

/* "hbm", "links": the unit's name above. */
const char *cornu_tpu_bound_name(CornuTpuBound bound);

/* One step of the executable, or one op of the program, on one replica. */
typedef struct {
    CornuTpuProduct product;       /* count 0: not on the MXU; of several, the largest          */
    int             passes;        /* bfloat16 passes over the product: 1, 3 or 6; 0 without    */
    CornuTpuCycles  cycles;        /* of all passes (folds and padded_macs: of one)             */
    CornuTpuTiling  tiling;        /* in the profile's VMEM                                     */
    int64_t         useful_macs;   /* multiply-accumulates that the op calls for, in one pass   */

    /* useful_macs as a fraction of what the arrays could do: with padding as the only loss; as
     * modelled; without overlapped loading of tiles. 0 to 1. */
    double          use_padding, use_overlapped, use_no_overlap;

    int64_t         vector_ops;    /* element operations                                        */
    int64_t         hbm_bytes;     /* read and written, padding included                        */
    int64_t         link_bytes;    /* of a collective's operand                                 */
    double          wire_bytes;    /* that the busiest link moves one way for it                */
    double          mxu_s, vector_s, hbm_s, links_s;   /* seconds each unit is busy             */
    double          seconds;       /* the largest of the four; of a loop within which shards
                                      meet, links_s and the largest of the others               */
    CornuTpuBound   bound;         /* the unit it is of                                         */
} CornuTpuOp;

typedef struct {
    const CornuTpuProfile *profile;
    CornuTpuSlice          slice;
    int64_t                shards;
    CornuTpuOp            *ops;      /* one per step of the executable, or op of the program */
    int                    op_count;

    /* Sums over the ops on one replica. */
    int64_t useful_macs, padded_macs;   /* all passes counted           */
    int64_t folds;                      /* tiles loaded, all passes     */
    int64_t vector_ops, hbm_bytes, link_bytes;
    double  wire_bytes;
    int64_t infeed_bytes;               /* of all replicas              */
    double  mxu_s, vector_s, hbm_s, links_s;   /* seconds each unit is busy */
    double  use_overlapped;             /* useful_macs / what the arrays do in mxu_s */

    /* Seconds. */
    double  device_s;       /* the ops, one after the other                               */
    double  infeed_s;       /* the whole batch, over the PCIe of the chips used           */
    double  dispatch_s;     /* the profile's dispatch_ms / iterations_per_loop            */
    double  step_s;         /* max(device_s, infeed_s) + dispatch_s                       */
    CornuTpuBound device_bound;   /* the unit of the device that is busy longest          */
    CornuTpuBound bound;          /* the same, infeed and dispatch included               */
} CornuTpuModel;

typedef struct {
    char                   unset;
    const CornuProgram    *program;            /* a step of one shard, unfused; or           */
    const CornuExecutable *executable;         /* a compiled one                             */
    const CornuTpuProfile *profile;            /* default that of the executable's device, or
                                                  v2-8                                       */
    int64_t                shards;             /* 1 to the replicas of the generation's pod;
                                                  default the profile's. Of an executable: its
                                                  own, unless scaled                         */
    bool                   scaled;             /* .shards may be more than the executable's:
                                                  each does what one of its shards does, but for
                                                  smaller slices of what shards divide       */
    bool                   wrapped;            /* as if links closed every axis of the slice */
    int64_t                infeed_bytes;       /* of the whole batch, all shards; default the
                                                  executable's per-shard inputs              */
    int64_t                iterations_per_loop;/* steps per call from the host; default 1    */
    int                    passes;             /* of f32 products; default CORNU_TPU_DEFAULT.
                                                  bf16 products take 1                       */
} CornuTpuModelConfig;

/* NULL with CORNU_ERR_ARGUMENT for a number out of range; with CORNU_ERR_MEMORY also if the
 * profile's VMEM does not hold 8 rows of a product (all known profiles do). The caller frees it; it
 * keeps no reference to the program. */
CornuTpuModel *cornu_tpu_model_from(const CornuTpuModelConfig *config);
#define cornu_tpu_model(...) \
    cornu_tpu_model_from(&(CornuTpuModelConfig){ .unset = 0, __VA_ARGS__ })
/* Once; NULL is ignored. */
void cornu_tpu_model_free(CornuTpuModel *model);

#ifdef __cplusplus
}
#endif
#endif
