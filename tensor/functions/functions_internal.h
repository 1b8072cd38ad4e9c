/*
 * Functions: what is more than an op and less than a layer, written once with ops. Layers, the
 * operations of keras.ops and what reads foreign files call them.
 *
 * x is of any float dtype and any shape, the result has its type; operands of two have one dtype
 * and shapes that broadcast. As ops they return NULL for NULL. They are differentiable: where two
 * branches meet, the branch not taken computes on a number that keeps its slope finite.
 *
 * Of infinities, and at the bounds of what is defined, the values are those of C's <math.h>; NaN
 * gives NaN.
 */
#ifndef CORNU_TENSOR_FUNCTIONS_INTERNAL_H
#define CORNU_TENSOR_FUNCTIONS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "../ops.h"

/* ---- axes.c: of any dtype ---- */

CornuTensor *cornu__slice_axis(CornuTensor *x, int axis, int64_t begin, int64_t end);
/* With an axis of extent 1 before axis `at`; without axis `at`, of extent 1. */
CornuTensor *cornu__add_axis(CornuTensor *x, int at);
CornuTensor *cornu__drop_axis(CornuTensor *x, int at);
/* With so many elements of this value before and after those of an axis. Not of bool. */
CornuTensor *cornu__pad_axis(CornuTensor *x, int axis, int64_t before, int64_t after, double value);
/* Every `by`-th element from `begin` on, `count` of them. */
CornuTensor *cornu__strided(CornuTensor *x, int axis, int64_t begin, int64_t count, int64_t by);
/* The product along an axis, by halves; it stays with extent 1. */
CornuTensor *cornu__product(CornuTensor *x, int axis);

/* ---- logarithms.c ---- */

CornuTensor *cornu__log1p(CornuTensor *x);                           /* log(1 + x) */
CornuTensor *cornu__expm1(CornuTensor *x);                           /* exp(x) - 1 */
CornuTensor *cornu__log_add_exp(CornuTensor *a, CornuTensor *b);     /* log(exp(a) + exp(b)) */
CornuTensor *cornu__hypot(CornuTensor *a, CornuTensor *b);           /* sqrt(a^2 + b^2) */

/* ---- hyperbolic.c ---- */

CornuTensor *cornu__sinh(CornuTensor *x);
CornuTensor *cornu__cosh(CornuTensor *x);
CornuTensor *cornu__asinh(CornuTensor *x);
CornuTensor *cornu__acosh(CornuTensor *x);
CornuTensor *cornu__atanh(CornuTensor *x);

/* ---- trigonometric.c ---- */

CornuTensor *cornu__tan(CornuTensor *x);
CornuTensor *cornu__asin(CornuTensor *x);
CornuTensor *cornu__acos(CornuTensor *x);
CornuTensor *cornu__atan(CornuTensor *x);

/* ---- bends.c ---- */

CornuTensor *cornu__leaky_relu(CornuTensor *x, double slope);        /* x >= 0 ? x : slope x */
/* Likewise with slopes that broadcast to x. */
CornuTensor *cornu__prelu(CornuTensor *x, CornuTensor *slopes);

/* ---- gauss.c ---- */

CornuTensor *cornu__erfc(CornuTensor *x);                            /* 1 - erf(x) */
CornuTensor *cornu__erfinv(CornuTensor *x);              /* y of erf(y) = x; infinite at -1 and 1 */
CornuTensor *cornu__gelu(CornuTensor *x);                /* x (1 + erf(x / sqrt(2))) / 2 */
CornuTensor *cornu__gelu_approximate(CornuTensor *x);                /* by tanh */

/* ---- normalization.c: x is f32; axes are bits; a scale and an offset, NULL for none, have the
 * extents of x along the axes, or of its channels ---- */

/* (x - mean) / sqrt(variance + epsilon) scale + offset; by groups of channels, of each row. */
CornuTensor *cornu__layer_norm(CornuTensor *x, CornuTensor *scale, CornuTensor *offset,
                               int64_t axes, double epsilon);
CornuTensor *cornu__group_norm(CornuTensor *x, CornuTensor *scale, CornuTensor *offset, int axis,
                               int64_t groups, double epsilon);
/* x / sqrt(mean of x^2 + epsilon) scale; and the factor alone, of extent 1 along the axes. */
CornuTensor *cornu__rms_norm(CornuTensor *x, CornuTensor *scale, int64_t axes, double epsilon);
CornuTensor *cornu__inverse_root(CornuTensor *x, int64_t axes, double epsilon);
/* x / its length, at least 1e-12. */
CornuTensor *cornu__unit_norm(CornuTensor *x, int64_t axes);

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta, of statistics (C) and x (B, …, C) of any
 * float; y is f32. */
CornuTensor *cornu__batch_norm(CornuTensor *x, CornuTensor *mean, CornuTensor *variance,
                               CornuTensor *gamma, CornuTensor *beta, double epsilon);

/* ---- products.c ---- */

/* x (B, …, K) by the kernel (K, U), plus the bias (U) or NULL: (B, …, U) of this dtype, summed in
 * f32. */
CornuTensor *cornu__dense(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias, CornuDtype dtype);

/* ---- rounding.c ---- */

CornuTensor *cornu__ceil(CornuTensor *x);
CornuTensor *cornu__trunc(CornuTensor *x);
CornuTensor *cornu__round(CornuTensor *x);                           /* halves to even */
/* The remainder of a / b with the sign of b, or as C's fmod that of a. */
CornuTensor *cornu__floor_mod(CornuTensor *a, CornuTensor *b);
CornuTensor *cornu__fmod(CornuTensor *a, CornuTensor *b);

/* ---- order.c: of any dtype that has an order, but for bool ---- */

/* As cornu_op_reduce_max and cornu_op_argmax. */
CornuTensor *cornu__reduce_min(CornuTensor *x, int64_t axes, bool keep);
CornuTensor *cornu__argmin(CornuTensor *x, int axis);
/* Whether a comes before b when sorted, and whether they are equal then: NaN is the last, and equal
 * to itself. bool. */
CornuTensor *cornu__sorts_below(CornuTensor *a, CornuTensor *b);
CornuTensor *cornu__sorts_equal(CornuTensor *a, CornuTensor *b);

#endif
