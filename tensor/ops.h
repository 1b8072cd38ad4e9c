/*
 * The ops that a graph can record, the counterpart of keras.ops.
 *
 * Each returns a tensor in the graph of its operands; NULL with a pending error if shapes or
 * dtypes do not fit or an operand is NULL. Elementwise ops of two operands broadcast as NumPy
 * does: axes are aligned at the right, and an extent of 1 is broadcast. Dtypes are never converted
 * implicitly.
 */
#ifndef CORNU_TENSOR_OPS_H
#define CORNU_TENSOR_OPS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sources ---- */

/* Every element is `value`. */
CornuTensor *cornu_op_constant(CornuGraph *graph, CornuType type, double value);
/* A constant with the dtype and shape of x. */
CornuTensor *cornu_op_constant_like(CornuTensor *x, double value);
/* 0, 1, 2, … along `axis`. */
CornuTensor *cornu_op_iota(CornuGraph *graph, CornuType type, int axis);
/* The number of the replica that computes, an i64 scalar; 0 if there is only one. */
CornuTensor *cornu_op_replica_id(CornuGraph *graph);

/* ---- Elementwise: floats unless said otherwise ---- */

CornuTensor *cornu_op_negative(CornuTensor *x);      /* any numeric dtype */
CornuTensor *cornu_op_absolute(CornuTensor *x);      /* any numeric dtype */
CornuTensor *cornu_op_sign(CornuTensor *x);          /* -1, 0, 1 */
CornuTensor *cornu_op_floor(CornuTensor *x);
CornuTensor *cornu_op_exp(CornuTensor *x);
CornuTensor *cornu_op_log(CornuTensor *x);
CornuTensor *cornu_op_sqrt(CornuTensor *x);
CornuTensor *cornu_op_rsqrt(CornuTensor *x);         /* 1 / sqrt(x) */
CornuTensor *cornu_op_square(CornuTensor *x);
CornuTensor *cornu_op_sin(CornuTensor *x);
CornuTensor *cornu_op_cos(CornuTensor *x);
CornuTensor *cornu_op_tanh(CornuTensor *x);
CornuTensor *cornu_op_sigmoid(CornuTensor *x);       /* 1 / (1 + exp(-x)) */
CornuTensor *cornu_op_erf(CornuTensor *x);
CornuTensor *cornu_op_softplus(CornuTensor *x);      /* log(1 + exp(x)), never overflowing */
CornuTensor *cornu_op_relu(CornuTensor *x);          /* max(x, 0) */
CornuTensor *cornu_op_elu(CornuTensor *x, double alpha); /* x > 0 ? x : alpha (exp(x) - 1) */
CornuTensor *cornu_op_step(CornuTensor *x);          /* x > 0 ? 1 : 0 */
/* min(max(x, 0), bound), and its slope, 0 < x < bound ? 1 : 0. The bound is positive; it is rounded
 * to x's dtype. */
CornuTensor *cornu_op_bounded_relu(CornuTensor *x, double bound);
CornuTensor *cornu_op_bounded_step(CornuTensor *x, double bound);

CornuTensor *cornu_op_add(CornuTensor *a, CornuTensor *b);      /* any numeric dtype */
CornuTensor *cornu_op_subtract(CornuTensor *a, CornuTensor *b); /* any numeric dtype */
CornuTensor *cornu_op_multiply(CornuTensor *a, CornuTensor *b); /* any numeric dtype */
CornuTensor *cornu_op_divide(CornuTensor *a, CornuTensor *b);
CornuTensor *cornu_op_maximum(CornuTensor *a, CornuTensor *b);  /* any numeric dtype */
CornuTensor *cornu_op_minimum(CornuTensor *a, CornuTensor *b);  /* any numeric dtype */
CornuTensor *cornu_op_power(CornuTensor *a, CornuTensor *b);

CornuTensor *cornu_op_clip(CornuTensor *x, double low, double high);   /* min(max(x, low), high) */
CornuTensor *cornu_op_scale(CornuTensor *x, double factor);     /* x * factor */
CornuTensor *cornu_op_shift(CornuTensor *x, double term);       /* x + term   */

/* ---- Compare, select, convert ---- */

/* bool; operands of one dtype, any */
CornuTensor *cornu_op_compare(CornuTensor *a, CornuComparison comparison, CornuTensor *b);
CornuTensor *cornu_op_is_finite(CornuTensor *x);                /* bool */
/* condition (bool) ? a : b, broadcasting all three */
CornuTensor *cornu_op_select(CornuTensor *condition, CornuTensor *a, CornuTensor *b);
/* Floats round to nearest even, float to integer truncates toward zero and saturates, to bool
 * is "not zero". x itself if it has that dtype. */
CornuTensor *cornu_op_convert(CornuTensor *x, CornuDtype dtype);

/* ---- Shape ---- */

CornuTensor *cornu_op_broadcast(CornuTensor *x, CornuShape shape);
/* One extent may be CORNU_NONE and is inferred from the others. */
CornuTensor *cornu_op_reshape(CornuTensor *x, CornuShape shape);
/* Axis i of the result is axis axes[i] of x; `axes` has as many entries as x axes. */
CornuTensor *cornu_op_transpose(CornuTensor *x, const int *axes);
/* x[starts[i] : starts[i] + sizes[i]] along each axis */
CornuTensor *cornu_op_slice(CornuTensor *x, const int64_t *starts, const int64_t *sizes);
/* low[i] and high[i] elements of `value` before and after along each axis */
CornuTensor *cornu_op_pad(CornuTensor *x, const int64_t *low, const int64_t *high, double value);
CornuTensor *cornu_op_concat(CornuTensor *const *x, int count, int axis);
/* The elements along `axis` in the opposite order. */
CornuTensor *cornu_op_flip(CornuTensor *x, int axis);
/* One vector of `extent` elements: each x (all of one dtype) flattened, starting at the next
 * multiple of `segment`, with zeros in the gaps and at the end. */
CornuTensor *cornu_op_pack(CornuTensor *const *x, int count, int64_t segment, int64_t extent);

/* ---- Reductions ---- */

/* axes: bit i stands for axis i. CORNU_ALL_AXES reduces to a scalar. */
#define CORNU_ALL_AXES INT64_C(0xff)
CornuTensor *cornu_op_reduce_sum(CornuTensor *x, int64_t axes, bool keep);
CornuTensor *cornu_op_reduce_mean(CornuTensor *x, int64_t axes, bool keep); /* floats */
CornuTensor *cornu_op_reduce_max(CornuTensor *x, int64_t axes, bool keep);
CornuTensor *cornu_op_mean(CornuTensor *x);     /* over all axes, a scalar */
CornuTensor *cornu_op_sum(CornuTensor *x);      /* over all axes, a scalar */
/* i32: the index of the largest element along `axis`; of several equal ones the first. */
CornuTensor *cornu_op_argmax(CornuTensor *x, int axis);

/* ---- Products ---- */

/* a (…, M, K) by b (…, K, N) gives (…, M, N) in a's dtype, summed in f32 (f64 for f64). The
 * leading axes are equal, or absent in one of the two. */
CornuTensor *cornu_op_matmul(CornuTensor *a, CornuTensor *b);
/* As above, with the result in `dtype`: f32 keeps the sums of bf16 operands unrounded. */
CornuTensor *cornu_op_matmul_to(CornuTensor *a, CornuTensor *b, CornuDtype dtype);
/* As matmul, with a stored as (…, K, M) and b as (…, N, K) where transposed. */
CornuTensor *cornu_op_matmul_transposed(CornuTensor *a, bool transpose_a, CornuTensor *b,
                                        bool transpose_b);

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

CornuTensor *cornu_op_softmax(CornuTensor *x);
CornuTensor *cornu_op_log_softmax(CornuTensor *x);
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

/* ---- Lookup ---- */

/* x as indices or class numbers: integers as they are, floats truncated to i64. NaN becomes one
 * that is out of any range, which the functions that follow, cornu_op_one_hot and the losses report
 * as nan when the graph runs. */
CornuTensor *cornu_op_indices(CornuTensor *x);

/* table (V, C) and integer indices (…) give (…, C), rows of the table. An index outside [0, V) is
 * CORNU_ERR_VALUE when the graph runs. */
CornuTensor *cornu_op_gather(CornuTensor *table, CornuTensor *indices);
/* The same, with zeros for index -1, padding. */
CornuTensor *cornu_op_gather_padded(CornuTensor *table, CornuTensor *indices);
/* x (…, C), a float, and integer indices (…) give f32 (rows, C): row i is the sum of the x whose
 * index is i, in their order. An index outside [0, rows) is CORNU_ERR_VALUE when the graph runs. */
CornuTensor *cornu_op_segment_sum(CornuTensor *x, CornuTensor *indices, int64_t rows);

/* The distinct ones of N integer indices in [0, rows], ascending, in i32 (N), filled up with
 * `rows`; *positions, i32 (N): where each index is among them. Another index is CORNU_ERR_VALUE
 * when the graph runs. */
CornuTensor *cornu_op_unique_rows(CornuTensor *indices, int64_t rows, CornuTensor **positions);
/* The rows (N, C) of a table (V, C) that cornu_op_unique_rows has found, zeros for those of V. */
CornuTensor *cornu_op_gather_rows(CornuTensor *table, CornuTensor *rows);
/* The rows of a gradient that cornu_gradients has returned for a table (V, C) which was only looked
 * up: *rows, f32 (N, C), one for each lookup, and *indices, i32 (N), the rows of the table to which
 * they are to be added, V for padding. The gradient itself is then never computed unless something
 * else reads it.
 * CORNU_ERR_UNSUPPORTED for any other gradient. */
CornuStatus cornu_op_gradient_rows(CornuTensor *gradient, CornuTensor **rows,
                                   CornuTensor **indices);
/* The table (V, C) with row indices[i] replaced by values[i]: integer indices (N), values (N, C) of
 * the table's dtype. Indices differ from each other, apart from those that are V, which are
 * skipped; another index is CORNU_ERR_VALUE when the graph runs. Assigned to the variable that is
 * the table, it touches no other rows. */
CornuTensor *cornu_op_scatter_rows(CornuTensor *table, CornuTensor *indices, CornuTensor *values);

/* ---- Over time ---- */

/* A loop over steps: `carries` pass from step to step; of each of the `slices` step t gets slice t
 * along `axis`; `constants` are the same for all steps. */
typedef struct {
    CornuTensor *const *carries, *const *slices, *const *constants;
    int   carry_count, slice_count, constant_count;
    int   axis;
    int   stacked_count;   /* results of each step that are stacked along `axis` */
    int64_t steps;         /* if there are no slices, whose extent it would be */
    bool  reverse;         /* from the last step to the first */
} CornuScan;

/* Records one step in a graph of its own, in which `in` are the carries, one slice of each of the
 * slices (without the axis), and the constants. Fills `out` with the next carries, of the same
 * types, then with the results to be stacked. A step can use no other tensors, no variables and no
 * all_reduce. */
typedef void CornuScanStep(void *context, CornuTensor *const *in, CornuTensor **out);

/* Fills `out` with the last carries, then the stacked results, whose slice t along `axis` is from
 * step t. Calls `step` once. The gradient is a scan in reverse, for which the carries of every step
 * are kept: memory is linear in the number of steps. That of a constant which multiplies rows, as a
 * cell's kernel does, is one product over all steps, whose operands are kept, too. At most 24
 * operands and 12 results, carries counted twice. false with a pending error. */
bool cornu_op_scan(const CornuScan *scan, CornuScanStep *step, void *context, CornuTensor **out);

/* Options of the recurrent ops below. */
typedef CornuTensor *CornuActivate(const void *context, CornuTensor *x);
typedef struct {
    /* (B, T) bool: a step where it is false keeps the state and returns the previous h. NULL: all
     * true. */
    CornuTensor *mask;
    /* (B, G U) for G gates, constant over time: the factors of h for each gate, applied before the
     * product with the kernel. NULL: 1. Gal and Ghahramani, "A Theoretically Grounded Application
     * of Dropout in Recurrent Neural Networks", arXiv 1512.05287. */
    CornuTensor *recurrent_dropout;
    CornuActivate *activation, *recurrent_activation;   /* NULL: tanh, sigmoid */
    const void    *activation_context, *recurrent_context;
    /* If recurrent_activation is NULL: a slope other than 0 selects the hard sigmoid
     * min(max(gate_slope x + 0.5, 0), 1), which is as fast as the sigmoid. */
    double         gate_slope;
    bool           reverse;   /* from the last step to the first; h of step t is still at t */
} CornuRecurrence;

/* z (B, T, 4U): the products of the input with its kernel plus the bias, gates i f c o; kernel
 * (U, 4U); h0, c0 (B, U); gives h (B, T, U) and, unless last_c is NULL, the last c (B, U):
 *     i, f, o = sigmoid(z + h U)   g = tanh(z + h U)   c' = f c + i g   h' = o tanh(c')
 * c0 may be f32 if the rest is narrower; c is then kept in f32. `recurrence` may be NULL.
 * Source: keras/src/layers/rnn/lstm.py; Hochreiter and Schmidhuber, Neural Computation 9(8), 1997;
 * Gers, Schmidhuber and Cummins, "Learning to Forget", 2000. */
CornuTensor *cornu_op_lstm(CornuTensor *z, CornuTensor *kernel, CornuTensor *h0, CornuTensor *c0,
                           const CornuRecurrence *recurrence, CornuTensor **last_c);

/* x (B, T, 3U): products of the input with its kernel plus the bias, gates z r h; kernel (U, 3U);
 * bias (3U), added to the product of h with the kernel, or NULL; h0 (B, U); gives h (B, T, U):
 *     z, r = sigmoid(x + h U + bias)   h' = z h + (1 - z) g
 *     g = tanh(x + r (h U + bias)) with reset_after, else tanh(x + (r h) U + bias)
 * Source: keras/src/layers/rnn/gru.py; Cho et al., "Learning Phrase Representations using RNN
 * Encoder-Decoder", arXiv 1406.1078, versions 3 and 1. */
CornuTensor *cornu_op_gru(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias, CornuTensor *h0,
                          bool reset_after, const CornuRecurrence *recurrence);

/* z (B, T, U), kernel (U, U), h0 (B, U); gives h (B, T, U): h' = tanh(z + h U).
 * Source: keras/src/layers/rnn/simple_rnn.py. */
CornuTensor *cornu_op_simple_rnn(CornuTensor *z, CornuTensor *kernel, CornuTensor *h0,
                                 const CornuRecurrence *recurrence);

/* ---- Gradients of one's own ---- */

/* What the gradient with respect to a tensor, d_y, becomes; of its type. NULL on failure. */
typedef CornuTensor *CornuGradientStep(void *context, CornuTensor *d_y);

/*
 * keras.ops.custom_gradient: y itself, but in cornu_gradients d_y, once `step` (NULL: none) has
 * been applied, is taken for the gradient with respect to `instead`, a tensor of y's type recorded
 * before y, whose gradient then flows on. `instead` may be y: only the step is then added. If
 * nothing else reads `instead`, it is not computed. y is the result of an op, not an input.
 * `context` must last as long as gradients are taken. Steps may assign variables.
 *
 *     rounded = cornu_op_with_gradient(round_of(x), x, NULL, NULL)     a straight-through estimate
 */
CornuTensor *cornu_op_with_gradient(CornuTensor *y, CornuTensor *instead, CornuGradientStep *step,
                                    void *context);

/* ---- Between shards ---- */

/* On a shard the loss of cornu_gradients is that shard's part of the total loss; these ops sum the
 * gradients. */

/* Shards that work together: groups of `size`, which divides the number of shards; 0: one group of
 * all. `members` lists the shards group by group, each once: { 4, { 0, 2, 4, 6, 1, 3, 5, 7 } } are
 * the even and the odd shards; all zeros: 0, 1, 2, … Within a group the order is that of the
 * shards' numbers. NULL stands for one group of all shards. */
typedef struct {
    int size, members[CORNU_MAX_SHARDS];
} CornuGroups;

/* CORNU_ERR_ARGUMENT if the groups are not valid on a device of so many shards. */
CornuStatus cornu_groups_check(const CornuGroups *groups, int shards);

/* The sum of x (f32, f64, i64 or i32) over the group's shards, in a fixed order; x itself if there
 * is one shard. Over all shards the result is common to them; over groups it varies. */
CornuTensor *cornu_op_all_reduce(CornuTensor *x);
CornuTensor *cornu_op_all_reduce_in(CornuTensor *x, const CornuGroups *groups);
/* This shard's slice of that sum: axis 0 is divided equally among the members of a group. */
CornuTensor *cornu_op_reduce_scatter(CornuTensor *x, const CornuGroups *groups);
/* The inverse of slicing: the members' x concatenated along axis 0, in any dtype. */
CornuTensor *cornu_op_all_gather(CornuTensor *x, const CornuGroups *groups);
/* This shard's slice of x. */
CornuTensor *cornu_op_shard_slice(CornuTensor *x, const CornuGroups *groups);

/* ---- Random numbers: random.h says how they are drawn ---- */

/* seed, iteration, position: i64 scalars; position is the number of row 0 in the global
 * batch. Uniform f32 in [0, 1). */
CornuTensor *cornu_op_random_uniform(CornuShape shape, CornuTensor *seed, CornuTensor *iteration,
                                     CornuTensor *position, int64_t generator);
/* Each element is 0 with probability `rate`, else x / (1 - rate); rate in [0, 1). The gradient
 * redraws the same numbers instead of storing them. */
CornuTensor *cornu_op_dropout(CornuTensor *x, double rate, CornuTensor *seed,
                              CornuTensor *iteration, CornuTensor *position, int64_t generator);

/* ---- Optimizer updates: w, slots and gradient of one shape, f32; `rate` an f32 scalar ---- */

/* m' = momentum m - rate g;  w' = w + m', with nesterov w + momentum m' - rate g.
 * Source: keras/src/optimizers/sgd.py. */
CornuTensor *cornu_op_momentum_update(CornuTensor *w, CornuTensor *m, CornuTensor *g,
                                      CornuTensor *rate, double momentum, bool nesterov,
                                      CornuTensor **new_m);
/* v' = rho v + (1 - rho) g^2;  w' = w - rate g / sqrt(v' + epsilon).
 * Source: keras/src/optimizers/rmsprop.py. */
CornuTensor *cornu_op_rmsprop_update(CornuTensor *w, CornuTensor *v, CornuTensor *g,
                                     CornuTensor *rate, double rho, double epsilon,
                                     CornuTensor **new_v);
/* m' = m + (g - m)(1 - beta_1);  v' = v + (g^2 - v)(1 - beta_2);
 * w' = w - rate m' / (sqrt(v') + epsilon), rate corrected for bias by the caller.
 * Source: keras/src/optimizers/adam.py. */
CornuTensor *cornu_op_adam_update(CornuTensor *w, CornuTensor *m, CornuTensor *v, CornuTensor *g,
                                  CornuTensor *rate, double beta_1, double beta_2,
                                  double epsilon, CornuTensor **new_m, CornuTensor **new_v);

#ifdef __cplusplus
}
#endif
#endif
