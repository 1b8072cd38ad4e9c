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

/* Fewer rows of a are not worth packing b for. */
enum { CORNU_FEW_ROWS = 16 };

CornuMatmulExtents cornu__matmul_extents(const CornuOpCall *op, const CornuType *out_type);

#endif
