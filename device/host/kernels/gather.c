/*
 * Rows of a table by index, and the sums of gradients by index.
 *
 * Reference: device/ops/gather.c; tests/device/host/run/test_executor.c compares them.
 * Source: own; the gradient sorts rows by index, by counting.
 * Gain: sorted rows, the LSTM at 128 x 100 on 8 shards, Zen 4: 8.8 ms before, 5.2 after.
 */
#include <string.h>

#include "../../integer_internal.h"
#include "../machine/bf16.h"
#include "kernels.h"
#include "rows.h"
#include "../machine/vector.h"

enum {
    GRAIN = 65536,     /* bytes that one block writes, about                                 */
    COLUMNS = 1024     /* of gather_grad that are summed at a time; of the first-level cache */
};

/* ---- gather: table (V, C), indices (N), y (N, C), any dtype ---- */

typedef struct {
    const char *table;
    char       *y;
    CornuArray  indices;
    int64_t     rows, count, grain;
    size_t      bytes;     /* of a row */
} Gather;

static void gather_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Gather *g = context;
    const int64_t end = smaller(g->count, (block + 1) * g->grain);
    for (int64_t i = block * g->grain; i < end; i++) {
        if (i + CORNU_ROWS_AHEAD < end)
            cornu__prefetch_row(g->table, cornu__index_at(g->indices, i + CORNU_ROWS_AHEAD),
                                g->bytes);
        const int64_t index = cornu__index_at(g->indices, i);
        char         *row = g->y + (size_t)i * g->bytes;
        if (index < 0 || index >= g->rows) memset(row, 0, g->bytes);
        else memcpy(row, g->table + (size_t)index * g->bytes, g->bytes);
    }
}

static CornuStatus gather(const CornuKernelCall *call)
{
    const CornuType table = call->op.in[0];
    Gather g = { .table = call->in[0], .rows = table.shape.extent[0], .y = call->out[0],
                 .indices = cornu__indices_of(call, 1),
                 .count = cornu_type_count(call->op.in[1]),
                 .bytes = (size_t)table.shape.extent[1] * cornu_dtype_size(table.dtype) };
    CORNU__TRY(cornu__indices_check("index", g.indices, g.rows,
                                    call->op.attributes->gather.padded));
    g.grain = larger(1, GRAIN / larger(1, (int64_t)g.bytes));
    cornu__threads_run(call->threads, ceil_divide(g.count, g.grain), gather_block, &g);
    return CORNU_OK;
}

const CornuKernel cornu__host_gather = {
    .name = "gather", .declines = cornu__takes_all, .run = gather,
};

/*
 * ---- gather_grad: d_y (N, C) f32 or bf16, indices (N), d_table (V, C) f32 ----
 *
 * Rows of d_y are first sorted by index, those of one index in their order. Then each row of the
 * table is written once, with the sum of its rows.
 *
 * A large table's gradient is far more than the rows looked up, mostly zeros: of several shards it
 * is made once, where each row is the sum of what each shard's rows add up to, in the order of an
 * all_reduce.
 */

typedef struct {
    const CornuKernelCall *call;
    int                    shards;          /* that are added up; 1: the call's own          */
    int64_t                table_rows, columns, count, grain;
    int64_t               *start, *order;   /* rows of v: order[start[v]] to order[start[v + 1]],
                                               row i of shard s by the number s count + i    */
} Sum;

static size_t sort_scratch(const CornuOpCall *op, const CornuType *out_type, int shards)
{
    const int64_t count = shards * cornu_type_count(op->in[1]);
    return (size_t)(out_type->shape.extent[0] + 3 + count) * sizeof(int64_t);
}

/* Operand i of shard s. */
static const void *operand_of(const Sum *sum, int i, int s)
{
    const CornuKernelCall *call = sum->call;
    return call->in[i + (sum->shards > 1 ? s - call->shard : 0) * call->shard_stride];
}

static CornuArray indices_of(const Sum *sum, int s)
{
    return (CornuArray){ sum->call->op.in[1], (void *)(uintptr_t)operand_of(sum, 1, s) };
}

/* start[v + 1] counts on to where the rows of v begin, then on to where they end. Padding, of index
 * -1 or V, is left out. */
static void sort_rows(Sum *sum)
{
    memset(sum->start, 0, (size_t)(sum->table_rows + 3) * sizeof *sum->start);
    for (int s = 0; s < sum->shards; s++)
        for (int64_t i = 0; i < sum->count; i++)
            sum->start[cornu__index_at(indices_of(sum, s), i) + 2]++;
    sum->start[1] = 0;
    for (int64_t v = 1; v < sum->table_rows; v++) sum->start[v + 1] += sum->start[v];
    for (int s = 0; s < sum->shards; s++)
        for (int64_t i = 0; i < sum->count; i++) {
            const int64_t index = cornu__index_at(indices_of(sum, s), i);
            if (index >= 0 && index < sum->table_rows)
                sum->order[sum->start[index + 1]++] = s * sum->count + i;
        }
}

/* `width` columns from `first` on: to = the sum of rows *at to `end` of the order that are of one
 * shard, which is returned; *at is the next one. */
static int sum_shard(const Sum *sum, int64_t first, int64_t width, int64_t *at, int64_t end,
                     float *to)
{
    const bool    narrow = sum->call->op.in[0].dtype == CORNU_BF16;
    const int     shard = (int)(sum->order[*at] / sum->count);
    const int64_t limit = (shard + 1) * sum->count;
    const void   *d_y = operand_of(sum, 0, shard);
    float         wide[COLUMNS];
    memset(to, 0, (size_t)width * sizeof *to);
    for (; *at < end && sum->order[*at] < limit; ++*at) {
        const int64_t from = (sum->order[*at] - shard * sum->count) * sum->columns + first;
        if (narrow) cornu__bf16()->widen((const uint16_t *)d_y + from, width, wide);
        cornu__vectors()->add_row(to, narrow ? wide : (const float *)d_y + from, width);
    }
    return shard;
}

/* The same of all shards, at least one of which has the row: of the others, zeros. */
static void sum_row(const Sum *sum, int64_t v, int64_t first, int64_t width, float *to)
{
    static const float zeros[COLUMNS];
    float              sums[CORNU_SUM_ROWS][COLUMNS];
    const float       *terms[CORNU_SUM_ROWS];
    int64_t            at = sum->start[v];
    const int64_t      end = sum->start[v + 1];
    sum_shard(sum, first, width, &at, end, to);
    if (at == end) return;   /* one shard alone */
    at = sum->start[v];
    for (int s = 0; s < sum->shards; s++) terms[s] = zeros;
    while (at < end) {
        const int s = (int)(sum->order[at] / sum->count);
        sum_shard(sum, first, width, &at, end, sums[s]);
        terms[s] = sums[s];
    }
    cornu__vectors()->sum_rows(to, terms, sum->shards, width);
}

static void sum_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Sum    *sum = context;
    const int64_t end = smaller(sum->table_rows, (block + 1) * sum->grain);
    float        *to = (float *)sum->call->out[0] + block * sum->grain * sum->columns;
    for (int64_t v = block * sum->grain; v < end; v++, to += sum->columns) {
        const int64_t empty = v;   /* rows from here on, all at once */
        while (v < end && sum->start[v] == sum->start[v + 1]) v++;
        memset(to, 0, (size_t)((v - empty) * sum->columns) * sizeof *to);
        to += (v - empty) * sum->columns;
        for (int64_t first = 0; first < sum->columns && v < end; first += COLUMNS)
            sum_row(sum, v, first, smaller(COLUMNS, sum->columns - first), to + first);
    }
}

static CornuStatus sum_shards(const CornuKernelCall *call, int shards)
{
    const int64_t *shape = call->out_type[0].shape.extent;
    Sum sum = { .call = call, .shards = shards, .table_rows = shape[0], .columns = shape[1],
                .count = cornu_type_count(call->op.in[1]) };
    for (int s = 0; s < shards; s++)
        CORNU__TRY(cornu__indices_check("index", indices_of(&sum, s), shape[0],
                                        call->op.attributes->gather_grad.padded));
    sum.grain = larger(1, GRAIN / larger(1, sum.columns * (int64_t)sizeof(float)));
    sum.start = call->scratch;
    sum.order = sum.start + sum.table_rows + 3;
    sort_rows(&sum);
    cornu__threads_run(call->threads, ceil_divide(sum.table_rows, sum.grain), sum_block, &sum);
    return CORNU_OK;
}

static CornuStatus gather_grad(const CornuKernelCall *call) { return sum_shards(call, 1); }

static size_t sum_scratch(const CornuQuery *q)
{
    return sort_scratch(q->op, q->out_type, 1);
}

static CornuDecline grad_declines(const CornuQuery *q)
{
    const CornuDtype d_y = q->op->in[0].dtype;
    return cornu__needs((d_y == CORNU_F32 || d_y == CORNU_BF16) && q->out_type->dtype == CORNU_F32,
                        "f32 or bf16, and a table of f32");
}

/* ---- Summed over shards ---- */

static CornuStatus gather_grad_summed(const CornuKernelCall *call)
{
    return sum_shards(call, call->shards);
}

static size_t summed_scratch(const CornuQuery *q)
{
    return sort_scratch(q->op, q->out_type, q->machine.shards);
}

static CornuDecline summed_declines(const CornuQuery *q)
{
    const CornuDecline decline = grad_declines(q);
    return decline.needs ? decline : cornu__sum_declines(q);
}

static const CornuKernel gather_grad_of_shards = {
    .name = "gather_summed", .declines = summed_declines, .scratch = summed_scratch,
    .run = gather_grad_summed,
};

const CornuKernel cornu__host_gather_grad = {
    .name = "gather", .declines = grad_declines, .scratch = sum_scratch, .run = gather_grad,
    .summed = &gather_grad_of_shards,
};
