/*
 * matmul of a transposed a, as the gradients of weights are: part of matmul.c.
 *
 * A block packs its columns of a chunk of rows along K, those of each tile into a panel of its own,
 * so that a tile reads two streams from the second-level cache, and requests the next panel of b
 * for it. Low tiles, those of AVX2, read b faster than that: their chunks are short enough that a
 * panel of b stays in the first-level cache for all tiles of a block. Sums continue in memory from
 * chunk to chunk, so that their order does not depend on the caches. Of f32 the block may pack the
 * panel itself; then what it will pack is requested, rows of b that are pages apart.
 *
 * Of f32, where the result has few blocks, K is split: each split makes sums of its own, which are
 * added in order.
 *
 * Of several shards the results may be added up where they are computed: with few rows on each, a
 * shard's gradient of a weight is far larger than the operands, and writing and reading it takes
 * longer than computing it. The sums of a panel are made for all shards, in the cache, and added by
 * the function, and in the order, of an all_reduce.
 *
 * Reference: device/ops/matmul.c; tests/device/host/kernels/test_products.c compares them.
 * Source: own.
 * Gain: tiles packed one by one, 512 x 2048 x 1600, bf16, one core of a Zen 4: 88 % of the limit,
 *     then 93; sums over eight shards, an MLP of 784-4096-4096-10 on tpu: 64 rows 111 ms a step,
 *     then 65; 1024 rows 389, then 342. Zen 3, AVX2, one core, with packing b, M x N x K: short
 *     chunks, 128 x 512 x 12800 28.9 ms, then 20.5; 512 x 128 x 12800 24.6, then 22.0;
 *     256 x 1024 x 16384 150, then 102; 1024 x 256 x 16384 122, then 108. Xeon (model 207),
 *     AVX-512, one core: panels and sums requested in time, and blocks as those of AVX2, 4096 x
 *     4096 x 1024 329 ms, then 241; 256 x 256 x 4096 5.3, then 4.3. Zen 5, one core, what the next
 *     panel is packed from requested: 512 x 2048 x 12800, AVX-512, 131 ms, then 119; 256 x 1024 x
 *     8192 21.0, then 19.3; 128 x 512 x 12800, AVX2, 15.7, then 14.5. Xeon (model 207), AVX2, two
 *     threads, fewer blocks and requests, two steps a turn: 1024 x 256 x 4096 16.4 ms, then 14.1;
 *     256 x 256 x 4096 4.07, then 3.54. Zen 3, AVX2, two threads, a packed row by row into panels
 *     that spread over the sets, 256 rows in one block, no division for each tile: 192 x 768 x 2048
 *     3.71 ms, then 3.42; 256 x 1024 x 4096 13.4, then 12.3; 1024 x 256 x 4096 13.5, then 12.5.
 */
#include <string.h>

#include "../../inference_internal.h"
#include "../isa/transpose.h"
#include "../machine/prefetch.h"
#include "../machine/vector.h"
#include "kernels.h"
#include "matmul_internal.h"

enum { TURNED = 32 };   /* rows of a that become parts of rows at once: whole registers */

/* Rows that a tile has at most. */
static int64_t tile_rows(const CornuMatmul *p)
{
    return p->by_rows ? p->products->tile_rows : p->products->outer_rows;
}

/* Where the tile at row m of a block of `rows` rows ends: tiles are full, but for the last two,
 * which share what is left. */
static int64_t tile_end(const CornuMatmul *p, int64_t rows, int64_t m)
{
    const int64_t most = tile_rows(p), left = rows - m;
    return left >= 2 * most ? m + most : left > most ? m + (left + 1) / 2 : rows;
}

/* `count` stretches of rows of a, far from each other. */
static void prefetch_rows(const CornuMatmul *p, int64_t first, int64_t count, int64_t columns)
{
    const int64_t bytes = columns * (p->how.from == CORNU_BF16 ? 2 : 4) + CORNU_LINE_BYTES;
    for (int64_t i = 0; i < count; i++)
        for (int64_t at = 0; at < bytes; at += CORNU_LINE_BYTES)
            cornu__prefetch(cornu__in_memory(&p->how, p->a, first + i * p->e.m), (size_t)at);
}

/* As pack_columns, of f32 that is in place: the panels of equal tiles together. */
static void pack_tiles(const CornuMatmul *p, const CornuBlock *b, int64_t k, int64_t k_end,
                       int thread)
{
    const int64_t columns = b->m_end - b->m, size = (int64_t)p->products->size;
    const int64_t first = b->matrix * p->e.a_batch + k * p->e.m + b->m;
    char         *x = p->x + thread * p->x_bytes;
    for (int64_t m = 0, width; m < columns; m += width) {
        const int64_t count = larger(1, (columns - m) / tile_rows(p) - 1);
        width = tile_end(p, columns, m) - m;
        p->products->pack_tiles(x + m * p->x_rows * size, width, count, width * p->x_rows,
                                k_end - k, cornu__in_memory(&p->how, p->a, first + m), p->e.m);
        m += (count - 1) * width;
    }
}

/* Rows k to k_end of a, columns of the block, into panels of its tiles, or as rows; that of the
 * tile at row m of the block, or this row, stands at m x_rows. */
static void pack_columns(const CornuMatmul *p, const CornuBlock *b, int64_t k, int64_t k_end,
                         int thread)
{
    const int64_t columns = b->m_end - b->m, begin = k;
    if (p->how.in_place && p->products->pack_tiles) {
        pack_tiles(p, b, k, k_end, thread);
        return;
    }
    char         *rows = p->rows + thread * p->row_bytes, *x = p->x + thread * p->x_bytes;
    for (int64_t count; k < k_end; k += count) {
        const int64_t first = b->matrix * p->e.a_batch + k * p->e.m + b->m;
        count = smaller(p->by_rows && p->how.in_place ? TURNED : CORNU_MATMUL_SOME_ROWS,
                        k_end - k);
        prefetch_rows(p, first + count * p->e.m, smaller(count, k_end - k - count), columns);
        for (int64_t i = 0; i < count && !p->how.in_place; i++)
            cornu__parts(&p->how, p->a, first + i * p->e.m, columns,
                         rows + i * columns * (int64_t)p->products->size,
                         CORNU_MATMUL_SOME_ROWS * columns);
        for (int part = 0; part < p->how.parts && p->by_rows; part++)
            cornu__transposes()->halves(
                p->how.in_place ? cornu__in_memory(&p->how, p->a, first)
                                : cornu__element(&p->how, rows,
                                                 part * CORNU_MATMUL_SOME_ROWS * columns),
                p->how.in_place ? p->e.m : columns, count, columns,
                (uint16_t *)(void *)x + part * p->x_part + k - begin, p->x_rows);
        for (int64_t m = 0, width; m < columns && !p->by_rows; m += width) {
            width = tile_end(p, columns, m) - m;
            for (int part = 0; part < p->how.parts; part++) {
                const void *from = p->how.in_place
                    ? cornu__in_memory(&p->how, p->a, first + m)
                    : cornu__element(&p->how, rows, part * CORNU_MATMUL_SOME_ROWS * columns + m);
                char *panel = x + (part * p->x_part + m * p->x_rows) * (int64_t)p->products->size;
                p->products->pack(panel, width, k - begin, count, from,
                                  p->how.in_place ? p->e.m : columns, 1, width);
                if ((k + count - begin) % p->products->depth)   /* the odd one's other half */
                    p->products->pack(panel, width, k + count - begin, 1, from, 0, 0, 0);
            }
        }
    }
}

/* A panel packed here: two take turns. */
static char *own_panel(const CornuMatmul *p, int64_t first, int thread)
{
    return p->panel + (2 * thread + first / cornu__panel_columns(p) % 2) * p->panel_bytes / 2;
}

/* Of the elements that a panel at column `first` is packed from, those of row k. */
static const void *panel_source(const CornuMatmul *p, const CornuBlock *b, int64_t k, int64_t first)
{
    return cornu__in_memory(&p->how, p->call->in[1], b->matrix * p->e.b_batch + k * p->e.b_row +
                            first * p->e.b_column);
}

/* Packs rows `from` to `to` of a chunk that begins at row k. */
static void pack_panel(const CornuMatmul *p, const CornuBlock *b, int64_t k, int64_t from,
                       int64_t to, int64_t first, int thread)
{
    const int64_t width = cornu__panel_width(p, first);
    p->products->pack(own_panel(p, first, thread), width, from, to - from,
                      panel_source(p, b, k + from, first), p->e.b_row, p->e.b_column,
                      smaller(width, p->e.n - first));
}

/* From row k on, of the first part of the panel at column `first`, packed by now. */
static const void *panel_rows(const CornuMatmul *p, const CornuBlock *b, int64_t k, int64_t first,
                              int thread)
{
    const int64_t offset = cornu__panel_offset(p, p->e.b_batch ? b->matrix : 0, first);
    return p->packs ? own_panel(p, first, thread)
                    : cornu__element(&p->how, p->packed + offset,
                                     k * cornu__panel_width(p, first));
}

/* A tile of rows of x, of `count` elements, by those of a panel y. */
static void add_tile(const CornuMatmul *p, const CornuOuter *outer, int64_t count)
{
    static const float zeros[2 * 16];   /* columns of a panel */
    const CornuRun     run = { 0, 0, count };
    p->products->tile(&(CornuTile){
        .x = outer->x, .x_stride = p->x_rows, .runs = &run, .run_count = 1, .panel = outer->y,
        .bias = outer->add ? outer->sum : zeros,
        .bias_stride = outer->add ? outer->sum_stride : 0, .y = outer->sum,
        .y_stride = outer->sum_stride, .rows = outer->rows, .vectors = outer->vectors,
        .columns = (int)outer->y_pixel });
}

/* What the tiles of a block share in a chunk: rows k to k_end along K, y the panel's first part. */
typedef struct {
    const char *x;
    const void *y;
    int64_t     k, k_end, width;
    ptrdiff_t   layer;       /* of the sums: to those of the earlier passes    */
    bool        continues;   /* the sums, those of chunks before it            */
    CornuOuter  outer;       /* of each tile, but for x, y, rows, sum and add  */
} Chunk;

static Chunk chunk_of(const CornuMatmul *p, const void *x, const void *y, int64_t k, int64_t k_end,
                      int64_t width, int64_t stride, CornuAhead *ahead)
{
    return (Chunk){ .x = x, .y = y, .k = k, .k_end = k_end, .width = width,
                    .continues = k % p->split_rows > 0,
                    .outer = { .y_pixel = width, .images = 1, .height = 1,
                               .width = ceil_divide(k_end - k, p->products->depth),
                               .sum_stride = stride, .ahead = ahead,
                               .vectors = (int)(width / p->products->lanes) } };
}

/* Adds it to the sums of a tile's rows, from row m of the block on. */
static void add_rows(const CornuMatmul *p, Chunk *c, int64_t m, int rows, float *sums)
{
    CornuOuter *outer = &c->outer;
    outer->x_pixel = outer->rows = rows;
    for (int pass = 0; pass < p->how.passes; pass++) {
        const int *part = p->how.pass[pass];
        const bool last = pass + 1 == p->how.passes;
        outer->sum = sums + (last ? 0 : c->layer);
        outer->add = c->continues || (pass > 0 && !last);
        outer->x = cornu__element(&p->how, c->x, part[0] * p->x_part + m * p->x_rows);
        outer->y = cornu__element(&p->how, c->y, part[1] * p->depth * c->width);
        if (p->by_rows) add_tile(p, outer, c->k_end - c->k);
        else p->products->outer(outer);
    }
}

/* Rows `from` to `to` of the chunk, of the panel after the one that y begins, or the elements that
 * they are packed from. */
static CornuAheadRows next_panel(const CornuMatmul *p, const CornuBlock *b, const Chunk *c,
                                 int64_t from, int64_t to, int64_t first)
{
    const int64_t count = to - from, size = (int64_t)p->products->size;
    const int64_t row = c->width * size, next = first + c->width;
    if (!p->packs)
        return cornu__ahead_lines((const char *)c->y + (p->how.parts * p->depth + from) * row,
                                  count * row / CORNU_LINE_BYTES);
    if (next >= b->end) return (CornuAheadRows){ .rows = 0 };
    const int64_t columns = smaller(cornu__panel_width(p, next), p->e.n - next);
    const bool    by_columns = p->e.b_row == 1;
    return cornu__ahead_rows(panel_source(p, b, c->k + from, next), by_columns ? columns : count,
                             (by_columns ? count : columns) * size,
                             (by_columns ? p->e.b_column : p->e.b_row) * size);
}

/* Adds chunk k to k_end to the sums of the panel at column `first`. Meanwhile each tile requests a
 * part of that chunk of the next panel, or of what it is packed from, and then packs it: what is
 * requested of rows far apart shares few sets of a cache, and does not stay there for long. */
static void add_chunk(const CornuMatmul *p, const CornuBlock *b, int64_t k, int64_t k_end,
                      int64_t first, int thread, float *sums, int64_t stride)
{
    const int64_t rows = b->m_end - b->m, width = cornu__panel_width(p, first);
    const int64_t next = first + width;
    CornuAhead    ahead = { .sums = { .bytes = width * (ptrdiff_t)sizeof *sums,
                                      .stride = stride * (ptrdiff_t)sizeof *sums } };
    Chunk         chunk = chunk_of(p, p->x + thread * p->x_bytes,
                                   panel_rows(p, b, k, first, thread), k, k_end, width, stride,
                                   &ahead);
    const int64_t each = ceil_divide(k_end - k, ceil_divide(rows, tile_rows(p)));
    chunk.layer = rows * stride;
    if (p->packs && first == b->first) pack_panel(p, b, k, 0, k_end - k, first, thread);
    for (int64_t m = 0, from = 0, end, to; m < rows; m = end, from = to) {
        float *tile = sums + m * stride + first - b->first;
        end = tile_end(p, rows, m);
        to = smaller(k_end - k, from + each);
        ahead.rows = next_panel(p, b, &chunk, from, to, first);
        cornu__ahead_pace(&ahead, chunk.outer.width,
                          cornu__has_tall_tiles(p) ? CORNU_AHEAD_TERMS : CORNU_AHEAD_LOW_TERMS);
        cornu__request_sums(&ahead, tile, m, end - m, end == rows);
        add_rows(p, &chunk, m, (int)(end - m), tile);
        if (p->packs && next < b->end) pack_panel(p, b, k, from, to, next, thread);
    }
}

/* The sums of rows begin to end along K of a block. */
static void sum_block(const CornuMatmul *p, const CornuBlock *b, int64_t begin, int64_t end,
                      int thread, float *sums, int64_t stride)
{
    int64_t k = begin;
    do {   /* at least once: without terms the sums are zero */
        const int64_t k_end = smaller(end, k + p->chunk);
        pack_columns(p, b, k, k_end, thread);
        for (int64_t first = b->first; first < b->end; first += cornu__panel_columns(p))
            add_chunk(p, b, k, k_end, first, thread, sums, stride);
        k = k_end;
    } while (k < end);
    for (int64_t i = 0; p->how.passes > 1 && i < (b->m_end - b->m) * stride; i++)
        sums[i] += sums[(b->m_end - b->m) * stride + i];
}

static void copy_sums(const CornuMatmul *p, const CornuBlock *b, const float *sums, int64_t stride)
{
    const int64_t used = smaller(b->end, p->e.n) - b->first;
    for (int64_t m = b->m; m < b->m_end; m++, sums += stride) {
        void *to = cornu__result_at(p, b->matrix, m, b->first);
        if (p->call->out_type->dtype == CORNU_BF16) cornu__bf16()->narrow(sums, used, to);
        else memcpy(to, sums, (size_t)used * sizeof(float));
    }
}

/* Makes the result of a block's sums. */
static void finish_block(const CornuMatmul *p, const CornuBlock *b, float *sums, int64_t stride)
{
    CornuEpilogue epilogue = *p->call->epilogue;
    if (epilogue.bias) epilogue.bias = p->bias;
    cornu__matmul_finish(p, b, &epilogue, sums, stride);
    if (!cornu__matmul_sums_in_place(p, p->call->out_type)) copy_sums(p, b, sums, stride);
    cornu__matmul_gate(p, b);
}

static void multiply(void *context, int64_t block, int thread)
{
    const CornuMatmul *p = context;
    const CornuBlock   b = cornu__block(p, block);
    const bool    in_place = cornu__matmul_sums_in_place(p, p->call->out_type);
    const int64_t stride = in_place ? p->e.n : b.end - b.first;
    float        *sums = in_place ? (void *)cornu__result_at(p, b.matrix, b.m, b.first)
                                  : p->sums + thread * p->sums_count;
    sum_block(p, &b, 0, p->e.k, thread, sums, stride);
    finish_block(p, &b, sums, stride);
}

/* ---- K split ---- */

enum { ADD_BLOCK = 4096 };   /* elements of the result that one block adds up */

/* Of row `row`, counted over all matrices. */
static float *split_sums(const CornuMatmul *p, int64_t split, int64_t row)
{
    return p->sums + (split * p->e.batch * p->e.m + row) * p->padded;
}

static void sum_split(void *context, int64_t block, int thread)
{
    const CornuMatmul *p = context;
    const int64_t      blocks = p->e.batch * p->row_blocks * p->column_blocks;
    const int64_t      split = block / blocks, begin = split * p->split_rows;
    const CornuBlock   b = cornu__block(p, block % blocks);
    sum_block(p, &b, begin, smaller(p->e.k, begin + p->split_rows), thread,
              split_sums(p, split, b.matrix * p->e.m + b.m) + b.first, p->padded);
}

static void add_splits(void *context, int64_t block, int thread)
{
    (void)thread;
    const CornuMatmul *p = context;
    const int64_t      per_block = larger(1, ADD_BLOCK / p->padded);
    const int64_t      end = smaller(p->e.batch * p->e.m, (block + 1) * per_block);
    for (int64_t row = block * per_block; row < end; row++) {
        const int64_t    matrix = row / p->e.m, m = row % p->e.m;
        const CornuBlock b = { matrix, m, m + 1, 0, p->padded };
        float           *sum = split_sums(p, 0, row);
        for (int64_t split = 1; split < p->splits; split++)
            cornu__vectors()->add_row(sum, split_sums(p, split, row), p->padded);
        finish_block(p, &b, sum, p->padded);
    }
}

void cornu__matmul_transposed(CornuMatmul *p)
{
    const int64_t blocks = p->e.batch * p->row_blocks * p->column_blocks;
    if (p->splits == 1) {
        cornu__threads_run(p->call->threads, blocks, multiply, p);
        return;
    }
    cornu__threads_run(p->call->threads, p->splits * blocks, sum_split, p);
    cornu__threads_run(p->call->threads,
                       ceil_divide(p->e.batch * p->e.m, larger(1, ADD_BLOCK / p->padded)),
                       add_splits, p);
}


/* ---- Summed over shards ---- */

enum { MOST_ROWS = 256 };   /* of a shard along K: all are packed at once */

/* The product of one shard. */
static CornuMatmul of_shard(const CornuMatmul *p, int shard)
{
    const CornuKernelCall *call = p->call;
    const ptrdiff_t        at = (shard - call->shard) * call->shard_stride;
    CornuMatmul            own = *p;
    own.a = call->in[at];
    own.packed = call->in[at + 1];
    own.x += shard * cornu__block_rows(p) * p->x_rows * (int64_t)p->products->size;
    return own;
}

/* The sums of a panel of all shards, added up into the result, tile by tile in the first-level
 * cache. */
static void sum_panel(const CornuMatmul *p, const CornuBlock *b, int thread)
{
    const int64_t rows = b->m_end - b->m, width = b->end - b->first;
    const int64_t each = tile_rows(p) * cornu__panel_columns(p);
    const int64_t used = smaller(b->end, p->e.n) - b->first;
    float        *sums = p->sums + thread * p->sums_count, *total = sums + p->summed * each;
    const float  *x[CORNU_SUM_ROWS];
    Chunk         chunks[CORNU_SUM_ROWS];
    for (int s = 0; s < p->summed; s++) {
        const CornuMatmul own = of_shard(p, s);
        x[s] = sums + s * each;
        chunks[s] = chunk_of(p, own.x + thread * own.x_bytes,
                             panel_rows(&own, b, 0, b->first, thread), 0, p->e.k, width, width,
                             NULL);
    }
    for (int64_t m = 0, end; m < rows; m = end) {
        end = tile_end(p, rows, m);
        for (int64_t row = m; row < end; row++)
            cornu__prefetch_to_write(cornu__result_at(p, 0, b->m + row, b->first),
                                     (size_t)used * sizeof *total);
        for (int s = 0; s < p->summed; s++)
            add_rows(p, &chunks[s], m, (int)(end - m), sums + s * each);
        cornu__vectors()->sum_rows(total, x, p->summed, (end - m) * width);
        for (int64_t row = m; row < end; row++)
            memcpy(cornu__result_at(p, 0, b->m + row, b->first), total + (row - m) * width,
                   (size_t)used * sizeof *total);
    }
}

static void multiply_summed(void *context, int64_t block, int thread)
{
    const CornuMatmul     *p = context;
    const CornuBlock b = cornu__block(p, block);
    CornuBlock       panel = b;
    for (int s = 0; s < p->summed; s++) {
        const CornuMatmul own = of_shard(p, s);
        pack_columns(&own, &b, 0, p->e.k, thread);
    }
    for (panel.first = b.first; panel.first < b.end; panel.first = panel.end) {
        panel.end = panel.first + cornu__panel_width(p, panel.first);
        sum_panel(p, &panel, thread);
    }
}

static CornuDecline summed_declines(const CornuQuery *q)
{
    CornuMatmul  p = { .summed = q->machine.shards };
    CornuDecline decline = cornu__product_declines(q);
    if (!decline.needs) decline = cornu__sum_declines(q);
    if (decline.needs) return decline;
    if (q->out_type->dtype != CORNU_F32 || q->out_type->shape.rank != 2 ||
        !q->op->attributes->matmul.transpose_a)
        return cornu__needs(false, "one transposed product of f32");
    cornu__matmul_find_blocks(&p, q->op, q->out_type, q->machine.multiplier);
    if (p.how.passes > 1) return cornu__needs(false, "products in one pass");
    return p.e.k <= MOST_ROWS ? CORNU_TAKES : cornu__needs_most(MOST_ROWS, "rows", p.e.k);
}

static size_t summed_scratch(const CornuQuery *q)
{
    CornuMatmul  p = { .summed = q->machine.shards };
    CornuScratch scratch = { 0 };
    cornu__matmul_lay_out(&p, q, &scratch);
    return scratch.bytes;
}

static CornuStatus matmul_summed(const CornuKernelCall *call)
{
    const CornuQuery q = cornu__query_of(call);
    CornuMatmul      p = { .call = call, .summed = call->shards };
    cornu__matmul_lay_out(&p, &q, &(CornuScratch){ .memory = call->scratch });
    cornu__threads_run(call->threads, p.row_blocks * p.column_blocks, multiply_summed, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_matmul_summed = {
    .name = "matmul_summed", .declines = summed_declines, .scratch = summed_scratch,
    .run = matmul_summed, .pack_bytes = cornu__matmul_pack_bytes, .pack = cornu__matmul_pack,
    .packs = 1,
};
