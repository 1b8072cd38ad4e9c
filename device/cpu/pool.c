/*
 * Max and average pooling and their gradients, f32: x (B, H, W, C), y (B, Ho, Wo, C). Work is
 * cut by images and, forwards, rows of outputs; a gradient's image belongs to one thread, which
 * adds its windows in order.
 */
#include <stdatomic.h>
#include <string.h>

#include "../host/pool.h"
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
    CornuSweep sweeps[2];
    cornu__sweeps(&call->op, sweeps);
    const CornuShape shape = call->op.in[0].shape;
    p->call = call;
    p->pools = cornu__pools();
    p->pool = (CornuPool){ sweeps[0], sweeps[1], shape.extent[3] };
    p->batch = shape.extent[0];
    p->slabs = p->batch < UNITS ? (UNITS + p->batch) / (p->batch + 1) : 1;
    if (p->slabs > sweeps[0].out) p->slabs = sweeps[0].out;
    p->x_image = sweeps[0].in * sweeps[1].in * shape.extent[3];
    p->y_row = sweeps[1].out * shape.extent[3];
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

/* Zero where the windows of row i, or those of no row, leave elements out. */
static void clear_rest(const Pooling *p, float *d_x)
{
    const CornuSweep *height = &p->pool.height, *width = &p->pool.width;
    const int64_t     C = p->pool.channels, covered = height->out * height->size;
    const int64_t     columns = width->out * width->size;
    for (int64_t i = 0; i < covered && columns < width->in; i++)
        memset(d_x + (i * width->in + columns) * C, 0,
               (size_t)((width->in - columns) * C) * sizeof(float));
    memset(d_x + covered * width->in * C, 0,
           (size_t)((height->in - covered) * width->in * C) * sizeof(float));
}

static void grad_image(void *context, int64_t b, int thread)
{
    (void)thread;
    Pooling      *p = context;
    const int64_t height = p->pool.height.out;
    float        *d_x = (float *)p->call->out[0] + b * p->x_image;
    if (cornu__pool_is_exact(&p->pool)) clear_rest(p, d_x);
    else memset(d_x, 0, (size_t)p->x_image * sizeof(float));
    for (int64_t i = 0; i < height; i++) {
        const int64_t at = (b * height + i) * p->y_row;
        const float  *d_y = (const float *)p->call->in[0] + at;
        if (p->call->op.id == CORNU_OP_AVERAGE_POOL2D_GRAD)
            p->pools->average_grad(&p->pool, i, d_y, d_x);
        else if (!p->pools->max_grad(&p->pool, i, d_y, (const uint8_t *)p->call->in[1] + at, d_x))
            atomic_store(&p->bad_row, b);
    }
}

static CornuStatus pool2d_grad(const CornuKernelCall *call)
{
    Pooling p;
    start(&p, call);
    cornu__threads_run(call->threads, p.batch, grad_image, &p);
    if (p.bad_row < 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE,
                       "an index in row %lld names no element under its window of %lld by %lld",
                       (long long)p.bad_row, (long long)p.pool.height.size,
                       (long long)p.pool.width.size);
}

const CornuKernel cornu__cpu_max_pool2d = { NULL, NULL, pool2d, false };
const CornuKernel cornu__cpu_average_pool2d = { NULL, NULL, pool2d, false };
const CornuKernel cornu__cpu_max_pool2d_grad = { NULL, NULL, pool2d_grad, false };
const CornuKernel cornu__cpu_average_pool2d_grad = { NULL, NULL, pool2d_grad, false };
