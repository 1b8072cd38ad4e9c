/* softmax and log_softmax over the last axis, f32, in blocks of rows. */
#include "normalize.h"
#include "kernels.h"

enum { BLOCK = 4096 };   /* elements a block holds at least */

typedef struct {
    const CornuKernelCall *call;
    const CornuNormalizes *normalizes;
    int64_t                rows, classes, block_rows;
} Softmax;

static void softmax_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Softmax *s = context;
    const bool     logarithm = s->call->op.id == CORNU_OP_LOG_SOFTMAX;
    const int64_t  first = block * s->block_rows;
    const int64_t  end = first + s->block_rows < s->rows ? first + s->block_rows : s->rows;
    for (int64_t row = first; row < end; row++)
        s->normalizes->softmax((const float *)s->call->in[0] + row * s->classes, s->classes,
                               logarithm, (float *)s->call->out[0] + row * s->classes);
}

static CornuStatus softmax(const CornuKernelCall *call)
{
    const CornuShape shape = call->op.in[0].shape;
    Softmax          s = { call, cornu__normalizes(), 0, shape.extent[shape.rank - 1], 0 };
    s.rows = cornu_shape_count(shape) / s.classes;
    s.block_rows = (BLOCK + s.classes - 1) / s.classes;
    cornu__threads_run(call->threads, (s.rows + s.block_rows - 1) / s.block_rows, softmax_block,
                       &s);
    return CORNU_OK;
}

const CornuKernel cornu__host_softmax = { NULL, NULL, softmax, false };
const CornuKernel cornu__host_log_softmax = { NULL, NULL, softmax, false };
