#include "../../../tensor/function_internal.h"
#include "pooling_internal.h"

typedef CornuTensor *PoolOp(CornuTensor *x, const CornuWindow *window);

typedef struct {
    int     axes;
    int64_t size[3], strides[3], low[3], high[3];
} Pool;

/* Pools axis 1 of x (B, n, m, C) by window axis `a`. */
static CornuTensor *pool_rows(CornuTensor *x, const Pool *pool, int a, PoolOp *op)
{
    return op(x, &(CornuWindow){ .size = { pool->size[a], 1 }, .strides = { pool->strides[a], 1 },
                                 .low = { pool->low[a] }, .high = { pool->high[a] } });
}

static CornuTensor *pool_columns(CornuTensor *x, const Pool *pool, int a, PoolOp *op)
{
    return op(x, &(CornuWindow){ .size = { 1, pool->size[a] }, .strides = { 1, pool->strides[a] },
                                 .low = { 0, pool->low[a] }, .high = { 0, pool->high[a] } });
}

/* x (B, H, W, C), by window axes `a` and a + 1 */
static CornuTensor *pool_image(CornuTensor *x, const Pool *pool, int a, PoolOp *op)
{
    const CornuWindow both = {
        .size = { pool->size[a], pool->size[a + 1] },
        .strides = { pool->strides[a], pool->strides[a + 1] },
        .low = { pool->low[a], pool->low[a + 1] }, .high = { pool->high[a], pool->high[a + 1] },
    };
    if (both.size[0] <= CORNU_MOST_POSITIONS && both.size[1] <= CORNU_MOST_POSITIONS / both.size[0])
        return op(x, &both);
    x = pool_columns(x, pool, a + 1, op);
    return x ? pool_rows(x, pool, a, op) : NULL;
}

/* The axes are pooled one after the other where the op has no window for them: the maximum of
 * maxima is that of all, of equal ones the first; and as each part of a window has the same number
 * of elements that are not padding, the mean of means is theirs. */
static CornuTensor *pool_axes(CornuTensor *x, const Pool *pool, PoolOp *op)
{
    if (!x) return NULL;
    if (pool->axes == 1) return cornu__as_sequence(pool_columns(cornu__as_image(x), pool, 0, op));
    if (pool->axes == 2) return pool_image(x, pool, 0, op);
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    B = s.extent[0], D = s.extent[1], C = s.extent[4];
    x = pool_image(cornu_op_reshape(x, cornu_shape(B * D, s.extent[2], s.extent[3], C)), pool, 1,
                   op);
    if (!x) return NULL;
    const CornuShape plane = cornu_tensor_shape(x);
    const int64_t    H = plane.extent[1], W = plane.extent[2];
    x = pool_rows(cornu_op_reshape(x, cornu_shape(B, D, H * W, C)), pool, 0, op);
    return x ? cornu_op_reshape(x, cornu_shape(B, CORNU_NONE, H, W, C)) : NULL;
}

/* ---- Functions. Numbers: the padding, size and strides ---- */

static CornuTensor *pool(CornuTensor *x, const double *numbers, PoolOp *op)
{
    const CornuShape shape = cornu_tensor_shape(x);
    Pool        pool = { .axes = shape.rank - 2 };
    for (int i = 0; i < pool.axes; i++) {
        pool.size[i] = (int64_t)numbers[1 + i];
        pool.strides[i] = (int64_t)numbers[1 + pool.axes + i];
        cornu__padding((CornuPadding)numbers[0], shape.extent[i + 1], pool.size[i],
                       pool.strides[i], 1, &pool.low[i], &pool.high[i]);
    }
    return pool_axes(x, &pool, op);
}

static CornuTensor *max_pool(CornuTensor *const *in, int count, const double *numbers)
{
    (void)count;
    return pool(in[0], numbers, cornu_op_max_pool2d);
}

static CornuTensor *average_pool(CornuTensor *const *in, int count, const double *numbers)
{
    (void)count;
    return pool(in[0], numbers, cornu_op_average_pool2d);
}

static CornuTensor *called(const CornuFunction *function, CornuTensor *x, CornuPadding padding,
                           const int64_t *size, const int64_t *strides)
{
    double numbers[CORNU_OP_NUMBERS] = { padding };
    if (!x) return NULL;
    const int axes = cornu_tensor_shape(x).rank - 2;
    for (int i = 0; i < axes; i++) {
        numbers[1 + i] = (double)size[i];
        numbers[1 + axes + i] = (double)strides[i];
    }
    return cornu__function(function, &x, 1, numbers, 1 + 2 * axes);
}

CornuTensor *cornu__max_pool(CornuTensor *x, CornuPadding padding, const int64_t *size,
                             const int64_t *strides)
{
    static const CornuFunction function = CORNU__FUNCTION("max_pool", .formula = max_pool);
    return called(&function, x, padding, size, strides);
}

CornuTensor *cornu__average_pool(CornuTensor *x, CornuPadding padding, const int64_t *size,
                                 const int64_t *strides)
{
    static const CornuFunction function = CORNU__FUNCTION("average_pool",
                                                          .formula = average_pool);
    return called(&function, x, padding, size, strides);
}
