/*
 * matmul: a (…, M, K) by b (…, K, N), bf16 or f32 in and out, f32 in the sums.
 *
 * b is packed in advance into panels two registers wide. Rows of a are read where they lie, or
 * copied by the block that reads them if they have to be converted (precision.h) or if those of a
 * tile would share few sets of the cache; but if a copy would meet few panels, tiles have as many
 * rows as these sets hold. Where K is long, a block goes through it in stretches: it copies its
 * rows of one, and all its tiles meet that part of a panel, which stays near while they request the
 * next one. Sums continue in memory from stretch to stretch, so that their terms are added in the
 * same order; with tile registers all passes of f32 advance together, as they share parts. Where a
 * is transposed, matmul_transposed.c has the block; but with tile registers all of a is made rows
 * at first.
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
 * Gain, Zen 3, AVX2, one core: K in stretches, 1024 x 4096 by 4096 x 4096 448 ms, then 412; panels
 *     packed where they are used in strips, 64 rows 42.2, then 32.7.
 * Gain, Xeon, AVX-512: rows a page apart not copied for few panels, an encoder's predictions (128 x
 *     1024 by 1024 x 256 and others), f32, one thread: 3.62 ms, then 3.43, two: 2.35, then 2.06;
 *     blocks of five tiles for two: 3.17, then 3.12, two: 1.90, then 1.81.
 * Gain, Xeon (model 207), f32, one core, of the limit: tiles request what comes next, and K is cut
 *     by the second-level cache; AVX-512, 1024 x 4096 by 4096 x 4096 74 %, then 84; 4096 x 256 by
 *     256 x 1024 74, then 85; AVX2, 1024 x 4096 by 4096 x 4096 52, then 81.
 * Gain, the same Xeon, f32, one core: rows of a that the next stretch needs requested, 4096 x 256
 *     by 256 x 1024 14.0 ms, then 13.6; 6400 x 512 by 512 x 128 5.6, then 5.3; an encoder's step,
 *     two threads, 182 ms, then 176.
 * Gain, the same Xeon, f32, two threads: longer stretches and higher blocks of tall tiles, 4096 x
 *     1024 by 1024 x 256 6.80 ms, then 6.15; 4096 x 256 by 256 x 1024 6.46, then 6.19.
 * Gain, Xeon with AMX, one core, f32 in six passes: passes in turns, in stretches of K, and b made
 *     parts piece by piece, 1024 x 4096 by 4096 x 4096 626 ms, then 257; b transposed 723, then
 *     270; 4096 x 1024 (a transposed) by 1024 x 4096 335, then 222; 64 x 4096 by 4096 x 4096 88,
 *     then 49.
 * Gain, Xeon with AMX, two threads: a transposed a made rows, with tiles that stay configured a
 *     step of the LSTM at 128 x 100 on 8 shards: 762 ms, then 286.
 */
#include <string.h>

#include "../../inference_internal.h"
#include "../machine/cpu.h"
#include "../isa/transpose.h"
#include "../machine/prefetch.h"
#include "kernels.h"
#include "matmul_internal.h"

enum {
    PACK_ROWS = 64,      /* of b, packed by one block; even                         */
    ROWS_AHEAD = 2,      /* of a are requested while a row is copied                */
    MOST_COLUMNS = 32,   /* of a panel                                              */
    PACKED = 8,          /* panels of a block, where it packs them itself, at most  */
    LEAST_TILES = 2, TILES = 8,   /* high is a block of rows,                       */
    SLOW_TILES = 5,      /* of registers that are not AMX's, at least: they read panels less often
                            from the second-level cache                             */
    MOST_TILES = 16,     /* where K is cut, and of tall tiles                       */
    SUMMED_TILES = 4,    /* where results of several shards are added up: in the cache */
    ROW_BLOCKS = 16,     /* at least, if there are rows enough                      */
    BLOCKS = 32,         /* at least, by columns then: threads end nearly together  */
    KEPT_BYTES = 1 << 20,      /* of panels that may still be in the second-level cache when they
                                  are read, if a step of its own packs them */
    PANEL_PART = 32,     /* of the second-level cache, for a panel's rows of a stretch of K, */
    TALL_PANEL_PART = 16,   /* of f32 in tall tiles, which read a panel half as fast     */
    THREAD_BLOCKS = 4,   /* enough where each packs its part of a for all of its columns */
    WIDE_COLUMNS = 1024, /* of a block that packs or copies its part of a for all of them */
    SHORT_ROWS = 96,     /* of the result where K is not split further, by WIDE_COLUMNS   */
    OWN_ROW_BLOCKS = 3,  /* at most, each of which packs b: for more a step of its own is faster */
    SPLIT_TERMS = 512,   /* of a split's sums at least: writing and adding these costs */
    SPREAD = 1024,       /* bytes between rows, whose power of two is no greater: no more than four
                            of a tile's rows share a set of the first-level cache   */
    FEW_PANELS = 4,      /* that are not worth copying rows for                     */
    LEAST_ROWS = 10,     /* of a tile that keeps AVX-512 busy; fewer rows are copied */
    SPARE_WAYS = 2,      /* of a set, for the panel                                 */
    PAGE_BYTES = 4096,   /* also of a way of the first-level cache                  */
    TURNED = 64,         /* columns of a transposed a that are made rows at once    */
    PADDING = 32         /* between copied rows, so that they spread over the sets  */
};


/* Of the rows of a that one tile reads. */
static int64_t tile_bytes(const CornuMatmul *p)
{
    return p->how.parts * p->products->tile_rows * p->x_stride * (int64_t)p->products->size;
}

/* Columns that a block has at most. */
static int64_t block_columns(const CornuMatmul *p)
{
    return ceil_divide(p->panels, p->column_blocks) * cornu__panel_columns(p);
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

static bool is_f32(const CornuMatmul *p) { return p->products->depth == 1; }

/* Tiles that read a panel of f32 slowly enough for the second-level cache. */
static bool is_tall(const CornuMatmul *p) { return is_f32(p) && cornu__has_tall_tiles(p); }

/* Of a in a block. */
static int64_t most_bytes(const CornuMatmul *p)
{
    return is_tall(p) ? larger(CORNU_MATMUL_BYTES, cornu__cpu()->l2 / 2) : CORNU_MATMUL_BYTES;
}

/* Whether a block that copies its rows of a stretch meets too few panels with them. */
static bool copies_for_few(const CornuMatmul *p)
{
    const int64_t row_blocks = larger(1, ceil_divide(p->e.batch * p->e.m,
                                                     MOST_TILES * p->products->tile_rows));
    return p->panels <= FEW_PANELS * (ROW_BLOCKS / row_blocks);
}

/* K whole; or equal parts, of which a panel takes a part of the second-level cache, beside the rows
 * of a block and the next panel: where a panel of all K would take more, unless copied rows meet
 * few panels; of bf16, which reads less, where it does not fit the cache with a block's rows; and
 * where it is packed here, where it exceeds the first-level cache. The order of sums in several
 * passes is by pass. */
static int64_t stretch_of(const CornuMatmul *p)
{
    enum { UNIT = 32 };
    const int64_t size = p->how.parts * (int64_t)p->products->size;
    const int64_t panel = cornu__panel_columns(p) * size;
    const int64_t rows = TILES * p->products->tile_rows * size;
    const int64_t part = cornu__cpu()->l2 / (is_tall(p) ? TALL_PANEL_PART : PANEL_PART);
    const int64_t most = larger(UNIT, part / panel / UNIT * UNIT);
    const bool    fits = p->packs ? p->e.k * panel <= cornu__cpu()->l1d
                       : is_f32(p) && !copies_for_few(p)
                           ? p->e.k * panel <= part
                           : p->e.k * (panel + rows) <= cornu__cpu()->l2;
    if (p->transposed || (p->how.passes > 1 && !p->in_turns) || fits) return p->e.k;
    return ceil_divide(ceil_divide(p->e.k, ceil_divide(p->e.k, most)), UNIT) * UNIT;
}

/* Elements between rows of so many that are copied. */
static int64_t padded_row(int64_t count) { return ceil_divide(count, PADDING) * PADDING + PADDING; }

static bool is_stretched(const CornuMatmul *p) { return p->stretch < p->e.k; }

/* Rows of a panel that take three quarters of the first-level cache; of tall tiles, twice the part
 * that a stretch takes, so that fewer sums are continued in memory. */
static int64_t short_chunk(const CornuMatmul *p)
{
    const int64_t bytes = cornu__has_tall_tiles(p) ? 2 * cornu__cpu()->l2 / PANEL_PART
                                                   : cornu__cpu()->l1d * 3 / 4;
    return bytes / (cornu__panel_columns(p) * (int64_t)p->products->size);
}

/* Of a transposed a in short chunks: a block's part of a takes half of the second-level cache, and
 * blocks are wide, since each packs its part of a. Where the result has few blocks, K is split, by
 * the shape alone: the order of sums depends on it. */
static void cut_short(CornuMatmul *p)
{
    const int64_t size = (int64_t)p->products->size, depth = p->products->depth;
    const int64_t columns = ceil_divide(p->e.n, WIDE_COLUMNS);
    const int64_t large = larger(1, p->e.batch * ceil_divide(p->e.m, SHORT_ROWS) * columns);
    p->splits = larger(1, smaller(BLOCKS / large, p->e.k / SPLIT_TERMS));
    p->split_rows = larger(1, ceil_divide(p->e.k, p->splits * depth)) * depth;
    p->splits = larger(1, ceil_divide(p->e.k, p->split_rows));
    p->tiles = larger(LEAST_TILES, cornu__cpu()->l2 / 2 /
                                   (short_chunk(p) * p->products->outer_rows * size));
    p->row_blocks = ceil_divide(p->e.m, cornu__block_rows(p));
    const int64_t enough = p->threads ? THREAD_BLOCKS * p->threads : ROW_BLOCKS;
    p->column_blocks = smaller(ROW_BLOCKS, enough) /
                       larger(1, p->e.batch * p->row_blocks * p->splits);
    p->column_blocks = larger(1, smaller(p->panels, larger(columns, p->column_blocks)));
}

static void cut(CornuMatmul *p)
{
    p->splits = 1;
    p->split_rows = larger(1, p->e.k);
    if (p->short_chunks) {
        cut_short(p);
        return;
    }
    p->tiles = p->e.m / p->products->tile_rows * p->e.batch / ROW_BLOCKS;
    const bool fast = p->transposed || cornu__has_tile_registers(p->products);
    p->tiles = larger(fast ? LEAST_TILES : SLOW_TILES,
                      smaller(p->tiles, is_tall(p) ? MOST_TILES : TILES));
    if (!p->transposed && !is_stretched(p) && p->e.k > 0)
        p->tiles = larger(1, smaller(p->tiles, most_bytes(p) / tile_bytes(p)));
    if (is_stretched(p)) p->tiles = p->in_turns ? TILES : MOST_TILES;   /* of several parts */
    if (p->packs) p->tiles = ceil_divide(p->e.m, p->products->tile_rows);
    if (p->summed) p->tiles = SUMMED_TILES;
    p->row_blocks = ceil_divide(p->e.m, cornu__block_rows(p));
    const int64_t row_blocks = larger(1, p->e.batch * p->row_blocks);
    const bool    copies = is_stretched(p) && (is_f32(p) || p->in_turns);   /* rows of a, so blocks
                                                                               are wide */
    p->column_blocks = p->transposed && !p->summed
                     ? ROW_BLOCKS / row_blocks   /* each packs its part of a */
                     : ceil_divide(copies ? ROW_BLOCKS : BLOCKS, row_blocks);
    if (copies) p->column_blocks = larger(p->column_blocks, ceil_divide(p->e.n, WIDE_COLUMNS));
    if (p->packs) p->column_blocks = larger(p->column_blocks, ceil_divide(p->panels, PACKED));
    p->column_blocks = larger(1, smaller(p->panels, p->column_blocks));
}

/* Where rows are copied for their sets alone, and would be again for every few panels: tiles of as
 * many rows as stay in the first-level cache without that. */
static void avoid_copies(CornuMatmul *p, int64_t spread)
{
    const int64_t ways = cornu__cpu()->l1d / PAGE_BYTES - SPARE_WAYS;
    const int64_t rows = smaller(p->products->tile_rows, ways * PAGE_BYTES / larger(1, spread));
    if (!p->copied || p->transposed || !p->how.in_place || is_stretched(p) || rows < LEAST_ROWS ||
        cornu__has_tile_registers(p->products) || p->panels > FEW_PANELS * p->column_blocks)
        return;
    p->copied = false;
    p->x_stride = p->a_row;
    p->tile_rows = rows;
}

void cornu__matmul_find_blocks(CornuMatmul *p, const CornuOpCall *op, const CornuType *out_type,
                        CornuMultiplier multiplier)
{
    p->e = cornu__matmul_extents(op, out_type);
    p->b_count = cornu_shape_count(op->in[1].shape);
    p->b_matrices = p->e.b_batch ? p->e.batch : 1;
    p->how = cornu__multiplication(multiplier, op->in[0].dtype);
    p->products = p->how.products;
    p->turned = op->attributes->matmul.transpose_a && !p->summed &&
                cornu__has_tile_registers(p->products);
    p->transposed = op->attributes->matmul.transpose_a && !p->turned;
    p->in_turns = p->how.passes > 1 && !p->transposed && cornu__has_tile_registers(p->products);
    p->by_rows = p->transposed && cornu__has_tile_registers(p->products);
    p->a_row = p->turned ? padded_row(p->e.k) : p->e.k;
    if (p->turned && p->e.a_batch) p->e.a_batch = p->e.m * p->a_row;
    p->padded = ceil_divide(p->e.n, p->products->lanes) * p->products->lanes;
    p->depth = ceil_divide(p->e.k, p->products->depth) * p->products->depth;
    p->panels = ceil_divide(p->padded, cornu__panel_columns(p));
    const int64_t apart = p->e.k * (int64_t)p->products->size;   /* bytes between rows */
    p->stretch = stretch_of(p);
    p->copied = !p->how.in_place ||
                (!p->turned && (is_stretched(p) || (apart & -apart) > SPREAD));
    p->x_stride = p->copied ? padded_row(p->stretch) : p->a_row;
    p->short_chunks = p->transposed && !p->summed && p->how.passes == 1 && is_f32(p);
    p->tile_rows = p->products->tile_rows;
    cut(p);
    avoid_copies(p, apart & -apart);
}

/* Of all panels of one matrix b. */
static int64_t matrix_bytes(const CornuMatmul *p)
{
    return p->how.parts * p->depth * p->padded * (int64_t)p->products->size;
}

/* Whether all rows are one block, which alone uses a panel, and the panels would not stay in the
 * cache from a step that packs them to this one; of a transposed a, few blocks, which have a panel
 * in the nearest cache. Shards share theirs. */
static bool packs_itself(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    CornuMatmul p = { .packs = false };
    cornu__matmul_find_blocks(&p, op, out_type, machine->multiplier);
    if ((!p.how.in_place && !p.in_turns) || machine->shards > 1) return false;
    if (p.transposed) return p.short_chunks && p.row_blocks <= OWN_ROW_BLOCKS;
    return p.b_matrices == 1 && p.e.batch == 1 &&
           p.e.m <= MOST_TILES * p.products->tile_rows &&
           matrix_bytes(&p) > KEPT_BYTES;
}

/* Where a is transposed: K, or a split of it, in equal stretches of whole pairs, either short ones
 * or so that what a block reads of a fits CORNU_MATMUL_BYTES. */
static void find_chunks(CornuMatmul *p, const CornuType *out_type)
{
    const int64_t size = (int64_t)p->products->size, parts = p->how.parts;
    const int64_t rows = p->short_chunks
        ? short_chunk(p) : CORNU_MATMUL_BYTES / (parts * size * cornu__block_rows(p));
    const int64_t most = rows / p->products->depth;
    const int64_t pairs = ceil_divide(p->split_rows, p->products->depth);
    p->chunk = ceil_divide(pairs, larger(1, ceil_divide(pairs, most))) * p->products->depth;
    p->x_part = cornu__block_rows(p) * p->chunk;
    p->row_bytes = CORNU_MATMUL_SOME_ROWS * parts * cornu__block_rows(p) * size;
    if (p->splits == 1 && !cornu__matmul_sums_in_place(p, out_type))
        p->sums_count = 2 * cornu__block_rows(p) * block_columns(p);
}

static size_t turned_bytes(const CornuMatmul *p, const CornuOpCall *op)
{
    const int64_t matrices = p->e.a_batch ? p->e.batch : 1;
    const size_t  elements = p->turned ? (size_t)(matrices * p->e.m * p->a_row) : 0;
    return cornu__aligned(elements * cornu_dtype_size(op->in[0].dtype));
}

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
size_t cornu__matmul_lay_out(CornuMatmul *p, const CornuOpCall *op, const CornuType *out_type,
                      const CornuMachine *machine, char *scratch)
{
    p->threads = machine->threads;
    cornu__matmul_find_blocks(p, op, out_type, machine->multiplier);
    const size_t threads = (size_t)machine->threads, parts = (size_t)p->how.parts;
    const size_t bias = cornu__aligned(3 * (size_t)p->padded * sizeof(float));
    p->x_part = p->copied ? cornu__block_rows(p) * p->x_stride : 0;
    p->row_bytes = p->sums_count = 0;
    if (p->transposed) find_chunks(p, out_type);
    else if (is_stretched(p) && !cornu__matmul_sums_in_place(p, out_type))
        p->sums_count = cornu__block_rows(p) * block_columns(p);
    if (p->summed) {   /* one chunk of each shard's rows at a time, in a row */
        p->chunk = p->by_rows ? padded_row(p->depth) : p->depth;
        p->x_part = cornu__block_rows(p) * p->chunk * p->summed;
        p->sums_count = (p->summed + 1) * cornu__panel_columns(p) *
                        larger(p->products->tile_rows, p->products->outer_rows);
    }
    if (p->packs)
        p->panel_bytes = p->transposed
            ? 2 * cornu__panel_columns(p) * p->chunk * (int64_t)p->products->size
            : block_columns(p) * p->how.parts * (int64_t)p->products->size *
              ceil_divide(p->stretch, p->products->depth) * p->products->depth;
    p->x_bytes = (int64_t)cornu__aligned(parts * (size_t)p->x_part * p->products->size);
    p->row_bytes = (int64_t)cornu__aligned((size_t)p->row_bytes);
    if (scratch) {
        p->bias = (float *)(void *)scratch;
        p->made = scratch += bias;
        p->panel = scratch += turned_bytes(p, op);
        p->x = scratch += threads * (size_t)p->panel_bytes;
        p->rows = scratch += threads * (size_t)p->x_bytes;
        p->sums = (float *)(void *)(scratch + threads * (size_t)p->row_bytes);
    }
    const size_t  made = turned_bytes(p, op);
    const int64_t split_sums = p->splits > 1 ? p->splits * p->e.batch * p->e.m * p->padded : 0;
    return bias + made + threads * (size_t)(p->panel_bytes + p->x_bytes + p->row_bytes) +
           (threads * (size_t)p->sums_count + (size_t)split_sums) * sizeof(float);
}

/* Whether b was packed by a step of its own is known only when the kernel runs. */
static size_t matmul_scratch(const CornuOpCall *op, const CornuType *out_type,
                             const CornuMachine *machine)
{
    CornuMatmul  own = { .packs = packs_itself(op, out_type, machine) }, given = { .packs = false };
    const size_t bytes = cornu__matmul_lay_out(&own, op, out_type, machine, NULL);
    const size_t less = cornu__matmul_lay_out(&given, op, out_type, machine, NULL);
    return bytes > less ? bytes : less;
}

/* ---- b ---- */

static size_t panels_bytes(const CornuMatmul *p)
{
    return cornu__aligned((size_t)(p->b_matrices * matrix_bytes(p)));
}

size_t cornu__matmul_pack_bytes(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    CornuMatmul p = { .packs = false };
    cornu__matmul_find_blocks(&p, op, out_type, machine->multiplier);
    return panels_bytes(&p);
}

/* A piece of b: `count` rows from row k on, the columns of the panel at column `first`. */
typedef struct {
    int64_t first, k, count;
    int64_t at;   /* the number of its first element in memory */
} Piece;

/* Its parts into rows from `to` on of those of a panel, which are `depth` rows apart. Whatever is
 * adjacent in memory becomes parts together. */
static void pack_parts(const CornuMatmul *p, char *panel, int64_t depth, int64_t to,
                       const Piece *piece)
{
    _Alignas(CORNU_LINE_BYTES) float parts[CORNU_MOST_PARTS * PACK_ROWS * MOST_COLUMNS];
    const int64_t width = cornu__panel_width(p, piece->first);
    const int64_t columns = smaller(width, p->e.n - piece->first);
    const bool    by_columns = p->e.b_row == 1;
    const int64_t lines = by_columns ? columns : piece->count;
    const int64_t length = by_columns ? piece->count : columns;
    const int64_t step = by_columns ? p->e.b_column : p->e.b_row, part = PACK_ROWS * MOST_COLUMNS;
    for (int64_t i = 0; i < lines; i++)
        cornu__parts(&p->how, p->call->in[1], piece->at + i * step, length,
                     (char *)parts + i * length * (int64_t)p->products->size, part);
    for (int i = 0; i < p->how.parts; i++)
        p->products->pack(panel, width, i * depth + to, piece->count,
                          cornu__element(&p->how, parts, i * part), by_columns ? 1 : length,
                          by_columns ? length : 1, columns);
}

/* A piece into rows from `to` on of the panel. */
static void pack_panel(const CornuMatmul *p, char *panel, int64_t depth, int64_t to, Piece piece)
{
    const int64_t width = cornu__panel_width(p, piece.first), end = piece.k + piece.count;
    const int64_t end_to = to + piece.count;
    if (p->how.in_place)
        p->products->pack(panel, width, to, piece.count,
                          cornu__in_memory(&p->how, p->call->in[1], piece.at), p->e.b_row,
                          p->e.b_column, smaller(width, p->e.n - piece.first));
    else
        for (; piece.k < end; piece.k += PACK_ROWS, to += PACK_ROWS) {
            piece.count = smaller(PACK_ROWS, end - piece.k);
            pack_parts(p, panel, depth, to, &piece);
            piece.at += PACK_ROWS * p->e.b_row;
        }
    if (end < p->e.k || p->depth == p->e.k) return;
    for (int i = 0; i < p->how.parts; i++)   /* the odd one's other half */
        p->products->pack(panel, width, i * depth + end_to, 1, p->call->in[1], 0, 0, 0);
}

/* Rows that a block packs, and panels that they go into: a few rows into all of them; or where rows
 * of b are columns in memory, all rows into one, which reads its columns from end to end, in place
 * of a part of every page of b. */
static int64_t rows_packed(const CornuMatmul *p) { return p->e.b_row == 1 ? p->e.k : PACK_ROWS; }

static int64_t panels_packed(const CornuMatmul *p) { return p->e.b_row == 1 ? 1 : p->panels; }

static void pack_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const CornuMatmul *p = context;
    const int64_t      row_blocks = ceil_divide(p->e.k, rows_packed(p));
    const int64_t      blocks = row_blocks * (p->panels / panels_packed(p));
    const int64_t      k = block % row_blocks * rows_packed(p), matrix = block / blocks;
    const int64_t      begin = block % blocks / row_blocks * cornu__panel_columns(p);
    const int64_t      end = begin + panels_packed(p) * cornu__panel_columns(p);
    const int64_t      count = smaller(rows_packed(p), p->e.k - k);
    const int64_t      from = matrix * p->e.b_batch + k * p->e.b_row;
    for (int64_t n = begin; n < smaller(end, p->padded); n += cornu__panel_columns(p))
        pack_panel(p, (char *)p->call->out[0] + cornu__panel_offset(p, matrix, n), p->depth, k,
                   (Piece){ n, k, count, from + n * p->e.b_column });
}

void cornu__matmul_pack(const CornuKernelCall *call)
{
    CornuMatmul p = { .call = call };
    cornu__matmul_find_blocks(&p, &call->op, call->out_type, call->multiplier);
    if (p.e.k == 0) return;
    cornu__threads_run(call->threads, p.b_matrices * ceil_divide(p.e.k, rows_packed(&p)) *
                       (p.panels / panels_packed(&p)), pack_block, &p);
}

/* ---- The product ---- */

/* What of the epilogue is left, which only f32 results have, to the rows of a block from y on. */
void cornu__matmul_finish(const CornuMatmul *p, const CornuBlock *b, const CornuEpilogue *rest,
                          float *y, int64_t stride)
{
    cornu__epilogue_apply(rest, &(CornuEpilogueRows){
        .y = y, .rows = b->m_end - b->m, .columns = smaller(b->end, p->e.n) - b->first,
        .stride = stride, .first = cornu__result_number(p, b->matrix, b->m, b->first),
        .width = p->e.n });
}

void cornu__matmul_gate(const CornuMatmul *p, const CornuBlock *b)
{
    for (int64_t m = b->m; m < b->m_end && p->call->epilogue->gate; m++)
        cornu__epilogue_gate(p->call->epilogue, p->call->out_type->dtype,
                             cornu__result_number(p, b->matrix, m, b->first),
                             smaller(b->end, p->e.n) - b->first,
                             cornu__result_at(p, b->matrix, m, b->first));
}

/* A stretch of K of a block. */
typedef struct {
    int64_t    block, k, count;
    CornuBlock b;
} Stretch;

static Stretch stretch_at(const CornuMatmul *p, int64_t block, int64_t k)
{
    return (Stretch){ block, k, smaller(p->stretch, p->e.k - k), cornu__block(p, block) };
}

/* The one that this thread takes next, as far as is known; without rows if there is none. */
static Stretch stretch_after(const CornuMatmul *p, const Stretch *now)
{
    const int64_t k = now->k + now->count, blocks = p->e.batch * p->row_blocks * p->column_blocks;
    if (k < p->e.k) return stretch_at(p, now->block, k);
    const int64_t next = cornu__threads_next(p->call->threads, blocks, now->block);
    return next < blocks ? stretch_at(p, next, 0) : (Stretch){ .block = -1 };
}

/* The number of the first element of a row of a stretch. */
static int64_t row_number(const CornuMatmul *p, const Stretch *now, int64_t row)
{
    return now->b.matrix * p->e.a_batch + (now->b.m + row) * p->a_row + now->k;
}

/* The rows of a stretch as tiles take them, their parts x_part elements apart. Rows are far from
 * each other, so that the processor does not read ahead. */
static const void *rows_of_a(const CornuMatmul *p, const Stretch *now, int thread)
{
    const int64_t rows = now->b.m_end - now->b.m;
    if (!p->copied) return cornu__in_memory(&p->how, p->a, row_number(p, now, 0));
    char *made = p->x + thread * p->x_bytes;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t ahead = row_number(p, now, smaller(row + ROWS_AHEAD, rows - 1));
        const char   *next = cornu__in_memory(&p->how, p->a, ahead);
        const char   *end = cornu__in_memory(&p->how, p->a, ahead + now->count);
        for (; next < end; next += CORNU_LINE_BYTES) cornu__prefetch(next, 0);
        cornu__parts(&p->how, p->a, row_number(p, now, row), now->count,
                     made + row * p->x_stride * (int64_t)p->products->size, p->x_part);
    }
    return made;
}

/* Of the rows of a that the next stretch needs, share i of n, to be requested while panel i of n is
 * multiplied; none where they are the rows of this one, by other columns. */
static CornuAheadRows share_of_next(const CornuMatmul *p, const Stretch *now, const Stretch *next,
                                    int64_t i, int64_t n)
{
    const int64_t rows = next->b.m_end - next->b.m, from = i * rows / n;
    const int64_t size = p->how.from == CORNU_BF16 ? 2 : 4;
    if (next->k == now->k && next->b.m == now->b.m && next->b.matrix == now->b.matrix)
        return (CornuAheadRows){ .rows = 0 };
    return cornu__ahead_rows(cornu__in_memory(&p->how, p->a, row_number(p, next, from)),
                             (i + 1) * rows / n - from, next->count * size, p->a_row * size);
}

/* What the tiles of a block have in common in a stretch: sums start with the bias, or continue; the
 * last ones are the results. */
typedef struct {
    Stretch     now, next;
    bool        last;
    const void *x;
    const char *panels;    /* from the block's first column on                */
    int64_t     depth;     /* rows of a part of each                          */
    int64_t     row;       /* the first of the stretch there                  */
    float      *sums;      /* of the block, between stretches                 */
    int64_t     stride;
} Common;

/* Rows of a panel, all parts. */
static int64_t panel_depth(const CornuMatmul *p, const Common *s)
{
    return p->how.parts * s->depth;
}

/* Finds the panels that are packed by now, or packs the stretch's rows of b, a few of all panels at
 * a time: neighbouring columns of a row share pages. */
static void find_panels(const CornuMatmul *p, int thread, Common *s)
{
    const CornuBlock *b = &s->now.b;
    s->depth = p->depth;
    s->row = s->now.k;
    s->panels = p->packed + cornu__panel_offset(p, p->e.b_batch ? b->matrix : 0, b->first);
    if (!p->packs) return;
    char *panels = p->panel + thread * p->panel_bytes;
    s->depth = ceil_divide(p->stretch, p->products->depth) * p->products->depth;
    s->row = 0;
    s->panels = panels;
    for (int64_t k = 0; k < s->now.count; k += PACK_ROWS)
        for (int64_t n = b->first; n < b->end; n += cornu__panel_columns(p))
            pack_panel(p, panels + (n - b->first) * panel_depth(p, s) * (int64_t)p->products->size,
                       s->depth, k,
                       (Piece){ n, s->now.k + k, smaller(PACK_ROWS, s->now.count - k),
                                (s->now.k + k) * p->e.b_row + n * p->e.b_column });
}

/* For a tile with registers of its own, which requests nothing itself. */
static void request_now(CornuAhead *ahead, int64_t lines)
{
    const int64_t each = ceil_divide(lines, ahead->sums.rows);
    while (ahead->sums.rows > 0) cornu__request(ahead, each);
}

/* A panel by all rows of the block. Meanwhile that stretch of the next panel is requested; where it
 * has several parts only the first, as requesting all is no faster. */
static void multiply_panel(const CornuMatmul *p, const Common *s, CornuTile *tile, int64_t first)
{
    const CornuBlock *b = &s->now.b;
    const int64_t rows = b->m_end - b->m, tiles = ceil_divide(rows, p->tile_rows);
    const int64_t columns = tile->vectors * p->products->lanes;
    const int64_t row = columns * (int64_t)p->products->size;
    const int64_t lines = s->now.count * row / CORNU_LINE_BYTES;
    const int64_t size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    const float  *term = s->last ? p->call->epilogue->term : NULL;
    float        *sums = s->sums + first - b->first;
    CornuAhead   *ahead = tile->ahead;
    const CornuAheadRows then =
        share_of_next(p, &s->now, &s->next, (first - b->first) / cornu__panel_columns(p),
                      ceil_divide(b->end - b->first, cornu__panel_columns(p)));
    *ahead = (CornuAhead){
        .rows = cornu__ahead_lines((const char *)tile->panel + (panel_depth(p, s) + s->row) * row,
                                   lines),
        .then = &then, .count = 1,
        .sums = { .bytes = columns * size, .stride = tile->y_stride * size } };
    cornu__ahead_pace(ahead, tiles * ceil_divide(s->now.count, p->products->depth),
                      CORNU_AHEAD_TERMS);
    tile->bias = p->bias + first;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * rows / tiles;
        tile->rows = (int)((t + 1) * rows / tiles - m);
        tile->x = cornu__element(&p->how, s->x, m * p->x_stride);
        tile->y = s->last ? (void *)cornu__result_at(p, b->matrix, b->m + m, first)
                          : sums + m * s->stride;
        if (s->now.k > 0) tile->bias = sums + m * s->stride;
        if (term) tile->term = term + cornu__result_number(p, b->matrix, b->m + m, first);
        cornu__request_sums(ahead, tile->y, m, tile->rows, t + 1 == tiles);
        if (is_stretched(p) && cornu__has_tile_registers(p->products))
            request_now(ahead, ceil_divide(lines, tiles));
        p->products->tile(tile);
    }
}

static void multiply_stretch(const CornuMatmul *p, const Common *s)
{
    const CornuBlock    *b = &s->now.b;
    const CornuEpilogue *epilogue = p->call->epilogue;
    CornuRun             runs[CORNU_MOST_PASSES];
    for (int pass = 0; pass < p->how.passes; pass++)
        runs[pass] = (CornuRun){ p->how.pass[pass][0] * p->x_part,
                                 p->how.pass[pass][1] * s->depth + s->row, s->now.count };
    CornuAhead ahead;
    CornuTile  tile = { .x_stride = p->x_stride, .runs = runs, .run_count = p->how.passes,
                        .bias_stride = s->now.k > 0 ? s->stride : 0,
                        .y_stride = s->last ? p->e.n : s->stride, .ahead = &ahead,
                        .in_turns = p->in_turns,
                        .relu = s->last && epilogue->activation == CORNU_OP_RELU,
                        .narrow = s->last && p->call->out_type->dtype == CORNU_BF16 };
    for (int64_t first = b->first, width; first < b->end; first += width) {
        width = cornu__panel_width(p, first);
        tile.panel = s->panels +
                     (first - b->first) * panel_depth(p, s) * (int64_t)p->products->size;
        if (p->scales && s->last) {
            tile.scale = p->bias + p->padded + first;
            tile.shift = tile.scale + p->padded;
        }
        tile.vectors = (int)(width / p->products->lanes);
        tile.columns = (int)(s->last ? smaller(width, p->e.n - first) : width);
        multiply_panel(p, s, &tile, first);
    }
}

static void multiply(void *context, int64_t block, int thread)
{
    const CornuMatmul *p = context;
    const CornuBlock   b = cornu__block(p, block);
    const bool in_place = cornu__matmul_sums_in_place(p, p->call->out_type);
    Common     s = { .sums = in_place ? (void *)cornu__result_at(p, b.matrix, b.m, b.first)
                                      : p->sums + thread * p->sums_count,
                     .stride = in_place ? p->e.n : b.end - b.first,
                     .next = stretch_at(p, block, 0) };
    do {   /* at least once: without terms the results are the epilogue's */
        s.now = s.next;
        s.next = stretch_after(p, &s.now);
        s.last = s.now.k + s.now.count == p->e.k;
        s.x = rows_of_a(p, &s.now, thread);
        find_panels(p, thread, &s);
        multiply_stretch(p, &s);
    } while (!s.last);
    const CornuEpilogue rest = cornu__epilogue_after_tiles(p->call->epilogue);
    if (rest.activation != CORNU_OP_COUNT)
        cornu__matmul_finish(p, &b, &rest,
                             (float *)(void *)cornu__result_at(p, b.matrix, b.m, b.first), p->e.n);
    cornu__matmul_gate(p, &b);
}

/* Some columns of one matrix a. */
static void turn(void *context, int64_t block, int thread)
{
    (void)thread;
    CornuMatmul  *p = context;
    const int64_t blocks = ceil_divide(p->e.m, TURNED), matrix = block / blocks;
    const int64_t m = block % blocks * TURNED, columns = smaller(TURNED, p->e.m - m);
    const int64_t from = matrix * p->e.m * p->e.k + m, to = (matrix * p->e.m + m) * p->a_row;
    if (p->how.from == CORNU_BF16)
        cornu__transposes()->halves((const uint16_t *)p->call->in[0] + from, p->e.m, p->e.k,
                                    columns, (uint16_t *)(void *)p->made + to, p->a_row);
    else
        cornu__transposes()->words((const uint32_t *)p->call->in[0] + from, p->e.m, p->e.k,
                                   columns, (uint32_t *)(void *)p->made + to, p->a_row);
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    const CornuMachine machine = cornu__machine_of(call);
    CornuMatmul        p = { .call = call, .a = call->in[0], .packed = call->in[1],
                             .packs = !call->packed &&   /* without terms nothing does */
                                      packs_itself(&call->op, call->out_type, &machine) };
    cornu__matmul_lay_out(&p, &call->op, call->out_type, &machine, call->scratch);
    cornu__biases(call->epilogue, call->out_type->dtype, p.e.n, p.padded, p.bias);
    p.scales = cornu__scales(call->epilogue, p.e.n, p.padded, p.bias + p.padded);
    if (p.turned) {
        cornu__threads_run(call->threads, (p.e.a_batch ? p.e.batch : 1) *
                           ceil_divide(p.e.m, TURNED), turn, &p);
        p.a = p.made;
    }
    if (p.transposed) cornu__matmul_transposed(&p);
    else
        cornu__threads_run(call->threads, p.e.batch * p.row_blocks * p.column_blocks, multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_matmul = {
    .accepts = cornu__product_accepts, .scratch = matmul_scratch, .run = matmul,
    .takes_epilogue = true, .takes_scale = true, .takes_gate = true,
    .pack_bytes = cornu__matmul_pack_bytes, .pack = cornu__matmul_pack, .packs = 1,
    .packs_itself = packs_itself, .summed = CORNU__FULL(&cornu__host_matmul_summed, NULL),
};
