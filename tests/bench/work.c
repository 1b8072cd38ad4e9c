#include "work.h"

#include "../../device/host/machine/cpu.h"
#include "../../device/ops/window.h"

const char *work_class_name(WorkClass class)
{
    static const char *const names[] = {
#define X(id, name) name,
        WORK_CLASS_MAP(X)
#undef X
    };
    return names[class];
}

static WorkClass class_of(CornuOpId id)
{
    switch (id) {
    case CORNU_OP_CONV2D: case CORNU_OP_CONV2D_GRAD_INPUT: case CORNU_OP_CONV2D_GRAD_FILTER:
    case CORNU_OP_GROUPED_CONV2D: case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT:
    case CORNU_OP_GROUPED_CONV2D_GRAD_FILTER:
        return WORK_CONVOLUTION;
    case CORNU_OP_MATMUL: return WORK_PRODUCT;
    case CORNU_OP_ATTENTION: case CORNU_OP_ATTENTION_GRAD: return WORK_ATTENTION;
    case CORNU_OP_SCAN: case CORNU_OP_LSTM: case CORNU_OP_LSTM_GRAD: case CORNU_OP_GRU:
    case CORNU_OP_GRU_GRAD: return WORK_RECURRENT;
    case CORNU_OP_MAX_POOL2D: case CORNU_OP_MAX_POOL2D_GRAD: case CORNU_OP_AVERAGE_POOL2D:
    case CORNU_OP_AVERAGE_POOL2D_GRAD: return WORK_POOLING;
    case CORNU_OP_BATCH_NORM: case CORNU_OP_BATCH_NORM_GRAD: return WORK_NORMALIZATION;
    case CORNU_OP_SOFTMAX: case CORNU_OP_LOG_SOFTMAX: case CORNU_OP_SPARSE_CROSS_ENTROPY:
        return WORK_SOFTMAX;
    case CORNU_OP_MOMENTUM_UPDATE: case CORNU_OP_RMSPROP_UPDATE: case CORNU_OP_ADAM_UPDATE:
        return WORK_OPTIMIZER;
    case CORNU_OP_GATHER: case CORNU_OP_GATHER_GRAD: return WORK_GATHER;
    case CORNU_OP_REDUCE_SUM: case CORNU_OP_REDUCE_MAX: case CORNU_OP_ARGMAX:
        return WORK_REDUCTION;
    case CORNU_OP_ALL_REDUCE: case CORNU_OP_REDUCE_SCATTER: case CORNU_OP_ALL_GATHER:
    case CORNU_OP_SHARD_SLICE: return WORK_COLLECTIVE;
    case CORNU_OP_CONVERT: return WORK_CONVERSION;
    case CORNU_OP_BROADCAST: case CORNU_OP_RESHAPE: case CORNU_OP_TRANSPOSE: case CORNU_OP_SLICE:
    case CORNU_OP_PAD: case CORNU_OP_CONCAT: case CORNU_OP_FLIP: case CORNU_OP_PACK:
        return WORK_LAYOUT;
    default: return WORK_ELEMENTWISE;
    }
}

/* Classes are in order of weight, except that conversions with other ops are elementwise. */
WorkClass work_class(const CornuProgram *program, const CornuExecutableStep *step)
{
    WorkClass class = WORK_LAYOUT;
    bool      converts = true;
    for (int i = 0; i < step->op_count; i++) {
        const WorkClass of_op = class_of(program->ops[step->ops[i]].id);
        if (of_op < class) class = of_op;
        converts &= of_op == WORK_CONVERSION || of_op == WORK_LAYOUT;
    }
    return class == WORK_CONVERSION && !converts ? WORK_ELEMENTWISE : class;
}

/* The fraction of the products along an axis that are not with padding. */
static double inside(const CornuSweep *sweep)
{
    int64_t taps = 0;
    for (int64_t o = 0; o < sweep->out; o++)
        for (int64_t u = 0; u < sweep->size; u++) taps += cornu__tap(sweep, o, u) >= 0;
    return (double)taps / (double)(sweep->out * sweep->size);
}

static double needed_by(const CornuProgram *program, int number)
{
    CornuType             in[CORNU_MAX_INPUTS];
    CornuSweep            sweeps[2];
    const CornuProgramOp *op = &program->ops[number];
    if (op->in_count > CORNU_MAX_INPUTS) return 0.0;   /* concat, which only copies */
    const CornuOpCall call = cornu_program_call(program, op, in);
    const double      flops = (double)cornu_op_flops(&call);
    if (class_of(op->id) != WORK_CONVOLUTION || !cornu__sweeps(&call, sweeps)) return flops;
    return flops * inside(&sweeps[0]) * inside(&sweeps[1]);
}

Work work_of(const CornuExecutable *executable, const CornuExecutableStep *step)
{
    const CornuProgram *program = cornu_executable_program(executable);
    const CornuDevice  *device = cornu_executable_device(executable);
    const int           shards = step->per_shard ? cornu_device_shards(device) : 1;
    const int           threads = cornu_device_threads(device);
    const double        bytes = (double)(step->bytes_read + step->bytes_written);
    Work                work = { .bytes = bytes * shards };
    for (int i = 0; i < step->op_count; i++)
        work.flops += shards * needed_by(program, step->ops[i]);
    work.near_bytes = shards > 1 && shards >= threads ? bytes : bytes / threads;
    work.bf16 = step->in_count > 0 && step->in[0].dtype == CORNU_BF16;
    return work;
}

Work work_of_all(const CornuExecutable *executable)
{
    int                        count;
    Work                       all = { .flops = 0.0 };
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    for (int i = 0; i < count; i++) {
        const Work work = work_of(executable, &steps[i]);
        all.flops += work.flops;
        all.bytes += work.bytes;
    }
    return all;
}

double work_bound(const BenchLimits *limits, Work work)
{
    const CornuCpu *cpu = cornu__cpu();
    const double    l3 = (double)cpu->l3 / limits->cpu.threads;
    const double    bandwidth = work.near_bytes <= (double)cpu->l1d ? limits->cache.l1_bytes
                              : work.near_bytes <= (double)cpu->l2  ? limits->cache.l2_bytes
                              : work.near_bytes <= l3               ? limits->cache.l3_bytes
                                                                    : limits->cpu.read_bytes;
    const double arithmetic = work.flops / (work.bf16 ? limits->cpu.bf16_flops
                                                      : limits->cpu.f32_flops);
    const double moving = work.bytes / bandwidth;
    return arithmetic > moving ? arithmetic : moving;
}
