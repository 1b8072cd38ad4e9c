/*
 * How cornu__host_matmul cuts a call into blocks, and lays out what they need: part of matmul.c.
 *
 * Blocks are cut by the shape and the machine, but where K is split, which decides the order of
 * sums, by the shape alone.
 *
 * Gain, Zen 4, bf16, two threads: 32 blocks for 19, 1024 x 1024 x 1024: 386 GFLOP/s, then 409.
 * Gain, Xeon, AVX-512: rows a page apart not copied for few panels, an encoder's predictions (128 x
 *     1024 by 1024 x 256 and others), f32, one thread: 3.62 ms, then 3.43, two: 2.35, then 2.06;
 *     blocks of five tiles for two: 3.17, then 3.12, two: 1.90, then 1.81.
 * Gain, Xeon (model 207), f32, two threads: longer stretches and higher blocks of tall tiles, 4096
 *     x 1024 by 1024 x 256 6.80 ms, then 6.15; 4096 x 256 by 256 x 1024 6.46, then 6.19.
 * Gain, Zen 3, AVX2, f32: high blocks, as many for each thread, and few of few rows; two threads,
 *     128 x 256 by 256 x 256 0.103 ms, then 0.097; 2048 x 192 by 192 x 768 3.39, then 3.29; an
 *     encoder's predictions, one thread 5.38 ms, then 5.10, two: 2.81, then 2.70.
 * Gain, Xeon with AMX (second-level caches of 2 MiB, a third level read at 12 GB/s a core), two
 *     threads, bf16, M x K x N, blocks about square: 1024 x 4096 x 4096 29.3 ms, then 25.1;
 *     b transposed 33.4, then 27.0; 12800 x 512 x 2048 25.3, then 21.3; which pack b themselves,
 *     512 x 12800 (a transposed) x 2048 41.1, then 25.3; 256 x 4096 (a transposed) x 1024 4.04,
 *     then 2.53.
 */
#include "../../inference_internal.h"
#include "../machine/cpu.h"
#include "kernels.h"
#include "matmul_internal.h"

enum {
    PACKED = 8,          /* panels of a block, where it packs them itself, at most  */
    LEAST_TILES = 2, TILES = 8,   /* high is a block of rows,                       */
    SLOW_TILES = 5,      /* of registers that are not AMX's, at least: they read panels less often
                            from the second-level cache                             */
    MOST_TILES = 16,     /* where K is cut, and of f32                              */
    SPARE_ROWS = 3,      /* between panels of a chunk, so that they spread over the sets */
    SUMMED_TILES = 4,    /* where results of several shards are added up: in the cache */
    ROW_BLOCKS = 16,     /* at least, if there are rows enough                      */
    BLOCKS = 32,         /* at least, by columns then, where each thread does not get as many:
                            threads end nearly together                             */
    SQUARE_COLUMNS = 512,      /* of a block of TILES tiles that is about square    */
    SMALL_TILES = 4,           /* of one where threads would have too few           */
    KEPT_BYTES = 1 << 20,      /* of panels that may still be in the second-level cache when they
                                  are read, if a step of its own packs them */
    PANEL_PART = 32,     /* of the second-level cache, for a panel's rows of a stretch of K, */
    TALL_PANEL_PART = 16,   /* of f32 in tall tiles, which read a panel half as fast     */
    THREAD_BLOCKS = 4,   /* of a thread are enough where each reads a for all of its columns */
    WIDE_COLUMNS = 1024, /* of a block that packs or copies its part of a for all of them */
    SHORT_ROWS = 96,     /* of the result where K is not split further, by WIDE_COLUMNS   */
    OWN_ROW_BLOCKS = 3,  /* at most, each of which packs b: for more a step of its own is faster */
    SPLIT_TERMS = 512,   /* of a split's sums at least: writing and adding these costs */
    SPREAD = 1024,       /* bytes between rows, whose power of two is no greater: no more than four
                            of a tile's rows share a set of the first-level cache   */
    SET_ROWS = 8,        /* of one tile, where a panel passes by, may share a set of that cache */
    FEW_TILES = 3,       /* that read a panel, which is not kept for them then      */
    FEW_PANELS = 4,      /* that are not worth copying rows for                     */
    LEAST_ROWS = 10,     /* of a tile that keeps AVX-512 busy; fewer rows are copied */
    SPARE_WAYS = 2,      /* of a set, for the panel                                 */
    PAGE_BYTES = 4096,   /* also of a way of the first-level cache                  */
    UNIT = 32,           /* elements of K that stretches are multiples of           */
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

/* Equal parts, at most so long. */
static int64_t equal_parts(int64_t k, int64_t most)
{
    return ceil_divide(ceil_divide(k, ceil_divide(k, most)), UNIT) * UNIT;
}

/* One tile of f32 high, so that panels are read once, by rows of a that stay in the second-level
 * cache. */
static bool is_low(const CornuMatmul *p)
{
    return is_f32(p) && !p->transposed && p->how.in_place && p->e.m <= p->products->tile_rows &&
           p->e.m * p->e.k * (int64_t)p->products->size <= cornu__cpu()->l2 / 4;
}

/* K whole where a panel takes no more than four thirds of the first-level cache; or equal parts, of
 * which one takes two thirds, so that it stays there while rows of a pass by. */
static int64_t square_stretch(const CornuMatmul *p, int64_t panel_row)
{
    const int64_t third = cornu__cpu()->l1d / 3 / panel_row;
    return p->e.k <= 4 * third ? p->e.k : equal_parts(p->e.k, larger(UNIT, 2 * third));
}

/* K whole; or equal parts, of which a panel takes a part of the second-level cache, beside the rows
 * of a block and the next panel: where a panel of all K would take more, unless copied rows meet
 * few panels; of bf16, which reads less, where it does not fit the cache with a block's rows; and
 * where it is packed here, where it exceeds the first-level cache. The order of sums in several
 * passes is by pass. */
static int64_t stretch_of(const CornuMatmul *p)
{
    const int64_t size = p->how.parts * (int64_t)p->products->size;
    const int64_t panel = cornu__panel_columns(p) * size;
    if (p->square) return square_stretch(p, panel);
    if (is_low(p)) return p->e.k;
    const int64_t rows = TILES * p->products->tile_rows * size;
    const int64_t part = cornu__cpu()->l2 / (is_tall(p) ? TALL_PANEL_PART : PANEL_PART);
    const int64_t most = larger(UNIT, part / panel / UNIT * UNIT);
    const bool    fits = p->packs ? p->e.k * panel <= cornu__cpu()->l1d
                       : is_f32(p) && !copies_for_few(p)
                           ? p->e.k * panel <= part
                           : p->e.k * (panel + rows) <= cornu__cpu()->l2;
    if (p->transposed || (p->how.passes > 1 && !p->in_turns) || fits) return p->e.k;
    return equal_parts(p->e.k, most);
}

/* Elements between rows of so many that are copied. */
static int64_t padded_row(int64_t count) { return ceil_divide(count, PADDING) * PADDING + PADDING; }

/* Rows of a panel that take three quarters of the first-level cache; of tall tiles, twice the part
 * that a stretch takes, so that fewer sums are continued in memory. */
static int64_t short_chunk(const CornuMatmul *p)
{
    const int64_t bytes = cornu__has_tall_tiles(p) ? 2 * cornu__cpu()->l2 / PANEL_PART
                                                   : cornu__cpu()->l1d * 3 / 4;
    return bytes / (cornu__panel_columns(p) * (int64_t)p->products->size);
}

/* Blocks that leave no thread waiting for long. */
static int64_t enough_blocks(const CornuMatmul *p)
{
    if (p->threads == 1) return 1;
    return p->threads ? THREAD_BLOCKS * p->threads : ROW_BLOCKS;
}

/* Whether blocks may be low: of a transposed a, which they pack, or of registers for tiles. */
static bool is_fast(const CornuMatmul *p)
{
    return p->transposed || cornu__has_tile_registers(p->products);
}

/* So many by columns, of a panel at least. */
static int64_t by_panels(const CornuMatmul *p, int64_t blocks)
{
    return larger(1, smaller(p->panels, blocks));
}

/* Equal stretches of whole pairs, at most so long, of K or of a split of it. */
static int64_t chunk_rows(const CornuMatmul *p, int64_t most)
{
    const int64_t depth = p->products->depth, pairs = ceil_divide(p->split_rows, depth);
    return ceil_divide(pairs, larger(1, ceil_divide(pairs, larger(1, most / depth)))) * depth;
}

/* Of a transposed a in short chunks: a block's part of a takes little more than half of the
 * second-level cache, so that 256 rows are one block on AVX2, and blocks are wide, since each packs
 * its part of a. Where the result has few blocks, K is split, by the shape alone: the order of sums
 * depends on it. */
static void cut_short(CornuMatmul *p)
{
    const int64_t size = (int64_t)p->products->size, depth = p->products->depth;
    const int64_t columns = ceil_divide(p->e.n, WIDE_COLUMNS);
    const int64_t large = larger(1, p->e.batch * ceil_divide(p->e.m, SHORT_ROWS) * columns);
    p->splits = larger(1, smaller(BLOCKS / large, p->e.k / SPLIT_TERMS));
    p->split_rows = larger(1, ceil_divide(p->e.k, p->splits * depth)) * depth;
    p->splits = larger(1, ceil_divide(p->e.k, p->split_rows));
    const int64_t tile = chunk_rows(p, short_chunk(p)) * p->products->outer_rows * size;
    p->tiles = larger(LEAST_TILES, cornu__cpu()->l2 * 9 / 16 / tile);
    p->row_blocks = ceil_divide(p->e.m, cornu__block_rows(p));
    const int64_t enough = smaller(ROW_BLOCKS, enough_blocks(p));
    const int64_t others = larger(1, p->e.batch * p->row_blocks * p->splits);
    p->column_blocks = by_panels(p, larger(columns, enough / others));
}

/* Tile registers multiply so fast that reading operands from beyond the second-level cache, each as
 * often as blocks are narrow, would take longer. Blocks about square read least; of such size their
 * sums, a stretch of their rows and panels that change stay in that cache. Those that pack their
 * panels have all rows, and keep these panels there, too. */
static void cut_square(CornuMatmul *p)
{
    const int64_t enough = enough_blocks(p), tile_rows = p->products->tile_rows;
    const int64_t columns = p->packs ? SQUARE_COLUMNS / 2 : SQUARE_COLUMNS;
    const int64_t wide = ceil_divide(p->e.n, columns);
    const int64_t high = p->e.batch * ceil_divide(p->e.m, TILES * tile_rows);
    p->tiles = p->packs ? MOST_TILES : high * wide < enough ? SMALL_TILES : TILES;
    p->row_blocks = ceil_divide(p->e.m, cornu__block_rows(p));
    const int64_t row_blocks = larger(1, p->e.batch * p->row_blocks);
    p->column_blocks = by_panels(p, larger(wide, ceil_divide(enough, row_blocks)));
}

/* Blocks of slow tiles are high, as each reads its panels from beyond the first-level cache, unless
 * columns alone would make too few. */
static int64_t tiles_of(const CornuMatmul *p)
{
    const int64_t high = ceil_divide(p->e.m, p->products->tile_rows) * p->e.batch;
    if (is_fast(p))
        return larger(LEAST_TILES, smaller(p->e.m / p->products->tile_rows * p->e.batch /
                                           ROW_BLOCKS, is_tall(p) ? MOST_TILES : TILES));
    return larger(SLOW_TILES, smaller(high / ceil_divide(enough_blocks(p),
                                                         larger(1, p->panels)),
                                      is_f32(p) ? MOST_TILES : TILES));
}

/* As many for each thread, if there are enough. */
static int64_t row_blocks_of(const CornuMatmul *p)
{
    const int64_t blocks = ceil_divide(p->e.m, cornu__block_rows(p)), threads = p->threads;
    if (is_fast(p) || p->e.batch > 1 || threads == 0 || blocks < threads) return blocks;
    return ceil_multiple(blocks, threads);
}

/* Blocks of a row of blocks. */
static int64_t columns_of(const CornuMatmul *p)
{
    const int64_t row_blocks = larger(1, p->e.batch * p->row_blocks);
    const bool    copies =   /* rows of a, so blocks are wide */
        cornu__is_stretched(p) && (is_f32(p) || p->in_turns);
    if (p->transposed && !p->summed) return ROW_BLOCKS / row_blocks;   /* each packs a part of a */
    int64_t columns = ceil_divide(copies ? ROW_BLOCKS : BLOCKS, row_blocks);
    const int64_t enough = ceil_divide(enough_blocks(p), row_blocks);
    if (!is_fast(p) && enough < columns && enough * row_blocks % larger(1, p->threads) == 0)
        columns = enough;
    if (copies) columns = larger(columns, ceil_divide(p->e.n, WIDE_COLUMNS));
    if (p->packs) columns = larger(columns, ceil_divide(p->panels, PACKED));
    return columns;
}

static void cut(CornuMatmul *p)
{
    p->splits = 1;
    p->split_rows = larger(1, p->e.k);
    if (p->short_chunks) {
        cut_short(p);
        return;
    }
    if (p->square) {
        cut_square(p);
        return;
    }
    p->tiles = tiles_of(p);
    if (!p->transposed && !cornu__is_stretched(p) && p->e.k > 0)
        p->tiles = larger(1, smaller(p->tiles, most_bytes(p) / tile_bytes(p)));
    if (cornu__is_stretched(p))   /* in turns rows have several parts */
        p->tiles = p->in_turns ? TILES : MOST_TILES;
    if (p->packs) p->tiles = ceil_divide(p->e.m, p->products->tile_rows);
    if (p->summed) p->tiles = SUMMED_TILES;
    p->row_blocks = row_blocks_of(p);
    p->column_blocks = by_panels(p, columns_of(p));
}

/* Where rows are copied for their sets alone, and would be again for every few panels: tiles of as
 * many rows as stay in the first-level cache without that. */
static void avoid_copies(CornuMatmul *p, int64_t spread)
{
    const int64_t ways = cornu__cpu()->l1d / PAGE_BYTES - SPARE_WAYS;
    const int64_t rows = smaller(p->products->tile_rows, ways * PAGE_BYTES / larger(1, spread));
    if (!p->copied || p->transposed || !p->how.in_place || cornu__is_stretched(p) ||
        rows < LEAST_ROWS || cornu__has_tile_registers(p->products) ||
        p->panels > FEW_PANELS * p->column_blocks)
        return;
    p->copied = false;
    p->x_stride = p->e.k;
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
    const bool on_tiles = cornu__has_tile_registers(p->products);
    p->turned = op->attributes->matmul.transpose_a && !p->summed && on_tiles;
    p->transposed = op->attributes->matmul.transpose_a && !p->turned;
    p->by_rows = p->transposed && on_tiles;
    p->in_turns = p->how.passes > 1 && !p->transposed && on_tiles;
    p->square = p->how.passes == 1 && !p->transposed && on_tiles &&
                p->e.m > FEW_TILES * p->products->tile_rows;
    p->padded = ceil_multiple(p->e.n, p->products->lanes);
    p->depth = ceil_multiple(p->e.k, p->products->depth);
    p->panels = ceil_divide(p->padded, cornu__panel_columns(p));
    const int64_t apart = p->e.k * (int64_t)p->products->size;   /* bytes between rows */
    p->stretch = stretch_of(p);
    p->copied = !p->how.in_place || p->turned || cornu__is_stretched(p) ||
                ((apart & -apart) > SPREAD && !(is_low(p) && p->e.m <= SET_ROWS));
    p->x_stride = p->copied ? padded_row(p->stretch) : p->e.k;
    p->short_chunks = p->transposed && !p->summed && p->how.passes == 1 && is_f32(p);
    p->tile_rows = p->products->tile_rows;
    cut(p);
    /* Rows are copied once, before all blocks, where several would each copy them. */
    p->made_row = p->turned || (p->square && p->copied && p->column_blocks > 1) ? p->x_stride : 0;
    if (p->made_row && p->how.in_place) p->copied = false;
    avoid_copies(p, apart & -apart);
}

/* Of all panels of one matrix b. */
static int64_t matrix_bytes(const CornuMatmul *p)
{
    return p->how.parts * p->depth * p->padded * (int64_t)p->products->size;
}

bool cornu__matmul_packs_itself(const CornuQuery *q)
{
    CornuMatmul p = { .packs = false };
    cornu__matmul_find_blocks(&p, q->op, q->out_type, q->machine.multiplier);
    if ((!p.how.in_place && !p.in_turns) || q->machine.shards > 1) return false;
    if (p.transposed) return p.short_chunks && p.row_blocks <= OWN_ROW_BLOCKS;
    return p.b_matrices == 1 && p.e.batch == 1 &&
           p.e.m <= MOST_TILES * p.products->tile_rows &&
           matrix_bytes(&p) > KEPT_BYTES;
}

size_t cornu__matmul_pack_bytes(const CornuQuery *q)
{
    CornuMatmul p = { .packs = false };
    cornu__matmul_find_blocks(&p, q->op, q->out_type, q->machine.multiplier);
    return cornu__aligned((size_t)(p.b_matrices * matrix_bytes(&p)));
}

/* Where a is transposed: K, or a split of it, in equal stretches of whole pairs, either short ones
 * or so that what a block reads of a fits CORNU_MATMUL_BYTES. */
static void find_chunks(CornuMatmul *p, const CornuType *out_type)
{
    const int64_t size = (int64_t)p->products->size, parts = p->how.parts;
    p->chunk = chunk_rows(p, p->short_chunks
                             ? short_chunk(p)
                             : CORNU_MATMUL_BYTES / (parts * size * cornu__block_rows(p)));
    p->x_rows = p->chunk + (p->short_chunks ? SPARE_ROWS : 0);
    p->x_part = cornu__block_rows(p) * p->x_rows;
    p->row_bytes = CORNU_MATMUL_SOME_ROWS * parts * cornu__block_rows(p) * size;
    if (p->splits == 1 && !cornu__matmul_sums_in_place(p, out_type))
        p->sums_count = 2 * cornu__block_rows(p) * block_columns(p);
}

static size_t made_bytes(const CornuMatmul *p, const CornuOpCall *op)
{
    const int64_t matrices = p->e.a_batch ? p->e.batch : 1;
    const size_t  elements = (size_t)(matrices * cornu__stretches(p) * p->e.m * p->made_row);
    return cornu__aligned(elements * cornu_dtype_size(op->in[0].dtype));
}

void cornu__matmul_lay_out(CornuMatmul *p, const CornuQuery *q, CornuScratch *scratch)
{
    p->threads = q->machine.threads;
    cornu__matmul_find_blocks(p, q->op, q->out_type, q->machine.multiplier);
    const size_t threads = (size_t)q->machine.threads, parts = (size_t)p->how.parts;
    p->x_part = p->copied ? cornu__block_rows(p) * p->x_stride : 0;
    p->row_bytes = p->sums_count = 0;
    if (p->transposed) find_chunks(p, q->out_type);
    else if (cornu__is_stretched(p) && !cornu__matmul_sums_in_place(p, q->out_type))
        p->sums_count = cornu__block_rows(p) * block_columns(p);
    if (p->summed) {   /* one chunk of each shard's rows at a time, in a row */
        p->chunk = p->x_rows = p->by_rows ? padded_row(p->depth) : p->depth;
        p->x_part = cornu__block_rows(p) * p->chunk * p->summed;
        p->sums_count = (p->summed + 1) * cornu__panel_columns(p) *
                        larger(p->products->tile_rows, p->products->outer_rows);
    }
    if (p->packs)
        p->panel_bytes = p->transposed
            ? 2 * cornu__panel_columns(p) * p->chunk * (int64_t)p->products->size
            : block_columns(p) * p->how.parts * (int64_t)p->products->size *
              ceil_multiple(p->stretch, p->products->depth);
    p->x_bytes = (int64_t)cornu__aligned(parts * (size_t)p->x_part * p->products->size);
    p->row_bytes = (int64_t)cornu__aligned((size_t)p->row_bytes);
    p->bias = cornu__take_floats(scratch, (1 + CORNU_FINISH_COLUMNS) * p->padded);
    cornu__take_line(scratch);
    p->made = cornu__take(scratch, made_bytes(p, q->op));
    p->panel = cornu__take(scratch, threads * (size_t)p->panel_bytes);
    p->x = cornu__take(scratch, threads * (size_t)p->x_bytes);
    p->rows = cornu__take(scratch, threads * (size_t)p->row_bytes);
    const int64_t split_sums = p->splits > 1 ? p->splits * p->e.batch * p->e.m * p->padded : 0;
    p->sums = cornu__take_floats(scratch, q->machine.threads * p->sums_count + split_sums);
}
