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

int64_t cornu__pool_rows(const CornuPool *pool, int64_t i)
{
    const int64_t size = pool->height.size;
    return i + 1 < pool->height.out ? size : pool->height.in - i * size;
}

/* Zero behind the last window of each of the first `rows` rows of d_x, and all of the `below`
 * following; `size` bytes an element. */
static void clear_rest(const CornuPool *pool, int64_t rows, int64_t below, void *d_x, size_t size)
{
    const int64_t C = pool->channels, width = pool->width.in;
    const int64_t columns = pool->width.out * pool->width.size;
    char *const   at = d_x;
    for (int64_t i = 0; i < rows && columns < width; i++)
        memset(at + (size_t)((i * width + columns) * C) * size, 0,
               (size_t)((width - columns) * C) * size);
    memset(at + (size_t)(rows * width * C) * size, 0, (size_t)(below * width * C) * size);
}

bool cornu__pool_grad_image(const CornuPool *pool, const void *d_y, float *wide,
                            const uint8_t *index, float *d_x)
{
    const CornuPools *pools = cornu__pools();
    const int64_t     row = pool->width.out * pool->channels;
    bool              found = true;
    const int64_t     count = pool->height.in * pool->width.in * pool->channels;
    const int64_t     rows = pool->height.out * pool->height.size;
    if (cornu__pool_is_exact(pool))
        clear_rest(pool, rows, pool->height.in - rows, d_x, sizeof *d_x);
    else memset(d_x, 0, (size_t)count * sizeof *d_x);
    for (int64_t i = 0; i < pool->height.out; i++) {
        const float *from = wide ? wide : (const float *)d_y + i * row;
        if (wide) cornu__bf16()->widen((const uint16_t *)d_y + i * row, row, wide);
        if (index) found &= pools->max_grad(pool, i, from, index + i * row, d_x);
        else pools->average_grad(pool, i, from, d_x);
    }
    return found;
}

bool cornu__pool_grad_narrow(const CornuPool *pool, int64_t i, const uint16_t *d_y,
                             const uint8_t *index, uint16_t *d_x)
{
    const int64_t size = pool->height.size;
    clear_rest(pool, size, cornu__pool_rows(pool, i) - size, d_x, sizeof *d_x);
    return cornu__pools()->max_grad_narrow(pool, d_y, index, d_x);
}

CornuStatus cornu__pool_bad_index(const CornuPool *pool, int64_t row)
{
    return cornu__fail(CORNU_ERR_VALUE,
                       "an index in row %lld names no element under its window of %lld by %lld",
                       (long long)row, (long long)pool->height.size, (long long)pool->width.size);
}
