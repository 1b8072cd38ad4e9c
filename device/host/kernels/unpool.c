/*
 * Reference: device/ops/pool.c, as joined in tests/device/host/kernels/test_kernels.c.
 * Source: own.
 * Gain: a pool's gradient made in the cache by both gradients of the convolution before it, Zen 4:
 *     mnist_cnn at 1024 on cpu 78.2 ms a step, then 75.4; Fashion CNN at 1024 on tpu 1570 MB moved,
 *     then 1116.
 */
#include "unpool.h"

int64_t cornu__unpool_scratch(const CornuType *d_y)
{
    const int64_t *extent = d_y->shape.extent, C = extent[3];
    if (d_y->dtype != CORNU_BF16) return 0;
    /* A row of windows, some of which may lie in the padding alone. */
    return extent[1] * extent[2] * C + (extent[2] + UINT8_MAX) * C;
}

void cornu__unpool_start(CornuUnpool *unpool, const CornuKernelCall *call, int at, float *scratch,
                         int64_t scratch_count)
{
    unpool->pool = cornu__pool(call->pool);
    unpool->dtype = call->pool->in[0].dtype;
    unpool->pooled = unpool->pool.height.out * unpool->pool.width.out * unpool->pool.channels;
    unpool->d_y = call->in[at];
    unpool->index = call->in[at + 1];
    unpool->scratch = scratch;
    unpool->scratch_count = scratch_count;
    atomic_init(&unpool->bad_row, -1);
}

void cornu__unpool_image(CornuUnpool *unpool, int64_t b, int64_t from, int64_t to, int thread,
                         void *map)
{
    const int64_t at = b * unpool->pooled;
    if (!cornu__pool_grad(&unpool->pool, unpool->dtype, from, to,
                          unpool->d_y + (size_t)at * cornu_dtype_size(unpool->dtype),
                          unpool->index + at, unpool->scratch + thread * unpool->scratch_count,
                          map))
        atomic_store(&unpool->bad_row, b);
}

void cornu__unpool_rows(CornuUnpool *unpool, int64_t b, int64_t i, uint16_t *rows)
{
    const CornuPool *pool = &unpool->pool;
    const int64_t    at = b * unpool->pooled + i * pool->width.out * pool->channels;
    if (!cornu__pool_grad_narrow(pool, i, (const uint16_t *)(const void *)unpool->d_y + at,
                                 unpool->index + at, rows))
        atomic_store(&unpool->bad_row, b);
}

CornuStatus cornu__unpool_status(const CornuUnpool *unpool)
{
    return unpool->bad_row < 0 ? CORNU_OK : cornu__pool_bad_index(&unpool->pool, unpool->bad_row);
}
