#include "model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "../device_internal.h"
#include "../integer_internal.h"
#include "../memory_internal.h"
#include "../ops/attention.h"

/* Sums and products of counts saturate at INT64_MAX. */
static int64_t saturating_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#define TIMES(...)                                                        \
    cornu__flops((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
                 (const int64_t[]){ __VA_ARGS__ })

static int64_t round_up(int64_t a, int64_t unit) { return TIMES(ceil_divide(a, unit), unit); }

/* ---- The MXU ---- */

enum { ROW_GROUP = 8 };   /* rows of a register, 8 by 128 */

CornuTpuCycles cornu_tpu_cycles(CornuTpuProduct p, int64_t rows, int64_t columns,
                                int64_t arrays)
{
    if (!p.count || !p.m || !p.k || !p.n) return (CornuTpuCycles){ .folds = 0 };
    const int64_t folds = TIMES(p.count, ceil_divide(p.k, rows), ceil_divide(p.n, columns));
    const int64_t streamed = round_up(p.m, ROW_GROUP);
    const double  each = (double)ceil_divide(folds, arrays), m = (double)streamed;
    const double  load = (double)rows, skew = (double)(rows + columns - 2);
    return (CornuTpuCycles){
        .folds = folds,
        .padded_macs = TIMES(folds, streamed, rows, columns),
        .ideal = (double)p.count * (double)p.m * (double)p.k * (double)p.n /
                 ((double)rows * (double)columns * (double)arrays),
        .overlapped = load + (each - 1.0) * (m > load ? m : load) + m + skew,
        .no_overlap = each * (load + m + skew),
    };
}

CornuTpuTiling cornu_tpu_tiling(CornuTpuProduct p, int64_t rows, int64_t columns, int64_t arrays,
                                int passes, int64_t vmem_bytes)
{
    const int64_t bf16 = 2, f32 = 4, parts = passes == 6 ? 3 : passes == 3 ? 2 : 1;
    const int64_t busy = smaller(arrays, cornu_tpu_cycles(p, rows, columns, arrays).folds);
    if (!busy || p.m < 1) return (CornuTpuTiling){ .rows = 0 };
    const int64_t tiles = busy * 2 * bf16 * rows * columns;
    const int64_t group = busy * ROW_GROUP * (bf16 * parts * rows + f32 * columns);
    const int64_t groups = ceil_divide(p.m, ROW_GROUP), most = (vmem_bytes - tiles) / group;
    if (most < 1) return (CornuTpuTiling){ .bytes = tiles + group };
    const int64_t blocks = ceil_divide(groups, most), each = ceil_divide(groups, blocks);
    return (CornuTpuTiling){ .rows = each * ROW_GROUP, .blocks = blocks,
                             .bytes = tiles + each * group };
}

/* If all of a batch share B, the batch is just more rows of A. */
static CornuTpuProduct matmul_product(const CornuOpCall *call, CornuShape y)
{
    const CornuAttributes_MATMUL *matmul = &call->attributes->matmul;
    const CornuShape              a = call->in[0].shape, b = call->in[1].shape;
    CornuTpuProduct product = { .count = 1, .m = y.extent[y.rank - 2], .n = y.extent[y.rank - 1],
                                .k = a.extent[a.rank - (matmul->transpose_a ? 2 : 1)] };
    for (int i = 0; i < y.rank - 2; i++) product.count = TIMES(product.count, y.extent[i]);
    if (b.rank == 2) {
        product.m = TIMES(product.count, product.m);
        product.count = 1;
    }
    return product;
}

static bool is_recurrent(CornuOpId id)
{
    return id == CORNU_OP_LSTM || id == CORNU_OP_LSTM_GRAD || id == CORNU_OP_GRU ||
           id == CORNU_OP_GRU_GRAD;
}

/* One product per step: h (B, U) by the kernel (U, G U), or in a gradient by its transpose. */
static CornuTpuProduct recurrent_product(const CornuOpCall *call)
{
    const bool     backward = call->id == CORNU_OP_LSTM_GRAD || call->id == CORNU_OP_GRU_GRAD;
    const int64_t *x = call->in[0].shape.extent, *kernel = call->in[backward ? 3 : 1].shape.extent;
    return (CornuTpuProduct){ .count = x[1], .m = x[0], .k = kernel[backward],
                              .n = kernel[!backward] };
}

CornuTpuProduct cornu_tpu_product(const CornuOpCall *call, CornuType out)
{
    const int64_t *y = out.shape.extent;
    if (call->id == CORNU_OP_MATMUL) return matmul_product(call, out.shape);
    if (is_recurrent(call->id)) return recurrent_product(call);
    if (call->id == CORNU_OP_CONV2D) {
        const int64_t *filter = call->in[1].shape.extent;
        return (CornuTpuProduct){ .count = 1, .m = TIMES(y[0], y[1], y[2]),
                                  .k = TIMES(filter[0], filter[1], filter[2]), .n = filter[3] };
    }
    if (call->id == CORNU_OP_CONV2D_GRAD_INPUT) {
        const int64_t *filter = call->in[1].shape.extent;
        return (CornuTpuProduct){ .count = 1, .m = TIMES(y[0], y[1], y[2]),
                                  .k = TIMES(filter[0], filter[1], filter[3]), .n = filter[2] };
    }
    if (call->id == CORNU_OP_CONV2D_GRAD_FILTER) {
        const int64_t *d_y = call->in[1].shape.extent;
        return (CornuTpuProduct){ .count = 1, .m = TIMES(y[0], y[1], y[2]),
                                  .k = TIMES(d_y[0], d_y[1], d_y[2]), .n = y[3] };
    }
    return (CornuTpuProduct){ .count = 0 };
}

/* Arrays that hold different parts of K for the same columns leave partial sums to the vector
 * unit. */
static int64_t partial_sums(CornuTpuProduct p, int64_t rows, int64_t columns, int64_t arrays)
{
    const int64_t across = TIMES(p.count, ceil_divide(p.n, columns));
    if (!across || across >= arrays) return 0;
    const int64_t parts = smaller(ceil_divide(p.k, rows), ceil_divide(arrays, across));
    return parts > 1 ? TIMES(parts - 1, p.count, p.m, p.n) : 0;
}

/* ---- Memory ---- */

enum { LANES = 128, SUBLANES = 8, BYTE_ROWS = 32 };

static int64_t tile_rows(CornuDtype dtype)
{
    return cornu_dtype_size(dtype) == 1 ? BYTE_ROWS : SUBLANES;
}

/* Bytes with axes r and c padded to the rows and columns of a tile. */
static int64_t padded_bytes(CornuType type, int r, int c)
{
    int64_t bytes = (int64_t)cornu_dtype_size(type.dtype);
    for (int i = 0; i < type.shape.rank; i++) {
        const int64_t extent = type.shape.extent[i];
        const int64_t unit = i == c ? LANES : i == r ? tile_rows(type.dtype) : 1;
        bytes = TIMES(bytes, round_up(extent, unit));
    }
    return bytes;
}

int64_t cornu_tpu_tiled_bytes(CornuType type)
{
    if (type.shape.rank == 0) return TIMES(LANES, (int64_t)cornu_dtype_size(type.dtype));
    return padded_bytes(type, type.shape.rank - 2, type.shape.rank - 1);
}

int64_t cornu_tpu_hbm_bytes(CornuType type)
{
    const int last = type.shape.rank - 1;
    int64_t   least = cornu_tpu_tiled_bytes(type);
    if (last < 1) return least;
    least = smaller(least, padded_bytes(type, 0, last));
    least = smaller(least, padded_bytes(type, last, 0));
    return last > 1 ? smaller(least, padded_bytes(type, last - 1, 0)) : least;
}

bool cornu_tpu_is_collective(CornuOpId id) { return cornu__crosses(id); }

/* ---- A step ---- */

const char *cornu_tpu_bound_name(CornuTpuBound bound)
{
    static const char *const names[] = {
#define X(id, name) [CORNU_TPU_BOUND_##id] = name,
        CORNU_TPU_BOUND_MAP(X)
#undef X
    };
    return (unsigned)bound < sizeof names / sizeof *names ? names[bound] : "unknown";
}

/* The largest of several times, and whose it is. */
typedef struct {
    double        seconds;
    CornuTpuBound bound;
} Worst;

static void consider(Worst *worst, double seconds, CornuTpuBound bound)
{
    if (seconds > worst->seconds) *worst = (Worst){ seconds, bound };
}

/* What is modelled, and how. */
typedef struct {
    const CornuTpuProfile *profile;
    const CornuProgram    *program;
    const CornuTpuSlice   *slice;
    int                    f32_passes;
    CornuType             *in;             /* room for the operands of any op */
    CornuOpId              collective;     /* of the step before, else CORNU_OP_COUNT */
    int64_t                axes;           /* of the mesh that it is along */
    int64_t                collected;      /* bytes of it and of the ones before it */
    double                 shrunk;         /* to what a shard's slices of values shrink; 1: not */
    bool                  *sliced;         /* by value of the program: such slices; NULL: none  */
} Setting;

/* With more shards than the executable has, each has smaller slices of what they divide among them
 * (a part of the weights and of the optimizer's slots), and as much of all else. */
static CornuStatus find_slices(Setting *setting)
{
    const CornuProgram *program = setting->program;
    setting->sliced = cornu__allocate((size_t)program->value_count, sizeof *setting->sliced);
    if (!setting->sliced) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        bool sliced = op->id == CORNU_OP_REDUCE_SCATTER || op->id == CORNU_OP_SHARD_SLICE;
        for (int k = 0; k < op->in_count && !cornu_tpu_is_collective(op->id); k++)
            sliced = sliced || setting->sliced[in[k]];
        for (int k = 0; k < op->out_count; k++) setting->sliced[op->out_first + k] = sliced;
    }
    return CORNU_OK;
}

static bool works_on_slices(const Setting *setting, const CornuExecutableStep *step)
{
    for (int i = 0; setting->sliced && i < step->op_count; i++)
        if (setting->sliced[setting->program->ops[step->ops[i]].out_first]) return true;
    return false;
}

/* Attention as the products of its decomposition, of all pairs of steps: `count` of them. */
static int attention_products(const CornuOpCall *call, CornuTpuProduct *products)
{
    const CornuAttentionExtents e = cornu__attention_extents(call);
    const int64_t B = TIMES(e.batch, e.groups), T = TIMES(e.heads / e.groups, e.queries);
    const int64_t S = e.keys, H = e.size, V = e.values;
    const CornuTpuProduct all[] = {
        { B, T, H, S }, { B, T, S, V },                     /* scores, y */
        { B, T, H, S }, { B, T, V, S }, { B, T, S, H }, { B, S, T, H }, { B, S, T, V },
    };
    const bool forward = call->id == CORNU_OP_ATTENTION;
    const int  count = forward ? 2 : 5;
    for (int i = 0; i < count; i++) products[i] = all[forward ? i : i + 2];
    return count;
}

/* The multiply-accumulates that an op calls for. */
static int64_t useful_macs(const CornuOpCall *call, CornuTpuProduct p)
{
    return is_recurrent(call->id) ? TIMES(p.count, p.m, p.k, p.n) : cornu_op_flops(call) / 2;
}

/* Adds `times` runs of a product, one after the other; op->product is the largest of all. */
static void add_product(CornuTpuOp *op, const Setting *setting, CornuDtype dtype,
                        CornuTpuProduct product, int64_t times)
{
    const CornuTpuProfile *profile = setting->profile;
    const int64_t rows = (int64_t)profile->mxu_rows.value;
    const int64_t columns = (int64_t)profile->mxu_columns.value;
    const int64_t arrays = cornu_tpu_replica_mxus(profile);
    const int     passes = dtype == CORNU_BF16 || dtype == CORNU_F16 ? 1 : setting->f32_passes;
    const CornuTpuCycles one = cornu_tpu_cycles(product, rows, columns, arrays);
    const CornuTpuProduct all = { TIMES(times, product.count), product.m, product.k, product.n };
    if (TIMES(all.count, all.m, all.k, all.n) >=
        TIMES(op->product.count, op->product.m, op->product.k, op->product.n)) {
        op->product = all;
        op->passes = passes;
        op->tiling = cornu_tpu_tiling(product, rows, columns, (int64_t)profile->mxus.value, passes,
                                      (int64_t)(profile->vmem_mib.value * 0x1p20));
    }
    const double runs = (double)times * passes;
    op->cycles.folds = saturating_add(op->cycles.folds, TIMES(times, one.folds));
    op->cycles.padded_macs = saturating_add(op->cycles.padded_macs, TIMES(times, one.padded_macs));
    op->cycles.ideal += runs * one.ideal;
    op->cycles.overlapped += runs * one.overlapped;
    op->cycles.no_overlap += runs * one.no_overlap;
    const int64_t partial = partial_sums(product, rows, columns, arrays);
    op->vector_ops = saturating_add(op->vector_ops, TIMES(times, passes, partial));
}

/* How well the arrays are used by the products of a step. */
static void rate_products(CornuTpuOp *op, const CornuTpuProfile *profile)
{
    if (!op->cycles.folds) return;
    const double useful = (double)op->useful_macs, passes = op->passes;
    const double cells = profile->mxu_rows.value * profile->mxu_columns.value *
                         (double)cornu_tpu_replica_mxus(profile);
    op->use_padding = useful / (double)op->cycles.padded_macs;
    op->use_overlapped = passes * useful / (op->cycles.overlapped * cells);
    op->use_no_overlap = passes * useful / (op->cycles.no_overlap * cells);
    op->mxu_s = op->cycles.overlapped / (profile->clock_mhz.value * 1e6);
}

/* All shards of the slice, or a group of them. */
static CornuTpuExchange reduce_over(const CornuTpuProfile *profile, const CornuTpuSlice *slice,
                                    const CornuAttributes_SHARDS *shards, int64_t bytes)
{
    if (!shards->groups.count) return cornu_tpu_all_reduce(profile, slice, bytes);
    return cornu_tpu_group_reduce(profile, slice, shards->groups.at, (int)shards->size, bytes);
}

/* reduce_scatter and all_gather are the two halves of an all_reduce. */
static int parts_of_reduce(CornuOpId id) { return id == CORNU_OP_ALL_REDUCE ? 1 : 2; }

/* Of the whole that shards gather or add up. */
static int64_t exchanged_bytes(const CornuProgram *program, const CornuProgramOp *op)
{
    const CornuValue whole = op->id == CORNU_OP_ALL_GATHER
                           ? op->out_first : cornu_program_operands(program, op)[0];
    return (int64_t)cornu_type_bytes(cornu_program_type(program, whole));
}

CornuTpuExchange cornu_tpu_exchange(const CornuTpuProfile *profile, const CornuTpuSlice *slice,
                                    const CornuProgram *program, const CornuProgramOp *op)
{
    CornuTpuExchange all = reduce_over(profile, slice, &op->attributes.shards,
                                       exchanged_bytes(program, op));
    all.link_bytes /= parts_of_reduce(op->id);
    all.seconds /= parts_of_reduce(op->id);
    return all;
}

/* `times` exchanges of a loop, each of which waits for its step and the next step for it. */
static void add_exchanges(CornuTpuOp *op, const Setting *setting, const CornuProgram *program,
                          const CornuProgramOp *recorded, int64_t times)
{
    const CornuTpuExchange one = cornu_tpu_exchange(setting->profile, setting->slice, program,
                                                    recorded);
    const int64_t bytes = exchanged_bytes(program, recorded) / parts_of_reduce(recorded->id);
    op->link_bytes = saturating_add(op->link_bytes, TIMES(times, bytes));
    op->wire_bytes += (double)times * one.link_bytes;
    op->links_s += (double)times * one.seconds;
}

/* Consecutive collectives of the same kind over the same axes are combined, as the compiler does:
 * another one costs only what its bytes add. */
static void model_collective(CornuTpuOp *op, Setting *setting, const CornuOpCall *call,
                             int64_t bytes)
{
    const CornuAttributes_SHARDS *shards = &call->attributes->shards;
    const int parts = parts_of_reduce(call->id);
    if (setting->collective != call->id || setting->axes != shards->axes) setting->collected = 0;
    setting->axes = shards->axes;
    const CornuTpuExchange before = reduce_over(setting->profile, setting->slice, shards,
                                                setting->collected);
    setting->collected = saturating_add(setting->collected, bytes);
    const CornuTpuExchange after = reduce_over(setting->profile, setting->slice, shards,
                                               setting->collected);
    op->link_bytes = bytes / parts;
    op->wire_bytes = (after.link_bytes - before.link_bytes) / parts;
    op->links_s = (after.seconds - before.seconds) / parts;
}

static double vector_rate(const CornuTpuProfile *profile)
{
    return profile->cores.value / profile->replicas.value * profile->vector_lanes.value *
           profile->vector_alus.value * profile->vector_mhz.value * 1e6;
}

/* A TPU computes all pairs of steps, masked or not: their products, and VECTOR_OPS for each. */
static void add_attention(CornuTpuOp *op, const Setting *setting, const CornuOpCall *call,
                          int64_t times)
{
    enum { VECTOR_OPS = 6 };   /* the exponential, its operand, mask, sum or slope */
    CornuTpuProduct products[5];
    const int       count = attention_products(call, products);
    int64_t         useful = 0;
    for (int i = 0; i < count; i++) {
        const CornuTpuProduct p = products[i];
        useful = saturating_add(useful, TIMES(p.count, p.m, p.k, p.n));
        add_product(op, setting, call->in[0].dtype, p, times);
    }
    const CornuAttentionExtents e = cornu__attention_extents(call);
    const int64_t pairs = TIMES(e.batch, e.heads, e.queries, e.keys);
    op->useful_macs = saturating_add(op->useful_macs, TIMES(times, useful));
    op->vector_ops = saturating_add(op->vector_ops, TIMES(times, pairs, VECTOR_OPS));
}

/* Adds `times` runs of an op, one after the other, to the MXU or to the vector unit. */
static void add_op(CornuTpuOp *op, const Setting *setting, const CornuProgram *program,
                   const CornuProgramOp *recorded, int64_t times)
{
    const CornuOpCall call = cornu_program_call(program, recorded, setting->in);
    if (cornu_tpu_is_collective(call.id)) {
        add_exchanges(op, setting, program, recorded, times);
        return;
    }
    if (call.id == CORNU_OP_SCAN) {
        const CornuProgram *body = call.attributes->scan.body;
        const int64_t       steps = TIMES(times, call.attributes->scan.steps);
        for (int i = 0; i < body->op_count; i++) add_op(op, setting, body, &body->ops[i], steps);
        return;
    }
    if (call.id == CORNU_OP_ATTENTION || call.id == CORNU_OP_ATTENTION_GRAD) {
        add_attention(op, setting, &call, times);
        return;
    }
    CornuTpuProduct product = cornu_tpu_product(&call, cornu_program_type(program,
                                                                          recorded->out_first));
    const int64_t   useful = product.count ? useful_macs(&call, product) : 0;
    const int64_t   rest = larger(0, cornu_op_flops(&call) - useful - useful);
    op->useful_macs = saturating_add(op->useful_macs, TIMES(times, useful));
    op->vector_ops = saturating_add(op->vector_ops, TIMES(times, rest));
    if (is_recurrent(call.id)) {
        times = TIMES(times, product.count);
        product.count = 1;
    }
    if (product.count) add_product(op, setting, call.in[0].dtype, product, times);
}

/* Steps for this machine's kernels, or between its processes: of what those exchange, the
 * collective says what a TPU's links do. */
static bool is_only_here(const CornuExecutableStep *step)
{
    return step->kind && (strcmp(step->kind, "pack") == 0 || strcmp(step->kind, "send") == 0 ||
                          strcmp(step->kind, "wait") == 0);
}

static CornuTpuOp model_op(Setting *setting, const CornuExecutableStep *step)
{
    const CornuProgram *program = setting->program;
    CornuTpuOp          op = { .passes = 0 };
    CornuOpId           collective = CORNU_OP_COUNT;
    if (is_only_here(step)) return op;
    for (int i = 0; i < step->op_count; i++) {
        const CornuProgramOp *recorded = &program->ops[step->ops[i]];
        if (cornu_tpu_is_collective(recorded->id)) {
            const CornuOpCall call = cornu_program_call(program, recorded, setting->in);
            collective = call.id;
            model_collective(&op, setting, &call, exchanged_bytes(program, recorded));
        } else {
            add_op(&op, setting, program, recorded, 1);
        }
    }
    rate_products(&op, setting->profile);
    setting->collective = collective;
    for (int i = 0; i < step->in_count; i++)
        op.hbm_bytes = saturating_add(op.hbm_bytes, cornu_tpu_hbm_bytes(step->in[i]));
    for (int i = 0; i < step->out_count; i++)
        op.hbm_bytes = saturating_add(op.hbm_bytes, cornu_tpu_hbm_bytes(step->out[i]));
    if (collective == CORNU_OP_COUNT && works_on_slices(setting, step)) {
        op.vector_ops = (int64_t)((double)op.vector_ops * setting->shrunk);
        op.hbm_bytes = (int64_t)((double)op.hbm_bytes * setting->shrunk);
    }
    op.vector_s = (double)op.vector_ops / vector_rate(setting->profile);
    op.hbm_s = (double)op.hbm_bytes / cornu_tpu_replica_hbm_rate(setting->profile);

    const bool loops = op.links_s > 0.0 && collective == CORNU_OP_COUNT;
    Worst      worst = { 0.0, CORNU_TPU_BOUND_NOTHING };
    consider(&worst, op.links_s, CORNU_TPU_BOUND_LINKS);
    consider(&worst, op.mxu_s, CORNU_TPU_BOUND_MXU);
    consider(&worst, op.vector_s, CORNU_TPU_BOUND_VECTOR);
    consider(&worst, op.hbm_s, CORNU_TPU_BOUND_HBM);
    op.seconds = worst.seconds;
    op.bound = worst.bound;
    if (loops) op.seconds = op.links_s + fmax(fmax(op.mxu_s, op.vector_s), op.hbm_s);
    return op;
}

static void sum_up(CornuTpuModel *model, int64_t infeed_bytes, int64_t iterations_per_loop)
{
    const CornuTpuProfile *profile = model->profile;
    double                 cell_cycles = 0.0;
    for (int i = 0; i < model->op_count; i++) {
        const CornuTpuOp *op = &model->ops[i];
        model->useful_macs = saturating_add(model->useful_macs, TIMES(op->passes, op->useful_macs));
        model->padded_macs = saturating_add(model->padded_macs,
                                            TIMES(op->passes, op->cycles.padded_macs));
        model->folds = saturating_add(model->folds, TIMES(op->passes, op->cycles.folds));
        model->vector_ops = saturating_add(model->vector_ops, op->vector_ops);
        model->hbm_bytes = saturating_add(model->hbm_bytes, op->hbm_bytes);
        model->link_bytes = saturating_add(model->link_bytes, op->link_bytes);
        model->wire_bytes += op->wire_bytes;
        model->mxu_s += op->mxu_s;
        model->vector_s += op->vector_s;
        model->hbm_s += op->hbm_s;
        model->links_s += op->links_s;
        model->device_s += op->seconds;
        cell_cycles += op->cycles.overlapped * profile->mxu_rows.value *
                       profile->mxu_columns.value * (double)cornu_tpu_replica_mxus(profile);
    }
    if (cell_cycles > 0.0) model->use_overlapped = (double)model->useful_macs / cell_cycles;

    const double pcie = (double)model->slice.chips * profile->pcie_gbps.value * 1e9;
    model->infeed_bytes = infeed_bytes;
    model->infeed_s = (double)infeed_bytes / pcie;
    model->dispatch_s = profile->dispatch_ms.value * 1e-3 / (double)larger(1, iterations_per_loop);
    const double beside = model->infeed_s > model->device_s ? model->infeed_s : model->device_s;
    model->step_s = beside + model->dispatch_s;

    Worst worst = { 0.0, CORNU_TPU_BOUND_NOTHING };
    consider(&worst, model->mxu_s, CORNU_TPU_BOUND_MXU);
    consider(&worst, model->vector_s, CORNU_TPU_BOUND_VECTOR);
    consider(&worst, model->hbm_s, CORNU_TPU_BOUND_HBM);
    consider(&worst, model->links_s, CORNU_TPU_BOUND_LINKS);
    model->device_bound = worst.bound;
    consider(&worst, model->infeed_s, CORNU_TPU_BOUND_INFEED);
    consider(&worst, model->dispatch_s, CORNU_TPU_BOUND_DISPATCH);
    model->bound = worst.bound;
}

static CornuStatus check_model(const CornuTpuModelConfig *config, const CornuTpuProfile *profile,
                               int64_t shards)
{
    const CornuTpuSlice pod = cornu_tpu_pod(profile);
    const int compiled_for = config->executable ? config->executable->device->shards : 0;
    if (!config->program == !config->executable)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %s, expected a program or an executable",
                           config->program ? "both given" : "neither given");
    if (shards < 1 || shards > pod.shards)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %lld shards, expected 1 to the %lld "
                           "replicas of %s", (long long)shards, (long long)pod.shards, pod.name);
    if (config->executable && (config->scaled ? shards < compiled_for : shards != compiled_for))
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %lld shards, the executable was "
                           "compiled for %d", (long long)shards, compiled_for);
    if (config->passes != 0 && config->passes != 1 && config->passes != 3 && config->passes != 6)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %d passes, expected 1, 3 or 6",
                           config->passes);
    if (config->infeed_bytes < 0 || config->iterations_per_loop < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %lld bytes of infeed, %lld iterations "
                           "per loop, expected 0 or more", (long long)config->infeed_bytes,
                           (long long)config->iterations_per_loop);
    return CORNU_OK;
}

static CornuStatus check_tiling(const CornuTpuOp *op, const CornuExecutableStep *step,
                                const CornuTpuProfile *profile)
{
    if (!op->cycles.folds || op->tiling.blocks) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "TPU model: %s%s%s: %d rows and their weights take %lld "
                       "bytes of VMEM, a core of %s has %.0f", step->name,
                       *step->scope ? " in " : "", step->scope, ROW_GROUP,
                       (long long)op->tiling.bytes, profile->name,
                       profile->vmem_mib.value * 0x1p20);
}

static const CornuTpuProfile *profile_of(const CornuTpuModelConfig *config)
{
    if (config->profile) return config->profile;
    return cornu_tpu_profile(config->executable ? config->executable->device->profile : NULL);
}

static int64_t shards_of(const CornuTpuModelConfig *config, const CornuTpuProfile *profile)
{
    if (config->shards) return config->shards;
    return config->executable ? config->executable->device->shards
                              : (int64_t)profile->shards.value;
}

/* The infeed of all shards: per-shard inputs, except variables, which stay where they are. (In the
 * program compiled for one shard no input varies any more.) */
static int64_t fed_bytes(const CornuProgram *recorded, int64_t shards)
{
    int64_t bytes = 0;
    for (int i = 0; i < recorded->input_count; i++) {
        const CornuProgramValue *in = &recorded->values[recorded->inputs[i]];
        bool                     variable = !in->varies;
        for (int k = 0; k < recorded->output_count; k++)
            variable = variable || recorded->outputs[k].alias == i;
        if (variable) continue;
        bytes = saturating_add(bytes, TIMES(shards, (int64_t)cornu_type_bytes(in->type)));
    }
    return bytes;
}

/* Of an op of the program, or of the bodies of its scans. */
static int most_operands(const CornuProgram *program)
{
    int most = 0;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const int within = op->id == CORNU_OP_SCAN ? most_operands(op->attributes.scan.body) : 0;
        if (op->in_count > most) most = op->in_count;
        if (within > most) most = within;
    }
    return most;
}

static CornuType *operand_space(const CornuProgram *program)
{
    return cornu__allocate((size_t)most_operands(program), sizeof(CornuType));
}

/* Op i as a separate step. `in` has room for its operands, each of which is read once. */
static CornuExecutableStep step_of(const CornuProgram *program, const int *i, CornuType *in,
                                   CornuType out[CORNU_MAX_OUTPUTS])
{
    const CornuProgramOp *op = &program->ops[*i];
    const CornuValue     *operands = cornu_program_operands(program, op);
    CornuExecutableStep   step = { .name = cornu_program_op_name(op), .scope = op->scope, .ops = i,
                                   .op_count = 1, .in = in, .out = out };
    for (int k = 0; k < op->in_count; k++) {
        bool again = false;
        for (int j = 0; j < k; j++) again = again || operands[j] == operands[k];
        if (!again) in[step.in_count++] = cornu_program_type(program, operands[k]);
    }
    for (; step.out_count < op->out_count; step.out_count++)
        out[step.out_count] = cornu_program_type(program, op->out_first + step.out_count);
    return step;
}

CornuTpuModel *cornu_tpu_model_from(const CornuTpuModelConfig *config)
{
    if (cornu__refused()) return NULL;
    const CornuExecutable *executable = config->executable;
    const CornuTpuProfile *profile = profile_of(config);
    const int64_t          shards = shards_of(config, profile);
    if (check_model(config, profile, shards) != CORNU_OK) return cornu__null();
    const CornuProgram *program = executable ? executable->compiled : config->program;
    const CornuTpuSlice chosen = cornu_tpu_slice(profile, shards);
    const CornuTpuSlice slice = config->wrapped ? cornu_tpu_wrapped(chosen) : chosen;
    Setting             setting = { .profile = profile, .program = program, .slice = &slice,
                                    .f32_passes = config->passes ? config->passes : 1,
                                    .in = operand_space(program), .collective = CORNU_OP_COUNT,
                                    .shrunk = 1.0 };
    CornuType          *in = operand_space(program), out[CORNU_MAX_OUTPUTS];
    CornuTpuModel      *model = cornu__allocate(1, sizeof *model);
    if (!setting.in || !in || !model) goto fail;
    if (executable && shards > executable->device->shards) {
        setting.shrunk = (double)executable->device->shards / (double)shards;
        if (find_slices(&setting) != CORNU_OK) goto fail;
    }
    *model = (CornuTpuModel){ .profile = profile, .slice = slice, .shards = shards,
                              .op_count = executable ? executable->step_count : program->op_count };
    model->ops = cornu__allocate((size_t)model->op_count, sizeof *model->ops);
    if (!model->ops) goto fail;
    for (int i = 0; i < model->op_count; i++) {
        const CornuExecutableStep step = executable ? executable->steps[i]
                                                    : step_of(program, &i, in, out);
        model->ops[i] = model_op(&setting, &step);
        if (check_tiling(&model->ops[i], &step, profile) != CORNU_OK) goto fail;
    }
    sum_up(model, config->infeed_bytes || !executable ? config->infeed_bytes
                                                      : fed_bytes(executable->program, shards),
           config->iterations_per_loop);
    cornu__release(setting.sliced);
    cornu__release(setting.in);
    cornu__release(in);
    return model;
fail:
    cornu__release(setting.sliced);
    cornu__release(setting.in);
    cornu__release(in);
    cornu_tpu_model_free(model);
    return cornu__null();
}

void cornu_tpu_model_free(CornuTpuModel *model)
{
    if (!model) return;
    cornu__release(model->ops);
    cornu__release(model);
}
