/* The kernels of registered ops, which their users wrote (device/definition.h): f32 alone. */
#include "../../definition_internal.h"
#include "kernels.h"

static CornuDecline custom_declines(const CornuQuery *q)
{
    if (!q->op->attributes->custom.definition->kernel)
        return cornu__needs(false, "a kernel in the op's definition");
    return cornu__takes_f32(q);
}

typedef struct {
    CornuOpBlock *block;
    void         *context;
} Work;

static void run_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Work *work = context;
    work->block(work->context, block);
}

static void run_blocks(void *runner, int64_t blocks, CornuOpBlock *block, void *context)
{
    Work work = { block, context };
    cornu__threads_run(runner, blocks, run_block, &work);
}

static CornuStatus run(const CornuKernelCall *call)
{
    CornuOpArguments arguments = cornu__definition_arguments(&call->op);
    arguments.run = run_blocks;
    arguments.runner = call->threads;
    return call->op.attributes->custom.definition->kernel(&arguments, call->in, call->out_type,
                                                          call->out);
}

const CornuKernel cornu__host_custom = {
    .name = "custom", .declines = custom_declines, .run = run,
};
