/*
 * matmul: a (…, M, K) by b (…, K, N), f32 in, out and in the sums.
 *
 * Where b fits the second-level cache and M is more than a few rows, which is the case for dense
 * layers, the product is made of register tiles (product.h): b is packed into panels before, rows
 * of a are read where they stand, transposed or not. Everything else goes to serial BLIS.
 *
 * Work is cut into blocks by the shape alone, because BLIS' rounding may depend on the block an
 * element is in. A batch of a against one matrix b is one product with more rows.
 */
#include "../host/product.h"
#include "../integer_internal.h"
#include "blis.h"
#include "kernels.h"

enum {
    PANELS_BYTES = 1 << 20,    /* of packed b, at most                                     */
    FEW_ROWS = 8,              /* of a: fewer do not pay for the packing                   */
    PACK_ROWS = 64,            /* of b, packed by one block                                */
    TILES = 4,                 /* high is a block of rows                                  */
    LEAST = 256,               /* rows and columns of a block of BLIS, which packs anew in each */
    BLIS_BLOCKS = 8            /* of one matrix, at most                                   */
};

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_column, b_batch, b_row, b_column;
    bool    tiled, swapped;
    int64_t padded;               /* N, rounded up to whole registers */
    int64_t row_blocks, column_blocks;
    const float *panels;
    float  *bias;
} Matmul;

/* Rows of a block that is made transposed. */
static int64_t swapped_rows(const Matmul *p) { return TILES * 2 * p->products->lanes; }

/* Halves the longer side of the blocks: square ones are packed least. */
static void cut_for_blis(Matmul *p)
{
    p->row_blocks = p->column_blocks = 1;
    while (p->row_blocks * p->column_blocks < BLIS_BLOCKS) {
        const int64_t rows = p->m / p->row_blocks / 2, columns = p->n / p->column_blocks / 2;
        if (larger(rows, columns) < LEAST) return;
        if (rows >= columns) p->row_blocks *= 2;
        else p->column_blocks *= 2;
    }
}

static Matmul matmul_of(const CornuOpCall *op, const CornuType *out_type)
{
    const CornuShape a = op->in[0].shape, b = op->in[1].shape;
    const bool       transpose_a = op->attributes->matmul.transpose_a;
    const bool       transpose_b = op->attributes->matmul.transpose_b;
    const int64_t   *last_a = a.extent + a.rank - 2, *last_b = b.extent + b.rank - 2;
    Matmul           p = { .products = cornu__products(), .batch = 1 };
    p.m = last_a[transpose_a];
    p.k = last_a[!transpose_a];
    p.n = last_b[!transpose_b];
    p.a_row = transpose_a ? 1 : p.k;
    p.a_column = transpose_a ? p.m : 1;
    p.b_row = transpose_b ? 1 : p.n;
    p.b_column = transpose_b ? p.k : 1;
    for (int i = 0; i < out_type->shape.rank - 2; i++) p.batch *= out_type->shape.extent[i];
    p.a_batch = a.rank > 2 ? p.m * p.k : 0;
    p.b_batch = b.rank > 2 ? p.k * p.n : 0;
    if (!p.b_batch && !transpose_a) {
        p.m *= p.batch;
        p.batch = 1;
    }
    p.padded = ceil_divide(p.n, p.products->lanes) * p.products->lanes;
    p.tiled = p.batch == 1 && p.m >= FEW_ROWS &&
              (p.k + 1) * p.padded * (int64_t)sizeof(float) <= PANELS_BYTES;
    p.swapped = p.tiled && transpose_a && !transpose_b && p.n <= p.products->outer_rows &&
                p.m % p.products->lanes == 0;
    if (p.swapped) {
        p.row_blocks = ceil_divide(p.m, swapped_rows(&p));
        p.column_blocks = 1;
    } else if (p.tiled) {
        p.row_blocks = ceil_divide(p.m, TILES * p.products->tile_rows);
        p.column_blocks = 1;
    } else {
        cut_for_blis(&p);
    }
    return p;
}

static size_t matmul_scratch(const CornuOpCall *op, const CornuType *out_type,
                             const CornuMachine *machine)
{
    (void)machine;
    const Matmul p = matmul_of(op, out_type);
    return p.tiled ? (size_t)p.padded * sizeof(float) : 0;
}

static size_t pack_bytes(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    (void)machine;
    const Matmul p = matmul_of(op, out_type);
    return p.tiled && !p.swapped ? (size_t)(p.k * p.padded) * sizeof(float) : 0;
}

static int64_t panel_width(const Matmul *p, int64_t n)
{
    return smaller(2 * p->products->lanes, p->padded - n);
}

/* Some rows of b into all panels; row k of the panel at column n stands at n K + k width. */
static void pack_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const int64_t end = smaller(p->k, (block + 1) * PACK_ROWS);
    for (int64_t first = 0, width; first < p->padded; first += width) {
        width = panel_width(p, first);
        const int64_t used = smaller(width, p->n - first);
        for (int64_t k = block * PACK_ROWS; k < end; k++) {
            const float *from = (const float *)p->call->in[1] + k * p->b_row + first * p->b_column;
            float       *to = (float *)p->call->out[0] + first * p->k + k * width;
            for (int64_t n = 0; n < used; n++) to[n] = from[n * p->b_column];
            for (int64_t n = used; n < width; n++) to[n] = 0.0f;
        }
    }
}

static void pack(const CornuKernelCall *call)
{
    Matmul p = matmul_of(&call->op, call->out_type);
    p.call = call;
    cornu__threads_run(call->threads, ceil_divide(p.k, PACK_ROWS), pack_rows, &p);
}

/* Rows m to end against one panel; a's rows stand side by side only when it is transposed. */
static void tile_rows(const Matmul *p, int64_t m, int64_t end, int64_t first, int64_t width)
{
    const int64_t  tiles = ceil_divide(end - m, p->products->tile_rows), rows = end - m;
    const CornuRun run = { 0, 0, p->k };
    CornuTile      tile = {
        .x_stride = p->a_row, .runs = &run, .run_count = 1,
        .panel = p->panels + first * p->k, .bias = p->bias + first, .y_stride = p->n,
        .vectors = (int)(width / p->products->lanes), .columns = (int)smaller(width, p->n - first),
        .relu = p->call->epilogue->activation == CORNU_OP_RELU,
    };
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t at = m + t * rows / tiles;
        tile.rows = (int)(m + (t + 1) * rows / tiles - at);
        tile.x = (const float *)p->call->in[0] + at * p->a_row;
        tile.y = (float *)p->call->out[0] + at * p->n + first;
        p->products->tile(&tile);
    }
}

static void outer_rows(const Matmul *p, int64_t m, int64_t end, int64_t first, int64_t width)
{
    const int64_t tiles = ceil_divide(end - m, p->products->outer_rows), rows = end - m;
    const int64_t used = smaller(width, p->n - first);
    float         sums[32 * 64];
    CornuOuter    outer = {
        .y = p->panels + first * p->k, .x_pixel = p->a_column, .y_pixel = width,
        .images = 1, .height = 1, .width = p->k, .sum = sums, .sum_stride = width,
        .vectors = (int)(width / p->products->lanes),
    };
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t at = m + t * rows / tiles;
        float        *y = (float *)p->call->out[0] + at * p->n + first;
        outer.rows = (int)(m + (t + 1) * rows / tiles - at);
        outer.x = (const float *)p->call->in[0] + at;
        p->products->outer(&outer);
        for (int i = 0; i < outer.rows; i++)
            for (int64_t n = 0; n < used; n++) y[i * p->n + n] = sums[i * width + n];
    }
}

/* a' b for b of a few columns: made transposed, so that registers hold rows of a, which are long,
 * and nothing needs packing. */
static void multiply_swapped(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const int64_t begin = block * swapped_rows(p), end = smaller(p->m, begin + swapped_rows(p));
    float        *c = p->call->out[0];
    float         sums[32 * 32];
    CornuOuter    outer = {
        .x = p->call->in[1], .x_pixel = p->n, .y_pixel = p->m, .images = 1, .height = 1,
        .width = p->k, .sum = sums, .rows = (int)p->n,
    };
    for (int64_t m = begin, width; m < end; m += width) {
        width = smaller(2 * p->products->lanes, end - m);
        outer.y = (const float *)p->call->in[0] + m;
        outer.vectors = (int)(width / p->products->lanes);
        outer.sum_stride = width;
        p->products->outer(&outer);
        for (int64_t i = 0; i < width; i++)
            for (int64_t n = 0; n < p->n; n++) c[(m + i) * p->n + n] = sums[n * width + i];
    }
    cornu__epilogue_apply(p->call->epilogue, c + begin * p->n, end - begin, p->n, p->n, 0);
}

static void multiply_tiles(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const int64_t m = block * p->m / p->row_blocks, end = (block + 1) * p->m / p->row_blocks;
    const bool    transposed = p->a_row == 1 && p->k != 1;
    CornuEpilogue rest = *p->call->epilogue;
    if (!transposed) {
        rest.bias = NULL;
        if (rest.activation == CORNU_OP_RELU) rest.activation = CORNU_OP_COUNT;
    }
    for (int64_t first = 0, width; first < p->padded; first += width) {
        width = panel_width(p, first);
        if (transposed) outer_rows(p, m, end, first, width);
        else tile_rows(p, m, end, first, width);
    }
    cornu__epilogue_apply(&rest, (float *)p->call->out[0] + m * p->n, end - m, p->n, p->n, 0);
}

static void multiply_blis(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const int64_t column_block = block % p->column_blocks, rest = block / p->column_blocks;
    const int64_t row_block = rest % p->row_blocks, batch = rest / p->row_blocks;
    const int64_t m = row_block * p->m / p->row_blocks, n = column_block * p->n / p->column_blocks;
    const int64_t rows = (row_block + 1) * p->m / p->row_blocks - m;
    const int64_t columns = (column_block + 1) * p->n / p->column_blocks - n;
    const float  *a = (const float *)p->call->in[0] + batch * p->a_batch + m * p->a_row;
    const float  *b = (const float *)p->call->in[1] + batch * p->b_batch + n * p->b_column;
    float        *c = (float *)p->call->out[0] + (batch * p->m + m) * p->n + n;
    cornu__blis_sgemm(rows, columns, p->k, 1.0f, a, p->a_row, p->a_column, b, p->b_row,
                      p->b_column, 0.0f, c, p->n, 1);
    cornu__epilogue_apply(p->call->epilogue, c, rows, columns, p->n, n);
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    Matmul        p = matmul_of(&call->op, call->out_type);
    const int64_t blocks = p.batch * p.row_blocks * p.column_blocks;
    p.call = call;
    if (!p.tiled) {
        cornu__threads_run(call->threads, blocks, multiply_blis, &p);
        return CORNU_OK;
    }
    if (p.swapped) {
        cornu__threads_run(call->threads, blocks, multiply_swapped, &p);
        return CORNU_OK;
    }
    p.panels = call->in[1];
    p.bias = call->scratch;
    const float *bias = call->epilogue->bias;
    for (int64_t n = 0; n < p.padded; n++) p.bias[n] = bias && n < p.n ? bias[n] : 0.0f;
    cornu__threads_run(call->threads, blocks, multiply_tiles, &p);
    return CORNU_OK;
}

const CornuKernel cornu__cpu_matmul = {
    .scratch = matmul_scratch, .run = matmul, .takes_epilogue = true,
    .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
