/*
 * matmul: a (…, M, K) by b (…, K, N), bf16 or f32 in and out, f32 in the sums.
 *
 * b is packed before into panels of two registers' width. Rows of a are copied, or converted, by
 * the block that reads them (precision.h), as rows 4 KiB apart would share one set of the cache;
 * where a is transposed, a block's columns of a stretch of its rows along K are converted, and
 * paired where products are of pairs, so that they stay in the second-level cache.
 *
 * Blocks are some rows of one matrix by some panels, cut by the shape alone. A batch of a against
 * one matrix b is one product with more rows.
 */
#include <string.h>

#include "../integer_internal.h"
#include "../host/precision.h"
#include "kernels.h"

enum {
    PACK_ROWS = 64,      /* of b, packed by one block; even                         */
    TILES = 8,           /* high is a block of rows, at most                        */
    BLOCK_BYTES = 512 << 10,   /* of a in a block, more than one tile at most; of the L2 cache */
    BLOCKS = 16,         /* at least, where there are panels enough                 */
    PADDING = 32,        /* between rows of a, so that their starts spread over the cache's sets */
    K_CHUNK = 512        /* of a transposed a; even                                 */
};

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    int64_t  batch, m, n, k;
    int64_t  a_batch, b_batch, b_row, b_column;
    int64_t  b_count, b_matrices;
    bool     transposed;             /* a                                                */
    int64_t  padded, depth;          /* N and K, rounded up to whole registers and pairs */
    int64_t  tiles;                  /* high is a block of rows, at most                 */
    int64_t  row_blocks, column_blocks, panels;
    const char *packed;
    float   *bias;
    /* Per thread; of a that is transposed, else not used: the sums of a block, of the last pass and
     * of those before, whose terms are small; its operands of a, K_CHUNK / depth rows for each
     * part; one row of a in parts, or two before they are paired. */
    float   *sums, *chunk;
    char    *rows;
    char    *x;                      /* rows of a block, all parts, per thread */
    int64_t  x_stride, x_part, x_bytes, chunk_part, row_bytes;
} Matmul;

static size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

static int64_t block_rows(const Matmul *p) { return p->tiles * p->products->tile_rows; }

/* Of the rows of a that one tile reads. */
static int64_t tile_bytes(const Matmul *p)
{
    return p->how.parts * p->products->tile_rows * p->x_stride * (int64_t)p->products->size;
}

/* Columns that a panel has, and that a block has at most. */
static int64_t panel_columns(const Matmul *p) { return 2 * p->products->lanes; }

static int64_t block_columns(const Matmul *p)
{
    return ceil_divide(p->panels, p->column_blocks) * panel_columns(p);
}

static void find_extents(Matmul *p, const CornuOpCall *op, const CornuType *out_type)
{
    const CornuShape a = op->in[0].shape, b = op->in[1].shape;
    const bool       transpose_a = op->attributes->matmul.transpose_a;
    const bool       transpose_b = op->attributes->matmul.transpose_b;
    const int64_t   *last_a = a.extent + a.rank - 2, *last_b = b.extent + b.rank - 2;
    p->m = last_a[transpose_a];
    p->k = last_a[!transpose_a];
    p->n = last_b[!transpose_b];
    p->b_row = transpose_b ? 1 : p->n;
    p->b_column = transpose_b ? p->k : 1;
    p->batch = 1;
    for (int i = 0; i < out_type->shape.rank - 2; i++) p->batch *= out_type->shape.extent[i];
    p->a_batch = a.rank > 2 ? p->m * p->k : 0;
    p->b_batch = b.rank > 2 ? p->k * p->n : 0;
    p->b_matrices = p->b_batch ? p->batch : 1;
    p->b_count = cornu_shape_count(b);
    p->transposed = transpose_a;
    if (!p->b_batch && p->a_batch && !transpose_a) {
        p->m *= p->batch;
        p->batch = 1;
    }
}

static void find_blocks(Matmul *p, const CornuOpCall *op, const CornuType *out_type,
                        CornuMultiplier multiplier)
{
    find_extents(p, op, out_type);
    p->how = cornu__multiplication(multiplier, op->in[0].dtype);
    p->products = p->how.products;
    p->padded = ceil_divide(p->n, p->products->lanes) * p->products->lanes;
    p->depth = ceil_divide(p->k, p->products->depth) * p->products->depth;
    p->panels = ceil_divide(p->padded, panel_columns(p));
    p->x_stride = ceil_divide(p->k, PADDING) * PADDING + PADDING;
    p->tiles = TILES;
    if (!p->transposed)
        p->tiles = larger(1, smaller(TILES, BLOCK_BYTES / tile_bytes(p)));
    p->row_blocks = ceil_divide(p->m, block_rows(p));
    p->column_blocks = larger(1, smaller(p->panels, BLOCKS / larger(1, p->batch * p->row_blocks)));
}

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
static size_t lay_out(Matmul *p, const CornuOpCall *op, const CornuType *out_type,
                      const CornuMachine *machine, char *scratch)
{
    find_blocks(p, op, out_type, machine->multiplier);
    const size_t threads = (size_t)machine->threads, parts = (size_t)p->how.parts;
    const size_t bias = align((size_t)p->padded * sizeof(float));
    size_t       sums = 0, chunk = 0;
    p->x_part = p->transposed ? 0 : block_rows(p) * p->x_stride;
    p->x_bytes = (int64_t)align((size_t)(p->how.parts * p->x_part) * p->products->size);
    p->chunk_part = block_rows(p) * K_CHUNK / p->products->depth;
    p->row_bytes = 0;
    if (p->transposed) {
        sums = 2 * (size_t)(block_rows(p) * block_columns(p));
        chunk = parts * (size_t)p->chunk_part;
        p->row_bytes = (int64_t)align(2 * parts * (size_t)block_rows(p) * p->products->size);
    }
    if (scratch) {
        p->bias = (float *)(void *)scratch;
        p->x = scratch += bias;
        p->rows = scratch += threads * (size_t)p->x_bytes;
        p->sums = (float *)(void *)(scratch + threads * (size_t)p->row_bytes);
        p->chunk = p->sums + threads * sums;
    }
    return bias + threads * ((size_t)(p->x_bytes + p->row_bytes) + (sums + chunk) * sizeof(float));
}

static size_t matmul_scratch(const CornuOpCall *op, const CornuType *out_type,
                             const CornuMachine *machine)
{
    Matmul p;
    return lay_out(&p, op, out_type, machine, NULL);
}

/* ---- b ---- */

typedef struct {
    Matmul      matmul;
    const void *b;          /* its parts, one behind the other */
    char       *packed;
} Pack;

static size_t panels_bytes(const Matmul *p)
{
    return align((size_t)(p->how.parts * p->b_matrices * p->depth * p->padded) *
                 p->products->size);
}

/* Behind the panels is room for the parts of b. */
static size_t pack_bytes(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    Matmul p;
    find_blocks(&p, op, out_type, machine->multiplier);
    return panels_bytes(&p) + cornu__parts_bytes(&p.how, p.b_count);
}

static int64_t panel_width(const Matmul *p, int64_t first)
{
    return smaller(panel_columns(p), p->padded - first);
}

/* Where the panel at column `first` of one matrix b is: `depth` rows for each part. */
static int64_t panel_offset(const Matmul *p, int64_t matrix, int64_t first)
{
    return (matrix * p->padded + first) * p->depth * p->how.parts * (int64_t)p->products->size;
}

/* Some rows of one part of one matrix b into all its panels. */
static void pack_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    const Pack   *pack = context;
    const Matmul *p = &pack->matmul;
    const int64_t blocks = ceil_divide(p->k, PACK_ROWS);
    const int64_t k = block % blocks * PACK_ROWS, count = smaller(PACK_ROWS, p->k - k);
    const int64_t part = block / blocks % p->how.parts;
    const int64_t matrix = block / blocks / p->how.parts;
    const int64_t from = part * p->b_count + matrix * p->b_batch + k * p->b_row;
    for (int64_t first = 0, width; first < p->padded; first += width) {
        char *panel = pack->packed + panel_offset(p, matrix, first);
        width = panel_width(p, first);
        p->products->pack(panel, width, part * p->depth + k, count,
                          cornu__element(&p->how, pack->b, from + first * p->b_column), p->b_row,
                          p->b_column, smaller(width, p->n - first));
        if (k + count == p->k && p->depth > p->k)   /* the odd one's other half */
            p->products->pack(panel, width, part * p->depth + p->k, 1, pack->b, 0, 0, 0);
    }
}

static void pack(const CornuKernelCall *call)
{
    Pack pack = { .packed = call->out[0] };
    find_blocks(&pack.matmul, &call->op, call->out_type, call->multiplier);
    const Matmul *p = &pack.matmul;
    pack.b = cornu__all_parts(&p->how, call->threads, call->in[1], p->b_count,
                              pack.packed + panels_bytes(p));
    cornu__threads_run(call->threads, p->b_matrices * p->how.parts * ceil_divide(p->k, PACK_ROWS),
                       pack_rows, &pack);
}

/* ---- The product ---- */

/* What one block computes. */
typedef struct {
    int64_t matrix, m, m_end, first, end;   /* rows and columns */
} Block;

static Block block_of(const Matmul *p, int64_t block)
{
    const int64_t columns = block % p->column_blocks, rest = block / p->column_blocks;
    const int64_t rows = rest % p->row_blocks, matrix = rest / p->row_blocks;
    const int64_t begin = columns * p->panels / p->column_blocks;
    const int64_t end = (columns + 1) * p->panels / p->column_blocks;
    return (Block){ matrix, rows * p->m / p->row_blocks, (rows + 1) * p->m / p->row_blocks,
                    begin * panel_columns(p), smaller(end * panel_columns(p), p->padded) };
}

static char *result(const Matmul *p, int64_t matrix, int64_t m, int64_t n)
{
    const int64_t size = p->call->out_type->dtype == CORNU_BF16 ? 2 : 4;
    return (char *)p->call->out[0] + ((matrix * p->m + m) * p->n + n) * size;
}

/* Activations other than relu, which only f32 results have. */
static void finish(const Matmul *p, const Block *b, CornuEpilogue epilogue)
{
    if (epilogue.bias) epilogue.bias = p->bias;
    if (p->call->out_type->dtype == CORNU_F32)
        cornu__epilogue_apply(&epilogue, (float *)(void *)result(p, b->matrix, b->m, b->first),
                              b->m_end - b->m, smaller(b->end, p->n) - b->first, p->n, b->first);
}

/* Rows of a block as tiles take them, their parts x_part elements apart. */
static const void *rows_of_a(const Matmul *p, const Block *b, int thread)
{
    const int64_t first = b->matrix * p->a_batch + b->m * p->k;
    char *made = p->x + thread * p->x_bytes;
    for (int64_t row = 0; row < b->m_end - b->m; row++)
        cornu__parts(&p->how, p->call->in[0], first + row * p->k, p->k,
                     made + row * p->x_stride * (int64_t)p->products->size, p->x_part);
    return made;
}

static void multiply(void *context, int64_t block, int thread)
{
    const Matmul *p = context;
    const Block   b = block_of(p, block);
    const int64_t rows = b.m_end - b.m, tiles = ceil_divide(rows, p->products->tile_rows);
    CornuEpilogue rest = *p->call->epilogue;
    const void   *x = rows_of_a(p, &b, thread);
    CornuRun      runs[CORNU_MOST_PASSES];
    for (int pass = 0; pass < p->how.passes; pass++)
        runs[pass] = (CornuRun){ p->how.pass[pass][0] * p->x_part,
                                 p->how.pass[pass][1] * p->depth, p->k };
    CornuTile tile = { .x_stride = p->x_stride, .runs = runs, .run_count = p->how.passes,
                       .y_stride = p->n, .relu = rest.activation == CORNU_OP_RELU,
                       .narrow = p->call->out_type->dtype == CORNU_BF16 };
    for (int64_t first = b.first, width; first < b.end; first += width) {
        width = panel_width(p, first);
        tile.panel = p->packed + panel_offset(p, p->b_batch ? b.matrix : 0, first);
        tile.bias = p->bias + first;
        tile.vectors = (int)(width / p->products->lanes);
        tile.columns = (int)smaller(width, p->n - first);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t m = b.m + t * rows / tiles;
            tile.rows = (int)(b.m + (t + 1) * rows / tiles - m);
            tile.x = cornu__element(&p->how, x, (m - b.m) * p->x_stride);
            tile.y = result(p, b.matrix, m, first);
            p->products->tile(&tile);
        }
    }
    rest.bias = NULL;
    if (!tile.relu) finish(p, &b, rest);
}

/* ---- a transposed ---- */

/* A stretch of a row of a, its parts `columns` apart: where it stands, or made at `to`. */
static const uint16_t *row_in_parts(const Matmul *p, int64_t first, int64_t columns, uint16_t *to)
{
    if (p->how.in_place) return cornu__in_memory(&p->how, p->call->in[0], first);
    cornu__parts(&p->how, p->call->in[0], first, columns, to, columns);
    return to;
}

/* Rows k to k_end of a, columns of the block, as operands; of pairs two rows become one. */
static void convert_rows(const Matmul *p, const Block *b, int64_t k, int64_t k_end, int thread,
                         float *to)
{
    const int64_t columns = b->m_end - b->m, depth = p->products->depth;
    const int64_t first = b->matrix * p->a_batch + b->m;
    uint16_t     *rows = (uint16_t *)(void *)(p->rows + thread * p->row_bytes);
    for (int64_t at = k; at < k_end; at += depth, to += columns) {
        if (depth == 1) {
            cornu__parts(&p->how, p->call->in[0], first + at * p->m, columns, to, p->chunk_part);
            continue;
        }
        const uint16_t *row = row_in_parts(p, first + at * p->m, columns, rows), *second = NULL;
        if (at + 1 < k_end)
            second = row_in_parts(p, first + (at + 1) * p->m, columns,
                                  rows + p->how.parts * columns);
        for (int part = 0; part < p->how.parts; part++)
            cornu__bf16()->pair(row + part * columns, second ? second + part * columns : NULL,
                                columns, (uint32_t *)(void *)(to + part * p->chunk_part));
    }
}

/* Adds chunk k to k_end to the sums of the panel at column `first`. */
static void add_chunk(const Matmul *p, const Block *b, int64_t k, int64_t k_end, int64_t first,
                      const float *chunk, float *sums)
{
    const int64_t width = panel_width(p, first), rows = b->m_end - b->m;
    const int64_t tiles = ceil_divide(rows, p->products->outer_rows);
    const char   *y = p->packed + panel_offset(p, p->b_batch ? b->matrix : 0, first);
    CornuOuter    outer = { .x_pixel = rows, .y_pixel = width, .images = 1, .height = 1,
                            .width = ceil_divide(k_end - k, p->products->depth),
                            .sum_stride = b->end - b->first,
                            .vectors = (int)(width / p->products->lanes) };
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * rows / tiles;
        outer.rows = (int)((t + 1) * rows / tiles - m);
        for (int pass = 0; pass < p->how.passes; pass++) {
            const int *part = p->how.pass[pass];
            const bool last = pass + 1 == p->how.passes;
            outer.sum = sums + ((last ? 0 : rows) + m) * outer.sum_stride + first - b->first;
            outer.add = k > 0 || (pass > 0 && !last);
            outer.x = chunk + part[0] * p->chunk_part + m;
            outer.y = y + (part[1] * p->depth + k) * width * (int64_t)p->products->size;
            p->products->outer(&outer);
        }
    }
}

static void multiply_transposed(void *context, int64_t block, int thread)
{
    const Matmul *p = context;
    const Block   b = block_of(p, block);
    const int64_t rows = b.m_end - b.m, stride = b.end - b.first;
    const int64_t used = smaller(b.end, p->n) - b.first;
    float        *sums = p->sums + thread * 2 * block_rows(p) * block_columns(p);
    float        *chunk = p->chunk + thread * p->how.parts * p->chunk_part;
    CornuEpilogue epilogue = *p->call->epilogue;
    if (p->k == 0) memset(sums, 0, 2 * (size_t)(rows * stride) * sizeof(float));
    for (int64_t k = 0; k < p->k; k += K_CHUNK) {
        const int64_t k_end = smaller(p->k, k + K_CHUNK);
        convert_rows(p, &b, k, k_end, thread, chunk);
        for (int64_t first = b.first; first < b.end; first += panel_columns(p))
            add_chunk(p, &b, k, k_end, first, chunk, sums);
    }
    for (int64_t i = 0; p->how.passes > 1 && i < rows * stride; i++)
        sums[i] += sums[rows * stride + i];
    if (epilogue.bias) epilogue.bias = p->bias;
    cornu__epilogue_apply(&epilogue, sums, rows, used, stride, b.first);
    for (int64_t i = 0; i < rows; i++) {
        void *to = result(p, b.matrix, b.m + i, b.first);
        if (p->call->out_type->dtype == CORNU_BF16)
            cornu__bf16()->narrow(sums + i * stride, used, to);
        else
            memcpy(to, sums + i * stride, (size_t)used * sizeof(float));
    }
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    Matmul             p = { .call = call, .packed = call->in[1] };
    const CornuMachine machine = cornu__machine_of(call);
    lay_out(&p, &call->op, call->out_type, &machine, call->scratch);
    cornu__biases(call->epilogue, call->out_type->dtype, p.n, p.padded, p.bias);
    cornu__threads_run(call->threads, p.batch * p.row_blocks * p.column_blocks,
                       p.transposed ? multiply_transposed : multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__tpu_matmul = {
    .accepts = cornu__product_accepts, .scratch = matmul_scratch, .run = matmul,
    .takes_epilogue = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
