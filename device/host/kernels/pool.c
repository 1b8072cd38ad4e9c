/*
 * Gradients of pooling in the cache, for pool2d.c and for convolutions joined with them.
 *
 * Reference: device/ops/pool.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain: bf16 moved, not widened, where windows do not overlap, the layer of one channel's gradients
 *     by filter and pool, an image of 28 x 28, 32 filters, one core of a Zen 4: 6.1 us, then 3.4.
 */
#include "pool.h"

#include "../machine/bf16.h"

#include <string.h>

CornuPool cornu__pool(const CornuOpCall *call)
{
    CornuSweep sweeps[2];
    cornu__sweeps(call, sweeps);
    return (CornuPool){ sweeps[0], sweeps[1], call->in[0].shape.extent[3] };
}

CornuDecline cornu__joins_two_by_two(const CornuQuery *q)
{
    const CornuPool pool = cornu__pool(q->pool);
    return cornu__needs(cornu__pool_is_two_by_two(&pool), "windows of two by two");
}

int64_t cornu__pool_rows(const CornuPool *pool, int64_t i)
{
    const int64_t size = pool->height.size;
    return i + 1 < pool->height.out ? size : pool->height.in - i * size;
}

/* Zeros after the last window of each of the first `rows` rows of d_x, and all of the `below` rows
 * after them; `size` bytes an element. */
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

/* d_y is f32 if `wide` is NULL, else bf16, and `wide` has space for one row of it. */
static bool grad_image(const CornuPool *pool, const void *d_y, float *wide, const uint8_t *index,
                       float *d_x)
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

/* Rows of windows [*first, *end) over rows [from, to) of d_x; rows after all windows belong to the
 * last. */
static void rows_of_windows(const CornuPool *pool, int64_t from, int64_t to, int64_t *first,
                            int64_t *end)
{
    const CornuSweep *height = &pool->height;
    const int64_t     last = height->out - 1, k = from / height->size;
    const int64_t     k_end = (to + height->size - 1) / height->size;
    *first = k < last ? k : last;
    *end = k_end < height->out ? k_end : height->out;
}

bool cornu__pool_grad(const CornuPool *pool, CornuDtype dtype, int64_t from, int64_t to,
                      const void *d_y, const uint8_t *index, float *scratch, void *d_x)
{
    const int64_t y_row = pool->width.out * pool->channels;
    const int64_t row = pool->width.in * pool->channels, count = pool->height.in * row;
    int64_t       i, end;
    bool          found = true;
    if (dtype == CORNU_F32) return grad_image(pool, d_y, NULL, index, d_x);
    if (!index || !cornu__pool_is_exact(pool)) {
        found = grad_image(pool, d_y, scratch + count, index, scratch);
        cornu__bf16()->narrow(scratch, count, d_x);
        return found;
    }
    rows_of_windows(pool, from, to, &i, &end);
    for (; i < end; i++)
        found &= cornu__pool_grad_narrow(pool, i, (const uint16_t *)d_y + i * y_row,
                                         index + i * y_row,
                                         (uint16_t *)d_x + i * pool->height.size * row);
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
