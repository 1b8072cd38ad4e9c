/*
 * Max and average pooling and their gradients, f32 or bf16: x (B, H, W, C), y (B, Ho, Wo, C). Work
 * is cut by images and, forwards, by rows of outputs; a gradient's image belongs to one thread,
 * which adds its windows in order. bf16 is widened to f32 a slab or an image at a time, in the
 * cache; the gradient of a maximum is only moved where windows do not overlap.
 *
 * Reference: device/ops/pool.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain: not measured apart from isa/pool.c.
 */
#include <stdatomic.h>

#include "../machine/bf16.h"
#include "pool.h"
#include "kernels.h"

enum { UNITS = 64 };   /* cuts, where the shape allows */

typedef struct {
    const CornuKernelCall *call;
    const CornuPools      *pools;
    CornuPool              pool;
    int64_t                batch, slabs;
    int64_t                x_image, y_row;
    CornuDtype             dtype;
    float                 *scratch;        /* of bf16: an image of x and one of y, per thread */
    int64_t                scratch_count;
    _Atomic int64_t        bad_row;     /* an image with an invalid index, or -1 */
} Pooling;

/* Sizes, and the parts of the scratch memory. */
static void lay_out(Pooling *p, const CornuOpCall *op, int threads, CornuScratch *scratch)
{
    p->pools = cornu__pools();
    p->pool = cornu__pool(op);
    p->batch = op->in[0].shape.extent[0];
    p->x_image = p->pool.height.in * p->pool.width.in * p->pool.channels;
    p->y_row = p->pool.width.out * p->pool.channels;
    p->dtype = op->in[0].dtype;
    const bool moved = op->id == CORNU_OP_MAX_POOL2D_GRAD && cornu__pool_is_exact(&p->pool);
    p->scratch_count = p->dtype == CORNU_BF16 && !moved ? p->x_image + p->pool.height.out * p->y_row
                                                     : 0;
    p->scratch = cornu__take_floats(scratch, threads * p->scratch_count);
}

static size_t pool2d_scratch(const CornuQuery *q)
{
    Pooling      p;
    CornuScratch scratch = { 0 };
    lay_out(&p, q->op, q->machine.threads, &scratch);
    return scratch.bytes;
}

static void start(Pooling *p, const CornuKernelCall *call)
{
    lay_out(p, &call->op, cornu__threads_count(call->threads),
            &(CornuScratch){ .memory = call->scratch });
    p->call = call;
    p->slabs = p->batch < UNITS ? (UNITS + p->batch) / (p->batch + 1) : 1;
    if (p->slabs > p->pool.height.out) p->slabs = p->pool.height.out;
    atomic_init(&p->bad_row, -1);
}

/* Rows i to i_end of outputs from an image of f32. */
static void pool_rows(const Pooling *p, int64_t i, int64_t i_end, const float *x, float *y,
                      uint8_t *index)
{
    for (; i < i_end; i++, y += p->y_row)
        if (index) {
            p->pools->max(&p->pool, i, x, y, index);
            index += p->y_row;
        } else {
            p->pools->average(&p->pool, i, x, y);
        }
}

static void pool_slab(void *context, int64_t block, int thread)
{
    const Pooling    *p = context;
    const CornuSweep *height = &p->pool.height;
    const int64_t     b = block / p->slabs, slab = block % p->slabs;
    const int64_t     i = slab * height->out / p->slabs;
    const int64_t     i_end = (slab + 1) * height->out / p->slabs;
    const int64_t     at = (b * height->out + i) * p->y_row, row = p->x_image / height->in;
    const bool        max = p->call->op.id == CORNU_OP_MAX_POOL2D;
    uint8_t          *index = max ? (uint8_t *)p->call->out[1] + at : NULL;
    if (p->dtype == CORNU_F32) {
        pool_rows(p, i, i_end, (const float *)p->call->in[0] + b * p->x_image,
                  (float *)p->call->out[0] + at, index);
        return;
    }
    const CornuBf16 *bf16 = cornu__bf16();
    float           *x = p->scratch + thread * p->scratch_count, *y = x + p->x_image;
    int64_t first = i * height->stride - height->low;
    int64_t last = (i_end - 1) * height->stride - height->low + height->size;
    if (first < 0) first = 0;
    if (last > height->in) last = height->in;
    bf16->widen((const uint16_t *)p->call->in[0] + b * p->x_image + first * row,
                (last - first) * row, x + first * row);
    pool_rows(p, i, i_end, x, y, index);
    bf16->narrow(y, (i_end - i) * p->y_row, (uint16_t *)p->call->out[0] + at);
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
    Pooling        *p = context;
    const CornuPool *pool = &p->pool;
    const bool      average = p->call->op.id == CORNU_OP_AVERAGE_POOL2D_GRAD;
    const int64_t   count = pool->height.out * p->y_row;
    const size_t    size = cornu_dtype_size(p->dtype);
    if (!cornu__pool_grad(pool, p->dtype, 0, pool->height.in,
                          (const char *)p->call->in[0] + (size_t)(b * count) * size,
                          average ? NULL : (const uint8_t *)p->call->in[1] + b * count,
                          p->scratch + thread * p->scratch_count,
                          (char *)p->call->out[0] + (size_t)(b * p->x_image) * size))
        atomic_store(&p->bad_row, b);
}

static CornuStatus pool2d_grad(const CornuKernelCall *call)
{
    Pooling p;
    start(&p, call);
    cornu__threads_run(call->threads, p.batch, grad_image, &p);
    return p.bad_row < 0 ? CORNU_OK : cornu__pool_bad_index(&p.pool, p.bad_row);
}

const CornuKernel cornu__host_max_pool2d = {
    .name = "pool2d", .declines = cornu__takes_f32_or_bf16,
    .scratch = pool2d_scratch, .run = pool2d,
};
const CornuKernel cornu__host_average_pool2d = {
    .name = "pool2d", .declines = cornu__takes_f32_or_bf16,
    .scratch = pool2d_scratch, .run = pool2d,
};
const CornuKernel cornu__host_max_pool2d_grad = {
    .name = "pool2d", .declines = cornu__takes_f32_or_bf16,
    .scratch = pool2d_scratch, .run = pool2d_grad,
};
const CornuKernel cornu__host_average_pool2d_grad = {
    .name = "pool2d", .declines = cornu__takes_f32_or_bf16,
    .scratch = pool2d_scratch, .run = pool2d_grad,
};
