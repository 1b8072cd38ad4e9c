/*
 * Numbers as integers: real = scale (q - zero). Products of uint8 by weights of 8 bits are sums of
 * integers where the processor has loops for them (integers.c). Others are products of q - zero in
 * f32: exact while sums stay below 2^24, else rounded as any f32 sum.
 */
#ifndef CORNU_NN_ONNX_QUANTIZED_INTERNAL_H
#define CORNU_NN_ONNX_QUANTIZED_INTERNAL_H

#include "../../../../device/edgetpu/kernels.h"
#include "../run_internal.h"

/* The f32 tensor q - zero, where zero is operand `zero`, or 0 if it is absent: one number, or one
 * for each index of an axis of q. */
CornuTensor *cornu__centred(CornuReadStep *step, CornuTensor *q, int zero, int axis);

/* scale (q - zero), with operands by their numbers. */
CornuTensor *cornu__dequantized(CornuReadStep *step, int q, int scale, int zero, int axis);

/* MatMul, Gemm or Conv of operands a and b less their zeros, {q, zero} each: one number, or one for
 * each row of a matrix a, column of b, and filter. Of f32 or, where sums are exact, i32. */
CornuTensor *cornu__centred_product(CornuReadStep *step, const char *op, const int a[2],
                                    const int b[2]);

/* ---- integers.c ---- */

/* Weights of 8 bits as products read them. */
typedef struct {
    CornuInt8Window window;               /* without extents of an image */
    CornuTensor    *panels, *zeros, *totals;
} CornuIntegerFilter;

/* Of bytes (h, w, C, F) or, for a product of matrices, (C, F), as cornu__layer_read_bytes has them,
 * whose zeros are one number or (F). */
CornuStatus cornu__integer_filter(CornuTensor *bytes, CornuTensor *zeros,
                                  const CornuInt8Window *window, CornuIntegerFilter *filter);
CornuInt8Window cornu__integer_matrix(int64_t k, int64_t n);

/* The sums, i32, of images x (B, H, W, C) u8 with zero, one number, and rows above, below, columns
 * left, right of it; and of x (…, K), a product of matrices. */
CornuTensor *cornu__integer_product(CornuTensor *x, CornuTensor *zero,
                                    const CornuIntegerFilter *filter, const int64_t pads[4]);
CornuTensor *cornu__integer_matmul(CornuTensor *x, CornuTensor *zero,
                                   const CornuIntegerFilter *filter);

/* MatMul, Gemm or Conv of x less its zero, which may be NULL, and of operand b[0] less its zero,
 * operand b[1], in i32. NULL, without an error, where another way has to be taken. */
CornuTensor *cornu__integer_product_of(CornuReadStep *step, const char *op, CornuTensor *x,
                                       CornuTensor *zero, const int b[2]);

/* Result 0: x / scale + zero, rounded to even and cut to the type of the operand `zero`, uint8 if
 * it is absent. */
CornuStatus cornu__quantized_result(CornuReadStep *step, CornuTensor *x, int scale, int zero);

/* x, which has been divided by its scale, likewise, with the zero as a tensor or NULL. */
CornuTensor *cornu__rounded_to(CornuTensor *x, CornuTensor *zero, int64_t type);

/* Result 0, of a type of ONNX that the dtype may not tell. */
CornuStatus cornu__narrow_result(CornuReadStep *step, CornuTensor *y, int64_t type);

/* Operand i as an f32 tensor that broadcasts to `rank` axes: a number, or a vector along `axis`. */
CornuTensor *cornu__quantity(CornuReadStep *step, int i, int rank, int axis);

/* x as 8 bits of its own range would have it: uint8 of the scale and zero that
 * DynamicQuantizeLinear takes, which are set if they are asked for. */
CornuTensor *cornu__dynamic(CornuTensor *x, CornuTensor **scale, CornuTensor **zero);

/* The reals that those 8 bits stand for. */
CornuTensor *cornu__in_8_bits(CornuTensor *x);

#endif
