#include "pooling_internal.h"

/* Pools axis 1 of x (B, n, m, C) by window axis `a`. */
static CornuTensor *pool_rows(CornuTensor *x, const CornuPool *pool, int a, CornuPoolOp *op)
{
    return op(x, &(CornuWindow){ .size = { pool->size[a], 1 }, .strides = { pool->strides[a], 1 },
                                 .low = { pool->low[a] }, .high = { pool->high[a] } });
}

static CornuTensor *pool_columns(CornuTensor *x, const CornuPool *pool, int a, CornuPoolOp *op)
{
    return op(x, &(CornuWindow){ .size = { 1, pool->size[a] }, .strides = { 1, pool->strides[a] },
                                 .low = { 0, pool->low[a] }, .high = { 0, pool->high[a] } });
}

/* x (B, H, W, C), by window axes `a` and a + 1 */
static CornuTensor *pool_image(CornuTensor *x, const CornuPool *pool, int a, CornuPoolOp *op)
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

CornuTensor *cornu__pool_axes(CornuTensor *x, const CornuPool *pool, CornuPoolOp *op)
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
