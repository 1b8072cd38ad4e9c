#include "pool.h"

#include "bf16.h"

#include <string.h>

CornuPool cornu__pool(const CornuOpCall *call)
{
    CornuSweep sweeps[2];
    cornu__sweeps(call, sweeps);
    return (CornuPool){ sweeps[0], sweeps[1], call->in[0].shape.extent[3] };
}

bool cornu__pool_is_exact(const CornuPool *pool)
{
    const CornuSweep *height = &pool->height, *width = &pool->width;
    return height->stride == height->size && width->stride == width->size && height->low == 0 &&
           width->low == 0 && height->out * height->size <= height->in &&
           width->out * width->size <= width->in;
}

/* Zero behind the last window of each row, and below the last row of windows. */
static void clear_rest(const CornuPool *pool, float *d_x)
{
    const int64_t C = pool->channels, width = pool->width.in;
    const int64_t rows = pool->height.out * pool->height.size;
    const int64_t columns = pool->width.out * pool->width.size;
    for (int64_t i = 0; i < rows && columns < width; i++)
        memset(d_x + (i * width + columns) * C, 0, (size_t)((width - columns) * C) * sizeof(float));
    memset(d_x + rows * width * C, 0,
           (size_t)((pool->height.in - rows) * width * C) * sizeof(float));
}

bool cornu__pool_grad_image(const CornuPool *pool, const void *d_y, float *wide,
                            const uint8_t *index, float *d_x)
{
    const CornuPools *pools = cornu__pools();
    const int64_t     row = pool->width.out * pool->channels;
    bool              found = true;
    const int64_t     count = pool->height.in * pool->width.in * pool->channels;
    if (cornu__pool_is_exact(pool)) clear_rest(pool, d_x);
    else memset(d_x, 0, (size_t)count * sizeof *d_x);
    for (int64_t i = 0; i < pool->height.out; i++) {
        const float *from = wide ? wide : (const float *)d_y + i * row;
        if (wide) cornu__bf16()->widen((const uint16_t *)d_y + i * row, row, wide);
        if (index) found &= pools->max_grad(pool, i, from, index + i * row, d_x);
        else pools->average_grad(pool, i, from, d_x);
    }
    return found;
}

CornuStatus cornu__pool_bad_index(const CornuPool *pool, int64_t row)
{
    return cornu__fail(CORNU_ERR_VALUE,
                       "an index in row %lld names no element under its window of %lld by %lld",
                       (long long)row, (long long)pool->height.size, (long long)pool->width.size);
}
