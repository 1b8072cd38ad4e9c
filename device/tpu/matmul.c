/*
 * matmul: a (…, M, K) by b (…, K, N), bf16 or f32 in and out, f32 in the sums.
 *
 * b is packed once into panels of two registers' width, pairs along K. Rows of a are read where
 * they stand; where a is transposed its rows along K are paired, a block of columns at a time, and
 * K is summed in chunks, so that the pairs stay in the second-level cache.
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
    TILES = 4,           /* high is a block of rows                                 */
    BLOCKS = 32,         /* at least, where there are panels enough                 */
    K_CHUNK = 512        /* of a transposed a; even                                 */
};

typedef struct {
    const CornuKernelCall *call;
    CornuPrecision         precision;
    const CornuProducts   *products;
    int64_t  batch, m, n, k;
    int64_t  a_batch, a_row, a_column, b_batch, b_row, b_column;
    int64_t  a_count, b_count, b_matrices;
    bool     transposed;             /* a: then rows along K are paired     */
    int64_t  padded, depth;          /* N and K, rounded up to whole registers and pairs */
    int64_t  row_blocks, column_blocks, panels;
    void    *a_parts, *b_parts;
    const void *a, *b;               /* all parts of each, or as they stand */
    char    *packed;
    float   *bias;
    float   *sums;                   /* of a block whose a is transposed, per thread */
    uint32_t *pairs;                 /* its pairs of a, K_CHUNK / 2 rows for each part */
} Matmul;

static size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

static int64_t block_rows(const Matmul *p) { return TILES * p->products->tile_rows; }

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
    p->a_row = transpose_a ? 1 : p->k;
    p->a_column = transpose_a ? p->m : 1;
    p->b_row = transpose_b ? 1 : p->n;
    p->b_column = transpose_b ? p->k : 1;
    p->batch = 1;
    for (int i = 0; i < out_type->shape.rank - 2; i++) p->batch *= out_type->shape.extent[i];
    p->a_batch = a.rank > 2 ? p->m * p->k : 0;
    p->b_batch = b.rank > 2 ? p->k * p->n : 0;
    p->b_matrices = p->b_batch ? p->batch : 1;
    p->a_count = cornu_shape_count(a);
    p->b_count = cornu_shape_count(b);
    p->transposed = transpose_a;
    if (!p->b_batch && p->a_batch && !transpose_a) {
        p->m *= p->batch;
        p->batch = 1;
    }
}

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
static size_t lay_out(Matmul *p, const CornuOpCall *op, const CornuType *out_type, int threads,
                      char *scratch)
{
    find_extents(p, op, out_type);
    p->precision = cornu__precision(CORNU_MULTIPLIES_BF16, op->in[0].dtype);
    p->products = p->precision.products;
    p->padded = ceil_divide(p->n, p->products->lanes) * p->products->lanes;
    p->depth = ceil_divide(p->k, p->products->depth) * p->products->depth;
    p->panels = ceil_divide(p->padded, panel_columns(p));
    p->row_blocks = ceil_divide(p->m, block_rows(p));
    p->column_blocks = larger(1, smaller(p->panels, BLOCKS / larger(1, p->batch * p->row_blocks)));

    const size_t parts = (size_t)p->precision.parts;
    const size_t a = cornu__parts_bytes(&p->precision, p->a_count);
    const size_t b = cornu__parts_bytes(&p->precision, p->b_count);
    const size_t packed = align(parts * (size_t)(p->b_matrices * p->depth * p->padded) *
                                p->products->size);
    const size_t bias = (size_t)p->padded * sizeof(float);
    const size_t sums = p->transposed ? (size_t)(block_rows(p) * block_columns(p)) : 0;
    const size_t pairs = p->transposed ? parts * (size_t)(block_rows(p) * K_CHUNK / 2) : 0;
    if (scratch) {
        p->a_parts = scratch;
        p->b_parts = scratch += a;
        p->packed = scratch += b;
        p->bias = (float *)(void *)(scratch + packed);
        p->sums = (float *)(void *)(scratch + packed + align(bias));
        p->pairs = (uint32_t *)(void *)(p->sums + (size_t)threads * sums);
    }
    return a + b + packed + align(bias) +
           (size_t)threads * (sums * sizeof(float) + pairs * sizeof(uint32_t));
}

static bool matmul_accepts(const CornuOpCall *op, const CornuType *out_type)
{
    return cornu__product_accepts(CORNU_MULTIPLIES_BF16, op, out_type);
}

static size_t matmul_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    Matmul p;
    return lay_out(&p, op, out_type, threads, NULL);
}

static int64_t panel_width(const Matmul *p, int64_t first)
{
    return smaller(panel_columns(p), p->padded - first);
}

/* The panel at column `first` of one matrix b: `depth` rows for each part. */
static char *panel(const Matmul *p, int64_t matrix, int64_t first)
{
    return p->packed + (matrix * p->padded + first) * p->depth * p->precision.parts *
                       (int64_t)p->products->size;
}

/* Some rows of one part of one matrix b into all its panels. */
static void pack(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const int64_t blocks = ceil_divide(p->k, PACK_ROWS);
    const int64_t k = block % blocks * PACK_ROWS, count = smaller(PACK_ROWS, p->k - k);
    const int64_t part = block / blocks % p->precision.parts;
    const int64_t matrix = block / blocks / p->precision.parts;
    const int64_t from = part * p->b_count + matrix * p->b_batch + k * p->b_row;
    for (int64_t first = 0, width; first < p->padded; first += width) {
        width = panel_width(p, first);
        p->products->pack(panel(p, matrix, first), width, part * p->depth + k, count,
                          cornu__element(&p->precision, p->b, from + first * p->b_column),
                          p->b_row, p->b_column, smaller(width, p->n - first));
        if (k + count == p->k && p->depth > p->k)   /* the odd one's other half */
            p->products->pack(panel(p, matrix, first), width, part * p->depth + p->k, 1, p->b, 0,
                              0, 0);
    }
}

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

static void multiply(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const Block   b = block_of(p, block);
    const int64_t rows = b.m_end - b.m, tiles = ceil_divide(rows, p->products->tile_rows);
    CornuEpilogue rest = *p->call->epilogue;
    CornuRun      runs[6];
    for (int pass = 0; pass < p->precision.passes; pass++)
        runs[pass] = (CornuRun){ p->precision.pass[pass][0] * p->a_count,
                                 p->precision.pass[pass][1] * p->depth, p->k };
    CornuTile tile = { .x_stride = p->a_row, .runs = runs, .run_count = p->precision.passes,
                       .y_stride = p->n, .relu = rest.activation == CORNU_OP_RELU,
                       .narrow = p->call->out_type->dtype == CORNU_BF16 };
    for (int64_t first = b.first, width; first < b.end; first += width) {
        width = panel_width(p, first);
        tile.panel = panel(p, p->b_batch ? b.matrix : 0, first);
        tile.bias = p->bias + first;
        tile.vectors = (int)(width / p->products->lanes);
        tile.columns = (int)smaller(width, p->n - first);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t m = b.m + t * rows / tiles;
            tile.rows = (int)(b.m + (t + 1) * rows / tiles - m);
            tile.x = cornu__element(&p->precision, p->a, b.matrix * p->a_batch + m * p->a_row);
            tile.y = result(p, b.matrix, m, first);
            p->products->tile(&tile);
        }
    }
    rest.bias = NULL;
    if (!tile.relu) finish(p, &b, rest);
}

/* ---- a transposed ---- */

/* Rows k to k_end of a, columns of the block, as pairs. */
static void pair_rows(const Matmul *p, const Block *b, int64_t k, int64_t k_end, uint32_t *to)
{
    const int64_t columns = b->m_end - b->m;
    for (int part = 0; part < p->precision.parts; part++, to += block_rows(p) * K_CHUNK / 2) {
        const uint16_t *from = (const uint16_t *)p->a + part * p->a_count +
                               b->matrix * p->a_batch + b->m;
        for (int64_t at = k; at < k_end; at += 2)
            p->precision.bf16->pair(from + at * p->m,
                                    at + 1 < k_end ? from + (at + 1) * p->m : NULL, columns,
                                    to + (at - k) / 2 * columns);
    }
}

/* Adds chunk k to k_end to the sums of the panel at column `first`. */
static void add_chunk(const Matmul *p, const Block *b, int64_t k, int64_t k_end, int64_t first,
                      const uint32_t *pairs, float *sums)
{
    const int64_t width = panel_width(p, first), rows = b->m_end - b->m;
    const int64_t tiles = ceil_divide(rows, p->products->tile_rows);
    const char   *y = panel(p, p->b_batch ? b->matrix : 0, first);
    CornuOuter    outer = { .x_pixel = rows, .y_pixel = width, .images = 1, .height = 1,
                            .width = ceil_divide(k_end - k, 2), .sum_stride = b->end - b->first,
                            .vectors = (int)(width / p->products->lanes) };
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * rows / tiles;
        outer.rows = (int)((t + 1) * rows / tiles - m);
        outer.sum = sums + m * outer.sum_stride + first - b->first;
        for (int pass = 0; pass < p->precision.passes; pass++) {
            const int *part = p->precision.pass[pass];
            outer.add = k > 0 || pass > 0;
            outer.x = pairs + part[0] * block_rows(p) * K_CHUNK / 2 + m;
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
    float        *sums = p->sums + thread * block_rows(p) * block_columns(p);
    uint32_t     *pairs = p->pairs + thread * p->precision.parts * block_rows(p) * K_CHUNK / 2;
    CornuEpilogue epilogue = *p->call->epilogue;
    memset(sums, 0, (size_t)(rows * stride) * sizeof(float));
    for (int64_t k = 0; k < p->k; k += K_CHUNK) {
        const int64_t k_end = smaller(p->k, k + K_CHUNK);
        pair_rows(p, &b, k, k_end, pairs);
        for (int64_t first = b.first; first < b.end; first += panel_columns(p))
            add_chunk(p, &b, k, k_end, first, pairs, sums);
    }
    if (epilogue.bias) epilogue.bias = p->bias;
    cornu__epilogue_apply(&epilogue, sums, rows, used, stride, b.first);
    for (int64_t i = 0; i < rows; i++) {
        void *to = result(p, b.matrix, b.m + i, b.first);
        if (p->call->out_type->dtype == CORNU_BF16)
            p->precision.bf16->narrow(sums + i * stride, used, to);
        else
            memcpy(to, sums + i * stride, (size_t)used * sizeof(float));
    }
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    Matmul p = { .call = call };
    lay_out(&p, &call->op, call->out_type, cornu__threads_count(call->threads), call->scratch);
    p.a = cornu__parts(&p.precision, call->threads, call->in[0], p.a_count, p.a_parts);
    p.b = cornu__parts(&p.precision, call->threads, call->in[1], p.b_count, p.b_parts);
    cornu__biases(call->epilogue, call->out_type->dtype, p.n, p.padded, p.bias);
    cornu__threads_run(call->threads,
                       p.b_matrices * p.precision.parts * ceil_divide(p.k, PACK_ROWS), pack, &p);
    cornu__threads_run(call->threads, p.batch * p.row_blocks * p.column_blocks,
                       p.transposed ? multiply_transposed : multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__tpu_matmul = { matmul_accepts, matmul_scratch, matmul, true };
