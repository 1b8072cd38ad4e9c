/*
 * Ops of networks: convolution, pooling, normalization, softmax, attention, dropout. ops.h, which
 * includes this header, says what all ops have in common.
 */
#ifndef CORNU_TENSOR_NN_OPS_H
#define CORNU_TENSOR_NN_OPS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Convolution ---- */

/* Entry 0 is for the height, entry 1 for the width. A stride or dilation of 0 counts as 1. low and
 * high are rows or columns of zero padding before and after; negative values crop x. */
typedef struct {
    int64_t strides[2], low[2], high[2], dilation[2];
    int64_t groups;   /* 0 counts as 1 */
} CornuConvolution;

/* x (B, H, W, C), filter (h, w, C, F): y (B, Ho, Wo, F),
 *   y[b,i,j,f] = sum over u, v, c of x[b, i s + u d - low, j s + v d - low, c] filter[u,v,c,f]
 *   Ho = floor((H + low + high - d (h - 1) - 1) / s) + 1
 * With G groups, which divide C and F, the filter is (h, w, C/G, F), and filters g F/G to
 * (g + 1) F/G - 1 read channels g C/G to (g + 1) C/G - 1. C groups are a depthwise convolution. */
CornuTensor *cornu_op_conv2d(CornuTensor *x, CornuTensor *filter,
                             const CornuConvolution *convolution);
/* d_y (B, Ho, Wo, F) and the filter give d_x (B, height, width, C). */
CornuTensor *cornu_op_conv2d_grad_input(CornuTensor *d_y, CornuTensor *filter, int64_t height,
                                        int64_t width, const CornuConvolution *convolution);
/* x and d_y give d_filter (height, width, C, F), in f32. */
CornuTensor *cornu_op_conv2d_grad_filter(CornuTensor *x, CornuTensor *d_y, int64_t height,
                                         int64_t width, const CornuConvolution *convolution);

/* ---- Pooling: x (B, H, W, C) ---- */

typedef struct {
    int64_t size[2], strides[2], low[2], high[2]; /* low, high at least 0, less than size */
} CornuWindow;

/* Padding counts as minus infinity. A window has at most 255 positions. */
CornuTensor *cornu_op_max_pool2d(CornuTensor *x, const CornuWindow *window);
/* Padding does not count towards the mean. */
CornuTensor *cornu_op_average_pool2d(CornuTensor *x, const CornuWindow *window);

/* ---- Normalization ---- */

/* y = (x - mean) / sqrt(variance + epsilon) * scale + offset over all axes but the last one,
 * statistics from the first `count` (i64 scalar) rows of axis 0, the variance without Bessel's
 * correction. x (B, …, C); scale, offset, mean and variance (C) f32. With count 0 mean and
 * variance are 0 and 1. mean and variance carry no gradient.
 * Source: Ioffe and Szegedy, "Batch Normalization", arXiv 1502.03167, algorithm 1. */
CornuTensor *cornu_op_batch_norm(CornuTensor *x, CornuTensor *scale, CornuTensor *offset,
                                 CornuTensor *count, double epsilon, CornuTensor **mean,
                                 CornuTensor **variance);

/* ---- Softmax and losses: over the last axis ---- */

CornuTensor *cornu_op_softmax(CornuTensor *x);      /* exp(x) / sum exp(x), never overflowing */
CornuTensor *cornu_op_log_softmax(CornuTensor *x);  /* x - log sum exp(x), likewise */
/* labels (…) of an integer dtype give (…, depth) of `dtype`. A label outside [0, depth) is
 * CORNU_ERR_VALUE when the graph runs. */
CornuTensor *cornu_op_one_hot(CornuTensor *labels, int64_t depth, CornuDtype dtype);
/* logits (…, C) and integer labels (…) give - log softmax(logits)[label], shape (…), in nats */
CornuTensor *cornu_op_sparse_cross_entropy(CornuTensor *logits, CornuTensor *labels);

/* ---- Attention ---- */

/* Steps that a step attends to; the same for all steps if it is zero. */
typedef struct {
    /* bool, broadcast to (B, N, T, S): step t attends to step s where it is true. NULL: to all. */
    CornuTensor *mask;
    bool         causal;   /* s <= t          */
    int64_t      window;   /* |t - s| < window; 0: no limit */
} CornuAttention;

/* q (B, T, N, H), k (B, S, G, H), v (B, S, G, V) of one float dtype give y (B, T, N, V):
 *     p = softmax(q k') over S, 0 where s is masked;   y = p v
 * for each of N heads; each head of k and v serves N / G of them. A step for which all S are masked
 * attends to them equally. lse, unless NULL, receives log sum exp of q k', (B, N, T), f32 at least.
 * p is not in memory, on processors, nor kept for the gradient. `attention` may be NULL.
 * Source: Vaswani et al., arXiv 1706.03762; Dao et al., "FlashAttention", arXiv 2205.14135. */
CornuTensor *cornu_op_attention(CornuTensor *q, CornuTensor *k, CornuTensor *v,
                                const CornuAttention *attention, CornuTensor **lse);

/* ---- Random numbers: random.h says how they are drawn ---- */

/* seed, iteration, position: i64 scalars; position is the number of row 0 in the global
 * batch. Uniform f32 in [0, 1). */
CornuTensor *cornu_op_random_uniform(CornuShape shape, CornuTensor *seed, CornuTensor *iteration,
                                     CornuTensor *position, int64_t generator);
/* Each element is 0 with probability `rate`, else x / (1 - rate); rate in [0, 1). The gradient
 * redraws the same numbers instead of storing them. */
CornuTensor *cornu_op_dropout(CornuTensor *x, double rate, CornuTensor *seed,
                              CornuTensor *iteration, CornuTensor *position, int64_t generator);

#ifdef __cplusplus
}
#endif
#endif
