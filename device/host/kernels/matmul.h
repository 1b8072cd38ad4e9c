/* The operands of a matmul, as its kernels see them. */
#ifndef CORNU_DEVICE_HOST_MATMUL_H
#define CORNU_DEVICE_HOST_MATMUL_H

#include "kernel.h"

/* `batch` products of an (M, K) and a (K, N) matrix. Steps are in elements: from one matrix to the
 * next, 0 where all products have the same, from row to row and from column to column. A batch of
 * a, not transposed, against one matrix b is one product with more rows. */
typedef struct {
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_column, b_batch, b_row, b_column;
} CornuMatmulExtents;

/* Fewer rows of a are not worth packing b for; with AVX2, from so many rows on, a transposed b. */
enum { CORNU_FEW_ROWS = 16, CORNU_FEW_ROWS_AVX2 = 4, CORNU_AVX2_LANES = 8 };

CornuMatmulExtents cornu__matmul_extents(const CornuOpCall *op, const CornuType *out_type);

#endif
