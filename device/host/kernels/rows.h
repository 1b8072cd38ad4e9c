/* Integer operands that are indices of rows. */
#ifndef CORNU_DEVICE_HOST_ROWS_H
#define CORNU_DEVICE_HOST_ROWS_H

#include "../machine/prefetch.h"
#include "kernel.h"

static inline int64_t cornu__index_at(CornuArray indices, int64_t i)
{
    switch (indices.type.dtype) {
    case CORNU_I64: return ((const int64_t *)indices.data)[i];
    case CORNU_I32: return ((const int32_t *)indices.data)[i];
    case CORNU_U8:  return ((const uint8_t *)indices.data)[i];
    default:        return (int64_t)cornu_array_get(indices, i);
    }
}

/* Operand i of the call. */
static inline CornuArray cornu__indices_of(const CornuKernelCall *call, int i)
{
    return (CornuArray){ call->op.in[i], (void *)(uintptr_t)call->in[i] };
}

/* CORNU_ERR_VALUE unless all are in [0, rows), or of no row as `padded`, a CornuPaddedIndex, says.
 * Of several faults the first index is reported, whatever the threads, as a `what`. */
CornuStatus cornu__indices_check(const char *what, CornuArray indices, int64_t rows,
                                 int64_t padded);

/* Whether rows of a table replaced in this order are each written once, so that threads may share
 * them: indices ascend but for those of no row. */
bool cornu__indices_ascend(CornuArray indices, int64_t rows);

/* Rows of a large table are far apart: each one is requested this many rows before it is used, as
 * much of it as two lines more than the processor fetches by itself. Into the second-level cache,
 * which has more requests on their way than the first: 6.5 ns, not 14, for a row of 128 bytes that
 * is in the last level (Zen 4, one core). Beyond 10^6 rows the translation of addresses adds to
 * this: 15 ns a row and table in a virtual machine. */
enum { CORNU_ROWS_AHEAD = 32, CORNU_ROW_BYTES = 4 * CORNU_LINE_BYTES };

static inline void cornu__prefetch_row(const char *table, int64_t index, size_t bytes)
{
    const char *row = table + (size_t)index * bytes;
    for (size_t at = 0; at < bytes && at < CORNU_ROW_BYTES; at += CORNU_LINE_BYTES)
        cornu__prefetch_near(row, at);
}

/* The same for a row that will be written. */
static inline void cornu__prefetch_row_to_write(const char *table, int64_t index, size_t bytes)
{
    cornu__prefetch_to_write(table + (size_t)index * bytes,
                             bytes < CORNU_ROW_BYTES ? bytes : CORNU_ROW_BYTES);
}

#endif
