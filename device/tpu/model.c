#include "model.h"

#include <stdbool.h>
#include <string.h>

#include "../integer_internal.h"
#include "../memory_internal.h"
#include "../op_internal.h"

/* Sums and products of counts stop at INT64_MAX. */
static int64_t add(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }
#define TIMES(...)                                                        \
    cornu__flops((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
                 (const int64_t[]){ __VA_ARGS__ })

static int64_t round_up(int64_t a, int64_t unit) { return TIMES(ceil_divide(a, unit), unit); }

/* ---- The MXU ---- */

enum { ROW_GROUP = 8 };   /* rows move in registers of 8 by 128 */

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
    if (!busy) return (CornuTpuTiling){ .rows = 0 };
    const int64_t tiles = busy * 2 * bf16 * rows * columns;
    const int64_t group = busy * ROW_GROUP * (bf16 * parts * rows + f32 * columns);
    const int64_t groups = ceil_divide(p.m, ROW_GROUP), most = (vmem_bytes - tiles) / group;
    if (most < 1) return (CornuTpuTiling){ .bytes = tiles + group };
    const int64_t blocks = ceil_divide(groups, most), each = ceil_divide(groups, blocks);
    return (CornuTpuTiling){ .rows = each * ROW_GROUP, .blocks = blocks,
                             .bytes = tiles + each * group };
}

/* Equal weights for all: a batch of A is only more rows. */
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

CornuTpuProduct cornu_tpu_product(const CornuOpCall *call, CornuType out)
{
    const int64_t *y = out.shape.extent;
    if (call->id == CORNU_OP_MATMUL) return matmul_product(call, out.shape);
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

/* Arrays that hold different parts of K for the same columns leave sums to add on the vector
 * unit. */
static int64_t partial_sums(CornuTpuProduct p, int64_t rows, int64_t columns, int64_t arrays)
{
    const int64_t across = TIMES(p.count, ceil_divide(p.n, columns));
    if (!across || across >= arrays) return 0;
    const int64_t parts = smaller(ceil_divide(p.k, rows), ceil_divide(arrays, across));
    return parts > 1 ? TIMES(parts - 1, p.count, p.m, p.n) : 0;
}

/* ---- Memory and links ---- */

enum { LANES = 128, SUBLANES = 8, BYTE_ROWS = 32 };

static int64_t tile_rows(CornuDtype dtype)
{
    return cornu_dtype_size(dtype) == 1 ? BYTE_ROWS : SUBLANES;
}

/* With axes r and c padded to a tile. */
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
    return smaller(least, padded_bytes(type, last, 0));
}

/* Chips that so many shards fill. */
static int64_t chips_of(const CornuTpuProfile *profile, int64_t shards)
{
    return ceil_divide(shards, (int64_t)(profile->replicas.value / profile->chips.value));
}

double cornu_tpu_all_reduce_s(const CornuTpuProfile *profile, int64_t shards, int64_t bytes)
{
    if (shards <= 1 || bytes <= 0) return 0.0;
    const double  v = (double)bytes, chips = (double)chips_of(profile, shards);
    const double  both = 2.0 * profile->link_gbps.value * 1e9, hop = profile->hop_us.value * 1e-6;
    const bool    shared = profile->replicas.value > profile->chips.value;
    const double  local = shared ? 3.0 * v / (profile->hbm_gbps.value * 1e9) : 0.0;
    if (chips < 2.0) return local;
    if (chips < 3.0) return local + 2.0 * v / both + 2.0 * hop;
    return local + 2.0 * v / both * (chips - 1.0) / chips + chips * hop;
}

/* ---- Which values go through HBM ---- */

typedef struct {
    const CornuProgram *program;
    CornuValue         *root;      /* reshapes looked through                            */
    int                *readers;   /* how many ops read the value                        */
    int                *reader;    /* the last of them                                   */
    bool               *kept;      /* an output of the program                           */
} Traffic;

static bool is_elementwise(CornuOpId id)
{
    return (id >= CORNU_OP_NEGATIVE && id <= CORNU_OP_CONVERT) || id == CORNU_OP_BROADCAST ||
           id == CORNU_OP_DROPOUT;
}

/* Cheaper to make again than to read. */
static bool is_remade(CornuOpId id)
{
    return id == CORNU_OP_CONSTANT || id == CORNU_OP_IOTA || id == CORNU_OP_REPLICA_ID ||
           id == CORNU_OP_BROADCAST;
}

/* A value stays on the chip when it is remade, or when one op alone reads it and maker or reader
 * is elementwise: then the compiler fuses the two. */
static bool stored(const Traffic *traffic, CornuValue value)
{
    const CornuProgram *program = traffic->program;
    const int           maker = program->values[value].op;
    if (maker < 0 || traffic->kept[value]) return true;
    const CornuOpId id = program->ops[maker].id;
    if (is_remade(id)) return false;
    if (traffic->readers[value] != 1) return true;
    return !is_elementwise(id) && !is_elementwise(program->ops[traffic->reader[value]].id);
}

static void traffic_free(Traffic *traffic)
{
    cornu__release(traffic->root);
    cornu__release(traffic->readers);
    cornu__release(traffic->reader);
    cornu__release(traffic->kept);
}

static CornuStatus traffic_find(Traffic *traffic, const CornuProgram *program)
{
    const size_t count = (size_t)program->value_count;
    *traffic = (Traffic){ .program = program,
                          .root = cornu__allocate(count, sizeof *traffic->root),
                          .readers = cornu__allocate(count, sizeof *traffic->readers),
                          .reader = cornu__allocate(count, sizeof *traffic->reader),
                          .kept = cornu__allocate(count, sizeof *traffic->kept) };
    if (!traffic->root || !traffic->readers || !traffic->reader || !traffic->kept)
        return CORNU_ERR_MEMORY;
    for (int v = 0; v < program->value_count; v++) {
        traffic->root[v] = v;
        traffic->reader[v] = -1;
    }
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        if (op->id == CORNU_OP_RESHAPE) {
            traffic->root[op->out_first] = traffic->root[in[0]];
            continue;
        }
        for (int k = 0; k < op->in_count; k++) {
            const CornuValue value = traffic->root[in[k]];
            traffic->readers[value] += traffic->reader[value] != i;
            traffic->reader[value] = i;
        }
    }
    for (int i = 0; i < program->output_count; i++)
        traffic->kept[traffic->root[program->outputs[i].value]] = true;
    return CORNU_OK;
}

/* What op i reads and writes, each value once. */
static int64_t op_bytes(const Traffic *traffic, int i)
{
    const CornuProgram   *program = traffic->program;
    const CornuProgramOp *op = &program->ops[i];
    const CornuValue     *in = cornu_program_operands(program, op);
    if (op->id == CORNU_OP_RESHAPE) return 0;
    int64_t bytes = 0;
    for (int k = 0; k < op->in_count; k++) {
        const CornuValue value = traffic->root[in[k]];
        bool             again = false;
        for (int j = 0; j < k && !again; j++) again = traffic->root[in[j]] == value;
        if (!again && stored(traffic, value))
            bytes = add(bytes, cornu_tpu_hbm_bytes(cornu_program_type(program, value)));
    }
    for (int k = 0; k < op->out_count; k++)
        if (stored(traffic, op->out_first + k))
            bytes = add(bytes, cornu_tpu_hbm_bytes(cornu_program_type(program, op->out_first + k)));
    return bytes;
}

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

/* The largest of some times, and its name. */
typedef struct {
    double        seconds;
    CornuTpuBound bound;
} Worst;

static void consider(Worst *worst, double seconds, CornuTpuBound bound)
{
    if (seconds > worst->seconds) *worst = (Worst){ seconds, bound };
}

static void model_product(CornuTpuOp *op, const CornuTpuProfile *profile, const CornuOpCall *call,
                          int f32_passes)
{
    const int64_t rows = (int64_t)profile->mxu_rows.value;
    const int64_t columns = (int64_t)profile->mxu_columns.value;
    const int64_t arrays = cornu_tpu_replica_mxus(profile);
    const CornuDtype dtype = call->in[0].dtype;
    op->passes = dtype == CORNU_BF16 || dtype == CORNU_F16 ? 1 : f32_passes;
    op->cycles = cornu_tpu_cycles(op->product, rows, columns, arrays);
    op->tiling = cornu_tpu_tiling(op->product, rows, columns, (int64_t)profile->mxus.value,
                                  op->passes, (int64_t)(profile->vmem_mib.value * 0x1p20));
    if (!op->cycles.folds) return;

    op->useful_macs = cornu_op_flops(call) / 2;
    const double useful = (double)op->useful_macs;
    const double cells = (double)rows * (double)columns * (double)arrays;
    op->use_padding = useful / (double)op->cycles.padded_macs;
    op->use_overlapped = useful / (op->cycles.overlapped * cells);
    op->use_no_overlap = useful / (op->cycles.no_overlap * cells);
    op->cycles.ideal *= op->passes;
    op->cycles.overlapped *= op->passes;
    op->cycles.no_overlap *= op->passes;
    op->mxu_s = op->cycles.overlapped / (profile->clock_mhz.value * 1e6);
    op->vector_ops = TIMES(op->passes, partial_sums(op->product, rows, columns, arrays));
}

static double vector_rate(const CornuTpuProfile *profile)
{
    return profile->cores.value / profile->replicas.value * profile->vector_lanes.value *
           profile->vector_alus.value * profile->vector_mhz.value * 1e6;
}

static CornuTpuOp model_op(const CornuTpuModelConfig *config, const CornuTpuProfile *profile,
                           const Traffic *traffic, const CornuOpCall *call, int i)
{
    const CornuProgram *program = config->program;
    const CornuType     out = cornu_program_type(program, program->ops[i].out_first);
    CornuTpuOp          op = { .product = cornu_tpu_product(call, out) };
    if (op.product.count) model_product(&op, profile, call, config->passes ? config->passes : 1);
    else op.vector_ops = cornu_op_flops(call);
    op.hbm_bytes = op_bytes(traffic, i);
    op.vector_s = (double)op.vector_ops / vector_rate(profile);
    op.hbm_s = (double)op.hbm_bytes / cornu_tpu_replica_hbm_rate(profile);

    Worst worst = { 0.0, CORNU_TPU_BOUND_NOTHING };
    consider(&worst, op.mxu_s, CORNU_TPU_BOUND_MXU);
    consider(&worst, op.vector_s, CORNU_TPU_BOUND_VECTOR);
    consider(&worst, op.hbm_s, CORNU_TPU_BOUND_HBM);
    op.seconds = worst.seconds;
    op.bound = worst.bound;
    return op;
}

static void sum_up(CornuTpuModel *model, const CornuTpuModelConfig *config)
{
    const CornuTpuProfile *profile = model->profile;
    double                 cell_cycles = 0.0;
    for (int i = 0; i < model->op_count; i++) {
        const CornuTpuOp *op = &model->ops[i];
        model->useful_macs = add(model->useful_macs, TIMES(op->passes, op->useful_macs));
        model->padded_macs = add(model->padded_macs, TIMES(op->passes, op->cycles.padded_macs));
        model->folds = add(model->folds, TIMES(op->passes, op->cycles.folds));
        model->vector_ops = add(model->vector_ops, op->vector_ops);
        model->hbm_bytes = add(model->hbm_bytes, op->hbm_bytes);
        model->mxu_s += op->mxu_s;
        model->vector_s += op->vector_s;
        model->hbm_s += op->hbm_s;
        model->ops_s += op->seconds;
        cell_cycles += op->cycles.overlapped * profile->mxu_rows.value *
                       profile->mxu_columns.value * (double)cornu_tpu_replica_mxus(profile);
    }
    if (cell_cycles > 0.0) model->use_overlapped = (double)model->useful_macs / cell_cycles;

    const int64_t loop = larger(1, config->iterations_per_loop);
    const double  pcie = (double)chips_of(profile, model->shards) * profile->pcie_gbps.value * 1e9;
    model->all_reduce_s = cornu_tpu_all_reduce_s(profile, model->shards, config->all_reduce_bytes);
    model->device_s = model->ops_s + model->all_reduce_s;
    model->infeed_s = (double)config->infeed_bytes / pcie;
    model->dispatch_s = profile->dispatch_ms.value * 1e-3 / (double)loop;
    const double beside = model->infeed_s > model->device_s ? model->infeed_s : model->device_s;
    model->step_s = beside + model->dispatch_s;

    Worst worst = { 0.0, CORNU_TPU_BOUND_NOTHING };
    consider(&worst, model->mxu_s, CORNU_TPU_BOUND_MXU);
    consider(&worst, model->vector_s, CORNU_TPU_BOUND_VECTOR);
    consider(&worst, model->hbm_s, CORNU_TPU_BOUND_HBM);
    consider(&worst, model->all_reduce_s, CORNU_TPU_BOUND_LINKS);
    consider(&worst, model->infeed_s, CORNU_TPU_BOUND_INFEED);
    consider(&worst, model->dispatch_s, CORNU_TPU_BOUND_DISPATCH);
    model->bound = worst.bound;
}

static CornuStatus check(const CornuTpuModelConfig *config, const CornuTpuProfile *profile)
{
    const int64_t replicas = (int64_t)profile->replicas.value;
    if (!config->program)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: NULL, expected a program");
    if (config->shards < 0 || config->shards > replicas)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %lld shards, expected 1 to the %lld "
                           "replicas of %s", (long long)config->shards, (long long)replicas,
                           profile->name);
    if (config->passes != 0 && config->passes != 1 && config->passes != 3 && config->passes != 6)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %d passes, expected 1, 3 or 6",
                           config->passes);
    if (config->all_reduce_bytes < 0 || config->infeed_bytes < 0 || config->iterations_per_loop < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TPU model: %lld bytes to reduce, %lld bytes of "
                           "infeed, %lld iterations per loop, expected none negative",
                           (long long)config->all_reduce_bytes, (long long)config->infeed_bytes,
                           (long long)config->iterations_per_loop);
    return CORNU_OK;
}

static CornuStatus check_tiling(const CornuTpuOp *op, const CornuProgramOp *recorded,
                                const CornuTpuProfile *profile)
{
    if (!op->cycles.folds || op->tiling.blocks) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "TPU model: %s%s%s: %d rows and their weights take %lld "
                       "bytes of VMEM, a core of %s has %.0f", cornu_op_name(recorded->id),
                       *recorded->scope ? " in " : "", recorded->scope, ROW_GROUP,
                       (long long)op->tiling.bytes, profile->name,
                       profile->vmem_mib.value * 0x1p20);
}

/* Space for the operands of any op of the program. */
static CornuType *operand_space(const CornuProgram *program)
{
    int most = 0;
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].in_count > most) most = program->ops[i].in_count;
    return cornu__allocate((size_t)most, sizeof(CornuType));
}

CornuTpuModel *cornu_tpu_model_from(const CornuTpuModelConfig *config)
{
    if (cornu_error_pending()) return NULL;
    const CornuTpuProfile *profile = config->profile ? config->profile : cornu_tpu_profile(NULL);
    if (check(config, profile) != CORNU_OK) return cornu__null();
    const CornuProgram *program = config->program;
    Traffic             traffic = { .program = program };
    CornuType          *in = NULL;
    CornuTpuModel      *model = cornu__allocate(1, sizeof *model);
    if (!model) return cornu__null();
    *model = (CornuTpuModel){
        .profile = profile,
        .shards = config->shards ? config->shards : (int64_t)profile->shards.value,
        .ops = cornu__allocate((size_t)program->op_count, sizeof *model->ops),
        .op_count = program->op_count,
    };
    in = operand_space(program);
    if (!model->ops || !in || traffic_find(&traffic, program) != CORNU_OK) goto fail;
    for (int i = 0; i < program->op_count; i++) {
        const CornuOpCall call = cornu_program_call(program, &program->ops[i], in);
        model->ops[i] = model_op(config, profile, &traffic, &call, i);
        if (check_tiling(&model->ops[i], &program->ops[i], profile) != CORNU_OK) goto fail;
    }
    sum_up(model, config);
    traffic_free(&traffic);
    cornu__release(in);
    return model;
fail:
    traffic_free(&traffic);
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

/* ---- Printing ---- */

static void print_op(const CornuTpuOp *op, const CornuProgramOp *recorded, FILE *to)
{
    const CornuTpuProduct p = op->product;
    char                  shape[96] = "";
    if (p.count > 1) snprintf(shape, sizeof shape, "%lld x ", (long long)p.count);
    if (p.count)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lldx%lldx%lld",
                 (long long)p.m, (long long)p.k, (long long)p.n);
    fprintf(to, "%-18.18s %-18.18s %-16s", cornu_op_name(recorded->id), recorded->scope, shape);
    if (p.count)
        fprintf(to, " %5lld %5.1f %5.1f %5.1f", (long long)op->cycles.folds,
                100.0 * op->use_padding, 100.0 * op->use_overlapped, 100.0 * op->use_no_overlap);
    else
        fprintf(to, " %5s %5s %5s %5s", "", "", "", "");
    fprintf(to, " %7.1f %7.1f %7.1f %7.1f  %s\n", 1e6 * op->mxu_s, 1e6 * op->vector_s,
            1e6 * op->hbm_s, 1e6 * op->seconds, cornu_tpu_bound_name(op->bound));
}

static void print_ops(const CornuTpuModel *model, const CornuProgram *program, FILE *to)
{
    static const double shortest_s = 0.05e-6;   /* what prints as 0.0 */
    int                 more = 0;
    double              more_s = 0.0;
    fprintf(to, "%-54s %23s   %29s\n", "", "MXU use, percent", "microseconds, modelled");
    fprintf(to, "%-18s %-18s %-16s %5s %5s %5s %5s %7s %7s %7s %7s  %s\n", "op", "scope", "MxKxN",
            "tiles", "pad", "model", "worst", "mxu", "vector", "hbm", "op", "bound");
    for (int i = 0; i < model->op_count; i++) {
        const CornuTpuOp *op = &model->ops[i];
        if (op->seconds >= shortest_s) {
            print_op(op, &program->ops[i], to);
            continue;
        }
        more += op->seconds > 0.0;
        more_s += op->seconds;
    }
    char rest[32];
    snprintf(rest, sizeof rest, "%d shorter", more);
    if (more) fprintf(to, "%-102s %7.1f\n", rest, 1e6 * more_s);
}

void cornu_tpu_model_print(const CornuTpuModel *model, const CornuProgram *program, FILE *to)
{
    const CornuTpuProfile *profile = model->profile;
    fprintf(to, "modelled for %s, %lld shards: nothing ran there\n", profile->name,
            (long long)model->shards);
    print_ops(model, program, to);
    fprintf(to, "step, modelled: %.3f ms = max(device %.3f ms, infeed %.3f ms) + dispatch %.3f ms "
            "(%c); bound by %s\n", 1e3 * model->step_s, 1e3 * model->device_s,
            1e3 * model->infeed_s, 1e3 * model->dispatch_s, profile->dispatch_ms.mark,
            cornu_tpu_bound_name(model->bound));
    fprintf(to, "device, modelled: ops %.3f ms, all-reduce %.3f ms; MXU use %.1f percent\n",
            1e3 * model->ops_s, 1e3 * model->all_reduce_s, 100.0 * model->use_overlapped);
}
