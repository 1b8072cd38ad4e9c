/*
 * Max and average pooling and their gradients, f32: x (B, H, W, C), y (B, Ho, Wo, C). Work is
 * cut by images and, forwards, rows of outputs; a gradient's image belongs to one thread, which
 * adds its windows in order.
 */
#include <stdatomic.h>

#include "pool.h"
#include "kernels.h"

enum { UNITS = 64 };   /* cuts, where the shape allows */

typedef struct {
    const CornuKernelCall *call;
    const CornuPools      *pools;
    CornuPool              pool;
    int64_t                batch, slabs;
    int64_t                x_image, y_row;
    _Atomic int64_t        bad_row;     /* an image whose index makes no sense, or -1 */
} Pooling;

static void start(Pooling *p, const CornuKernelCall *call)
{
    p->call = call;
    p->pools = cornu__pools();
    p->pool = cornu__pool(&call->op);
    p->batch = call->op.in[0].shape.extent[0];
    p->slabs = p->batch < UNITS ? (UNITS + p->batch) / (p->batch + 1) : 1;
    if (p->slabs > p->pool.height.out) p->slabs = p->pool.height.out;
    p->x_image = p->pool.height.in * p->pool.width.in * p->pool.channels;
    p->y_row = p->pool.width.out * p->pool.channels;
    atomic_init(&p->bad_row, -1);
}

static void pool_slab(void *context, int64_t block, int thread)
{
    (void)thread;
    const Pooling *p = context;
    const int64_t  b = block / p->slabs, slab = block % p->slabs, height = p->pool.height.out;
    const float   *x = (const float *)p->call->in[0] + b * p->x_image;
    for (int64_t i = slab * height / p->slabs; i < (slab + 1) * height / p->slabs; i++) {
        const int64_t at = (b * height + i) * p->y_row;
        float        *y = (float *)p->call->out[0] + at;
        if (p->call->op.id == CORNU_OP_MAX_POOL2D)
            p->pools->max(&p->pool, i, x, y, (uint8_t *)p->call->out[1] + at);
        else
            p->pools->average(&p->pool, i, x, y);
    }
}

static CornuStatus pool2d(const CornuKernelCall *call)
{
    Pooling p;
    start(&p, call);
    cornu__threads_run(call->threads, p.batch * p.slabs, pool_slab, &p);
    return CORNU_OK;
}

static void grad_image(void *context, int64_t b, int thread)
{
    (void)thread;
    Pooling       *p = context;
    const bool     average = p->call->op.id == CORNU_OP_AVERAGE_POOL2D_GRAD;
    const int64_t  at = b * p->pool.height.out * p->y_row;
    const uint8_t *index = average ? NULL : (const uint8_t *)p->call->in[1] + at;
    if (!cornu__pool_grad_image(&p->pool, (const float *)p->call->in[0] + at, index,
                                (float *)p->call->out[0] + b * p->x_image))
        atomic_store(&p->bad_row, b);
}

static CornuStatus pool2d_grad(const CornuKernelCall *call)
{
    Pooling p;
    start(&p, call);
    cornu__threads_run(call->threads, p.batch, grad_image, &p);
    return p.bad_row < 0 ? CORNU_OK : cornu__pool_bad_index(&p.pool, p.bad_row);
}

const CornuKernel cornu__host_max_pool2d = { NULL, NULL, pool2d, false };
const CornuKernel cornu__host_average_pool2d = { NULL, NULL, pool2d, false };
const CornuKernel cornu__host_max_pool2d_grad = { NULL, NULL, pool2d_grad, false };
const CornuKernel cornu__host_average_pool2d_grad = { NULL, NULL, pool2d_grad, false };
