/*
 * The ops that a graph can record, the counterpart of keras.ops.
 *
 * Each returns a tensor in the graph of its operands; NULL with a pending error if shapes or
 * dtypes do not fit or an operand is NULL. Elementwise ops of two operands broadcast as NumPy
 * does: axes are aligned at the right, and an extent of 1 is broadcast. Dtypes are never converted
 * implicitly: the operands of an op have one dtype, which is that of the result, unless its comment
 * says otherwise. A dtype that an op does not take is CORNU_ERR_DTYPE, a shape CORNU_ERR_SHAPE, an
 * axis that x does not have CORNU_ERR_ARGUMENT.
 *
 * Here are the ops on single elements, shapes, sums and products, which NumPy has too; the headers
 * included below have the others.
 */
#ifndef CORNU_TENSOR_OPS_H
#define CORNU_TENSOR_OPS_H

#include "graph.h"
#include "nn_ops.h"
#include "recurrent_ops.h"
#include "table_ops.h"
#include "training_ops.h"

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

CornuTensor *cornu_op_negative(CornuTensor *x);      /* -x, of any numeric dtype */
CornuTensor *cornu_op_absolute(CornuTensor *x);      /* |x|, of any numeric dtype */
CornuTensor *cornu_op_sign(CornuTensor *x);          /* -1, 0, 1; NaN stays NaN */
CornuTensor *cornu_op_floor(CornuTensor *x);         /* the largest integer not above x */
CornuTensor *cornu_op_exp(CornuTensor *x);           /* e^x */
CornuTensor *cornu_op_log(CornuTensor *x);           /* natural; -inf at 0, NaN below */
CornuTensor *cornu_op_sqrt(CornuTensor *x);          /* NaN below 0 */
CornuTensor *cornu_op_rsqrt(CornuTensor *x);         /* 1 / sqrt(x); inf at 0, NaN below */
CornuTensor *cornu_op_square(CornuTensor *x);        /* x x, of any numeric dtype */
CornuTensor *cornu_op_sin(CornuTensor *x);           /* x in radians */
CornuTensor *cornu_op_cos(CornuTensor *x);           /* x in radians */
CornuTensor *cornu_op_tanh(CornuTensor *x);          /* the hyperbolic tangent */
CornuTensor *cornu_op_sigmoid(CornuTensor *x);       /* 1 / (1 + exp(-x)) */
CornuTensor *cornu_op_erf(CornuTensor *x);           /* the error function */
CornuTensor *cornu_op_softplus(CornuTensor *x);      /* log(1 + exp(x)), never overflowing */
CornuTensor *cornu_op_relu(CornuTensor *x);          /* max(x, 0); NaN stays NaN */
CornuTensor *cornu_op_elu(CornuTensor *x, double alpha); /* x > 0 ? x : alpha (exp(x) - 1) */
CornuTensor *cornu_op_step(CornuTensor *x);          /* x > 0 ? 1 : 0, also at NaN */
/* min(max(x, 0), bound). The bound is positive, else CORNU_ERR_ARGUMENT; it is rounded to x's
 * dtype. */
CornuTensor *cornu_op_bounded_relu(CornuTensor *x, double bound);
/* The slope of bounded_relu, 0 < x < bound ? 1 : 0. */
CornuTensor *cornu_op_bounded_step(CornuTensor *x, double bound);

CornuTensor *cornu_op_add(CornuTensor *a, CornuTensor *b);      /* a + b, any numeric dtype */
CornuTensor *cornu_op_subtract(CornuTensor *a, CornuTensor *b); /* a - b, any numeric dtype */
CornuTensor *cornu_op_multiply(CornuTensor *a, CornuTensor *b); /* a b, any numeric dtype */
CornuTensor *cornu_op_divide(CornuTensor *a, CornuTensor *b);   /* a / b, as IEEE 754 divides */
CornuTensor *cornu_op_maximum(CornuTensor *a, CornuTensor *b);  /* numeric; NaN if either is NaN */
CornuTensor *cornu_op_minimum(CornuTensor *a, CornuTensor *b);  /* numeric; NaN if either is NaN */
CornuTensor *cornu_op_power(CornuTensor *a, CornuTensor *b);    /* a^b, as C's pow */

/* min(max(x, low), high) and, below, sums and products with a number: any numeric dtype, to which
 * the numbers are converted. */
CornuTensor *cornu_op_clip(CornuTensor *x, double low, double high);
CornuTensor *cornu_op_scale(CornuTensor *x, double factor);     /* x * factor */
CornuTensor *cornu_op_shift(CornuTensor *x, double term);       /* x + term   */

/* ---- Compare, select, convert ---- */

/* bool; operands of one dtype, any. With a NaN only CORNU_NOT_EQUAL holds. */
CornuTensor *cornu_op_compare(CornuTensor *a, CornuComparison comparison, CornuTensor *b);
CornuTensor *cornu_op_is_finite(CornuTensor *x);   /* bool: false at NaN and the infinities */
/* condition (bool) ? a : b, broadcasting all three; a and b of one dtype, any. */
CornuTensor *cornu_op_select(CornuTensor *condition, CornuTensor *a, CornuTensor *b);
/* Floats round to nearest even, float to integer truncates toward zero and saturates, to bool
 * is "not zero". x itself if it has that dtype. */
CornuTensor *cornu_op_convert(CornuTensor *x, CornuDtype dtype);

/* ---- Shape: any dtype ---- */

/* x with this shape: axes are aligned at the right, those missing or of extent 1 are repeated. x
 * itself if it has the shape. */
CornuTensor *cornu_op_broadcast(CornuTensor *x, CornuShape shape);
/* The same elements in row-major order with another shape. One extent may be CORNU_NONE and is
 * inferred from the others. */
CornuTensor *cornu_op_reshape(CornuTensor *x, CornuShape shape);
/* Axis i of the result is axis axes[i] of x; `axes` has as many entries as x axes. */
CornuTensor *cornu_op_transpose(CornuTensor *x, const int *axes);
/* x[starts[i] : starts[i] + sizes[i]] along each axis */
CornuTensor *cornu_op_slice(CornuTensor *x, const int64_t *starts, const int64_t *sizes);
/* low[i] and high[i] elements of `value` before and after along each axis */
CornuTensor *cornu_op_pad(CornuTensor *x, const int64_t *low, const int64_t *high, double value);
/* `count` tensors, at least 1, one after the other along `axis`; the other extents are equal. */
CornuTensor *cornu_op_concat(CornuTensor *const *x, int count, int axis);
/* The elements along `axis` in the opposite order. */
CornuTensor *cornu_op_flip(CornuTensor *x, int axis);
/* One vector of `extent` elements: each x (all of one dtype) flattened, starting at the next
 * multiple of `segment`, with zeros in the gaps and at the end. */
CornuTensor *cornu_op_pack(CornuTensor *const *x, int count, int64_t segment, int64_t extent);

/* ---- Reductions: numeric dtypes ---- */

/* Of a set of axes bit i stands for axis i; this is the set of all, which reduces to a scalar. With
 * `keep`, reduced axes stay with extent 1. */
#define CORNU_ALL_AXES INT64_C(0xff)

/* The sum over these axes, 0 if they are empty; bf16 and f16 are summed in f32. */
CornuTensor *cornu_op_reduce_sum(CornuTensor *x, int64_t axes, bool keep);
/* The mean over these axes, of floats. */
CornuTensor *cornu_op_reduce_mean(CornuTensor *x, int64_t axes, bool keep);
/* The largest element along these axes, NaN if one is NaN; an empty axis is CORNU_ERR_SHAPE. */
CornuTensor *cornu_op_reduce_max(CornuTensor *x, int64_t axes, bool keep);
CornuTensor *cornu_op_mean(CornuTensor *x);     /* over all axes, a scalar */
CornuTensor *cornu_op_sum(CornuTensor *x);      /* over all axes, a scalar */
/* i32: the index of the largest element along `axis`, which is removed; of several equal ones the
 * first. A NaN counts as larger than any number. */
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
/* y[t] = sum over k of matrix[t, k] x[k] along one axis: interpolation. x (…, K, …) and the matrix
 * (T, K) of one float dtype give (…, T, …) of it, summed in f32 (f64 for f64). Zeros before the
 * first other number of a row of the matrix, and after the last one, cost nothing; what of x they
 * meet may be ignored, also where it is not finite. CORNU_ERR_SHAPE where the extents of K differ
 * or x has no such axis, CORNU_ERR_DTYPE where the dtypes differ. */
CornuTensor *cornu_op_resample(CornuTensor *x, CornuTensor *matrix, int axis);

#ifdef __cplusplus
}
#endif
#endif
