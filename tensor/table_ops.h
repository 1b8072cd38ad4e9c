/*
 * Ops on rows of tables, such as those of embeddings: looked up, summed, and updated without
 * touching the others. ops.h, which includes this header, says what all ops have in common.
 */
#ifndef CORNU_TENSOR_TABLE_OPS_H
#define CORNU_TENSOR_TABLE_OPS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
