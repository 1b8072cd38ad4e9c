/*
 * matmul: a (…, M, K) by b (…, K, N), bf16 or f32 in and out, f32 in the sums.
 *
 * b is packed in advance into panels two registers wide. Rows of a are read where they lie, or
 * copied by the block that reads them if they have to be converted (precision.h) or if those of a
 * tile would share few sets of the cache. Where a is transposed, a block packs its columns of a
 * stretch of rows along K, those of each tile into a panel of its own, so that a tile reads two
 * streams from the second-level cache.
 *
 * A block is some rows of one matrix by some panels, cut by the shape alone. A batch of a with one
 * matrix b is one product with more rows.
 *
 * Reference: device/ops/matmul.c; tests/device/host/kernels/test_products.c compares them.
 * Source: own; packing and blocking as in Goto and van de Geijn, "Anatomy of High-Performance
 *     Matrix Multiplication", 2008, and BLIS.
 * Gain, Zen 4, bf16: rows of a 4 KiB apart copied, the LSTM's d_z W', one core: 66 % of the limit,
 *     then 93; a transposed a packed tile by tile, 512 x 2048 x 1600, one core: 88 %, then 93; 32
 *     blocks for 19, 1024 x 1024 x 1024, two threads: 386 GFLOP/s, then 409; panels packed where
 *     they are used, an MLP of 784-4096-4096-10 on 64 rows, f32: 163 ms a step, then 134.
 */
#include <string.h>

#include "../../integer_internal.h"
#include "kernels.h"
#include "matmul.h"
#include "precision.h"
#include "../machine/prefetch.h"

enum {
    PACK_ROWS = 64,      /* of b, packed by one block; even                         */
    SOME_ROWS = 16,      /* of a transposed a, packed at once; even                 */
    LEAST_TILES = 2, TILES = 8,   /* high is a block of rows                        */
    BLOCK_BYTES = 512 << 10,   /* of a in a block, more than one tile at most; of the L2 cache */
    ROW_BLOCKS = 16,     /* at least, if there are rows enough                      */
    BLOCKS = 32,         /* at least, by columns then: threads end nearly together  */
    KEPT_BYTES = 1 << 20,      /* of panels that may still be in the second-level cache when they
                                  are read, if a step of its own packs them */
    SPREAD = 1024,       /* bytes between rows, whose power of two is no greater: no more than four
                            of a tile's rows share a set of the first-level cache   */
    PADDING = 32         /* between copied rows, so that they spread over the sets  */
};

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuMatmulExtents     e;
    int64_t  b_count, b_matrices;
    bool     transposed;             /* a                                                */
    bool     copied;                 /* rows of a, before tiles read them                */
    bool     packs;                  /* each panel of b where it is used, no earlier step */
    int64_t  padded, depth;          /* N and K, rounded up to whole registers and pairs */
    int64_t  tiles;                  /* high is a block of rows, at most                 */
    int64_t  row_blocks, column_blocks, panels;
    const char *packed;
    float   *bias;                   /* with scales and shifts after it */
    bool     scales;
    char    *panel;                  /* of b, if packed here, per thread       */
    char    *x;                      /* rows of a block, all parts, per thread */
    int64_t  panel_bytes, x_stride, x_part, x_bytes;
    /* Of a that is transposed, whose x are panels of `chunk` rows along K: per thread a few of a's
     * rows in parts, and unless the result takes them the sums of a block, of the last pass and of
     * those before, whose terms are small. */
    int64_t  chunk;
    char    *rows;
    float   *sums;
    int64_t  row_bytes, sums_count;
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

CornuMatmulExtents cornu__matmul_extents(const CornuOpCall *op, const CornuType *out_type)
{
    const CornuShape   a = op->in[0].shape, b = op->in[1].shape;
    const bool         transpose_a = op->attributes->matmul.transpose_a;
    const bool         transpose_b = op->attributes->matmul.transpose_b;
    const int64_t     *last_a = a.extent + a.rank - 2, *last_b = b.extent + b.rank - 2;
    CornuMatmulExtents e = { .batch = 1, .m = last_a[transpose_a], .n = last_b[!transpose_b],
                             .k = last_a[!transpose_a] };
    e.a_row = transpose_a ? 1 : e.k;
    e.a_column = transpose_a ? e.m : 1;
    e.b_row = transpose_b ? 1 : e.n;
    e.b_column = transpose_b ? e.k : 1;
    for (int i = 0; i < out_type->shape.rank - 2; i++) e.batch *= out_type->shape.extent[i];
    e.a_batch = a.rank > 2 ? e.m * e.k : 0;
    e.b_batch = b.rank > 2 ? e.k * e.n : 0;
    if (!e.b_batch && !transpose_a) {
        e.m *= e.batch;
        e.batch = 1;
    }
    return e;
}

/* Sums of a transposed a are the result itself: f32, in whole registers. */
static bool sums_in_place(const Matmul *p, const CornuType *out_type)
{
    return out_type->dtype == CORNU_F32 && p->padded == p->e.n && p->how.passes == 1;
}

static void cut(Matmul *p)
{
    p->tiles = p->e.m / p->products->tile_rows * p->e.batch / ROW_BLOCKS;
    p->tiles = larger(LEAST_TILES, smaller(p->tiles, TILES));
    if (!p->transposed && p->e.k > 0)
        p->tiles = larger(1, smaller(p->tiles, BLOCK_BYTES / tile_bytes(p)));
    if (p->packs) p->tiles = ceil_divide(p->e.m, p->products->tile_rows);
    p->row_blocks = ceil_divide(p->e.m, block_rows(p));
    const int64_t row_blocks = larger(1, p->e.batch * p->row_blocks);
    p->column_blocks = p->transposed ? ROW_BLOCKS / row_blocks   /* each packs its part of a */
                                     : ceil_divide(BLOCKS, row_blocks);
    p->column_blocks = larger(1, smaller(p->panels, p->column_blocks));
}

static void find_blocks(Matmul *p, const CornuOpCall *op, const CornuType *out_type,
                        CornuMultiplier multiplier)
{
    p->e = cornu__matmul_extents(op, out_type);
    p->b_count = cornu_shape_count(op->in[1].shape);
    p->b_matrices = p->e.b_batch ? p->e.batch : 1;
    p->transposed = op->attributes->matmul.transpose_a;
    p->how = cornu__multiplication(multiplier, op->in[0].dtype);
    p->products = p->how.products;
    p->padded = ceil_divide(p->e.n, p->products->lanes) * p->products->lanes;
    p->depth = ceil_divide(p->e.k, p->products->depth) * p->products->depth;
    p->panels = ceil_divide(p->padded, panel_columns(p));
    const int64_t apart = p->e.k * (int64_t)p->products->size;   /* bytes between rows */
    p->copied = !p->how.in_place || (apart & -apart) > SPREAD;
    p->x_stride = p->copied ? ceil_divide(p->e.k, PADDING) * PADDING + PADDING : p->e.k;
    cut(p);
}

/* Of all panels of one matrix b. */
static int64_t matrix_bytes(const Matmul *p)
{
    return p->how.parts * p->depth * p->padded * (int64_t)p->products->size;
}

/* Whether all rows are one block, which alone uses a panel, and the panels would not stay in the
 * cache from a step that packs them to this one. Shards share theirs. */
static bool packs_itself(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    Matmul p = { .packs = false };
    find_blocks(&p, op, out_type, machine->multiplier);
    return !p.transposed && p.b_matrices == 1 && p.e.batch == 1 && p.how.in_place &&
           machine->shards <= 1 && p.e.m <= TILES * p.products->tile_rows &&
           matrix_bytes(&p) > KEPT_BYTES;
}

/* Where a is transposed: K in equal stretches of whole pairs, what a block reads of a in each fits
 * BLOCK_BYTES. */
static void find_chunks(Matmul *p, const CornuType *out_type)
{
    const int64_t size = (int64_t)p->products->size, parts = p->how.parts;
    const int64_t most = BLOCK_BYTES / (parts * size * block_rows(p)) / p->products->depth;
    const int64_t pairs = p->depth / p->products->depth;
    p->chunk = ceil_divide(pairs, larger(1, ceil_divide(pairs, most))) * p->products->depth;
    p->x_part = block_rows(p) * p->chunk;
    p->row_bytes = SOME_ROWS * parts * block_rows(p) * size;
    if (!sums_in_place(p, out_type)) p->sums_count = 2 * block_rows(p) * block_columns(p);
}

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
static size_t lay_out(Matmul *p, const CornuOpCall *op, const CornuType *out_type,
                      const CornuMachine *machine, char *scratch)
{
    find_blocks(p, op, out_type, machine->multiplier);
    const size_t threads = (size_t)machine->threads, parts = (size_t)p->how.parts;
    const size_t bias = align(3 * (size_t)p->padded * sizeof(float));
    p->x_part = p->copied ? block_rows(p) * p->x_stride : 0;
    p->row_bytes = p->sums_count = 0;
    if (p->transposed) find_chunks(p, out_type);
    p->panel_bytes = p->packs ? panel_columns(p) * p->depth * (int64_t)p->products->size : 0;
    p->x_bytes = (int64_t)align(parts * (size_t)p->x_part * p->products->size);
    p->row_bytes = (int64_t)align((size_t)p->row_bytes);
    if (scratch) {
        p->bias = (float *)(void *)scratch;
        p->panel = scratch += bias;
        p->x = scratch += threads * (size_t)p->panel_bytes;
        p->rows = scratch += threads * (size_t)p->x_bytes;
        p->sums = (float *)(void *)(scratch + threads * (size_t)p->row_bytes);
    }
    return bias + threads * ((size_t)(p->panel_bytes + p->x_bytes + p->row_bytes) +
                             (size_t)p->sums_count * sizeof(float));
}

static size_t matmul_scratch(const CornuOpCall *op, const CornuType *out_type,
                             const CornuMachine *machine)
{
    Matmul p = { .packs = packs_itself(op, out_type, machine) };
    return lay_out(&p, op, out_type, machine, NULL);
}

/* ---- b ---- */

typedef struct {
    Matmul      matmul;
    const void *b;          /* its parts, one after the other */
    char       *packed;
} Pack;

static size_t panels_bytes(const Matmul *p)
{
    return align((size_t)(p->b_matrices * matrix_bytes(p)));
}

/* After the panels there is space for the parts of b. */
static size_t pack_bytes(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    Matmul p = { .packs = false };
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

/* `count` rows of one part of b, from k on, into the panel of column `first`; `from` is the first
 * of them there. */
static void pack_panel(const Matmul *p, char *panel, int64_t part, int64_t first, int64_t k,
                       int64_t count, const void *from)
{
    const int64_t width = panel_width(p, first);
    p->products->pack(panel, width, part * p->depth + k, count, from, p->e.b_row, p->e.b_column,
                      smaller(width, p->e.n - first));
    if (k + count == p->e.k && p->depth > p->e.k)   /* the odd one's other half */
        p->products->pack(panel, width, part * p->depth + p->e.k, 1, from, 0, 0, 0);
}

/* Some rows of one part of one matrix b into all its panels. */
static void pack_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    const Pack   *pack = context;
    const Matmul *p = &pack->matmul;
    const int64_t blocks = ceil_divide(p->e.k, PACK_ROWS);
    const int64_t k = block % blocks * PACK_ROWS, count = smaller(PACK_ROWS, p->e.k - k);
    const int64_t part = block / blocks % p->how.parts;
    const int64_t matrix = block / blocks / p->how.parts;
    const int64_t from = part * p->b_count + matrix * p->e.b_batch + k * p->e.b_row;
    for (int64_t first = 0; first < p->padded; first += panel_columns(p))
        pack_panel(p, pack->packed + panel_offset(p, matrix, first), part, first, k, count,
                   cornu__element(&p->how, pack->b, from + first * p->e.b_column));
}

static void pack(const CornuKernelCall *call)
{
    Pack pack = { .packed = call->out[0] };
    find_blocks(&pack.matmul, &call->op, call->out_type, call->multiplier);
    const Matmul *p = &pack.matmul;
    pack.b = cornu__all_parts(&p->how, call->threads, call->in[1], p->b_count,
                              pack.packed + panels_bytes(p));
    cornu__threads_run(call->threads, p->b_matrices * p->how.parts * ceil_divide(p->e.k, PACK_ROWS),
                       pack_rows, &pack);
}

/* ---- The product ---- */

/* The part of one block. */
typedef struct {
    int64_t matrix, m, m_end, first, end;   /* rows and columns */
} Block;

static Block block_of(const Matmul *p, int64_t block)
{
    const int64_t columns = block % p->column_blocks, rest = block / p->column_blocks;
    const int64_t rows = rest % p->row_blocks, matrix = rest / p->row_blocks;
    const int64_t begin = columns * p->panels / p->column_blocks;
    const int64_t end = (columns + 1) * p->panels / p->column_blocks;
    return (Block){ matrix, rows * p->e.m / p->row_blocks, (rows + 1) * p->e.m / p->row_blocks,
                    begin * panel_columns(p), smaller(end * panel_columns(p), p->padded) };
}

/* The number of an element of the result. */
static int64_t element(const Matmul *p, int64_t matrix, int64_t m, int64_t n)
{
    return (matrix * p->e.m + m) * p->e.n + n;
}

static char *result(const Matmul *p, int64_t matrix, int64_t m, int64_t n)
{
    const int64_t size = p->call->out_type->dtype == CORNU_BF16 ? 2 : 4;
    return (char *)p->call->out[0] + element(p, matrix, m, n) * size;
}

/* What of the epilogue is left, which only f32 results have, to the rows of a block from y on. */
static void finish(const Matmul *p, const Block *b, const CornuEpilogue *rest, float *y,
                   int64_t stride)
{
    cornu__epilogue_apply(rest, &(CornuEpilogueRows){
        .y = y, .rows = b->m_end - b->m, .columns = smaller(b->end, p->e.n) - b->first,
        .stride = stride, .first = element(p, b->matrix, b->m, b->first),
        .width = p->e.n });
}

/* Rows of a block as tiles take them, their parts x_part elements apart. */
static const void *rows_of_a(const Matmul *p, const Block *b, int thread)
{
    const int64_t first = b->matrix * p->e.a_batch + b->m * p->e.k;
    if (!p->copied) return cornu__in_memory(&p->how, p->call->in[0], first);
    char *made = p->x + thread * p->x_bytes;
    for (int64_t row = 0; row < b->m_end - b->m; row++)
        cornu__parts(&p->how, p->call->in[0], first + row * p->e.k, p->e.k,
                     made + row * p->x_stride * (int64_t)p->products->size, p->x_part);
    return made;
}

/* The panel at column `first`, packed by now. */
static const char *panel_of(const Matmul *p, const Block *b, int64_t first, int thread)
{
    if (!p->packs) return p->packed + panel_offset(p, p->e.b_batch ? b->matrix : 0, first);
    char *panel = p->panel + thread * p->panel_bytes;
    pack_panel(p, panel, 0, first, 0, p->e.k,
               cornu__in_memory(&p->how, p->call->in[1], first * p->e.b_column));
    return panel;
}

static void multiply(void *context, int64_t block, int thread)
{
    const Matmul *p = context;
    const Block   b = block_of(p, block);
    const int64_t rows = b.m_end - b.m, tiles = ceil_divide(rows, p->products->tile_rows);
    int64_t       begin[TILES + 1];
    const float  *term = p->call->epilogue->term;
    const void   *x = rows_of_a(p, &b, thread);
    CornuRun      runs[CORNU_MOST_PASSES];
    for (int pass = 0; pass < p->how.passes; pass++)
        runs[pass] = (CornuRun){ p->how.pass[pass][0] * p->x_part,
                                 p->how.pass[pass][1] * p->depth, p->e.k };
    CornuTile tile = { .x_stride = p->x_stride, .runs = runs, .run_count = p->how.passes,
                       .y_stride = p->e.n,
                       .relu = p->call->epilogue->activation == CORNU_OP_RELU,
                       .narrow = p->call->out_type->dtype == CORNU_BF16 };
    for (int64_t t = 0; t <= tiles; t++) begin[t] = t * rows / tiles;
    for (int64_t first = b.first, width; first < b.end; first += width) {
        width = panel_width(p, first);
        tile.panel = panel_of(p, &b, first, thread);
        tile.bias = p->bias + first;
        if (p->scales) {
            tile.scale = tile.bias + p->padded;
            tile.shift = tile.scale + p->padded;
        }
        tile.vectors = (int)(width / p->products->lanes);
        tile.columns = (int)smaller(width, p->e.n - first);
        for (int64_t t = 0; t < tiles; t++) {
            tile.rows = (int)(begin[t + 1] - begin[t]);
            tile.x = cornu__element(&p->how, x, begin[t] * p->x_stride);
            tile.y = result(p, b.matrix, b.m + begin[t], first);
            if (term) tile.term = term + element(p, b.matrix, b.m + begin[t], first);
            p->products->tile(&tile);
        }
    }
    const CornuEpilogue rest = cornu__epilogue_after_tiles(p->call->epilogue);
    if (rest.activation != CORNU_OP_COUNT)
        finish(p, &b, &rest, (float *)(void *)result(p, b.matrix, b.m, b.first), p->e.n);
}

/* ---- a transposed ---- */

/* Where tile t of a block of `rows` rows begins. */
static int64_t tile_begin(const Matmul *p, int64_t rows, int64_t t)
{
    return t * rows / ceil_divide(rows, p->products->outer_rows);
}

/* `count` stretches of rows of a, far from each other. */
static void prefetch_rows(const Matmul *p, int64_t first, int64_t count, int64_t columns)
{
    const int64_t line = CORNU_LINE_BYTES / (p->how.from == CORNU_BF16 ? 2 : 4);
    for (int64_t i = 0; i < count; i++)
        for (int64_t m = 0; m < columns + line; m += line)
            __builtin_prefetch(cornu__in_memory(&p->how, p->call->in[0],
                                                first + i * p->e.m + smaller(m, columns - 1)));
}

/* Rows k to k_end of a, columns of the block, into panels of its tiles; that of the tile at row m
 * of the block stands at m chunk. */
static void pack_columns(const Matmul *p, const Block *b, int64_t k, int64_t k_end, int thread)
{
    const int64_t columns = b->m_end - b->m, begin = k;
    char         *rows = p->rows + thread * p->row_bytes, *x = p->x + thread * p->x_bytes;
    for (int64_t count; k < k_end; k += count) {
        const int64_t first = b->matrix * p->e.a_batch + k * p->e.m + b->m;
        count = smaller(SOME_ROWS, k_end - k);
        prefetch_rows(p, first + count * p->e.m, smaller(count, k_end - k - count), columns);
        for (int64_t i = 0; i < count && !p->how.in_place; i++)
            cornu__parts(&p->how, p->call->in[0], first + i * p->e.m, columns,
                         rows + i * columns * (int64_t)p->products->size, SOME_ROWS * columns);
        for (int64_t m = 0, t = 1, width; m < columns; m += width, t++) {
            width = tile_begin(p, columns, t) - m;
            for (int part = 0; part < p->how.parts; part++) {
                const void *from = p->how.in_place
                    ? cornu__in_memory(&p->how, p->call->in[0], first + m)
                    : cornu__element(&p->how, rows, part * SOME_ROWS * columns + m);
                char *panel = x + (part * p->x_part + m * p->chunk) * (int64_t)p->products->size;
                p->products->pack(panel, width, k - begin, count, from,
                                  p->how.in_place ? p->e.m : columns, 1, width);
                if ((k + count - begin) % p->products->depth)   /* the odd one's other half */
                    p->products->pack(panel, width, k + count - begin, 1, from, 0, 0, 0);
            }
        }
    }
}

/* Adds chunk k to k_end to the sums of the panel at column `first`. */
static void add_chunk(const Matmul *p, const Block *b, int64_t k, int64_t k_end, int64_t first,
                      int thread, float *sums, int64_t stride)
{
    const int64_t width = panel_width(p, first), rows = b->m_end - b->m;
    const char   *y = p->packed + panel_offset(p, p->e.b_batch ? b->matrix : 0, first);
    const char   *x = p->x + thread * p->x_bytes;
    CornuOuter    outer = { .y_pixel = width, .images = 1, .height = 1,
                            .width = ceil_divide(k_end - k, p->products->depth),
                            .sum_stride = stride, .vectors = (int)(width / p->products->lanes) };
    for (int64_t m = 0, t = 1; m < rows; m += outer.rows, t++) {
        outer.rows = (int)(tile_begin(p, rows, t) - m);
        outer.x_pixel = outer.rows;
        for (int pass = 0; pass < p->how.passes; pass++) {
            const int *part = p->how.pass[pass];
            const bool last = pass + 1 == p->how.passes;
            outer.sum = sums + ((last ? 0 : rows) + m) * stride + first - b->first;
            outer.add = k > 0 || (pass > 0 && !last);
            outer.x = cornu__element(&p->how, x, part[0] * p->x_part + m * p->chunk);
            outer.y = cornu__element(&p->how, y, (part[1] * p->depth + k) * width);
            p->products->outer(&outer);
        }
    }
}

static void copy_sums(const Matmul *p, const Block *b, const float *sums, int64_t stride)
{
    const int64_t used = smaller(b->end, p->e.n) - b->first;
    for (int64_t m = b->m; m < b->m_end; m++, sums += stride) {
        void *to = result(p, b->matrix, m, b->first);
        if (p->call->out_type->dtype == CORNU_BF16) cornu__bf16()->narrow(sums, used, to);
        else memcpy(to, sums, (size_t)used * sizeof(float));
    }
}

static void multiply_transposed(void *context, int64_t block, int thread)
{
    const Matmul *p = context;
    const Block   b = block_of(p, block);
    const bool    in_place = sums_in_place(p, p->call->out_type);
    const int64_t rows = b.m_end - b.m, stride = in_place ? p->e.n : b.end - b.first;
    float        *sums = in_place ? (void *)result(p, b.matrix, b.m, b.first)
                                  : p->sums + thread * p->sums_count;
    CornuEpilogue epilogue = *p->call->epilogue;
    int64_t       k = 0;
    do {   /* at least once: without terms the sums are zero */
        const int64_t k_end = smaller(p->e.k, k + p->chunk);
        pack_columns(p, &b, k, k_end, thread);
        for (int64_t first = b.first; first < b.end; first += panel_columns(p))
            add_chunk(p, &b, k, k_end, first, thread, sums, stride);
        k = k_end;
    } while (k < p->e.k);
    for (int64_t i = 0; p->how.passes > 1 && i < rows * stride; i++)
        sums[i] += sums[rows * stride + i];
    if (epilogue.bias) epilogue.bias = p->bias;
    finish(p, &b, &epilogue, sums, stride);
    if (!in_place) copy_sums(p, &b, sums, stride);
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    Matmul             p = { .call = call, .packed = call->in[1], .packs = !call->packed };
    const CornuMachine machine = cornu__machine_of(call);
    lay_out(&p, &call->op, call->out_type, &machine, call->scratch);
    cornu__biases(call->epilogue, call->out_type->dtype, p.e.n, p.padded, p.bias);
    p.scales = cornu__scales(call->epilogue, p.e.n, p.padded, p.bias + p.padded);
    cornu__threads_run(call->threads, p.e.batch * p.row_blocks * p.column_blocks,
                       p.transposed ? multiply_transposed : multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_matmul = {
    .accepts = cornu__product_accepts, .scratch = matmul_scratch, .run = matmul,
    .takes_epilogue = true, .takes_scale = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
    .packs_itself = packs_itself,
};
