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

/* The first of the kernel and its others that takes the op; `wide`: with f32 for bf16 and f16. */
static const CornuKernel *taking(const CornuHost *host, const CornuKernel *kernel,
                                 const CornuProgram *program, const CornuProgramOp *op, bool wide)
{
    if (!kernel) return NULL;
    /* Only concat takes any number of operands; those beyond these are of the same kind. */
    CornuType       in[64], out[CORNU_MAX_OUTPUTS];
    int             most = (int)(sizeof in / sizeof *in);
    CornuAttributes attributes = wide ? cornu__widened_attributes(op) : op->attributes;
    CornuOpCall     call = { op->id, &attributes, op->in_count < most ? op->in_count : most,
                             in };
    for (int i = 0; i < call.in_count; i++)
        in[i] = cornu_program_type(program, cornu_program_operands(program, op)[i]);
    for (int i = 0; i < op->out_count; i++)
        out[i] = cornu_program_type(program, op->out_first + i);
    for (int i = 0; wide && i < call.in_count; i++) in[i].dtype = cornu__widened(in[i].dtype);
    for (int i = 0; wide && i < op->out_count; i++) out[i].dtype = cornu__widened(out[i].dtype);
    const CornuMachine machine = cornu__machine(host);
    return cornu__kernel_taking(kernel, &call, out, &machine);
}

static const CornuKernel *kernel_of(const CornuHost *host, CornuOpId id)
{
    for (int i = 0; host->kernels[i]; i++)
        if (host->kernels[i][id]) return host->kernels[i][id];
    return NULL;
}

const CornuKernel *cornu__kernel_for(const CornuHost *host, const CornuProgram *program,
                                     const CornuProgramOp *op)
{
    return taking(host, kernel_of(host, op->id), program, op, false);
}

const CornuKernel *cornu__widened_kernel_for(const CornuHost *host, const CornuProgram *program,
                                             const CornuProgramOp *op)
{
    return taking(host, kernel_of(host, op->id), program, op, true);
}

static bool joins(const CornuKernel *kernel, const CornuProgram *program,
                  const CornuProgramOp *pool)
{
    CornuType in[2];   /* of a pool, or of its gradient */
    if (!pool || !kernel->joins) return true;
    for (int i = 0; i < pool->in_count; i++)
        in[i] = cornu_program_type(program, cornu_program_operands(program, pool)[i]);
    return kernel->joins(&(CornuOpCall){ pool->id, &pool->attributes, pool->in_count, in });
}

const CornuKernel *cornu__pooled_kernel_for(const CornuHost *host, const CornuProgram *program,
                                            const CornuProgramOp *op, const CornuProgramOp *pool)
{
    const CornuKernel *kernel = host->pooled ? host->pooled[op->id] : NULL;
    while ((kernel = taking(host, kernel, program, op, false)) && !joins(kernel, program, pool))
        kernel = kernel->otherwise;
    return kernel;
}
