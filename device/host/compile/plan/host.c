#include "host.h"

CornuMachine cornu__machine(const CornuHost *host)
{
    return (CornuMachine){ cornu__threads_count(host->threads), host->multiplier, host->shards };
}

CornuDtype cornu__widened(CornuDtype dtype)
{
    return dtype == CORNU_BF16 || dtype == CORNU_F16 ? CORNU_F32 : dtype;
}

CornuAttributes cornu__widened_attributes(const CornuProgramOp *op)
{
    CornuAttributes a = op->attributes;
    switch (op->id) {
    case CORNU_OP_MATMUL: a.matmul.dtype = cornu__widened(a.matmul.dtype); break;
    case CORNU_OP_CONV2D: a.conv2d.dtype = cornu__widened(a.conv2d.dtype); break;
    case CORNU_OP_CONV2D_GRAD_INPUT: case CORNU_OP_CONV2D_GRAD_FILTER:
        a.conv2d_grad.dtype = cornu__widened(a.conv2d_grad.dtype);
        break;
    case CORNU_OP_GROUPED_CONV2D:
        a.grouped_conv2d.dtype = cornu__widened(a.grouped_conv2d.dtype);
        break;
    case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT: case CORNU_OP_GROUPED_CONV2D_GRAD_FILTER:
        a.grouped_conv2d_grad.dtype = cornu__widened(a.grouped_conv2d_grad.dtype);
        break;
    case CORNU_OP_CUSTOM: a.custom.body = NULL; break;   /* of the types before; it has a kernel */
    case CORNU_OP_GATHER_GRAD: a.gather_grad.dtype = cornu__widened(a.gather_grad.dtype); break;
    default: break;
    }
    return a;
}

/* A query, with what it points at. */
typedef struct {
    CornuAttributes attributes;
    CornuType       in[64], pool_in[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS];
    CornuOpCall     call, pool;
    CornuQuery      query;
} Question;

/* Whether the value is made of one input, which is the same in every run. */
static bool is_fixed(const CornuProgram *program, CornuValue value)
{
    const CornuProgramValue *v = &program->values[value];
    while (v->op >= 0 && program->ops[v->op].in_count == 1)
        v = &program->values[cornu_program_operands(program, &program->ops[v->op])[0]];
    return v->op < 0 && v->fixed;
}

/* `wide`: with f32 for bf16 and f16. Only concat takes any number of operands; those beyond the
 * first are of the same kind. */
static void ask(Question *q, const CornuHost *host, const CornuProgram *program,
                const CornuProgramOp *op, const CornuProgramOp *pool, bool wide)
{
    const int most = (int)(sizeof q->in / sizeof *q->in);
    q->attributes = wide ? cornu__widened_attributes(op) : op->attributes;
    q->call = (CornuOpCall){ op->id, &q->attributes, op->in_count < most ? op->in_count : most,
                             q->in };
    if (pool) q->pool = cornu_program_call(program, pool, q->pool_in);
    q->query = (CornuQuery){ &q->call, q->out, cornu__machine(host), pool ? &q->pool : NULL, 0 };
    for (int i = 0; i < q->call.in_count; i++) {
        const CornuValue operand = cornu_program_operands(program, op)[i];
        q->in[i] = cornu_program_type(program, operand);
        if (i < CORNU_MAX_INPUTS && is_fixed(program, operand)) q->query.fixed |= 1u << i;
    }
    for (int i = 0; i < op->out_count; i++)
        q->out[i] = cornu_program_type(program, op->out_first + i);
    for (int i = 0; wide && i < q->call.in_count; i++)
        q->in[i].dtype = cornu__widened(q->in[i].dtype);
    for (int i = 0; wide && i < op->out_count; i++)
        q->out[i].dtype = cornu__widened(q->out[i].dtype);
}

/* The op's kernels, those of one table after those of another. */
static int kernels_of(const CornuHost *host, CornuOpId id, const CornuKernel **kernels)
{
    int count = 0;
    for (int table = 0; host->kernels[table]; table++)
        for (int i = 0; host->kernels[table][id][i]; i++)
            kernels[count++] = host->kernels[table][id][i];
    return count;
}

static const CornuKernel *kernel_taking(const CornuHost *host, const CornuProgram *program,
                                        const CornuProgramOp *op, const CornuProgramOp *pool,
                                        bool wide)
{
    Question           q;
    const CornuKernel *kernels[CORNU_MOST_KERNELS];
    const int          count = kernels_of(host, op->id, kernels);
    if (count == 0) return NULL;
    ask(&q, host, program, op, pool, wide);
    for (int i = 0; i < count; i++)
        if (!cornu__kernel_declines(kernels[i], kernels[count - 1], &q.query).needs)
            return kernels[i];
    return NULL;
}

const CornuKernel *cornu__kernel_for(const CornuHost *host, const CornuProgram *program,
                                     const CornuProgramOp *op, const CornuProgramOp *pool)
{
    return kernel_taking(host, program, op, pool, false);
}

const CornuKernel *cornu__widened_kernel_for(const CornuHost *host, const CornuProgram *program,
                                             const CornuProgramOp *op)
{
    return kernel_taking(host, program, op, NULL, true);
}

int cornu__declined(const CornuHost *host, const CornuProgram *program, const CornuProgramOp *op,
                    const CornuProgramOp *pool, const CornuKernel *taken, CornuDeclined *to)
{
    Question           q;
    const CornuKernel *kernels[CORNU_MOST_KERNELS];
    const int          count = kernels_of(host, op->id, kernels);
    int                i = 0;
    ask(&q, host, program, op, pool, false);
    for (; i < count; i++) {
        if (taken && (taken == kernels[i] || taken == kernels[i]->summed)) break;
        to[i].kernel = kernels[i]->name;
        cornu__decline_print(cornu__kernel_declines(kernels[i], kernels[count - 1], &q.query),
                             to[i].why);
    }
    return i;
}
