/*
 * The distinct rows that were looked up, and their replacement in the table's own memory.
 *
 * Reference: device/ops/rows.c; tests/device/ops/test_ops.c compares them.
 * Source: own; indices are sorted by radix, least significant digit first, as in Knuth, "The Art of
 *     Computer Programming", volume 3, section 5.2.5.
 * Gain: against a dense gradient a step's time does not depend on the table's rows: with 4,096
 *     lookups a table of 10 million rows by 32 needs no passes over 1.28 GB.
 */
#include <string.h>

#include "../../integer_internal.h"
#include "kernels.h"
#include "rows.h"

enum {
    GRAIN = 65536,            /* bytes that one block writes, about                       */
    DIGIT = 12,               /* bits of an index a pass: counts in L1, 10^7 rows in two  */
    DIGITS = 1 << DIGIT
};

CornuStatus cornu__indices_check(const char *what, CornuArray indices, int64_t rows, int64_t padded)
{
    const int64_t count = cornu_type_count(indices.type);
    const int64_t least = padded == CORNU_PADDED_BELOW ? -1 : 0;
    const int64_t limit = padded == CORNU_PADDED_ABOVE ? rows + 1 : rows;
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = cornu__index_at(indices, i);
        if (index < least || index >= limit)
            return cornu__fail_element((CornuFault){ .index = i, .count = count }, what, index,
                                       rows - 1);
    }
    return CORNU_OK;
}

bool cornu__indices_ascend(CornuArray indices, int64_t rows)
{
    const int64_t count = cornu_type_count(indices.type);
    for (int64_t i = 1; i < count; i++) {
        const int64_t index = cornu__index_at(indices, i);
        if (index < rows && index <= cornu__index_at(indices, i - 1)) return false;
    }
    return true;
}

/* ---- unique_rows: indices (N), distinct ones i32 (N), positions i32 (N) ---- */

typedef struct { int32_t index, place; } Entry;

/* Two lists of entries, counts of a digit. */
static size_t unique_scratch(const CornuQuery *q)
{
    return 2 * (size_t)cornu_type_count(q->op->in[0]) * sizeof(Entry) + DIGITS * sizeof(int32_t);
}

/* Sorts entries of `from` by one digit into `to`; false if they all have the same one. */
static bool sort_by_digit(const Entry *from, int64_t count, int shift, int32_t *counts, Entry *to)
{
    memset(counts, 0, DIGITS * sizeof *counts);
    for (int64_t i = 0; i < count; i++) counts[from[i].index >> shift & (DIGITS - 1)]++;
    if (counts[from[0].index >> shift & (DIGITS - 1)] == count) return false;
    int32_t start = 0;
    for (int d = 0; d < DIGITS; d++) {
        const int32_t each = counts[d];
        counts[d] = start;
        start += each;
    }
    for (int64_t i = 0; i < count; i++)
        to[counts[from[i].index >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

static CornuStatus unique_rows(const CornuKernelCall *call)
{
    const CornuArray indices = cornu__indices_of(call, 0);
    const int64_t    count = cornu_type_count(indices.type);
    const int64_t    rows = call->op.attributes->rows.rows;
    Entry           *from = call->scratch, *to = from + count;
    int32_t         *counts = (int32_t *)(void *)(to + count);
    int32_t         *unique = call->out[0], *position = call->out[1];
    CORNU__TRY(cornu__indices_check("index", indices, rows + 1, 0));
    for (int64_t i = 0; i < count; i++)
        from[i] = (Entry){ (int32_t)cornu__index_at(indices, i), (int32_t)i };
    for (int shift = 0; count > 0 && shift < 31 && rows >> shift > 0; shift += DIGIT)
        if (sort_by_digit(from, count, shift, counts, to)) {
            Entry *sorted = to;
            to = from;
            from = sorted;
        }
    int64_t distinct = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || from[i].index != from[i - 1].index) unique[distinct++] = from[i].index;
        position[from[i].place] = (int32_t)(distinct - 1);
    }
    for (int64_t i = distinct; i < count; i++) unique[i] = (int32_t)rows;
    return CORNU_OK;
}

const CornuKernel cornu__host_unique_rows = {
    .name = "rows", .declines = cornu__takes_all, .scratch = unique_scratch, .run = unique_rows,
};

/* ---- scatter_rows: table (V, C), indices (N), values (N, C), any dtype ---- */

typedef struct {
    CornuArray  indices;
    const char *values;
    char       *table;
    int64_t     count, rows, grain;
    size_t      bytes;     /* of a row */
} Scatter;

static void scatter_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Scatter *s = context;
    const int64_t  end = smaller(s->count, (block + 1) * s->grain);
    for (int64_t i = block * s->grain; i < end; i++) {
        const int64_t index = cornu__index_at(s->indices, i);
        if (i + CORNU_ROWS_AHEAD < end)
            cornu__prefetch_row_to_write(s->table,
                                         cornu__index_at(s->indices, i + CORNU_ROWS_AHEAD),
                                         s->bytes);
        if (index < s->rows)
            memcpy(s->table + (size_t)index * s->bytes, s->values + (size_t)i * s->bytes, s->bytes);
    }
}

static CornuStatus scatter_rows(const CornuKernelCall *call)
{
    const CornuType table = call->op.in[0];
    Scatter s = { .indices = cornu__indices_of(call, 1), .values = call->in[2],
                  .table = call->out[0], .count = cornu_type_count(call->op.in[1]),
                  .rows = table.shape.extent[0],
                  .bytes = (size_t)table.shape.extent[1] * cornu_dtype_size(table.dtype) };
    CORNU__TRY(cornu__indices_check("index", s.indices, s.rows + 1, 0));
    if (call->out[0] != call->in[0]) memcpy(call->out[0], call->in[0], cornu_type_bytes(table));
    s.grain = cornu__indices_ascend(s.indices, s.rows)
            ? larger(1, GRAIN / larger(1, (int64_t)s.bytes)) : larger(1, s.count);
    cornu__threads_run(call->threads, ceil_divide(s.count, s.grain), scatter_block, &s);
    return CORNU_OK;
}

const CornuKernel cornu__host_scatter_rows = {
    .name = "rows", .declines = cornu__takes_all, .run = scatter_rows,
};
